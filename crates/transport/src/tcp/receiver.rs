//! The receiving half: reassembly, the window offered, and when to acknowledge.

use super::agreed::Agreed;
use super::congestion::Marks;
use super::counters::Receiving;
use super::interactive::{Arrival, Interactive, Pulse};
use super::marks::{Marked, Tell};
use super::reassembly::{Range, Reassembly};
use super::segment::{Flags, Sack, Segment, Timestamps};
use super::seq::Seq;
use super::settings::Settings;
use crate::Payload;
use std::collections::VecDeque;
use trunkline_core::{Ecn, Time};

/// The receiving half of an end: its knowledge of the other's stream.
#[derive(Debug, Clone)]
pub struct Receiver<B> {
    /// The number of the other end's SYN.
    first: Seq,
    /// The position expected next.
    next: u64,
    /// Empty while nothing is missing, so that it costs a word only.
    gaps: Option<Box<Gaps<B>>>,
    /// In order, for the application.
    ready: VecDeque<B>,
    /// Octets that have come in order and that the application is not done with.
    held: u64,
    /// The farthest position ever offered by a window.
    offered: u64,
    /// The end of the other end's stream: the position of its FIN.
    fin: u64,
    /// Whether the window has been told in full. A SYN tells of 65 535 octets at most.
    told: bool,
    /// The position up to which has been acknowledged.
    acked: u64,
    /// The largest segment that has come.
    largest: u32,
    /// Acknowledgements to be sent now, each for itself.
    owed: u16,
    /// Whether one is to be sent now, or with the next data.
    now: bool,
    quick: u8,
    /// Present if the application's answers decide how long one is held back.
    interactive: Option<Box<Interactive>>,
    /// Whether a segment that the sender has pushed has come since the last acknowledgement. If
    /// [`Interactive`] keeps count, whether the last segment was pushed.
    pushed: bool,
    /// When one that is held back is sent.
    due: Time,
    /// The other end's time stamp to be echoed, if there is one.
    stamp: u32,
    stamped: bool,
    marked: Marked,
    /// By how many octets the next acknowledgement stays behind, so that it tells only of what came before the last
    /// change of marks (RFC 8257 §3.2); [`WHOLE`] if it does not.
    behind: u16,
    pub counters: Receiving,
}

/// The data that came out of their turn.
#[derive(Debug, Clone)]
struct Gaps<B> {
    held: Reassembly<B>,
    /// A duplicate that has just come (RFC 2883).
    duplicate: Option<Range>,
}

/// There is nothing that an acknowledgement is to stay behind.
const WHOLE: u16 = u16::MAX;
/// Marks that the end of the stream is unknown.
const OPEN: u64 = u64::MAX;

impl<B: Payload> Receiver<B> {
    /// A receiver whose peer's SYN had the number `first`.
    pub fn new(first: Seq, settings: &Settings) -> Receiver<B> {
        Receiver {
            first,
            next: 1,
            gaps: None,
            ready: VecDeque::new(),
            held: 0,
            offered: 1 + settings.receive_buffer.min(super::settings::MOST_UNSCALED),
            fin: OPEN,
            told: false,
            acked: 1,
            largest: 0,
            owed: 0,
            now: false,
            quick: settings.quick_acks,
            interactive: settings.interactive.then(|| Box::new(Interactive::new(settings))),
            pushed: false,
            due: Time::NEVER,
            stamp: 0,
            stamped: false,
            marked: Marked::from(super::agreed::first_count(0)),
            behind: WHOLE,
            counters: Receiving::default(),
        }
    }

    /// Another number of the other end's SYN.
    pub fn set_first(&mut self, first: Seq) {
        self.first = first;
    }
    /// The whole buffer counts as offered.
    pub fn offer_all(&mut self, agreed: &Agreed, settings: &Settings) {
        self.offered = self.next + self.window(agreed, settings);
        self.told = true;
    }

    /// The position of the octet numbered `seq`, if it is not before the stream.
    pub fn position(&self, seq: Seq) -> Option<u64> {
        seq.position(self.first, self.next)
    }

