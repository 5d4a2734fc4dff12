//! Senders that keep to a cap of their own, which becomes another one.

use super::*;

/// When a transfer is over whose sender keeps to a packet in each of so many milliseconds, and to nothing after `until`.
fn capped(dialect: Dialect, millis: u16, until: Span) -> Time {
    let cap = Burst { size: 1, interval: millis };
    let habits = Habits { dialect, rate: RateLaw::Adaptive, cap };
    let (data, fates) = (stream(300_000), [(vec![0], None)]);
    let lifted = (Time::ZERO + until, Burst { size: 1, interval: 0 });
    let events = Events { cap: Some(lifted), ..NOTHING };
    let (ends, _, over) = run_with(&data, true, habits, (&fates, events));
    assert_eq!(ends[0].ending(), Some(&Ending::Done));
    over
}

/// What is sent before a cap is lifted tells nothing of what may be sent then: neither is a stretch of packets that the law measures one of
/// both, nor does it begin with less than any sender, however long the cap has held.
#[test]
fn what_was_sent_below_a_cap_does_not_hold_back_what_follows() {
    for dialect in [Dialect::V4, Dialect::V5] {
        let free = capped(dialect, 0, Span::ZERO).since(Time::ZERO);
        for (millis, seconds) in [(1000, 3), (1000, 60), (100, 3), (100, 20), (5000, 40), (20, 1)] {
            let lifted = Time::ZERO + Span::from_secs(seconds);
            let took = capped(dialect, millis, Span::from_secs(seconds)).since(lifted);
            let most = free.scaled(2, 1) + Span::from_millis(100);
            assert!(took < most, "{dialect:?}, {millis} ms, {seconds} s: {took}, {free}");
        }
    }
}
