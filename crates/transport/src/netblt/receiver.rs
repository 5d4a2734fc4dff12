//! The receiving half: it lets the sender send buffers, asks again for what is missing, and says what it has.
//!
//! All recovery begins here. A buffer's data timer runs for as long as its packets should take at the pace at which packets
//! come; when it runs out, the missing packets are asked for. No packet that overtakes another makes a request by itself
//! (RFC 1030 §7).

mod beginning;
mod opening;
mod parity;
mod short;
mod waiting;

use super::habits::RateLaw;
use super::incoming::{Incoming, Phase};
use super::law::{Arrival, Law, on_path};
use super::log::Log;
use super::terms::SPREAD;
use super::timers::{Arrivals, ControlTimer};
use super::wire::{Burst, COMMON, Data, Dialect, Message, NullAck, Said, Terms};
use beginning::Beginning;
use std::collections::{BTreeSet, VecDeque};
use trunkline_core::{Span, Time};

/// Where the data of a packet belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// The buffer, counted from 0.
    pub buffer: u64,
    /// The packet.
    pub packet: u16,
    /// The offset in the buffer, in bytes.
    pub offset: u32,
}

/// A buffer that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    /// Its number, counted from 0.
    pub buffer: u64,
    /// Its bytes.
    pub bytes: u32,
    /// Whether it is the last.
    pub last: bool,
}

/// Packets of a buffer that have not come, and all that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holes {
    /// The numbers of those.
    pub missing: Vec<u16>,
    /// Bytes of the whole buffer.
    pub bytes: u32,
}

/// What a receiver has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Packets that came and were kept.
    pub packets: u64,
    /// Packets that had come before.
    pub copies: u64,
    /// Packets that no buffer was waiting for, or that contradict the terms.
    pub strays: u64,
    /// Packets asked for again.
    pub requested: u64,
    /// Data timers that ran out.
    pub data_timeouts: u64,
    /// Control timers that ran out.
    pub control_timeouts: u64,
}

/// The receiving half of a connection.
#[derive(Debug)]
pub struct Receiver {
    dialect: Dialect,
    terms: Terms,
    packets: u32,
    tail: u16,
    /// A buffer, counted from 0, that both ends know to be shorter than the others, and its bytes.
    short: Option<(u64, u32)>,
    /// The number of the first of `buffers`, and how many there were before it.
    base: u32,
    done: u64,
    /// Buffers that have a GO, in order.
    buffers: VecDeque<Incoming>,
    /// Buffers that the client can take and that have no GO.
    provided: u64,
    /// Buffers with a GO that are not whole.
    open: u32,
    /// Packets asked for again that have not come.
    requested: u32,
    /// The first buffer of which nothing has been seen, nor of any behind it.
    untouched: u32,
    last: Option<u32>,
    whole: VecDeque<Whole>,
    timers: BTreeSet<(Time, u32)>,
    /// When timers were last held against the pace of today.
    reviewed: Time,
    log: Log,
    control: ControlTimer,
    control_due: Option<Time>,
    /// When the latest data packet came.
    came: Time,
    arrivals: Arrivals,
    law: Box<dyn Law>,
    /// The burst that the sender told first, if the law had offered nothing until then.
    told: Option<Burst>,
    beginning: Beginning,
    /// The message that carries the newest offer, until it is acknowledged.
    offered: Option<u16>,
    /// The pace that the sender has told since it took up the newest offer, and the newest message that it had heard then.
    kept: Option<(Burst, u16)>,
    keepalive: Span,
    /// What has happened.
    pub received: Received,
}

impl Receiver {
    /// The receiving half of a connection on `terms` that says something at least every `keepalive`.
    pub fn new(dialect: Dialect, terms: &Terms, rate: RateLaw, keepalive: Span) -> Receiver {
        let law = rate.law(terms, dialect);
        let packets = terms.packets();
        let tail = terms.buffer - (packets - 1) * u32::from(terms.packet);
        let room = dialect.data_header() + usize::from(terms.packet) - COMMON;
        Receiver {
            dialect,
            terms: terms.clone(),
            packets,
            tail: tail as u16,
            short: None,
            base: dialect.first_buffer(),
            done: 0,
            buffers: VecDeque::new(),
            provided: 0,
            open: 0,
            requested: 0,
            untouched: dialect.first_buffer(),
            last: None,
            whole: VecDeque::new(),
            timers: BTreeSet::new(),
            reviewed: Time::ZERO,
            log: match rate.is_ours() {
                true => Log::with_credit(dialect, room, terms.buffer),
                false => Log::new(dialect, room),
            },
            control: opening::first_timer(terms, rate, keepalive),
            control_due: None,
            came: Time::ZERO,
            arrivals: Arrivals::new(spacing(&*law).max(law.quantum())),
            law,
            told: None,
            beginning: Beginning::default(),
            offered: None,
            kept: None,
            keepalive,
            received: Received::default(),
        }
    }

