//! The cases that textbooks draw.

use crate::tcp::pair::{Network, Pair, Passing, Sent, at, delay, mark, millis};
use std::collections::BTreeSet;
use trunkline_core::Span;
use trunkline_transport::Extent;
use trunkline_transport::tcp::congestion::Algorithm;
use trunkline_transport::tcp::{Blocked, Flags, Profile, Recovery, Segment, Settings, Tcp};

/// 1000 octets in a segment, no SACK, no options, every segment acknowledged.
fn plain() -> Settings {
    Settings {
        mss: 1000,
        sack: false,
        timestamps: false,
        delayed_ack: None,
        initial_window: 8,
        congestion: Algorithm::NEW_RENO,
        rack: false,
        prr: false,
        undo: false,
        limited_transmit: false,
        ..Settings::default()
    }
}

fn with_sack() -> Settings {
    Settings { sack: true, ..plain() }
}

/// 50 ms each way; of the first end's segments those of these numbers are lost, once.
fn losing<const N: usize>(numbers: [usize; N]) -> Network {
    Box::new(move |passing: Passing<'_>| {
        let lost = passing.way == 0 && numbers.contains(&passing.number);
        if lost { vec![] } else { vec![millis(50)] }
    })
}

fn sent_again(pair: &Pair) -> Vec<(u64, u64)> {
    let again = pair.trace.as_ref().unwrap().iter().filter(|sent| sent.segment.is_retransmission());
    again.map(|sent| (sent.at.as_nanos() / 1_000_000, sent.position)).collect()
}

#[test]
fn three_duplicates_send_a_segment_again_and_halve_the_window() {
    let mut pair = Pair::connected([plain(); 2], losing([2])).traced();
    pair.offer(0, 8000);
    pair.run(at(99));
    assert_eq!(pair.ends[0].in_flight(), 8000);
    pair.run(at(100));
    // Two acknowledgements and five duplicates have come at 100 ms, the third of which told.
    assert_eq!(sent_again(&pair), [(100, 2001)]);
    assert!(pair.ends[0].recovering());
    assert_eq!(pair.ends[0].window(), 3000, "half of six segments outstanding");
    pair.run(at(1000));
    let counters = pair.ends[0].counters().sending;
    assert_eq!((counters.fast_retransmits, counters.timeouts), (1, 0));
    assert_eq!((counters.duplicate_acks, counters.retransmitted), (5, 1));
    assert_eq!((pair.taken[1], pair.ends[0].recovering()), (8000, false));
}

#[test]
fn the_end_of_what_was_written_is_pushed_when_it_is_sent_again_too() {
    let mut pair = Pair::connected([plain(); 2], losing([3])).traced();
    pair.offer(0, 4000);
    pair.run(at(5000));
    let sent = pair.trace.as_ref().unwrap().iter().filter(|sent| sent.segment.data.len > 0);
    let pushed: Vec<(u64, bool)> =
        sent.map(|sent| (sent.position, sent.segment.flags.has(Flags::PSH))).collect();
    assert_eq!(pushed, [(1, false), (1001, false), (2001, false), (3001, true), (3001, true)]);
}

/// A segment that holds what has come, and more: it lies behind no gap.
#[test]
fn what_overlaps_what_has_come_is_not_out_of_order() {
    let mut pair = Pair::connected([plain(); 2], delay(millis(50))).traced();
    pair.offer(0, 3000);
    pair.run(at(1000));
    let of_data = |sent: &&Sent| sent.way == 0 && sent.segment.data.len > 0;
    let last = pair.trace.as_ref().unwrap().iter().rfind(of_data).unwrap().segment.clone();
    let half = Segment { seq: last.seq.plus(500), data: Extent::new(2500, 1000), ..last };
    pair.ends[1].receive(pair.now, half);
    let counters = pair.ends[1].counters().receiving;
    assert_eq!((counters.out_of_order, counters.duplicates), (0, 0));
    assert_eq!(pair.ends[1].received(), 3500);
}

#[test]
fn a_partial_acknowledgement_sends_the_next_one_again_in_newreno() {
    let mut pair = Pair::connected([plain(); 2], losing([1, 4])).traced();
    pair.offer(0, 20_000);
    pair.run(at(3000));
    assert_eq!(sent_again(&pair), [(100, 1001), (200, 4001)]);
    let counters = pair.ends[0].counters().sending;
    assert_eq!((counters.fast_retransmits, counters.timeouts), (1, 0));
    assert_eq!(pair.taken[1], 20_000);
}

