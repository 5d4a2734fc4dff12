//! Throughput against what is computed by hand.

use crate::common::build::*;
use proptest::prelude::*;
use trunkline_core::{Cause, Rate, Size, Span};
use trunkline_model::formula::hawley1989;
use trunkline_model::{Figure, Throughput, What, predict, predictions};
use trunkline_scenario::{
    Scenario, Split, Start, TcpSettings, Traffic, Transport, UrpSettings, Workload,
};

fn rate(scenario: &Scenario, name: &str) -> Throughput {
    let found = predictions(scenario).unwrap();
    let own = found.list.iter().find(|p| p.traffic == name && p.what == What::Throughput);
    match own.unwrap_or_else(|| panic!("{found:?}")).value {
        Figure::Rate(rate) => rate,
        other => panic!("{other:?}"),
    }
}

fn one(spec: &trunkline_path::LinkSpec, transport: &Transport) -> Scenario {
    let mut net = pair(spec);
    net.traffic.push(traffic("bulk", ("a", "b"), bulk(1000), transport));
    net
}

#[test]
fn window_over_round_trip_on_a_long_way() {
    // 3 × 1000 bytes, answered after (1004 + 1) bytes at 8 Mbit/s and 2 × 50 ms.
    let net = one(&link(8_000_000, Span::from_millis(50)), &urp(1000, 3, 0));
    // A third of that for each write, cut to the nanosecond.
    let cycle = Span::from_micros(100_000 + 1005).scaled(1, 3);
    assert_eq!(rate(&net, "bulk"), Throughput::over(1000, cycle));
}

#[test]
fn the_line_on_a_short_way() {
    let net = one(&link(8_000_000, Span::ZERO), &urp(1000, 3, 0));
    assert_eq!(rate(&net, "bulk"), Throughput::over(1000, Span::from_micros(1004)));
    let run = predict(&net).unwrap();
    let sample = &run.traffic[0].samples[0];
    // A thousand writes of 1004 us, then 4 bytes of empty message; the ECHO; the answer of 4 + 4 bytes.
    assert_eq!(sample.delay(), Span::from_micros(1_004_000 + 4 + 1 + 8));
    assert_eq!(sample.booked(Cause::Transmit), Span::from_micros(1_004_000 + 4 + 8));
}

#[test]
fn the_slowest_host_stage() {
    let mut net = one(&link(8_000_000, Span::ZERO), &urp(1000, 7, 0));
    net.hosts[1].processor.read.fixed = Span::from_millis(3);
    net.hosts[1].processor.interrupt.fixed = Span::from_millis(1);
    // A reader that is behind takes a window of seven with one call.
    let each = Span::from_millis(1) + Span::from_millis(3).scaled(1, 7);
    assert_eq!(rate(&net, "bulk"), Throughput::over(1000, each));
    let found = predictions(&net).unwrap();
    let bulk = found.list.iter().find(|p| p.what == What::Throughput).unwrap();
    assert!(bulk.terms.iter().all(|term| !term.name.is_empty()), "{bulk:?}");
    let places = |name: &str| -> Vec<&str> {
        let own = bulk.terms.iter().filter(|term| term.name == name);
        own.map(|term| term.place.as_str()).collect()
    };
    assert!(places("processor").iter().all(|place| place.ends_with("processor")), "{bulk:?}");
    assert!(!places("processor").is_empty());
    let transfer = found.list.iter().find(|p| p.what == What::Transfer).unwrap();
    let confirms = |term: &&trunkline_model::Term| term.name.starts_with("confirmation: ");
    assert!(transfer.terms.iter().filter(confirms).count() > 2, "{transfer:?}");
    // Two flows to one host share its processor.
    net.traffic[0].count = 2;
    let both = rate(&net, "bulk").millibytes_per_second() * 2;
    assert!(both.abs_diff(Throughput::over(1000, each).millibytes_per_second()) < 1_000);
}

