//! Single steps of the windows, against the RFCs' own numbers.

use crate::congestion::{MSS, controller};
use trunkline_core::{Span, Time};
use trunkline_transport::tcp::congestion::{
    Ack, Algorithm, Congestion, Controller, Counting, Reason, Settings,
};

const SEGMENT: u64 = MSS as u64;

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// A flow of `kind` in congestion avoidance with a window of `segments`.
fn avoiding(settings: Settings, segments: u64) -> Controller {
    let mut flow = Controller::new(&settings);
    flow.congested(at(0), 2 * segments * SEGMENT, Reason::Loss);
    flow.recovered(at(0));
    assert_eq!(flow.window(), segments * SEGMENT);
    flow
}

/// `count` ACKs of `bytes` each.
fn acks(flow: &mut Controller, count: u64, bytes: u64) {
    for _ in 0..count {
        flow.acked(&Ack { smoothed_rtt: Span::from_millis(200), ..Ack::of(at(1), bytes) });
    }
}

#[test]
fn initial_windows() {
    for (mss, window) in [(536, 5_360), (1_000, 10_000), (1_448, 14_480), (9_140, 18_280)] {
        assert_eq!(
            Controller::new(&Settings::new(Algorithm::NEW_RENO, mss)).window(),
            window,
            "{mss}"
        );
    }
    let settings = Settings { initial_window: Some(536), ..Settings::new(Algorithm::CUBIC, 1_448) };
    assert_eq!(Controller::new(&settings).window(), 1_448, "never below a segment");
}

#[test]
fn slow_start_counts_two_segments_for_an_ack_at_most() {
    let mut flow = controller(Algorithm::NEW_RENO);
    acks(&mut flow, 10, SEGMENT);
    assert_eq!(flow.window(), 20 * SEGMENT);
    acks(&mut flow, 1, 5 * SEGMENT);
    assert_eq!(flow.window(), 22 * SEGMENT);
    flow.timed_out(at(2), flow.window());
    acks(&mut flow, 1, 5 * SEGMENT);
    assert_eq!(flow.window(), 2 * SEGMENT, "and one after a time-out");
    // CUBIC the same (RFC 9438 §4.10 leaves slow start as it is); Linux has no such limit.
    for (counts_segments, window) in [(false, 2), (true, 6)] {
        let settings = Settings {
            counts_segments,
            slow_start_limit: 255,
            ..Settings::new(Algorithm::CUBIC, MSS)
        };
        let mut flow = Controller::new(&settings);
        acks(&mut flow, 90, SEGMENT);
        flow.timed_out(at(2), flow.window());
        acks(&mut flow, 1, 5 * SEGMENT);
        assert_eq!(flow.window(), window * SEGMENT, "segments counted: {counts_segments}");
    }
}

#[test]
fn congestion_avoidance_adds_a_segment_for_a_window() {
    let mut flow = avoiding(Settings::new(Algorithm::NEW_RENO, MSS), 10);
    acks(&mut flow, 9, SEGMENT);
    assert_eq!(flow.window(), 10 * SEGMENT);
    acks(&mut flow, 1, SEGMENT);
    assert_eq!(flow.window(), 11 * SEGMENT);
    let by_four = Settings { increase: 4, ..Settings::new(Algorithm::NEW_RENO, MSS) };
    let mut flow = avoiding(by_four, 100);
    acks(&mut flow, 100, SEGMENT);
    assert_eq!(flow.window(), 103 * SEGMENT, "the last one's price has risen by then");
}

#[test]
fn the_constant_rate_is_c_times_the_round_trip_squared() {
    // c = 100 segments/s², r = 0.2 s: 4 segments in a round trip.
    let mut flow = avoiding(Settings::new(Algorithm::CONSTANT_RATE, MSS), 1_000);
    acks(&mut flow, 1_000, SEGMENT);
    assert_eq!(flow.window(), 1_003 * SEGMENT);
    acks(&mut flow, 4, SEGMENT);
    assert_eq!(flow.window(), 1_004 * SEGMENT);
}

#[test]
fn counting_acks_as_bsd_did() {
    let with = |counting| {
        let settings = Settings { counting, ..Settings::new(Algorithm::RENO, MSS) };
        let mut flow = avoiding(settings, 10);
        acks(&mut flow, 1, 2 * SEGMENT);
        flow.window()
    };
    assert_eq!(with(Counting::Acks), 10_100);
    assert_eq!(with(Counting::AcksAndEighth), 10_225);
}