#[test]
fn reno_leaves_at_a_partial_acknowledgement_and_waits_for_the_timer() {
    let settings = Settings { recovery: Recovery::Reno, ..plain() };
    let mut pair = Pair::connected([settings; 2], losing([1, 2])).traced();
    pair.offer(0, 8000);
    pair.run(at(5000));
    let counters = pair.ends[0].counters().sending;
    assert_eq!((counters.fast_retransmits, counters.timeouts), (1, 1));
    assert_eq!(sent_again(&pair)[0], (100, 1001));
    assert_eq!(pair.taken[1], 8000);
}

#[test]
fn tahoe_starts_over_from_one_segment() {
    let settings = Settings { recovery: Recovery::Tahoe, ..plain() };
    let mut pair = Pair::connected([settings; 2], losing([1])).traced();
    pair.offer(0, 8000);
    pair.run(at(100));
    assert_eq!((pair.ends[0].window(), pair.ends[0].slow_start_threshold()), (1000, 3500));
    pair.run(at(5000));
    let counters = pair.ends[0].counters().sending;
    assert_eq!((counters.fast_retransmits, counters.timeouts, pair.taken[1]), (1, 0, 8000));
}

#[test]
fn sack_repairs_several_losses_in_one_round_trip() {
    let settings = Settings { initial_window: 20, ..with_sack() };
    let mut pair = Pair::connected([settings; 2], losing([1, 4, 6])).traced();
    pair.offer(0, 20_000);
    pair.run(at(3000));
    assert_eq!(sent_again(&pair), [(100, 1001), (100, 4001), (100, 6001)]);
    let counters = pair.ends[0].counters().sending;
    assert_eq!((counters.fast_retransmits, counters.timeouts), (1, 0));
    assert_eq!(pair.taken[1], 20_000);
}

#[test]
fn limited_transmit_lets_a_small_window_find_its_loss() {
    for (limited_transmit, timeouts) in [(true, 0), (false, 1)] {
        let settings = Settings { initial_window: 3, limited_transmit, ..plain() };
        let mut pair = Pair::connected([settings; 2], losing([0])).traced();
        pair.offer(0, 6000);
        pair.run(at(9000));
        assert_eq!(pair.ends[0].counters().sending.timeouts, timeouts);
        assert_eq!(pair.taken[1], 6000);
    }
}

#[test]
fn time_outs_back_off_and_the_window_starts_again() {
    let mut pair = Pair::connected([plain(); 2], losing([0, 1, 2, 3])).traced();
    pair.offer(0, 1000);
    pair.run(at(7500));
    assert_eq!(pair.sent(0).iter().map(|sent| sent.0).collect::<Vec<_>>(), [0, 1000, 3000, 7000]);
    assert!(pair.ends[0].recovering());
    pair.run(at(15_200));
    assert_eq!((pair.taken[1], pair.ends[0].in_flight()), (1000, 0));
    assert_eq!(pair.ends[0].counters().sending.timeouts, 4);
    assert!(!pair.ends[0].recovering());
    assert_eq!(pair.ends[0].timeout(), Span::from_secs(16), "no sample was taken (Karn)");
    // RFC 6298 §5: only a measurement of something new takes the back-off away, not its sending.
    pair.offer(0, 1000);
    pair.run(at(15_249));
    assert_eq!(pair.ends[0].timeout(), Span::from_secs(16));
    pair.run(at(15_400));
    assert_eq!((pair.taken[1], pair.ends[0].timeout()), (2000, Span::from_secs(1)));
}

/// If what is sent is lost again before anything has been measured, its time-out begins with the length of the last
/// one (RFC 6298 §5.5, §5.7; Karn and Partridge 1987).
#[test]
fn a_back_off_outlives_what_was_acknowledged_by_its_repetition() {
    for timestamps in [false, true] {
        let settings = Settings { timestamps, mss: 1012, ..plain() };
        let mut pair = Pair::connected([settings; 2], losing([0, 1, 3])).traced();
        pair.offer(0, 1000);
        pair.run(at(4000));
        pair.offer(0, 1000);
        pair.run(at(60_000));
        let times: Vec<u64> = pair.sent(0).iter().map(|sent| sent.0).collect();
        // A time stamp measures what was sent again as well.
        let wait = if timestamps { 1000 } else { 4000 };
        assert_eq!(times, [0, 1000, 3000, 4000, 4000 + wait]);
    }
}