    /// The client can take so many buffers more.
    pub fn provide(&mut self, buffers: u64) {
        self.provided += buffers;
        self.go();
    }

    /// Lets the sender send as many buffers as there is room for.
    fn go(&mut self) {
        let most = u32::from(self.terms.outstanding);
        let spread = SPREAD as usize * most as usize;
        let has_room = |it: &Receiver| it.open < most && it.buffers.len() < spread;
        while self.last.is_none() && self.provided > 0 && has_room(self) && self.log.has_room() {
            let number = self.base.wrapping_add(self.buffers.len() as u32);
            let sequence = self.log.add(number, Said::Go);
            let (packets, tail) = self.size(self.done + self.buffers.len() as u64);
            self.buffers.push_back(Incoming::new(packets, tail, sequence));
            self.provided -= 1;
            self.open += 1;
        }
    }

    /// A data packet has come, whose data are right if `is_right`. Answers where they belong, if they are new.
    pub fn receive(&mut self, now: Time, data: &Data, is_right: bool) -> Option<Placed> {
        let told = (!self.dialect.is_classic()).then_some(data.burst);
        self.acknowledged(now, data.ack, told, false);
        self.is_capped_anew(data.ack, data.burst);
        self.is_probed(now);
        self.log.paid(data.bytes, self.control.least(), self.control.round());
        if !is_right {
            return None;
        }
        let index = data.buffer.wrapping_sub(self.base) as usize;
        let Some(buffer) = self.buffers.get_mut(index) else {
            let is_old = data.buffer.wrapping_sub(self.base) > u32::MAX / 2;
            self.strays_or_copy(now, data, is_old);
            return None;
        };
        let was_asked = buffer.was_asked(data.packet);
        let taken = match self.contradicts(data.buffer, data.last) {
            true => None,
            false => self.buffers[index].take(data, self.terms.packet).ok(),
        };
        match taken {
            None => {
                self.received.strays += 1;
                None
            }
            Some(false) => {
                self.strays_or_copy(now, data, true);
                None
            }
            Some(true) => {
                let buffer = self.done + index as u64;
                self.took(now, data, index, !was_asked);
                let offset = u32::from(data.packet) * u32::from(self.terms.packet);
                Some(Placed { buffer, packet: data.packet, offset })
            }
        }
    }

    fn strays_or_copy(&mut self, now: Time, data: &Data, is_copy: bool) {
        match is_copy {
            true => self.received.copies += 1,
            false => self.received.strays += 1,
        }
        self.tell_law(now, data, None);
    }

    /// Whether a packet is of a buffer behind the last one, or says that another is the last.
    fn contradicts(&self, buffer: u32, is_last: bool) -> bool {
        match self.last {
            Some(last) => is_last != (buffer == last) || buffer > last,
            None => is_last && buffer.wrapping_add(1) < self.untouched,
        }
    }

    fn tell_law(&mut self, at: Time, data: &Data, place: Option<u64>) {
        let bytes = on_path(data.bytes, self.dialect);
        self.law.arrived(&Arrival { at, bytes, place });
    }

    /// A new packet of the buffer at `index` has been kept.
    fn took(&mut self, now: Time, data: &Data, index: usize, by_itself: bool) {
        self.received.packets += 1;
        self.hear_pace(data.burst);
        self.guess_pace(self.beginning.lasts(now));
        let place = self.place(self.done + index as u64, data.packet);
        self.tell_law(now, data, by_itself.then_some(place));
        if by_itself {
            self.beginning.came(now, place);
        }
        self.arrivals.came(now, data.buffer, data.packet.into());
        self.review(now);
        if data.last && self.last.is_none() {
            self.found_last(data.buffer);
        }
        let buffer = &mut self.buffers[index];
        if !by_itself {
            buffer.requested -= 1;
            self.requested -= 1;
        }
        let touched = if self.dialect.is_classic() { data.buffer } else { data.touched };
        self.pass(now, data.buffer, touched);
        let buffer = &mut self.buffers[index];
        if buffer.is_whole() {
            return self.completed(index);
        }
        if matches!(buffer.phase, Phase::Acked | Phase::Receiving) {
            buffer.phase = Phase::Receiving;
            self.set_timer(now, index);
        }
    }

