//! Round trips against what is computed by hand.

use crate::common::build::*;
use crate::processors::listed;
use proptest::prelude::*;
use trunkline_core::{Cause, Rate, Span};
use trunkline_engine::EngineName;
use trunkline_model::formula::{hawley1989, vandewater1988};
use trunkline_model::{Figure, What, predict, predictions};

use trunkline_path::{DisciplineSpec, Limit, LinkSpec};
use trunkline_scenario::{
    Cost, Echo, Interface, Reply, Scenario, Split, TcpSettings, Traffic, Transport, Workload,
};

fn round_trip(scenario: &Scenario, size: u64) -> Span {
    let found = predictions(scenario).unwrap();
    let found = found.find("echo", size, What::RoundTrip).unwrap_or_else(|| panic!("{found:?}"));
    found.value.time().unwrap()
}

#[test]
fn a_datagram_is_serialisation_and_distance() {
    let mut net = pair(&link(8_000_000, Span::from_millis(10)));
    net.traffic.push(traffic("echo", ("a", "b"), echo(&[1000]), &Transport::Datagram));
    assert_eq!(round_trip(&net, 1000), Span::from_millis(2 * (1 + 10)));
    let run = predict(&net).unwrap();
    assert_eq!((run.engine, run.traffic.len(), run.links.len()), (EngineName::MODEL, 1, 2));
    let sample = &run.traffic[0].samples[0];
    assert_eq!(sample.booked(Cause::Transmit), Span::from_millis(2));
    assert_eq!(sample.booked(Cause::Propagate), Span::from_millis(20));
    assert_eq!(run.places, ["a>b", "b>a"]);
    assert!(run.notes.is_empty(), "{:?}", run.notes);
}

#[test]
fn host_costs_come_on_top() {
    let mut net = pair(&link(8_000_000, Span::ZERO));
    let us = Span::from_micros;
    net.hosts[0].processor.write = Cost { fixed: us(100), per_byte: us(1) };
    net.hosts[0].processor.request = Cost { fixed: us(7), per_byte: Span::ZERO };
    net.hosts[1].processor.interrupt = Cost { fixed: us(50), per_byte: Span::ZERO };
    net.hosts[1].interface.receive_buffer = Some(400);
    net.hosts[1].processor.read = Cost { fixed: us(30), per_byte: us(2) };
    let reply = Workload::Interactive {
        sizes: vec![1000],
        repeat: 1,
        reply: Reply::Bytes(500),
        every: Span::ZERO,
    };
    net.traffic.push(traffic("echo", ("a", "b"), reply, &Transport::Datagram));
    // Write 1100, request 7, line 1000 and 500, three interrupts 150, read 2030.
    assert_eq!(round_trip(&net, 1000), us(1100 + 7 + 1000 + 150 + 2030 + 500));
}

/// Packets of 16 envelopes do not wait for the whole block at each hop.
#[test]
fn packets_cut_through() {
    let spec = link(800_000, Span::ZERO);
    let links = vec![wire("a", "n1", &spec), wire("n1", "n2", &spec), wire("n2", "b", &spec)];
    let mut net = scenario(vec![host("a"), host("b")], &["n1", "n2"], links);
    let one_way = Workload::Interactive {
        sizes: vec![28],
        repeat: 1,
        reply: Reply::Bytes(12),
        every: Span::ZERO,
    };
    net.traffic.push(traffic("echo", ("a", "b"), one_way, &urp(28, 3, 16)));
    // Each packet of 16 takes 160 us. Out: two packets, three hops, four packet times. Back: the ECHO
    // (10 us) goes first, then one packet over three hops.
    assert_eq!(round_trip(&net, 28), Span::from_micros(4 * 160 + 10 + 3 * 160));
    net.traffic[0].transport = urp(28, 3, 0).into();
    net.traffic[0].reply_transport = urp(28, 3, 0).into();
    assert_eq!(round_trip(&net, 28), Span::from_micros(3 * 320 + 10 + 3 * 160));
    // One message right after the other: the ECHO of the answer is ahead of the next message too.
    let Workload::Interactive { repeat, .. } = &mut net.traffic[0].workload else { panic!() };
    *repeat = 5;
    assert_eq!(round_trip(&net, 28), Span::from_micros(10 + 3 * 320 + 10 + 3 * 160));
    let Workload::Interactive { every, .. } = &mut net.traffic[0].workload else { panic!() };
    *every = Span::from_secs(1);
    assert_eq!(round_trip(&net, 28), Span::from_micros(3 * 320 + 10 + 3 * 160));
}

