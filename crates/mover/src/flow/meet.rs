//! How a sender meets its receiver, and the OPEN that goes with its first words.

use super::{DEATH, Flow, NAP, OUTSTANDING, burst, same};
use crate::session::{ADDED, Caller, Early, Met, Secret, Session};
use crate::{HEADER, MoverError, PACKETS};
use trunkline_core::{Span, Time};
use trunkline_handshake::random;
use trunkline_transport::netblt::wire::{Burst, Dialect, Packet, Ports, Terms, encode};
use trunkline_transport::netblt::{Connection, Habits, Out, RateLaw};

/// Datagrams that are kept at most of those that come with the answer to first words.
const MOST_KEPT: usize = 64;

/// A connection as it is proposed.
#[derive(Debug, Clone)]
pub(super) struct Proposed {
    terms: Terms,
    ports: Ports,
    habits: Habits,
}

impl Proposed {
    /// The connection whose OPEN is due at `now`. If much is to follow, copies of it lead.
    pub fn connection(self, now: Time, round: Span, is_long: bool) -> Connection {
        let connection = Connection::open(now, self.terms, self.ports, self.habits);
        let connection = connection.expecting(round);
        if is_long { connection.leading() } else { connection }
    }

    /// The same, whose OPEN and its copies went at `then`.
    fn opened(self, then: Time, round: Span, is_long: bool) -> Connection {
        let mut connection = self.connection(then, round, is_long);
        while connection.transmit(then).is_some() {}
        connection
    }

    /// Its OPEN, for the first words.
    fn early(&self, is_long: bool) -> Early {
        let mut connection = self.clone().connection(Time::ZERO, Span::ZERO, is_long);
        let copies = std::iter::from_fn(|| connection.transmit(Time::ZERO));
        let copies = copies.filter(|it| matches!(it, Out::Packet(Packet::Open(_)))).count();
        let mut packet = Vec::new();
        encode(Dialect::V5, self.ports, &Packet::Open(self.terms.clone()), &mut packet);
        Early { packet, length: ADDED + HEADER + usize::from(self.terms.packet), copies }
    }
}

impl Flow<'_> {
    /// A connection whose OPEN says this.
    pub(super) fn proposed(&self, text: &[u8]) -> Result<Proposed, MoverError> {
        let no_random = || MoverError::system("no random numbers");
        let uid = u32::from_be_bytes(random().map_err(no_random())?);
        let local = u16::from_be_bytes(random().map_err(no_random())?);
        let terms = Terms {
            uid,
            buffer: self.buffer,
            packet: self.packet,
            burst: Burst { size: u16::MAX, interval: 1 },
            outstanding: OUTSTANDING,
            death: DEATH,
            write: true,
            parity: true,
            text: text.to_vec(),
            ..Terms::default()
        };
        let cap = burst(self.control.cap(), self.packet);
        let habits = Habits { dialect: Dialect::V5, rate: RateLaw::Adaptive, cap };
        Ok(Proposed { terms, ports: Ports { local, foreign: 1 }, habits })
    }

    /// Calls its places in turn until somebody answers who knows the secret. With the first words goes, if there is a key to seal it, the OPEN of a
    /// connection that says `first`, for a transfer that is long or not.
    pub fn meet(
        &mut self,
        secret: &Secret,
        first: Option<(&[u8], bool)>,
        told: &mut dyn FnMut(Span, Option<String>),
    ) -> Result<Session, MoverError> {
        let begun = self.link.now();
        let is_long = first.is_some_and(|(_, is_long)| is_long);
        let mut proposed = first.map(|(text, _)| self.proposed(text)).transpose()?;
        let early = proposed.as_ref().map(|it| it.early(is_long));
        let mut caller = Caller::begin(secret, self.is_clear, early, begun)?;
        caller.share(self.places.len());
        let mut said = vec![None; self.places.len()];
        loop {
            self.check_stop()?;
            let now = self.link.now();
            self.call(&mut caller, now, &mut said);
            // Of one place among several it tells nothing of the others.
            let why = self.link.trouble().filter(|_| self.places.len() == 1);
            told(now.since(begun), why);
            if let Some(Met { mut session, opened, round }) = self.listen(&mut caller, now)? {
                // What the path did not take while a session ended may have been its outage.
                self.packet = PACKETS[0];
                let (_, before) = said[self.to].unwrap_or((now, now));
                (self.round, self.answer) = (now.since(before), round);
                self.account.book_call(begun, now, self.round);
                if let (Some(at), Some(proposed)) = (opened, proposed.take()) {
                    self.begin(&mut session, proposed.opened(at, self.answer, is_long));
                }
                return Ok(session);
            }
            let until = caller.due().min(self.link.now() + NAP);
            self.link.wait(until);
        }
    }

    /// Says what the caller has to say now, if anything, to the next place. `said` is when each was called last, and the time before.
    fn call(&mut self, caller: &mut Caller, now: Time, said: &mut [Option<(Time, Time)>]) {
        let (is_next, is_shared) = (caller.has_called(), caller.is_shared());
        let Some((words, times)) = caller.say(now) else { return };
        match is_next {
            true if is_shared => self.to = (self.to + 1) % self.places.len(),
            true => {}
            false => said.fill(None),
        }
        said[self.to] = Some((now, said[self.to].map_or(now, |(last, _)| last)));
        let to = self.to();
        self.link.was_too_long = false;
        (0..times).for_each(|_| self.link.put(to, |out| out.extend(words)));
        self.link.flush();
        if self.link.was_too_long {
            caller.hurry(now);
        }
    }

    /// Takes in what has come. What comes behind the answer that makes the session is kept for its connection.
    fn listen(&mut self, caller: &mut Caller, now: Time) -> Result<Option<Met>, MoverError> {
        let Flow { link, places, to, kept, .. } = self;
        let mut met = Ok(None);
        kept.clear();
        while link.receive(|from, at, datagram| match &met {
            Ok(None) => {
                let Some(place) = places.iter().position(|it| same(from, *it)) else { return };
                met = caller.hear(now, datagram);
                if matches!(met, Ok(Some(_))) || !caller.has_called() {
                    // It goes on with who has answered.
                    *to = place;
                    caller.share(1);
                }
            }
            _ if !same(from, places[*to]) => {}
            Ok(Some(_)) if kept.len() < MOST_KEPT => kept.push((at, datagram.to_vec())),
            _ => {}
        })? {}
        met
    }

    /// The receiver answers the OPEN that it has got. A sealed word lets it know that it was said now, and not once before.
    fn begin(&mut self, session: &mut Session, connection: Connection) {
        let to = self.to();
        session.say(&mut self.link, to, connection.ports(), &Packet::Keepalive, &[]);
        self.link.flush();
        self.begun = Some(connection);
    }
}
