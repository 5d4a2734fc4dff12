//! The kernel's TCP.

use super::{Taken, Write};
use crate::EndpointError;
use crate::context::Context;
use crate::error::Doing;
use crate::plan::{EndPlan, FlowPlan};
use crate::run::ProtocolReport;
use crate::shared::{MessageEnd, Way};
use crate::tuning::{self, Tuning};
use crate::wire::local_port;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use trunkline_core::Time;
use trunkline_engine::{Note, NoteKind};
use trunkline_netns::tcp_info;
use trunkline_scenario::Transport;

/// The time that a connection may take to be made: a lost SYN is sent again after 1, 3 and 7 seconds.
const PATIENCE_SECONDS: u64 = 30;
/// The most that one system call moves.
const CHUNK: usize = 1 << 16;
/// Windows that have been read when what the first packets made of the window is over.
const SETTLED: u64 = 4;
/// Reads from one look at the window to the next.
const LOOK: u64 = 8;
/// A reader that never catches up is taken to have done so after so many bytes, more than a receive buffer holds.
const MOST_SINCE: u64 = 8 << 20;
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
    /// The report when the rest was left behind.
    last_report: Option<ProtocolReport>,
    /// When the kernel last had nothing for the reader, and what has been read since.
    emptied: Option<Time>,
    since_then: u64,
    /// If a window was asked for: reads, and the largest window seen at every [`LOOK`]th.
    reads: u64,
    peak_window: Option<u64>,
    buffer: Vec<u8>,
}

/// A connection being made.
struct Connecting<'a> {
    plan: &'a FlowPlan,
    listener: OwnedFd,
    stream: OwnedFd,
    tunings: [Tuning; 2],
}

impl<'a> Connecting<'a> {
    fn begin(plan: &'a FlowPlan, tunings: [Tuning; 2]) -> Result<Connecting<'a>, EndpointError> {
        let (source, destination) = (&plan.source, &plan.destination);
        let address = destination.address;
        let listener = open(destination, &tunings[1], plan.band)?;
        rustix::net::listen(&listener, 1).doing("listen", address)?;
        let port = local_port(&listener, address)?;
        let stream = open(source, &tunings[0], plan.band)?;
        match rustix::net::connect(&stream, &SocketAddrV4::new(address, port)) {
            Err(Errno::INPROGRESS) | Ok(()) => (),
            Err(error) => Err(error).doing("connect", source.address)?,
        }
        Ok(Connecting { plan, listener, stream, tunings })
    }

    fn finish(self) -> Result<[Tcp; 2], EndpointError> {
        let accepted = accept(&self.listener, self.plan)?;
        await_writable(&self.stream, self.plan)?;
        let [mut near, far] = self.tunings;
        near.note(tcp_info(&self.stream).ok().and_then(|info| near.differs_at_first(&info)));
        Ok([Tcp::new(self.stream, near), Tcp::new(accepted, far)])
    }
}

impl Tcp {
    /// Both ends of each flow's connection, in the order of the plans. Connections between the same hosts
    /// that are to agree upon the same are made at once, so that a long path is waited for once.
    pub fn pairs(plans: &[&FlowPlan]) -> Result<Vec<[Tcp; 2]>, EndpointError> {
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (index, &plan) in plans.iter().enumerate() {
            let tunings = tunings(plan)?;
            let hosts = [&plan.source, &plan.destination].map(|end| end.namespace.inode());
            let key = (hosts, tunings.each_ref().map(Tuning::agreement));
            groups.entry(key).or_default().push((index, plan, tunings));
        }
        let mut made = BTreeMap::new();
        for group in groups.into_values() {
            made.extend(Tcp::connect(group)?);
        }
        Ok(made.into_values().collect())
    }

    /// Makes the connections of one group; by their index.
    fn connect(group: Vec<Numbered<'_>>) -> Result<Vec<(usize, [Tcp; 2])>, EndpointError> {
        let Some((_, plan, [near, far])) = group.first().cloned() else { return Ok(Vec::new()) };
        let (here, there) = (&plan.source.namespace, &plan.destination.namespace);
        let shared = tuning::share();
        if near.finds_all_set(here)? && far.finds_all_set(there)? {
            return Tcp::connect_now(group);
        }
        drop(shared);
        let _alone = tuning::hold();
        // Given back in the other order, for both may be one.
        let _here = near.for_connecting(here)?;
        let _there = far.for_connecting(there)?;
        Tcp::connect_now(group)
    }

    fn connect_now(group: Vec<Numbered<'_>>) -> Result<Vec<(usize, [Tcp; 2])>, EndpointError> {
        let begin = |(index, plan, tunings)| Ok((index, Connecting::begin(plan, tunings)?));
        let begun: Result<Vec<_>, EndpointError> = group.into_iter().map(begin).collect();
        begun?.into_iter().map(|(index, begun)| Ok((index, begun.finish()?))).collect()
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
            last_report: None,
            emptied: None,
            since_then: 0,
            reads: 0,
            peak_window: None,
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
        self.pump();
    }

