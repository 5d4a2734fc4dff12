//! Frames over UDP: one socket for all peers, a frame in each datagram.

use crate::NodesError;
use crate::address::Address;
use crate::memory::{Blocks, frame_memory};
use crate::wire::{NAP, Wire, wait_to_send};
use crate::words::NOTHING;
use bytes::{Bytes, BytesMut};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg, setsockopt};
use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendFlags, recv, recvfrom, sendmsg_addr, sockopt,
};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{ErrorKind, IoSlice};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;
use trunkline_port::take_only_from;

/// How long a host may take to say that nobody listens at a port (a choice: some times a near host's answer).
const ANSWERS: Duration = Duration::from_millis(20);
/// Longest datagram.
const LONGEST: usize = 65_535;

/// A node's socket, and where its peers are.
#[derive(Debug)]
pub(crate) struct Udp {
    socket: UdpSocket,
    peers: Vec<SocketAddr>,
    /// The address by which it is known, if it listens at others too.
    known: Option<SocketAddr>,
    /// The group for what is for all, if it could be joined.
    group: Option<SocketAddr>,
    /// Whether all others hear the group.
    heard: bool,
    /// Whether the system cuts what is sent as one into datagrams.
    cuts: bool,
    buffer: Vec<u8>,
    blocks: Blocks,
}

impl Udp {
    /// A socket at `address` whose receive buffer holds `buffers` frames of `payload` bytes each.
    ///
    /// # Errors
    /// If the address cannot be had, or the kernel gives less memory than that.
    pub fn bind(address: SocketAddr, buffers: u32, payload: u32) -> Result<Udp, NodesError> {
        let socket = UdpSocket::bind(address)
            .map_err(|source| NodesError::Listen { at: address.to_string(), source })?;
        // Calls that wait do so for a nap; the others say that they do not.
        let nap = Duration::from_nanos(NAP.as_nanos());
        socket.set_read_timeout(Some(nap)).map_err(NodesError::system("set up the socket"))?;
        // Trains then come whole, if the way keeps them; a system that cannot do this hands over each datagram.
        let _ = setsockopt(&socket, nix::sys::socket::sockopt::UdpGroSegment, &true);
        let needed = buffers as usize * frame_memory(payload);
        // The kernel doubles what it is asked for, and tells the double. The first needs a right, the second may give less.
        let asked = needed.div_ceil(2);
        if sockopt::set_socket_recv_buffer_size_force(&socket, asked).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, asked);
        }
        let granted = sockopt::socket_recv_buffer_size(&socket).unwrap_or(0);
        if granted < needed {
            let at = address.to_string();
            return Err(NodesError::Buffer { at, granted, needed, buffers });
        }
        let (peers, buffer) = (Vec::new(), vec![0; LONGEST]);
        let (known, group, blocks) = (None, None, Blocks::default());
        Ok(Udp { socket, peers, known, group, heard: false, cuts: true, buffer, blocks })
    }

    /// The same for a node that hears a multicast group too: one socket for both, so that what one node sends by both ways
    /// is taken in order.
    ///
    /// # Errors
    /// As [`Udp::bind`]. A group that cannot be joined is none: what is for all then goes to each.
    pub fn with_group(
        known: SocketAddrV4,
        group: Ipv4Addr,
        buffers: u32,
        payload: u32,
    ) -> Result<Udp, NodesError> {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, known.port()));
        let mut udp = Udp::bind(any, buffers, payload)?;
        udp.known = Some(known.into());
        let joined = udp.socket.join_multicast_v4(&group, known.ip()).is_ok()
            && sockopt::set_ip_multicast_if(&udp.socket, known.ip()).is_ok()
            && udp.socket.set_multicast_loop_v4(false).is_ok();
        udp.group = joined.then(|| (group, known.port()).into());
        Ok(udp)
    }

    /// Sends datagrams in one call, by the kernel's segmentation (`UDP_SEGMENT`, udp(7)). Whether the system can.
    fn send_as_one(&self, at: SocketAddr, train: &[[&[u8]; 2]]) -> Result<bool, NodesError> {
        let slices: Vec<_> = train.iter().flatten().map(|part| IoSlice::new(part)).collect();
        let size = train.first().map_or(0, |it| it[0].len() + it[1].len()) as u16;
        let (control, at) = ([ControlMessage::UdpGsoSegments(&size)], SockaddrStorage::from(at));
        let descriptor = self.socket.as_raw_fd();
        loop {
            let sent = sendmsg(descriptor, &slices, &control, MsgFlags::MSG_DONTWAIT, Some(&at));
            match sent.map_err(|errno| Errno::from_raw_os_error(errno as i32)) {
                Ok(_) => return Ok(true),
                // Longer than the device's packets, or no check sums by the device: the datagrams go one by one.
                Err(Errno::INVAL | Errno::MSGSIZE | Errno::IO | Errno::OPNOTSUPP) => {
                    return Ok(false);
                }
                Err(errno) => self.overcome(errno, &at)?,
            }
        }
    }

    #[inline]
    fn receive_so(&mut self, flags: RecvFlags) -> Result<Option<Bytes>, NodesError> {
        match recv(&self.socket, &mut self.buffer[..], flags) {
            Ok((length, _)) => Ok(Some(self.blocks.copy(&self.buffer[..length]))),
            Err(errno) => nothing_came(errno),
        }
    }

    /// What has come already and waits: that of peers, one behind the other. Others' is dropped.
    fn take_of_peers(&mut self) -> Result<Bytes, NodesError> {
        let place = |it: &SocketAddr| (it.ip(), it.port());
        let peers: BTreeSet<_> = self.peers.iter().map(place).collect();
        let mut waiting = BytesMut::new();
        loop {
            match recvfrom(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((length, _, from)) => {
                    let from = from.and_then(|it| SocketAddr::try_from(it).ok());
                    if from.is_some_and(|it| peers.contains(&place(&it))) {
                        waiting.extend_from_slice(&self.buffer[..length]);
                    }
                }
                // An answer of a host to an earlier datagram.
                Err(Errno::INTR | Errno::CONNREFUSED) => {}
                Err(errno) => return nothing_came(errno).map(|_| waiting.freeze()),
            }
        }
    }

    #[inline]
    fn send_at(&self, address: SocketAddr, parts: [&[u8]; 2]) -> Result<(), NodesError> {
        let parts = parts.map(IoSlice::new);
        loop {
            let control = &mut SendAncillaryBuffer::default();
            match sendmsg_addr(&self.socket, &address, &parts, control, SendFlags::DONTWAIT) {
                Ok(_) => return Ok(()),
                Err(errno) => self.overcome(errno, &address)?,
            }
        }
    }

    /// Waits out what keeps something from being sent.
    #[cold]
    fn overcome(&self, errno: Errno, at: &dyn Display) -> Result<(), NodesError> {
        match errno {
            // Refused is an answer of the peer's host to an earlier datagram; this one was not sent.
            Errno::CONNREFUSED | Errno::INTR => {}
            // The sender's own queue is full; it drains by itself.
            Errno::AGAIN => wait_to_send(&self.socket),
            errno => return Err(NodesError::system(format!("send to {at}"))(errno.into())),
        }
        Ok(())
    }
}

