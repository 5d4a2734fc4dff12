//! The sending half: windows, timers, and what goes out next. What an acknowledgement means stands in
//! [`recovery`](super::recovery).

use super::Blocked;
use super::agreed::Agreed;
use super::burst::Burst;
use super::congestion::{Congestion, Controller};
use super::counters::Sending;
use super::frto::Trial;
use super::half::Offered;
use super::prr::Prr;
use super::rack::Rack;
use super::rtt::{Rtt, Timed};
use super::scoreboard::{Scoreboard, Taken};
use super::settings::Settings;
use super::stream::Stream;
use super::undo::Undo;
use crate::Payload;
use trunkline_core::{Span, Time};

/// The kind of losses that are being repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// None.
    Open,
    /// Those that acknowledgements told of.
    Recovery,
    /// Whatever was outstanding when the timer ran out.
    Loss,
}

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

/// One direction of a connection, from this end.
#[derive(Debug, Clone)]
pub struct Sender<B> {
    pub stream: Stream<B>,
    pub board: Scoreboard,
    pub control: Controller,
    pub rtt: Rtt,
    pub(super) timed: Timed,
    /// The other end's window.
    pub(super) offered: Offered,
    pub(super) phase: Phase,
    /// The position to be acknowledged before recovery is over.
    pub(super) recover: u64,
    pub(super) duplicates: u16,
    /// Octets that duplicate acknowledgements stand for, without SACK.
    pub(super) inflation: u64,
    pub(super) prr: Option<Box<Prr>>,
    /// Whether the next segment is sent again whatever the window says. It is the fast retransmit.
    pub(super) force: bool,
    /// Whether a partial acknowledgement has restarted the timer in this recovery.
    pub(super) restarted: bool,
    /// Below this position SACK has told all losses that it can.
    pub(super) judged: u64,
    /// When the timer runs out, of retransmission or of probing a closed window.
    pub(super) due: Time,
    pub(super) probing: bool,
    /// Whether a probe is due, and how many have been sent in a row.
    probe: bool,
    pub(super) probes: u8,
    /// Before this instant pacing holds everything back.
    departure: Time,
    /// When the windows opened last.
    opened: Time,
    stalled: bool,
    /// The end of the last segment that was pushed.
    pushed: u64,
    pub(super) last_sent: Time,
    pub(super) burst: Burst,
    /// Whether the congestion window held the sender back.
    pub(super) limited: bool,
    /// The position to be acknowledged before the round is over.
    pub(super) round_end: u64,
    /// Whether the other end is to be told that the window has been reduced.
    pub(super) cwr: bool,
    /// The position to be acknowledged before another mark counts.
    pub(super) reduced_until: u64,
    /// Whether the window stays as a mark has left it until then.
    pub(super) marked: bool,
    /// The other end's count of marks as it was last told, modulo 8 (s.cep of RFC 9768 §3.2).
    pub(super) marks: u8,
    pub(super) undo: Undo,
    pub(super) trial: Trial,
    pub(super) rack: Option<Box<Rack>>,
    /// Whether a probe of the tail is due.
    pub(super) tail: bool,
    pub(super) closing: bool,
    pub(super) dead: bool,
    pub counters: Sending,
}

impl<B: Payload> Sender<B> {
    /// A sender whose next position is `start`, with `mss` octets in a full segment.
    pub fn new(start: u64, mss: u32, settings: &Settings) -> Sender<B> {
        let samples = settings.congestion.entry().wants_rate_samples;
        Sender {
            stream: Stream::new(),
            board: Scoreboard::new(start, samples),
            control: Controller::new(&settings.controller(mss)),
            rtt: Rtt::new(),
            timed: Timed::default(),
            offered: Offered::from(start, 0),
            phase: Phase::Open,
            recover: 0,
            duplicates: 0,
            inflation: 0,
            prr: None,
            force: false,
            restarted: false,
            judged: start,
            due: Time::NEVER,
            probing: false,
            probe: false,
            probes: 0,
            departure: Time::ZERO,
            opened: Time::ZERO,
            stalled: true,
            pushed: start,
            last_sent: Time::ZERO,
            burst: Burst::default(),
            limited: false,
            round_end: start,
            cwr: false,
            reduced_until: start,
            marked: false,
            marks: super::agreed::first_count(0),
            undo: Undo::default(),
            trial: Trial::default(),
            rack: None,
            tail: false,
            closing: false,
            dead: false,
            counters: Sending::default(),
        }
    }

    /// Octets offered and not sent.
    pub fn unsent(&self) -> u64 {
        self.stream.end().saturating_sub(self.board.next().max(1))
    }
    /// Whether the FIN has been sent.
    pub fn finished(&self) -> bool {
        self.board.next() > self.stream.end()
    }
    /// Whether it has been acknowledged.
    pub fn finish_acked(&self) -> bool {
        self.board.una() > self.stream.end()
    }

    /// Pipe, with what duplicate acknowledgements stand for taken out. Before a recovery this is what
    /// limited transmit rests upon (RFC 3042): two segments at most, and none if it is off.
    pub fn in_flight(&self, mss: u32, settings: &Settings) -> u64 {
        let gone = self.inflation + self.board.arrived();
        let counted = match (self.phase, settings.limited_transmit) {
            (Phase::Open, false) => 0,
            (Phase::Open, true) => gone.min(2 * u64::from(mss)),
            _ => gone,
        };
        (self.board.in_flight() + self.board.arrived()).saturating_sub(counted)
    }

    /// The octets that the congestion window lets go out now.
    fn room(&self, agreed: &Agreed, settings: &Settings) -> u64 {
        if let Some(prr) = self.prr.as_ref().filter(|_| self.phase == Phase::Recovery) {
            return prr.room();
        }
        self.control.window().saturating_sub(self.in_flight(agreed.mss, settings))
    }

