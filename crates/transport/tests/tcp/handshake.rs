//! Beginnings and ends.

use crate::pair::{Pair, at, delay, millis};
use trunkline_core::{Ecn, Time};
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
    let network = Box::new(|passing: crate::pair::Passing<'_>| {
        let lost = passing.way == 0 && passing.number < 2;
        if lost { vec![] } else { vec![millis(10)] }
    });
    let mut pair = Pair::opening([Settings::default(); 2], NUMBERS, network).traced();
    pair.run(at(10_000));
    let syns: Vec<u64> = pair.sent(0).iter().map(|sent| sent.0).take(3).collect();
    assert_eq!(syns, [0, 1000, 3000]);
    assert!(pair.ends.iter().all(Tcp::established));
    assert_eq!(pair.ends[0].slow_start_threshold(), u64::MAX, "no congestion was seen");
}

#[test]
fn a_lost_answer_and_a_lost_third_segment_are_made_up_for() {
    for (way, number) in [(1, 0), (0, 1)] {
        let network = Box::new(move |passing: crate::pair::Passing<'_>| {
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
    let network = Box::new(move |passing: crate::pair::Passing<'_>| {
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
