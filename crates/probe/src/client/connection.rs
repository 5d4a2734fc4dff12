//! The control connection of a client: it proves who both ends are, and notices when the server is gone.

use crate::counters::HostReading;
use crate::error::Naming;
use crate::key::{self, Key, from_hex, same, to_hex};
use crate::limited::Limited;
use crate::wire::VERSION;
use crate::wire::frame::{self, REPORT, SHORT};
use crate::wire::message::{Answer, FlowReport, FlowSpec, Limits, Request, UrpSpec};
use crate::{ProbeError, clock, stamp, tcp};
use rustix::event::PollFlags;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;
use trunkline_core::Span;

/// How long a server may take to be reached and to introduce itself.
const INTRODUCTION: Span = Span::from_secs(10);
/// How long an answer may take: longer than a path may be down, and TCP needs to notice that it is back.
const PATIENCE: Span = Span::from_secs(120);
/// How long an answer may take once the user has asked to stop.
const HASTE: Span = Span::from_secs(2);
/// How often a sign of life goes out.
const ALIVE: Span = Span::from_secs(5);
/// How often the connection is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Which server, and with what key.
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

/// How this end of a data connection is set.
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
        let socket = Socket::new(Domain::for_address(at), Type::STREAM, None);
        let socket = socket.naming("open a socket")?;
        // A connection that began with a congestion control that paces goes on pacing with any other.
        if let Some(name) = &self.congestion {
            tcp::set_congestion(&socket, name).map_err(ProbeError::WrongUse)?;
        }
        if let Some(octets) = self.window {
            tcp::set_window(&socket, octets).naming("set the window")?;
        }
        let made = socket.connect_timeout(&at.into(), INTRODUCTION.to_duration());
        made.map_err(|cause| ProbeError::Connect { at, cause })?;
        Ok(socket.into())
    }
}

/// A session at a server. It ends when dropped.
#[derive(Debug)]
pub struct Connection {
    shared: Arc<Shared>,
    server: SocketAddr,
    key: Key,
    cookie: u64,
    limits: Limits,
    flows: AtomicU16,
}

#[derive(Debug)]
struct Shared {
    stream: Mutex<TcpStream>,
    /// Why the server is gone.
    lost: Mutex<Option<String>>,
    gone: AtomicBool,
    stop: Arc<AtomicBool>,
    finished: AtomicBool,
}

impl Connection {
    /// Opens a session; `stop` is set when the user wants the measurement to end.
    ///
    /// # Errors
    /// Where nobody answers, the server refuses, or the keys differ.
    pub fn open(target: &Target, stop: &Arc<AtomicBool>) -> Result<Connection, ProbeError> {
        let (stream, server) = target.dial()?;
        stream.set_nodelay(true).naming("have small messages sent at once")?;
        let welcome = introduce(&stream, target.key.as_ref())?;
        let shared = Arc::new(Shared {
            stream: Mutex::new(stream),
            lost: Mutex::default(),
            gone: AtomicBool::new(false),
            stop: Arc::clone(stop),
            finished: AtomicBool::new(false),
        });
        let watched = Arc::clone(&shared);
        let thread = thread::Builder::new().name("probe-alive".into());
        thread.spawn(move || watched.watch()).naming("start a thread")?;
        let Welcome { key, cookie, limits } = welcome;
        Ok(Connection { shared, server, key, cookie, limits, flows: AtomicU16::new(0) })
    }