    /// A packet of buffer `seen` has come, and something up to `touched` has been sent: those before are behind the
    /// sender.
    fn pass(&mut self, now: Time, seen: u32, touched: u32) {
        let most = self.base.wrapping_add(self.buffers.len() as u32 - 1);
        let touched = if touched.wrapping_sub(self.base) > u32::MAX / 2 { seen } else { touched };
        let touched = seen.max(touched).min(most);
        while self.untouched <= touched {
            let previous = self.untouched.wrapping_sub(1).wrapping_sub(self.base) as usize;
            self.untouched += 1;
            let Some(buffer) = self.buffers.get_mut(previous) else { continue };
            buffer.is_passed = true;
            if buffer.phase == Phase::Acked {
                buffer.phase = Phase::Receiving;
            }
            if buffer.phase == Phase::Receiving {
                self.set_timer(now, previous);
            }
        }
        let index = touched.wrapping_sub(self.base) as usize;
        if self.buffers.get(index).is_some_and(|it| it.phase == Phase::Acked) {
            self.buffers[index].phase = Phase::Receiving;
            self.set_timer(now, index);
        }
    }

    /// The last buffer is known: those behind it do not exist.
    fn found_last(&mut self, last: u32) {
        self.last = Some(last);
        let keep = last.wrapping_sub(self.base) as usize + 1;
        while self.buffers.len() > keep {
            let number = self.base.wrapping_add(self.buffers.len() as u32 - 1);
            let Some(buffer) = self.buffers.pop_back() else { break };
            self.open -= u32::from(buffer.phase != Phase::Received);
            self.requested -= buffer.requested;
            if let Some(at) = buffer.timer {
                self.timers.remove(&(at, number));
            }
        }
    }

    /// The buffer at `index` has all its packets.
    fn completed(&mut self, index: usize) {
        let number = self.base.wrapping_add(index as u32);
        self.unset_timer(index);
        let buffer = &mut self.buffers[index];
        buffer.phase = Phase::Received;
        self.requested -= std::mem::take(&mut buffer.requested);
        let bytes = buffer.bytes(self.terms.packet);
        let last = self.last == Some(number);
        self.whole.push_back(Whole { buffer: self.done + index as u64, bytes, last });
        self.open -= 1;
        while self.buffers.front().is_some_and(|it| it.phase == Phase::Received) {
            self.buffers.pop_front();
            self.base = self.base.wrapping_add(1);
            self.done += 1;
        }
        let timer = u16::try_from(self.control.value().as_nanos() / 1_000_000);
        let said = Said::Ok { offer: self.law.offer(), timer: timer.unwrap_or(u16::MAX) };
        // It may have to wait for room only if the other end never acknowledges; then the connection dies.
        self.log.add(number, said);
        self.go();
    }

    /// The next buffer that is whole, in the order in which they became so.
    pub fn take(&mut self) -> Option<Whole> {
        self.whole.pop_front()
    }

    /// All control messages up to `high` have come there.
    fn acknowledged(&mut self, now: Time, high: u16, told: Option<Burst>, by_null_ack: bool) {
        if self.log.acknowledge(high) == 0 {
            return self.is_missed(now, high);
        }
        if let Some(round) = self.control.answered(now, high) {
            self.law.round(round);
            self.guess_pace(round);
        }
        if self.offered.is_some_and(|it| high.wrapping_sub(it) < 1 << 15) {
            self.offered = None;
            self.beginning.ends();
            self.kept = told.map(|burst| (burst, high));
            self.law.taken_up(told);
        }
        self.control_due = (!self.log.is_empty()).then(|| now + self.control.value());
        for index in 0..self.buffers.len() {
            let buffer = &mut self.buffers[index];
            let Phase::AckWait(number) = buffer.phase else { continue };
            if high.wrapping_sub(number) >= 1 << 15 {
                continue;
            }
            buffer.phase = if buffer.is_touched() { Phase::Receiving } else { Phase::Acked };
            self.start_timer(now, index, by_null_ack);
        }
        self.go();
    }

    /// A NULL-ACK has come.
    pub fn hear(&mut self, now: Time, ack: &NullAck) {
        self.hear_pace(ack.burst);
        self.acknowledged(now, ack.ack, Some(ack.burst), true);
        self.arrivals.interrupted();
        self.review(now);
        if !self.dialect.is_classic() && !self.buffers.is_empty() && ack.touched >= self.base {
            self.pass(now, ack.touched, ack.touched);
        }
    }

