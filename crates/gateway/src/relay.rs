//! One TCP connection passed on to another.

use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Bytes passed on at a time.
const CHUNK: usize = 64 << 10;
/// Connections that one listener passes on at once. Further ones are reset.
const MOST: usize = 1024;
/// The pause after a connection could not be taken in, for want of descriptors as a rule.
const PAUSE: Duration = Duration::from_millis(50);

/// A listener whose connections are served by threads of their own, until this is dropped.
#[derive(Debug)]
pub(crate) struct Service(Arc<TcpListener>);

impl Service {
    /// Serves each connection by `serve`. `note` gets a line for each that is not served for want of room.
    pub(crate) fn start(
        listener: TcpListener,
        note: impl Fn(&str) + Send + 'static,
        serve: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> io::Result<Service> {
        Service::of_size(MOST, listener, note, serve)
    }

    fn of_size(
        most: usize,
        listener: TcpListener,
        note: impl Fn(&str) + Send + 'static,
        serve: impl Fn(TcpStream) + Send + Sync + 'static,
    ) -> io::Result<Service> {
        let listener = Arc::new(listener);
        let (taken, serve) = (Arc::clone(&listener), Arc::new(serve));
        let work = move || accept(&taken, most, &note, &serve);
        trunkline_netns::thread("tl-gateway")?.spawn(work)?;
        Ok(Service(listener))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Wakes the thread that accepts; a listener that is shut already needs no waking.
        let _ = rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Both);
    }
}