    /// Whether PRR says what goes out during recovery. It wants SACK or what stands for it, and a window that shrinks
    /// with the loss.
    pub(super) fn reduces_by_rate(&self, agreed: &Agreed, settings: &Settings) -> bool {
        let sack = agreed.sack || settings.emulates_sack;
        settings.prr && sack && !settings.congestion.entry().wants_rate_samples
    }

    /// The SYN goes out.
    pub fn send_syn(&mut self, now: Time, settings: &Settings) -> Outgoing<B> {
        self.board.push(now, now, 1);
        self.departed(now, 1, &Agreed::alone(settings), settings);
        Outgoing { syn: true, ..self.outgoing(0, now) }
    }

    /// The SYN has been acknowledged, by a segment that echoes `echo`. It was no data, so that the window has learnt
    /// nothing from it, but for its losses. Of a SYN sent several times the time stamp tells which was answered.
    pub fn opened(&mut self, now: Time, echo: Option<u32>, mss: u32, settings: &Settings) {
        let syn = self.board.first().copied();
        let again = syn.map_or(0, |syn| syn.times - 1);
        let mut taken = Taken::default();
        self.board.advance(now, 1, &mut taken);
        if let Some(sent) = taken.newest {
            self.rtt.saw(now.since(sent));
            self.rtt.sample(settings.slow_clock().measured(sent, now));
        } else if let Some(echo) = echo {
            self.rtt.sample(super::since_stamp(now, echo));
        }
        let needless = syn.is_some_and(|syn| echo == Some(super::clock_stamp(syn.first)));
        if again >= settings.lost_syns && !needless {
            let one = Settings { initial_window: 1, ..*settings };
            self.control = Controller::new(&one.controller(mss));
        }
        self.rtt.opened(again);
        self.board = Scoreboard::new(1, settings.congestion.entry().wants_rate_samples);
        self.timed.abandon();
        (self.prr, self.rack) = (None, None);
        (self.due, self.departure) = (Time::NEVER, Time::ZERO);
        self.stir(now);
    }

    /// Nothing will be sent any more.
    pub fn abandon(&mut self) {
        self.dead = true;
        self.due = Time::NEVER;
        self.stop_early();
    }

    /// The reason why data that are there cannot be sent.
    pub fn blocked(&self, now: Time, agreed: &Agreed, settings: &Settings) -> Option<Blocked> {
        let (unsent, mss) = (self.unsent(), u64::from(agreed.mss));
        let waits = unsent > 0 || self.board.lost() > 0;
        if !waits || !self.stalled && now >= self.departure {
            return None;
        }
        let full = mss.min(unsent);
        if now < self.departure {
            Some(Blocked::Pacing)
        } else if self.board.lost() > 0 || self.room(agreed, settings) < full {
            Some(Blocked::Congestion)
        } else if self.offered.edge.saturating_sub(self.board.next()) < full {
            Some(Blocked::Receiver)
        } else if settings.send_buffer.saturating_sub(self.board.outstanding()) < full {
            Some(Blocked::SendBuffer)
        } else if settings.defers && full == mss {
            // It waits for the next acknowledgement, to send several segments at once.
            Some(Blocked::Congestion)
        } else {
            Some(Blocked::Small)
        }
    }

    fn outgoing(&self, start: u64, eligible: Time) -> Outgoing<B> {
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
        if len == 0 && !fin {
            return self.nothing(now, unsent, agreed, settings);
        }
        Some(self.send_new(now, len, agreed, settings))
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

    pub(super) fn probe_due(&self, now: Time, settings: &Settings) -> Time {
        let span = self.rtt.timeout(settings).scaled(1 << self.probes.min(32), 1);
        settings.slow_clock().due(now, span.min(settings.max_rto))
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
    fn departed(&mut self, now: Time, octets: u64, agreed: &Agreed, settings: &Settings) {
        let in_flight = self.board.in_flight();
        self.control.sent(now, octets, in_flight);
        self.prr.iter_mut().for_each(|prr| prr.sent(octets));
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

    /// When the timer of [`rack`](super::rack) runs out.
    fn early_due(&self) -> Time {
        self.rack.as_ref().map_or(Time::NEVER, |rack| rack.due)
    }
    pub(super) fn stop_early(&mut self) {
        self.rack.iter_mut().for_each(|rack| rack.stop());
    }

    /// Something has happened that may have opened a window.
    pub(super) fn stir(&mut self, now: Time) {
        if std::mem::take(&mut self.stalled) {
            self.opened = now;
        }
    }

    /// When something is to be done.
    pub fn deadline(&self, agreed: &Agreed, settings: &Settings) -> Time {
        let due = self.due.min(self.early_due());
        let paced = self.departure != Time::ZERO && self.stalled_by_pacing(agreed, settings);
        if paced { due.min(self.departure) } else { due }
    }

    /// Whether only pacing holds something back.
    fn stalled_by_pacing(&self, agreed: &Agreed, settings: &Settings) -> bool {
        if self.dead || self.stalled {
            return false;
        }
        self.tail
            || self.board.lost() > 0
            || (self.unsent() > 0 && self.room(agreed, settings) > 0)
            || (self.closing && !self.finished())
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Time, agreed: &Agreed, settings: &Settings) {
        if self.early_due() <= now {
            self.expire_early(now, agreed, settings);
        }
        if self.due > now {
            return;
        }
        self.stir(now);
        if self.probing {
            self.probe = true;
            self.probes = self.probes.saturating_add(1);
            self.due = self.probe_due(now, settings);
        } else {
            self.time_out(now, agreed, settings);
        }
    }
}
