//! The points in which Linux does otherwise than the RFCs have it.

use crate::tcp::pair::{Network, Pair, Passing, at, bottleneck, delay, millis};
use trunkline_core::{Span, Time};
use trunkline_transport::tcp::congestion::Algorithm;
use trunkline_transport::tcp::{Flags, Profile, Settings};

fn linux(sack: bool) -> Settings {
    let settings = Settings { mss: 1000, sack, timestamps: false, ..Settings::of(Profile::Linux) };
    settings.with_congestion(Algorithm::NEW_RENO)
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

/// Writes that go at once are segments of their own, ten of them however short; what has to wait fills its segments. What
/// is acknowledged adds as many full ones: the window was full in that round trip.
#[test]
fn a_window_is_so_many_segments_however_short() {
    let settings = Settings { nagle: false, ..linux(true) };
    let mut pair = Pair::connected([settings; 2], delay(millis(50))).traced();
    let start = pair.now;
    (0..40).for_each(|_| pair.offer(0, 100));
    pair.run(start + millis(90));
    let data = |pair: &Pair| -> Vec<u32> {
        let sent = pair.trace.as_ref().unwrap().iter().filter(|sent| sent.way == 0);
        sent.map(|sent| sent.segment.data.len).filter(|&len| len > 0).collect()
    };
    assert_eq!(data(&pair), [100; 10]);
    assert_eq!(pair.ends[0].in_flight(), 10_000);
    pair.run(start + millis(300));
    assert_eq!(data(&pair)[10..], [1000, 1000, 1000]);
    assert_eq!((pair.taken[1], pair.ends[0].window(), pair.ends[0].in_flight()), (4000, 23_000, 0));
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

/// Without SACK, an acknowledgement up to the beginning of the recovery does not end it.
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

/// An idle window is halved for each time-out that has passed, down to the first one (`tcp_cwnd_restart`); RFC 5681
/// §4.1 has it start again at once. BBR keeps its window.
#[test]
fn an_idle_window_is_halved_for_each_time_out() {
    for (rests, shift) in [(9, 0), (15, 1), (25, 2), (200, 9)] {
        let mut pair = Pair::connected([linux(true); 2], delay(millis(50))).traced();
        pair.offer(0, 400_000);
        while pair.ends[0].outstanding() > 0 {
            assert!(pair.step(at(5000)), "{}", pair.state());
        }
        let (window, timeout) = (pair.ends[0].window(), pair.ends[0].timeout());
        assert!(window >= 100_000, "{window}");
        let last = pair.trace.as_ref().unwrap().iter().rfind(|sent| sent.way == 0).unwrap().at;
        pair.run(last + timeout.scaled(rests, 10));
        pair.offer(0, 400_000);
        let expected = ((window / 1000) >> shift).max(10) * 1000;
        assert_eq!(pair.ends[0].window(), expected, "{rests} tenths of a time-out");
    }
    let bbr = linux(true).with_congestion(Algorithm::BBR);
    let mut pair = Pair::connected([bbr; 2], delay(millis(50)));
    pair.offer(0, 400_000);
    pair.run(at(2000));
    let window = pair.ends[0].window();
    pair.run(at(60_000));
    pair.offer(0, 400_000);
    assert_eq!(pair.ends[0].window(), window);
}

/// The share of segments that leave alone, if each is acknowledged at once and the line takes `rate`
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

/// The number of segments without data that each end sends while 20 messages of `octets` are answered with as many,
/// each `after` it came, 10 ms each way.
fn bare(profile: Profile, octets: u32, after: Span) -> [usize; 2] {
    let settings = Settings { nagle: false, ..Settings::of(profile) };
    let mut pair = Pair::connected([settings; 2], delay(millis(10))).traced();
    for _ in 0..20 {
        pair.offer(0, octets);
        pair.run(pair.now + millis(10) + after);
        pair.offer(1, octets);
        pair.run(pair.now + millis(11));
    }
    [0, 1].map(|way| pair.sent(way).iter().filter(|sent| sent.2 == 0).count())
}

#[test]
fn acknowledgements_ride_on_answers_that_come_in_time() {
    assert_eq!(
        bare(Profile::Linux, 100, millis(5)),
        [1, 1],
        "nobody has answered before the first"
    );
    assert_eq!(bare(Profile::Linux, 1448, millis(39)), [1, 1]);
    let [_, late] = bare(Profile::Linux, 100, millis(60));
    assert_eq!(late, 20, "answers that late are not waited for");
    let [_, patient] = bare(Profile::Trunkline, 100, millis(60));
    assert_eq!(patient, 0, "a hold of 100 ms waits for them from the first on");
}

/// An answer that fails to come costs one hold of 40 ms, and ends the waiting.
#[test]
fn a_missing_answer_ends_the_waiting() {
    let settings = Settings { nagle: false, ..linux(true) };
    let mut pair = Pair::connected([settings; 2], delay(millis(10))).traced();
    for (now, end) in [(0, 0), (11, 1), (30, 0), (130, 0), (230, 0)] {
        pair.run(at(now));
        pair.offer(end, 100);
    }
    pair.run(at(400));
    let acks: Vec<u64> =
        pair.sent(1).iter().filter(|sent| sent.2 == 0).map(|sent| sent.0).collect();
    assert_eq!(acks, [10, 80, 140, 240]);
}

/// Bulk data are acknowledged one by one at first, then two by two.
#[test]
fn a_stream_is_acknowledged_quickly_and_then_in_pairs() {
    let settings = Settings { mss: 1000, ..linux(true) };
    let network = bottleneck(1_000_000, 1000, millis(5), |_| false);
    let mut pair = Pair::connected([settings; 2], network).traced();
    pair.offer(0, 400_000);
    pair.run(at(2000));
    let acks = pair.sent(1).len();
    assert!((200..=220).contains(&acks), "{acks} for 400 segments, 16 of them singly");
}

/// A segment that is lost again and again while all else arrives makes no time-out: its repair starts the timer anew
/// (`tcp_xmit_retransmit_queue`), as RFC 6675 §6 permits. By the letter of RFC 6298 §5.3 only progress does.
#[test]
fn repairing_the_first_segment_starts_the_timer_anew() {
    for (settings, timeouts) in [(linux(true), 0), (Settings { rearms: false, ..linux(true) }, 1)] {
        let mut lost = 0;
        let network: Network = Box::new(move |passing: Passing<'_>| {
            let hit = passing.way == 0 && passing.segment.seq.get() == 3001 && lost < 4;
            lost += u8::from(hit);
            if hit { vec![] } else { vec![millis(50)] }
        });
        let mut pair = Pair::connected([settings; 2], network);
        pair.offer(0, 4_000_000);
        pair.run(at(700));
        let sending = pair.ends[0].counters().sending;
        assert_eq!(u64::from(sending.timeouts), timeouts, "{sending:?}");
        assert!(pair.taken[1] > 3000, "{}", pair.state());
    }
}