fn accept<S: Fn(TcpStream) + Send + Sync + 'static>(
    listener: &TcpListener,
    most: usize,
    note: &impl Fn(&str),
    serve: &Arc<S>,
) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        match listener.accept() {
            Ok((client, _)) => {
                if open.load(Ordering::Relaxed) >= most {
                    reset(&client);
                    note(&format!(
                        "{most} connections are open, and no more are passed on at once: further ones are reset"
                    ));
                    continue;
                }
                let (serve, held) = (Arc::clone(serve), Held::new(&open));
                let spawned = trunkline_netns::thread("tl-relay").and_then(|thread| {
                    thread.spawn(move || {
                        serve(client);
                        drop(held);
                    })
                });
                if let Err(error) = spawned {
                    tracing::warn!("a connection is not passed on: {error}");
                }
            }
            Err(error) if error.raw_os_error() == Some(INVALID) => return,
            Err(error) => {
                match want_of_files(&error) {
                    Some(line) => note(&line),
                    None => tracing::debug!(%error, "no connection taken in"),
                }
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// What the kernel says of a listener that is shut.
const INVALID: i32 = rustix::io::Errno::INVAL.raw_os_error();

/// One of a counted number, given back at drop.
struct Held(Arc<AtomicUsize>);

impl Held {
    fn new(count: &Arc<AtomicUsize>) -> Held {
        count.fetch_add(1, Ordering::Relaxed);
        Held(Arc::clone(count))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What to say of `error` if this process has as many files open as it may.
pub(crate) fn want_of_files(error: &io::Error) -> Option<String> {
    let wants = error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error());
    wants.then(|| {
        format!(
            "trunkline may open no more files, and a connection takes two ({error}): raise the limit, the hard one too: `ulimit -n 65536`, as root"
        )
    })
}

/// Lets the connection end with a reset when it is dropped.
pub(crate) fn reset(connection: &TcpStream) {
    // Without it the other end sees an orderly end instead.
    let _ = set_socket_linger(connection, Some(Duration::ZERO));
}

/// Passes bytes on both ways until both ends have closed. An end of one connection closes the other in that direction;
/// a reset of one resets the other.
pub(crate) fn pass_on(one: &TcpStream, other: &TcpStream) {
    // Segments leave as they came.
    let _ = one.set_nodelay(true).and(other.set_nodelay(true));
    let broken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let back = trunkline_netns::thread("tl-relay")
            .and_then(|thread| thread.spawn_scoped(scope, || one_way(other, one, &broken)));
        match back {
            Ok(_) => one_way(one, other, &broken),
            Err(error) => {
                tracing::warn!("a connection is not passed on: {error}");
                broken.store(true, Ordering::Relaxed);
            }
        }
    });
    if broken.into_inner() {
        reset(one);
        reset(other);
    }
}

fn one_way(from: &TcpStream, to: &TcpStream, broken: &AtomicBool) {
    match copy(from, to) {
        Ok(()) if !broken.load(Ordering::Relaxed) => {
            let _ = to.shutdown(Shutdown::Write);
        }
        Ok(()) => {}
        Err(error) => {
            tracing::debug!(%error, "a connection broke");
            broken.store(true, Ordering::Relaxed);
            // The other thread, which may wait for bytes, shall see it.
            let _ = (from.shutdown(Shutdown::Read), to.shutdown(Shutdown::Read));
        }
    }
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Lines that are told once each.
#[derive(Default)]
pub(crate) struct Once(Mutex<Vec<String>>);

impl Once {
    /// Tells `line`, if it was not told before.
    pub(crate) fn tell(&self, tell: &crate::Tell, line: String) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() < MOST && !told.contains(&line) {
            tell(&line);
            told.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client and a server with a relay between them.
    fn ends() -> (TcpStream, TcpStream, Service) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = server.local_addr().unwrap();
        let front = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = front.local_addr().unwrap();
        let serve = move |client| pass_on(&client, &TcpStream::connect(to).unwrap());
        let service = Service::start(front, |_| (), serve).unwrap();
        let near = TcpStream::connect(at).unwrap();
        (near, server.accept().unwrap().0, service)
    }

    #[test]
    fn bytes_pass_both_ways_and_ends_pass_one_by_one() {
        let (mut near, mut far, _service) = ends();
        let sent: Vec<u8> = (0..300_000_u32).map(|it| it as u8).collect();
        let copy = sent.clone();
        let writer = std::thread::spawn(move || {
            near.write_all(&copy).unwrap();
            near.shutdown(Shutdown::Write).unwrap();
            near
        });
        let mut got = Vec::new();
        far.read_to_end(&mut got).unwrap();
        assert_eq!(got, sent);
        far.write_all(b"the answer after the end").unwrap();
        drop(far);
        let mut answer = String::new();
        writer.join().unwrap().read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "the answer after the end");
    }

    #[test]
    fn a_reset_is_no_orderly_end() {
        let (mut near, mut far, _service) = ends();
        far.write_all(b"half of").unwrap();
        near.read_exact(&mut [0; 7]).unwrap();
        reset(&far);
        drop(far);
        let error = near.read(&mut [0; 9]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn nobody_listens_after_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        drop(Service::start(listener, |_| (), drop).unwrap());
        let refused = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            TcpStream::connect(at).is_err()
        });
        assert!(refused);
    }

    #[test]
    fn a_connection_too_many_is_reset_and_told() {
        let front = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = front.local_addr().unwrap();
        let (told, lines) = std::sync::mpsc::channel();
        let note = move |line: &str| told.send(line.to_owned()).unwrap();
        // It is open until its client ends.
        let serve = |mut client: TcpStream| drop(client.read(&mut [0]));
        let _service = Service::of_size(1, front, note, serve).unwrap();
        let _first = TcpStream::connect(at).unwrap();
        let error = TcpStream::connect(at).unwrap().read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let line = lines.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(line.starts_with("1 connections are open"), "{line}");
    }

    #[test]
    fn lines_are_told_once() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let tell: crate::Tell = Arc::new(move |line| kept.lock().unwrap().push(line.to_owned()));
        let once = Once::default();
        for line in ["a", "b", "a"] {
            once.tell(&tell, line.into());
        }
        assert_eq!(*told.lock().unwrap(), ["a", "b"]);
    }
}
