//! Beginnings and ends.

use crate::tcp::pair::{Pair, at, delay, millis};
use trunkline_core::{Ecn, Span, Time};
use trunkline_transport::Extent;
use trunkline_transport::tcp::{Flags, Profile, Seq, Settings, Tcp};

const NUMBERS: [Seq; 2] = [Seq::new(u32::MAX - 5), Seq::new(77)];

fn opened(settings: [Settings; 2]) -> Pair {
    let mut pair = Pair::opening(settings, NUMBERS, delay(millis(10))).traced();
    pair.run(at(100));
    pair
}

#[test]
fn three_segments_open_a_connection() {
    let pair = opened([Settings::default(); 2]);
    let trace = pair.trace.as_ref().unwrap();
    let seen: Vec<_> = trace.iter().map(|sent| (sent.at, sent.segment.flags)).collect();
    let (syn, ack) = (Flags::SYN, Flags::ACK);
    assert_eq!(seen, [(at(0), syn), (at(10), syn | ack), (at(20), ack)]);
    assert!(pair.ends.iter().all(Tcp::established));
    assert_eq!(pair.ends.each_ref().map(Tcp::smoothed_rtt), [millis(20); 2]);
    assert_eq!(pair.ends.each_ref().map(Tcp::segment_size), [1448; 2]);
    assert_eq!([trace[0].segment.size(), trace[2].segment.size()], [60, 52]);
}

#[test]
fn what_one_end_does_not_offer_is_not_used() {
    let modern = Settings { ecn: true, ..Settings::default() };
    let pair = opened([modern, Settings { mss: 536, ..Settings::of(Profile::BsdReno) }]);
    assert_eq!(pair.ends.each_ref().map(Tcp::segment_size), [536; 2]);
    let answer = &pair.trace.as_ref().unwrap()[1].segment;
    assert_eq!((answer.offer().scale, answer.offer().sack), (None, false));
    assert!(answer.timestamps.is_none() && !answer.flags.has(Flags::ECE));
    assert!(pair.ends[0].peer_window() <= 65_535);
}

#[test]
fn ecn_is_agreed_upon_in_the_syns() {
    let ecn = Settings { ecn: true, ..Settings::default() };
    let mut pair = opened([ecn; 2]);
    pair.offer(0, 3000);
    pair.run(at(200));
    let trace = pair.trace.as_ref().unwrap();
    assert!(trace[0].segment.flags.has(Flags::SYN | Flags::ECE | Flags::CWR));
    assert!(trace[1].segment.flags.has(Flags::SYN | Flags::ECE));
    assert!(!trace[1].segment.flags.has(Flags::CWR));
    for sent in trace {
        let data = sent.segment.data.len > 0;
        assert_eq!(sent.segment.ecn, if data { Ecn::Ect0 } else { Ecn::NotEct });
    }
}

#[test]
fn a_lost_syn_is_sent_again_after_a_second_and_then_two() {
    let network = Box::new(|passing: crate::tcp::pair::Passing<'_>| {
        let lost = passing.way == 0 && passing.number < 2;
        if lost { vec![] } else { vec![millis(10)] }
    });
    let mut pair = Pair::opening([Settings::default(); 2], NUMBERS, network).traced();
    pair.offer(0, 5000);
    pair.run(at(10_000));
    // What waits to be sent goes with none of them.
    let syns: Vec<(u64, u32)> = pair.sent(0).iter().map(|sent| (sent.0, sent.2)).take(3).collect();
    assert_eq!(syns, [(0, 0), (1000, 0), (3000, 0)]);
    assert!(pair.ends.iter().all(Tcp::established));
    assert_eq!(pair.ends[0].slow_start_threshold(), u64::MAX, "no congestion was seen");
}

#[test]
fn a_lost_answer_and_a_lost_third_segment_are_made_up_for() {
    for (way, number) in [(1, 0), (0, 1)] {
        let network = Box::new(move |passing: crate::tcp::pair::Passing<'_>| {
            let lost = (passing.way, passing.number) == (way, number);
            if lost { vec![] } else { vec![millis(10)] }
        });
        let mut pair = Pair::opening([Settings::default(); 2], NUMBERS, network);
        pair.offer(1, 5000);
        pair.run(at(9000));
        assert!(pair.ends.iter().all(Tcp::established), "{way} {number}");
        assert_eq!(pair.taken, [5000, 0]);
    }
}

#[test]
fn both_may_open_at_once() {
    let ends = NUMBERS.map(|first| Tcp::connect(Settings::default(), first).unwrap());
    let mut pair = Pair::of(ends, NUMBERS, delay(millis(10)));
    pair.offer(0, 4000);
    pair.offer(1, 5000);
    pair.run(at(3000));
    assert!(pair.ends.iter().all(Tcp::established));
    assert_eq!(pair.taken, [5000, 4000]);
}

#[test]
fn who_refuses_is_believed() {
    let refusing = Tcp::refuse(Settings::default()).unwrap();
    let connecting = Tcp::connect(Settings::default(), NUMBERS[0]).unwrap();
    let mut pair = Pair::of([connecting, refusing], NUMBERS, delay(millis(10)));
    pair.offer(0, 10);
    pair.run(at(60_000));
    assert!(pair.ends[0].refused() && pair.ends[0].dead());
    assert_eq!(pair.ends[0].deadline(), None);
    // What comes to a listener out of the blue is refused too.
    let mut listener = Tcp::<Extent>::listen(Settings::default(), NUMBERS[1]).unwrap();
    let (mut one, _) = (Tcp::connected(Settings::default(), &Settings::default()).unwrap(), ());
    one.offer(Time::ZERO, Extent::new(0, 10));
    listener.receive(Time::ZERO, one.transmit(Time::ZERO).unwrap());
    assert!(listener.transmit(Time::ZERO).unwrap().flags.has(Flags::RST));
}

