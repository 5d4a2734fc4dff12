//! The sending half.

use super::header::{SENDINGS, Says, encode, widen};
use super::timeout::Timeout;
use super::{Rule, Settings};
use crate::Extent;
use crate::Payload;
use crate::protocol::{Frame, Outgoing, Unit};
use crate::{Counters, Held};
use std::collections::VecDeque;
use trunkline_core::{Rate, Span, Time};

/// Time-outs in a row without any answer, and the time without one, after which the other end counts as dead
/// (a choice: an outage of minutes is borne, an end that has gone is not waited for all night).
const TIMEOUTS: u32 = 15;
const SILENCE: Span = Span::from_secs(600);

/// User data that are not yet cut into frames.
#[derive(Debug)]
struct Request {
    data: Extent,
    end: bool,
    offered: Time,
}

/// A frame that has been sent.
#[derive(Debug)]
struct Sent {
    data: Extent,
    end: bool,
    eligible: Time,
    first: Time,
    last: Time,
    /// The number of earlier sendings, modulo [`SENDINGS`]; and whether there were any.
    sending: u8,
    repeated: bool,
    answered: bool,
}

/// The frames to be sent, and those that have been sent and are not answered for.
#[derive(Debug)]
pub(super) struct Sender {
    rule: Rule,
    frame: u32,
    window: usize,
    /// Frames from the first that is not answered for on that the receiver can hold.
    buffer: usize,
    rate: Option<Rate>,
    timeout: Timeout,
    requests: VecDeque<Request>,
    unsent: u64,
    /// The number of the first frame of `flight`.
    base: u64,
    flight: VecDeque<Sent>,
    /// Frames of it without an answer, those of them that were sent again, and their bytes.
    open: usize,
    repeated: usize,
    bytes: u64,
    /// Numbers of frames to be sent again.
    again: VecDeque<u64>,
    /// Sendings in order, each with its frame's number: those that are answered for or repeated since are stale.
    timers: VecDeque<(Time, u64)>,
    /// Since when the window has been open.
    opened: Time,
    /// When a sender that keeps to a rate may send next.
    free: Time,
    /// When an answer last brought something new.
    heard: Time,
    in_row: u32,
    dead: bool,
    pub counters: Counters,
}

impl Sender {
    pub fn new(rule: Rule, settings: &Settings) -> Sender {
        Sender {
            rule,
            frame: settings.frame,
            window: settings.frames,
            buffer: settings.buffer,
            rate: settings.rate,
            timeout: Timeout::new(settings.timeout),
            requests: VecDeque::new(),
            unsent: 0,
            base: 0,
            flight: VecDeque::new(),
            open: 0,
            repeated: 0,
            bytes: 0,
            again: VecDeque::new(),
            timers: VecDeque::new(),
            opened: Time::ZERO,
            free: Time::ZERO,
            heard: Time::ZERO,
            in_row: 0,
            dead: false,
            counters: Counters::default(),
        }
    }

    pub fn offer(&mut self, now: Time, data: Extent, end: bool) {
        if data.len == 0 && !end {
            return;
        }
        self.unsent += u64::from(data.len);
        self.requests.push_back(Request { data, end, offered: now });
    }

    pub fn unsent(&self) -> u64 {
        self.unsent
    }

    pub fn unanswered(&self) -> u64 {
        self.bytes
    }

    pub fn dead(&self) -> bool {
        self.dead
    }

    pub fn held(&self) -> Option<Held> {
        if self.repeated > 0 || !self.again.is_empty() {
            return Some(Held::Recovery);
        }
        match (self.requests.is_empty(), self.is_full()) {
            (true, _) => None,
            (false, true) => Some(Held::Window),
            (false, false) => self.rate.map(|_| Held::Pace),
        }
    }

    fn is_full(&self) -> bool {
        match self.rule {
            Rule::GoBack => self.flight.len() >= self.window,
            Rule::Selective => self.open >= self.window || self.flight.len() >= self.buffer,
        }
    }

    /// The next data frame to be sent.
    pub fn transmit(&mut self, now: Time) -> Option<Outgoing> {
        if self.dead || self.rate.is_some() && now < self.free {
            return None;
        }
        let out = self.send_again(now).or_else(|| self.send_new(now))?;
        if let Some(rate) = self.rate {
            let nanos = u64::from(out.frame.size()) * 8 * 1_000_000_000;
            self.free = now + Span::from_nanos(nanos.div_ceil(rate.bits_per_second().max(1)));
        }
        Some(out)
    }

    fn send_again(&mut self, now: Time) -> Option<Outgoing> {
        while let Some(number) = self.again.pop_front() {
            let Some(index) = number.checked_sub(self.base) else { continue };
            let Some(sent) = self.flight.get_mut(index as usize).filter(|it| !it.answered) else {
                continue;
            };
            let first_sent = Some(sent.first);
            sent.last = now;
            sent.sending = (sent.sending + 1) % SENDINGS;
            if !std::mem::replace(&mut sent.repeated, true) {
                self.repeated += 1;
            }
            self.timers.push_back((now, number));
            self.counters.resent += 1;
            return Some(outgoing(number, sent, first_sent));
        }
        None
    }

