//! Datagrams passed on, flow by flow: what one client sends to one place, and what comes back.

use crate::Tell;
use crate::relay::Once;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SocketFlags, SocketType, bind, connect, ipproto, recv, socket_with,
    sockopt,
};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trunkline_netns::{LabError, Namespace, receive_taken, set_transparent};

/// Flows at once, of two sockets each. For a further one the flow goes that has been silent for longest.
const MOST: usize = 256;
/// The silence after which a flow is forgotten, as RFC 4787 §4.3 recommends.
const SILENCE: Duration = Duration::from_secs(300);
/// Bytes of the longest datagram.
const LONGEST: usize = 65_535;
/// Datagrams of one socket before the others have their turn.
const TURN: usize = 64;
/// Bytes that each socket may keep waiting, as far as the kernel's limit allows.
const ROOM: usize = 4 << 20;
/// The time between two looks at whether it is over, and at who is silent.
const GLANCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The ways of a service.
pub(crate) trait Ways: Send + 'static {
    /// The places to which a datagram for `to` is passed on. A further one is tried if the one before refuses.
    fn places(&self, to: SocketAddr) -> Vec<SocketAddr>;
    /// The host that the clients reach; the machine, if there is none.
    fn front(&self) -> Option<&Namespace>;
    /// The host that reaches the places; the machine, if there is none.
    fn back(&self) -> Option<&Namespace>;
    /// A line for the person at the terminal if all places refuse.
    fn refused(&self, to: SocketAddr, error: &io::Error) -> Option<String>;
}

/// Passes on what comes to a socket, until this is dropped.
#[derive(Debug)]
pub(crate) struct DatagramService(Arc<AtomicBool>);

impl DatagramService {
    /// Serves `listener`, which tells destinations.
    pub(crate) fn start(
        listener: UdpSocket,
        ways: impl Ways,
        tell: Tell,
    ) -> io::Result<DatagramService> {
        DatagramService::limited(listener, ways, tell, (MOST, SILENCE))
    }

    fn limited(
        listener: UdpSocket,
        ways: impl Ways,
        tell: Tell,
        limits: (usize, Duration),
    ) -> io::Result<DatagramService> {
        let mut flows = Flows::new(listener, ways, tell, limits)?;
        let over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&over);
        trunkline_netns::thread("tl-datagrams")?.spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                flows.step();
            }
        })?;
        Ok(DatagramService(over))
    }
}

