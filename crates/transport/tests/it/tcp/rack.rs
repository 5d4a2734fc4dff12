//! Loss told by time, and probes of the tail.

use crate::tcp::pair::{Network, Pair, Passing, at, millis};
use trunkline_core::Span;
use trunkline_transport::tcp::congestion::Algorithm;
use trunkline_transport::tcp::{Profile, Settings};

fn settings(rack: bool) -> Settings {
    Settings {
        mss: 1000,
        sack: true,
        timestamps: false,
        delayed_ack: None,
        initial_window: 20,
        congestion: Algorithm::NEW_RENO,
        rack,
        ..Settings::default()
    }
}

/// 50 ms each way; a data segment numbered `seq` is lost the first `times` times.
fn losing(seq: u32, times: usize) -> Network {
    let mut left = times;
    Box::new(move |passing: Passing<'_>| {
        let hit = passing.way == 0 && passing.segment.seq.get() == seq && left > 0;
        left -= usize::from(hit);
        if hit { vec![] } else { vec![millis(50)] }
    })
}

#[test]
fn a_segment_lost_twice_is_found_out_by_time() {
    for (rack, timeouts) in [(true, 0), (false, 1)] {
        let mut pair = Pair::connected([settings(rack); 2], losing(1001, 2));
        pair.offer(0, 60_000);
        pair.run(at(9000));
        let counters = pair.ends[0].counters().sending;
        assert_eq!((counters.timeouts, counters.fast_retransmits), (timeouts, 1), "{rack}");
        assert_eq!(pair.taken[1], 60_000);
        assert!(!rack || counters.retransmitted == 2);
    }
}

#[test]
fn the_tail_is_probed_and_its_loss_counts_once() {
    for (rack, timeouts) in [(true, 0), (false, 1)] {
        let mut pair = Pair::connected([settings(rack); 2], losing(9001, 1)).traced();
        pair.offer(0, 9000);
        pair.run(at(200));
        pair.offer(0, 1000);
        pair.run(at(9000));
        let counters = pair.ends[0].counters().sending;
        assert_eq!((counters.timeouts, pair.taken[1]), (timeouts, 10_000), "{rack}");
        assert_eq!(counters.tail_probes, u32::from(rack));
        if rack {
            // A lone segment: two round trips and what its acknowledgement may be held back.
            let last = pair.sent(0).last().copied();
            assert_eq!(last, Some((200 + 2 * 100 + 200, 9001, 1000)));
            pair.offer(0, 1000);
            pair.run(at(10_000));
            assert!(pair.ends[0].slow_start_threshold() < u64::MAX, "the loss was congestion");
        }
    }
}

#[test]
fn a_probe_that_was_needless_costs_nothing() {
    // The acknowledgements of the last segments come 400 ms late: the probe is a duplicate.
    let network = Box::new(|passing: Passing<'_>| {
        let late = passing.way == 1 && (8..12).contains(&passing.number);
        vec![millis(if late { 450 } else { 50 })]
    });
    let mut pair = Pair::connected([settings(true); 2], network);
    pair.offer(0, 8000);
    pair.run(at(200));
    pair.offer(0, 4000);
    pair.run(at(9000));
    let counters = [0, 1].map(|end| pair.ends[end].counters());
    assert_eq!((counters[0].sending.tail_probes, counters[0].sending.timeouts), (1, 0));
    assert_eq!(counters[1].receiving.duplicates, 1);
    assert_eq!(pair.ends[0].slow_start_threshold(), u64::MAX);
}

#[test]
fn reordering_once_seen_is_waited_for() {
    // Every 25th segment comes 20 ms late, behind some ten that were sent after it.
    let network = |shift: u64| -> Network {
        Box::new(move |passing: Passing<'_>| {
            let late = passing.way == 0 && passing.number % 25 == 24;
            vec![millis(50) + if late { millis(shift) } else { Span::ZERO }]
        })
    };
    let pace = |pair: &mut Pair| {
        for _ in 0..400 {
            pair.offer(0, 1000);
            pair.run(pair.now + millis(2));
        }
        pair.run(pair.now + millis(3000));
    };
    let mut pair = Pair::connected([settings(true); 2], network(20));
    pace(&mut pair);
    let wise = pair.ends[0].counters().sending;
    let mut pair = Pair::connected([Settings { undo: false, ..settings(false) }; 2], network(20));
    pace(&mut pair);
    let naive = pair.ends[0].counters().sending;
    assert_eq!(pair.taken[1], 400_000);
    assert!(naive.fast_retransmits >= 5, "{naive:?}");
    assert!(wise.fast_retransmits <= 2 && wise.timeouts == 0, "{wise:?}");
}

/// RFC 8985 §6.2 step 5: the timer runs until the last segment that was overtaken is due, so that one event finds
/// them all. Three are sent 10 ms apart and the first two come late; a quarter of the round trip is allowed.
#[test]
fn the_timer_waits_for_the_last_segment_overtaken() {
    let network: Network = Box::new(|passing: Passing<'_>| {
        let late = passing.way == 0 && (3..5).contains(&passing.number);
        vec![millis(if late { 500 } else { 50 })]
    });
    let settings = Settings { prr: false, ..settings(true) };
    let mut pair = Pair::connected([settings; 2], network).traced();
    pair.offer(0, 3000);
    pair.run(at(400));
    for _ in 0..3 {
        pair.offer(0, 1000);
        pair.run(pair.now + millis(10));
    }
    pair.run(at(600));
    let again: Vec<(u64, u64)> = pair.sent(0)[6..].iter().map(|sent| (sent.0, sent.1)).collect();
    // The third arrived at 470 and told at 520; sent at 400 and 410, they were due at 525 and 535.
    assert_eq!(again, [(535, 3001), (535, 4001)]);
}

#[test]
fn linux_repairs_whatever_a_window_loses_without_a_time_out() {
    let linux = Settings::of(Profile::Linux);
    let mut lost = Vec::new();
    let network = Box::new(move |passing: Passing<'_>| {
        let (seq, now) = (passing.segment.seq.get(), passing.now);
        let data = passing.way == 0 && passing.segment.data.len > 0;
        let burst = (at(1000)..at(1020)).contains(&now) && !lost.contains(&seq);
        if data && burst {
            lost.push(seq);
            return vec![];
        }
        vec![millis(20)]
    });
    let mut pair = Pair::connected([linux; 2], network);
    pair.offer(0, 400_000_000);
    // The whole window was lost: recovery starts slowly, from the probe's one segment.
    pair.run(at(2000));
    let counters = pair.ends[0].counters().sending;
    assert!(counters.retransmitted > 20, "{counters:?}");
    assert_eq!((counters.timeouts, counters.spurious), (0, 0));
    assert!(!pair.ends[0].recovering(), "{}", pair.state());
}
