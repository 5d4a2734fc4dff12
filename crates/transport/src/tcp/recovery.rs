//! Recoveries: what is lost, how a recovery begins and ends, and time-outs.

use super::acknowledge::{Context, Heard};
use super::agreed::Agreed;
use super::congestion::{Congestion, Reason};
use super::frto::Trial;
use super::prr::Prr;
use super::scoreboard::{DUP_THRESH, Taken};
use super::sender::{Phase, Sender};
use super::settings::{LONGEST_OPENING, Recovery, Settings};
use super::undo::Undo;
use crate::Payload;
use trunkline_core::Time;

impl<B: Payload> Sender<B> {
    pub(super) fn look_for_needless(
        &mut self,
        context: &Context<'_>,
        heard: &Heard<'_>,
        progress: bool,
    ) {
        let stamped = context.settings.undo && context.agreed.timestamps;
        let echo = heard.echo.filter(|_| stamped);
        if progress && self.phase != Phase::Open && self.undo.acked(echo) {
            self.undone(context.now);
        }
    }

    /// The last reduction was needless: the window comes back, and nothing is lost.
    pub(super) fn undone(&mut self, now: Time) {
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
    pub(super) fn judge(
        &mut self,
        context: &Context<'_>,
        progress: bool,
        told: bool,
        taken: &Taken,
    ) {
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
        // No acknowledgement may be on its way that would end it.
        self.trial = Trial::Over;
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
        let outstanding = self.board.flight_size();
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
        let outstanding = self.board.flight_size();
        let unit = if context.settings.counts_segments { context.agreed.mss } else { 1 };
        self.prr = self
            .reduces_by_rate(context.agreed, context.settings)
            .then(|| Box::new(Prr::begin(outstanding, unit)));
        self.force = true;
        self.restarted = false;
    }

    /// Tahoe's answer to three duplicates: that of a time-out, without waiting for it.
    fn start_over(&mut self, context: &Context<'_>) {
        self.counters.fast_retransmits += 1;
        let size = self.board.flight_size();
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
            self.control.timed_out(now, self.board.flight_size());
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
