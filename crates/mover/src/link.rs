//! The socket, of UDP or of IP's protocol 30: datagrams out in batches of equal length (one system call for up to 64, where the kernel segments), in by
//! batches too, each with the time at which the kernel got it.

use crate::MoverError;
use crate::claim::Claim;
use quinn_udp::{
    BATCH_SIZE, RecvMeta, Transmit, TransportErrorPayload, UdpSockRef, UdpSocketState,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_send_buffer_size, socket_recv_buffer_size,
};
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};
use rustix::time::Timespec;
use std::cell::Cell;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use trunkline_core::{Span, Time};

/// Octets of a batch at most: what the length field of IP allows, less headers.
const BATCH: usize = 65_000;
/// Octets of a datagram that comes at most, times the segments that the kernel may have put together.
const ROOM: usize = 65_536;
/// The naps of an end at work: a 64th of the round trip, within these limits (a choice). What comes or comes due meanwhile is one
/// batch, and a law that looks at a third of a round trip sees little of it.
const NAPS: (Span, Span) = (Span::from_micros(250), Span::from_millis(4));
/// The socket buffers asked for: 50 ms of a gigabit per second.
const BUFFER: usize = 8 << 20;
/// How long a full device queue is waited for before a datagram counts as lost.
const FULL: Duration = Duration::from_millis(20);

/// What a link has carried.
#[derive(Debug, Clone, Copy, Default)]
pub struct Carried {
    /// Octets of datagrams sent.
    pub sent: u64,
    /// Datagrams that the system did not take, although it was waited for.
    pub refused: u64,
}

/// NETBLT's number among the protocols of IP (RFC 998 §1).
const NETBLT: u16 = 30;

/// A socket with what waits to be sent.
#[derive(Debug)]
pub struct Link {
    socket: UdpSocket,
    /// Whether it is one of IP's protocol 30, without ports.
    is_raw: bool,
    /// The address is this end's alone.
    _claim: Option<Claim>,
    state: UdpSocketState,
    began: Instant,
    batch: Vec<u8>,
    /// Octets of each datagram of the batch but the last, and where they go.
    segment: usize,
    to: SocketAddr,
    count: usize,
    inbox: Vec<u8>,
    nap: Span,
    /// What went out.
    pub carried: Carried,
    /// Whether the system refused a datagram as longer than its interface sends.
    pub was_too_long: bool,
    /// Whether a host has said by ICMP that nobody listens there.
    was_turned_away: Cell<bool>,
    /// Why what was sent last did not get there, if anybody has said, and nothing has come since.
    trouble: Cell<Option<Errno>>,
}

impl Link {
    /// A socket for a receiver: at this address there is no other.
    ///
    /// # Errors
    /// If there is one, or the system gives no socket.
    pub fn listen(at: SocketAddr, is_raw: bool) -> Result<Link, MoverError> {
        let claim = is_raw.then(|| Claim::take(at)).transpose();
        let claim = claim.map_err(|cause| MoverError::taken(at, cause))?;
        Link::bind(at, is_raw).map(|link| Link { _claim: claim, ..link })
    }

    /// A socket at this address, of UDP or of IP's protocol 30.
    ///
    /// # Errors
    /// If the system gives none.
    pub fn bind(at: SocketAddr, is_raw: bool) -> Result<Link, MoverError> {
        let socket = match is_raw {
            true => raw(at).map_err(MoverError::system(format!(
                "cannot listen at {} (IP protocol {NETBLT}, which takes root or CAP_NET_RAW)",
                at.ip()
            )))?,
            false => UdpSocket::bind(at)
                .map_err(MoverError::system(format!("cannot listen at {at} (UDP)")))?,
        };
        let state = UdpSocketState::new(UdpSockRef::from(&socket));
        let state = state.map_err(MoverError::system("cannot set up the socket"))?;
        // As much as the system's limits allow; what it is, `buffer` tells.
        let _ = set_socket_recv_buffer_size(&socket, BUFFER);
        let _ = set_socket_send_buffer_size(&socket, BUFFER);
        let (batch, inbox) = (Vec::with_capacity(BATCH), vec![0; ROOM * BATCH_SIZE]);
        let (began, carried) = (Instant::now(), Carried::default());
        Ok(Link {
            socket,
            is_raw,
            _claim: None,
            state,
            began,
            batch,
            segment: 0,
            to: at,
            count: 0,
            inbox,
            nap: NAPS.0,
            carried,
            was_too_long: false,
            was_turned_away: Cell::new(false),
            trouble: Cell::new(None),
        })
    }

    /// Wants to know if a host says that nobody listens where datagrams went. Where the system cannot tell, nothing is told.
    pub fn heed_icmp(&self) {
        let _ = self.state.enable_transport_errors(UdpSockRef::from(&self.socket));
    }