    /// When [`expire`](Receiver::expire) is to be called.
    pub fn deadline(&self) -> Option<Time> {
        self.timers.first().map(|&(at, _)| at).into_iter().chain(self.control_due).min()
    }

    /// Asks again for what is due.
    pub fn expire(&mut self, now: Time) {
        if self.control_due.is_some_and(|due| due <= now) {
            self.received.control_timeouts += 1;
            self.control.expired(now);
            self.log.expired();
            self.control_due = Some(now + self.control.value());
        }
        while let Some(&(at, number)) = self.timers.first()
            && at <= now
        {
            let index = number.wrapping_sub(self.base) as usize;
            if !self.log.has_room() {
                self.arm(now + self.control.value(), index);
                continue;
            }
            self.unset_timer(index);
            let absent = self.overdue(now, index);
            match absent.is_empty() {
                true => self.wait_on(now, index),
                false => self.ask_again(now, index, &absent),
            }
        }
    }

    /// Asks for these packets of a buffer, the first of those that have not come.
    fn ask_again(&mut self, now: Time, index: usize, absent: &[u16]) {
        self.law.ended(now);
        self.received.data_timeouts += 1;
        self.arrivals.interrupted();
        let number = self.base.wrapping_add(index as u32);
        let most = self.log.most_missing();
        let buffer = &mut self.buffers[index];
        self.received.requested += absent.len() as u64;
        // Of a buffer that has not been begun nothing comes for being asked for: the sender is only slow.
        let coming = if number < self.untouched { absent.len() as u32 } else { 0 };
        self.requested = self.requested - buffer.requested + coming;
        buffer.requested = coming;
        buffer.asked = absent.last().map_or(0, |&it| u32::from(it) + 1);
        // If all was asked for, what comes from now on may have been.
        buffer.is_passed |= absent.len() as u32 == buffer.missing();
        for part in absent.chunks(most) {
            let offer = self.law.offer();
            let sequence = self.log.add(number, Said::Resend { offer, missing: part.to_vec() });
            buffer.phase = Phase::AckWait(sequence);
        }
    }

    /// The messages of the next CONTROL packet, if one is to be sent.
    pub fn transmit(&mut self, now: Time) -> Option<Vec<Message>> {
        if self.can_offer() && self.law.is_new() {
            self.offered = Some(self.say_offer());
        }
        if !self.log.is_due() {
            return None;
        }
        if self.log.is_fresh() {
            self.control.sent(now, self.log.newest());
        }
        self.beginning.begins(now);
        if self.control_due.is_none() {
            self.control_due = Some(now + self.control.value());
        }
        Some(self.log.compose())
    }

    /// Whether a message may carry an offer and nothing else.
    fn can_offer(&self) -> bool {
        let is_said =
            if self.dialect.is_classic() { self.done > 0 } else { !self.buffers.is_empty() };
        is_said && self.last.is_none() && self.log.has_room()
    }

    /// Carries the newest offer. RFC 998 has no message for that alone: an OK is said again. Later versions have offers
    /// in each RESEND, which may ask for nothing.
    fn say_offer(&mut self) -> u16 {
        let offer = self.law.offer();
        let said = match self.dialect.is_classic() {
            true => Said::Ok { offer, timer: u16::MAX },
            false => Said::Resend { offer, missing: Vec::new() },
        };
        self.log.add(self.base.wrapping_sub(u32::from(self.dialect.is_classic())), said)
    }

    /// Whether it would let the sender send more, if its client could take it.
    pub fn is_starved(&self) -> bool {
        let most = u32::from(self.terms.outstanding);
        self.provided == 0 && self.last.is_none() && self.open < most
    }

    /// The smoothed round trip; a guess before one is measured.
    pub fn round(&self) -> Span {
        self.control.round()
    }

    /// The smoothed round trip, if one has been measured.
    pub fn measured(&self) -> Option<Span> {
        self.control.measured()
    }

    /// Whether all buffers have come and all messages have been acknowledged.
    pub fn is_finished(&self) -> bool {
        self.last.is_some() && self.buffers.is_empty() && self.log.is_empty()
    }
}

/// The time from packet to packet at the pace that a law offers.
fn spacing(law: &dyn Law) -> Span {
    apart(law.offer())
}

/// The time from packet to packet of evenly spaced bursts.
fn apart(burst: Burst) -> Span {
    Span::from_nanos(u64::from(burst.interval) * 1_000_000 / u64::from(burst.size.max(1)))
}