/// RFC 6298 §2.3 and §4: RTO = SRTT + max(G, 4 RTTVAR). On a path that never changes the deviation fades, and G,
/// a tenth of a second unless a shorter time-out is asked for, covers what is no deviation yet.
#[test]
fn a_constant_path_has_no_time_outs() {
    let of = |min_rto| Settings { min_rto, initial_rto: Span::from_secs(5), ..plain() };
    for (settings, way, granularity) in [(of(millis(200)), 1500, 100), (of(millis(1)), 50, 1)] {
        let late = Span::from_micros(granularity * 500);
        let network: Network = Box::new(move |passing: Passing<'_>| {
            let last = passing.way == 0 && passing.number == 100;
            vec![millis(way) + if last { late } else { Span::ZERO }]
        });
        let mut pair = Pair::connected([settings; 2], network);
        for _ in 0..100 {
            pair.offer(0, 1000);
            pair.run(pair.now + millis(2 * way));
        }
        let timeout = pair.ends[0].timeout();
        let expected = millis(2 * way + granularity);
        assert!(timeout >= expected && timeout < expected + millis(1), "{way} ms: {timeout}");
        pair.offer(0, 1000);
        pair.run(pair.now + millis(4 * way));
        assert_eq!((pair.ends[0].counters().sending.timeouts, pair.taken[1]), (0, 101_000));
    }
}

#[test]
fn a_dead_end_is_noticed_and_may_come_back() {
    let mut open = false;
    let network: Network = Box::new(move |passing: Passing<'_>| {
        open |= passing.now > at(600_000);
        if open { vec![millis(50)] } else { vec![] }
    });
    let settings = Settings { most_timeouts: 3, ..plain() };
    let mut pair = Pair::connected([settings; 2], network);
    pair.offer(0, 1000);
    pair.run(at(700_000));
    assert!(pair.ends[0].dead());
    assert_eq!((pair.ends[0].deadline(), pair.ends[0].counters().sending.timeouts), (None, 4));
    // An acknowledgement of the other end's data shows that it lives.
    pair.offer(1, 10);
    pair.run(at(800_000));
    assert!(!pair.ends[0].dead());
    assert_eq!(pair.taken, [10, 1000]);
}

#[test]
fn bsd_times_out_on_its_ticks() {
    let bsd = Settings { tick_phase: millis(130), mss: 1000, ..Settings::of(Profile::BsdReno) };
    let mut pair = Pair::connected([bsd; 2], losing([0, 1, 2])).traced();
    pair.run(at(10));
    pair.offer(0, 1000);
    pair.run(at(100_000));
    // Twelve ticks of 500 ms from the one at 130 ms on, then 24, then 48.
    let times: Vec<u64> = pair.sent(0).iter().map(|sent| sent.0).collect();
    assert_eq!(times, [10, 130 + 11 * 500, 130 + 35 * 500, 130 + 83 * 500]);
    assert_eq!(pair.taken[1], 1000);
}

/// The clock of delayed acknowledgements has run since before the connection: its tick is never further off than 200 ms, even
/// if the slow clock's first one is.
#[test]
fn bsd_acknowledges_at_the_next_fast_tick() {
    let bsd = Settings { tick_phase: millis(470), mss: 1000, ..Settings::of(Profile::BsdReno) };
    let mut pair = Pair::connected([bsd; 2], delay(millis(5))).traced();
    pair.run(at(11));
    pair.offer(0, 1000);
    pair.run(at(1_000));
    let acknowledged: Vec<u64> = pair.sent(1).iter().map(|sent| sent.0).collect();
    assert_eq!(acknowledged.last(), Some(&70));
}

#[test]
fn bsd_measures_in_ticks_and_waits_two_at_least() {
    let bsd = Settings { mss: 1000, initial_window: 1, ..Settings::of(Profile::BsdReno) };
    let mut pair = Pair::connected([bsd; 2], delay(millis(50)));
    for _ in 0..40 {
        pair.offer(0, 1000);
        pair.run(pair.now + millis(1300));
    }
    assert!(pair.ends[0].smoothed_rtt() < millis(500), "most round trips see no tick");
    assert!(pair.ends[0].timeout() >= Span::from_secs(1));
}

