//! What an end sends: the stream, cut into transfers.

use super::{ACTIVE, LISTENING};
use crate::netblt::connection::{Connection, Ending, Half, Out};
use crate::netblt::habits::Habits;
use crate::netblt::wire::{self, Dialect, Packet, Ports, Terms};
use crate::protocol::Unit;
use crate::{Counters, Extent, Held};
use std::collections::VecDeque;
use trunkline_core::{Span, Time};

/// For how long an end asks one that does not answer.
const PATIENCE: Span = Span::from_secs(600);
/// Packets of a stream from which copies of the OPEN lead it (a choice).
const LONG: u64 = 64;

/// The stream that is to be sent, and the connection that carries the message that is on.
#[derive(Debug)]
pub(super) struct Outward {
    terms: Terms,
    habits: Habits,
    /// Places in the stream: handed over; the ends of messages; where the one that is on begins.
    offered: u64,
    ends: VecDeque<u64>,
    from: u64,
    /// Where the message that is being handed over begins.
    message: u64,
    on: Option<On>,
    /// Connections whose data are confirmed, which answer repeats.
    past: VecDeque<Connection>,
    uid: u32,
    /// Units of the transfers before.
    before: u64,
    resent: u64,
    sent: u64,
    unasked: Option<Time>,
    /// How long a round trip takes, as the latest connection found.
    round: Option<Span>,
    dead: bool,
}

/// The transfer that is on.
#[derive(Debug)]
struct On {
    connection: Connection,
    /// Whether an OPEN is filled up to the length of a data packet.
    is_led: bool,
    /// Bytes put into buffers.
    filled: u64,
    /// When each packet of the buffers that are not released was first sent; the first is buffer `base`.
    firsts: VecDeque<Vec<Time>>,
    base: u64,
    /// Buffers released behind that one.
    released: Vec<u64>,
    /// Whether the last buffer is filled.
    is_whole: bool,
}

impl Outward {
    pub fn new(terms: Terms, habits: Habits) -> Outward {
        Outward {
            terms,
            habits,
            offered: 0,
            ends: VecDeque::new(),
            from: 0,
            message: 0,
            on: None,
            past: VecDeque::new(),
            uid: 0,
            before: 0,
            resent: 0,
            sent: 0,
            unasked: None,
            round: None,
            dead: false,
        }
    }

    /// Packets that so many bytes more make whole.
    pub fn units_of(&self, bytes: u32, end: bool) -> u64 {
        let packet = u64::from(self.terms.packet);
        let (before, all) =
            (self.offered - self.message, self.offered - self.message + u64::from(bytes));
        let whole = all / packet - before / packet;
        let rest = end && (all % packet > 0 || all == 0);
        whole + u64::from(rest)
    }

    pub fn offer(&mut self, now: Time, data: Extent, end: bool) {
        if data.len == 0 && !end {
            return;
        }
        self.offered += u64::from(data.len);
        if end {
            self.ends.push_back(self.offered);
            self.message = self.offered;
        }
        self.fill(now);
    }

    /// Opens a connection if there is something for it, and fills its buffers.
    fn fill(&mut self, now: Time) {
        let enough = u64::from(self.terms.buffer);
        let is_message = !self.ends.is_empty() || self.offered - self.from >= enough;
        if self.on.is_none() && is_message && !self.dead {
            self.on = Some(self.open(now));
        }
        let end = self.ends.front().copied();
        let Some(on) = &mut self.on else { return };
        let Some(sender) = on.connection.sender() else { return };
        while sender.wants().is_some() && !on.is_whole {
            let start = self.from + on.filled;
            let size = u64::from(sender.buffer_size());
            let there = end.unwrap_or(self.offered) - start;
            let last = end.is_some() && there <= size;
            if !last && there < size {
                return;
            }
            let bytes = there.min(size);
            sender.fill(bytes as u32, last);
            on.filled += bytes;
            on.is_whole = last;
            on.firsts.push_back(Vec::new());
        }
    }

