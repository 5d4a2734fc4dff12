//! Attacks on a server's port, each from a thread of its own until it is dropped.

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::collections::VecDeque;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// An attack: connections that are made so often, say something, and are held.
#[derive(Debug, Clone)]
pub struct Attack {
    /// Its name.
    pub name: &'static str,
    /// The addresses to come from; each connection takes the next. None for the system's choice.
    pub from: Vec<IpAddr>,
    /// Connections a second.
    pub rate: u32,
    /// The first octets of each.
    pub words: Vec<u8>,
    /// Connections that are held open; beyond that the oldest is closed.
    pub held: usize,
}

/// The attacks of strangers: on clients at the same address if `from` is empty. `overheard` are the first
/// words of somebody with the key.
pub fn attacks(from: &[IpAddr], overheard: &[u8]) -> Vec<Attack> {
    let mut foreign = overheard.to_vec();
    if let Some(last) = foreign.last_mut() {
        *last ^= 1;
    }
    [
        ("silent", Vec::new()),
        ("torn", overheard[..overheard.len() / 2].to_vec()),
        ("another protocol", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("wrong key", foreign),
        ("overheard", overheard.to_vec()),
    ]
    .map(|(name, words)| Attack { name, from: from.to_vec(), rate: 1000, words, held: 4000 })
    .into()
}

/// An attack under way. It ends when dropped.
pub struct Siege {
    stop: Arc<AtomicBool>,
    made: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Siege {
    /// Begins to attack.
    pub fn begin(at: SocketAddr, attack: &Attack) -> Siege {
        let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (ours, counted, attack) = (Arc::clone(&stop), Arc::clone(&made), attack.clone());
        let thread = thread::spawn(move || besiege(at, &attack, &ours, &counted));
        Siege { stop, made, thread: Some(thread) }
    }

    /// Connections begun so far.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }
}

impl Drop for Siege {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn besiege(at: SocketAddr, attack: &Attack, stop: &AtomicBool, made: &AtomicU64) {
    let (began, mut begun) = (Instant::now(), VecDeque::new());
    let mut held: VecDeque<TcpStream> = VecDeque::new();
    for count in 0u32.. {
        let due = began + Duration::from_secs(1) * count / attack.rate;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let from = attack.from.get(count as usize % attack.from.len().max(1)).copied();
        if let Ok(socket) = begin(at, from) {
            made.fetch_add(1, Ordering::Relaxed);
            begun.push_back((Instant::now(), socket));
        }
        speak(&mut begun, &mut held, attack);
        held.drain(..held.len().saturating_sub(attack.held));
    }
}

/// A connection under way.
fn begin(at: SocketAddr, from: Option<IpAddr>) -> std::io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(from) = from {
        bind(&socket, &SocketAddr::new(from, 0))?;
    }
    let _ = connect(&socket, &at);
    Ok(socket)
}

/// Says the first words on what is connected by now; who is not within three seconds is given up.
fn speak(
    begun: &mut VecDeque<(Instant, OwnedFd)>,
    held: &mut VecDeque<TcpStream>,
    attack: &Attack,
) {
    for _ in 0..begun.len() {
        let Some((since, socket)) = begun.pop_front() else { return };
        let stream: TcpStream = socket.into();
        if stream.peer_addr().is_ok() {
            let _ = (&stream).write(&attack.words);
            held.push_back(stream);
        } else if since.elapsed() < Duration::from_secs(3) {
            begun.push_back((since, stream.into()));
        }
    }
}
