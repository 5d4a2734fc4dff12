//! The sending half's answer to an acknowledgement: what arrived, the round trip, and marks. What that means for a
//! recovery stands in [`recovery`](super::recovery).

use super::agreed::Agreed;
use super::congestion::{Ack, Congestion, Marks, Reason};
use super::frto::Evidence;
use super::reassembly::Range;
use super::scoreboard::Taken;
use super::sender::{Phase, Sender};
use super::settings::Settings;
use crate::Payload;
use trunkline_core::{Span, Time};

/// An acknowledgement, with numbers made positions.
#[derive(Debug, Clone, Copy)]
pub struct Heard<'a> {
    pub ack: u64,
    /// The start of the segment that carries it, in the other end's stream.
    pub seq: u64,
    /// Octets of the window offered.
    pub window: u64,
    /// Whether it may be a duplicate: the segment has neither data nor FIN nor SYN.
    pub bare: bool,
    /// The SACK runs, in their order.
    pub runs: &'a [Range],
    /// The time stamp that it echoes.
    pub echo: Option<u32>,
    /// Whether it echoes a congestion mark.
    pub marked: bool,
    /// Its ACE field.
    pub ace: u8,
}

/// Everything that the handling of one acknowledgement looks at.
pub(super) struct Context<'a> {
    pub(super) now: Time,
    pub(super) agreed: &'a Agreed,
    pub(super) settings: &'a Settings,
    pub(super) mss: u64,
    /// In flight before it came.
    pub(super) before: u64,
}

impl Context<'_> {
    /// Whether there is no SACK and duplicates stand for it, as in Linux.
    pub(super) fn emulates_sack(&self) -> bool {
        self.settings.emulates_sack && !self.agreed.sack
    }
}

impl<B: Payload> Sender<B> {
    /// Takes in an acknowledgement. False if it acknowledges what was never sent.
    pub fn acknowledge(
        &mut self,
        now: Time,
        heard: &Heard<'_>,
        agreed: &Agreed,
        settings: &Settings,
    ) -> bool {
        if heard.ack > self.board.next() {
            return false;
        }
        if heard.ack < self.board.una() {
            return true;
        }
        self.stir(now);
        self.revive(now, settings);
        let before = self.in_flight(agreed.mss, settings);
        let context = Context { now, agreed, settings, mss: u64::from(agreed.mss), before };
        let moved = self.update_window(heard);
        let outstanding = self.board.outstanding();
        let mut taken = Taken { shortest: self.rtt.shortest(), ..Taken::default() };
        self.board.advance(now, heard.ack, &mut taken);
        let progress = taken.acked > 0;
        let (told, repeated) = self.take_runs(now, heard, &mut taken);
        self.stream.release(heard.ack);
        self.counters.acked += taken.acked;
        let rtt = self.measure(&context, heard, &taken);
        self.board.convert(&mut taken);
        let duplicate = !progress && outstanding > 0 && heard.bare && !moved;
        if agreed.sack {
            self.duplicates_with_sack(progress, told);
        } else {
            self.duplicates_without(&context, progress, duplicate, &mut taken);
        }
        self.counters.duplicate_acks += u64::from(duplicate);
        self.look_for_needless(&context, heard, progress);
        let evidence = Evidence { ack: heard.ack, progress, told: told || duplicate };
        if self.try_time_out(evidence, &taken, agreed) {
            self.undone(now);
        }
        let lost = self.board.lost();
        self.judge(&context, progress, told, &taken);
        let safe = progress && self.board.lost() <= lost;
        self.judge_tail_probe(now, heard.ack, repeated || duplicate);
        let marked = self.mark(&context, heard, &taken);
        self.tell_controller(&context, &taken, rtt, (heard.ack, safe), marked);
        self.rewind_timer(&context, progress);
        true
    }

    /// The other end lives.
    fn revive(&mut self, now: Time, settings: &Settings) {
        if std::mem::take(&mut self.dead) {
            self.rtt.progress();
            self.due = self.rtt.due(now, settings);
        }
    }

