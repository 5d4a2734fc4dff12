//! Questions to the machine's name servers, passed on as they are (RFC 1035 §4.2.1).

use crate::{Entry, own};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use trunkline_netns::name_servers;

/// The port of name servers.
pub(crate) const PORT: u16 = 53;
/// Name servers that are asked, as many as the C library does (resolv.conf(5), `MAXNS`).
const MOST_SERVERS: usize = 3;
/// The time that each may take. With all of them it is less than the 5 s after which the C library asks again for the
/// second time.
const PATIENCE: Duration = Duration::from_secs(2);
/// Questions that wait for an answer at once. Further ones get none, as from a name server with too much to do.
const MOST: usize = 256;
/// Bytes of the longest datagram.
const LONGEST: usize = 65_535;
/// The time between two looks at whether it is over.
const GLANCE: Duration = Duration::from_secs(1);
/// The bytes of a message's header, in which the third and fourth are flags (RFC 1035 §4.1.1).
const HEADER: usize = 12;
/// Flags of an answer: it is one; the server would ask others; it failed.
const ANSWER: u8 = 0x80;
const RECURSION_AVAILABLE: u8 = 0x80;
const SERVER_FAILURE: u8 = 2;

/// The names that are answered here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Own {
    pub(crate) domain: &'static str,
    pub(crate) entries: Vec<Entry>,
}

/// Answers what comes to a socket until this is dropped.
#[derive(Debug)]
pub(crate) struct NameService(Arc<AtomicBool>);

impl NameService {
    /// Answers questions that come to `socket`.
    pub(crate) fn start(socket: UdpSocket, own: Own) -> io::Result<NameService> {
        socket.set_read_timeout(Some(GLANCE))?;
        let over = Arc::new(AtomicBool::new(false));
        let (socket, ends) = (Arc::new(socket), Arc::clone(&over));
        trunkline_netns::thread("tl-names")?.spawn(move || serve(&socket, &own, &ends))?;
        Ok(NameService(over))
    }
}

impl Drop for NameService {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn serve(socket: &Arc<UdpSocket>, own: &Own, over: &AtomicBool) {
    let waiting = Arc::new(AtomicUsize::new(0));
    let mut buffer = vec![0; LONGEST];
    while !over.load(Ordering::Relaxed) {
        let Ok((length, client)) = socket.recv_from(&mut buffer) else { continue };
        if length < HEADER || waiting.load(Ordering::Relaxed) >= MOST {
            continue;
        }
        let question = buffer[..length].to_vec();
        if let Some(answer) = own::answer(&question, own.domain, &own.entries) {
            // A client that is gone asks no more.
            let _ = socket.send_to(&answer, client);
            continue;
        }
        let (socket, count) = (Arc::clone(socket), Arc::clone(&waiting));
        count.fetch_add(1, Ordering::Relaxed);
        let spawned = trunkline_netns::thread("tl-names").and_then(|thread| {
            thread.spawn(move || {
                let answer = ask(&question, &servers()).unwrap_or_else(|| failure(&question));
                let _ = socket.send_to(&answer, client);
                count.fetch_sub(1, Ordering::Relaxed);
            })
        });
        if spawned.is_err() {
            waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The machine's name servers; the machine itself, if none are named.
pub(crate) fn servers() -> Vec<SocketAddr> {
    let mut found = name_servers();
    found.truncate(MOST_SERVERS);
    if found.is_empty() {
        found.push((Ipv4Addr::LOCALHOST, PORT).into());
    }
    found
}

/// The answer of the first server that gives one.
fn ask(question: &[u8], servers: &[SocketAddr]) -> Option<Vec<u8>> {
    servers.iter().find_map(|&server| ask_one(question, server).ok())
}

fn ask_one(question: &[u8], server: SocketAddr) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.send(question)?;
    let until = Instant::now() + PATIENCE;
    let mut buffer = vec![0; LONGEST];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let length = socket.recv(&mut buffer)?;
        // An answer bears the number of its question.
        if length >= HEADER && buffer[..2] == question[..2] {
            buffer.truncate(length);
            return Ok(buffer);
        }
    }
}

/// The answer that no server could be asked.
fn failure(question: &[u8]) -> Vec<u8> {
    let mut answer = question.to_vec();
    answer[2] |= ANSWER;
    answer[3] = RECURSION_AVAILABLE | SERVER_FAILURE;
    answer
}

/// A connection to the first name server that takes one (RFC 7766).
pub(crate) fn connect() -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for server in servers() {
        match TcpStream::connect_timeout(&server, PATIENCE) {
            Ok(connection) => return Ok(connection),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question of number 7 for the root's addresses.
    const QUESTION: [u8; 17] = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1];

    #[test]
    fn the_next_server_answers_if_the_first_is_not_there() {
        let [server, absent] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let servers = [absent.local_addr().unwrap(), server.local_addr().unwrap()];
        drop(absent);
        let answering = std::thread::spawn(move || {
            let mut buffer = [0; 99];
            let (length, client) = server.recv_from(&mut buffer).unwrap();
            // Somebody else's answer, then the right one.
            let mut other = buffer[..length].to_vec();
            other[0] ^= 1;
            server.send_to(&other, client).unwrap();
            buffer[2] |= ANSWER;
            server.send_to(&buffer[..length], client).unwrap();
        });
        let answer = ask(&QUESTION, &servers).unwrap();
        answering.join().unwrap();
        assert_eq!((answer[1], answer[2]), (7, 0x81));
    }

    #[test]
    fn a_question_that_nobody_answers_has_failed() {
        let answer = failure(&QUESTION);
        assert_eq!(answer[..4], [0, 7, 0x81, 0x82]);
        assert_eq!(answer[4..], QUESTION[4..]);
        assert_eq!(ask(&QUESTION, &[]), None);
    }
}