/// Vande Water's 84-byte window over 3000 miles: equation 4, to the time of the bits themselves.
#[test]
fn a_small_window_costs_rounds() {
    let mut net = pair(&link(1_344_000, vandewater1988::propagation(3_000)));
    let sizes = [1, 84, 85, 112, 168, 169, 1024];
    net.traffic.push(traffic("echo", ("a", "b"), echo(&sizes), &urp(28, 3, 16)));
    let response = round_trip(&net, 1);
    for size in sizes.map(u64::from) {
        let ours = round_trip(&net, size);
        let theirs = vandewater1988::round_trip_small_window(size, 84, response);
        // 2 × 1024 bytes and trailers are 14 ms.
        assert!(ours.abs_diff(theirs) < Span::from_millis(15), "{size}: {ours}, {theirs}");
    }
    let run = predict(&net).unwrap();
    assert_eq!(run.traffic[0].rounds[&85], [84, 1]);
    assert_eq!(run.traffic[0].rounds[&1024].len(), 13);
    let waits = run.traffic[0].samples[2].booked(Cause::Window);
    assert!(waits > Span::from_millis(94) && waits < Span::from_millis(98), "{waits}");
}

/// One request at a time: 757 bytes are two rounds each way, 1025 three.
#[test]
fn one_request_outstanding() {
    let mut net = pair(&link(1_344_000, vandewater1988::propagation(3_000)));
    for host in &mut net.hosts {
        host.interface.requests = Some(1);
        host.interface.split = vec![Split { below: None, piece: 1024 }];
    }
    net.traffic.push(traffic("echo", ("a", "b"), echo(&[756, 757, 1024, 1025]), &urp(252, 3, 16)));
    let trips = [756, 757, 1024, 1025].map(|size| round_trip(&net, size).as_nanos() / 1_000_000);
    // 168 bytes a millisecond and 48.28 ms of distance there and back. 756: 768 bytes each way, 57.4 ms.
    // 757: the fourth block leaves when the first is answered, after 257 bytes and 48.28 ms: 49.81; then
    // 5 bytes and 24.14 ms, both twice: 148.0. 1024: 256 bytes and 20 in place of the 5. 1025: the answer
    // to those 20 after 99.74, then 5 bytes and 24.14.
    assert_eq!(trips, [57, 147, 151, 247]);
    assert_eq!(predict(&net).unwrap().traffic[0].rounds[&1025], [756, 268, 1]);
}

/// Hawley's saturated FIFO: a packet waits behind the windows of all background conversations.
#[test]
fn a_full_fifo_holds_the_windows() {
    let mut net = loaded(&t1(hardware_fifo()), 7);
    let unloaded =
        predictions(&net).unwrap().find("echo", 64, What::UnloadedRoundTrip).unwrap().value;
    let loaded = round_trip(&net, 64);
    let added = loaded - unloaded.time().unwrap();
    // 28 KiB and trailers at some 186 kB/s of trunk; 157 ms were measured.
    let behind = hawley1989::wait_behind_windows(4, 7 * 1024);
    assert!(added.abs_diff(behind) < behind.scaled(12, 100), "{added} against {behind}");
    let queue = predict(&net).unwrap().traffic[1].samples[0].booked(Cause::Queue);
    assert!(queue.abs_diff(added) < Span::from_millis(1), "booked as queue: {queue}");
    // With windows too small to fill the trunk over its distance, no formula has an answer.
    net.links[2].forward.delay = Span::from_millis(200);
    let found = predictions(&net).unwrap();
    assert!(found.find("echo", 64, What::RoundTrip).is_none());
    assert!(found.notes.iter().any(|note| note.text.contains("no standing queue")), "{found:?}");
}

