//! Frames over UDP: one socket for all peers, a frame in each datagram.

use crate::address::Address;
use crate::carrier::Wire;
use crate::memory::frame_memory;
use crate::{NodesError, wait_to_send};
use bytes::Bytes;
use rustix::net::sockopt;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Longest datagram.
const LONGEST: usize = 65_535;

/// A node's socket, and where its peers are.
#[derive(Debug)]
pub(crate) struct Udp {
    socket: UdpSocket,
    peers: Vec<SocketAddr>,
    buffer: Vec<u8>,
}

impl Udp {
    /// A socket at `address` whose receive buffer holds `buffers` frames of `payload` bytes each.
    ///
    /// # Errors
    /// If the address cannot be had, or the kernel gives less memory than that.
    pub fn bind(address: SocketAddr, buffers: u32, payload: u32) -> Result<Udp, NodesError> {
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
            let at = address.to_string();
            return Err(NodesError::Buffer { at, granted, needed, buffers });
        }
        Ok(Udp { socket, peers: Vec::new(), buffer: vec![0; LONGEST] })
    }
}

impl Wire for Udp {
    fn address(&self) -> Result<Address, NodesError> {
        let address = self.socket.local_addr();
        address.map(Address::Udp).map_err(NodesError::system("ask for the socket's address"))
    }

    fn meet(&mut self, peers: &[Address]) -> Result<(), NodesError> {
        let of = |peer: &Address| match *peer {
            Address::Udp(address) => Ok(address),
            Address::Ethernet(mac) => {
                Err(NodesError::Address { peer: mac.to_string(), wanted: "ADDRESS:PORT" })
            }
        };
        self.peers = peers.iter().map(of).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn send(&mut self, to: usize, octets: &[u8]) -> Result<(), NodesError> {
        let address = self.peers[to];
        loop {
            match self.socket.send_to(octets, address) {
                Ok(_) => return Ok(()),
                // An answer of the peer's host to an earlier datagram; this one was not sent.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The sender's own queue is full; it drains by itself.
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait_to_send(&self.socket),
                Err(source) => {
                    return Err(NodesError::System { what: format!("send to {address}"), source });
                }
            }
        }
    }

    fn send_to_all(&mut self, me: usize, octets: &[u8]) -> Result<u64, NodesError> {
        let others = (0..self.peers.len()).filter(|&to| to != me);
        let mut sent = 0;
        for to in others {
            self.send(to, octets)?;
            sent += 1;
        }
        Ok(sent)
    }

    fn receive(&mut self) -> Result<Option<Bytes>, NodesError> {
        match self.socket.recv_from(&mut self.buffer) {
            Ok((length, _)) => Ok(Some(Bytes::copy_from_slice(&self.buffer[..length]))),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused => {
                    Ok(None)
                }
                _ => Err(NodesError::System { what: "receive".into(), source: error }),
            },
        }
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