impl Drop for DatagramService {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A client and the address that it sends to.
type Key = (SocketAddr, SocketAddr);

/// A flow.
#[derive(Debug)]
struct Flow {
    key: Key,
    /// Sockets to the client and to the place.
    ends: [UdpSocket; 2],
    /// Places that were not tried.
    left: Vec<SocketAddr>,
    /// The first datagram, until a place has answered.
    first: Option<Vec<u8>>,
    heard: Instant,
}

/// The number of a flow's end at the place.
const PLACE: usize = 1;
/// The number of the listener among the events; behind it two for each flow.
const LISTENER: u64 = 0;

struct Flows<W> {
    listener: UdpSocket,
    ways: W,
    tell: (Tell, Once),
    events: rustix::fd::OwnedFd,
    slots: Vec<Option<Flow>>,
    found: HashMap<Key, usize>,
    buffer: Vec<u8>,
    silence: Duration,
}

impl<W: Ways> Flows<W> {
    fn new(
        listener: UdpSocket,
        ways: W,
        tell: Tell,
        (most, silence): (usize, Duration),
    ) -> io::Result<Flows<W>> {
        let events = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        widen(&listener);
        epoll::add(&events, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
        let slots = std::iter::repeat_with(|| None).take(most).collect();
        let (found, buffer) = (HashMap::new(), vec![0; LONGEST]);
        Ok(Flows {
            listener,
            ways,
            tell: (tell, Once::default()),
            events,
            slots,
            found,
            buffer,
            silence,
        })
    }

    /// Waits for datagrams, passes them on, and forgets who is silent.
    fn step(&mut self) {
        let mut ready = Vec::with_capacity(TURN);
        if let Err(error) =
            epoll::wait(&self.events, rustix::buffer::spare_capacity(&mut ready), Some(&GLANCE))
        {
            tracing::debug!(%error, "no datagrams");
        }
        for event in ready {
            match event.data.u64() {
                LISTENER => self.take_in(),
                number => {
                    let number = number as usize - 1;
                    self.pass_on(number / 2, number % 2);
                }
            }
        }
        self.forget();
    }

    /// Passes on what the listener has: the beginnings of flows.
    fn take_in(&mut self) {
        for _ in 0..TURN {
            match receive_taken(&self.listener, &mut self.buffer) {
                Ok(taken) => {
                    let key = (taken.from, taken.to);
                    let known = self.found.get(&key).copied();
                    match known.map_or_else(|| self.open(key, taken.length), Ok) {
                        Ok(slot) => self.send(slot, PLACE, taken.length),
                        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                        Err(error) => {
                            tracing::warn!("a datagram to {} is not passed on: {error}", key.1);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => tracing::debug!(%error, "no datagram taken in"),
            }
        }
    }

    /// A new flow, whose first datagram lies in the buffer.
    fn open(&mut self, key: Key, length: usize) -> io::Result<usize> {
        let mut left = self.ways.places(key.1);
        left.reverse();
        let place = left.pop().ok_or(io::ErrorKind::ConnectionRefused)?;
        let slot = self.free_slot();
        let ends = [
            within(self.ways.front(), || connected(Some(key.1), key.0))?,
            within(self.ways.back(), || connected(None, place))?,
        ];
        for (side, end) in ends.iter().enumerate() {
            self.watch(slot, side, end)?;
        }
        let first = Some(self.buffer[..length].to_vec());
        self.slots[slot] = Some(Flow { key, ends, left, first, heard: Instant::now() });
        self.found.insert(key, slot);
        Ok(slot)
    }

    fn watch(&self, slot: usize, side: usize, end: &UdpSocket) -> io::Result<()> {
        let number = epoll::EventData::new_u64((1 + 2 * slot + side) as u64);
        Ok(epoll::add(&self.events, end, number, epoll::EventFlags::IN)?)
    }

    /// A slot without a flow: if there is none, that of the flow that has been silent for longest.
    fn free_slot(&mut self) -> usize {
        if let Some(free) = self.slots.iter().position(Option::is_none) {
            return free;
        }
        let heard = |slot: &Option<Flow>| slot.as_ref().map(|flow| flow.heard);
        let slots = self.slots.iter().enumerate();
        let oldest = slots.min_by_key(|(_, slot)| heard(slot)).map_or(0, |(at, _)| at);
        self.close(oldest);
        oldest
    }

    fn close(&mut self, slot: usize) {
        if let Some(flow) = self.slots[slot].take() {
            self.found.remove(&flow.key);
        }
    }

    /// Passes on what one end of a flow has.
    fn pass_on(&mut self, slot: usize, from: usize) {
        for _ in 0..TURN {
            let Some(flow) = &mut self.slots[slot] else { return };
            match recv(&flow.ends[from], &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => {
                    flow.heard = Instant::now();
                    if from == PLACE {
                        flow.first = None;
                    }
                    self.send(slot, 1 - from, length);
                }
                Err(Errno::AGAIN) => return,
                Err(error) => return self.fail(slot, from, &error.into()),
            }
        }
    }

    /// Sends what lies in the buffer.
    fn send(&mut self, slot: usize, to: usize, length: usize) {
        let Some(flow) = &mut self.slots[slot] else { return };
        flow.heard = Instant::now();
        if let Err(error) = flow.ends[to].send(&self.buffer[..length]) {
            self.fail(slot, to, &error);
        }
    }

    /// An end that failed: nobody is there, as a rule. The next place gets the first datagram again; without one, the
    /// flow is over.
    fn fail(&mut self, slot: usize, side: usize, error: &io::Error) {
        if error.kind() != io::ErrorKind::ConnectionRefused {
            return tracing::debug!(%error, "a datagram is lost");
        }
        let Some(flow) = &mut self.slots[slot] else { return };
        let next = if side == PLACE && flow.first.is_some() { flow.left.pop() } else { None };
        let again = next.and_then(|place| self.turn(slot, place).ok());
        if again.is_none() {
            let to = self.slots[slot].as_ref().map(|flow| flow.key.1);
            self.close(slot);
            let line = to.filter(|_| side == PLACE).and_then(|to| self.ways.refused(to, error));
            if let Some(line) = line {
                self.tell.1.tell(&self.tell.0, line);
            }
        }
    }

    /// Turns a flow to another place.
    fn turn(&mut self, slot: usize, place: SocketAddr) -> io::Result<()> {
        let end = within(self.ways.back(), || connected(None, place))?;
        self.watch(slot, PLACE, &end)?;
        if let Some(flow) = &mut self.slots[slot] {
            end.send(flow.first.as_deref().unwrap_or_default())?;
            flow.ends[PLACE] = end;
        }
        Ok(())
    }

    fn forget(&mut self) {
        let now = Instant::now();
        for slot in 0..self.slots.len() {
            if self.slots[slot].as_ref().is_some_and(|flow| now - flow.heard >= self.silence) {
                self.close(slot);
            }
        }
    }
}

/// Does `work` in the host, or in this thread's namespace if there is none.
fn within<R: Send>(
    host: Option<&Namespace>,
    work: impl FnOnce() -> io::Result<R> + Send,
) -> io::Result<R> {
    match host {
        Some(host) => host.run(work).map_err(|error: LabError| io::Error::other(error))?,
        None => work(),
    }
}

/// A socket that exchanges datagrams with `with` alone, from the address `at` or any. Others may have the same address.
fn connected(at: Option<SocketAddr>, with: SocketAddr) -> io::Result<UdpSocket> {
    let v6 = with.is_ipv6();
    let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(ipproto::UDP))?;
    if let Some(at) = at {
        sockopt::set_socket_reuseaddr(&socket, true)?;
        match bind(&socket, &at) {
            // The address of a place outside, for which the far host answers.
            Err(Errno::ADDRNOTAVAIL) => {
                set_transparent(&socket, v6)?;
                bind(&socket, &at)?;
            }
            other => other?,
        }
    }
    connect(&socket, &with)?;
    let socket = UdpSocket::from(socket);
    widen(&socket);
    Ok(socket)
}

/// Gives a socket room for bursts.
fn widen(socket: &UdpSocket) {
    // Less room is what the machine's limit leaves.
    let _ = sockopt::set_socket_recv_buffer_size(socket, ROOM);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use trunkline_netns::tell_destinations;

    /// The ways to servers on this machine, and what was told of them.
    struct Local(Vec<SocketAddr>);

    impl Ways for Local {
        fn places(&self, _: SocketAddr) -> Vec<SocketAddr> {
            self.0.clone()
        }

        fn front(&self) -> Option<&Namespace> {
            None
        }

        fn back(&self) -> Option<&Namespace> {
            None
        }

        fn refused(&self, to: SocketAddr, _: &io::Error) -> Option<String> {
            Some(format!("{to} refused"))
        }
    }

    type Told = Arc<Mutex<Vec<String>>>;

    fn listener() -> UdpSocket {
        let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
        tell_destinations(&listener, false).unwrap();
        sockopt::set_socket_reuseaddr(&listener, true).unwrap();
        listener
    }

    /// A service in front of `servers`, its address, and what it tells.
    fn service(
        servers: Vec<SocketAddr>,
        limits: (usize, Duration),
    ) -> (DatagramService, SocketAddr, Told) {
        let listener = listener();
        let at = listener.local_addr().unwrap();
        let told = Told::default();
        let kept = Arc::clone(&told);
        let tell: Tell = Arc::new(move |line| kept.lock().unwrap().push(line.to_owned()));
        (DatagramService::limited(listener, Local(servers), tell, limits).unwrap(), at, told)
    }

    /// A socket that waits for at most 20 s.
    fn socket() -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket
    }

    fn client(of: SocketAddr) -> UdpSocket {
        let client = socket();
        client.connect(of).unwrap();
        client
    }

    fn received(socket: &UdpSocket) -> Vec<u8> {
        let mut buffer = vec![0; LONGEST];
        let length = socket.recv(&mut buffer).unwrap();
        buffer.truncate(length);
        buffer
    }

    /// An address at which nobody is.
    fn nobody() -> SocketAddr {
        UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[test]
    fn each_client_gets_its_own_answers_as_many_and_as_long_as_they_are() {
        let server = socket();
        let (_service, at, _) = service(vec![server.local_addr().unwrap()], (9, SILENCE));
        let clients = [client(at), client(at)];
        let mut seen = Vec::new();
        for (client, number) in clients.iter().zip(0..) {
            client.send(&[number]).unwrap();
            let (length, from) = server.recv_from(&mut [0; 9]).unwrap();
            assert_eq!(length, 1);
            seen.push(from);
        }
        assert_ne!(seen[0], seen[1]);
        // A server speaks unasked, and more than once.
        let long = vec![7; 65_507];
        for (to, number) in seen.iter().zip(0..) {
            server.send_to(&[], to).unwrap();
            server.send_to(&[number], to).unwrap();
            server.send_to(&long, to).unwrap();
        }
        for (client, number) in clients.iter().zip(0..) {
            assert_eq!(
                [received(client), received(client), received(client)],
                [vec![], vec![number], long.clone()]
            );
        }
        // The kernel hands further datagrams to the flow itself.
        clients[1].send(&long).unwrap();
        assert_eq!(received(&server), long);
    }

    #[test]
    fn the_next_place_gets_what_the_first_refuses() {
        let server = socket();
        let (_service, at, told) =
            service(vec![nobody(), server.local_addr().unwrap()], (9, SILENCE));
        let client = client(at);
        client.send(b"hello").unwrap();
        let (_, flow) = server.recv_from(&mut [0; 9]).unwrap();
        server.send_to(b"well", flow).unwrap();
        assert_eq!(received(&client), b"well");
        assert!(told.lock().unwrap().is_empty());
    }

    #[test]
    fn what_nobody_takes_is_told_once_and_served_when_somebody_does() {
        let place = nobody();
        let (_service, at, told) = service(vec![place], (9, SILENCE));
        let client = client(at);
        let until = Instant::now() + Duration::from_secs(20);
        while told.lock().unwrap().is_empty() && Instant::now() < until {
            client.send(b"hello").unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        let server = UdpSocket::bind(place).unwrap();
        server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut buffer = [0; 9];
        while server.recv_from(&mut buffer).is_err() && Instant::now() < until {
            client.send(b"hello").unwrap();
        }
        assert_eq!(&buffer[..5], b"hello");
        assert_eq!(*told.lock().unwrap(), [format!("{at} refused")]);
    }

    /// Steps until the server has something.
    fn stepped(flows: &mut Flows<Local>, server: &UdpSocket) -> SocketAddr {
        flows.step();
        server.recv_from(&mut [0; 9]).unwrap().1
    }

    #[test]
    fn flows_are_bounded_and_silent_ones_go_first() {
        let (server, listener) = (socket(), listener());
        let (at, ways) =
            (listener.local_addr().unwrap(), Local(vec![server.local_addr().unwrap()]));
        let mut flows = Flows::new(listener, ways, Arc::new(|_| {}), (2, SILENCE)).unwrap();
        let clients = [client(at), client(at), client(at)];
        let mut ports = Vec::new();
        for one in [0, 1, 0, 2, 0] {
            clients[one].send(b"?").unwrap();
            ports.push(stepped(&mut flows, &server));
        }
        assert_eq!((ports[0], ports[0]), (ports[2], ports[4]), "the flow that speaks stays");
        assert_eq!(flows.found.len(), 2);
        let kept =
            |client: &UdpSocket| flows.found.contains_key(&(client.local_addr().unwrap(), at));
        assert_eq!(clients.each_ref().map(kept), [true, false, true]);
        flows.silence = Duration::ZERO;
        flows.forget();
        assert!(flows.found.is_empty() && flows.slots.iter().all(Option::is_none));
    }
}