#[test]
fn reductions() {
    for (kind, abe, loss, mark) in [
        (Algorithm::NEW_RENO, false, 50_500, 50_500),
        (Algorithm::NEW_RENO, true, 50_500, 80_800),
        (Algorithm::CUBIC, false, 70_700, 70_700),
        (Algorithm::CUBIC, true, 70_700, 85_850),
    ] {
        for (reason, window) in [(Reason::Loss, loss), (Reason::EcnEcho, mark)] {
            let settings = Settings { alternative_backoff: abe, ..Settings::new(kind, MSS) };
            let mut flow = Controller::new(&settings);
            flow.congested(at(0), 101_000, reason);
            assert_eq!((flow.window(), flow.slow_start_threshold()), (window, window), "{kind}");
        }
    }
    let mut bbr = controller(Algorithm::BBR);
    bbr.congested(at(0), 101_000, Reason::EcnEcho);
    assert_eq!(bbr.window(), 10 * SEGMENT, "BBR's first version takes no notice of marks");
}

#[test]
fn reductions_have_a_floor_and_may_be_whole() {
    let mut flow = controller(Algorithm::NEW_RENO);
    flow.congested(at(0), SEGMENT, Reason::Loss);
    assert_eq!(flow.window(), 2 * SEGMENT);
    let mut flow = controller(Algorithm::CUBIC);
    flow.congested(at(0), SEGMENT, Reason::EcnEcho);
    assert_eq!((flow.window(), flow.slow_start_threshold()), (SEGMENT, 2 * SEGMENT));
    let settings = Settings { whole_segments: true, ..Settings::new(Algorithm::RENO, MSS) };
    let mut flow = Controller::new(&settings);
    flow.congested(at(0), 7 * SEGMENT, Reason::Loss);
    assert_eq!(flow.window(), 3 * SEGMENT);
}

/// As in Linux: half of the window in whole segments, whatever is in flight, and a time-out within a recovery
/// takes nothing more; slow start after it counts all that is acknowledged, and so does what follows it.
#[test]
fn windows_may_be_counts_of_segments() {
    let settings = Settings {
        counts_segments: true,
        slow_start_limit: 255,
        ..Settings::new(Algorithm::NEW_RENO, MSS)
    };
    let mut flow = avoiding(settings, 5);
    flow.congested(at(0), 50 * SEGMENT, Reason::Loss);
    assert_eq!(flow.window(), 2 * SEGMENT);
    flow.timed_out(at(1), 50 * SEGMENT);
    assert_eq!((flow.window(), flow.slow_start_threshold()), (SEGMENT, 2 * SEGMENT));
    // One segment to the threshold, and six at two for each segment more.
    acks(&mut flow, 1, 7 * SEGMENT);
    assert_eq!(flow.window(), 5 * SEGMENT);
    let cubic = Settings { counts_segments: true, ..Settings::new(Algorithm::CUBIC, MSS) };
    let mut flow = Controller::new(&cubic);
    flow.congested(at(0), SEGMENT, Reason::Loss);
    assert_eq!(flow.window(), 7 * SEGMENT);
    flow.timed_out(at(1), SEGMENT);
    assert_eq!(flow.slow_start_threshold(), 7 * SEGMENT);
}

#[test]
fn what_was_known_to_have_arrived_makes_no_window_grow() {
    let mut flow = avoiding(Settings::new(Algorithm::NEW_RENO, MSS), 20);
    let ack = Ack::of(at(1), 44 * SEGMENT);
    flow.acked(&Ack { delivered: SEGMENT, ..ack });
    assert_eq!(flow.window(), 20 * SEGMENT);
}

/// RFC 5681 §3.1: when the segment that timed out had been sent again already, the threshold stays.
#[test]
fn a_repeated_time_out_keeps_the_threshold() {
    for (kind, threshold) in [(Algorithm::NEW_RENO, 20_000), (Algorithm::CUBIC, 28_000)] {
        let mut flow = controller(kind);
        flow.timed_out(at(0), 40_000);
        flow.timed_out(at(1), 1_000);
        assert_eq!((flow.window(), flow.slow_start_threshold()), (SEGMENT, threshold), "{kind}");
        acks(&mut flow, 1, SEGMENT);
        flow.timed_out(at(2), 10_000);
        assert!(flow.slow_start_threshold() < threshold, "{kind}: this one is new");
    }
}

