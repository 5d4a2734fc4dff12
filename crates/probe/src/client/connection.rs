//! The control connection of a client: it proves who both ends are, and notices when the server is gone.

use super::control::{Control, greet, reason};
use crate::counters::HostReading;
use crate::error::Naming;
use crate::limited::Limited;
use crate::wire::keys::{CONTROL, DATA, Place, SessionKeys, Way};
use crate::wire::message::{Answer, FlowReport, FlowSpec, Limits, Request, UrpSpec};
use crate::wire::record::{MOST_USER, Reader, Writer};
use crate::{ProbeError, clock, stamp, tcp};
use rustix::event::PollFlags;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_handshake::Key;

/// The time that a server may take to be reached and to introduce itself.
const INTRODUCTION: Span = Span::from_secs(10);
/// The time that an answer may take: longer than a path may be down, and TCP needs to notice that it is back.
const PATIENCE: Span = Span::from_secs(120);
/// The time that an answer may take once the user has asked to stop.
const HASTE: Span = Span::from_secs(2);
/// The time between signs of life.
const ALIVE: Span = Span::from_secs(5);
/// The time between looks at the connection.
const LOOK: Duration = Duration::from_millis(50);

/// The server, and its key.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its name or address.
    pub host: String,
    /// Its port, of TCP and UDP.
    pub port: u16,
    /// The key that it must have.
    pub key: Option<Key>,
}

impl Target {
    fn addresses(&self) -> Result<Vec<SocketAddr>, ProbeError> {
        let fail = |reason: String| ProbeError::Resolve { host: self.host.clone(), reason };
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        let found = (bare, self.port).to_socket_addrs().map_err(|error| fail(error.to_string()))?;
        let found: Vec<SocketAddr> = found.collect();
        let homeless = |at: &SocketAddr| match at {
            SocketAddr::V6(at) => at.ip().is_unicast_link_local() && at.scope_id() == 0,
            SocketAddr::V4(_) => false,
        };
        if found.is_empty() {
            return Err(fail("the name has none".into()));
        }
        if found.iter().all(homeless) {
            let reason = "a link-local address needs its interface: write it as fe80::1%eth0";
            return Err(fail(reason.into()));
        }
        Ok(found)
    }

    fn dial(&self) -> Result<(TcpStream, SocketAddr), ProbeError> {
        let mut result = None;
        for at in self.addresses()? {
            match TcpStream::connect_timeout(&at, INTRODUCTION.to_duration()) {
                Ok(stream) => return Ok((stream, at)),
                Err(cause) => result = Some(ProbeError::Connect { at, cause }),
            }
        }
        Err(result.unwrap_or_else(|| ProbeError::Resolve {
            host: self.host.clone(),
            reason: "the name has no address".into(),
        }))
    }
}

/// The settings of this end of a data connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TcpEnd {
    /// The congestion control; `None` for the system's own.
    pub congestion: Option<String>,
    /// Octets of the largest window that this end offers; `None` for the system's, which grows.
    pub window: Option<u32>,
}

impl TcpEnd {
    /// Connects. The window has to be set before, for the window's scale is said in the first segment.
    fn dial(&self, at: SocketAddr) -> Result<TcpStream, ProbeError> {
        let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None);
        let socket = socket.naming("open a socket")?;
        // A connection that began with a congestion control that paces goes on pacing with any other.
        if let Some(name) = &self.congestion {
            tcp::set_congestion(&socket, name).map_err(ProbeError::WrongUse)?;
        }
        if let Some(octets) = self.window {
            tcp::set_window(&socket, octets).naming("set the window")?;
        }
        let made = connected(&socket, at).and_then(|()| Ok(ioctl_fionbio(&socket, false)?));
        made.map_err(|cause| ProbeError::Connect { at, cause })?;
        Ok(socket.into())
    }
}

/// Connects a socket that does not block, within the time of an introduction.
fn connected(socket: &OwnedFd, at: SocketAddr) -> io::Result<()> {
    match connect(socket, &at) {
        Err(Errno::INPROGRESS) => {}
        done => return Ok(done?),
    }
    let until = clock::now() + INTRODUCTION;
    while !stamp::wait(socket, PollFlags::OUT, until)? {
        if clock::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(sockopt::socket_error(socket)??)
}

/// A data connection that has joined its flow.
#[derive(Debug)]
pub struct DataStream {
    /// The connection.
    pub stream: TcpStream,
    /// Reads what the server sends.
    pub reader: Reader,
    /// Writes what it gets.
    pub writer: Writer,
}

/// A session at a server. It ends when dropped.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    server: SocketAddr,
    keys: SessionKeys,
    cookie: u64,
    limits: Limits,
    /// When the session's time is over.
    until: Time,
    /// The number of the next flow. Numbers reach the server in order.
    flows: Mutex<u16>,
}

