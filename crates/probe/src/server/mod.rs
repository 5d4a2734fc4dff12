//! The server: it answers those who may ask, and nothing larger than it was asked.

mod admission;
mod control;
mod datagrams;
mod dialogue;
mod doors;
mod registry;
mod session;
mod streams;
mod waiting;

pub use admission::{Options, network};
pub use dialogue::{Dialogue, Event, Step};
pub use ipnet::IpNet;
pub use registry::{Joined, Registry};
pub use session::Session;

use crate::error::Naming;
use crate::{ProbeError, stamp};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// Counts of what happened to a server since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Statistics {
    /// Connections that came.
    pub connections: u64,
    /// Sessions opened.
    pub sessions: u64,
    /// Connections from addresses that are not allowed.
    pub refused_addresses: u64,
    /// Clients without the key.
    pub refused_keys: u64,
    /// Clients sent away because there were too many.
    pub refused_full: u64,
    /// Connections that spoke something else.
    pub foreign: u64,
    /// Connections that said nothing for too long.
    pub silent: u64,
    /// Datagrams of no session, or without its tag.
    pub garbage_datagrams: u64,
    /// Datagrams of a flow or session that had just ended.
    pub late_datagrams: u64,
    /// Datagrams taken.
    pub good_datagrams: u64,
}

/// One counter.
type Count = AtomicU64;

/// The same, as it is counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    connections: Count,
    sessions: Count,
    refused_addresses: Count,
    refused_keys: Count,
    refused_full: Count,
    foreign: Count,
    silent: Count,
    garbage_datagrams: Count,
    late_datagrams: Count,
    good_datagrams: Count,
}

fn one_more(count: &Count) {
    count.fetch_add(1, Ordering::Relaxed);
}

/// The state that all threads of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    registry: Registry,
    /// The system's congestion control, if connections begin with another.
    congestion: Option<String>,
    udp: UdpSocket,
    stop: AtomicBool,
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A running server. It stops when dropped.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

/// Octets that the socket's buffers should hold; the system may give less.
const BUFFER: usize = 4 << 20;

impl Server {
    /// Starts it.
    ///
    /// # Errors
    /// [`ProbeError::WrongUse`] if it would serve the whole world; else if it cannot listen.
    pub fn start(options: Options) -> Result<Server, ProbeError> {
        options.check()?;
        let registry = Registry::new(options).map_err(ProbeError::WrongUse)?;
        let options = &registry.options;
        let (listener, udp) =
            listen(options.bind).map_err(|cause| ProbeError::Listen { at: options.bind, cause })?;
        if let Some(octets) = options.receive_buffer {
            // Connections inherit it; the system would let it grow otherwise.
            let sized = set_socket_recv_buffer_size(&listener, octets);
            sized.naming("set the receive buffer")?;
        }
        if let Some(octets) = options.tcp_window {
            crate::tcp::set_window(&listener, octets).naming("set the window")?;
        }
        // Connections begin without pacing, which none of them would lose again when its client asks for
        // another congestion control; who asks for none gets the system's later.
        let congestion = crate::tcp::congestion(&listener);
        let begun = crate::tcp::set_congestion(&listener, crate::tcp::UNPACED);
        let congestion = congestion.filter(|_| begun.is_ok());
        let address = listener.local_addr().naming("find the server's own address")?;
        stamp::request(&udp).naming("have arrivals stamped")?;
        // A smaller buffer only loses datagrams earlier, which is counted.
        let _ = set_socket_recv_buffer_size(&udp, BUFFER);
        let _ = set_socket_send_buffer_size(&udp, BUFFER);
        let shared = Arc::new(Shared { registry, congestion, udp, stop: AtomicBool::new(false) });
        let doors = doors::open(&shared, listener).naming("wait for connections")?;
        let threads = vec![
            spawn("probe-accept", &shared, move |_| doors())?,
            spawn("probe-datagrams", &shared, datagrams::serve)?,
        ];
        Ok(Server { shared, address, threads })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts of what has happened so far.
    pub fn statistics(&self) -> Statistics {
        let counts = &self.shared.registry.counts;
        let of = |count: &Count| count.load(Ordering::Relaxed);
        Statistics {
            connections: of(&counts.connections),
            sessions: of(&counts.sessions),
            refused_addresses: of(&counts.refused_addresses),
            refused_keys: of(&counts.refused_keys),
            refused_full: of(&counts.refused_full),
            foreign: of(&counts.foreign),
            silent: of(&counts.silent),
            garbage_datagrams: of(&counts.garbage_datagrams),
            late_datagrams: of(&counts.late_datagrams),
            good_datagrams: of(&counts.good_datagrams),
        }
    }

    /// Sessions open now.
    pub fn sessions(&self) -> usize {
        self.shared.registry.sessions().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.registry.sessions().iter().for_each(|session| session.close());
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

/// How often a port that the system chose for one socket may be found taken for the other.
const CHOICES: usize = 64;

/// Both sockets at one port. If IPv6 is switched off, "everywhere" is everywhere of IPv4.
fn listen(at: SocketAddr) -> std::io::Result<(TcpListener, UdpSocket)> {
    match pair(at) {
        Err(_) if at.is_ipv6() && at.ip().is_unspecified() => {
            pair(SocketAddr::from((Ipv4Addr::UNSPECIFIED, at.port())))
        }
        opened => opened,
    }
}

/// The same for one address. For port 0 the system chooses a port that no other listener has; another
/// program's datagrams may have it all the same, so a choice that fails is made again.
fn pair(at: SocketAddr) -> std::io::Result<(TcpListener, UdpSocket)> {
    let open = || {
        let listener = TcpListener::bind(at)?;
        let port = listener.local_addr()?.port();
        listener.set_nonblocking(true)?;
        Ok((listener, UdpSocket::bind(SocketAddr::new(at.ip(), port))?))
    };
    let taken = |opened: &std::io::Result<_>| {
        opened.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
    };
    let choices = if at.port() == 0 { CHOICES } else { 1 };
    (1..choices).map(|_| open()).find(|opened| !taken(opened)).unwrap_or_else(open)
}

fn spawn(
    name: &str,
    shared: &Arc<Shared>,
    work: impl FnOnce(&Arc<Shared>) + Send + 'static,
) -> Result<JoinHandle<()>, ProbeError> {
    let shared = Arc::clone(shared);
    let builder = thread::Builder::new().name(name.into());
    builder.spawn(move || work(&shared)).naming("start a thread")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five hundred of the system's ports are taken for datagrams: of four hundred choices some fall on
    /// one of them.
    #[test]
    fn a_port_of_the_systems_choice_serves_both_sockets() {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let taken: Vec<UdpSocket> = (0..500).map(|_| UdpSocket::bind(local).unwrap()).collect();
        for _ in 0..400 {
            let (listener, udp) = listen(local).unwrap();
            assert_eq!(listener.local_addr().unwrap(), udp.local_addr().unwrap());
        }
        let chosen = taken[0].local_addr().unwrap();
        assert!(listen(chosen).is_err(), "a port that was asked for is not exchanged for another");
    }
}