#[test]
fn acknowledgements_wait_for_a_second_segment_or_the_timer() {
    let settings = Settings { delayed_ack: Some(millis(40)), ..plain() };
    let mut pair = Pair::connected([settings; 2], delay(millis(50))).traced();
    pair.offer(0, 3000);
    pair.run(at(999));
    assert_eq!(pair.sent(1).iter().map(|sent| sent.0).collect::<Vec<_>>(), [50, 90]);
    let never = Settings { delayed_ack: None, ..plain() };
    let mut pair = Pair::connected([never; 2], delay(millis(50))).traced();
    pair.offer(0, 3000);
    pair.run(at(999));
    assert_eq!(pair.sent(1).len(), 3);
}

#[test]
fn bsd_acknowledges_at_its_fast_tick() {
    let bsd = Settings { mss: 1000, ..Settings::of(Profile::BsdReno) };
    let mut pair = Pair::connected([bsd; 2], delay(millis(50))).traced();
    pair.run(at(280));
    pair.offer(0, 1000);
    pair.run(at(999));
    assert_eq!(pair.sent(1)[0].0, 400, "330 ms, and the tick of 200 ms after it");
}

#[test]
fn the_first_segments_are_acknowledged_quickly_where_asked_for() {
    let settings = Settings { delayed_ack: Some(millis(40)), quick_acks: 2, ..plain() };
    let mut pair = Pair::connected([settings; 2], delay(millis(50))).traced();
    for _ in 0..4 {
        pair.offer(0, 1000);
        pair.run(pair.now + millis(200));
    }
    let waits: Vec<u64> = pair.sent(1).iter().map(|sent| sent.0 % 200).collect();
    assert_eq!(waits, [50, 50, 90, 90]);
}

#[test]
fn a_closed_window_is_probed_ever_more_rarely_and_opens() {
    let small = Settings { receive_buffer: 4000, ..plain() };
    let mut pair = Pair::connected([plain(), small], delay(millis(50))).traced();
    pair.reads[1] = false;
    pair.offer(0, 10_000);
    pair.run(at(20_000));
    assert_eq!((pair.taken[1], pair.ends[0].unsent()), (4000, 6000));
    assert_eq!(pair.ends[0].blocked(pair.now), Some(Blocked::Receiver));
    let probes: Vec<u64> =
        pair.sent(0).iter().filter(|sent| sent.2 == 0).map(|sent| sent.0).collect();
    assert_eq!(probes, [1100, 3100, 7100, 15_100]);
    assert!(!pair.ends[0].dead());
    // The application reads: a window of two segments is told of at once.
    pair.reads[1] = true;
    pair.ends[1].consumed(pair.now, 4000);
    pair.settle(1);
    pair.run(at(21_000));
    assert_eq!((pair.taken[1], pair.ends[0].counters().sending.timeouts), (10_000, 0));
}

#[test]
fn a_window_that_opens_by_little_is_kept_shut() {
    let small = Settings { receive_buffer: 8000, ..plain() };
    let mut pair = Pair::connected([plain(), small], delay(millis(50))).traced();
    pair.reads[1] = false;
    pair.offer(0, 20_000);
    pair.run(at(500));
    for _ in 0..19 {
        pair.ends[1].consumed(pair.now, 100);
        pair.settle(1);
    }
    assert!(pair.sent(1).iter().all(|sent| sent.0 < 500), "1900 octets are not told of");
    pair.ends[1].consumed(pair.now, 100);
    pair.settle(1);
    pair.run(at(1000));
    assert_eq!(pair.taken[1], 10_000);
}

#[test]
fn an_acknowledgement_offers_no_little_more_either() {
    let small = Settings { receive_buffer: 8000, ..plain() };
    let mut pair = Pair::connected([plain(), small], delay(millis(50)));
    pair.reads[1] = false;
    for (read, offered) in [(0, 7000), (100, 6000), (900, 6000)] {
        pair.ends[1].consumed(pair.now, read);
        pair.offer(0, 1000);
        pair.run(pair.now + millis(500));
        assert_eq!(pair.ends[0].peer_window(), offered, "{read} octets were read");
    }
}

#[test]
fn small_pieces_wait_for_each_other_unless_told_not_to() {
    for (nagle, segments) in [(true, 2), (false, 5)] {
        let settings = Settings { nagle, ..plain() };
        let mut pair = Pair::connected([settings; 2], delay(millis(50))).traced();
        (0..5).for_each(|_| pair.offer(0, 10));
        pair.run(at(1000));
        assert_eq!((pair.sent(0).len(), pair.taken[1]), (segments, 50));
    }
}

