//! Lines on which a packet takes longer than any timer.

use super::*;

/// Data packets that go over a line of so many bits per second, without a loss, for each of ten, and the time for each second that the
/// data take.
fn slow(dialect: Dialect, rate: u64) -> (f64, f64) {
    let (data, fates) = (stream(10_000), [(vec![0], None)]);
    let each = Span::from_nanos(8_000_000_000_000 / rate);
    let events = Events { line: Some((each, 200)), ..NOTHING };
    let habits = habits(dialect, RateLaw::Adaptive);
    let (mut ends, _, over) = run_with(&data, true, habits, (&fates, events));
    assert_eq!(ends[0].ending(), Some(&Ending::Done), "{dialect:?}, {rate} bit/s");
    let sender = ends[0].connection.as_mut().and_then(Connection::sender).expect("it sends");
    let packets = sender.sent.packets + sender.sent.again;
    let time = over.since(Time::ZERO).as_secs_f64() / each.scaled(10, 1).as_secs_f64();
    (packets as f64 / 10.0, time)
}

/// What waits for a slow line is not lost. RFC 998's layout does not tell what has been sent, so that some is asked for all the same; but
/// copies do not call for further copies until the line carries nothing else.
#[test]
fn a_slow_line_is_not_filled_with_copies() {
    for rate in [600, 1000, 1500, 2400, 4800, 9600, 19_200, 64_000] {
        for dialect in Dialect::ALL {
            let (packets, time) = slow(dialect, rate);
            let most = if dialect.is_classic() { 2.25 } else { 1.0 };
            assert!(packets <= most, "{dialect:?}, {rate} bit/s: {packets} packets");
            assert!(time < most + 0.75, "{dialect:?}, {rate} bit/s: {time}");
        }
    }
}
