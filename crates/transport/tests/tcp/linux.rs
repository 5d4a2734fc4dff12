//! Where Linux does otherwise than the RFCs have it.

use crate::pair::{Network, Pair, Passing, at, bottleneck, delay, millis};
use trunkline_core::{Span, Time};
use trunkline_transport::tcp::congestion::Kind;
use trunkline_transport::tcp::{Flags, Profile, Settings};

fn linux(sack: bool) -> Settings {
    let settings = Settings { mss: 1000, sack, timestamps: false, ..Settings::of(Profile::Linux) };
    settings.with_congestion(Kind::NewReno)
}

/// `after` each way; of the first end's segments those of these numbers are lost, once.
fn losing<const N: usize>(after: Span, numbers: [usize; N]) -> Network {
    Box::new(move |passing: Passing<'_>| {
        let lost = passing.way == 0 && numbers.contains(&passing.number);
        if lost { vec![] } else { vec![after] }
    })
}

#[test]
fn the_first_window_is_ten_segments_of_any_size() {
    let settings = Settings { mss: 9140, ..linux(true) };
    let pair = Pair::connected([settings; 2], delay(millis(1)));
    assert_eq!(pair.ends[0].window(), 10 * 9140);
}

/// Half of the window, not of what is in flight; and the acknowledgement that ends the recovery counts for what
/// it newly tells of only.
#[test]
fn a_recovery_leaves_half_the_window_and_no_more() {
    for sack in [false, true] {
        let mut pair = Pair::connected([linux(sack); 2], losing(millis(50), [3]));
        pair.offer(0, 100_000);
        pair.run(at(130));
        assert!(pair.ends[0].recovering());
        let half = pair.ends[0].slow_start_threshold();
        assert_eq!(half % 1000, 0, "sack {sack}");
        while pair.ends[0].recovering() {
            assert!(pair.step(at(1000)), "sack {sack}: {}", pair.state());
        }
        assert_eq!(pair.ends[0].window(), half, "sack {sack}");
    }
}

/// Without SACK, being acknowledged up to where the recovery began does not end it.
#[test]
fn without_sack_more_must_be_acknowledged_than_was_outstanding() {
    let mut pair = Pair::connected([linux(false); 2], losing(millis(50), [9]));
    pair.offer(0, 30_000);
    pair.run(at(5000));
    assert_eq!(pair.taken[1], 30_000);
    let mut pair = Pair::connected([linux(false); 2], losing(millis(50), [0]));
    pair.offer(0, 10_000);
    pair.run(at(5000));
    assert_eq!((pair.taken[1], pair.ends[0].recovering()), (10_000, true), "nothing came after");
    pair.offer(0, 2000);
    pair.run(at(6000));
    assert_eq!((pair.taken[1], pair.ends[0].recovering()), (12_000, false));
    assert_eq!(pair.ends[0].counters().sending.timeouts, 0);
}

/// How many segments leave alone, as a share, where each is acknowledged at once and the line takes `rate`
/// octets a second. Those that leave together push one.
fn alone(defers: bool, rate: u64) -> f64 {
    let settings = Settings { receive_buffer: 20_000, delayed_ack: None, defers, ..linux(true) };
    let network = bottleneck(rate, 100, millis(1), |_| false);
    let mut pair = Pair::connected([settings; 2], network).traced();
    pair.offer(0, 4_000_000);
    pair.run(at(500));
    let mut groups: Vec<(Time, u32, bool)> = Vec::new();
    let trace = pair.trace.unwrap();
    for sent in trace.iter().filter(|sent| sent.way == 0 && sent.at > at(50)) {
        let pushed = sent.segment.flags.has(Flags::PSH);
        match groups.last_mut() {
            Some(group) if group.0 == sent.at => *group = (sent.at, group.1 + 1, group.2 | pushed),
            _ => groups.push((sent.at, 1, pushed)),
        }
    }
    assert!(groups.iter().all(|&(_, count, pushed)| !defers || count < 2 || pushed));
    let single = groups.iter().filter(|group| group.1 == 1).count();
    single as f64 / groups.iter().map(|group| f64::from(group.1)).sum::<f64>()
}

#[test]
fn segments_wait_for_each_other_where_the_next_acknowledgement_is_near() {
    // A segment takes 0.2 ms, and 2 ms.
    assert!(alone(false, 5_200_000) > 0.9);
    assert!(alone(true, 5_200_000) < 0.1);
    assert!(alone(true, 520_000) > 0.9);
}