    pub fn written(&self) -> bool {
        self.left == 0
    }

    pub fn blocked(&self) -> bool {
        self.left > 0 && !self.closed
    }

    /// Whether the connection has ended.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// Hands the rest of the write to the kernel, as much as it takes.
    pub fn pump(&mut self) {
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

    /// Ends the connection at once: what the kernel has left to send is dropped, and the other end is told.
    pub fn cut_off(&mut self) {
        self.last_report = Some(self.report());
        // A connection that is gone already has nothing left.
        let _ = rustix::net::connect_unspec(&self.stream);
        (self.closed, self.left) = (true, 0);
    }

    pub fn take(&mut self, now: Time, context: &Context) -> Option<Taken> {
        let way = context.inward();
        // What lies before the end of a message that has come is read without asking the kernel.
        let front = way.ends().front().map(|end| end.at);
        if front.is_none_or(|at| at > self.got) {
            self.receive(now);
        }
        self.read_to_end(now, way)
    }

    fn receive(&mut self, now: Time) {
        match rustix::net::recv(&self.stream, &mut self.buffer[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.closed = true,
            Ok((bytes, _)) => {
                self.got += bytes as u64;
                self.tuning.after_read(&self.stream);
                self.look();
            }
            Err(Errno::AGAIN) => self.empty(now),
            Err(Errno::INTR) => (),
            Err(_) => self.closed = true,
        }
    }

    /// All that has come by `now` has been read: what comes next has come since.
    fn empty(&mut self, now: Time) {
        (self.emptied, self.since_then) = (Some(now), 0);
    }

    /// Notes the window that it advertises, once that has settled: with the first packets the kernel learns
    /// how well they fill their buffers and may advertise up to double, which it does not take back before
    /// as much has come.
    fn look(&mut self) {
        self.reads += 1;
        let settled = self.tuning.window().is_some_and(|window| self.got > SETTLED * window);
        if !settled || !self.reads.is_multiple_of(LOOK) {
            return;
        }
        if let Ok(info) = tcp_info(&self.stream) {
            self.peak_window = self.peak_window.max(Some(info.receive_window.into()));
        }
    }

    /// Reads what has come, at most to the end of a message.
    fn read_to_end(&mut self, now: Time, way: &Way) -> Option<Taken> {
        let mut ends = way.ends();
        let come = ends.front().is_some_and(|end| end.at <= self.got);
        let end = if come { ends.pop_front() } else { None };
        let until = end.as_ref().map_or(self.got, |end| end.at);
        let filler = end.as_ref().is_some_and(|end| end.filler);
        let bytes = until - self.read - u64::from(filler);
        if until == self.read {
            return None;
        }
        self.read = until;
        way.taken.store(until, Ordering::Release);
        let (is_end, since) = (end.is_some(), self.emptied);
        self.since_then += bytes;
        if self.since_then > MOST_SINCE {
            self.empty(now);
        }
        Some(Taken { bytes: bytes as u32, end: is_end, since, carried: end.map(|end| end.carried) })
    }

    pub fn report(&mut self) -> ProtocolReport {
        if let Some(report) = self.last_report.take() {
            return report;
        }
        let Ok(info) = tcp_info(&self.stream) else { return ProtocolReport::default() };
        let told = self.tuning.notes().iter().cloned().chain(self.tuning.disagreements(&info));
        let notes = told.map(|text| Note::new(NoteKind::NotEmulated, text)).collect();
        ProtocolReport {
            retransmissions: u64::from(info.retransmitted),
            timeouts: u64::from(info.timeouts),
            packets_sent: u64::from(info.data_segments_sent),
            tcp: Some(info),
            peak_window: self.peak_window,
            notes,
            ..ProtocolReport::default()
        }
    }
}

impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// A flow's place among those to be connected, and what its ends are told.
type Numbered<'a> = (usize, &'a FlowPlan, [Tuning; 2]);

fn tunings(plan: &FlowPlan) -> Result<[Tuning; 2], EndpointError> {
    let of = |end: &EndPlan| match &end.transport {
        Transport::Tcp(settings) => Tuning::new(settings, plan.mtu),
        _ => Err(EndpointError::Transport("a TCP connection needs TCP at both ends".into())),
    };
    Ok([of(&plan.source)?, of(&plan.destination)?])
}

/// A socket bound to the end's address, tuned.
fn open(end: &EndPlan, tuning: &Tuning, band: u8) -> Result<OwnedFd, EndpointError> {
    let address = end.address;
    end.namespace.run(|| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
            .doing("open a TCP socket", address)?;
        tuning.apply(&socket, address)?;
        // The IP precedence (RFC 791) of a band, by which the path classifies.
        sockopt::set_ip_tos(&socket, (7 - band.min(7)) << 5)
            .doing("set the precedence", address)?;
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
