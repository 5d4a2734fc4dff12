//! The sending half: it sends the buffers that the receiver asked for, in the order of their numbers, what is asked for again
//! before what is new, at the pace that was agreed on. It keeps no data: a buffer stays its client's until the OK.

mod heard;
mod silence;
mod tail;
mod young;

use super::pace::{Pace, Start};
use super::serial::Heard;
use super::terms::SPREAD;
use super::wire::{Burst, Data, Dialect, NullAck, Terms};
use silence::Silence;
use std::collections::{BTreeSet, VecDeque};
use tail::Tail;
use trunkline_core::{Span, Time};
use young::Young;

/// After how long without data a control message is acknowledged by itself, unless half a burst interval is longer.
const PROMPT: Span = Span::from_millis(10);
/// Evenly spaced packets that are further apart carry no acknowledgements: each goes by itself, at once (a choice).
const SOON: Span = Span::from_millis(1);
/// The longest time between two reminders of a path that answers sooner (a choice).
const REMIND: Span = Span::from_secs(1);
/// The part of the time from packet to packet after which the first reminder goes at the soonest, and the part of a wait after which
/// the next does while nothing has told the line's pace (choices): a line that is slow is not to be filled with what asks why nothing
/// comes.
const PART: u64 = 16;
const WAITED: u64 = 4;

/// A buffer on its way out.
#[derive(Debug, Clone, Default)]
struct Outgoing {
    /// Whether the receiver has asked for it.
    allowed: bool,
    /// Its bytes, once the client has filled it, and whether it is the last.
    filled: Option<(u32, bool)>,
    /// Packets that have been sent at least once.
    sent: u32,
    /// Whether the receiver has it.
    confirmed: bool,
    /// Messages about it that came more than once since it has been sent.
    copies: u32,
}

/// A data packet to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// Its header; the checksum of the data is the driver's to fill in.
    pub header: Data,
    /// The buffer, counted from 0.
    pub buffer: u64,
    /// The offset of the data in the buffer, in bytes.
    pub offset: u32,
    /// Whether it was sent before.
    pub again: bool,
}

/// What a sender has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Data packets sent for the first time.
    pub packets: u64,
    /// Data packets sent again, and parity.
    pub again: u64,
    /// Control messages that came more than once.
    pub copies: u64,
}

/// What a sender waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// The pace that the receiver offers.
    Pace,
    /// The pace that this end keeps at most.
    Cap,
    /// The client, who has filled no buffer.
    Client,
    /// The receiver, who lets no buffer be sent.
    Go,
    /// Word that what was sent has come.
    Confirmation,
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct Sender {
    dialect: Dialect,
    terms: Terms,
    /// The fastest that this end sends, whatever it is offered, and the newest offer.
    cap: Burst,
    offer: Burst,
    heard: Heard,
    /// The number of the first of `buffers`, once a GO has told it, and how many there were before.
    base: Option<u32>,
    done: u64,
    /// GOs that came before the first.
    early: Vec<u32>,
    buffers: VecDeque<Outgoing>,
    /// The place of the buffer of which new packets are sent.
    at: usize,
    /// Buffers filled so far, and whether the last of them is the last.
    filled: u64,
    ended: bool,
    /// Buffers filled and not confirmed, wherever they lie: those in transmission or recovery (RFC 1030 §3).
    open: u64,
    /// Packets asked for again: the buffer's number and the packet's.
    again: BTreeSet<(u32, u16)>,
    /// Packets sent again behind all that is new, which go once more while nothing else is to be sent.
    echo: BTreeSet<(u32, u16)>,
    /// What goes behind the last packet while nothing else is to be sent.
    tail: Tail,
    /// Packets that are lost by what the receiver asks for, and stretches of them that follow each other.
    lost: (u64, u64),
    young: Young,
    pace: Pace,
    /// The newest message whose offer has been taken up, and whether anything was offered.
    offered: u16,
    has_offer: bool,
    /// Packets sent up to the latest request, as long as nothing is offered.
    told: u64,
    /// When an acknowledgement goes out by itself.
    ack_due: Option<Time>,
    /// After how long without a packet an acknowledgement tells again what has been touched.
    remind: Span,
    /// When a packet of data last went, or the GOs were missed.
    went: Option<Time>,
    touched: u32,
    unsent: u64,
    unanswered: u64,
    released: VecDeque<u64>,
    /// What the receiver said that its control timer is.
    timer: Span,
    silence: Silence,
    /// What has happened.
    pub sent: Sent,
}

impl Sender {
    /// The sending half of a connection on `terms`.
    pub fn new(dialect: Dialect, terms: &Terms, start: Start, cap: Burst) -> Sender {
        let mut sender = Sender {
            dialect,
            terms: terms.clone(),
            cap,
            offer: start.burst,
            heard: Heard::default(),
            base: None,
            done: 0,
            early: Vec::new(),
            buffers: VecDeque::new(),
            at: 0,
            filled: 0,
            ended: false,
            open: 0,
            again: BTreeSet::new(),
            echo: BTreeSet::new(),
            tail: Tail::default(),
            lost: (0, 0),
            young: Young::new(Span::from_millis(start.burst.interval.into())),
            pace: Pace::new(&start),
            offered: 0,
            has_offer: false,
            told: 0,
            ack_due: None,
            remind: PROMPT,
            went: None,
            touched: 0,
            unsent: 0,
            unanswered: 0,
            released: VecDeque::new(),
            timer: Span::from_millis(100),
            silence: Silence::default(),
            sent: Sent::default(),
        };
        sender.take_offer(start.burst);
        sender
    }

