//! Random walks through clusters that have too many states for all to be visited.

use super::*;
use proptest::prelude::*;
use trunkline_core::{Seed, Stream};

/// Most steps of a walk.
const MOST: u32 = 20_000;

/// Goes on at random to the end. Each state is checked, and all that is sent is received.
fn walk(case: &Case, seed: u64) {
    let mut random = Seed(seed).stream("walk");
    let leases = 1 + random.below(40);
    let mut state = State::start(case);
    for _ in 0..MOST {
        state.check();
        match next(case, &state, leases, &mut random) {
            Some(next) => state = next,
            None => return assert!(state.is_end(), "{state:?}"),
        }
    }
    panic!("it does not end: {state:?}");
}

/// A state behind this one. In all steps but one of so many no lease ends, if anything else can happen.
fn next(case: &Case, state: &State, leases: u64, random: &mut Stream) -> Option<State> {
    let actions = case.actions(state);
    let lapses = |it: &Action| matches!(it, Action::Lapse(_));
    if random.below(leases) > 0 && !actions.iter().all(lapses) {
        let others = actions.iter().copied().filter(|it| !lapses(it)).collect();
        if let Some(next) = one_of(state, others, random) {
            return Some(next);
        }
    }
    one_of(state, actions, random)
}

/// The state behind one of these actions that can be done.
fn one_of(state: &State, mut actions: Vec<Action>, random: &mut Stream) -> Option<State> {
    while !actions.is_empty() {
        let at = random.below(actions.len() as u64) as usize;
        if let Some(next) = state.after(actions.swap_remove(at)) {
            return Some(next);
        }
    }
    None
}

fn settings() -> impl Strategy<Value = CarefulSettings> {
    let lease = prop::option::of(Just(Span::from_millis(1)));
    let drawn = (any::<bool>(), any::<bool>(), lease, prop::option::of(2..5_u32));
    drawn.prop_map(|(piggyback, at_half, lease, reserve)| CarefulSettings {
        piggyback,
        at_half,
        lease,
        reserve,
        ..CarefulSettings::default()
    })
}

/// Clusters of a few nodes, and as many fragments as close windows several times.
fn cases() -> impl Strategy<Value = Case> {
    let fragments = |nodes: u16, most: u8, places: u16| {
        let some = prop_oneof![Just(0_u8), 0..most];
        prop::collection::vec(some, usize::from(nodes * places))
    };
    let sizes = (2..=4_u16, 0..30_u32, settings(), any::<bool>());
    sizes.prop_flat_map(move |(nodes, spare, settings, sends_first)| {
        let drawn = (fragments(nodes, 25, nodes), fragments(nodes, 10, 1));
        drawn.prop_map(move |(unicast, to_all)| {
            let buffers = settings.least_window() * u32::from(nodes) + spare;
            let of = |(pair, fragments): (u16, u8)| (pair / nodes, pair % nodes, fragments);
            let pairs = (0..).zip(unicast).map(of);
            let pairs: Vec<_> = pairs.filter(|(from, to, _)| from != to).collect();
            let settings = settings.clone();
            Case { settings, to_all, sends_first, ..Case::new(nodes, buffers, &pairs) }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_walk_comes_to_a_window_that_stays_closed(case in cases(), seed in any::<u64>()) {
        walk(&case, seed);
    }
}

/// A loan ends while frames that came with it wait: two copied out for the last of them owe too little of what is left.
#[test]
fn a_window_opens_again_behind_a_loan() {
    let case = Case::new(2, 21, &[(0, 1, 6), (1, 0, 11)]).broadcasts(&[0, 1]).sends_first();
    let settings = CarefulSettings { piggyback: false, reserve: Some(3), ..case.settings };
    walk(&Case { settings, ..case }.adaptive(), 244_304_520_804_048_122);
}