#[test]
fn a_run_names_its_traffic_and_has_a_sample_of_each_flow() {
    let mut net = one(&link(8_000_000, Span::ZERO), &urp(1000, 3, 0));
    net.traffic[0].count = 3;
    let run = predict(&net).unwrap();
    let bulk = &run.traffic[0];
    assert_eq!((bulk.name.as_str(), bulk.transport.as_str()), ("bulk", "urp 3 x 1000 B"));
    let flows: Vec<u32> = bulk.samples.iter().map(|sample| sample.flow).collect();
    assert_eq!(flows, [0, 1, 2]);
}

/// 756 and 268 by turns: two rounds for each 1024 bytes (Vande Water 1988 §3.7.2).
#[test]
fn one_request_outstanding() {
    let mut net = pair(&link(1_344_000, Span::from_millis(25)));
    net.hosts[0].interface.requests = Some(1);
    net.hosts[0].interface.split = vec![Split { below: None, piece: 1024 }];
    let sizes = vec![756, 1024, 1025];
    let test = Workload::TimedTransfer { sizes, duration: Span::from_secs(180) };
    net.traffic.push(traffic("bulk", ("a", "b"), test, &urp(252, 3, 0)));
    let found = predictions(&net).unwrap();
    let interval = |size| found.find("bulk", size, What::Interval).unwrap().value.time().unwrap();
    let bits = |bytes: u64| Throughput::from_bytes_per_second(168_000).time_for(bytes);
    let close = |ours: Span, by_hand: Span| ours.abs_diff(by_hand) < Span::from_nanos(20);
    // One round: 3 blocks of 252 + 4, and the last one's ECHO.
    let round = Span::from_millis(50) + bits(3 * 256 + 1);
    assert!(close(interval(756), round), "{}", interval(756));
    // The fourth block starts when the first is answered, the fifth, of 16 bytes, right behind it.
    let two = Span::from_millis(100) + bits(256 + 1 + 256 + 20 + 1);
    assert!(close(interval(1024), two), "{}", interval(1024));
    assert!(close(interval(1025), two + Span::from_millis(50) + bits(5 + 1)));
    let rates = [756u64, 1024, 1025].map(|s| Throughput::over(s, interval(s)).bytes_per_second());
    assert!(rates[0] > rates[1] && rates[1] > rates[2], "as in Table IV: {rates:?}");
}

/// A trunk shared in quanta of 64 carries what Table 1 says.
#[test]
fn four_conversations_share_table_1() {
    for (block, quantum) in [(256u16, 64u32), (512, 64), (1024, 64), (512, 128), (1024, 256)] {
        let text = format!("round-robin:quantum={quantum}");
        let mut net = one(&t1(text.parse().unwrap()), &urp(block, 7, 16));
        net.traffic[0].workload = bulk(1024);
        net.traffic[0].count = 4;
        let four = rate(&net, "bulk").millibytes_per_second() * 4;
        let table = hawley1989::round_robin_throughput(Some(quantum), Some(u32::from(block)));
        let off = four.abs_diff(table.millibytes_per_second());
        assert!(off < 10_000, "block {block}, quantum {quantum}: {four} against {table}");
    }
}

#[test]
fn flows_of_two_traffics_share_and_unequal_windows_have_no_number() {
    let mut net = one(&link(8_000_000, Span::ZERO), &urp(1000, 7, 0));
    net.traffic.push(traffic("other", ("a", "b"), bulk(1000), &urp(1000, 7, 0)));
    assert_eq!(rate(&net, "other"), Throughput::over(1000, Span::from_micros(2 * 1004)));
    assert_eq!(rate(&net, "bulk"), rate(&net, "other"));
    net.traffic[1].transport = urp(1000, 3, 0).into();
    let run = predict(&net).unwrap();
    assert!(run.traffic.iter().all(|traffic| traffic.samples.is_empty()));
    assert!(run.notes[0].text.contains("windows of unequal size"), "{:?}", run.notes);
    // A window too small to fill its share waits in the others' queue, which no closed form gives.
    net.links[0].forward.delay = Span::from_millis(2);
    net.traffic[1].transport = urp(100, 1, 0).into();
    assert!(
        predict(&net).unwrap().notes[0].text.contains("idle in part"),
        "{:?}",
        predict(&net).unwrap().notes
    );
    (net.links[0].forward.delay, net.traffic[1].transport) = (Span::ZERO, urp(1000, 3, 0).into());
    // One after the other, each has the line to itself.
    net.traffic[1].start = Start::AfterEnd("bulk".into());
    assert_eq!(rate(&net, "other"), Throughput::over(1000, Span::from_micros(1004)));
}