/// Whether it is no error that nothing came.
#[cold]
fn nothing_came(errno: Errno) -> Result<Option<Bytes>, NodesError> {
    match errno {
        Errno::AGAIN | Errno::INTR | Errno::CONNREFUSED => Ok(None),
        errno => Err(NodesError::system("receive")(errno.into())),
    }
}

impl Wire for Udp {
    fn address(&self) -> Result<Address, NodesError> {
        let address = self.known.map_or_else(|| self.socket.local_addr(), Ok);
        address.map(Address::Udp).map_err(NodesError::system("ask for the socket's address"))
    }

    fn meet(&mut self, peers: &[Address]) -> Result<Bytes, NodesError> {
        let of = |peer: &Address| match *peer {
            Address::Udp(address) => Ok(address),
            Address::Ethernet(mac) => {
                Err(NodesError::Address { peer: mac.to_string(), wanted: "ADDRESS:PORT" })
            }
        };
        self.peers = peers.iter().map(of).collect::<Result<_, _>>()?;
        // Of others it takes nothing. A system that cannot do this for so many lets strangers' datagrams pass.
        if take_only_from(self.socket.as_fd(), &self.peers).is_err() {
            return Ok(Bytes::new());
        }
        self.take_of_peers()
    }

    #[inline]
    fn send(&mut self, to: usize, parts: [&[u8]; 2]) -> Result<(), NodesError> {
        self.send_at(self.peers[to], parts)
    }

    fn send_train(&mut self, to: usize, train: &[[&[u8]; 2]]) -> Result<(), NodesError> {
        self.cuts = self.cuts && self.send_as_one(self.peers[to], train)?;
        if self.cuts { Ok(()) } else { train.iter().try_for_each(|&parts| self.send(to, parts)) }
    }

    fn has_group(&self) -> bool {
        self.group.is_some()
    }

    /// A group for which there is no way is one that nobody hears.
    fn send_to_group(&mut self, octets: &[u8]) -> Result<(), NodesError> {
        if let Some(group) = self.group {
            let _ = self.send_at(group, [octets, &[]]);
        }
        Ok(())
    }

    fn settle_group(&mut self, heard: bool) {
        self.heard = heard;
    }

    fn send_to_all(&mut self, me: usize, parts: [&[u8]; 2]) -> Result<u64, NodesError> {
        if let Some(group) = self.group.filter(|_| self.heard) {
            return self.send_at(group, parts).map(|()| 1);
        }
        let others = (0..self.peers.len()).filter(|&to| to != me);
        let mut sent = 0;
        for to in others {
            self.send(to, parts)?;
            sent += 1;
        }
        Ok(sent)
    }

    #[inline]
    fn receive(&mut self) -> Result<Option<Bytes>, NodesError> {
        self.receive_so(RecvFlags::DONTWAIT)
    }

    /// By the socket's own time limit: waiting and taking is one call.
    #[inline]
    fn await_next(&mut self) -> Result<Option<Bytes>, NodesError> {
        self.receive_so(RecvFlags::empty())
    }

    /// By a word that says nothing, of a socket of its own: only a connected one hears of the host's answer.
    fn refuses(&self, to: usize) -> bool {
        let peer = self.peers[to];
        let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let asked = || {
            let socket = UdpSocket::bind(any)?;
            socket.connect(peer)?;
            socket.set_read_timeout(Some(ANSWERS))?;
            socket.send(&NOTHING)?;
            socket.recv(&mut [0])
        };
        asked().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn dropped(&mut self) -> Option<u64> {
        let port = self.socket.local_addr().ok()?.port();
        let file = if self.socket.local_addr().ok()?.is_ipv4() { "udp" } else { "udp6" };
        let table = std::fs::read_to_string(format!("/proc/thread-self/net/{file}")).ok()?;
        let own = format!(":{port:04X}");
        // The local address is the second column, the drops the last (proc_net_udp(5)).
        let line = table.lines().find(|line| {
            line.split_whitespace().nth(1).is_some_and(|address| address.ends_with(&own))
        })?;
        line.split_whitespace().next_back()?.parse().ok()
    }
}