#[test]
fn nothing_grows_in_recovery_or_when_the_window_is_not_what_limits() {
    for kind in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut flow = controller(kind);
        flow.acked(&Ack { recovering: true, ..Ack::of(at(1), SEGMENT) });
        flow.acked(&Ack { window_limited: false, ..Ack::of(at(1), SEGMENT) });
        assert_eq!(flow.window(), 10 * SEGMENT, "{kind}");
    }
}

#[test]
fn idleness_brings_the_initial_window_back() {
    for kind in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut flow = controller(kind);
        acks(&mut flow, 30, SEGMENT);
        flow.restarted_after_idle(at(9_000), 3);
        assert_eq!(flow.window(), 10 * SEGMENT, "{kind}");
    }
}

/// The window in segments after `seconds` of ACKs with a round trip of 50 ms.
fn after(flow: &mut Controller, begin: Time, seconds: u64) -> f64 {
    let (rtt, mut now) = (Span::from_millis(50), begin);
    while now.since(begin) < Span::from_secs(seconds) {
        now += rtt.scaled(SEGMENT, flow.window());
        flow.acked(&Ack { smoothed_rtt: rtt, ..Ack::of(now, SEGMENT) });
    }
    flow.window() as f64 / SEGMENT as f64
}

/// A flow of CUBIC that has lost a segment at a window of 1000.
fn cubic_after_loss() -> Controller {
    let initial_window = Some(1_000 * SEGMENT);
    let mut flow =
        Controller::new(&Settings { initial_window, ..Settings::new(Algorithm::CUBIC, MSS) });
    flow.congested(at(0), flow.window(), Reason::Loss);
    flow.recovered(at(0));
    flow
}

/// RFC 9438 §4.7: a flow that loses below its last plateau takes (1 + β)/2 of its window for the next.
#[test]
fn fast_convergence_makes_room() {
    let mut flow = cubic_after_loss();
    flow.congested(at(1), flow.window(), Reason::Loss);
    flow.recovered(at(1));
    // The next plateau: 700 × 0.85 = 595, reached from 490 after K = ∛(105/0.4) = 6.4 s.
    let window = after(&mut flow, at(1), 7);
    assert!((594.0..598.0).contains(&window), "{window}");
}

/// RFC 9438 §4.8: after a time-out K is 0, and the plateau is the window at which congestion avoidance begins.
#[test]
fn after_a_time_out_the_curve_begins_flat() {
    let mut flow = cubic_after_loss();
    flow.timed_out(at(1), 100 * SEGMENT);
    acks(&mut flow, 69, SEGMENT);
    assert_eq!(flow.window(), 70 * SEGMENT, "slow start up to 0.7 of 100");
    // 0.4 · 6³ = 86 above 70, more than the Reno-friendly window of 120 × 9/17.
    let window = after(&mut flow, at(1), 6);
    assert!((154.0..160.0).contains(&window), "{window}");
}

/// RFC 9438 §5.8: time in which the application sent too little does not count.
#[test]
fn the_curve_waits_while_the_application_does() {
    let (mut busy, mut idle) = (cubic_after_loss(), cubic_after_loss());
    let expected = after(&mut busy, at(0), 10);
    after(&mut idle, at(0), 5);
    for second in 6..65 {
        let quiet = Ack { window_limited: false, ..Ack::of(at(1_000 * second), SEGMENT) };
        idle.acked(&quiet);
    }
    let window = after(&mut idle, at(64_000), 5);
    assert!((window - expected).abs() < 2.0, "{window}, without the pause {expected}");
}

/// BBR's window comes back after a time-out, told or not (draft §4.2.3.4).
#[test]
fn bbr_comes_back_from_a_time_out() {
    let path = crate::congestion::pipe::Path {
        rate: trunkline_core::Rate::from_bits_per_second(20_000_000),
        way: Span::from_millis(50),
        buffer: 10_000_000,
    };
    for told in [true, false] {
        let mut sender = crate::congestion::pipe::Sender::new(controller(Algorithm::BBR), path);
        sender.run(Span::from_secs(5));
        let before = sender.controller.window();
        sender.controller.timed_out(at(5_000), before);
        assert_eq!(sender.controller.window(), SEGMENT);
        if told {
            sender.controller.recovered(at(5_000));
            sender.run(Span::from_millis(3));
            assert_eq!(sender.controller.window(), before, "with the next acknowledgement");
        }
        sender.run(Span::from_secs(1));
        let after = sender.controller.window();
        assert!(after.abs_diff(before) <= before / 10, "{after}, before {before}");
    }
}