#[test]
fn overflowing_queues_and_memories_have_no_number() {
    let mut net = one(&t1("fifo:limit=2KB".parse().unwrap()), &urp(1000, 7, 16));
    assert!(
        predict(&net).unwrap().notes[0].text.contains("overflow the queue"),
        "{:?}",
        predict(&net).unwrap().notes
    );
    net = one(&t1(hardware_fifo()), &urp(1000, 7, 16));
    assert_eq!(predict(&net).unwrap().traffic[0].samples.len(), 1);
    net.hosts[1].interface.memory = Some(Size::from_bytes(4096));
    assert!(
        predict(&net).unwrap().notes[0].text.contains("memory of b"),
        "{:?}",
        predict(&net).unwrap().notes
    );
}

/// A line that is not full may lose bursts all the same: what the formulas leave out is said.
#[test]
fn bursts_that_a_queue_may_lose_are_named() {
    let notes = |discipline: &str, outstanding| {
        let long = link(8_000_000, Span::from_millis(100));
        let spec = trunkline_path::LinkSpec { discipline: discipline.parse().unwrap(), ..long };
        let mut net = one(&spec, &urp(1000, outstanding, 0));
        net.traffic[0].count = 8;
        let texts = predict(&net).unwrap().notes.into_iter().map(|note| note.text);
        texts.collect::<Vec<_>>().join("\n")
    };
    // 8 flows with two blocks of 1004 bytes each.
    assert!(
        notes("fifo:limit=10kB", 2)
            .contains("16064 bytes of windows at once overflow the queue of a>b")
    );
    assert!(
        notes("red", 2).contains("what RED at a>b may drop of bursts of 16064 bytes is left out")
    );
    assert!(notes("codel:target=5ms", 2).contains("may drop of bursts"));
    // They drain within the target.
    assert!(!notes("codel:target=20ms", 2).contains("bursts"));
    assert!(!notes("fifo:limit=20kB", 2).contains("bursts"));
}

/// In a short test the host still holds at the end a good part of what it took.
#[test]
fn a_short_test_of_writes_is_told() {
    let notes = |seconds| {
        let mut net = one(&link(80_000, Span::from_millis(50)), &urp(1000, 7, 0));
        let test =
            Workload::TimedTransfer { sizes: vec![1000], duration: Span::from_secs(seconds) };
        net.traffic[0].workload = test;
        predict(&net).unwrap().notes
    };
    let short = notes(10);
    assert!(
        short.iter().any(|note| note.text.contains("the test is short: up to 10 %")),
        "{short:?}"
    );
    assert!(!notes(1000).iter().any(|note| note.text.contains("short")));
}

/// What holds for each of several sizes is said once.
#[test]
fn notes_of_several_sizes_are_not_repeated() {
    let long = link(8_000_000, Span::from_millis(100));
    let spec = trunkline_path::LinkSpec { discipline: "fifo:limit=1kB".parse().unwrap(), ..long };
    let mut net = one(&spec, &urp(1000, 2, 0));
    let duration = Span::from_secs(1000);
    net.traffic[0].workload = Workload::TimedTransfer { sizes: vec![1000, 2000], duration };
    let notes = predict(&net).unwrap().notes;
    assert_eq!(notes.iter().filter(|note| note.text.contains("bursts")).count(), 1, "{notes:?}");
}

#[test]
fn pushing_waits_for_the_disk() {
    let mut net = one(&link(8_000_000, Span::ZERO), &urp(1000, 7, 0));
    let store = Span::from_millis(10);
    let bytes = Size::from_bytes(10_000);
    net.traffic[0].workload = Workload::Push { bytes, repeat: 1, write: 1000, store };
    // The first write on the line, ten at the disk's pace, and the confirmation of 13 bytes.
    let took = predict(&net).unwrap().traffic[0].samples[0].delay();
    assert_eq!(took, Span::from_millis(1 + 100) + Span::from_micros(13));
}

