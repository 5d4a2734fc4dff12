//! The reasons why a sender waited, and for how long.

use crate::SenderState;
use std::collections::BTreeMap;
use trunkline_core::{Cause, Span, Time};

/// The reason why a sender waits: the states of a run, with the windows of TCP told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// The connection is being set up.
    Opening,
    /// The application has nothing to send.
    Application,
    /// The processor's or the board's work.
    Host,
    /// The interface takes no further request.
    Request,
    /// The window that the other end grants is closed, or a small segment waits for an answer.
    Window,
    /// The congestion window is full.
    Congestion,
    /// Both windows are open, but the next segment's instant has not come.
    Paced,
    /// Something lost is waited for or sent again.
    Recover,
}

/// Every one, in the order in which the clock keeps them.
const ALL: [Waiting; 8] = [
    Waiting::Opening,
    Waiting::Application,
    Waiting::Host,
    Waiting::Request,
    Waiting::Window,
    Waiting::Congestion,
    Waiting::Paced,
    Waiting::Recover,
];

impl Waiting {
    /// As a run tells of it.
    pub fn state(self) -> SenderState {
        match self {
            Waiting::Opening => SenderState::Opening,
            Waiting::Application => SenderState::Application,
            Waiting::Host => SenderState::Host,
            Waiting::Request => SenderState::Request,
            Waiting::Window | Waiting::Congestion | Waiting::Paced => SenderState::Window,
            Waiting::Recover => SenderState::Recover,
        }
    }

    /// The ledger's cause for it.
    pub fn cause(self) -> Cause {
        match self.state() {
            SenderState::Application | SenderState::Host => Cause::Host,
            SenderState::Opening | SenderState::Request | SenderState::Window => Cause::Window,
            SenderState::Recover => Cause::Recover,
        }
    }
}

/// Adds up the time spent waiting for each. The spans sum to the time since the start.
#[derive(Debug, Clone, Copy)]
pub struct SenderClock {
    waiting: Waiting,
    since: Time,
    spent: Spent,
}

/// The time spent waiting for each.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent([Span; ALL.len()]);

impl SenderClock {
    /// A clock that starts with [`Waiting::Application`].
    pub fn new(now: Time) -> SenderClock {
        SenderClock { waiting: Waiting::Application, since: now, spent: Spent::default() }
    }

    /// The sender waits for this from `now` on.
    pub fn enter(&mut self, now: Time, waiting: Waiting) {
        self.spent.0[self.waiting as usize] += now.since(self.since);
        (self.waiting, self.since) = (waiting, now);
    }

    /// The time spent by `now`.
    pub fn spent_by(&self, now: Time) -> Spent {
        let mut spent = self.spent;
        spent.0[self.waiting as usize] += now.since(self.since);
        spent
    }
}

impl Spent {
    /// None yet.
    pub const NONE: Spent = Spent([Span::ZERO; ALL.len()]);

    /// The time spent since `earlier`.
    pub fn since(&self, earlier: &Spent) -> impl Iterator<Item = (Waiting, Span)> + use<> {
        let (now, then) = (self.0, earlier.0);
        ALL.into_iter()
            .map(move |it| (it, now[it as usize].saturating_sub(then[it as usize])))
            .filter(|(_, span)| !span.is_zero())
    }

    /// As a map by the states of a run, without those in which no time was spent.
    pub fn to_map(self) -> BTreeMap<SenderState, Span> {
        let mut map = BTreeMap::new();
        for (waiting, span) in self.since(&Spent::default()) {
            *map.entry(waiting.state()).or_insert(Span::ZERO) += span;
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_sum_to_the_time_that_has_passed() {
        let at = Time::from_nanos;
        let mut clock = SenderClock::new(at(10));
        clock.enter(at(15), Waiting::Window);
        let middle = clock.spent_by(at(20));
        clock.enter(at(38), Waiting::Paced);
        clock.enter(at(40), Waiting::Recover);
        let spent = clock.spent_by(at(41));
        let map = spent.to_map();
        assert_eq!(map.values().copied().sum::<Span>(), Span::from_nanos(31));
        assert_eq!(map[&SenderState::Window], Span::from_nanos(25));
        let window = spent.since(&middle).find(|&(waiting, _)| waiting == Waiting::Window).unwrap();
        assert_eq!(window.1, Span::from_nanos(18));
    }
}