    /// Takes in what ICMP has told of datagrams sent before, for which a call of the socket fails. Answers whether it has told anything.
    fn hear_icmp(&self) -> bool {
        use TransportErrorPayload::{TooBig, Unreachable};
        let mut has_told = false;
        while let Ok(Some(told)) = self.state.recv_transport_error(UdpSockRef::from(&self.socket)) {
            let errno = Errno::from_raw_os_error(told.raw_errno);
            if matches!(errno, Errno::CONNREFUSED | Errno::NOPROTOOPT) {
                self.was_turned_away.set(true);
            }
            self.trouble.set(matches!(told.payload, Unreachable).then_some(errno));
            // Others are of this host's own doing.
            has_told |= matches!(told.payload, TooBig { .. } | Unreachable);
        }
        has_told
    }

    /// Whether a host has said since the last question that nobody listens where datagrams went.
    pub fn take_turned_away(&self) -> bool {
        self.was_turned_away.take()
    }

    /// Why what was sent last did not get there, if this host or another has said, and nothing has come since.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.get().map(|it| io::Error::from(it).to_string())
    }

    /// Its own address; without UDP the port is 0.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        let mut address = self.socket.local_addr()?;
        if self.is_raw {
            address.set_port(0);
        }
        Ok(address)
    }

    /// The time since it was made.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Octets of the receive buffer, as the system counts them.
    pub fn buffer(&self) -> u64 {
        socket_recv_buffer_size(&self.socket).unwrap_or_default() as u64
    }

    /// Datagrams that came to the socket and found its buffer full.
    pub fn overrun(&self) -> u64 {
        let Ok(address) = self.address() else { return 0 };
        let family = if address.is_ipv4() { "" } else { "6" };
        let (table, port) = if self.is_raw { ("raw", NETBLT) } else { ("udp", address.port()) };
        let text = std::fs::read_to_string(format!("/proc/net/{table}{family}"));
        drops(&text.unwrap_or_default(), port)
    }

    /// Adds a datagram for `to` that `write` appends to what it is given.
    pub fn put(&mut self, to: SocketAddr, write: impl FnOnce(&mut Vec<u8>)) {
        if self.count > 0 && to != self.to {
            self.flush();
        }
        self.to = to;
        let start = self.batch.len();
        write(&mut self.batch);
        let length = self.batch.len() - start;
        if self.count > 0 && length > self.segment {
            // A longer one cannot follow: those before it go first.
            let longer = self.batch.split_off(start);
            self.flush();
            self.batch = longer;
        }
        if self.count == 0 {
            self.segment = length;
        }
        self.count += 1;
        // The kernel cuts UDP only.
        let most = if self.is_raw { 1 } else { self.state.max_gso_segments() };
        let is_last = length < self.segment || self.count >= most;
        if is_last || self.batch.len() + self.segment > BATCH {
            self.flush();
        }
    }

    /// Sends what waits.
    pub fn flush(&mut self) {
        if self.count == 0 {
            return;
        }
        let segment_size = (self.count > 1).then_some(self.segment);
        let (contents, destination) = (&self.batch[..], self.to);
        let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        let until = Instant::now() + FULL;
        loop {
            match self.state.try_send(UdpSockRef::from(&self.socket), &transmit) {
                Ok(()) => break self.carried.sent += contents.len() as u64,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                    self.wait_for(PollFlags::OUT, FULL);
                }
                Err(_) if self.hear_icmp() && Instant::now() < until => {}
                Err(error) => {
                    let errno = Errno::from_io_error(&error);
                    self.was_too_long |= errno == Some(Errno::MSGSIZE);
                    self.trouble.set(errno.filter(|it| *it != Errno::MSGSIZE));
                    // A path that is away for a while is no reason to give up: the receiver asks again.
                    tracing::debug!(%error, to = %destination, "datagrams were not taken");
                    break self.carried.refused += self.count as u64;
                }
            }
        }
        self.batch.clear();
        self.count = 0;
    }

    /// Hands what has come to `each`, with where it came from and when. Answers whether there may be more.
    ///
    /// What waited for more than two naps found an end that does not keep up: the rest of its wait is to show as a queue, so that
    /// the rate follows.
    ///
    /// # Errors
    /// If the socket is of no use any more.
    pub fn receive(
        &mut self,
        mut each: impl FnMut(SocketAddr, Time, &[u8]),
    ) -> Result<bool, MoverError> {
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        let mut rooms = self.inbox.chunks_mut(ROOM);
        let mut into: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(rooms.next().unwrap_or_default()));
        let count = match self.state.recv(UdpSockRef::from(&self.socket), &mut into, &mut meta) {
            Ok(count) => count,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return Ok(false),
                ErrorKind::Interrupted => return Ok(true),
                _ if self.hear_icmp() || is_of_icmp(&error) => return Ok(true),
                _ => return Err(MoverError::system("cannot receive")(error)),
            },
        };
        self.trouble.set(None);
        let (now, today) = (self.now(), SystemTime::now().duration_since(UNIX_EPOCH).ok());
        for (meta, octets) in meta.iter().zip(self.inbox.chunks(ROOM)).take(count) {
            let at = now.before(waited(today, meta.timestamp).min(self.nap.scaled(2, 1)));
            if self.is_raw {
                each(meta.addr, at, payload(meta.addr, &octets[..meta.len]));
                continue;
            }
            octets[..meta.len].chunks(meta.stride.max(1)).for_each(|it| each(meta.addr, at, it));
        }
        Ok(count == BATCH_SIZE)
    }

    /// Sets the nap to that of a path of this round trip.
    pub fn set_round(&mut self, round: Span) {
        self.nap = round.scaled(1, 64).max(NAPS.0).min(NAPS.1);
    }

    /// How long an end at work sleeps at least.
    pub fn nap(&self) -> Span {
        self.nap
    }

    /// Takes a nap, whatever comes.
    pub fn take_nap(&self) {
        sleep(Duration::from_nanos(self.nap.as_nanos()));
    }

    /// Waits until something has come or the time is there.
    pub fn wait(&self, until: Time) {
        let left = until.since(self.now());
        if left.as_nanos() > 0 {
            self.wait_for(PollFlags::IN, Duration::from_nanos(left.as_nanos()));
        }
    }

    fn wait_for(&self, what: PollFlags, most: Duration) {
        let limit = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
        let mut waits = [PollFd::new(&self.socket, what)];
        // Being woken by a signal is being woken: the caller looks around anyway.
        let _ = poll(&mut waits, Some(&limit));
        let has_error = waits[0].revents().contains(PollFlags::ERR);
        // Whatever is told is to be taken in, or it wakes this end for ever.
        if has_error {
            self.hear_icmp();
        }
    }
}

