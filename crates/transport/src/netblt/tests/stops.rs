//! Ends that do nothing for a while, as a process that is stopped or waits for its processor, and go on.

use super::*;

/// How long a transfer of 3.9 MB takes whose ends do nothing at times, over a line of 16 Mbit/s.
fn lasts(dialect: Dialect, millis: u16, asleep: [Vec<(Time, Time)>; 2]) -> Span {
    let cap = Burst { size: 1, interval: millis };
    let habits = Habits { dialect, rate: RateLaw::Adaptive, cap };
    let line = Some((Span::from_micros(500), 40));
    let burst = Burst { size: u16::MAX, interval: 1 };
    let events = Events { outstanding: 400, burst, asleep, line, ..NOTHING };
    let (ends, _, over) = run_with(&stream(3_900_000), true, habits, (&[(vec![0], None)], events));
    assert_eq!(ends[0].ending(), Some(&Ending::Done));
    over.since(Time::ZERO)
}

/// Turns at a processor, so long and so far apart in the mean.
fn turns(seed: u64, on: u64, off: u64) -> Vec<(Time, Time)> {
    let mut chance = Seed(seed).stream("turns");
    let mut drawn = |mean: u64| Span::from_micros(chance.below(2 * mean) + 1);
    let mut at = Time::ZERO;
    let mut turn = || {
        let from = at + drawn(on);
        at = from + drawn(off);
        (from, at)
    };
    (0..20_000).map(|_| turn()).collect()
}

/// Ends that share their processors with others get no less than their share of time. They got ever less: what was not sent in
/// time was taken for what the path does not carry.
#[test]
fn an_end_that_waits_for_its_processor_keeps_its_share() {
    for (dialect, cap) in [(Dialect::V4, 1), (Dialect::V5, 0)] {
        let free = lasts(dialect, cap, [Vec::new(), Vec::new()]);
        for (on, off) in [(3000, 3000), (3000, 12_000), (1000, 20_000), (3000, 40_000)] {
            for seed in 0..3 {
                let asleep = [turns(seed, on, off), turns(seed + 100, on, off)];
                let took = lasts(dialect, cap, asleep);
                let share = free.scaled(on + off, on);
                assert!(took < share, "{dialect:?}, cap {cap}, {on} of {off} us: {took}, {share}");
            }
        }
    }
}

/// A stop costs its own time, and a second at most.
#[test]
fn an_end_that_was_stopped_goes_on_as_before() {
    for (dialect, cap) in [(Dialect::V4, 1), (Dialect::V5, 0)] {
        let free = lasts(dialect, cap, [Vec::new(), Vec::new()]);
        for (end, seconds) in [(0, 4), (1, 4), (0, 15), (1, 15), (1, 40)] {
            for begin in (300..1800).step_by(300) {
                let from = Time::ZERO + Span::from_millis(begin);
                let mut asleep = [Vec::new(), Vec::new()];
                asleep[end].push((from, from + Span::from_secs(seconds)));
                let took = lasts(dialect, cap, asleep);
                let most = free + Span::from_secs(seconds + 1);
                assert!(took < most, "{dialect:?}, cap {cap}, end {end}, {seconds} s: {took}");
            }
        }
    }
}