    /// Whether the other end's FIN has come, and all before it.
    pub fn ended(&self) -> bool {
        self.next > self.fin
    }
    /// Octets of the stream that have come, those behind a gap included.
    pub fn arrived(&self) -> u64 {
        self.received() + self.gaps.as_deref().map_or(0, |gaps| gaps.held.octets())
    }
    /// Octets of the stream that have come in order.
    pub fn received(&self) -> u64 {
        self.next.min(self.fin) - 1
    }
    /// When an acknowledgement held back is due.
    pub fn deadline(&self) -> Time {
        self.due
    }
    pub fn take(&mut self) -> Option<B> {
        self.ready.pop_front()
    }
    pub fn waiting(&self) -> usize {
        self.ready.len()
    }

    /// An acknowledgement is to be sent at once.
    pub fn acknowledge_now(&mut self) {
        self.now = true;
    }
    /// One is to be sent for itself, so that the other end sees it as a duplicate.
    fn acknowledge_again(&mut self) {
        self.owed = self.owed.saturating_add(1);
    }

    /// Takes note of the time stamp of a segment at `position` (RFC 7323 §4.3). False if the segment is
    /// older than what has been seen (§5.3): it is not to be looked at.
    pub fn stamped(&mut self, stamp: Timestamps, position: u64) -> bool {
        if self.stamped && (stamp.value.wrapping_sub(self.stamp) as i32) < 0 {
            return false;
        }
        if position <= self.acked {
            (self.stamp, self.stamped) = (stamp.value, true);
        }
        true
    }

    /// A segment came too late by its time stamp.
    pub fn refuse(&mut self) {
        self.counters.refused += 1;
        self.counters.segments += 1;
        self.acknowledge_again();
    }

    /// The handshake is over for the end that began it: the answer to its SYN came with `ecn`, and told by `ace` what
    /// its own SYN came with.
    pub fn greet(&mut self, ecn: Ecn) {
        self.marked.greet(super::agreed::greeting(ecn));
    }
    /// The other end's SYN came with `ecn`.
    pub fn met(&mut self, ecn: Ecn) {
        self.marked = Marked::from(super::agreed::first_count(super::agreed::greeting(ecn)));
    }

    /// The congestion bits of a segment that came, with data or without. Those of a SYN are the handshake's (RFC 8257
    /// §3.6).
    pub fn marks(&mut self, marks: Marks, ecn: Ecn, flags: Flags, bare: bool) {
        if flags.has(Flags::SYN) {
            return;
        }
        self.counters.marked += u32::from(ecn == Ecn::Ce);
        match self.marked.see(marks, ecn, flags, bare) {
            Tell::Later => {}
            Tell::Now => self.now = true,
            Tell::Apart => {
                self.now = true;
                self.behind = if self.next > self.acked { 0 } else { WHOLE };
            }
        }
    }

    /// A segment of no length came. If it is numbered before what is expected, it asks for an
    /// acknowledgement.
    pub fn probed(&mut self, position: u64) {
        self.now |= position + 1 == self.next;
    }

    /// The flags of a segment that brings data.
    pub fn pushed(&mut self, flags: Flags) {
        let pushed = flags.has(Flags::PSH);
        self.pushed = pushed || (self.pushed && self.interactive.is_none());
    }

    /// The data of a segment that starts at `start`, and its FIN.
    pub fn data(
        &mut self,
        now: Time,
        start: u64,
        came: (B, bool),
        pulse: Pulse,
        settings: &Settings,
    ) {
        let before = self.next;
        self.take_in(now, start, came, pulse, settings);
        if self.behind != WHOLE {
            self.behind = u16::try_from(self.next - before).unwrap_or(WHOLE).min(WHOLE - 1);
        }
    }

    fn take_in(
        &mut self,
        now: Time,
        start: u64,
        (data, fin): (B, bool),
        pulse: Pulse,
        settings: &Settings,
    ) {
        let len = u64::from(data.len());
        if len == 0 && !fin {
            return;
        }
        self.counters.segments += 1;
        let end = start + len;
        if end > self.offered || start > self.offered || self.contradicts_the_end(end, fin) {
            self.counters.refused += 1;
            return self.acknowledge_again();
        }
        if fin {
            self.fin = end;
        }
        self.largest = self.largest.max(data.len());
        if start == self.next && self.gaps.as_ref().is_none_or(|gaps| gaps.held.is_empty()) {
            self.accept(data);
            return match self.interactive {
                Some(_) => self.with_the_answer(now, len as u32, pulse, settings),
                None => self.in_order(now, settings),
            };
        }
        self.out_of_order(start, data, settings);
    }

