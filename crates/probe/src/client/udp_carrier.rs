//! Messages as datagrams.

use super::Connection;
use super::carrier::{Carrier, Reply};
use crate::error::Naming;
use crate::wire::datagram::{DatagramKind, HEAD, Head, UDP_IPV4, UDP_IPV6};
use crate::wire::keys::Way;
use crate::{ProbeError, clock, stamp};
use rustix::event::PollFlags;
use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use trunkline_core::Time;
use trunkline_fit::Far;
use trunkline_handshake::CodeKey;

/// Octets that the socket's buffers should hold; the system may give less.
const BUFFER: usize = 4 << 20;
/// Octets of a UDP payload, and a little more.
const LARGEST: usize = 65_536;

/// A socket whose datagrams are those of one flow.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    /// The key of what is sent, and of what comes.
    keys: [CodeKey; 2],
    cookie: u64,
    flow: u16,
    server: SocketAddr,
    out: Vec<u8>,
    buffer: Vec<u8>,
    stamped: bool,
    /// Datagrams that were none of this flow's.
    pub foreign: u64,
}

impl Datagrams {
    /// A socket of its own.
    ///
    /// # Errors
    /// If the system gives none.
    pub fn open(connection: &Connection, flow: u16) -> Result<Datagrams, ProbeError> {
        let server = connection.server();
        let any: SocketAddr = if server.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" }
            .parse()
            .map_err(|_| ProbeError::Protocol("no address to bind to".into()))?;
        let socket = UdpSocket::bind(any).naming("open a socket")?;
        socket.connect(server).naming("reach the server by UDP")?;
        let stamped = stamp::request(&socket).is_ok();
        // A smaller buffer only loses datagrams earlier, which is counted.
        let _ = set_socket_recv_buffer_size(&socket, BUFFER);
        let _ = set_socket_send_buffer_size(&socket, BUFFER);
        let keys = [Way::Up, Way::Down].map(|way| connection.keys().datagrams(way));
        let cookie = connection.cookie();
        let (out, buffer) = (Vec::new(), vec![0; LARGEST]);
        Ok(Datagrams { socket, keys, cookie, flow, server, out, buffer, stamped, foreign: 0 })
    }

    /// Sends one with these user octets, and tells when.
    ///
    /// # Errors
    /// If the system does not take it.
    pub fn send(&mut self, kind: DatagramKind, number: u32, user: &[u8]) -> io::Result<Time> {
        self.out.resize(HEAD, 0);
        self.out.extend_from_slice(user);
        self.transmit(kind, number)
    }

    /// The same with `size` octets that mean nothing.
    ///
    /// # Errors
    /// If the system does not take it.
    pub fn send_filled(&mut self, kind: DatagramKind, number: u32, size: u32) -> io::Result<Time> {
        self.out.resize(HEAD + size as usize, 0x55);
        self.transmit(kind, number)
    }

    fn transmit(&mut self, kind: DatagramKind, number: u32) -> io::Result<Time> {
        let stamp = clock::now().as_nanos();
        let head = Head { kind, flow: self.flow, number, stamp, span: 0, order: 0 };
        head.write(self.cookie, &self.keys[0], &mut self.out);
        let at = clock::now();
        let sent = self.socket.send(&self.out);
        self.out.truncate(HEAD);
        sent.map(|_| at)
    }

    /// Waits for one until a certain time, and gives its head, its user octets and when it came.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn receive(&mut self, until: Time) -> io::Result<Option<(Head, &[u8], Time)>> {
        loop {
            // An error says that the server's port is closed, or that the network told so: what was sent is
            // lost.
            let found = stamp::receive(&self.socket, &mut self.buffer).unwrap_or_default();
            let Some(arrival) = found else {
                if clock::now() >= until || !stamp::wait(&self.socket, PollFlags::IN, until)? {
                    return Ok(None);
                }
                continue;
            };
            self.stamped &= arrival.stamped;
            let datagram = &self.buffer[..arrival.length.min(LARGEST)];
            match Head::read(datagram, &self.keys[1]).filter(|head| head.flow == self.flow) {
                // The borrow of what is returned would last over the next turn of the loop.
                Some(head) => {
                    let length = datagram.len();
                    return Ok(Some((head, &self.buffer[HEAD..length], arrival.at)));
                }
                None => self.foreign += 1,
            }
        }
    }

    /// Whether the kernel stamps arrivals.
    pub fn is_stamped(&self) -> bool {
        self.stamped
    }

    /// Octets of IP and UDP headers.
    pub fn headers(&self) -> u32 {
        if self.server.is_ipv6() { UDP_IPV6 } else { UDP_IPV4 }
    }

    /// Octets of headers of each further fragment (RFC 791 §3.1, RFC 8200 §4.5).
    pub fn fragment(&self) -> u32 {
        if self.server.is_ipv6() { 48 } else { 20 }
    }

    /// The largest IP packet that the system believes the path to carry whole.
    pub fn mtu(&self) -> Option<u32> {
        let found = match self.server {
            SocketAddr::V4(_) => ip_mtu(&self.socket),
            SocketAddr::V6(_) => ipv6_mtu(&self.socket),
        };
        found.ok()
    }
}

/// Messages as datagrams.
#[derive(Debug)]
pub struct Udp(pub Datagrams);

impl Carrier for Udp {
    fn send(&mut self, number: u32, size: u32) -> io::Result<Time> {
        self.0.send_filled(DatagramKind::Request, number, size)
    }

    fn receive(&mut self, until: Time) -> io::Result<Option<Reply>> {
        while let Some((head, user, at)) = self.0.receive(until)? {
            if head.kind != DatagramKind::Reply {
                continue;
            }
            let received = head.stamp as i64;
            let sent = received.wrapping_add(i64::from(head.span));
            let far = Far { received, sent, order: u64::from(head.order) };
            let size = user.len() as u32;
            return Ok(Some(Reply { number: head.number, at, far: Some(far), size }));
        }
        Ok(None)
    }

    fn is_reliable(&self) -> bool {
        false
    }
    fn overhead(&self) -> u32 {
        self.0.headers() + HEAD as u32
    }
    fn is_stamped(&self) -> bool {
        self.0.is_stamped()
    }
    fn reading(&self) -> serde_json::Value {
        serde_json::json!({ "foreign_datagrams": self.0.foreign, "mtu_octets": self.0.mtu() })
    }
}