    /// Where the server is.
    pub fn server(&self) -> SocketAddr {
        self.server
    }
    /// What the server allows.
    pub fn limits(&self) -> Limits {
        self.limits
    }
    /// The session's key, which protects its datagrams.
    pub fn key(&self) -> &Key {
        &self.key
    }
    /// The session's cookie.
    pub fn cookie(&self) -> u64 {
        self.cookie
    }
    /// Has the server gone?
    pub fn is_gone(&self) -> bool {
        self.shared.gone.load(Ordering::Relaxed)
    }
    /// Has the user asked to stop?
    pub fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }
    /// Is there a reason to stop measuring?
    pub fn is_over(&self) -> bool {
        self.is_gone() || self.is_stopped()
    }

    /// Why the server is gone, if it is.
    pub fn lost(&self) -> Option<ProbeError> {
        let lost = lock(&self.shared.lost).clone();
        lost.map(ProbeError::Gone).filter(|_| self.is_gone())
    }

    /// Opens a flow and gives its number.
    ///
    /// # Errors
    /// Where the server refuses or is gone.
    pub fn flow(&self, spec: FlowSpec) -> Result<u16, ProbeError> {
        self.flow_by_urp(spec).map(|(flow, _)| flow)
    }

    /// The same, and URP's settings in force, which the server may have decided.
    ///
    /// # Errors
    /// Where the server refuses or is gone.
    pub fn flow_by_urp(&self, spec: FlowSpec) -> Result<(u16, Option<UrpSpec>), ProbeError> {
        let flow = self.flows.fetch_add(1, Ordering::Relaxed);
        match self.shared.ask(&Request::Flow { flow, spec })? {
            Answer::Ready { urp } => Ok((flow, urp)),
            other => Err(unexpected(other)),
        }
    }

    /// Ends a flow and gives what the server saw of it.
    ///
    /// # Errors
    /// Where the server is gone.
    pub fn collect(&self, flow: u16) -> Result<FlowReport, ProbeError> {
        match self.shared.ask(&Request::Collect { flow })? {
            Answer::Report(report) => Ok(*report),
            other => Err(unexpected(other)),
        }
    }

    /// Reads the server's counters.
    ///
    /// # Errors
    /// Where the server is gone.
    pub fn host(&self) -> Result<HostReading, ProbeError> {
        match self.shared.ask(&Request::Host)? {
            Answer::Host(reading) => Ok(*reading),
            other => Err(unexpected(other)),
        }
    }

    /// Opens data connection `stream` of a flow.
    ///
    /// # Errors
    /// Where it cannot be made, the congestion control is not to be had at either end, or the server
    /// refuses.
    pub fn join(&self, flow: u16, number: u16, end: &TcpEnd) -> Result<TcpStream, ProbeError> {
        let fail = |cause| ProbeError::Connect { at: self.server, cause };
        let stream = end.dial(self.server)?;
        stream.set_nodelay(true).naming("have small messages sent at once")?;
        let code = to_hex(&self.key.join_code(self.cookie, flow, number));
        let join = Request::Join { cookie: self.cookie, flow, stream: number, code };
        let mut limited = Limited::new(&stream, INTRODUCTION);
        frame::send(&mut limited, &join).map_err(fail)?;
        match frame::receive(&mut limited, SHORT).map_err(fail)? {
            Answer::Ready { .. } => Ok(stream),
            other => Err(unexpected(other)),
        }
    }

    /// Opens the first `count` data connections of a flow side by side: on a long path one after the other
    /// would take long.
    ///
    /// # Errors
    /// Where one of them cannot be had.
    pub fn join_all(
        &self,
        flow: u16,
        count: u16,
        end: &TcpEnd,
    ) -> Result<Vec<TcpStream>, ProbeError> {
        thread::scope(|scope| {
            let opener = |number: u16| scope.spawn(move || self.join(flow, number, end));
            let openers: Vec<_> = (0..count).map(opener).collect();
            let gone = || Err(ProbeError::Gone("a connection could not be opened".into()));
            openers.into_iter().map(|opener| opener.join().unwrap_or_else(|_| gone())).collect()
        })
    }

    /// The address of this host that faces the server.
    pub fn own_address(&self) -> Option<IpAddr> {
        self.shared.lock().local_addr().ok().map(|address| address.ip())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.finished.store(true, Ordering::Relaxed);
        let stream = match self.shared.stream.try_lock() {
            Ok(stream) => stream,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // An answer is being waited for: the server will notice the end.
            Err(TryLockError::WouldBlock) => return,
        };
        // Whoever is gone needs no farewell.
        let _ = frame::send(&mut Limited::new(&stream, HASTE), &Request::Bye);
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
    fn lock(&self) -> MutexGuard<'_, TcpStream> {
        lock(&self.stream)
    }

    fn lose(&self, reason: String) -> ProbeError {
        let mut lost = lock(&self.lost);
        let reason = lost.get_or_insert(reason).clone();
        self.gone.store(true, Ordering::Relaxed);
        ProbeError::Gone(reason)
    }

    fn ask(&self, request: &Request) -> Result<Answer, ProbeError> {
        self.exchange(&self.lock(), request)
    }

    fn exchange(&self, stream: &TcpStream, request: &Request) -> Result<Answer, ProbeError> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(self.lose("its connection is closed".into()));
        }
        let fail = |error: io::Error| self.lose(reason(&error));
        frame::send(&mut Limited::new(stream, PATIENCE), request).map_err(fail)?;
        self.await_answer(stream)?;
        let answer = frame::receive(&mut Limited::new(stream, PATIENCE), REPORT).map_err(fail)?;
        Ok(answer)
    }

    /// Waits until something is there to be read; not long after the user has asked to stop.
    fn await_answer(&self, stream: &TcpStream) -> Result<(), ProbeError> {
        let mut until = clock::now() + PATIENCE;
        loop {
            let now = clock::now();
            if self.stop.load(Ordering::Relaxed) {
                until = until.min(now + HASTE);
            }
            let look = (now + Span::from_millis(50)).min(until);
            let there = stamp::wait(stream, PollFlags::IN, look).naming("wait for the server")?;
            if there {
                return Ok(());
            }
            if look >= until {
                return Err(self.lose("it does not answer".into()));
            }
        }
    }

    /// Sends signs of life, and notices the end of the connection at once, as nothing comes unasked.
    fn watch(&self) {
        let mut next = clock::now() + ALIVE;
        while !self.finished.load(Ordering::Relaxed) && !self.gone.load(Ordering::Relaxed) {
            thread::sleep(LOOK);
            let Ok(stream) = self.stream.try_lock() else { continue };
            let unasked = stamp::wait(&*stream, PollFlags::IN, clock::now()).unwrap_or(true);
            if unasked {
                let reason =
                    match frame::receive::<Answer>(&mut Limited::new(&stream, HASTE), REPORT) {
                        Ok(Answer::Refused { reason }) => reason,
                        Ok(_) => "it speaks without being asked".into(),
                        Err(error) => reason(&error),
                    };
                self.lose(reason);
            } else if clock::now() >= next {
                next = clock::now() + ALIVE;
                // What fails is noted, and noticed by whoever asks next.
                let _ = self.exchange(&stream, &Request::Alive);
            }
        }
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => "it closed the connection".into(),
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "it does not answer".into(),
        _ => error.to_string(),
    }
}