    /// Octets behind the FIN, a FIN before octets that came, or one elsewhere than the first: no stream has
    /// these (RFC 9293 §3.10.7.4).
    fn contradicts_the_end(&self, end: u64, fin: bool) -> bool {
        if self.fin != OPEN {
            return end > self.fin || (fin && end < self.fin);
        }
        let farthest = self.gaps.as_deref().map_or(0, |gaps| gaps.held.end()).max(self.next);
        fin && end < farthest
    }

    /// Data that start at the position expected.
    fn accept(&mut self, data: B) {
        let len = u64::from(data.len());
        self.next += len;
        self.held += len;
        if len > 0 {
            self.ready.push_back(data);
        }
        if self.next == self.fin {
            self.next += 1;
            self.now = true;
        }
    }

    /// Data came in order: they may be acknowledged later (RFC 5681 §4.2).
    fn in_order(&mut self, now: Time, settings: &Settings) {
        let most = u64::from(settings.ack_every - 1) * u64::from(self.largest);
        let Some(delay) = settings.delayed_ack.filter(|_| self.next - self.acked <= most) else {
            self.now = true;
            return;
        };
        if self.quick > 0 {
            self.quick -= 1;
            self.now = true;
        } else if self.due == Time::NEVER {
            self.due = settings.fast_clock().due(now, delay);
        }
    }

    /// The same, if the application's answers decide how long.
    fn with_the_answer(&mut self, now: Time, len: u32, pulse: Pulse, settings: &Settings) {
        let Some(interactive) = &mut self.interactive else { return };
        let window = self.offered.saturating_sub(self.acked);
        let arrival = Arrival { len, pushed: self.pushed, window };
        interactive.arrived(now, arrival, pulse, settings);
        let held = self.next - self.acked;
        let most = u64::from(settings.ack_every - 1) * u64::from(interactive.full());
        let Some(longest) = settings.delayed_ack.filter(|_| held <= most && !interactive.quick())
        else {
            self.now = true;
            return;
        };
        let hold = interactive.hold(pulse, longest);
        // One that is nearly due is not waited for (`tcp_send_delayed_ack`).
        self.now |= self.due <= now + hold.scaled(1, 4);
        self.due = self.due.min(settings.fast_clock().due(now, hold));
    }

    /// Something came before what is missing, or twice, or it fills a gap: every such segment is
    /// acknowledged at once (RFC 5681 §4.2).
    fn out_of_order(&mut self, start: u64, mut data: B, settings: &Settings) {
        let end = start + u64::from(data.len());
        let old = self.next.saturating_sub(start).min(u64::from(data.len()));
        data.take_front(old as u32);
        let (from, before) = (start + old, self.next);
        let fresh = self.gaps().held.insert(from, data);
        if self.next == self.fin || (fresh && from == self.next) {
            self.fill();
        }
        if self.next == before && !fresh && end > start {
            self.counters.duplicates += 1;
            self.repeated(start, end);
            let window = self.offered.saturating_sub(self.acked);
            if let Some(interactive) = &mut self.interactive {
                interactive.disturbed(window, settings);
            }
        } else if old > 0 {
            self.repeated(start, start + old);
        }
        self.counters.out_of_order += u32::from(from > before && fresh);
        match self.next > before {
            true => self.now = true,
            false => self.acknowledge_again(),
        }
    }

    fn gaps(&mut self) -> &mut Gaps<B> {
        let none = || Box::new(Gaps { held: Reassembly::new(), duplicate: None });
        self.gaps.get_or_insert_with(none)
    }

    fn repeated(&mut self, start: u64, end: u64) {
        self.gaps().duplicate = Some(Range { start, end });
    }

    /// Moves what has become contiguous.
    fn fill(&mut self) {
        while let Some(data) = self.gaps.as_mut().and_then(|gaps| gaps.held.pop(self.next)) {
            self.accept(data);
        }
        if self.next == self.fin {
            self.accept(B::default());
        }
    }