#[test]
fn both_directions_end_for_themselves() {
    let mut pair = opened([Settings::default(); 2]);
    pair.offer(0, 100);
    pair.close(0);
    pair.run(at(200));
    assert!(pair.ends[1].ended() && !pair.ends[0].ended());
    pair.offer(1, 5000);
    pair.close(1);
    pair.run(at(400));
    assert!(pair.ends.iter().all(Tcp::closed));
    assert_eq!(pair.taken, [5000, 100]);
    assert_eq!(pair.ends.each_ref().map(Tcp::deadline), [None; 2]);
}

#[test]
fn both_may_close_at_once_and_lose_both_fins() {
    let mut lost = 0;
    let network = Box::new(move |passing: crate::tcp::pair::Passing<'_>| {
        if passing.segment.flags.has(Flags::FIN) && lost < 2 {
            lost += 1;
            return vec![];
        }
        vec![millis(10)]
    });
    let mut pair = Pair::connected([Settings::default(); 2], network);
    pair.close(0);
    pair.close(1);
    pair.run(at(5000));
    assert!(pair.ends.iter().all(Tcp::closed));
    let sending = pair.ends[0].counters().sending;
    assert_eq!((sending.tail_probes, sending.timeouts), (1, 0));
}

/// The path takes `way` each way; of the segments that go one way or the other these are lost.
fn opening(settings: [Settings; 2], way: u64, lost: &'static [(usize, usize)]) -> Pair {
    let network = Box::new(move |passing: crate::tcp::pair::Passing<'_>| {
        let gone = lost.contains(&(passing.way, passing.number));
        if gone { vec![] } else { vec![millis(way)] }
    });
    let mut pair = Pair::opening(settings, NUMBERS, network).traced();
    pair.run(at(60_000));
    assert!(pair.ends.iter().all(Tcp::established));
    pair
}

/// RFC 6298 §3: a time stamp tells which of two SYNs was answered, so that Karn's rule is not needed; RFC 6928 §2:
/// what was sent again without a loss leaves the initial window as it is.
#[test]
fn a_needless_syn_takes_neither_the_sample_nor_the_window() {
    for profile in [Profile::Trunkline, Profile::Linux] {
        let pair = opening([Settings::of(profile); 2], 1500, &[]);
        assert!(pair.sent(0).len() > 2, "the SYN was sent again");
        assert_eq!(pair.ends.each_ref().map(Tcp::smoothed_rtt), [millis(3000); 2]);
        assert_eq!(pair.ends.each_ref().map(Tcp::window), [14_480; 2]);
    }
}

/// RFC 5681 §3.1: if SYN or SYN/ACK is lost, the first window is one segment. Linux waits for a second loss, as
/// RFC 6928 §2 recommends.
#[test]
fn after_a_lost_syn_the_first_window_is_one_segment() {
    let stampless = Settings { timestamps: false, ..Settings::default() };
    let rfc = Settings::default();
    let linux = Settings::of(Profile::Linux);
    for (settings, lost, windows) in [
        (rfc, &[(0, 0)][..], [1448, 14_480]),
        (rfc, &[(1, 0)], [1448, 1448]),
        (stampless, &[(0, 0)], [1460, 14_600]),
        (linux, &[(0, 0)], [14_480, 14_480]),
        (linux, &[(0, 0), (0, 1)], [1448, 14_480]),
    ] {
        let mut pair = opening([settings; 2], 10, lost);
        assert_eq!(pair.ends.each_ref().map(Tcp::window), windows, "{lost:?}");
        assert_eq!(pair.ends[0].slow_start_threshold(), u64::MAX, "{lost:?}");
        let before = pair.sent(0).len();
        pair.offer(0, 20_000);
        let first: u32 = pair.sent(0)[before..].iter().map(|sent| sent.2).sum();
        assert_eq!(u64::from(first), windows[0], "{lost:?}");
    }
}

/// RFC 6298 §5.7: without a sample three seconds are the first time-out of data.
#[test]
fn a_lost_syn_without_time_stamps_leaves_three_seconds() {
    let settings = Settings { timestamps: false, ..Settings::default() };
    let pair = opening([settings; 2], 10, &[(0, 0)]);
    assert_eq!(pair.ends[0].timeout(), Span::from_secs(3));
    let pair = opening([Settings::default(); 2], 10, &[(0, 0)]);
    assert_eq!(pair.ends[0].smoothed_rtt(), millis(20), "the stamp tells");
}

/// A path of minutes answers when it can. RFC 9293 §3.8.3 asks for three minutes at least; ours are three hours.
#[test]
fn an_end_that_opens_waits_for_hours() {
    let mut pair =
        Pair::opening([Settings::of(Profile::Linux); 2], NUMBERS, Box::new(|_| vec![])).traced();
    pair.run(at(3 * 3_600_000 - 1));
    assert!(!pair.ends[0].dead());
    let syns = pair.sent(0).len();
    assert!((80..110).contains(&syns), "{syns}");
    pair.run(at(4 * 3_600_000));
    assert!(pair.ends[0].dead());
    let mut late = Pair::opening([Settings::default(); 2], NUMBERS, delay(millis(2_600_000)));
    late.offer(0, 100_000);
    late.run(at(36_000_000));
    assert_eq!(late.taken[1], 100_000);
    // SYNs alone: six in the first 63 s, then one a minute until 5200 s.
    assert_eq!(late.ends[0].counters().sending.timeouts, 6 + 85);
}
