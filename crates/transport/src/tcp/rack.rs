//! Loss detection by time, and probes of the tail (RFC 8985, "RACK-TLP").
//!
//! A segment is lost when one that was sent later has arrived and a round trip with some allowance for
//! reordering has passed. It finds lost retransmissions too, which counting duplicates cannot.

use super::agreed::Agreed;
use super::congestion::{Congestion, Reason};
use super::rtt::times;
use super::scoreboard::{DUP_THRESH, Fate, Latest, Record, Scoreboard, Taken};
use super::sender::{Phase, Sender};
use super::sending::Outgoing;
use super::settings::Settings;
use crate::Payload;
use std::collections::VecDeque;
use trunkline_core::{Span, Time};

/// The purpose of the early timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Early {
    #[default]
    Nothing,
    /// Something is lost then unless it arrives (RACK_REO_TIMEOUT).
    Reordering,
    /// The tail is probed then (PTO).
    Tail,
}

/// The state of RFC 8985 §5.3 and §7.1.
#[derive(Debug, Clone)]
pub struct Rack {
    /// The segment sent last among those that have arrived.
    latest: Option<Latest>,
    /// Its round trip.
    rtt: Span,
    /// The segments that were sent again, in that order: when, and the position. Some of them may have arrived.
    resent: VecDeque<(Time, u64)>,
    reordering_seen: bool,
    /// The quarters of the shortest round trip that are allowed for reordering.
    quarters: u8,
    /// For how many recoveries more that is kept.
    keep: u8,
    /// The position to be acknowledged before another duplicate widens the allowance.
    duplicate_round: u64,
    early: Early,
    /// When the early timer runs out.
    pub due: Time,
    /// The end of what was sent when the tail was probed (TLP.end_seq); 0 if no probe is out.
    probed: u64,
    /// Whether the probe was sent again, rather than new.
    repeats: bool,
}

/// For how many recoveries a wider allowance is kept (§6.2 step 4).
const KEEP: u8 = 16;
/// The time for which a lone segment's acknowledgement may be held back (§7.2, TLP.max_ack_delay, which it leaves open;
/// Linux takes TCP_RTO_MIN).
const MAX_ACK_DELAY: Span = Span::from_millis(200);
/// The probe's time before any round trip is known (§7.2).
const FIRST_PROBE: Span = Span::from_secs(1);

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            latest: None,
            rtt: Span::ZERO,
            resent: VecDeque::new(),
            reordering_seen: false,
            quarters: 1,
            keep: KEEP,
            duplicate_round: 0,
            early: Early::Nothing,
            due: Time::NEVER,
            probed: 0,
            repeats: false,
        }
    }
}

impl Rack {
    /// Something goes out again.
    pub fn resent(&mut self, now: Time, position: u64) {
        self.resent.push_back((now, position));
    }

    fn set(&mut self, early: Early, due: Time) {
        (self.early, self.due) = (early, due);
    }
    pub fn stop(&mut self) {
        self.set(Early::Nothing, Time::NEVER);
    }

    /// A recovery is over.
    pub fn recovered(&mut self) {
        self.keep = self.keep.saturating_sub(1);
        if self.keep == 0 {
            (self.quarters, self.keep) = (1, KEEP);
        }
    }

    /// A duplicate SACK came: what was thought lost was only late (§6.2 step 4, once in a round trip).
    pub fn duplicate(&mut self, ack: u64, next: u64) {
        if ack >= self.duplicate_round {
            self.duplicate_round = next;
            self.quarters = self.quarters.saturating_add(1);
            self.keep = KEEP;
        }
    }

    /// A reduction turned out to be needless. RFC 8985 counts only what was never sent again as a sign of
    /// reordering; this is one just as well.
    pub fn was_needless(&mut self) {
        self.reordering_seen = true;
    }

    /// Takes note of what has arrived (§6.2 steps 2 and 3). The round trip is that of the segment sent last, the
    /// exact form in step 5, and not that of the segment that arrived last.
    fn saw(&mut self, now: Time, taken: &Taken) {
        self.reordering_seen |= taken.reordered;
        if let Some(latest) = taken.latest
            && self.latest.is_none_or(|known| (known.sent, known.end) <= (latest.sent, latest.end))
        {
            self.latest = Some(latest);
            self.rtt = now.since(latest.sent);
        }
    }

