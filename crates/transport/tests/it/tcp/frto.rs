//! Needless time-outs found out by what comes after them: F-RTO (RFC 5682).

use crate::tcp::pair::{Network, Pair, Passing, at, millis};
use trunkline_core::Span;
use trunkline_transport::tcp::congestion::Algorithm;
use trunkline_transport::tcp::{Profile, Settings};

/// No time stamps, and no probes of the tail, so that nothing else finds out.
fn settings(profile: Profile, sack: bool) -> Settings {
    Settings {
        mss: 1000,
        sack,
        timestamps: false,
        rack: false,
        delayed_ack: None,
        quick_acks: 0,
        interactive: false,
        initial_window: 8,
        congestion: Algorithm::NEW_RENO,
        min_rto: millis(300),
        ..Settings::of(profile)
    }
}

/// 50 ms each way, but what arrives between 200 ms and 1 s is held until then, in its order.
fn pausing() -> Network {
    Box::new(|passing: Passing<'_>| {
        let arrives = passing.now + millis(50);
        let held = passing.way == 0 && arrives > at(200) && arrives < at(1000);
        vec![if held { at(1000).since(passing.now) } else { millis(50) }]
    })
}

const PROFILES: [Profile; 2] = [Profile::Trunkline, Profile::Linux];

/// RFC 5682 §2.1, §3.1: the first acknowledgement after the time-out moves the window, two new segments go out
/// rather than the second that seems lost, and the next one covers what was never sent again.
#[test]
fn a_pause_is_no_loss() {
    for (profile, sack) in PROFILES.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let mut pair = Pair::connected([settings(profile, sack); 2], pausing()).traced();
        pair.offer(0, 60_000);
        pair.run(at(260));
        let window = pair.ends[0].window();
        pair.run(at(1300));
        let counters = pair.ends[0].counters().sending;
        assert_eq!((counters.timeouts, counters.retransmitted), (1, 1), "{profile} {sack}");
        assert_eq!(counters.spurious, 1, "{profile} {sack}");
        assert!(pair.ends[0].window() >= window, "{profile} {sack}: {}", pair.ends[0].window());
        assert_eq!(pair.ends[0].slow_start_threshold(), u64::MAX);
        pair.run(at(9000));
        assert_eq!(pair.taken[1], 60_000);
        assert_eq!(pair.ends[1].counters().receiving.duplicates, 1);
    }
}

/// A time-out that was right stays one, though two new segments went before its repairs (§2.1 step 3a).
#[test]
fn a_true_loss_is_repaired() {
    for (profile, sack) in PROFILES.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let network: Network = Box::new(|passing: Passing<'_>| {
            let lost = passing.way == 0 && (8..24).contains(&passing.number);
            if lost { vec![] } else { vec![millis(50)] }
        });
        let mut pair = Pair::connected([settings(profile, sack); 2], network).traced();
        pair.offer(0, 60_000);
        pair.run(at(9000));
        let counters = [0, 1].map(|end| pair.ends[end].counters());
        assert_eq!(pair.taken[1], 60_000, "{profile} {sack}");
        assert_eq!(counters[0].sending.spurious, 0, "{profile} {sack}");
        assert!(pair.ends[0].slow_start_threshold() < 20_000, "{profile} {sack}");
        // Without SACK go-back-N repeats the two new ones, which came.
        let twice = if sack { 0 } else { 2 };
        assert!(counters[1].receiving.duplicates <= twice, "{profile} {sack}: {counters:?}");
    }
}

/// If nothing new is there to be sent, recovery goes its old way (§2.1 step 2b).
#[test]
fn without_new_data_the_losses_are_repaired_at_once() {
    let network: Network = Box::new(|passing: Passing<'_>| {
        let lost = passing.way == 0 && passing.number < 8;
        if lost { vec![] } else { vec![millis(50)] }
    });
    let mut pair = Pair::connected([settings(Profile::Linux, true); 2], network).traced();
    pair.offer(0, 8000);
    pair.run(at(9000));
    let counters = pair.ends[0].counters().sending;
    assert_eq!((counters.timeouts, counters.retransmitted, counters.spurious), (1, 8, 0));
    let times: Vec<u64> = pair.sent(0)[8..].iter().map(|sent| sent.0).collect();
    let first = times[0];
    assert_eq!(times[1..3], [first + 100, first + 100], "{times:?}");
}

/// 4.4BSD knows nothing of it: it goes back to the first and sends all again.
#[test]
fn bsd_goes_back() {
    let bsd = Settings { mss: 1000, initial_window: 8, ..Settings::of(Profile::BsdReno) };
    let late: Network = Box::new(|passing: Passing<'_>| {
        let held = passing.way == 0 && passing.number < 8;
        vec![if held { Span::from_secs(9) } else { millis(50) }]
    });
    let mut pair = Pair::connected([bsd; 2], late);
    pair.offer(0, 30_000);
    pair.run(at(60_000));
    let counters = pair.ends[0].counters().sending;
    assert_eq!((pair.taken[1], counters.spurious), (30_000, 0));
    assert!(counters.retransmitted > 1, "{counters:?}");
}