    /// The number of the next buffer that the client may fill, if there is room for one.
    pub fn wants(&self) -> Option<u64> {
        let most = u64::from(self.terms.outstanding);
        let room = self.open < most && self.filled - self.done < SPREAD * most;
        (room && !self.ended).then_some(self.filled)
    }

    /// Bytes that a full buffer has.
    pub fn buffer_size(&self) -> u32 {
        self.terms.buffer
    }

    /// The client has filled the next buffer, all of it or, of the last and of one that the receiver knows to be shorter, so many bytes.
    pub fn fill(&mut self, bytes: u32, last: bool) {
        debug_assert!(self.wants().is_some() && bytes <= self.terms.buffer);
        let index = (self.filled - self.done) as usize;
        if self.buffers.len() <= index {
            self.buffers.resize_with(index + 1, Outgoing::default);
        }
        self.buffers[index].filled = Some((bytes, last));
        self.filled += 1;
        self.open += 1;
        self.unsent += u64::from(bytes);
        self.ended = last;
    }

    /// The next buffer that the receiver has and the client may forget. They come in no order.
    pub fn released(&mut self) -> Option<u64> {
        self.released.pop_front()
    }

    /// Sets the fastest that this end sends; an interval of 0 is no limit.
    pub fn set_cap(&mut self, cap: Burst) {
        self.cap = cap;
        self.take_offer(self.offer);
    }

    /// Sets the time that evenly spaced packets may be behind and be sent at once, for an end that sleeps so long; half a
    /// millisecond if nothing is set.
    pub fn set_slack(&mut self, slack: Span) {
        self.pace.set_slack(slack);
    }

    /// What it waits for while it sends nothing.
    pub fn held(&self) -> Held {
        if self.is_needed() {
            let is_capped = slower(self.offer, self.cap) != self.offer;
            return if is_capped { Held::Cap } else { Held::Pace };
        }
        match self.buffers.get(self.at).and_then(|buffer| buffer.filled) {
            Some(_) => Held::Go,
            None if self.ended => Held::Confirmation,
            None if self.wants().is_some() => Held::Client,
            None => Held::Go,
        }
    }

    /// Whether there is a packet to send, at any pace.
    fn could_send(&self) -> bool {
        self.is_needed() || self.tail.next().is_some() || self.tail.next_row().is_some()
    }

    /// Whether there is one that is not sent only because the line is free.
    fn is_needed(&self) -> bool {
        !self.again.is_empty() || !self.echo.is_empty() || self.next_new().is_some()
    }

    /// The next packet that was never sent: its buffer's place, and its number.
    fn next_new(&self) -> Option<(usize, u32)> {
        let buffer = self.buffers.get(self.at)?;
        buffer.filled.filter(|_| buffer.allowed && self.base.is_some())?;
        Some((self.at, buffer.sent))
    }

    /// When something is to be sent.
    pub fn deadline(&self) -> Option<Time> {
        let data = self.could_send().then(|| self.next_data());
        data.into_iter().chain(self.ack_due).min()
    }

    /// The next data packet, if one may be sent.
    pub fn transmit(&mut self, now: Time) -> Option<Sending> {
        let waits = self.next_data() > now;
        if waits || !self.is_needed() {
            // Who sends now and then in a silence, or has nothing to send, is not late.
            self.pace.waits(self.is_needed() && self.pace.next() > now);
        }
        if waits {
            return None;
        }
        let base = self.base?;
        let new = self.next_new().map(|(index, packet)| (base + index as u32, packet as u16));
        let again = self.again.first().copied();
        let (number, packet) = match (again, new) {
            (Some(again), Some(new)) => again.min(new),
            (again, new) => {
                let spare = || self.echo.first().copied().or_else(|| self.tail.next());
                again.or(new).or_else(spare)?
            }
        };
        let index = (number - base) as usize;
        let is_again = new != Some((number, packet));
        let (bytes, last) = self.buffers[index].filled?;
        match is_again {
            true => {
                self.sent_again((number, packet), new.is_none());
            }
            false => {
                self.sent_new(index, bytes);
                self.tail.is_new(now);
                self.young.sent(now, (number, packet));
            }
        }
        self.touched = self.touched.max(number);
        self.goes(now);
        let header = self.header(number, packet, (bytes, last));
        let offset = u32::from(packet) * u32::from(self.terms.packet);
        Some(Sending { header, buffer: self.done + index as u64, offset, again: is_again })
    }

    /// A packet of data or parity is sent.
    fn goes(&mut self, now: Time) {
        self.is_heard_next(now);
        self.pace.sent(now);
        self.find_tail(now);
        self.remind = PROMPT.max(self.pace.gap().scaled(1, PART));
        self.ack_due = self.reminder().then_some(now + self.remind);
        self.went = Some(now);
    }

