//! The segments that go out next: what was lost, what is new, and probes of a closed window.

use super::agreed::Agreed;
use super::congestion::Congestion;
use super::sender::Sender;
use super::settings::Settings;
use crate::Payload;
use trunkline_core::{Span, Time};

/// A segment that goes out, before it has its header.
#[derive(Debug, Clone)]
pub struct Outgoing<B> {
    pub start: u64,
    pub data: B,
    pub syn: bool,
    pub fin: bool,
    /// Whether it is all that the application has offered.
    pub push: bool,
    /// Whether it is new data, sent for the first time.
    pub fresh: bool,
    /// Whether the window has been reduced.
    pub cwr: bool,
    pub eligible: Time,
    pub first_sent: Option<Time>,
}

impl<B: Payload> Sender<B> {
    pub(super) fn outgoing(&self, start: u64, eligible: Time) -> Outgoing<B> {
        Outgoing {
            start,
            data: B::default(),
            syn: false,
            fin: false,
            push: false,
            fresh: false,
            cwr: false,
            eligible,
            first_sent: None,
        }
    }

    /// The next segment to send: what was lost, then what is new.
    pub fn transmit(
        &mut self,
        now: Time,
        agreed: &Agreed,
        settings: &Settings,
    ) -> Option<Outgoing<B>> {
        if self.dead {
            return None;
        }
        if now < self.departure {
            self.stalled = false;
            self.limited = self.window_is_full(agreed, settings);
            self.note_usage(false, settings);
            return None;
        }
        let out = self
            .probe_tail(now, agreed, settings)
            .or_else(|| self.on_trial(now, agreed, settings))
            .or_else(|| self.again(now, agreed, settings))
            .or_else(|| self.fresh(now, agreed, settings));
        self.stalled = out.is_none();
        out
    }

    /// A segment that was lost.
    fn again(&mut self, now: Time, agreed: &Agreed, settings: &Settings) -> Option<Outgoing<B>> {
        if self.trial.is_open() {
            return None;
        }
        let index = self.board.next_lost()?;
        let len = u64::from(self.board.get(index)?.len);
        let idle = self.board.in_flight() == 0;
        if !self.force && !idle && self.room(agreed, settings) < len {
            return None;
        }
        let out = self.resend(now, index, agreed, settings);
        if index == 0 && settings.rearms && agreed.sack {
            self.due = self.rtt.due(now, settings);
        }
        Some(out)
    }

    /// Sends the segment at `index` again.
    pub(super) fn resend(
        &mut self,
        now: Time,
        index: usize,
        agreed: &Agreed,
        settings: &Settings,
    ) -> Outgoing<B> {
        self.force = false;
        self.timed.abandon();
        self.board.resend(now, index);
        let record = self.board.get(index).copied().expect("the caller has found it");
        let (start, end) = (self.board.start(&record), self.board.end(&record));
        self.undo.resent(now, u64::from(record.len));
        if Self::racks(agreed, settings) {
            self.rack.get_or_insert_default().resent(now, start);
        }
        self.counters.retransmitted += 1;
        self.departed(now, u64::from(record.len), agreed, settings);
        let last = self.stream.end();
        let data = match start {
            0 => B::default(),
            _ => self.stream.slice(start, end.min(last)).0,
        };
        Outgoing {
            data,
            syn: start == 0,
            fin: start > 0 && end > last,
            push: end >= last,
            first_sent: Some(record.first),
            ..self.outgoing(start, record.eligible)
        }
    }

    /// Something new.
    pub(super) fn fresh(
        &mut self,
        now: Time,
        agreed: &Agreed,
        settings: &Settings,
    ) -> Option<Outgoing<B>> {
        if self.board.una() == 0 || self.trial.is_full() {
            return None;
        }
        self.wake(now, settings);
        let len = self.sendable(now, agreed, settings);
        let unsent = self.unsent();
        let fin = self.closing && !self.finished() && len == unsent;
        let out = match len == 0 && !fin {
            true => self.nothing(now, unsent, agreed, settings),
            false => Some(self.send_new(now, len, agreed, settings)),
        };
        self.note_usage(out.is_some(), settings);
        out
    }

    /// Something new was `sent`, or the window may have kept it back.
    #[inline]
    fn note_usage(&mut self, sent: bool, settings: &Settings) {
        if !settings.counts_segments || !(sent || self.limited) {
            return;
        }
        self.board.note_usage(self.limited || self.board.in_flight() >= self.control.window());
    }

    /// Sends `len` new octets, and the FIN if these are the last.
    #[inline]
    pub(super) fn send_new(
        &mut self,
        now: Time,
        len: u64,
        agreed: &Agreed,
        settings: &Settings,
    ) -> Outgoing<B> {
        let unsent = self.unsent();
        let fin = self.closing && !self.finished() && len == unsent;
        let start = self.board.next();
        let (data, offered) = self.stream.slice(start, start + len);
        let eligible = offered.max(self.opened).max(self.departure).min(now);
        self.board.push(now, eligible, len as u16 + u16::from(fin));
        self.timed.sent(now, self.board.next());
        self.counters.segments += 1;
        self.departed(now, len + u64::from(fin), agreed, settings);
        let cwr = std::mem::take(&mut self.cwr);
        let together = self.burst.sent(len);
        let push = self.pushes(start, start + len, settings) || together;
        Outgoing { data, fin, push, fresh: true, cwr, ..self.outgoing(start, eligible) }
    }