#[test]
fn round_robin_bounds_the_wait() {
    let discipline = "round-robin:quantum=64".parse().unwrap();
    let mut net = loaded(&t1(discipline), 7);
    net.links[2].forward.output_buffer = trunkline_core::Size::from_bytes(1024);
    let found = predictions(&net).unwrap();
    let unloaded = found.find("echo", 12, What::UnloadedRoundTrip).unwrap().value.time().unwrap();
    let most = found.find("echo", 12, What::RoundTripAtMost).unwrap().value.time().unwrap();
    // Four quanta and 1 KiB of output buffer, in frames of 72 bytes for 64.
    let quantum = Span::from_nanos(72_000_000 / 192);
    assert!((most - unloaded).abs_diff(quantum.scaled(4 + 16, 1)) < Span::from_micros(1));
    let fifo = round_trip(&loaded(&t1(hardware_fifo()), 7), 12);
    assert!(most < fifo.scaled(1, 10), "{most} against {fifo}");
}

/// Four bulk transfers and an echo over one trunk between two nodes.
fn loaded(trunk: &trunkline_path::LinkSpec, outstanding: u8) -> Scenario {
    let fibre = link(8_000_000, Span::ZERO);
    let links = vec![
        wire("crab", "n3", &fibre),
        wire("pipe", "n3", &fibre),
        wire("n3", "n6", trunk),
        wire("n6", "tempel", &fibre),
        wire("n6", "coma", &fibre),
    ];
    let hosts = ["crab", "pipe", "tempel", "coma"].map(host).to_vec();
    let mut net = scenario(hosts, &["n3", "n6"], links);
    let window = urp(1024, outstanding, 16);
    let mut background = traffic("bulk", ("crab", "tempel"), bulk(1024), &window);
    background.count = 4;
    net.traffic =
        vec![background, traffic("echo", ("pipe", "coma"), echo(&[12, 64]), &urp(256, 3, 16))];
    net
}

/// A cell of 424 bits leaves at the beginning of a slot only; 260 of 270 columns carry cells (LDS report §3.2).
#[test]
fn a_line_with_slots_is_waited_for() {
    let mut spec = link(2_700_000, Span::from_millis(10));
    spec.framing = "atm-aal5".parse().unwrap();
    let mut net = pair(&spec);
    net.traffic.push(traffic("echo", ("a", "b"), echo(&[10]), &Transport::Datagram));
    // One cell each way in 424/2.6 = 163.077 us, and half of that before it.
    let expected = Span::from_nanos(20_000_000 + 3 * 163_077);
    assert!(
        round_trip(&net, 10).abs_diff(expected) < Span::from_nanos(5),
        "{}",
        round_trip(&net, 10)
    );
}

/// The round robin program empties its input fifo before it sends (Hawley 1989 §2.2).
#[test]
fn a_trunk_board_takes_in_before_it_sends() {
    let mut trunk = t1("round-robin:quantum=64".parse().unwrap());
    trunk.output_buffer = trunkline_core::Size::from_bytes(1024);
    let json = r#"{"input_fifo":"4kB","input_per_byte":"1412.5ns","output_per_byte":"1231.25ns",
        "output_first":false}"#;
    let board: trunkline_path::TrunkProcessor = serde_json::from_str(json).unwrap();
    let mut net = pair(&trunk);
    let mut once = echo(&[28]);
    let Workload::Interactive { repeat, .. } = &mut once else { panic!() };
    *repeat = 1;
    net.traffic.push(traffic("echo", ("a", "b"), once, &urp(28, 3, 16)));
    let without = round_trip(&net, 28);
    net.links[0].forward.processor = Some(board);
    // Two packets of 18 envelopes in, one of 16 bytes out; the other goes out while the line is busy.
    let picos = 2 * 18 * 1_412_500 + 16 * 1_231_250;
    let added = round_trip(&net, 28) - without;
    assert!(added.abs_diff(Span::from_nanos(picos / 1_000)) <= Span::from_nanos(2), "{added}");
}