    fn send_new(&mut self, now: Time) -> Option<Outgoing> {
        if self.is_full() {
            return None;
        }
        let request = self.requests.front_mut()?;
        let data = request.data.take_front(self.frame);
        let (whole, offered) = (request.data.is_empty(), request.offered);
        let end = request.end && whole;
        if whole {
            self.requests.pop_front();
        }
        let number = self.base + self.flight.len() as u64;
        let eligible = offered.max(self.opened);
        let sent = Sent {
            data,
            end,
            eligible,
            first: now,
            last: now,
            sending: 0,
            repeated: false,
            answered: false,
        };
        let out = outgoing(number, &sent, None);
        self.unsent -= u64::from(data.len);
        self.bytes += u64::from(data.len);
        self.open += 1;
        self.flight.push_back(sent);
        self.timers.push_back((now, number));
        self.counters.units += 1;
        if self.open == 1 {
            self.heard = now;
        }
        Some(out)
    }

    /// An answer has come, to a frame that was sent so often before.
    pub fn answer(&mut self, now: Time, low: u32, sending: u8) {
        let number = widen(low, self.base);
        let next = self.base + self.flight.len() as u64;
        let full = self.is_full();
        match self.rule {
            Rule::GoBack if number > self.base && number <= next => {
                (self.base..number).for_each(|it| self.answered(now, it, sending));
            }
            Rule::Selective if number >= self.base && number < next => {
                self.answered(now, number, sending);
            }
            _ => return,
        }
        while self.flight.front().is_some_and(|sent| sent.answered) {
            self.flight.pop_front();
            self.base += 1;
            self.counters.answered += 1;
        }
        if full && !self.is_full() {
            self.opened = now;
        }
        self.forget_stale();
    }

    fn answered(&mut self, now: Time, number: u64, sending: u8) {
        let Some(sent) = self.flight.get_mut((number - self.base) as usize) else { return };
        if std::mem::replace(&mut sent.answered, true) {
            return;
        }
        self.open -= 1;
        self.repeated -= usize::from(sent.repeated);
        self.bytes -= u64::from(sent.data.len);
        (self.heard, self.in_row) = (now, 0);
        // The answer tells which sending it is for, so that repeated frames measure the round trip too.
        match sending {
            _ if sending == sent.sending => self.timeout.measured(now.since(sent.last)),
            0 => self.timeout.measured(now.since(sent.first)),
            _ => {}
        }
    }

    /// Whether a sending is the last of a frame without an answer.
    fn is_current(&self, (at, number): (Time, u64)) -> bool {
        let index = number.checked_sub(self.base);
        let sent = index.and_then(|index| self.flight.get(index as usize));
        sent.is_some_and(|sent| !sent.answered && sent.last == at)
    }

    fn forget_stale(&mut self) {
        while self.timers.front().is_some_and(|&timer| !self.is_current(timer)) {
            self.timers.pop_front();
        }
    }

    /// When the oldest sending times out, or a sender that keeps to a rate may go on.
    pub fn deadline(&self) -> Option<Time> {
        if self.dead {
            return None;
        }
        let timer = self.timers.front().map(|&(at, _)| at + self.timeout.span());
        let more = !self.again.is_empty() || !self.requests.is_empty() && !self.is_full();
        let paced = (self.rate.is_some() && more).then_some(self.free);
        timer.into_iter().chain(paced).min()
    }

    /// Sends again what has timed out: go-back-n everything, selective repeat that frame.
    pub fn expire(&mut self, now: Time) {
        let patience = self.timeout.span();
        let due = |timer: Option<&(Time, u64)>| timer.is_some_and(|&(at, _)| at + patience <= now);
        let mut expired = false;
        while due(self.timers.front()) {
            let Some(timer) = self.timers.pop_front() else { break };
            if !self.is_current(timer) {
                continue;
            }
            expired = true;
            self.counters.timeouts += 1;
            if self.rule == Rule::GoBack {
                self.timers.clear();
                self.again = (self.base..self.base + self.flight.len() as u64).collect();
                break;
            }
            self.again.push_back(timer.1);
        }
        self.forget_stale();
        if expired {
            self.in_row += 1;
            self.timeout.back_off();
            self.dead = self.in_row >= TIMEOUTS && now.since(self.heard) >= SILENCE;
        }
    }
}

fn outgoing(number: u64, sent: &Sent, first_sent: Option<Time>) -> Outgoing {
    let Sent { data, end, eligible, sending, .. } = *sent;
    let (number32, octets) = (number as u32, data.len as u16);
    let header = encode(Says::Data { number: number32, octets, end, sending });
    let unit = Unit { number, end, eligible, first_sent };
    Outgoing { frame: Frame { header, data }, unit: Some(unit) }
}
