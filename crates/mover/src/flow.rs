//! A sender's connection at work: packets out at its pace, data read ahead of it, time booked.

mod control;
mod meet;

use crate::account::{Account, Limit};
use crate::link::Link;
use crate::session::Session;
use crate::{MoverError, PACKETS};
use control::burst;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::thread::sleep;
use trunkline_core::{Span, Time};
use trunkline_transport::netblt::wire::{Packet, Ports, Read};
use trunkline_transport::netblt::{Connection, Ending, Held, Out, Sender, parity};

pub use control::Control;

/// Packets that leave before what has come is looked at.
const ROUND: usize = 256;
/// The longest that it sleeps, so that the user's wishes are heard.
const NAP: Span = Span::from_millis(50);
/// The longest while data are being read.
const SHORT_NAP: Span = Span::from_micros(500);
/// How long the receiver may take to tell the end by itself before it is asked.
const ASK: Span = Span::from_millis(200);
/// How often it says that it knows the end (a choice): if none comes, the receiver stays for some seconds.
const DONES: usize = 3;
/// The least time for which an OPEN is waited for before a shorter one is tried: it has been sent twice by then, and might be
/// sent a third time.
const PATIENCE: Span = Span::from_secs(3);
/// The least time without a confirmation, and the least number of data packets in it, after which a receiver whose words come
/// gets none of the data: the path does not take packets of this length any more. On longer paths it is ten round trips.
const SWALLOWED: (Span, u64) = (Span::from_secs(5), 256);
/// Seconds of silence after which a connection is given up, and the receiver called again.
const DEATH: u16 = 60;
/// Buffers under way at once: 90 MB.
const OUTSTANDING: u16 = 512;

/// A buffer read ahead.
pub(crate) struct Loaded {
    pub data: Vec<u8>,
    /// Whether it is the last of its connection.
    pub last: bool,
}

/// What a connection sends.
pub(crate) trait Feed {
    /// The next buffer, if it has been read.
    fn next(&mut self) -> Result<Option<Loaded>, MoverError>;

    /// A buffer, counted from 0, has been confirmed; these were its octets.
    fn confirmed(&mut self, buffer: u64, data: Vec<u8>);

    /// Says how far it is: data packets sent, and those of them sent again.
    fn tell(&mut self, now: Time, packets: (u64, u64));
}

/// Octets in memory, cut into buffers.
pub(crate) struct Octets<'a> {
    octets: &'a [u8],
    buffer: usize,
    at: usize,
}

impl<'a> Octets<'a> {
    pub fn new(octets: &'a [u8], buffer: u32) -> Octets<'a> {
        Octets { octets, buffer: buffer as usize, at: 0 }
    }

    /// Buffers that they fill.
    pub fn buffers(&self) -> u64 {
        self.octets.len().div_ceil(self.buffer).max(1) as u64
    }

    /// The next buffer, if there is one, and whether it is the last. It may be shorter than the others.
    pub fn take(&mut self) -> Option<(Vec<u8>, bool)> {
        if self.at > 0 && self.at >= self.octets.len() {
            return None;
        }
        let end = self.octets.len().min(self.at + self.buffer);
        let data = self.octets[self.at..end].to_vec();
        self.at += self.buffer;
        Some((data, self.at >= self.octets.len()))
    }
}

impl Feed for Octets<'_> {
    fn next(&mut self) -> Result<Option<Loaded>, MoverError> {
        Ok(self.take().map(|(data, last)| Loaded { data, last }))
    }

    fn confirmed(&mut self, _buffer: u64, _data: Vec<u8>) {}

    fn tell(&mut self, _now: Time, _packets: (u64, u64)) {}
}

/// How a connection ended, or did not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything has been confirmed.
    Done,
    /// The receiver does not know this session, or has been silent too long.
    Lost,
}

/// What came of an OPEN.
enum Opened {
    /// The connection, and what the receiver said.
    Answered(Box<Connection>, Vec<u8>),
    /// Nothing was heard for as long as was to be waited.
    Unanswered,
    /// The session is lost.
    Lost,
}