/// Whether an error is one that the kernel makes of ICMP messages (`icmp_err_convert`, `icmpv6_err_convert`).
fn is_of_icmp(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::CONNREFUSED
                | Errno::HOSTUNREACH
                | Errno::NETUNREACH
                | Errno::HOSTDOWN
                | Errno::NONET
                | Errno::NOPROTOOPT
                | Errno::OPNOTSUPP
                | Errno::MSGSIZE
                | Errno::PROTO
                | Errno::ACCESS
        )
    )
}

/// A socket of IP's protocol 30 at this address.
fn raw(at: SocketAddr) -> io::Result<UdpSocket> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let number = std::num::NonZero::new(u32::from(NETBLT));
    let protocol = number.map(Protocol::from_raw);
    let socket = rustix::net::socket_with(family, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    rustix::net::bind(&socket, &SocketAddr::new(at.ip(), 0))?;
    Ok(socket.into())
}

/// What is in an IP packet as a raw socket gives it: of IPv4 with its header (RFC 791 §3.1), of IPv6 without.
fn payload(from: SocketAddr, packet: &[u8]) -> &[u8] {
    if from.is_ipv6() {
        return packet;
    }
    let header = packet.first().map_or(0, |first| usize::from(first & 15) * 4);
    packet.get(header..).unwrap_or_default()
}

/// How long a datagram has waited that the kernel got at `came` by the clock of day.
fn waited(today: Option<Duration>, came: Option<Duration>) -> Span {
    // A clock that was set in between tells nothing.
    let waited = today.zip(came).and_then(|(today, came)| today.checked_sub(came));
    Span::from_nanos(waited.unwrap_or_default().as_nanos() as u64)
}

