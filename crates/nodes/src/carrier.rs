//! Frames over UDP: one socket for all peers.

use crate::NodesError;
use bytes::{Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;
use trunkline_transport::cstar::{Destination, Frame, NodeId};

/// Memory that the kernel adds to a received datagram before it rounds up to a power of two, and behind that, at most
/// (measured on Linux 6.18: a datagram of 8,032 octets counts 17,152).
const ADDED: usize = 512;
const BOOKKEEPING: usize = 1280;

/// Bytes of a socket's receive buffer that a frame of `payload` bytes takes at most.
pub fn frame_memory(payload: u32) -> usize {
    (payload as usize + Frame::HEADER as usize + ADDED).next_power_of_two() + BOOKKEEPING
}

/// A node's socket, and where its peers are.
#[derive(Debug)]
pub struct Carrier {
    socket: UdpSocket,
    me: NodeId,
    peers: Vec<SocketAddr>,
    buffer: Vec<u8>,
    out: BytesMut,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
}

/// Longest datagram.
const LONGEST: usize = 65_535;

impl Carrier {
    /// A socket at `address` whose receive buffer holds `buffers` frames of `payload` bytes each.
    ///
    /// # Errors
    /// If the address cannot be had, or the kernel gives less memory than that. A careful node must not start then: frames
    /// would be dropped there that it has promised to take.
    pub fn bind(address: SocketAddr, buffers: u32, payload: u32) -> Result<Carrier, NodesError> {
        let what = format!("listen at {address}");
        let socket = UdpSocket::bind(address).map_err(NodesError::system(what))?;
        socket.set_nonblocking(true).map_err(NodesError::system("set up the socket"))?;
        let needed = buffers as usize * frame_memory(payload);
        // The kernel doubles what it is asked for, and tells the double. The first needs a right, the second may give less.
        let asked = needed.div_ceil(2);
        if sockopt::set_socket_recv_buffer_size_force(&socket, asked).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, asked);
        }
        let granted = sockopt::socket_recv_buffer_size(&socket).unwrap_or(0);
        if granted < needed {
            return Err(NodesError::Buffer { address, granted, needed, buffers });
        }
        Ok(Carrier {
            socket,
            me: NodeId(0),
            peers: Vec::new(),
            buffer: vec![0; LONGEST],
            out: BytesMut::new(),
            sent: 0,
            received: 0,
        })
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn address(&self) -> Result<SocketAddr, NodesError> {
        self.socket.local_addr().map_err(NodesError::system("ask for the socket's address"))
    }

    /// Tells where all nodes are, by their numbers, and which of them this one is.
    pub fn meet(&mut self, me: NodeId, peers: Vec<SocketAddr>) {
        (self.me, self.peers) = (me, peers);
    }

    /// Where all nodes are.
    pub fn peers(&self) -> &[SocketAddr] {
        &self.peers
    }

    /// Sends a frame; one for all to each.
    ///
    /// # Errors
    /// If the kernel refuses it for another reason than that nobody listens there, which a dead peer's death explains.
    pub fn send(&mut self, frame: &Frame) -> Result<(), NodesError> {
        self.out.clear();
        frame.encode(&mut self.out);
        let (me, octets) = (self.me, std::mem::take(&mut self.out));
        let sent = match frame.to {
            Destination::Node(to) => self.send_to(to, &octets),
            Destination::All => (0..self.peers.len() as u16)
                .map(NodeId)
                .filter(|&to| to != me)
                .try_for_each(|to| self.send_to(to, &octets)),
        };
        self.out = octets;
        sent
    }

    /// Sends octets to a node.
    ///
    /// # Errors
    /// As [`Carrier::send`].
    pub fn send_to(&mut self, to: NodeId, octets: &[u8]) -> Result<(), NodesError> {
        let Some(address) = self.peers.get(usize::from(to.0)).copied() else { return Ok(()) };
        loop {
            match self.socket.send_to(octets, address) {
                Ok(_) => {
                    self.sent += 1;
                    return Ok(());
                }
                // An answer of the peer's host to an earlier datagram; this one was not sent.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The sender's own queue is full; it drains by itself.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let mut sockets = [PollFd::new(&self.socket, PollFlags::OUT)];
                    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
                    let _ = poll(&mut sockets, Some(&second));
                }
                Err(source) => {
                    return Err(NodesError::System { what: format!("send to {address}"), source });
                }
            }
        }
    }

    /// The next datagram that has come, or comes within `wait`; at once with no time.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<Bytes>, NodesError> {
        if !wait.is_zero() {
            let mut sockets = [PollFd::new(&self.socket, PollFlags::IN)];
            let limit = Timespec::try_from(wait).ok();
            match poll(&mut sockets, limit.as_ref()) {
                Ok(0) | Err(Errno::INTR) => return Ok(None),
                Ok(_) => {}
                Err(error) => return Err(NodesError::system("wait for a datagram")(error.into())),
            }
        }
        match self.socket.recv_from(&mut self.buffer) {
            Ok((length, _)) => {
                self.received += 1;
                Ok(Some(Bytes::copy_from_slice(&self.buffer[..length])))
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused => {
                    Ok(None)
                }
                _ => Err(NodesError::System { what: "receive".into(), source: error }),
            },
        }
    }

    /// Datagrams that the kernel dropped because the receive buffer was full, or that were damaged; `None` if it does not
    /// tell.
    pub fn dropped(&self) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_skip::skipped;

    /// As many frames as were asked for wait in the socket before one is dropped, whatever their size.
    #[test]
    fn a_socket_holds_the_frames_that_it_promises() {
        for payload in [4, 800, 1460, 4000, 7600, 8000, 16_000] {
            let any: SocketAddr = ([127, 0, 0, 1], 0).into();
            let Ok(mut one) = Carrier::bind(any, 128, payload) else {
                return skipped("the kernel gives this user a smaller receive buffer");
            };
            let address = one.address().unwrap();
            one.meet(NodeId(0), vec![address]);
            let octets = vec![0; (payload + Frame::HEADER) as usize];
            (0..128).for_each(|_| one.send_to(NodeId(0), &octets).unwrap());
            assert_eq!(one.dropped(), Some(0), "{payload}");
            let held = std::iter::from_fn(|| one.receive(Duration::ZERO).unwrap()).count();
            assert_eq!(held, 128, "{payload}");
        }
    }

    #[test]
    fn frames_come_and_a_full_buffer_is_counted() {
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        let mut one = Carrier::bind(any, 4, 4000).unwrap();
        let mut other = Carrier::bind(any, 4, 4000).unwrap();
        let peers = vec![one.address().unwrap(), other.address().unwrap()];
        one.meet(NodeId(0), peers.clone());
        other.meet(NodeId(1), peers);
        for octet in 0..4 {
            one.send_to(NodeId(1), &vec![octet; 4032]).unwrap();
        }
        for octet in 0..4 {
            let came = other.receive(Duration::from_secs(5)).unwrap().unwrap();
            assert_eq!((came.len(), came[0]), (4032, octet));
        }
        assert_eq!(other.receive(Duration::ZERO).unwrap(), None);
        assert_eq!(other.dropped(), Some(0));
        for _ in 0..100 {
            one.send_to(NodeId(1), &[0; 4032]).unwrap();
        }
        assert!(other.dropped().unwrap() > 50);
    }
}