#[test]
fn what_no_formula_covers_has_no_number() {
    let mut net = pair(&link(8_000_000, Span::from_millis(10)));
    net.traffic.push(traffic("echo", ("a", "b"), echo(&[100]), &urp(256, 3, 16)));
    net.links[0].backward.impairments.loss = "1%".parse().unwrap();
    let run = predict(&net).unwrap();
    assert!(run.traffic[0].samples.is_empty());
    assert!(run.notes[0].text.contains("loss on b>a"), "{:?}", run.notes);
}

#[test]
fn an_end_that_gives_up_has_no_round_trip() {
    // 31 time-outs of a second pass without an answer.
    for (millis, told) in [(15_400, true), (15_600, false)] {
        let mut net = pair(&link(1_000_000, Span::from_millis(millis)));
        net.traffic.push(traffic("echo", ("a", "b"), echo(&[64]), &urp(256, 3, 16)));
        let run = predict(&net).unwrap();
        assert_eq!(run.traffic[0].samples.is_empty(), !told, "{:?}", run.notes);
        assert_eq!(run.notes.iter().any(|note| note.text.contains("gives up after 31s")), !told);
    }
    // NETBLT's death timer.
    for (seconds, told) in [(299, true), (300, false)] {
        let mut net = pair(&link(1_000_000, Span::from_secs(seconds)));
        let netblt = listed("netblt", "interval=1s");
        net.traffic.push(traffic("bulk", ("a", "b"), bulk(1024), &netblt));
        let run = predict(&net).unwrap();
        assert_eq!(run.traffic[0].samples.is_empty(), !told, "{:?}", run.notes);
        assert_eq!(run.notes.iter().any(|note| note.text.contains("dead after 600s")), !told);
    }
}

/// A TCP end gives up a connection that is not established after three hours, and one on which nothing is acknowledged while its
/// time-outs run from 3 s: the round trip is not known if the SYN went again and there are no time stamps.
#[test]
fn a_tcp_end_that_gives_up_has_no_round_trip() {
    let plain = |profile: &str, timestamps: Option<bool>| {
        Transport::Tcp(TcpSettings {
            profile: profile.into(),
            timestamps,
            ..TcpSettings::default()
        })
    };
    for (transport, minutes, why) in [
        (plain("linux", None), 170, None),
        (plain("linux", None), 185, Some("not established after 10800s")),
        (plain("bsd-reno", None), 9, None),
        (plain("bsd-reno", None), 11, Some("gives up after 605s")),
        (plain("linux", Some(false)), 22, None),
        (plain("linux", Some(false)), 24, Some("gives up after 1389s")),
        (plain("trunkline", Some(false)), 12, None),
        (plain("trunkline", Some(false)), 13, Some("gives up after 753s")),
    ] {
        let quarter = link(1_000_000, Span::from_secs(15 * minutes));
        let links = vec![wire("a", "n", &quarter), wire("n", "b", &quarter)];
        let mut net = scenario(vec![host("a"), host("b")], &["n"], links);
        for workload in [echo(&[64]), bulk(1024)] {
            net.traffic = vec![traffic("far", ("a", "b"), workload, &transport)];
            net.stop_after = Span::from_secs(7 * 86_400);
            let run = predict(&net).unwrap();
            let notes: Vec<_> = run.notes.iter().map(|note| note.text.clone()).collect();
            assert_eq!(run.traffic[0].samples.is_empty(), why.is_some(), "{minutes} {notes:?}");
            let told = why.is_none_or(|why| notes.iter().any(|text| text.contains(why)));
            assert!(told, "{minutes} {why:?} {notes:?}");
            let simulated = trunkline_sim::run(&net).unwrap();
            assert_eq!(simulated.traffic[0].samples.is_empty(), why.is_some(), "{minutes}");
        }
    }
}

