//! The behaviour of the controllers at a bottleneck.

use crate::congestion::pipe::{Path, Sender};
use crate::congestion::{MSS, controller};
use trunkline_core::{Rate, Span};
use trunkline_transport::tcp::congestion::{Algorithm, Congestion, Controller, Settings, Start};

const SECOND: Span = Span::from_secs(1);

fn path(megabits: u64, millis: u64, buffer: u64) -> Path {
    let rate = Rate::from_bits_per_second(megabits * 1_000_000);
    Path { rate, way: Span::from_millis(millis), buffer }
}

fn share(delivered: u64, path: &Path, span: Span) -> f64 {
    delivered as f64 / path.rate.bytes_in(span) as f64
}

/// A buffer of one pipe keeps the line busy through a halving.
#[test]
fn reno_and_cubic_fill_a_line_whose_buffer_holds_a_pipe() {
    let path = path(50, 40, 250_000);
    for kind in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut sender = Sender::new(controller(kind), path);
        sender.run(SECOND.scaled(20, 1));
        let seen = sender.run(SECOND.scaled(40, 1));
        let share = share(seen.delivered, &path, SECOND.scaled(40, 1));
        assert!((0.98..=1.0001).contains(&share), "{kind} got {share}");
        assert!(seen.lost > 0 && seen.lost * 100 < seen.delivered, "{kind}: {seen:?}");
    }
}

#[test]
fn bbr_finds_rate_and_round_trip_with_little_queue() {
    for (megabits, millis) in [(1, 100), (10, 40), (100, 10), (10, 300)] {
        let path = path(megabits, millis, 10_000_000);
        let mut sender = Sender::new(controller(Algorithm::BBR), path);
        sender.run(SECOND.scaled(9, 1));
        let Controller::Bbr(bbr) = &sender.controller else { unreachable!() };
        let found = bbr.bandwidth() as f64 * 8.0 / path.rate.bits_per_second() as f64;
        assert!((0.97..=1.01).contains(&found), "{megabits} Mbit/s, {millis} ms: {found}");
        let off = bbr.min_rtt().unwrap().abs_diff(path.round_trip());
        assert!(off <= path.round_trip().scaled(2, 100), "off by {off}");
        let seen = sender.run(SECOND.scaled(20, 1));
        let share = share(seen.delivered, &path, SECOND.scaled(20, 1));
        // Twice in 20 s it looks for the round trip: 200 ms or one with nearly nothing in flight, one to get there and
        // one to come back (draft §4.3.5).
        let probing =
            path.round_trip().max(Span::from_millis(200)) + path.round_trip().scaled(2, 1);
        let rest = 1.0 - probing.as_secs_f64() / 10.0;
        assert!(share > 0.97 * rest, "{megabits} Mbit/s, {millis} ms: {share}");
        let queue = seen.mean_rtt().saturating_sub(path.round_trip());
        // An eighth of a pipe by the gains of the cycle; three bursts of a millisecond's worth, or of two
        // segments, and a pair (draft §4.2.2, §4.2.3.2).
        let pair = path.transmission().scaled(2, 1);
        let bursts = pair.max(Span::from_millis(1)).scaled(3, 1);
        let few = path.round_trip().scaled(1, 8) + bursts + pair;
        assert!(queue < few, "{megabits} Mbit/s, {millis} ms: {queue}");
        assert_eq!(seen.lost, 0);
    }
}

/// The window is two pipes and the allowance for bursts (draft §4.2.3.2), so that this much may come to
/// stand in the path.
#[test]
fn bbr_allows_two_pipes() {
    let path = path(20, 50, 10_000_000);
    let mut sender = Sender::new(controller(Algorithm::BBR), path);
    sender.run(SECOND.scaled(9, 1));
    let pipes = sender.controller.window() as f64 / path.pipe() as f64;
    assert!((1.95..2.2).contains(&pipes), "{pipes}");
}