    /// Until when `record` is waited for, if something sent after it has arrived.
    fn wait(&self, board: &Scoreboard, record: &Record, allowance: Span) -> Option<Time> {
        let latest = self.latest?;
        let before = (record.sent, board.end(record)) < (latest.sent, latest.end);
        before.then(|| record.sent + self.rtt + allowance)
    }

    /// Marks as lost what was sent once, and answers when the last such segment that was overtaken will be, if one
    /// is left.
    fn lose_first_sendings(
        &self,
        now: Time,
        board: &mut Scoreboard,
        judged: &mut u64,
        allowance: Span,
    ) -> Option<Time> {
        let from = board.index_of((*judged).max(board.una()));
        for index in from.. {
            let record = *board.get(index)?;
            if record.fate == Fate::InFlight && record.times == 1 {
                if self.wait(board, &record, allowance)? > now {
                    return self.last_first_sending(board, allowance);
                }
                board.lose(index);
            }
            *judged = board.end(&record);
        }
        None
    }

    fn last_first_sending(&self, board: &Scoreboard, allowance: Span) -> Option<Time> {
        let overtaken = (0..board.sent_before(&self.latest?)).rev();
        let mut records = overtaken.filter_map(|index| board.get(index));
        let last = records.find(|record| record.fate == Fate::InFlight && record.times == 1)?;
        self.wait(board, last, allowance)
    }

    /// The same of what was sent again.
    fn lose_repeats(&mut self, now: Time, board: &mut Scoreboard, allowance: Span) -> Option<Time> {
        while let Some(&repeat) = self.resent.front() {
            if let Some((index, record)) = in_flight(board, repeat) {
                if self.wait(board, &record, allowance)? > now {
                    return self.last_repeat(board, allowance);
                }
                board.lose(index);
            }
            self.resent.pop_front();
        }
        self.resent = VecDeque::new();
        None
    }

    fn last_repeat(&self, board: &Scoreboard, allowance: Span) -> Option<Time> {
        let records = self.resent.iter().rev().filter_map(|&repeat| in_flight(board, repeat));
        records.filter_map(|(_, record)| self.wait(board, &record, allowance)).next()
    }
}

/// The record of what was sent again at an instant, by its position, if it is in flight and was not sent once more.
fn in_flight(board: &Scoreboard, (sent, position): (Time, u64)) -> Option<(usize, Record)> {
    let index = board.index_of(position.max(board.una()));
    let record = board.get(index).copied()?;
    let current = record.sent == sent && position >= board.una();
    (current && record.fate == Fate::InFlight).then_some((index, record))
}

impl<B: Payload> Sender<B> {
    /// Whether loss is told by time.
    pub(super) fn racks(agreed: &Agreed, settings: &Settings) -> bool {
        settings.rack && agreed.sack
    }

    /// The time that an overtaken segment is waited for beyond its round trip (§6.2 step 4). It is zero while no
    /// reordering has been seen and there are signs of loss enough.
    fn allowance(&self, mss: u32) -> Span {
        let signs = self.phase != Phase::Open
            || self.board.arrived() >= DUP_THRESH * u64::from(mss)
            || u64::from(self.duplicates) >= DUP_THRESH;
        let rack = self.rack.as_deref().filter(|rack| rack.reordering_seen || !signs);
        let Some(rack) = rack else { return Span::ZERO };
        let quarters = u64::from(rack.quarters);
        let reach = times(self.rtt.shortest(), quarters).as_nanos() / 4;
        Span::from_nanos(reach).min(self.rtt.smoothed())
    }

    /// Finds out what is lost, after an acknowledgement or when the early timer has run out (§6.2 step 5). The timer
    /// is set to the last segment's time, so that it finds all of them at once.
    pub(super) fn judge_by_time(&mut self, now: Time, taken: Option<&Taken>, agreed: &Agreed) {
        if let (Some(rack), Some(taken)) = (&mut self.rack, taken) {
            rack.saw(now, taken);
        }
        let allowance = self.allowance(agreed.mss);
        let Some(rack) = &mut self.rack else { return };
        let (board, judged) = (&mut self.board, &mut self.judged);
        let first = rack.lose_first_sendings(now, board, judged, allowance);
        let again = rack.lose_repeats(now, board, allowance);
        let last = first.into_iter().chain(again).max();
        match last {
            Some(due) => rack.set(Early::Reordering, due),
            None if rack.early == Early::Reordering => rack.stop(),
            None => {}
        }
    }