proptest! {
    #[test]
    fn steps_sum_exactly_and_nothing_gets_better_by_distance_or_a_smaller_window(
        size in 0u32..3000, block in 1u16..1024, outstanding in 1u8..7, rate in 50_000u64..50_000_000,
        delay in 0u64..50_000_000, more in 1u64..50_000_000, one in any::<bool>(),
        consume in any::<bool>(), packet in prop::sample::select(vec![0u32, 16]), cost in 0u64..100_000,
    ) {
        let net = |delay: u64, outstanding: u8| {
            let mut net = pair(&link(rate, Span::from_nanos(delay)));
            for host in &mut net.hosts {
                *host.interface = Interface {
                    requests: one.then_some(1),
                    split: vec![Split { below: Some(512), piece: 64 }, Split { below: None, piece: 1024 }],
                    echo: if consume { Echo::Consumption } else { Echo::Arrival },
                    send_block: Cost { fixed: Span::from_nanos(cost), per_byte: Span::from_nanos(cost / 64) },
                    ..Interface::default()
                };
                host.processor.read.fixed = Span::from_nanos(cost);
            }
            net.traffic.push(traffic("echo", ("a", "b"), echo(&[size]), &urp(block, outstanding, packet)));
            net
        };
        let base = net(delay, outstanding);
        let trip = round_trip(&base, u64::from(size));
        let run = predict(&base).unwrap();
        let sample = &run.traffic[0].samples[0];
        prop_assert_eq!(sample.steps.iter().map(|step| step.span).sum::<Span>(), sample.delay());
        prop_assert_eq!(sample.delay(), trip);
        prop_assert!(round_trip(&net(delay + more, outstanding), u64::from(size)) >= trip);
        prop_assert!(round_trip(&net(delay, outstanding + 1), u64::from(size)) <= trip);
        prop_assert_eq!(predict(&base).unwrap(), run);
    }
}

/// On a channel the protocol's own answers wait for turns: the message behind the answer to the one before it, and what is
/// said of it then behind that. A timer that runs out meanwhile is told of, as one of a longer way is.
#[test]
fn a_timeout_that_runs_out_behind_other_turns_is_told() {
    let asks = |medium: &str, timeout: u32, every: &str| {
        let traffic = format!(
            "[[traffic]]\nname = \"t\"\nfrom = \"h0\"\nto = \"h1\"\nkind = \"interactive\"\nsizes = [179]\nreply = 8\nrepeat = 21\nevery = \"{every}\"\ntransport = {{ kind = \"urp\", block = 1024, packet = 0, timeout = \"{timeout}ms\" }}\n"
        );
        let stations = "[[host]]\nname = \"h0\"\n[[host]]\nname = \"h1\"\n[[medium]]\nname = \"m\"\nstations = [\"h0\", \"h1\"]\n";
        let text = format!("{stations}{medium}\n{traffic}");
        let scenario = Scenario::parse(&text, "turns.toml").unwrap().remove(0);
        let found = predictions(&scenario).unwrap();
        let told = found.notes.iter().any(|note| note.text.contains("runs out before an answer"));
        let run = trunkline_sim::run(&scenario).unwrap();
        (told, run.traffic[0].timeouts > 0)
    };
    // A message of 0.58 s, answers of the protocol of 0.22 s.
    let slow = "kind = \"half-duplex\"\nrate = \"3000bit/s\"\nframing = \"ethernet\"";
    // Two rounds of 0.6 s for what is sent by one end, and heard by the other half a round later.
    let long = "kind = \"token-ring\"\nrate = \"1Mbit/s\"\ndelay = \"600ms\"";
    for (medium, timeout, every, runs_out) in [
        (slow, 1000, "0s", true),
        (slow, 1100, "0s", false),
        (slow, 1000, "5s", false),
        (long, 1000, "0s", true),
        (long, 2000, "0s", false),
    ] {
        let (told, seen) = asks(medium, timeout, every);
        assert_eq!((told, seen), (runs_out, runs_out), "{medium} {timeout} ms {every}");
    }
}