    /// The application is done with `octets` more. If the window has been small and has grown much,
    /// the other end is told (RFC 9293 §3.8.6.2.2), but not because a SYN could not state it.
    pub fn consumed(&mut self, octets: u64, agreed: &Agreed, settings: &Settings) {
        self.held = self.held.saturating_sub(octets);
        let seen = self.offered.saturating_sub(self.next);
        let new = self.window(agreed, settings);
        let step = (2 * u64::from(agreed.mss)).min(settings.receive_buffer / 2).max(1);
        if self.told && new >= seen + step && new >= 2 * seen {
            self.now = true;
        }
        let emptied = self.held == 0 && self.next > self.acked;
        let asked = match &self.interactive {
            Some(interactive) => interactive.read(),
            None => settings.pushes && self.pushed,
        };
        self.now |= asked && emptied;
    }

    /// The window to be offered now, in octets: what the buffer has room for, never less than was offered
    /// before, and no more unless by a segment or half the buffer.
    fn window(&self, agreed: &Agreed, settings: &Settings) -> u64 {
        let whole = settings.receive_buffer + settings.receive_spare;
        let room = whole.saturating_sub(self.held).min(settings.receive_buffer);
        let most = super::settings::MOST_UNSCALED << agreed.receive_scale;
        let before = self.offered.saturating_sub(self.next);
        let step = u64::from(agreed.mss).min(settings.receive_buffer / 2);
        let new = if room >= before + step { room } else { before };
        new.min(most)
    }

    /// Whether an acknowledgement is to be sent that data cannot carry, because it counts as a duplicate or tells of
    /// less than has come.
    pub fn owes(&self) -> bool {
        self.owed > 0 || self.behind != WHOLE
    }
    /// Whether one is to be sent now.
    pub fn pending(&self) -> bool {
        self.now || self.owes()
    }

    /// The time to hold one back is over.
    pub fn expire(&mut self, now: Time, pulse: Pulse) {
        if self.due <= now {
            self.due = Time::NEVER;
            self.now = true;
            if let Some(interactive) = &mut self.interactive {
                interactive.missed(pulse);
            }
        }
    }

    /// Data are sent: perhaps the answer to what came.
    pub fn answered(&mut self, now: Time) {
        if let Some(interactive) = &mut self.interactive {
            interactive.sent(now);
        }
    }

    /// Fills in what a segment tells of this half: number, window, echo and runs. It counts as
    /// acknowledged.
    pub fn tell(&mut self, segment: &mut Segment<B>, agreed: &Agreed, settings: &Settings) {
        let syn = segment.flags.has(Flags::SYN);
        let before = std::mem::replace(&mut self.behind, WHOLE);
        let ack = if before == WHOLE { self.next } else { self.next - u64::from(before) };
        let scale = if syn { 0 } else { agreed.receive_scale };
        let units = (self.window(agreed, settings) + self.next - ack) >> scale;
        segment.window = u16::try_from(units).unwrap_or(u16::MAX);
        self.offered = self.offered.max(ack + (u64::from(segment.window) << scale));
        self.told |= !syn;
        segment.ack = self.first.plus(ack);
        segment.flags = segment.flags | Flags::ACK;
        if let Some(marks) = agreed.ecn.filter(|_| !syn) {
            let bare = segment.span() == 0;
            segment.flags = self.marked.tell(marks, segment.flags, bare, before != WHOLE);
        }
        if before != WHOLE {
            self.acked = ack;
            return;
        }
        if (self.next > self.acked || self.pending())
            && let Some(interactive) = &mut self.interactive
        {
            interactive.acknowledged();
        }
        self.acked = self.next;
        (self.now, self.due, self.pushed) = (false, Time::NEVER, false);
        self.owed = self.owed.saturating_sub(1);
    }

    /// The runs to be told, with the duplicate that has just come before them; none if nothing is
    /// missing.
    pub fn sack(&mut self, most: usize) -> Option<Sack> {
        let gaps = self.gaps.as_mut()?;
        let duplicate = gaps.duplicate.take();
        let mut sack = Sack::default();
        // After a duplicate above the cumulative number, the run that holds it comes next (RFC 2883 §4).
        let around = duplicate.and_then(|range| gaps.held.run_of(range.start));
        let others = gaps.held.runs().filter(|run| Some(*run) != around);
        for run in duplicate.into_iter().chain(around).chain(others).take(most) {
            sack.push(self.first.plus(run.start), self.first.plus(run.end));
        }
        if gaps.held.is_empty() {
            self.gaps = None;
        }
        Some(sack).filter(|sack| !sack.runs().is_empty())
    }

    /// The time stamp to be echoed.
    pub fn echo_of_stamp(&self) -> u32 {
        self.stamp
    }
}