    /// Takes over the other end's window. True if it has changed.
    fn update_window(&mut self, heard: &Heard<'_>) -> bool {
        let before = self.offered.edge;
        let moved = self.offered.update(heard);
        if self.offered.edge > before {
            self.probes = 0;
        }
        moved
    }

    /// Books the runs of SACK. Does one of them tell of something new, and the first of a duplicate
    /// (RFC 2883 §4: it lies below the number, or within the second).
    fn take_runs(&mut self, now: Time, heard: &Heard<'_>, taken: &mut Taken) -> (bool, bool) {
        let before = self.board.arrived();
        let within = |run: &Range, of: Option<&Range>| {
            of.is_some_and(|of| of.start <= run.start && run.end <= of.end)
        };
        let (mut runs, mut duplicate) = (heard.runs, false);
        if let [first, rest @ ..] = runs
            && (first.end <= heard.ack || within(first, rest.first()))
        {
            (runs, duplicate) = (rest, true);
            let next = self.board.next();
            self.rack.iter_mut().for_each(|rack| rack.duplicate(heard.ack, next));
            if self.undo.duplicate(first.end.saturating_sub(first.start)) {
                self.undone(now);
            }
        }
        runs.iter().for_each(|run| self.board.sack(now, *run, taken));
        (self.board.arrived() > before, duplicate)
    }

    /// Round trips, if it tells of any. The time-out is made of the oldest segment acknowledged, which
    /// counts the receiver's delay as a time stamp would; the controller gets the newest.
    fn measure(&mut self, context: &Context<'_>, heard: &Heard<'_>, taken: &Taken) -> Option<Span> {
        let Context { now, settings, .. } = *context;
        // Without SACK, what lay behind a hole arrived before the hole was filled: nobody knows when.
        let told = context.agreed.sack || !taken.repaired;
        let newest = taken.newest.filter(|_| told).map(|sent| now.since(sent));
        newest.into_iter().for_each(|exact| self.rtt.saw(exact));
        if settings.tick.is_some() {
            let clock = settings.slow_clock();
            let timed = self.timed.acked(now, heard.ack, clock);
            timed.into_iter().for_each(|sample| self.rtt.sample(sample));
            return newest;
        }
        let stamped = heard.echo.filter(|_| taken.acked > 0);
        let stamped = stamped.map(|echo| super::since_stamp(now, echo));
        // What was sent before a repair and is acknowledged with it may have arrived long before, and what told of it
        // been lost.
        let fresh = |sent: &Time| taken.again.is_none_or(|again| *sent >= again);
        let oldest = taken.oldest.filter(|sent| told && fresh(sent)).map(|sent| now.since(sent));
        let sample = oldest.or(stamped);
        sample.into_iter().for_each(|sample| self.rtt.sample(sample));
        newest
    }

    fn duplicates_with_sack(&mut self, progress: bool, told: bool) {
        if progress && self.phase == Phase::Open {
            self.duplicates = 0;
        } else if told {
            self.duplicates = self.duplicates.saturating_add(1);
        }
    }

    /// Each duplicate stands for a segment that has arrived; an acknowledgement takes them back, but for
    /// the one that was missing (RFC 6582 §3.2 step 3 says it of the window).
    fn duplicates_without(
        &mut self,
        context: &Context<'_>,
        progress: bool,
        duplicate: bool,
        taken: &mut Taken,
    ) {
        if progress {
            let repaid = taken.acked.saturating_sub(context.mss).min(self.inflation);
            self.inflation -= repaid;
            taken.delivered = taken.acked - repaid;
            if self.phase != Phase::Recovery {
                (self.duplicates, self.inflation) = (0, 0);
            }
        } else if duplicate && self.phase != Phase::Loss {
            self.duplicates = self.duplicates.saturating_add(1);
            let most = self.board.flight_size().saturating_sub(context.mss);
            let before = self.inflation;
            self.inflation = (before + context.mss).min(most).max(before);
            taken.delivered = self.inflation - before;
        }
    }

