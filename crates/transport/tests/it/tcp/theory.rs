//! Long transfers over simple paths against what theory says of them.

use crate::tcp::pair::{Pair, Passing, at, bottleneck, millis};
use trunkline_core::{Probability, Seed, Span};
use trunkline_transport::tcp::congestion::{Algorithm, Counting};
use trunkline_transport::tcp::{MOST_BUFFER, Profile, Settings};

const MSS: u32 = 1000;

fn greedy(kind: Algorithm, sack: bool) -> Settings {
    Settings {
        mss: MSS,
        sack,
        timestamps: false,
        delayed_ack: None,
        receive_buffer: MOST_BUFFER,
        send_buffer: MOST_BUFFER,
        rack: false,
        counting: Counting::Acks,
        min_rto: millis(200),
        ..Settings::default()
    }
    .with_congestion(kind)
}

/// The mean window in segments over a path of 100 ms that loses each data segment with probability `p`.
fn mean_window(settings: Settings, p: f64, seconds: u64) -> f64 {
    let mut draw = Seed(7).stream("loss");
    let p = Probability::new(p).unwrap();
    let network = Box::new(move |passing: Passing<'_>| {
        let lost = passing.way == 0 && draw.happens(p);
        if lost { vec![] } else { vec![millis(50)] }
    });
    let mut pair = Pair::connected([settings; 2], network);
    pair.offer(0, u32::MAX);
    pair.run(at(20_000));
    let before = pair.taken[1];
    pair.run(at(20_000 + seconds * 1000));
    (pair.taken[1] - before) as f64 / f64::from(MSS) / seconds as f64 * 0.1
}

/// The square-root law of random losses, window √(3/2p) segments (reference of the LDS study, §2), within a
/// tenth, and its exponent.
#[test]
fn newreno_follows_the_square_root_of_the_loss() {
    for sack in [false, true] {
        let mut windows = Vec::new();
        for p in [0.001f64, 0.003, 0.01] {
            let window = mean_window(greedy(Algorithm::NEW_RENO, sack), p, 1500);
            let law = (1.5 / p).sqrt();
            let ratio = window / law;
            println!("sack {sack}, p {p}: {window:.2} segments, {ratio:.3} of the law");
            assert!((0.9..1.1).contains(&ratio), "sack {sack}, p {p}: {window:.2}, {ratio:.3}");
            windows.push(window);
        }
        let slope = (windows[0] / windows[2]).log10();
        assert!((0.46..0.56).contains(&slope), "sack {sack}: exponent {slope:.3}");
    }
}

/// A loss every 1/p segments: the law's own case. A round trip of each epoch goes into the repair, and
/// mss²/window for each acknowledgement sums to less than a segment; both weigh less the longer the epoch.
#[test]
fn regular_losses_give_the_law_itself() {
    let mut ratios = Vec::new();
    for every in [200u64, 800] {
        let mut count = 0;
        let network = Box::new(move |passing: Passing<'_>| {
            count += u64::from(passing.way == 0);
            let lost = passing.way == 0 && count % every == 0;
            if lost { vec![] } else { vec![millis(50)] }
        });
        let mut pair = Pair::connected([greedy(Algorithm::NEW_RENO, true); 2], network);
        pair.offer(0, u32::MAX);
        pair.run(at(20_000));
        let before = pair.taken[1];
        pair.run(at(620_000));
        let window = (pair.taken[1] - before) as f64 / f64::from(MSS) / 6000.0;
        let ratio = window / (1.5 * every as f64).sqrt();
        println!("every {every}: {window:.2} segments, {ratio:.3} of the law");
        assert!((0.88..1.0).contains(&ratio), "every {every}: {window:.2}, {ratio:.3}");
        ratios.push(ratio);
    }
    assert!(ratios[1] > ratios[0] && ratios[1] > 0.93, "{ratios:?}");
}

/// One flow with a buffer of a bandwidth-delay product keeps the line busy, whatever the profile.
#[test]
fn a_buffered_line_is_kept_busy() {
    for (profile, kind) in [
        (Profile::Trunkline, Algorithm::NEW_RENO),
        (Profile::Linux, Algorithm::CUBIC),
        (Profile::BsdReno, Algorithm::RENO),
    ] {
        // 100 segments of 1500 octets in 100 ms: 1.5 MB/s; BSD's window holds 43 of them.
        let rate = if profile == Profile::BsdReno { 500_000 } else { 1_500_000 };
        let settings = Settings { mss: 1460, ..Settings::of(profile) }.with_congestion(kind);
        let network = bottleneck(rate, 100, millis(50), |_| false);
        let mut pair = Pair::connected([settings; 2], network);
        pair.offer(0, u32::MAX);
        pair.run(at(20_000));
        let before = pair.taken[1];
        pair.run(at(80_000));
        let goodput = (pair.taken[1] - before) as f64 / 60.0;
        let most = rate as f64 * 1460.0 / 1500.0;
        println!("{profile}: {:.3} of the line", goodput / most);
        assert!(goodput > 0.93 * most && goodput <= most, "{profile}: {goodput:.0} of {most:.0}");
    }
}

/// Without SACK a hole is filled long after what lay behind it arrived, which is no round trip of that.
#[test]
fn repairs_without_sack_are_not_taken_for_round_trips() {
    for (kind, sack) in
        [(Algorithm::NEW_RENO, false), (Algorithm::CUBIC, false), (Algorithm::CUBIC, true)]
    {
        // As Linux does it, a repair takes a round trip for each of the 800 segments that slow start loses; and
        // after a time-out its CUBIC grows by a twentieth in each round trip, to lose a dozen at once again.
        let (emulates_sack, counts_segments) = (false, false);
        let linux = Settings::of(Profile::Linux);
        let settings = Settings { mss: 1460, sack, emulates_sack, counts_segments, ..linux };
        let network = bottleneck(12_500_000, 170, millis(20), |_| false);
        let mut pair = Pair::connected([settings.with_congestion(kind); 2], network);
        pair.offer(0, u32::MAX);
        pair.run(at(10_000));
        let before = pair.taken[1];
        pair.run(at(40_000));
        let share = (pair.taken[1] - before) as f64 / 30.0 / (12_500_000.0 * 1448.0 / 1500.0);
        println!("{kind}, sack {sack}: {share:.3} of the line");
        assert!(share > 0.8, "{kind}, sack {sack}: {share:.3}");
    }
}

/// A window of 65 535 octets over 600 ms: one window in each round trip, whatever the line.
#[test]
fn a_window_without_scaling_bounds_a_satellite_path() {
    let settings = Settings { window_scaling: false, mss: 1460, ..Settings::default() };
    let network = bottleneck(12_500_000, 1000, millis(300), |_| false);
    let mut pair = Pair::connected([settings; 2], network);
    pair.offer(0, u32::MAX);
    pair.run(at(20_000));
    let before = pair.taken[1];
    pair.run(at(80_000));
    let goodput = (pair.taken[1] - before) as f64 / 60.0;
    let segments = 65_535 / 1448;
    let expected = f64::from(segments * 1448) / Span::from_millis(600).as_secs_f64();
    assert!((goodput / expected - 1.0).abs() < 0.02, "{goodput:.0} of {expected:.0}");
}
