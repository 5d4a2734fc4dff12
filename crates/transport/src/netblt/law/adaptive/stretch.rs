//! A stretch: when it has lasted long enough, when it begins anew, what was lost in it, and what that tells of the path.

use super::{Adaptive, Came, Law, Losses, Phase, Window};
use trunkline_core::{Span, Time};

/// Packets that a stretch has at least.
const PACKETS: u64 = 24;
/// How many times as long as any other a gap is in which nothing was sent, or all was lost (a choice).
const STILL: u64 = 8;
/// Percent of the rate below which what is lost is the path's own loss.
const BELOW_RATE: u64 = 95;

impl Adaptive {
    /// Whether the stretch has lasted long enough.
    pub(super) fn is_over(&self) -> bool {
        self.window.count() > PACKETS && self.window.span() >= self.stretch()
    }

    /// How long nothing has come, if that is much longer than from any packet to the next in this stretch and the one before: an end or
    /// the path has stood still, and a stretch of before and behind that has no rate.
    pub(super) fn stood_still(&self, now: Time) -> Option<Span> {
        let usual = self.window.longest().max(self.longest).max(self.quantum()).max(self.base());
        let gap = now.since(self.window.last());
        (self.window.count() > 0 && gap > usual.scaled(STILL, 1)).then_some(gap)
    }

    /// Packets from this place on, and those that are known to be lost.
    pub(super) fn losses(&self, now: Time, from: Option<u64>) -> Losses {
        from.map_or_else(Losses::default, |from| self.order.losses(now, from))
    }

    /// Packets lost beyond what the path loses by chance. In a contest one is enough; if the line was busy without a break all are.
    pub(super) fn excess(&self, losses: Losses, all: Losses, is_solid: bool) -> u64 {
        match self.contest {
            Some(_) => self.own_loss.over(all),
            None if self.is_beyond(losses, all) => self.own_loss.over(losses).max(1),
            None if is_solid => losses.lost,
            None => 0,
        }
    }

    /// Whether a stretch has lost more than chance explains. While the rate is held, all packets since the last look were sent at about that
    /// rate, and have lost more too: of many stretches one loses much by chance.
    fn is_beyond(&self, losses: Losses, all: Losses) -> bool {
        let is_held = matches!(self.phase, Phase::Hold(1..));
        self.own_loss.is_exceeded(losses) && (!is_held || self.own_loss.is_exceeded(all))
    }

    /// Whether the line was busy without a break while the rate was held: packets were lost, an eighth of those sent or more are missing, and
    /// the others followed each other as if nothing were. A packet that the path loses leaves its time empty: then the mean step is as much
    /// longer than the shortest as more was sent than came. A quarter of that is left for what others send between them (a choice).
    pub(super) fn is_solid(&self, window: &Window, losses: Losses) -> bool {
        let is_held = matches!(self.phase, Phase::Hold(_) | Phase::Drain);
        let (sent, through) = (u128::from(self.sent), u128::from(window.rate()));
        let steps = [window.spacing(), window.shortest()];
        let [mean, shortest] = steps.map(|it| u128::from(it.as_nanos()));
        let is_even = mean * 4 * through <= shortest * (sent + 3 * through);
        is_held && losses.lost > 0 && through * 8 <= sent * 7 && is_even
    }

    /// Learns what the path loses, if nothing was lost for want of room: of a stretch below the rate that found no queue, if it tells, and
    /// of the packets behind the stretch before, which kept its rate until the next offer was in force, if clearly less had come of less in
    /// it: a policer takes more of those.
    pub(super) fn learn(
        &mut self,
        losses: Losses,
        all: Losses,
        is_idle: bool,
        tells: Option<Came>,
    ) {
        let is_below = |sent: u64| sent * 100 <= self.rate * BELOW_RATE;
        let behind = is_idle && self.told_at.is_some_and(is_below);
        let is_told = is_idle && tells.is_some() && is_below(self.sent);
        self.told_at = (is_told && tells == Some(Came::Less)).then_some(self.sent);
        if behind {
            self.own_loss.take(self.own_loss.explained(all.without(losses)));
        }
        if is_told {
            self.own_loss.take(self.own_loss.explained(losses));
        }
    }
}