#[test]
fn paced_datagrams() {
    let mut net = pair(&link(8_000_000, Span::from_millis(5)));
    let rate = Rate::from_bits_per_second(2_000_000);
    let paced = Workload::Paced { size: 1000, rate, duration: Span::from_secs(1) };
    net.traffic.push(traffic("paced", ("a", "b"), paced, &Transport::Datagram));
    let found = predictions(&net).unwrap();
    let busy = found.find("paced", 1000, What::Utilisation).unwrap().value;
    assert_eq!(busy, Figure::Share(250_000));
    let delay = |net: &Scenario| {
        predictions(net).unwrap().find("paced", 1000, What::Delay).map(|p| p.value)
    };
    assert_eq!(delay(&net), Some(Figure::Time(Span::from_millis(6))));
    net.traffic[0].count = 3;
    assert_eq!(delay(&net), Some(Figure::Time(Span::from_millis(7))), "the mean of 6, 7 and 8");
    net.traffic[0].stagger = Span::from_millis(1);
    assert_eq!(delay(&net), Some(Figure::Time(Span::from_millis(6))));
    net.traffic[0].count = 5;
    let found = predictions(&net).unwrap();
    assert!(delay(&net).is_none() && found.notes[0].text.contains("overload"), "{found:?}");
}

#[test]
fn the_text_shows_formulas_with_their_numbers() {
    let net = one(&link(8_000_000, Span::from_millis(50)), &urp(1000, 3, 0));
    let text = predictions(&net).unwrap().text();
    for part in
        ["bulk, 1000000 bytes: transfer time", "1000 bytes / 33668.333us", "Vande Water 1988"]
    {
        assert!(text.contains(part), "'{part}' in\n{text}");
    }
}

proptest! {
    #[test]
    fn more_window_is_never_slower_and_more_delay_never_faster(
        block in 16u16..1024, outstanding in 1u8..7, write in 1u32..3000, bits in 50_000u64..50_000_000,
        delay in 0u64..50_000_000, more in 0u64..50_000_000, one in any::<bool>(), count in 1u32..5,
    ) {
        let net = |outstanding: u8, delay: u64| {
            let mut net = pair(&link(bits, Span::from_nanos(delay)));
            if one {
                net.hosts[0].interface.requests = Some(1);
                net.hosts[0].interface.split = vec![Split { below: None, piece: 1024 }];
            }
            net.traffic.push(traffic("bulk", ("a", "b"), bulk(write), &urp(block, outstanding, 16)));
            net.traffic[0].count = count;
            net
        };
        let base = net(outstanding, delay);
        let found = rate(&base, "bulk");
        prop_assert!(rate(&net(outstanding + 1, delay), "bulk") >= found);
        prop_assert!(rate(&net(outstanding, delay + more), "bulk") <= found);
        prop_assert!(found.bytes_per_second() * u64::from(count) <= bits / 8);
        let run = predict(&base).unwrap();
        let sample = &run.traffic[0].samples[0];
        prop_assert_eq!(sample.steps.iter().map(|step| step.span).sum::<Span>(), sample.delay());
    }
}

/// A discipline that drops before it is full has a formula while nothing waits before the line, and none when something does.
#[test]
fn codel_has_a_number_while_nothing_waits() {
    let codel = |outstanding, delay| {
        let spec = trunkline_path::LinkSpec {
            discipline: "codel".parse().unwrap(),
            ..link(8_000_000, Span::from_millis(delay))
        };
        predictions(&one(&spec, &urp(1000, outstanding, 0))).unwrap()
    };
    let free = codel(3, 50);
    assert!(free.list.iter().any(|p| p.what == What::Throughput), "{:?}", free.notes);
    let full = codel(7, 0);
    let told =
        full.notes.iter().any(|note| format!("{note:?}").contains("CoDel at the full line a>b"));
    assert!(told, "{:?}", full.notes);
    // One block fills the line and nothing waits behind it.
    let even = codel(1, 0);
    assert!(even.list.iter().any(|p| p.what == What::Throughput), "{:?}", even.notes);
}