    /// Buffers that may be under way: of a message whose end is known no more than it has. GOs for all others would be several packets
    /// at once, which no short queue takes, and all would have to be acknowledged.
    fn outstanding(&self) -> u16 {
        let size = u64::from(self.terms.buffer.max(1));
        let all = self.ends.front().map(|end| (end - self.from).div_ceil(size).max(1));
        let most = self.terms.outstanding;
        all.and_then(|it| u16::try_from(it).ok()).map_or(most, |it| it.min(most))
    }

    fn open(&mut self, now: Time) -> On {
        self.uid += 1;
        let local = ACTIVE.0 + (self.uid % u32::from(ACTIVE.1)) as u16;
        let ports = Ports { local, foreign: LISTENING };
        let outstanding = self.outstanding();
        let terms = Terms { uid: self.uid, write: true, outstanding, ..self.terms.clone() };
        let connection = Connection::open(now, terms, ports, self.habits);
        let known = self.round.filter(|_| self.habits.rate.is_ours());
        let connection = connection.expecting(known.unwrap_or_default());
        // Beside less than a few buffers the copies would be much.
        let is_led = self.offered - self.from >= LONG * u64::from(self.terms.packet);
        On {
            connection: if is_led { connection.leading() } else { connection },
            is_led,
            filled: 0,
            firsts: VecDeque::new(),
            base: 0,
            released: Vec::new(),
            is_whole: false,
        }
    }

    /// A packet has come. Answers whether it is of a connection that there is.
    pub fn receive(&mut self, now: Time, ports: Ports, packet: &Packet) -> bool {
        let past = self.past.iter_mut().find(|it| it.ports() == ports);
        if let Some(past) = past {
            past.receive(now, packet, true);
            self.past.retain(|it| it.ending().is_none());
            return true;
        }
        let Some(on) = self.on.as_mut().filter(|on| on.connection.ports() == ports) else {
            return false;
        };
        on.connection.receive(now, packet, true);
        let round = on.connection.round();
        self.unasked = None;
        self.learn(round);
        self.progress(now);
        true
    }

    /// A connection of either way knows how long a round trip takes: the next one need not find out.
    pub fn learn(&mut self, round: Option<Span>) {
        self.round = round.or(self.round);
    }

    /// Takes back what is confirmed, and goes on to the next message after the last buffer.
    fn progress(&mut self, now: Time) {
        let Some(on) = &mut self.on else { return };
        if let Some(sender) = on.connection.sender() {
            while let Some(buffer) = sender.released() {
                on.released.push(buffer);
            }
        }
        while let Some(index) = on.released.iter().position(|&it| it == on.base) {
            on.released.swap_remove(index);
            on.base += 1;
            self.before += on.firsts.pop_front().map_or(0, |it| it.len() as u64);
        }
        self.end_of_connection(now);
        self.fill(now);
    }

    fn end_of_connection(&mut self, now: Time) {
        let Some(on) = &self.on else { return };
        let is_done = on.is_whole && on.firsts.is_empty();
        match on.connection.ending() {
            _ if is_done => {
                let Some(on) = self.on.take() else { return };
                self.from += on.filled;
                self.ends.pop_front();
                self.count(&on);
                if on.connection.ending().is_none() {
                    self.past.push_back(on.connection);
                }
            }
            Some(Ending::Unanswered) if on.filled == 0 => {
                let since = *self.unasked.get_or_insert(now);
                self.dead = now.since(since) >= PATIENCE;
                self.on = (!self.dead).then(|| self.open(now));
            }
            Some(_) => self.dead = true,
            None => {}
        }
    }

    fn count(&mut self, on: &On) {
        if let Some(Half::Sender(sender)) = on.connection.half() {
            self.resent += sender.sent.again;
            self.sent += sender.sent.packets;
        }
    }

    pub fn deadline(&self) -> Option<Time> {
        let on = self.on.as_ref().filter(|_| !self.dead).and_then(|on| on.connection.deadline());
        on.into_iter().chain(self.past.iter().filter_map(Connection::deadline)).min()
    }

    pub fn expire(&mut self, now: Time) {
        self.past.iter_mut().for_each(|it| it.expire(now));
        self.past.retain(|it| it.ending().is_none());
        if let Some(on) = self.on.as_mut().filter(|_| !self.dead) {
            on.connection.expire(now);
            self.progress(now);
        }
    }

