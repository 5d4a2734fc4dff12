//! Taking connections in. One thread holds all that have not opened a session, without waiting for any.

use super::control;
use super::dialogue::{Dialogue, Event};
use super::registry::Joined;
use super::session::Session;
use super::waiting::{Origin, Waiting};
use super::{Shared, one_more, streams};
use crate::clock;
use crate::limited::is_silence;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_handshake::Refusal;

/// The time between looks at the stop sign.
const LOOK: Span = Span::from_millis(100);
/// The time that a connection may take to fetch its last word.
const MOMENT: Span = Span::from_secs(1);
/// Connections that are taken in before those that wait have their turn.
const BATCH: usize = 64;
/// The most read at once of a connection that has not opened a session.
const CHUNK: usize = 1024;
/// The listener's number.
const LISTENER: u64 = u64::MAX;

/// A connection that has not opened a session.
#[derive(Debug)]
struct Visitor {
    stream: TcpStream,
    peer: IpAddr,
    dialogue: Dialogue,
    since: Time,
}

/// All of them.
struct Doors<'a> {
    shared: &'a Arc<Shared>,
    listener: &'a TcpListener,
    epoll: OwnedFd,
    next: u64,
    /// Those who have not said their first words.
    silent: Waiting<Visitor>,
    /// Those who have, and have not gone on.
    greeted: Waiting<Visitor>,
    /// Those who have been told their last word.
    leaving: Waiting<(TcpStream, Time)>,
}

/// Takes connections in until the server stops.
///
/// # Errors
/// If the system gives no descriptor to wait with.
pub fn open(shared: &Arc<Shared>, listener: TcpListener) -> io::Result<impl FnOnce() + use<>> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let places = shared.registry.places;
    let shared = Arc::clone(shared);
    Ok(move || {
        let mut doors = Doors {
            shared: &shared,
            listener: &listener,
            epoll,
            next: 0,
            silent: Waiting::new(places.silent),
            greeted: Waiting::new(places.greeted),
            leaving: Waiting::new(places.leaving),
        };
        while !shared.stopped() {
            doors.turn();
        }
    })
}