/// Seven blocks of 1004 bytes with their trailers, of which one is on the line and one is answered in a microsecond.
#[test]
fn the_standing_queue_of_a_window() {
    let found = predictions(&one(&link(8_000_000, Span::ZERO), &urp(1000, 7, 0))).unwrap();
    let standing = found.list.iter().find(|p| p.what == What::StandingQueue).expect("a queue");
    let Some(time) = standing.value.time() else { panic!("{standing:?}") };
    assert_eq!(time, Span::from_micros(7 * 1004 - 1), "{standing:?}");
}

/// URP asks when its time-out runs out, and goes back when answers to several enquiries cross; the first window goes
/// out at once, so the longest silence is that before its first answer.
#[test]
fn a_timeout_below_the_silence_before_an_answer_is_told() {
    let of = |millis: u64, count: u32, workload: Workload| {
        let spec = link(1_000_000, Span::from_millis(20));
        let Transport::Urp(urp) = urp(1000, 7, 0) else { unreachable!() };
        let urp = UrpSettings { timeout: Span::from_millis(millis), ..urp };
        let mut net = one(&spec, &Transport::Urp(urp));
        net.traffic[0].workload = workload;
        net.traffic[0].count = count;
        let found = predictions(&net).unwrap();
        assert!(!found.list.is_empty(), "{found:?}");
        let told = |word: &str| {
            found.notes.iter().any(|n| n.text.contains("timeout") && n.text.contains(word))
        };
        [told("upper bound"), told("lower bound")]
    };
    // 8 ms on the line and 40 ms of distance; seven blocks take 56 ms.
    assert_eq!(of(5, 1, bulk(1000)), [true, false]);
    assert_eq!(of(47, 1, bulk(1000)), [true, false]);
    assert_eq!(of(49, 1, bulk(1000)), [false, false]);
    // Behind the other's window.
    assert_eq!(of(49, 2, bulk(1000)), [true, false]);
    assert_eq!(of(200, 2, bulk(1000)), [false, false]);
    assert_eq!(of(30, 1, echo(&[1, 2000])), [false, true]);
    assert_eq!(of(49, 1, echo(&[1, 2000])), [false, false]);
}

/// A host that takes longer to write a datagram than there is from one to the next falls behind, and what comes back to other
/// traffic is on the line too: no delay is told.
#[test]
fn paced_datagrams_behind_a_slow_writer_or_answers() {
    let mut slow = pair(&link(1_000_000, Span::from_millis(1)));
    let rate = Rate::from_bits_per_second(200_000);
    let paced = Workload::Paced { size: 500, rate, duration: Span::from_secs(5) };
    slow.traffic.push(traffic("paced", ("a", "b"), paced, &Transport::Datagram));
    let mut answered = slow.clone();
    assert!(predictions(&slow).unwrap().find("paced", 500, What::Delay).is_some());
    slow.hosts[0].processor.write.fixed = Span::from_millis(30);
    answered.traffic.push(traffic("echoes", ("b", "a"), echo(&[1400]), &Transport::Udp));
    for scenario in [slow, answered] {
        let found = predictions(&scenario).unwrap();
        assert!(found.find("paced", 500, What::Delay).is_none(), "{}", found.text());
    }
}

/// Transfers of two hosts with lines of their own: if these differ, the figures are said to be the first one's.
#[test]
fn transfers_with_ways_of_their_own_are_told() {
    for (delay, told) in [(1, false), (40, true)] {
        let far = link(10_000_000, Span::from_millis(delay));
        let near = link(10_000_000, Span::from_millis(1));
        let wires = vec![wire("a", "n", &near), wire("b", "n", &far), wire("n", "c", &near)];
        let mut net = scenario(vec![host("a"), host("b"), host("c")], &["n"], wires);
        let tcp = Transport::Tcp(TcpSettings::default());
        let both = Traffic {
            from_each: vec!["a".into(), "b".into()],
            count: 2,
            ..traffic("both", ("a", "c"), bulk(1000), &tcp)
        };
        net.traffic.push(both);
        let found = predictions(&net).unwrap();
        let says = found.notes.iter().any(|note| note.text.contains("ways of their own"));
        assert_eq!(says, told, "{}", found.text());
    }
}