    /// A packet is sent that had been sent before. In the end the line is free while the receiver's word is on its way, and one
    /// packet that is lost twice costs a round trip: if the path loses any, what was asked for goes twice, the second time behind all others.
    fn sent_again(&mut self, packet: (u32, u16), is_end: bool) {
        self.sent.again += 1;
        self.tail.is_sent(packet);
        let is_asked = self.again.remove(&packet);
        let has_lost = self.lost.0 > 0;
        match is_asked && is_end && has_lost && self.ended && self.pace.is_even() {
            true => self.echo.insert(packet),
            false => self.echo.remove(&packet),
        };
    }

    fn sent_new(&mut self, index: usize, bytes: u32) {
        let size = u32::from(self.terms.packet);
        let buffer = &mut self.buffers[index];
        let gone = u64::from((bytes - buffer.sent * size).min(size));
        self.unsent -= gone;
        self.unanswered += gone;
        self.sent.packets += 1;
        buffer.sent += 1;
        if buffer.sent == packets(bytes, self.terms.packet) {
            self.at = index + 1;
        }
    }

    fn header(&self, buffer: u32, packet: u16, (bytes, last): (u32, bool)) -> Data {
        let size = u32::from(self.terms.packet);
        let offset = u32::from(packet) * size;
        Data {
            ends_buffer: offset + size >= bytes,
            buffer,
            touched: self.touched,
            ack: self.heard.high(),
            packet,
            checksum: 0,
            last,
            burst: self.pace.burst(),
            bytes: (bytes - offset).min(size) as u16,
        }
    }

    /// The acknowledgement that is due by itself.
    pub fn take_ack(&mut self, now: Time) -> Option<NullAck> {
        self.ack_due.take_if(|due| *due <= now)?;
        if self.reminder() {
            let known = REMIND.max(self.timer).max(self.pace.gap());
            self.remind = self.remind.scaled(2, 1).min(known.max(self.unmeasured(now)));
            self.ack_due = Some(now + self.remind);
        }
        Some(self.ack())
    }

    /// Whether the receiver is to be reminded: it has let nothing be sent; or everything has been sent and not all is confirmed. In
    /// versions 4 and 5 it waits for nothing of which it does not know that it was sent, and the packet that told it may be lost.
    fn reminder(&self) -> bool {
        let is_waiting = !self.dialect.is_classic() && self.done < self.filled;
        self.base.is_none() && self.pace.is_even() || is_waiting && !self.could_send()
    }

    /// Whether a law of ours keeps the pace.
    pub(super) fn is_even(&self) -> bool {
        self.pace.is_even()
    }

    /// The part of the wait since data last went that the next reminder waits for: nothing if an offer has told the line's pace.
    fn unmeasured(&self, now: Time) -> Span {
        let since = self.went.filter(|_| !self.has_offer);
        since.map_or(Span::ZERO, |went| now.since(went).scaled(1, WAITED))
    }

    /// The GOs that follow an answer to the OPEN are missed if none has come for so long.
    pub(super) fn misses_after(&mut self, now: Time, patience: Span) {
        (self.remind, self.went) = (patience.clamp(PROMPT, REMIND), Some(now));
        self.ack_due = self.ack_due.or(Some(now + self.remind));
    }

    /// An acknowledgement.
    pub fn ack(&self) -> NullAck {
        let behind = self.base.map(|base| base.wrapping_add((self.filled - self.done) as u32));
        let last = self.ended && behind == Some(self.touched.wrapping_add(1));
        let (ack, burst) = (self.heard.high(), self.pace.burst());
        NullAck { touched: self.touched, ack, burst, last }
    }

    /// Whether the receiver has everything.
    pub fn is_finished(&self) -> bool {
        self.ended && self.done == self.filled
    }

    /// Bytes of filled buffers that have not been sent.
    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Bytes that have been sent, of buffers that are not confirmed.
    pub fn unanswered(&self) -> u64 {
        self.unanswered
    }

    /// Whether packets have been asked for again and not been sent.
    pub fn is_repairing(&self) -> bool {
        !self.again.is_empty()
    }

    /// Whether the receiver has not asked for the next buffer.
    pub fn is_closed(&self) -> bool {
        self.again.is_empty()
            && self.buffers.get(self.at).is_none_or(|it| it.filled.is_some() && !it.allowed)
    }

    /// What the receiver's control timer is.
    pub fn control_timer(&self) -> Span {
        self.timer
    }
}

/// Packets that so many bytes take; nothing takes one too.
fn packets(bytes: u32, packet: u16) -> u32 {
    bytes.div_ceil(packet.into()).max(1)
}

/// The burst of the lower rate. An interval of 0 is without limit.
fn slower(a: Burst, b: Burst) -> Burst {
    let per = |burst: Burst, other: Burst| u64::from(burst.size) * u64::from(other.interval);
    match (a.interval, b.interval) {
        (_, 0) => a,
        (0, _) => b,
        _ if per(a, b) <= per(b, a) => a,
        _ => b,
    }
}

#[cfg(test)]
mod tests;