impl Doors<'_> {
    fn turn(&mut self) {
        let mut events = Vec::with_capacity(BATCH);
        let most = clock::timespec(LOOK);
        // Whatever the waiting says, a look does no harm.
        let _ = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&most));
        // Those who wait go first: a crowd at the door does not keep them.
        for event in &events {
            match event.data.u64() {
                LISTENER => {}
                number => self.hear(number),
            }
        }
        if events.iter().any(|event| event.data.u64() == LISTENER) {
            self.accept();
        }
        self.expire(clock::now());
    }

    fn accept(&mut self) {
        for _ in 0..BATCH {
            match self.listener.accept() {
                Ok((stream, from)) => self.enter(stream, plain(from.ip())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!("a connection could not be taken in: {error}");
                    // Others have taken the descriptors: without a pause this would be all that is done.
                    return thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }

    fn enter(&mut self, stream: TcpStream, peer: IpAddr) {
        let registry = &self.shared.registry;
        one_more(&registry.counts.connections);
        let number = self.next;
        self.next += 1;
        if stream.set_nonblocking(true).and(stream.set_nodelay(true)).is_err() {
            return;
        }
        if !registry.options.admits(peer) {
            one_more(&registry.counts.refused_addresses);
            return self.dismiss(number, stream, peer, &[Refusal::Address as u8]);
        }
        if self.watch(&stream, number).is_err() {
            return;
        }
        let dialogue = Dialogue::new(peer);
        let visitor = Visitor { stream, peer, dialogue, since: clock::now() };
        if let Some((_, crowded)) = self.silent.enter(number, Origin::of(peer), visitor) {
            self.drop_silent(&crowded);
        }
        // A client speaks first: its words came with it.
        self.hear(number);
    }

    fn watch(&self, stream: &TcpStream, number: u64) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, stream, EventData::new_u64(number), EventFlags::IN)?)
    }

    fn drop_silent(&self, visitor: &Visitor) {
        one_more(&self.shared.registry.counts.silent);
        reset(&visitor.stream);
    }

    fn hear(&mut self, number: u64) {
        if let Some((stream, _)) = self.leaving.get(number) {
            if is_gone(stream) {
                self.leaving.leave(number);
            }
            return;
        }
        let found = self.silent.get(number).or_else(|| self.greeted.get(number));
        let Some(visitor) = found else { return };
        let mut buffer = [0; CHUNK];
        let octets = match (&visitor.stream).read(&mut buffer) {
            Ok(0) => return self.forget(number),
            Ok(count) => &buffer[..count],
            Err(error) if is_silence(&error) || error.kind() == io::ErrorKind::Interrupted => {
                return;
            }
            Err(_) => return self.forget(number),
        };
        let step = visitor.dialogue.receive(&self.shared.registry, octets);
        self.follow(number, &step.answer, step.event);
    }

    fn follow(&mut self, number: u64, answer: &[u8], event: Event) {
        if let Event::Waiting = event {
            return;
        }
        let Some(visitor) = self.take(number) else { return };
        if let Event::Over = event {
            return match answer {
                [] => reset(&visitor.stream),
                words => self.dismiss(number, visitor.stream, visitor.peer, words),
            };
        }
        // The first words of a connection always find room.
        if (&visitor.stream).write(answer).is_ok_and(|count| count == answer.len()) {
            self.go_on(number, visitor, event);
        } else if let Event::Opened(session) = event {
            self.shared.registry.close(&session);
        }
    }

    fn go_on(&mut self, number: u64, visitor: Visitor, event: Event) {
        match event {
            Event::Greeted => {
                if let Some((_, crowded)) =
                    self.greeted.enter(number, Origin::of(visitor.peer), visitor)
                {
                    self.drop_silent(&crowded);
                }
            }
            Event::Opened(session) => self.serve_session(visitor, &session),
            Event::Joined(joined) => self.serve_stream(visitor.stream, *joined),
            Event::Waiting | Event::Over => {}
        }
    }

    fn take(&mut self, number: u64) -> Option<Visitor> {
        self.silent.leave(number).or_else(|| self.greeted.leave(number))
    }

    fn forget(&mut self, number: u64) {
        if let Some(visitor) = self.take(number)
            && visitor.dialogue.is_torn()
        {
            one_more(&self.shared.registry.counts.foreign);
        }
    }

    /// Says a last word and waits a moment for the client to hear it: what comes unread would turn it into
    /// a reset.
    fn dismiss(&mut self, number: u64, stream: TcpStream, peer: IpAddr, words: &[u8]) {
        // Who does not listen is refused all the same.
        let _ = (&stream).write(words);
        let _ = stream.shutdown(Shutdown::Write);
        // One that has been heard is watched already.
        let _ = self.watch(&stream, number);
        let entry = (stream, clock::now());
        if let Some((_, (crowded, _))) = self.leaving.enter(number, Origin::of(peer), entry) {
            reset(&crowded);
        }
    }

    fn expire(&mut self, now: Time) {
        let patience = self.shared.registry.options.handshake;
        let late = |since: Time, span: Span| now.since(since) > span;
        for greeted in [false, true] {
            loop {
                let table = if greeted { &mut self.greeted } else { &mut self.silent };
                let oldest = table.oldest().map(|(number, visitor)| (number, visitor.since));
                let Some((number, _)) = oldest.filter(|(_, since)| late(*since, patience)) else {
                    break;
                };
                if let Some(visitor) = table.leave(number) {
                    self.drop_silent(&visitor);
                }
            }
        }
        while let Some((number, (stream, since))) = self.leaving.oldest()
            && late(*since, MOMENT)
        {
            reset(stream);
            self.leaving.leave(number);
        }
    }

    fn serve_session(&self, visitor: Visitor, session: &Arc<Session>) {
        let ours = Arc::clone(session);
        let Visitor { stream, dialogue, .. } = visitor;
        let unwatched = self.unwatch(&stream);
        let work = move |shared: &Shared| control::serve(shared, &stream, dialogue, &ours);
        if !unwatched || !self.begin("probe-client", session, work) {
            self.shared.registry.close(session);
        }
    }

    fn serve_stream(&self, stream: TcpStream, joined: Joined) {
        let (session, flow) = (Arc::clone(&joined.session), Arc::clone(&joined.flow));
        let unwatched = self.unwatch(&stream);
        let work = move |shared: &Shared| streams::serve(shared, &stream, &joined);
        if !unwatched || !self.begin("probe-stream", &session, work) {
            flow.leave();
        }
    }

    /// Leaves a connection to another thread.
    fn unwatch(&self, stream: &TcpStream) -> bool {
        epoll::delete(&self.epoll, stream).is_ok()
    }

    fn begin(
        &self,
        name: &str,
        session: &Arc<Session>,
        work: impl FnOnce(&Shared) + Send + 'static,
    ) -> bool {
        let shared = Arc::clone(self.shared);
        let begun = thread::Builder::new().name(name.into()).spawn(move || work(&shared));
        if let Err(error) = &begun {
            tracing::warn!("no thread for a connection of {}: {error}", session.peer);
        }
        begun.is_ok()
    }
}

/// Closes a connection at once: nothing is kept of it.
fn reset(stream: &TcpStream) {
    // If this fails the kernel keeps it a little longer.
    let _ = set_socket_linger(stream, Some(Duration::ZERO));
    let _ = stream.shutdown(Shutdown::Both);
}

/// Reads what nobody wants, and tells whether the end has come.
fn is_gone(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0; CHUNK]) {
        Ok(count) => count == 0,
        Err(error) => !is_silence(&error),
    }
}

/// An IPv4 address that came through a socket of both families, as IPv4.
fn plain(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V6(v6) => Ipv6Addr::to_ipv4_mapped(&v6).map_or(ip, IpAddr::V4),
        v4 => v4,
    }
}
