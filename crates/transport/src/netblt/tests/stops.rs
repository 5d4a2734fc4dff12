//! Ends that do nothing for a while, as a process that is stopped, and go on.

use super::*;

/// When a transfer is over that takes some seconds at its cap, and of which an end does nothing in between.
fn stopped(dialect: Dialect, millis: u16, stop: Option<(usize, Time, Time)>) -> Time {
    let cap = Burst { size: 1, interval: millis };
    let habits = Habits { dialect, rate: RateLaw::Adaptive, cap };
    let line = Some((Span::from_micros(500), 40));
    let events = Events { outstanding: 400, stop, line, ..NOTHING };
    let data = stream(3_900_000);
    let mut chance = Seed(u64::from(millis) + stop.map_or(0, |it| it.1.as_nanos())).stream("fates");
    let fates: Vec<Fate> = (0..4000)
        .map(|_| (if chance.below(100) < 1 { vec![] } else { vec![chance.below(1000)] }, None))
        .collect();
    let (ends, _, over) = run_with(&data, true, habits, (&fates, events));
    assert_eq!(ends[0].ending(), Some(&Ending::Done));
    over
}

/// Behind it a transfer goes on as before.
#[test]
fn an_end_that_does_nothing_for_a_while_holds_nothing_up_for_longer() {
    for dialect in [Dialect::V4, Dialect::V5] {
        for cap in [1, 0] {
            let free = stopped(dialect, cap, None).since(Time::ZERO);
            for end in [0, 1] {
                for seconds in [4, 15, 40] {
                    for begin in [500, 1000, 1500] {
                        let at = |it: u64| Time::ZERO + Span::from_millis(it);
                        let stop = (end, at(begin), at(begin + 1000 * seconds));
                        let took = stopped(dialect, cap, Some(stop)).since(Time::ZERO);
                        let lost = took.saturating_sub(free + Span::from_secs(seconds));
                        println!(
                            "{dialect:?} cap {cap} end {end} stop {seconds} at {begin}: free {free} lost {lost}"
                        );
                    }
                }
            }
        }
    }
}
