//! The sending half's answer to an acknowledgement: progress, loss, or the end of a recovery.

use super::agreed::Agreed;
use super::congestion::{Ack, Congestion, Marks, Reason};
use super::frto::{Evidence, Trial};
use super::prr::Prr;
use super::reassembly::Range;
use super::scoreboard::{DUP_THRESH, Taken};
use super::sender::{Phase, Sender};
use super::settings::{LONGEST_OPENING, Recovery, Settings};
use super::undo::Undo;
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

impl Context<'_> {
    /// Whether there is no SACK and duplicates stand for it, as in Linux.
    fn emulates_sack(&self) -> bool {
        self.settings.emulates_sack && !self.agreed.sack
    }
}

/// Everything that the handling of one acknowledgement looks at.
struct Context<'a> {
    now: Time,
    agreed: &'a Agreed,
    settings: &'a Settings,
    mss: u64,
    /// In flight before it came.
    before: u64,
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
        let sample = taken.oldest.filter(|_| told).map(|sent| now.since(sent)).or(stamped);
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
            let most = self.board.outstanding().saturating_sub(context.mss);
            let before = self.inflation;
            self.inflation = (before + context.mss).min(most).max(before);
            taken.delivered = self.inflation - before;
        }
    }

    fn look_for_needless(&mut self, context: &Context<'_>, heard: &Heard<'_>, progress: bool) {
        let stamped = context.settings.undo && context.agreed.timestamps;
        let echo = heard.echo.filter(|_| stamped);
        if progress && self.phase != Phase::Open && self.undo.acked(echo) {
            self.undone(context.now);
        }
    }

    /// The last reduction was needless: the window comes back, and nothing is lost.
    fn undone(&mut self, now: Time) {
        self.counters.spurious += 1;
        self.control.undone(now);
        self.rack.iter_mut().for_each(|rack| rack.was_needless());
        self.board.forgive();
        self.undo = Undo::default();
        self.judged = self.board.una();
        self.phase = Phase::Open;
        self.force = false;
        (self.duplicates, self.inflation) = (0, 0);
    }

    /// Judges whether a recovery begins or ends, and what is lost.
    fn judge(&mut self, context: &Context<'_>, progress: bool, told: bool, taken: &Taken) {
        let una = self.board.una();
        let over = match self.phase {
            Phase::Open => false,
            Phase::Recovery if self.leaves_early(context) => progress,
            _ if context.emulates_sack() => una > self.recover,
            _ => una >= self.recover,
        };
        if over && progress {
            self.leave(context.now);
            self.go_on_if_holes_are_left(context);
        } else if self.phase == Phase::Recovery
            && progress
            && una < self.recover
            && !context.agreed.sack
        {
            // A partial acknowledgement: the next one missing is lost (RFC 6582 §3.2 step 3).
            self.board.lose(0);
            self.force = true;
        }
        if Self::racks(context.agreed, context.settings) {
            self.judge_by_time(context.now, Some(taken), context.agreed);
            self.begin_if_lost(context.now, context.agreed, context.settings);
        } else if context.agreed.sack {
            self.judge_by_sack(context, told);
        } else if self.phase == Phase::Open && u64::from(self.duplicates) == DUP_THRESH {
            self.begin_unless_repeated(context);
        }
    }

    /// Whether the first new acknowledgement ends the recovery, partial or not (4.4BSD).
    fn leaves_early(&self, context: &Context<'_>) -> bool {
        !context.agreed.sack && context.settings.recovery == Recovery::Reno
    }

    fn leave(&mut self, now: Time) {
        self.control.recovered(now);
        if self.phase == Phase::Recovery {
            self.rack.iter_mut().for_each(|rack| rack.recovered());
        }
        self.phase = Phase::Open;
        self.prr = None;
        (self.duplicates, self.inflation) = (0, 0);
        self.force = false;
    }

    /// Goes on if something sent during a recovery was lost and sent again. That is a loss of another window: the next
    /// recovery begins at once, and does not wait for the next loss (IsLost(HighACK + 1), RFC 6675 §5; `lost_out` in
    /// Linux's `tcp_time_to_recover`). Losses are found in the order of sending, so that the first segment tells.
    fn go_on_if_holes_are_left(&mut self, context: &Context<'_>) {
        let repaired = self.board.first().is_some_and(|first| first.times > 1);
        if context.agreed.sack && repaired {
            self.begin(context);
            self.undo = if context.settings.undo {
                Undo::go_on(self.board.repairs())
            } else {
                Undo::default()
            };
            self.force = self.board.lost() > 0;
        }
    }

    /// Judges by SACK what is lost (RFC 6675 §5). Outside of recovery the first such segment begins one,
    /// and after a time-out everything is lost already.
    fn judge_by_sack(&mut self, context: &Context<'_>, told: bool) {
        let doubtful = self.board.arrived() > 0 && self.phase != Phase::Loss;
        if !doubtful || !told {
            return;
        }
        let below = self.board.lost_below(context.agreed.mss);
        let from = self.judged.max(self.board.una());
        if below > from {
            self.board.lose_between(from, below);
            self.judged = below;
        }
        self.begin_if_lost(context.now, context.agreed, context.settings);
    }

    /// The first loss begins a recovery.
    pub(super) fn begin_if_lost(&mut self, now: Time, agreed: &Agreed, settings: &Settings) {
        if self.phase == Phase::Open && self.board.lost() > 0 {
            let before = self.in_flight(agreed.mss, settings);
            self.begin(&Context { now, agreed, settings, mss: u64::from(agreed.mss), before });
        }
    }

    /// Three duplicates begin a recovery, but not those that answer what a time-out sent again (RFC 6582
    /// §3.2 step 2); 4.4BSD did not ask.
    fn begin_unless_repeated(&mut self, context: &Context<'_>) {
        let repeated = self.recover > 0 && self.board.una() <= self.recover;
        let asks = context.settings.recovery == Recovery::NewReno;
        if repeated && asks {
            return;
        }
        if context.settings.recovery == Recovery::Tahoe {
            return self.start_over(context);
        }
        self.board.lose(0);
        self.begin(context);
    }

    /// FlightSize without what limited transmit added (RFC 5681 §3.2 step 2).
    fn flight_size(&self, context: &Context<'_>) -> u64 {
        let extra = (self.inflation + self.board.arrived()).min(2 * context.mss);
        let outstanding = self.board.outstanding();
        match context.settings.limited_transmit && outstanding > self.control.window() {
            true => outstanding.saturating_sub(extra).max(self.control.window()),
            false => outstanding,
        }
    }

    /// Fast retransmit, and recovery begins.
    fn begin(&mut self, context: &Context<'_>) {
        let now = context.now;
        self.counters.fast_retransmits += 1;
        let size = self.flight_size(context);
        self.control.congested(now, size, Reason::Loss);
        self.undo = if context.settings.undo { Undo::begin() } else { Undo::default() };
        self.phase = Phase::Recovery;
        self.recover = self.board.next();
        self.reduced_until = self.recover;
        self.cwr = context.agreed.says_reduced();
        let outstanding = self.board.outstanding();
        self.prr = self
            .reduces_by_rate(context.agreed, context.settings)
            .then(|| Box::new(Prr::begin(outstanding)));
        self.force = true;
        self.restarted = false;
    }

    /// Tahoe's answer to three duplicates: that of a time-out, without waiting for it.
    fn start_over(&mut self, context: &Context<'_>) {
        self.counters.fast_retransmits += 1;
        let size = self.board.outstanding();
        self.control.timed_out(context.now, size);
        self.board.lose_all();
        self.start_again(context.agreed, context.settings);
        self.due = self.rtt.due(context.now, context.settings);
    }

    /// Repairs what was outstanding from the start.
    fn start_again(&mut self, agreed: &Agreed, settings: &Settings) {
        self.undo = if settings.undo { Undo::begin() } else { Undo::default() };
        self.phase = Phase::Loss;
        self.recover = self.board.next();
        self.reduced_until = self.recover;
        if !Self::racks(agreed, settings) {
            self.judged = self.recover;
        }
        self.stop_early();
        self.trial = Trial::Over;
        self.cwr = agreed.says_reduced();
        (self.duplicates, self.inflation) = (0, 0);
        self.force = false;
        self.timed.abandon();
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
            let size = self.board.outstanding().max(context.before);
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
            // Linux is bold only after progress without another loss, which became RFC 9937 §6.2.
            let bold = safe || !settings.counts_segments;
            prr.acked(taken.delivered, in_flight, target, agreed.mss, bold);
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
            window_limited: self.limited || self.half_used(before, settings),
            recovering,
        });
    }

    /// Whether half the window is used, which Linux counts as used in slow start (`tcp_is_cwnd_limited`).
    fn half_used(&self, before: u64, settings: &Settings) -> bool {
        let window = self.control.window();
        settings.counts_segments
            && window < self.control.slow_start_threshold()
            && window < before.saturating_mul(2)
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

    /// Whether it has tried often enough, or to open a connection long enough.
    fn in_vain(&self, now: Time, settings: &Settings) -> bool {
        match self.board.first().filter(|_| self.board.una() == 0) {
            Some(syn) => now.since(syn.first) >= LONGEST_OPENING,
            None => self.rtt.in_vain() > settings.most_timeouts,
        }
    }

    /// The retransmission timer has run out (RFC 6298 §5.4 to §5.6).
    pub fn time_out(&mut self, now: Time, agreed: &Agreed, settings: &Settings) {
        self.due = Time::NEVER;
        if self.board.outstanding() == 0 {
            return;
        }
        self.counters.timeouts += 1;
        self.rtt.back_off();
        if self.in_vain(now, settings) {
            self.dead = true;
            return;
        }
        if self.board.una() == 0 {
            // A SYN says nothing of the path's congestion.
            self.board.lose_all();
        } else {
            if self.board.una() >= self.recover {
                self.control.recovered(now);
            }
            self.control.timed_out(now, self.board.outstanding());
            match Self::racks(agreed, settings) {
                true => self.lose_what_is_old(now, agreed),
                false => self.board.lose_all(),
            }
            // RFC 5682 §2.1 step 1: not while a recovery is under way.
            let tries = settings.frto && self.phase == Phase::Open;
            self.start_again(agreed, settings);
            self.trial = if tries { Trial::First } else { Trial::Over };
        }
        self.due = self.rtt.due(now, settings);
    }
}