struct Welcome {
    key: Key,
    cookie: u64,
    limits: Limits,
}

fn introduce(stream: &TcpStream, key: Option<&Key>) -> Result<Welcome, ProbeError> {
    let mut limited = Limited::new(stream, INTRODUCTION);
    let foreign = |error: io::Error| ProbeError::Protocol(reason(&error));
    let ours: key::Code = key::random()?;
    let hello = Request::Hello { version: VERSION, nonce: to_hex(&ours) };
    frame::send(&mut limited, &hello).map_err(foreign)?;
    let (theirs, wanted) = match frame::receive(&mut limited, SHORT).map_err(foreign)? {
        Answer::Challenge { nonce, key } => (from_hex(&nonce), key),
        other => return Err(unexpected(other)),
    };
    let theirs = theirs.ok_or_else(|| ProbeError::Protocol("a nonce that is none".into()))?;
    let nonces: [&[u8]; 2] = [&ours, &theirs];
    let code = match (key, wanted) {
        (Some(key), true) => Some(to_hex(&key.code("client", &nonces))),
        (None, false) => None,
        (None, true) => return Err(ProbeError::Authentication(NO_KEY.into())),
        (Some(_), false) => return Err(ProbeError::Authentication(KEYLESS.into())),
    };
    frame::send(&mut limited, &Request::Proof { code }).map_err(foreign)?;
    match frame::receive(&mut limited, SHORT).map_err(foreign)? {
        Answer::Welcome { code, secret, cookie, limits } => {
            let key = session_key(key, code, secret, &nonces)?;
            Ok(Welcome { key, cookie, limits })
        }
        Answer::Refused { reason } if reason == key::WRONG => {
            Err(ProbeError::Authentication(reason))
        }
        other => Err(unexpected(other)),
    }
}

const NO_KEY: &str = "the server asks for a key: give its own with --key-file or TRUNKLINE_KEY";
const KEYLESS: &str = "the server has no key, so that it cannot prove who it is; leave --key-file and \
                       TRUNKLINE_KEY out if you trust it all the same";

/// The key of the session; the server must have proved that it has ours.
fn session_key(
    key: Option<&Key>,
    code: Option<String>,
    secret: Option<String>,
    nonces: &[&[u8]; 2],
) -> Result<Key, ProbeError> {
    let Some(key) = key else {
        let secret = secret.and_then(|secret| from_hex(&secret));
        let secret = secret.ok_or_else(|| ProbeError::Protocol("no secret came".into()))?;
        return Ok(Key::new(&secret).session(nonces));
    };
    let right = key.code("server", nonces);
    if code.and_then(|code| from_hex(&code)).is_some_and(|code| same(&code, &right)) {
        Ok(key.session(nonces))
    } else {
        Err(ProbeError::Authentication("the server does not have our key".into()))
    }
}