/// The calling end's side of the link: where to, by what secret, at what pace.
pub(crate) struct Flow<'a> {
    pub link: Link,
    /// The receiver's addresses, and the place among them of the one that is called or has answered.
    pub places: Vec<SocketAddr>,
    pub to: usize,
    /// Whether it wants to send in the clear.
    pub is_clear: bool,
    pub control: &'a Control,
    /// Octets of a buffer.
    pub buffer: u32,
    /// User octets of a packet.
    pub packet: u16,
    /// How long the receiver took to answer first words: at most, and as far as is known.
    pub round: Span,
    pub answer: Span,
    /// When it was heard last.
    pub heard: Time,
    pub account: Account,
    /// Data packets sent, and those of them sent again.
    pub packets: (u64, u64),
    /// What the receiver has said by itself about the end, until it is taken note of.
    pub told: Option<Vec<u8>>,
    /// If the end is waited for: when the receiver's first word on it would be here if it had nothing to do.
    pub end: Option<Time>,
    /// The connection whose OPEN went with the first words, if the receiver answers it, and what came with the answer to them.
    pub begun: Option<Connection>,
    pub kept: Vec<(Time, Vec<u8>)>,
}

impl<'a> Flow<'a> {
    /// One that has not begun: over a link, to the first of these places.
    pub fn new(
        (link, places): (Link, Vec<SocketAddr>),
        is_clear: bool,
        control: &'a Control,
        buffer: u32,
    ) -> Flow<'a> {
        Flow {
            link,
            places,
            to: 0,
            is_clear,
            control,
            buffer,
            packet: PACKETS[0],
            round: Span::ZERO,
            answer: Span::ZERO,
            heard: Time::ZERO,
            account: Account::default(),
            packets: (0, 0),
            told: None,
            end: None,
            begun: None,
            kept: Vec::new(),
        }
    }

    /// The receiver's address.
    fn to(&self) -> SocketAddr {
        self.places[self.to]
    }

    /// Opens a connection whose OPEN says this. Answers it with what the receiver says, or nothing if the session is lost. What
    /// the receiver says by itself about the end counts as its answer.
    ///
    /// If much is to follow, copies of the OPEN go with it, so that the receiver sees at what rate they come through.
    ///
    /// The OPEN is as long as data packets will be. If none of these is answered, the next are shorter: the path may not take them.
    pub fn open(
        &mut self,
        session: &mut Session,
        text: &[u8],
        is_long: bool,
    ) -> Result<Option<(Connection, Vec<u8>)>, MoverError> {
        loop {
            let shorter = PACKETS.into_iter().find(|&packet| packet < self.packet);
            let patience = shorter.map(|_| PATIENCE.max(self.round.scaled(3, 1)));
            match (self.open_at_once(session, (text, is_long), patience)?, shorter) {
                (Opened::Unanswered, Some(shorter)) => self.packet = shorter,
                (Opened::Answered(connection, text), _) => return Ok(Some((*connection, text))),
                (Opened::Lost | Opened::Unanswered, _) => return Ok(None),
            }
        }
    }

    /// Opens a connection, or gives it up if there is no answer for so long.
    fn open_at_once(
        &mut self,
        session: &mut Session,
        (text, is_long): (&[u8], bool),
        patience: Option<Span>,
    ) -> Result<Opened, MoverError> {
        let begun = self.link.now();
        self.link.was_too_long = false;
        let mut connection = match self.begun.take() {
            Some(connection) => connection,
            None => self.proposed(text)?.connection(begun, self.answer, is_long),
        };
        while connection.is_opening() {
            if let Some(text) = self.told.take() {
                return Ok(Opened::Answered(Box::new(connection), text));
            }
            let now = self.link.now();
            let is_hopeless = |patience| now >= begun + patience || self.link.was_too_long;
            if patience.is_some_and(is_hopeless) {
                return Ok(Opened::Unanswered);
            }
            self.check_stop()?;
            if !self.turn(session, &mut connection, &mut BTreeMap::new())? {
                return Ok(Opened::Lost);
            }
            if connection.is_opening() {
                self.rest(&mut connection, NAP);
            }
            self.book_answer(now);
        }
        match connection.ending() {
            None if connection.terms().buffer != self.buffer => {
                Err(MoverError::Broken("buffers of another size"))
            }
            None => {
                let text = connection.terms().text.clone();
                Ok(Opened::Answered(Box::new(connection), text))
            }
            Some(ending) => self.ended(ending).map(|_| Opened::Lost),
        }
    }

    /// What the receiver says by itself about the end, if it says it soon. Meanwhile what `connection` has still to say is said.
    pub fn hear(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
    ) -> Result<Option<Vec<u8>>, MoverError> {
        let until = self.link.now() + ASK;
        while self.told.is_none() && self.link.now() < until {
            self.check_stop()?;
            let now = self.link.now();
            if !self.turn(session, connection, &mut BTreeMap::new())? {
                break;
            }
            if self.told.is_none() {
                self.rest(connection, until.since(now).min(NAP));
            }
            self.book_answer(now);
        }
        Ok(self.told.take())
    }

    /// Books the time since `before`, in which an answer was waited for.
    fn book_answer(&mut self, before: Time) {
        let now = self.link.now();
        self.account.book_end(before, now, self.end.unwrap_or(now));
    }

    /// Sends what `feed` has through a connection that is open, until all of it is confirmed or the receiver tells the end.
    pub fn send(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        feed: &mut dyn Feed,
    ) -> Result<Outcome, MoverError> {
        let mut buffers: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let (mut cap, mut before, earlier) = (self.control.cap(), self.link.now(), self.packets);
        let mut confirmed = (before, self.packets.0);
        self.link.was_too_long = false;
        loop {
            self.check_stop().inspect_err(|_| self.quit(session, connection))?;
            if self.control.cap() != cap {
                cap = self.control.cap();
                connection.sender().into_iter().for_each(|it| it.set_cap(burst(cap, self.packet)));
            }
            let filled = connection.sender().map(|sender| fill(sender, feed, &mut buffers));
            if let Some(Err(error)) = filled {
                self.quit(session, connection);
                return Err(error);
            }
            if !self.turn(session, connection, &mut buffers)? {
                return Ok(Outcome::Lost);
            }
            if self.told.is_some() {
                return Ok(Outcome::Done);
            }
            if let Some(ending) = connection.ending() {
                return self.ended(ending);
            }
            let Some(sender) = connection.sender() else { return Ok(Outcome::Lost) };
            let (sent, timer) = (sender.sent, sender.control_timer());
            self.packets = (earlier.0 + sent.packets + sent.again, earlier.1 + sent.again);
            while let Some(buffer) = sender.released() {
                feed.confirmed(buffer, buffers.remove(&buffer).unwrap_or_default());
                confirmed = (before, self.packets.0);
            }
            feed.tell(before, self.packets);
            if sender.is_finished() {
                return Ok(Outcome::Done);
            }
            let (limit, most) = held(sender.held());
            if self.link.was_too_long || self.are_swallowed(before, confirmed, timer) {
                return Ok(Outcome::Lost);
            }
            let worked = self.link.now();
            self.account.book(Limit::Processor, worked.since(before));
            let until = self.rest(connection, most);
            before = self.link.now();
            let sender = connection.sender().filter(|_| limit != Limit::Disk);
            let overdue = sender.and_then(|sender| sender.overdue(before));
            self.account.book_sleep(limit, overdue, (worked, until, before));
        }
    }

    /// Whether data vanish while the receiver's words come. `confirmed` is when something was confirmed last, and how many data
    /// packets had been sent by then.
    fn are_swallowed(&self, now: Time, confirmed: (Time, u64), timer: Span) -> bool {
        let patience = SWALLOWED.0.max(timer.scaled(10, 1));
        let is_heard = now <= self.heard + patience.scaled(1, 2);
        is_heard && now >= confirmed.0 + patience && self.packets.0 >= confirmed.1 + SWALLOWED.1
    }

    /// Takes in what has come and sends what is due. Answers whether the session still is. Of `buffers` that have been let go
    /// nothing is sent: when the receiver tells the end it has them all, though its word of some may have been lost.
    fn turn(
        &mut self,
        session: &mut Session,
        connection: &mut Connection,
        buffers: &mut BTreeMap<u64, Vec<u8>>,
    ) -> Result<bool, MoverError> {
        let (to, mut is_known) = (self.to(), true);
        let Flow { link, told, heard, kept, .. } = self;
        let mut take = |at, datagram: &[u8]| {
            is_known &= !session.is_unknown(datagram);
            match session.hear(datagram) {
                Some((Read { packet: Packet::Text(text), .. }, _)) => *told = Some(text),
                Some((read, _)) if read.ports == connection.ports().turned() => {
                    *heard = at;
                    connection.receive(at, &read.packet, true);
                }
                _ => {}
            }
        };
        kept.drain(..).for_each(|(at, datagram)| take(at, &datagram));
        while link.receive(|from, at, datagram| {
            if same(from, to) {
                take(at, datagram);
            }
        })? {}
        let now = self.link.now();
        if self.link.take_turned_away() {
            connection.sender().into_iter().for_each(|it| it.doubt(now));
        }
        if connection.deadline().is_some_and(|at| at <= now) {
            connection.expire(now);
        }
        for _ in 0..ROUND {
            let Some(out) = connection.transmit(now) else { break };
            let ports = connection.ports();
            match out {
                Out::Packet(packet) => {
                    session.say(&mut self.link, to, ports, &packet, &[]);
                }
                Out::Data(sending) => {
                    let start = sending.offset as usize;
                    let end = start + usize::from(sending.header.bytes);
                    let data = buffers.get(&sending.buffer).and_then(|it| it.get(start..end));
                    let Some(data) = data else { continue };
                    let packet = Packet::Data(sending.header);
                    session.say(&mut self.link, to, ports, &packet, data);
                }
                Out::Parity(head, buffer) => {
                    let Some(data) = buffers.get(&buffer) else { continue };
                    let mut sum = vec![0; head.bytes.into()];
                    parity::encode(head.row.into(), data, head.bytes.into(), &mut sum);
                    session.say(&mut self.link, to, ports, &Packet::Parity(head), &sum);
                }
            }
        }
        self.link.flush();
        Ok(is_known)
    }

    /// Sleeps for `most` at most, and so long at least that packets that come due meanwhile leave together. Answers until when it was to
    /// sleep at most.
    fn rest(&mut self, connection: &mut Connection, most: Span) -> Time {
        if let Some(sender) = connection.sender() {
            self.link.set_round(sender.control_timer());
            sender.set_slack(self.link.nap().scaled(2, 1));
        }
        let least = self.link.nap();
        let (now, due) = (self.link.now(), connection.deadline().unwrap_or(Time::NEVER));
        let until = due.max(now + least).min(now + most.max(least));
        self.link.wait(until);
        until
    }

    /// Tells the other end that this one goes.
    fn quit(&mut self, session: &mut Session, connection: &mut Connection) {
        let to = self.to();
        connection.quit(self.link.now(), b"stopped at the sending end");
        if let Some(Out::Packet(packet)) = connection.transmit(self.link.now()) {
            session.say(&mut self.link, to, connection.ports(), &packet, &[]);
            self.link.flush();
        }
    }

    /// Tells the other end that this one knows the end, more than once because this end goes and cannot say it again.
    pub fn say_done(&mut self, session: &mut Session, ports: Ports) {
        let to = self.to();
        for _ in 0..DONES {
            session.say(&mut self.link, to, ports, &Packet::Done, &[]);
        }
        self.link.flush();
    }

    fn ended(&self, ending: &Ending) -> Result<Outcome, MoverError> {
        let text = |reason: &[u8]| MoverError::Gone(String::from_utf8_lossy(reason).into_owned());
        match ending {
            Ending::Done => Ok(Outcome::Done),
            Ending::Unanswered | Ending::Dead => Ok(Outcome::Lost),
            Ending::Refused(why) | Ending::Quit(why) | Ending::Aborted(why) => Err(text(why)),
            Ending::Left => Err(MoverError::Stopped),
            Ending::Broken(why) => Err(MoverError::Broken(why)),
        }
    }

    pub fn check_stop(&self) -> Result<(), MoverError> {
        if self.control.is_stopped() { Err(MoverError::Stopped) } else { Ok(()) }
    }

    /// Does nothing for so long, or until the user stops it. What comes meanwhile is passed over.
    pub fn pause(&mut self, pause: Span) -> Result<(), MoverError> {
        let before = self.link.now();
        while self.link.now() < before + pause {
            self.check_stop()?;
            sleep(NAP.min(pause).to_duration());
        }
        self.account.book(Limit::RoundTrips, self.link.now().since(before));
        Ok(())
    }
}

/// Hands the sender as many buffers as it can take and have been read.
fn fill(
    sender: &mut Sender,
    feed: &mut dyn Feed,
    buffers: &mut BTreeMap<u64, Vec<u8>>,
) -> Result<(), MoverError> {
    while let Some(number) = sender.wants() {
        let Some(loaded) = feed.next()? else { break };
        sender.fill(loaded.data.len() as u32, loaded.last);
        buffers.insert(number, loaded.data);
    }
    Ok(())
}

/// What a sender's waiting is booked under, and how long it may sleep.
fn held(held: Held) -> (Limit, Span) {
    match held {
        Held::Pace => (Limit::Path, NAP),
        Held::Cap => (Limit::Cap, NAP),
        Held::Client => (Limit::Disk, SHORT_NAP),
        Held::Go => (Limit::Receiver, NAP),
        Held::Confirmation => (Limit::RoundTrips, NAP),
    }
}

/// Whether two addresses are one host's port, be it written as IPv4 or IPv6.
fn same(a: SocketAddr, b: SocketAddr) -> bool {
    (a.ip().to_canonical(), a.port()) == (b.ip().to_canonical(), b.port())
}

#[cfg(test)]
mod tests;