    /// Takes in what an acknowledgement tells of marks, and answers how many octets came marked, if it tells. The
    /// window is reduced once for each window of data (RFC 3168 §6.1.2, RFC 8257 §3.3).
    fn mark(&mut self, context: &Context<'_>, heard: &Heard<'_>, taken: &Taken) -> u64 {
        let Some(marks) = context.agreed.ecn else { return 0 };
        let (echoes, marked) = match marks {
            Marks::Once => (u64::from(heard.marked), 0),
            Marks::Each if heard.marked => (1, taken.acked),
            Marks::Each => (0, 0),
            Marks::Counted => {
                let packets = self.counted(heard.ace, taken, context.mss);
                (packets, (packets * context.mss).min(taken.delivered.max(taken.acked)))
            }
        };
        if echoes == 0 {
            return 0;
        }
        self.counters.echoes += echoes;
        if self.phase == Phase::Open && heard.ack > self.reduced_until {
            let size = self.board.flight_size().max(context.before);
            let reason = if marks == Marks::Once { Reason::EcnEcho } else { Reason::Marked };
            self.control.congested(context.now, size, reason);
            self.marked = true;
            self.counters.echo_reductions += 1;
            self.reduced_until = self.board.next();
            self.cwr = context.agreed.says_reduced();
        }
        marked
    }

    /// Packets that have come marked since the other end's counter was last heard. What tells of nothing new may be
    /// old, and its counter too. If more packets are acknowledged than the counter can count, it is taken to have gone
    /// round as often as they allow (RFC 9768 §3.2.2.5.2, appendix A.2).
    fn counted(&mut self, ace: u8, taken: &Taken, mss: u64) -> u64 {
        if taken.delivered == 0 && taken.acked == 0 {
            return 0;
        }
        let change = u64::from(ace.wrapping_sub(std::mem::replace(&mut self.marks, ace)) & 7);
        let packets = taken.delivered.div_ceil(mss.max(1));
        if packets < 8 { change } else { packets - (packets - change) % 8 }
    }

    fn tell_controller(
        &mut self,
        context: &Context<'_>,
        taken: &Taken,
        rtt: Option<Span>,
        (ack, safe): (u64, bool),
        marked: u64,
    ) {
        let Context { now, agreed, settings, before, .. } = *context;
        if taken.delivered == 0 && taken.acked == 0 {
            return;
        }
        let round_start = ack > self.round_end;
        if round_start {
            self.round_end = self.board.next();
        }
        let in_flight = self.in_flight(agreed.mss, settings);
        self.marked &= ack < self.reduced_until;
        let recovering = self.phase == Phase::Recovery || self.marked;
        let target = self.control.window();
        if self.phase == Phase::Recovery
            && let Some(prr) = &mut self.prr
        {
            prr.acked(taken.delivered, in_flight, target, agreed.mss, safe);
        }
        let rate_sample = self.board.rate_sample(self.rtt.shortest(), before);
        self.control.acked(&Ack {
            now,
            acked: taken.acked,
            delivered: taken.delivered,
            marked,
            rtt,
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt: self.rtt.shortest(),
            in_flight_before: before,
            in_flight,
            rate_sample,
            round_start,
            window_limited: self.uses_window(),
            recovering,
        });
    }

    /// Whether the window was used enough to grow.
    fn uses_window(&self) -> bool {
        let window = self.control.window();
        let slow_start = window < self.control.slow_start_threshold();
        self.board.uses(window, slow_start).unwrap_or(self.limited)
    }

    /// The timer starts again with each acknowledgement of something new (RFC 6298 §5.3); in a recovery
    /// without SACK only with the first (RFC 6582 §3.2 step 3, "impatient" in RFC 3782 §4).
    fn rewind_timer(&mut self, context: &Context<'_>, progress: bool) {
        if !progress {
            return;
        }
        self.rtt.progress();
        self.tail = false;
        if self.board.outstanding() == 0 {
            self.due = Time::NEVER;
            return self.stop_early();
        }
        let patient = self.phase == Phase::Recovery && !context.agreed.sack;
        let patient = patient && !context.emulates_sack();
        if !patient || !std::mem::replace(&mut self.restarted, true) {
            self.due = self.rtt.due(context.now, context.settings);
        }
        self.arm_tail_probe(context.now, context.agreed, context.settings);
    }
}