#[test]
fn a_mark_counts_once_in_a_window_of_data() {
    let ecn = Settings { ecn: true, initial_window: 10, ..plain() };
    let network = Box::new(|passing: Passing<'_>| {
        if (2..6).contains(&passing.number) {
            mark(passing.segment);
        }
        vec![millis(50)]
    });
    let mut pair = Pair::connected([ecn; 2], network).traced();
    pair.offer(0, 40_000);
    pair.run(at(101));
    assert_eq!(pair.ends[0].window(), 6000, "half of twelve segments");
    pair.run(at(3000));
    let counters = [0, 1].map(|end| pair.ends[end].counters());
    assert_eq!(counters[1].receiving.marked, 4);
    assert_eq!((counters[0].sending.echo_reductions, counters[0].sending.retransmitted), (1, 0));
    assert!(counters[0].sending.echoes >= 4);
    let trace = pair.trace.as_ref().unwrap();
    let told = trace.iter().filter(|sent| sent.segment.flags.has(Flags::CWR)).count();
    assert_eq!((told, pair.taken[1]), (1, 40_000));
    let last = trace.iter().rfind(|sent| sent.way == 1).unwrap();
    assert!(!last.segment.flags.has(Flags::ECE), "the echo ends with the answer");
}

#[test]
fn an_idle_connection_starts_again_from_its_initial_window() {
    let mut pair = Pair::connected([plain(); 2], delay(millis(50)));
    pair.offer(0, 100_000);
    pair.run(at(1000));
    assert!(pair.ends[0].window() > 20_000);
    pair.run(at(9000));
    pair.offer(0, 100_000);
    assert_eq!((pair.ends[0].window(), pair.ends[0].in_flight()), (8000, 8000));
}

#[test]
fn a_reordered_window_is_no_loss_where_the_reduction_is_undone() {
    // Time stamps show that what was sent again had arrived.
    let settings = Settings { timestamps: true, undo: true, mss: 1012, ..plain() };
    let network = Box::new(|passing: Passing<'_>| {
        let late = passing.way == 0 && passing.number == 0;
        vec![millis(if late { 70 } else { 50 })]
    });
    let mut pair = Pair::connected([settings; 2], network);
    pair.offer(0, 8000);
    pair.run(at(110));
    assert!(pair.ends[0].window() < 8000);
    pair.run(at(1000));
    let counters = pair.ends[0].counters().sending;
    assert_eq!((counters.fast_retransmits, counters.spurious), (1, 1));
    assert!(pair.ends[0].window() >= 8000);
    assert_eq!(pair.ends[0].slow_start_threshold(), u64::MAX);
}

#[test]
fn duplicate_sack_undoes_what_was_needless() {
    let settings = Settings { undo: true, ..with_sack() };
    let network = Box::new(|passing: Passing<'_>| {
        let late = passing.way == 0 && passing.number == 0;
        vec![millis(if late { 70 } else { 50 })]
    });
    let mut pair = Pair::connected([settings; 2], network);
    pair.offer(0, 8000);
    pair.run(at(1000));
    let counters = [0, 1].map(|end| pair.ends[end].counters());
    assert_eq!((counters[0].sending.fast_retransmits, counters[0].sending.spurious), (1, 1));
    assert_eq!(counters[1].receiving.duplicates, 1);
    assert!(pair.ends[0].window() >= 8000);
}

#[test]
fn no_position_is_sent_again_without_need() {
    // Every tenth segment of a long transfer is lost: SACK sends those again and no other.
    let mut lost = BTreeSet::new();
    let network = Box::new(move |passing: Passing<'_>| {
        let seq = passing.segment.seq.get();
        let data = passing.way == 0 && passing.segment.data.len > 0;
        if data && (seq / 1000) % 10 == 3 && lost.insert(seq) { vec![] } else { vec![millis(50)] }
    });
    let settings = with_sack();
    let mut pair = Pair::connected([settings; 2], network).traced();
    pair.offer(0, 200_000);
    pair.run(at(60_000));
    assert_eq!(pair.taken[1], 200_000);
    let counters = [0, 1].map(|end| pair.ends[end].counters());
    assert_eq!(counters[0].sending.retransmitted, 20);
    assert_eq!((counters[0].sending.timeouts, counters[1].receiving.duplicates), (0, 0));
    assert!(pair.ends.iter().all(|end| Tcp::blocked(end, pair.now).is_none()));
}