/// Every ten seconds, for 200 ms, nearly nothing is in flight (draft §4.3.5), and the round trip found then
/// replaces the old one even if that was shorter.
#[test]
fn bbr_looks_for_the_round_trip_anew() {
    let mut sender = Sender::new(controller(Algorithm::BBR), path(10, 40, 10_000_000));
    sender.run(SECOND.scaled(5, 1));
    let longer = path(10, 80, 10_000_000);
    sender.reroute(longer);
    let mut least = u64::MAX;
    for _ in 0..1_200 {
        sender.run(Span::from_millis(10));
        least = least.min(sender.controller.window());
    }
    assert_eq!(least, 4 * u64::from(MSS));
    let Controller::Bbr(bbr) = &sender.controller else { unreachable!() };
    let off = bbr.min_rtt().unwrap().abs_diff(longer.round_trip());
    assert!(off <= Span::from_millis(2), "off by {off}");
}

/// It does so if all round trips are alike, too, as on a line that chance keeps from ever filling.
#[test]
fn bbr_looks_for_the_round_trip_where_nothing_varies() {
    let mut sender = Sender::new(controller(Algorithm::BBR), path(10, 300, 10_000_000));
    let mut dips = 0;
    let mut before = false;
    for _ in 0..4_000 {
        sender.run(Span::from_millis(10));
        let dip = sender.controller.window() == 4 * u64::from(MSS);
        dips += u32::from(dip && !before);
        before = dip;
    }
    // 40 s hold three times 10 s and what looking takes.
    assert_eq!(dips, 3);
}

/// A lower bandwidth is believed after ten round trips, a higher one found by probing.
#[test]
fn bbr_follows_a_line_whose_rate_changes() {
    let mut sender = Sender::new(controller(Algorithm::BBR), path(20, 30, 10_000_000));
    sender.run(SECOND.scaled(5, 1));
    for megabits in [5, 40] {
        let path = path(megabits, 30, 10_000_000);
        sender.reroute(path);
        sender.run(SECOND.scaled(15, 1));
        let Controller::Bbr(bbr) = &sender.controller else { unreachable!() };
        let found = bbr.bandwidth() as f64 * 8.0 / path.rate.bits_per_second() as f64;
        assert!((0.95..1.05).contains(&found), "{megabits} Mbit/s: {found}");
    }
}

/// A buffer of a tenth of a pipe costs loss in startup; afterwards BBR keeps its rate.
#[test]
fn bbr_bears_a_shallow_buffer() {
    let path = path(20, 50, 12_500);
    let mut sender = Sender::new(controller(Algorithm::BBR), path);
    sender.run(SECOND.scaled(5, 1));
    let seen = sender.run(SECOND.scaled(20, 1));
    let share = share(seen.delivered, &path, SECOND.scaled(20, 1));
    assert!(share > 0.85, "{share}: {seen:?}");
}

/// The segments that the first slow start loses; the buffer holds `pipes` of 500 kB.
fn lost_at_start(start: Start, pipes: u64) -> u64 {
    let settings = Settings { start, ..Settings::new(Algorithm::CUBIC, MSS) };
    let mut sender = Sender::new(Controller::new(&settings), path(50, 80, pipes * 500_000));
    sender.run(SECOND.scaled(3, 1)).lost
}

/// HyStart and HyStart++ end slow start before the buffer overflows (RFC 9406 §1). HyStart++ needs a
/// buffer of several pipes for it, because the shortest round trip of a round rises only when the window
/// is above the pipe, and the window may be twice as large by then and grows for five rounds more.
#[test]
fn slow_start_ends_before_there_is_loss() {
    for pipes in [1, 10] {
        assert!(lost_at_start(Start::Plain, pipes) > 400_000);
        assert_eq!(lost_at_start(Start::HyStart, pipes), 0, "{pipes}");
    }
    assert_eq!(lost_at_start(Start::HyStartPlusPlus, 10), 0);
}
