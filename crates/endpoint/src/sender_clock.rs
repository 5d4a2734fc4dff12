//! What a sender was waiting for, and for how long.

use std::collections::BTreeMap;
use trunkline_core::{Cause, Span, Time};
use trunkline_measure::SenderState;

/// Every state, in the order in which the clock keeps them.
const STATES: [SenderState; 5] = [
    SenderState::Application,
    SenderState::Host,
    SenderState::Request,
    SenderState::Window,
    SenderState::Recover,
];

/// Adds up the time in each state. The spans sum to the time since the start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderClock {
    state: SenderState,
    since: Time,
    spent: Spent,
}

/// The time spent in each state.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent([Span; STATES.len()]);

impl SenderClock {
    /// A clock that starts in [`SenderState::Application`].
    pub fn new(now: Time) -> SenderClock {
        SenderClock { state: SenderState::Application, since: now, spent: Spent::default() }
    }

    /// The sender is in `state` from `now` on.
    pub fn enter(&mut self, now: Time, state: SenderState) {
        self.spent = self.spent_by(now);
        (self.state, self.since) = (state, now);
    }

    /// What has been spent by `now`.
    pub fn spent_by(&self, now: Time) -> Spent {
        let mut spent = self.spent;
        spent.0[self.state as usize] += now.since(self.since);
        spent
    }
}

impl Spent {
    /// What has been spent since `earlier`.
    pub fn since(&self, earlier: &Spent) -> impl Iterator<Item = (SenderState, Span)> + use<> {
        let (now, then) = (self.0, earlier.0);
        STATES
            .into_iter()
            .map(move |state| (state, now[state as usize].saturating_sub(then[state as usize])))
    }

    /// As a map, without states in which no time was spent.
    pub fn to_map(self) -> BTreeMap<SenderState, Span> {
        let spans = self.since(&Spent::default());
        spans.filter(|(_, span)| !span.is_zero()).collect()
    }
}

/// The ledger's cause for a state.
pub(crate) fn cause(state: SenderState) -> Cause {
    match state {
        SenderState::Application | SenderState::Host => Cause::Host,
        SenderState::Request | SenderState::Window => Cause::Window,
        SenderState::Recover => Cause::Recover,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_sum_to_the_time_that_has_passed() {
        let at = Time::from_nanos;
        let mut clock = SenderClock::new(at(10));
        clock.enter(at(15), SenderState::Window);
        let middle = clock.spent_by(at(20));
        clock.enter(at(40), SenderState::Recover);
        let spent = clock.spent_by(at(41));
        assert_eq!(spent.to_map().values().copied().sum::<Span>(), Span::from_nanos(31));
        let window = spent.since(&middle).find(|&(state, _)| state == SenderState::Window).unwrap();
        assert_eq!(window.1, Span::from_nanos(20));
    }
}