/// The last column of the line about `port` in the kernel's table of UDP sockets.
fn drops(table: &str, port: u16) -> u64 {
    let suffix = format!(":{port:04X}");
    let lines = table.lines().skip(1).map(|line| line.split_ascii_whitespace());
    let own = lines.filter(|fields| fields.clone().nth(1).is_some_and(|it| it.ends_with(&suffix)));
    own.filter_map(|fields| fields.last()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn link() -> Link {
        Link::bind((Ipv4Addr::LOCALHOST, 0).into(), false).unwrap()
    }

    /// What comes within a second, until there are `count`.
    fn heard(link: &mut Link, count: usize) -> Vec<Vec<u8>> {
        let mut heard = Vec::new();
        let until = link.now() + trunkline_core::Span::from_secs(1);
        while heard.len() < count && link.now() < until {
            link.wait(until);
            link.receive(|_, _, datagram| heard.push(datagram.to_vec())).unwrap();
        }
        heard
    }

    #[test]
    fn datagrams_of_any_lengths_come_as_they_were() {
        let (mut near, mut there) = (link(), link());
        let to = there.address().unwrap();
        let lengths = [100, 100, 100, 40, 1400, 1400, 1, 7, 1200, 1200, 1200, 300];
        let sent: Vec<Vec<u8>> =
            lengths.iter().enumerate().map(|(at, &length)| vec![at as u8; length]).collect();
        for datagram in &sent {
            near.put(to, |out| out.extend(datagram));
        }
        near.flush();
        assert_eq!(heard(&mut there, sent.len()), sent);
        assert_eq!(near.carried.sent, lengths.iter().sum::<usize>() as u64);
        assert_eq!(near.carried.refused, 0);
    }

    #[test]
    fn batches_hold_no_more_than_a_datagram_of_ip() {
        let (mut near, mut there) = (link(), link());
        let to = there.address().unwrap();
        for at in 0..200u8 {
            near.put(to, |out| out.extend([at; 1400]));
        }
        near.flush();
        let heard = heard(&mut there, 200);
        assert!(heard.iter().enumerate().all(|(at, it)| *it == [at as u8; 1400]));
        assert_eq!(heard.len(), 200);
    }

    #[test]
    fn another_address_ends_a_batch() {
        let (mut near, mut one, mut other) = (link(), link(), link());
        let (to, away) = (one.address().unwrap(), other.address().unwrap());
        for _ in 0..3 {
            near.put(to, |out| out.extend(b"one"));
            near.put(away, |out| out.extend(b"two"));
        }
        near.flush();
        assert_eq!(heard(&mut one, 3), vec![b"one".to_vec(); 3]);
        assert_eq!(heard(&mut other, 3), vec![b"two".to_vec(); 3]);
    }

    /// A host says by ICMP that nobody listens at a port. A link that heeds it tells, goes on, and is not woken by it again.
    #[test]
    fn a_closed_port_is_told() {
        for is_heeded in [false, true] {
            let (mut near, gone, mut there) = (link(), link(), link());
            let (closed, to) = (gone.address().unwrap(), there.address().unwrap());
            drop(gone);
            if is_heeded {
                near.heed_icmp();
            }
            near.put(closed, |out| out.extend(b"one"));
            near.flush();
            assert!(heard(&mut near, 1).is_empty());
            assert_eq!(near.take_turned_away(), is_heeded);
            // The next call of the socket fails for it, and is repeated.
            (0..3).for_each(|_| near.put(closed, |out| out.extend(b"one")));
            near.flush();
            sleep(Duration::from_millis(20));
            near.put(to, |out| out.extend(b"two"));
            near.flush();
            assert_eq!(heard(&mut there, 1), [b"two"]);
            assert_eq!((near.carried.refused, near.take_turned_away()), (0, is_heeded));
            near.receive(|_, _, _| ()).unwrap();
            let before = near.now();
            near.wait(before + Span::from_millis(30));
            assert!(near.now().since(before) >= Span::from_millis(30));
        }
    }

    /// The kernel's stamp tells when a datagram came, up to two naps before it is taken in.
    #[test]
    fn what_waited_came_before_it_is_taken_in() {
        let at = Duration::from_micros;
        assert_eq!(waited(Some(at(5000)), Some(at(4100))), Span::from_micros(900));
        assert_eq!(waited(Some(at(5000)), Some(at(6000))), Span::ZERO, "a clock set back");
        assert_eq!(waited(Some(at(5000)), None), Span::ZERO);
        let (mut near, mut there) = (link(), link());
        let to = there.address().unwrap();
        // The kernel begins to stamp a moment after the machine's first socket that asks for it.
        let mut stamped = (0..50).map(|_| {
            near.put(to, |out| out.extend(b"one"));
            near.flush();
            (0..3).for_each(|_| there.take_nap());
            let (before, mut came) = (there.now(), None);
            there.receive(|_, at, _| came = Some(at)).unwrap();
            let counted = came.unwrap() + there.nap().scaled(2, 1);
            before <= counted && counted <= there.now()
        });
        assert!(stamped.any(|is_counted| is_counted));
    }

    #[test]
    fn naps_follow_the_round_trip() {
        let mut link = link();
        let naps = [1, 32, 600].map(|millis| {
            link.set_round(Span::from_millis(millis));
            link.nap()
        });
        assert_eq!(naps, [250, 500, 4000].map(Span::from_micros));
    }

    #[test]
    fn the_kernels_table_is_read() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
                      41: 0100007F:071A 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 5309 2 000000006a2 17\n\
                      42: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 5310 2 000000006a3 5\n";
        assert_eq!((drops(table, 1818), drops(table, 53), drops(table, 54)), (17, 5, 0));
    }
}