#[derive(Debug)]
struct Shared {
    control: Mutex<Control>,
    own: Option<IpAddr>,
    /// The reason why the server is gone.
    lost: Mutex<Option<String>>,
    gone: AtomicBool,
    stop: Arc<AtomicBool>,
    finished: AtomicBool,
}

impl Connection {
    /// Opens a session; `stop` is set when the user wants the measurement to end.
    ///
    /// # Errors
    /// If nobody answers, the server refuses, or the keys differ.
    pub fn open(target: &Target, stop: &Arc<AtomicBool>) -> Result<Connection, ProbeError> {
        let (stream, server) = target.dial()?;
        stream.set_nodelay(true).naming("have small messages sent at once")?;
        let own = stream.local_addr().ok().map(|address| address.ip());
        let (control, welcome) = introduce(stream, target.key.as_ref())?;
        let shared = Arc::new(Shared {
            control: Mutex::new(control),
            own,
            lost: Mutex::default(),
            gone: AtomicBool::new(false),
            stop: Arc::clone(stop),
            finished: AtomicBool::new(false),
        });
        let watched = Arc::clone(&shared);
        let thread = thread::Builder::new().name("probe-alive".into());
        thread.spawn(move || watched.watch()).naming("start a thread")?;
        let Welcome { keys, cookie, limits } = welcome;
        let until = clock::now() + Span::from_nanos(limits.duration_ns);
        Ok(Connection { shared, server, keys, cookie, limits, until, flows: Mutex::default() })
    }

    /// The address of the server.
    pub fn server(&self) -> SocketAddr {
        self.server
    }
    /// The limits that the server sets.
    pub fn limits(&self) -> Limits {
        self.limits
    }
    /// The time that is left of the session.
    pub fn left(&self) -> Span {
        self.until.since(clock::now())
    }
    /// The session's keys.
    pub fn keys(&self) -> &SessionKeys {
        &self.keys
    }
    /// The session's cookie.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }
    /// Whether the server has gone.
    pub fn is_gone(&self) -> bool {
        self.shared.gone.load(Ordering::Relaxed)
    }
    /// Whether the user has asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }
    /// Whether there is a reason to stop measuring.
    pub fn is_over(&self) -> bool {
        self.is_gone() || self.is_stopped()
    }

    /// The reason why the server is gone, if it is.
    pub fn lost(&self) -> Option<ProbeError> {
        let lost = lock(&self.shared.lost).clone();
        lost.map(ProbeError::Gone).filter(|_| self.is_gone())
    }

    /// Opens a flow and gives its number.
    ///
    /// # Errors
    /// If the server refuses or is gone.
    pub fn flow(&self, spec: FlowSpec) -> Result<u16, ProbeError> {
        self.flow_by_urp(spec).map(|(flow, _)| flow)
    }

    /// The same, and URP's settings in force, which the server may have decided.
    ///
    /// # Errors
    /// If the server refuses or is gone.
    pub fn flow_by_urp(&self, spec: FlowSpec) -> Result<(u16, Option<UrpSpec>), ProbeError> {
        let mut next = lock(&self.flows);
        let flow = *next;
        *next = next.checked_add(1).ok_or_else(|| {
            ProbeError::WrongUse("a session has at most 65535 flows: measure in parts".into())
        })?;
        match self.shared.ask(&Request::Flow { flow, spec })? {
            Answer::Ready { urp } => Ok((flow, urp)),
            other => Err(unexpected(other)),
        }
    }

    /// Ends a flow and gives what the server saw of it.
    ///
    /// # Errors
    /// If the server is gone.
    pub fn collect(&self, flow: u16) -> Result<FlowReport, ProbeError> {
        match self.shared.ask(&Request::Collect { flow })? {
            Answer::Report(report) => Ok(*report),
            other => Err(unexpected(other)),
        }
    }

    /// Reads the server's counters.
    ///
    /// # Errors
    /// If the server is gone.
    pub fn host(&self) -> Result<HostReading, ProbeError> {
        match self.shared.ask(&Request::Host)? {
            Answer::Host(reading) => Ok(*reading),
            other => Err(unexpected(other)),
        }
    }