    /// The next packet, with the stretch of the stream that it carries and the unit that this is.
    pub fn transmit(&mut self, now: Time) -> Option<(Ports, Out, Extent, Option<Unit>)> {
        for past in &mut self.past {
            if let Some(out) = past.transmit(now) {
                return Some((past.ports(), out, Extent::default(), None));
            }
        }
        self.fill(now);
        let (dead, from, before) = (self.dead, self.from, self.before);
        let on = self.on.as_mut().filter(|_| !dead)?;
        let out = on.connection.transmit(now)?;
        let ports = on.connection.ports();
        let sending = match &out {
            Out::Data(sending) => sending,
            Out::Packet(Packet::Open(_)) if on.is_led => {
                let padding = filling(self.habits.dialect, ports, &out);
                return Some((ports, out, Extent::new(from, padding), None));
            }
            // Hosts of a laboratory hold no data, and agree to no parity.
            Out::Packet(_) | Out::Parity(..) => {
                return Some((ports, out, Extent::default(), None));
            }
        };
        let terms = on.connection.terms();
        let offset = sending.buffer * u64::from(terms.buffer) + u64::from(sending.offset);
        let data = Extent::new(from + offset, sending.header.bytes.into());
        let index = (sending.buffer - on.base) as usize;
        let number = before
            + (sending.buffer - on.base) * u64::from(terms.packets())
            + u64::from(sending.header.packet);
        let firsts = &mut on.firsts[index];
        let first_sent = firsts.get(usize::from(sending.header.packet)).copied();
        if first_sent.is_none() {
            firsts.push(now);
        }
        let end = sending.header.last && sending.header.ends_buffer;
        let unit = Unit { number, end, eligible: now, first_sent };
        Some((ports, out, data, Some(unit)))
    }

    pub fn unsent(&self) -> u64 {
        let sender = self.on.as_ref().and_then(|on| Some((on, on.connection.half()?)));
        match sender {
            Some((on, Half::Sender(sender))) => {
                self.offered - self.from - on.filled + sender.unsent()
            }
            _ => self.offered - self.from,
        }
    }

    pub fn unanswered(&self) -> u64 {
        match self.on.as_ref().and_then(|on| on.connection.half()) {
            Some(Half::Sender(sender)) => sender.unanswered(),
            _ => 0,
        }
    }

    pub fn held(&self) -> Option<Held> {
        let on = self.on.as_ref()?;
        if on.connection.is_opening() {
            return Some(Held::Opening);
        }
        let Some(Half::Sender(sender)) = on.connection.half() else { return None };
        match (sender.is_repairing(), sender.unsent() > 0, sender.is_closed()) {
            (true, ..) => Some(Held::Recovery),
            (false, true, true) => Some(Held::Window),
            (false, true, false) => Some(Held::Pace),
            (false, false, _) if self.offered > self.from + on.filled => Some(Held::Window),
            _ => None,
        }
    }

    /// Two buffers: one is filled while the other is sent.
    pub fn room(&self) -> u64 {
        2 * u64::from(self.terms.buffer)
    }

    pub fn is_dead(&self) -> bool {
        self.dead
    }

    pub fn counters(&self) -> Counters {
        let (mut units, mut resent) = (self.sent, self.resent);
        if let Some(Half::Sender(sender)) = self.on.as_ref().and_then(|on| on.connection.half()) {
            units += sender.sent.packets;
            resent += sender.sent.again;
        }
        Counters { units, answered: self.before, resent, timeouts: 0 }
    }
}

/// Bytes that make an OPEN as long as the data packets that it proposes, and no longer: a path may cut what is.
fn filling(dialect: Dialect, ports: Ports, open: &Out) -> u32 {
    let Out::Packet(Packet::Open(terms)) = open else { return 0 };
    let mut octets = Vec::new();
    wire::encode(dialect, ports, &Packet::Open(terms.clone()), &mut octets);
    let whole = dialect.data_header() + usize::from(terms.packet);
    whole.saturating_sub(octets.len()) as u32
}