    /// After a time-out: the first segment is lost, and what was sent a round trip ago (§6.3).
    pub(super) fn lose_what_is_old(&mut self, now: Time, agreed: &Agreed) {
        let rtt = self.rack.as_ref().map_or(Span::ZERO, |rack| rack.rtt);
        let age = rtt + self.allowance(agreed.mss);
        self.board.lose(0);
        for index in 0..self.board.segments() {
            let sent = self.board.get(index).map(|record| record.sent);
            if rtt.is_zero() || sent.is_some_and(|sent| sent + age <= now) {
                self.board.lose(index);
            }
        }
    }

    /// Sets the time of a probe of the tail, if one would make sense (§7.2).
    #[inline]
    pub(super) fn arm_tail_probe(&mut self, now: Time, agreed: &Agreed, settings: &Settings) {
        if Self::racks(agreed, settings) {
            self.time_tail_probe(now);
        }
    }

    fn time_tail_probe(&mut self, now: Time) {
        let quiet = self.phase == Phase::Open && self.board.arrived() == 0 && !self.probing;
        let (segments, smoothed) = (self.board.segments(), self.rtt.smoothed());
        let wait = match (smoothed.is_zero(), segments) {
            (true, _) => FIRST_PROBE,
            (false, 1) => times(smoothed, 2) + MAX_ACK_DELAY,
            (false, _) => times(smoothed, 2),
        };
        let due = (now + wait).min(self.due);
        let rack = self.rack.get_or_insert_default();
        match rack.early {
            Early::Reordering => {}
            _ if quiet && segments > 0 && rack.probed == 0 => rack.set(Early::Tail, due),
            _ => rack.stop(),
        }
    }

    /// The early timer has run out.
    pub(super) fn expire_early(&mut self, now: Time, agreed: &Agreed, settings: &Settings) {
        let Some(rack) = &mut self.rack else { return };
        let early = rack.early;
        rack.stop();
        match early {
            Early::Nothing => {}
            Early::Reordering => {
                self.stir(now);
                self.judge_by_time(now, None, agreed);
                self.begin_if_lost(now, agreed, settings);
            }
            Early::Tail => {
                self.stir(now);
                self.tail = true;
                // The time-out starts anew with the probe (§7.3).
                self.due = self.rtt.due(now, settings);
            }
        }
    }

    /// The probe of the tail: something new if the other end's window allows it, else the last segment
    /// again (§7.3).
    pub(super) fn probe_tail(
        &mut self,
        now: Time,
        agreed: &Agreed,
        settings: &Settings,
    ) -> Option<Outgoing<B>> {
        if !std::mem::take(&mut self.tail) || self.board.outstanding() == 0 {
            return None;
        }
        let window = self.offered.edge.saturating_sub(self.board.next());
        let len = u64::from(agreed.mss).min(self.unsent());
        let repeats = len == 0 || len > window;
        let out = match repeats {
            true => {
                let last = self.board.segments().checked_sub(1)?;
                self.resend(now, last, agreed, settings)
            }
            false => self.send_new(now, len, agreed, settings),
        };
        self.counters.tail_probes += 1;
        let rack = self.rack.get_or_insert_default();
        (rack.probed, rack.repeats) = (self.board.next(), repeats);
        rack.stop();
        Some(out)
    }

    /// Whether an acknowledgement tells what became of the probe (§7.4.2). Two answers to a repeated last segment,
    /// the second a duplicate, show that both copies arrived. If there was one only, the loss that it has
    /// repaired counts as congestion.
    pub(super) fn judge_tail_probe(&mut self, now: Time, ack: u64, repeated: bool) {
        let probe = self.rack.as_mut().filter(|rack| rack.probed != 0 && ack >= rack.probed);
        let Some(rack) = probe else { return };
        if !rack.repeats || repeated {
            rack.probed = 0;
        } else if ack > rack.probed {
            rack.probed = 0;
            if self.phase == Phase::Open {
                let size = self.board.flight_size().max(self.control.window());
                self.control.congested(now, size, Reason::Loss);
                self.control.recovered(now);
            }
        }
    }
}
