//! Capsules on a UDP socket.

use crate::EndpointError;
use crate::error::Doing;
use crate::plan::{EndPlan, FlowPlan};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use trunkline_capsule::{Capsule, Direction, HEADER, Header, PORT, View};
use trunkline_core::Time;
use trunkline_netns::{SocketOption, set_socket_option};

/// Bytes of IPv4's and UDP's headers.
const HEADERS: usize = 20 + 8;
/// The largest IPv4 packet.
const MOST: usize = 65_535;
/// Bytes that a socket may hold in each direction.
const BUFFER: usize = 4 << 20;
/// Answers of the network that are waited through in one go.
const PATIENCE: usize = 64;

/// A UDP socket connected to the other end, which carries capsules.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: OwnedFd,
    header: Header,
    /// Bytes of a body that the device takes.
    room: usize,
    out: Vec<u8>,
    buffer: Vec<u8>,
    /// Whether the socket takes no more for now.
    pub blocked: bool,
    pub sent: u64,
    pub received: u64,
    /// Bodies that were cut to the device's MTU.
    pub cut: u64,
    /// The reason for which the system last refused a packet.
    pub refusal: Option<Errno>,
}

impl Wire {
    /// Both ends' sockets, connected to each other.
    pub fn pair(plan: &FlowPlan) -> Result<[Wire; 2], EndpointError> {
        let near = open(&plan.source, 0)?;
        let far = open(&plan.destination, PORT)?;
        connect(&near, plan.source.address, plan.destination.address, PORT)?;
        let port = local_port(&near, plan.source.address)?;
        connect(&far, plan.destination.address, plan.source.address, port)?;
        let room = room(plan.mtu)?;
        let end = |socket, direction| Wire {
            socket,
            header: Header {
                direction,
                traffic: plan.traffic,
                flow: plan.flow,
                channel: plan.channel,
                band: plan.band,
                ..Header::default()
            },
            room,
            out: vec![0; HEADER + room],
            buffer: vec![0; MOST],
            blocked: false,
            sent: 0,
            received: 0,
            cut: 0,
            refusal: None,
        };
        Ok([end(near, Direction::Forward), end(far, Direction::Backward)])
    }

    /// Bytes of a body that the device takes.
    pub fn room(&self) -> usize {
        self.room
    }

    /// The number of the next packet to be sent.
    pub fn next(&self) -> u64 {
        self.header.number
    }

    /// Sends a packet that counts `size` bytes on the path, `controls` of them control envelopes: these octets, which
    /// fit, and so many without meaning, as far as they fit. Answers whether the socket took it, or refused it for good;
    /// else it is to be tried again when it can be written.
    pub fn send(
        &mut self,
        now: Time,
        (path_size, controls): (u32, u16),
        octets: &[u8],
        filler: u32,
    ) -> bool {
        self.header = Header { path_size, controls, sent: now, ..self.header };
        self.header.write(&mut self.out);
        self.out[HEADER..HEADER + octets.len()].copy_from_slice(octets);
        let wanted = octets.len() + filler as usize;
        let length = wanted.min(self.room);
        let bytes = &self.out[..HEADER + length];
        // A reader that is gone, or a packet that finds no room in a queue, is a loss like another.
        match rustix::net::send(&self.socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Err(Errno::AGAIN) => {
                self.blocked = true;
                return false;
            }
            Err(error) => self.refusal = Some(error),
            Ok(_) => (),
        }
        self.blocked = false;
        self.header.number += 1;
        self.sent += 1;
        self.cut += u64::from(wanted > self.room);
        true
    }

    /// The next packet that has come.
    pub fn receive(&mut self) -> Option<View<'_>> {
        for _ in 0..PATIENCE {
            let got = rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT);
            match got {
                Ok((length, _)) if Header::read(&self.buffer[..length]).is_some() => {
                    self.received += 1;
                    return Capsule::parse(&self.buffer[..length]);
                }
                Err(Errno::AGAIN) => return None,
                // What is no capsule, and errors that a packet sent earlier met with.
                _ => (),
            }
        }
        None
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Bytes of a body in a packet of `mtu` bytes.
fn room(mtu: u32) -> Result<usize, EndpointError> {
    // One whole Datakit packet of sixteen envelopes at least.
    let least = HEADERS + HEADER + 32;
    let mtu = (mtu as usize).min(MOST);
    if mtu < least {
        let text = format!("an MTU of {mtu} bytes holds no capsule: give it {least} or more");
        return Err(EndpointError::Transport(text));
    }
    Ok(mtu - HEADERS - HEADER)
}

fn open(end: &EndPlan, port: u16) -> Result<OwnedFd, EndpointError> {
    let address = end.address;
    end.namespace.run(|| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = (AddressFamily::INET, SocketType::DGRAM);
        let socket = rustix::net::socket_with(kind.0, kind.1, flags, None)
            .doing("open a UDP socket", address)?;
        // All flows to one host share a port there; the kernel tells them apart by the other end's, which
        // must not be shared.
        sockopt::set_socket_reuseaddr(&socket, port != 0).doing("share a port", address)?;
        sockopt::set_ip_mtu_discover(&socket, sockopt::Ipv4PathMtuDiscovery::PROBE)
            .doing("forbid fragments", address)?;
        enlarge(&socket).doing("enlarge a socket's buffers", address)?;
        // The path writes into the packets.
        set_socket_option(&socket, SocketOption::NoChecksum, 1)
            .doing("leave out check sums", address)?;
        rustix::net::bind(&socket, &SocketAddrV4::new(address, port)).doing("bind", address)?;
        Ok(socket)
    })?
}

/// Makes it as large as wanted if that is allowed, else as large as may be.
fn enlarge(socket: &OwnedFd) -> Result<(), Errno> {
    sockopt::set_socket_recv_buffer_size_force(socket, BUFFER)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, BUFFER))?;
    sockopt::set_socket_send_buffer_size_force(socket, BUFFER)
        .or_else(|_| sockopt::set_socket_send_buffer_size(socket, BUFFER))
}

fn connect(
    socket: &OwnedFd,
    address: Ipv4Addr,
    peer: Ipv4Addr,
    port: u16,
) -> Result<(), EndpointError> {
    rustix::net::connect(socket, &SocketAddrV4::new(peer, port)).doing("connect", address)
}

pub(crate) fn local_port(socket: &OwnedFd, address: Ipv4Addr) -> Result<u16, EndpointError> {
    let name = rustix::net::getsockname(socket).doing("read a port", address)?;
    let name = SocketAddrV4::try_from(name).doing("read a port", address)?;
    Ok(name.port())
}