/// Where no line has a rate and no host takes time nothing waits: conversations beside each other take as long as alone.
#[test]
fn nothing_waits_where_nothing_takes_time() {
    let line = LinkSpec { delay: Span::from_millis(10), ..LinkSpec::default() };
    for transport in [urp(256, 3, 16), Transport::Tcp(TcpSettings::default())] {
        let mut net = pair(&line);
        net.traffic.push(traffic("one", ("a", "b"), echo(&[100]), &transport));
        net.traffic.push(traffic("two", ("a", "b"), echo(&[10]), &transport));
        let found = predictions(&net).unwrap();
        for (name, size) in [("one", 100), ("two", 10)] {
            let ours =
                found.find(name, size, What::RoundTrip).unwrap_or_else(|| panic!("{found:?}"));
            assert_eq!(ours.value, Figure::Time(Span::from_millis(20)));
        }
    }
}

/// Messages at an interval that is shorter than a round trip follow each other at once, behind the acknowledgements of the answers.
#[test]
fn messages_that_overtake_their_interval_follow_at_once() {
    let tcp = TcpSettings { delayed_ack: Some(Span::ZERO), ..TcpSettings::default() };
    let of = |every| {
        let mut net = pair(&link(64_000, Span::from_millis(1)));
        let reply = Reply::Bytes(500);
        let talk = Workload::Interactive { sizes: vec![30], repeat: 50, reply, every };
        net.traffic.push(traffic("talk", ("a", "b"), talk, &Transport::Tcp(tcp.clone())));
        let found = predictions(&net).unwrap().find("talk", 30, What::RoundTrip).unwrap().value;
        let run = trunkline_sim::run(&net).unwrap();
        let seen = run.traffic[0].samples[25].delay();
        (found.time().unwrap(), seen)
    };
    for every in [Span::ZERO, Span::from_millis(20), Span::from_millis(500)] {
        let (ours, seen) = of(every);
        assert!(ours.as_nanos().abs_diff(seen.as_nanos()) < 1_000, "{every}: {ours} {seen}");
    }
}

/// Datagrams of one instant that overflow a queue are not said to be carried: of 50 the simulator loses 39.
#[test]
fn datagrams_of_one_instant_that_overflow_a_queue_have_no_delay() {
    for (limit, has_room) in [(10, false), (48, false), (49, true)] {
        let discipline = DisciplineSpec::fifo(Limit::Packets(limit));
        let line = LinkSpec { discipline, ..link(10_000_000, Span::from_millis(10)) };
        let mut net = pair(&line);
        let (size, rate) = (500, Rate::from_bits_per_second(50_000));
        let work = Workload::Paced { size, rate, duration: Span::from_secs(5) };
        net.traffic
            .push(Traffic { count: 50, ..traffic("p", ("a", "b"), work, &Transport::Datagram) });
        let lost = trunkline_sim::run(&net).unwrap().traffic[0].packets;
        assert_eq!(lost.dropped == 0, has_room, "{lost:?}");
        let found = predictions(&net).unwrap();
        assert_eq!(found.find("p", 500, What::Delay).is_some(), has_room, "{limit}: {found:?}");
        assert_eq!(
            found.notes.iter().any(|it| it.text.contains("overflow the queue of a>b")),
            !has_room
        );
    }
}
