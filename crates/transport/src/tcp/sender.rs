//! The sending half: its state, its windows and its timers. [`sending`](super::sending) makes the segments that go out,
//! [`acknowledge`](super::acknowledge) answers an acknowledgement, and [`recovery`](super::recovery) repairs losses.

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
use super::sending::Outgoing;
use super::settings::Settings;
use super::stream::Stream;
use super::undo::Undo;
use crate::Payload;
use std::num::NonZeroU32;
use trunkline_core::Time;

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
    pub(super) probe: bool,
    pub(super) probes: u8,
    /// Before this instant pacing holds everything back.
    pub(super) departure: Time,
    /// When the windows opened last.
    pub(super) opened: Time,
    pub(super) stalled: bool,
    /// The end of the last segment that was pushed.
    pub(super) pushed: u64,
    pub(super) last_sent: Time,
    pub(super) burst: Burst,
    /// Whether the congestion window held the sender back.
    pub(super) limited: bool,
    /// Segments of the window that the send buffer is large enough for.
    pub(super) provided: u32,
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
        Sender {
            stream: Stream::new(),
            board: Self::board(start, mss, settings),
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
            provided: settings.initial_window,
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

    fn board(start: u64, mss: u32, settings: &Settings) -> Scoreboard {
        let unit = NonZeroU32::new(mss).filter(|_| settings.counts_segments);
        Scoreboard::new(start, settings.congestion.entry().wants_rate_samples, unit)
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
    pub(super) fn room(&self, agreed: &Agreed, settings: &Settings) -> u64 {
        match self.prr.as_ref().filter(|_| self.phase == Phase::Recovery) {
            Some(prr) => prr.room(),
            None => self.control.window().saturating_sub(self.in_flight(agreed.mss, settings)),
        }
    }

    /// A writer waits for room. If the window is not full, too little had been written: the send buffer grows with the window
    /// (`tcp_should_expand_sndbuf`).
    pub fn provide(&mut self, agreed: &Agreed, settings: &Settings) {
        let (window, mss) = (self.control.window(), u64::from(agreed.mss));
        if self.in_flight(agreed.mss, settings) + mss <= window {
            let segments = u32::try_from(window / mss).unwrap_or(u32::MAX);
            self.provided = self.provided.max(segments);
        }
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
        self.board = Self::board(1, mss, settings);
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

    pub(super) fn probe_due(&self, now: Time, settings: &Settings) -> Time {
        let span = self.rtt.timeout(settings).scaled(1 << self.probes.min(32), 1);
        settings.slow_clock().due(now, span.min(settings.max_rto))
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
