//! The kernel's TCP.

use super::{Taken, Write};
use crate::EndpointError;
use crate::context::Context;
use crate::error::Doing;
use crate::plan::{EndPlan, FlowPlan};
use crate::run::VoiceReport;
use crate::shared::{MessageEnd, Way};
use crate::tuning::{self, Tuning};
use crate::wire::local_port;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use trunkline_lab::tcp_info;
use trunkline_scenario::TcpSettings;

/// How long a connection may take to be made: a lost SYN is sent again after 1, 3 and 7 seconds.
const PATIENCE_SECONDS: u64 = 30;
/// What one system call moves at most.
const CHUNK: usize = 1 << 18;
/// Users' octets: they mean nothing.
static OCTETS: [u8; CHUNK] = [0x55; CHUNK];

/// An end of a TCP connection. The ends of messages go to the reader beside the stream, as positions in it.
#[derive(Debug)]
pub(crate) struct Tcp {
    stream: OwnedFd,
    tuning: Tuning,
    /// Bytes of the write under way that the kernel has not taken.
    left: u64,
    /// Bytes of the stream: of all writes, taken off the kernel, and read by the application.
    position: u64,
    got: u64,
    read: u64,
    closed: bool,
    buffer: Vec<u8>,
}

impl Tcp {
    /// Both ends of a connection.
    pub fn pair(
        plan: &FlowPlan,
        own: &TcpSettings,
        other: &TcpSettings,
    ) -> Result<[Tcp; 2], EndpointError> {
        let near = Tuning::new(own, plan.mtu)?;
        let far = Tuning::new(other, plan.mtu)?;
        let (source, destination) = (&plan.source, &plan.destination);
        let _held = tuning::hold();
        // What is agreed at the beginning is a namespace's setting, not a socket's.
        let _near_settings = near.for_connecting(&source.namespace)?;
        let _far_settings = far.for_connecting(&destination.namespace)?;
        let listener = open(destination, &far)?;
        let address = destination.address;
        rustix::net::listen(&listener, 1).doing("listen", address)?;
        let port = local_port(&listener, address)?;
        let connecting = open(source, &near)?;
        let peer = SocketAddrV4::new(address, port);
        match rustix::net::connect(&connecting, &peer) {
            Err(Errno::INPROGRESS) | Ok(()) => (),
            Err(error) => Err(error).doing("connect", source.address)?,
        }
        let accepted = accept(&listener, plan)?;
        await_writable(&connecting, plan)?;
        far.after_accept(&accepted).doing("set up a TCP connection", address)?;
        Ok([Tcp::new(connecting, near), Tcp::new(accepted, far)])
    }

    fn new(stream: OwnedFd, tuning: Tuning) -> Tcp {
        Tcp {
            stream,
            tuning,
            left: 0,
            position: 0,
            got: 0,
            read: 0,
            closed: false,
            buffer: vec![0; CHUNK],
        }
    }

    pub fn write(&mut self, write: Write, context: &Context) {
        let Write { bytes, end, carried } = write;
        // A stream has no empty messages: one byte stands for it, as in the simulator.
        let filler = end && bytes == 0;
        self.left = u64::from(bytes) + u64::from(filler);
        self.position += self.left;
        let way = context.outward();
        if end {
            // Before the bytes: the reader may be faster than this thread.
            way.ends().push_back(MessageEnd { at: self.position, filler, carried });
        }
        way.sent.store(self.position, Ordering::Release);
        self.pump(context);
    }

    pub fn written(&self) -> bool {
        self.left == 0
    }

    pub fn blocked(&self) -> bool {
        self.left > 0 && !self.closed
    }

    /// Has the connection ended?
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// Hands the rest of the write to the kernel, as much as it takes.
    pub fn pump(&mut self, _context: &Context) {
        while self.left > 0 && !self.closed {
            let octets = &OCTETS[..self.left.min(CHUNK as u64) as usize];
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(&self.stream, octets, flags) {
                Ok(taken) => self.left -= taken as u64,
                Err(Errno::INTR) => (),
                Err(Errno::AGAIN) => return,
                Err(_) => self.closed = true,
            }
        }
    }

    pub fn take(&mut self, context: &Context) -> Option<Taken> {
        let way = context.inward();
        // What lies before the end of a message that has come is read without asking the kernel.
        let front = way.ends().front().map(|end| end.at);
        if front.is_none_or(|at| at > self.got) {
            self.receive();
        }
        self.to_end(way)
    }

    fn receive(&mut self) {
        match rustix::net::recv(&self.stream, &mut self.buffer[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.closed = true,
            Ok((bytes, _)) => {
                self.got += bytes as u64;
                self.tuning.after_read(&self.stream);
            }
            Err(Errno::AGAIN | Errno::INTR) => (),
            Err(_) => self.closed = true,
        }
    }

    /// What has come, at most to the end of a message.
    fn to_end(&mut self, way: &Way) -> Option<Taken> {
        let mut ends = way.ends();
        let end = ends.pop_front_if(|end| end.at <= self.got);
        let until = end.as_ref().map_or(self.got, |end| end.at);
        let filler = end.as_ref().is_some_and(|end| end.filler);
        let bytes = until - self.read - u64::from(filler);
        if until == self.read {
            return None;
        }
        self.read = until;
        way.taken.store(until, Ordering::Release);
        let is_end = end.is_some();
        Some(Taken { bytes: bytes as u32, end: is_end, carried: end.map(|end| end.carried) })
    }

    pub fn report(&self) -> VoiceReport {
        let mut notes = self.tuning.notes().to_vec();
        let Ok(info) = tcp_info(&self.stream) else { return VoiceReport::default() };
        notes.extend(self.tuning.disagreements(&info));
        VoiceReport {
            retransmissions: u64::from(info.retransmitted),
            timeouts: u64::from(info.timeouts),
            packets_sent: u64::from(info.data_segments_sent),
            tcp: Some(info),
            notes,
            ..VoiceReport::default()
        }
    }
}

impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A socket bound to the end's address, tuned.
fn open(end: &EndPlan, tuning: &Tuning) -> Result<OwnedFd, EndpointError> {
    let address = end.address;
    end.namespace.run(|| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
            .doing("open a TCP socket", address)?;
        tuning.apply(&socket, address)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(address, 0)).doing("bind", address)?;
        Ok(socket)
    })?
}

fn accept(listener: &OwnedFd, plan: &FlowPlan) -> Result<OwnedFd, EndpointError> {
    wait(listener, PollFlags::IN, plan)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::accept_with(listener, flags).doing("accept", plan.destination.address)
}

fn await_writable(socket: &OwnedFd, plan: &FlowPlan) -> Result<(), EndpointError> {
    wait(socket, PollFlags::OUT, plan)?;
    let outcome = sockopt::socket_error(socket).doing("connect", plan.source.address)?;
    outcome.doing("connect", plan.source.address)
}

fn wait(socket: &OwnedFd, flags: PollFlags, plan: &FlowPlan) -> Result<(), EndpointError> {
    let mut polled = [PollFd::new(socket, flags)];
    let timeout = rustix::time::Timespec { tv_sec: PATIENCE_SECONDS as i64, tv_nsec: 0 };
    let ready = rustix::io::retry_on_intr(|| poll(&mut polled, Some(&timeout)));
    match ready.doing("wait", plan.source.address)? {
        0 => Err(EndpointError::Unreachable {
            from: plan.source.address,
            to: plan.destination.address,
            seconds: PATIENCE_SECONDS,
        }),
        _ => Ok(()),
    }
}