    /// Whether a segment from `start` to `end` is pushed: it is the last there is, or a write ends in it, or it is the
    /// last of half a window.
    fn pushes(&mut self, start: u64, end: u64, settings: &Settings) -> bool {
        let half = || end > self.pushed + self.offered.largest / 2;
        let early = settings.pushes && (half() || self.stream.ends_within(start, end));
        let push = early || end >= self.stream.end();
        if push {
            self.pushed = end;
        }
        push
    }

    /// After an idle time-out the window that was found before says little (RFC 5681 §4.1).
    fn wake(&mut self, now: Time, settings: &Settings) {
        let idle = self.board.outstanding() == 0 && self.unsent() > 0 && settings.idle_restart;
        let (passed, timeout) = (now.since(self.last_sent), self.rtt.timeout(settings));
        if idle && passed > timeout {
            let timeouts = (passed.as_nanos() - 1) / timeout.as_nanos().max(1);
            self.control.restarted_after_idle(now, timeouts);
            self.last_sent = now;
        }
    }

    /// The new octets that go into the next segment, 0 for none. A segment that is not full waits, unless
    /// it is all there is and nothing is outstanding (Nagle, RFC 896) or it is half the largest window ever
    /// offered (RFC 9293 §3.8.6.2.1).
    fn sendable(&mut self, now: Time, agreed: &Agreed, settings: &Settings) -> u64 {
        let (mss, unsent) = (u64::from(agreed.mss), self.unsent());
        let window = self.offered.edge.saturating_sub(self.board.next());
        let buffer = settings.send_buffer.saturating_sub(self.board.outstanding());
        let room = self.room(agreed, settings);
        let others = window.min(buffer);
        self.limited = Self::limits(room, others, mss, settings);
        let len = mss.min(unsent).min(others).min(room);
        let whole =
            len == unsent && (!settings.nagle || self.closing || self.board.outstanding() == 0);
        let worth = len == mss || whole || 2 * len >= self.offered.largest.max(1);
        let goes =
            worth && len > 0 && self.lets_go(now, len, (room.min(others), others), mss, settings);
        if goes { len } else { 0 }
    }

    /// Whether the congestion window is what limits, with `room` in it and so much in the others.
    fn limits(room: u64, others: u64, mss: u64, settings: &Settings) -> bool {
        room < mss && (others >= mss || settings.counts_segments)
    }

    /// The same, as long as pacing holds everything back: the window may be full when the next segment's time comes.
    fn window_is_full(&self, agreed: &Agreed, settings: &Settings) -> bool {
        let window = self.offered.edge.saturating_sub(self.board.next());
        let buffer = settings.send_buffer.saturating_sub(self.board.outstanding());
        let room = self.room(agreed, settings);
        Self::limits(room, window.min(buffer), u64::from(agreed.mss), settings)
    }

    /// Nothing can be sent. If only the other end's window forbids it, that will be probed.
    fn nothing(
        &mut self,
        now: Time,
        unsent: u64,
        agreed: &Agreed,
        settings: &Settings,
    ) -> Option<Outgoing<B>> {
        if unsent == 0 {
            if !self.limited && self.board.lost() == 0 {
                self.board.app_limited();
            }
            return None;
        }
        if self.board.outstanding() > 0 {
            return None;
        }
        if std::mem::take(&mut self.probe) {
            return Some(self.send_probe(now, agreed, settings));
        }
        if self.due == Time::NEVER {
            self.probing = true;
            self.due = self.probe_due(now, settings);
        }
        None
    }

    /// A probe of the other end's window: what of the window there is, although it is small, else a
    /// segment of no length numbered before what is expected, which asks for an acknowledgement just as
    /// one octet beyond the window would (RFC 9293 §3.8.6.1) and need not be booked.
    fn send_probe(&mut self, now: Time, agreed: &Agreed, settings: &Settings) -> Outgoing<B> {
        self.counters.window_probes += 1;
        let (start, window) =
            (self.board.next(), self.offered.edge.saturating_sub(self.board.next()));
        let len = window.min(self.unsent()).min(u64::from(u16::MAX));
        if len == 0 {
            return self.outgoing(start - 1, now);
        }
        let (data, _) = self.stream.slice(start, start + len);
        self.board.push(now, now, len as u16);
        self.counters.segments += 1;
        self.departed(now, len, agreed, settings);
        Outgoing { data, push: true, ..self.outgoing(start, now) }
    }

    /// `octets` have gone out.
    #[inline]
    pub(super) fn departed(
        &mut self,
        now: Time,
        octets: u64,
        agreed: &Agreed,
        settings: &Settings,
    ) {
        let (in_flight, measured) = (self.board.in_flight(), self.board.measured(octets, 1));
        self.control.sent(now, measured, in_flight);
        self.prr.iter_mut().for_each(|prr| prr.sent(measured));
        self.last_sent = now;
        if self.due == Time::NEVER || self.probing {
            self.probing = false;
            self.due = self.rtt.due(now, settings);
        }
        self.arm_tail_probe(now, agreed, settings);
        if let Some(rate) = self.control.pacing() {
            let nanos = u128::from(octets) * 8_000_000_000 / u128::from(rate.bits_per_second());
            let gap = Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.departure = self.departure.max(now) + gap;
        }
    }
}