    /// Opens data connection `number` of a flow.
    ///
    /// # Errors
    /// If it cannot be made, the congestion control is not to be had at this end, or the server refuses.
    pub fn join(&self, flow: u16, number: u16, end: &TcpEnd) -> Result<DataStream, ProbeError> {
        let stream = end.dial(self.server)?;
        stream.set_nodelay(true).naming("have small messages sent at once")?;
        let place = Place { cookie: self.cookie, flow, stream: number };
        let code = self.keys.join(place);
        let mut limited = Limited::new(&stream, INTRODUCTION);
        let channel = greet(&mut limited, Some(&code), DATA, &place.write())?;
        let key = |way| self.keys.stream(way, place, channel.transcript());
        let (reader, writer) = (Reader::new(key(Way::Down), MOST_USER), Writer::new(key(Way::Up)));
        Ok(DataStream { stream, reader, writer })
    }

    /// Opens the first `count` data connections of a flow side by side: on a long path one after the other
    /// would take long.
    ///
    /// # Errors
    /// If one of them cannot be had.
    pub fn join_all(
        &self,
        flow: u16,
        count: u16,
        end: &TcpEnd,
    ) -> Result<Vec<DataStream>, ProbeError> {
        thread::scope(|scope| {
            let opener = |number: u16| scope.spawn(move || self.join(flow, number, end));
            let openers: Vec<_> = (0..count).map(opener).collect();
            let gone = || Err(ProbeError::Gone("a connection could not be opened".into()));
            openers.into_iter().map(|opener| opener.join().unwrap_or_else(|_| gone())).collect()
        })
    }

    /// The address of this host that faces the server.
    pub fn own_address(&self) -> Option<IpAddr> {
        self.shared.own
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.finished.store(true, Ordering::Relaxed);
        let mut control = match self.shared.control.try_lock() {
            Ok(control) => control,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // An answer is being waited for: the server will notice the end.
            Err(TryLockError::WouldBlock) => return,
        };
        // Whoever is gone needs no farewell.
        let _ = control.send(&Request::Bye, HASTE);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unexpected(answer: Answer) -> ProbeError {
    match answer {
        Answer::Refused { reason } => ProbeError::Refused(reason),
        other => ProbeError::Protocol(format!("unexpected {other:?}")),
    }
}

impl Shared {
    fn lose(&self, reason: String) -> ProbeError {
        let mut lost = lock(&self.lost);
        let reason = lost.get_or_insert(reason).clone();
        self.gone.store(true, Ordering::Relaxed);
        ProbeError::Gone(reason)
    }

    fn ask(&self, request: &Request) -> Result<Answer, ProbeError> {
        self.exchange(&mut lock(&self.control), request)
    }

    fn exchange(&self, control: &mut Control, request: &Request) -> Result<Answer, ProbeError> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(self.lose("its connection is closed".into()));
        }
        let fail = |error: io::Error| self.lose(reason(&error));
        control.send(request, PATIENCE).map_err(fail)?;
        let mut until = clock::now() + PATIENCE;
        control.receive(&mut || self.hasten(&mut until)).map_err(fail)
    }

    /// Not long after the user has asked to stop.
    fn hasten(&self, until: &mut Time) -> Time {
        if self.stop.load(Ordering::Relaxed) {
            *until = (*until).min(clock::now() + HASTE);
        }
        *until
    }

    /// Sends signs of life, and notices the end of the connection at once, as nothing comes unasked.
    fn watch(&self) {
        let mut next = clock::now() + ALIVE;
        while !self.finished.load(Ordering::Relaxed) && !self.gone.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
            let Ok(mut control) = self.control.try_lock() else { continue };
            if control.is_heard() {
                let until = clock::now() + HASTE;
                let reason = match control.receive(&mut || until) {
                    Ok(Answer::Refused { reason }) => reason,
                    Ok(_) => "it speaks without being asked".into(),
                    Err(error) => reason(&error),
                };
                self.lose(reason);
            } else if clock::now() >= next {
                next = clock::now() + ALIVE;
                // What fails is noted, and noticed by whoever asks next.
                let _ = self.exchange(&mut control, &Request::Alive);
            }
        }
    }
}

struct Welcome {
    keys: SessionKeys,
    cookie: u64,
    limits: Limits,
}

fn introduce(stream: TcpStream, key: Option<&Key>) -> Result<(Control, Welcome), ProbeError> {
    let foreign = |error: io::Error| ProbeError::Protocol(reason(&error));
    let until = clock::now() + INTRODUCTION;
    let channel = greet(&mut Limited::new(&stream, INTRODUCTION), key, CONTROL, &[])?;
    let mut control = Control::new(stream, channel);
    control.send(&Request::Open, INTRODUCTION).map_err(foreign)?;
    match control.receive(&mut || until).map_err(foreign)? {
        Answer::Welcome { secret, cookie, limits } => {
            Ok((control, Welcome { keys: SessionKeys::new(secret), cookie, limits }))
        }
        other => Err(unexpected(other)),
    }
}
