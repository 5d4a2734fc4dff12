//! Clusters of nodes in virtual time: times by hand, laws, losses, livelock.

use trunkline_core::{Span, Time};
use trunkline_engine::{NoteKind, Run, check};
use trunkline_scenario::Scenario;
use trunkline_sim::run;

fn cells(keys: &str) -> Vec<Scenario> {
    let text = format!(
        "stop_after = '10min'\nsamples = 'all'\n[[cluster]]\nname = 'c'\nrate = '100Mbit/s'\nlimit = '100MB'\n{keys}\n"
    );
    Scenario::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn one(keys: &str) -> Run {
    let run = run(&cells(keys)[0]).unwrap();
    assert_eq!(check(&run), [], "{keys}");
    run
}

/// Without costs a hop is the wait for the token, the frame's own bits, and the way: 52 octets and the payload at 100 Mbit/s
/// are 4.48 us for a word, and 1000 words 319.68 us more.
#[test]
fn a_hop_on_an_idle_ring_takes_its_bits_and_its_way() {
    let hop = |words: u32| {
        let test = format!("test = {{ kind = 'latency', words = {words}, rounds = 10 }}");
        let run = one(&format!("kind = 'half-duplex'\nnodes = 2\n{test}"));
        let samples = &run.traffic[0].samples;
        assert_eq!(samples.len(), 20);
        samples.iter().map(|it| it.delay().as_nanos()).collect::<Vec<_>>()
    };
    assert!(hop(1).iter().all(|&nanos| nanos == 4_480), "{:?}", hop(1));
    assert!(hop(1000).iter().all(|&nanos| nanos == 324_160));
}

/// Appendix A: what one protocol does that the other omits is 1418 cycles of 20 ns, and 151. It is all of the difference.
#[test]
fn the_protocols_differ_by_their_operations() {
    let hop = |protocol: &str| {
        let test = "test = { kind = 'latency', words = 1, rounds = 10, warm_up = 5 }";
        let costs = "costs = 'hp'\n[costs.hp]\ncycle = '20ns'\nsend = '30us'\ninterrupt = '30us'";
        let run = one(&format!(
            "kind = 'half-duplex'\nnodes = 2\nprotocol = '{protocol}'\n{test}\n{costs}"
        ));
        run.traffic[0].samples[0].delay().as_nanos()
    };
    assert_eq!(hop("traditional"), 60_000 + 4_480 + 28_360);
    assert_eq!(hop("careful"), 60_000 + 4_480 + 3_020);
}

/// The steps of a lap are those of the message round the ring, at whichever node time passed.
#[test]
fn the_time_of_a_lap_is_told_along_its_message() {
    let test = "test = { kind = 'latency', words = 100, rounds = 4 }\ncosts = 'c'";
    let costs = "[costs.c]\nsend = '30us'\ninterrupt = '10us'\nreceive = '5us'\nclean_up = '7us'";
    let medium = "kind = 'half-duplex'\ndelay = '3us'\nnodes = 4";
    let run = one(&format!("{medium}\n{test}\n{costs}"));
    let mut booked = std::collections::BTreeMap::new();
    for step in run.traffic[0].samples.iter().flat_map(|it| &it.steps) {
        *booked.entry(format!("{:?}", step.cause)).or_insert(0) += step.span.as_nanos();
    }
    // A frame of 452 octets takes 36.16 us.
    let expected = [("Host", 16 * 45_000), ("Propagate", 16 * 3_000), ("Transmit", 16 * 36_160)];
    let expected = expected.map(|(cause, nanos)| (cause.to_string(), nanos));
    assert_eq!(booked.into_iter().collect::<Vec<_>>(), expected);
}

/// In a square the message goes twice over a node between, which takes an interrupt and a send more, and its way is booked.
#[test]
fn the_time_of_a_lap_is_told_along_a_message_that_is_handed_on() {
    let test = "test = { kind = 'latency', words = 100, rounds = 4 }\ncosts = 'c'";
    let costs = "[costs.c]\nsend = '30us'\ninterrupt = '10us'\nreceive = '5us'\nclean_up = '7us'";
    let medium = "kind = 'half-duplex'\ndelay = '3us'\nnodes = 4";
    let protocol = "protocol = { kind = 'careful', grid = 2 }";
    let run = one(&format!("{medium}\n{protocol}\n{test}\n{costs}"));
    let mut booked = std::collections::BTreeMap::new();
    for step in run.traffic[0].samples.iter().flat_map(|it| &it.steps) {
        *booked.entry(format!("{:?}", step.cause)).or_insert(0) += step.span.as_nanos();
    }
    let host = 16 * 45_000 + 8 * 40_000;
    let expected = [("Host", host), ("Propagate", 24 * 3_000), ("Transmit", 24 * 36_160)];
    let expected = expected.map(|(cause, nanos)| (cause.to_string(), nanos));
    assert_eq!(booked.into_iter().collect::<Vec<_>>(), expected);
}

/// The programs' end is beyond what is measured: if nothing varies, the last round is as long as the one before.
#[test]
fn the_last_round_is_as_long_as_the_others() {
    let costs = "costs = 'c'\n[costs.c]\nsend = '30us'\ninterrupt = '10us'\nreceive = '5us'";
    for protocol in ["traditional", "careful"] {
        for test in ["latency', words = 100", "incast', bytes = 400"] {
            let medium = format!("kind = 'half-duplex'\nnodes = 4\nprotocol = '{protocol}'");
            let test = format!("test = {{ kind = '{test}, rounds = 4 }}");
            let run = one(&format!("{medium}\n{test}\n{costs}"));
            let spans = run.traffic[0].samples.iter().map(|it| it.delay().as_nanos());
            let spans: Vec<u64> = spans.collect();
            let rounds: Vec<u64> =
                spans.chunks(spans.len() / 4).map(|it| it.iter().sum()).collect();
            assert_eq!(rounds[2], rounds[3], "{protocol}, {test}: {rounds:?}");
        }
    }
}

/// A channel is busy for as long as bits are on it: those of a broadcast once, and of frames that are lost on arrival too.
/// A fabric has a channel for each node.
#[test]
fn a_channel_is_busy_with_all_that_is_sent_and_no_longer_than_it_lasts() {
    let test = "test = { kind = 'flood', words = 200, fragments = 2, ahead = 2, events = 10 }";
    for kind in trunkline_path::medium::KINDS {
        for keys in ["", "protocol = 'traditional'\nloss = '5%'"] {
            let medium = format!("kind = '{}'\nnodes = 8", kind.name);
            let run = run(&cells(&format!("{medium}\n{test}\n{keys}"))[0]).unwrap();
            let (link, ended) = (&run.links[0], run.ended.since(Time::ZERO));
            let channels = if kind.name == "leaf-spine" { 8 } else { 1 };
            let most = ended.scaled(channels, 1);
            assert!(link.busy > Span::ZERO && link.busy <= most, "{medium}, {keys}: {}", link.busy);
            let bits = Span::from_nanos(link.counts.entered_bytes * 80);
            if ["half-duplex", "fddi"].contains(&kind.name) {
                assert_eq!((link.busy, link.in_flight), (bits, 0), "{medium}, {keys}");
            }
        }
    }
}

/// What switches lose has kept its node's line busy.
#[test]
fn lines_are_busy_with_what_switches_lose() {
    let medium = "kind = 'leaf-spine'\nflow = 'drop'\nbuffer = '2kB'\nnodes = 8";
    let test = "protocol = 'traditional'\ntest = { kind = 'incast', bytes = 9000, rounds = 3 }";
    let run = one(&format!("{medium}\n{test}"));
    let link = &run.links[0];
    assert!(link.counts.dropped() > 0);
    let bits = Span::from_nanos(link.counts.entered_bytes * 80);
    assert_eq!((link.busy, link.in_flight), (bits, 0));
}

/// What follows a fragment that has left keeps its node busy, and does not hold that fragment up.
#[test]
fn a_node_cleans_up_behind_what_it_has_sent() {
    let test =
        "test = { kind = 'throughput', messages = 20, ahead = 20 }\nbuffers = 128\ncosts = 'c'";
    let run = one(&format!("kind = 'half-duplex'\nnodes = 2\n{test}\n[costs.c]\nclean_up = '1ms'"));
    let lap = run.traffic[0].samples[0].delay().as_nanos();
    // Twenty behind the messages of the first node, and one behind the last answer's way at most.
    assert!((20_000_000..21_000_000).contains(&lap), "{lap}");
}

/// With windows of 2 and the report's rule a receiver waits for two frames, and its sender may send one.
#[test]
fn a_deadlock_is_named() {
    let test = "test = { kind = 'throughput', messages = 50, ahead = 40 }";
    let protocol = "protocol = { kind = 'careful', literal = true, piggyback = false }";
    let run = one(&format!("kind = 'fddi'\nnodes = 2\nbuffers = 4\n{protocol}\n{test}"));
    let doubts = run.doubts();
    assert!(doubts.iter().any(|it| it.contains("deadlock: nothing is under way")), "{doubts:?}");
    assert!(doubts[0].contains("'literal'"), "{doubts:?}");
}

/// A lost frame behind which nothing comes is waited for without end if nobody asks, and the figures are no result.
#[test]
fn a_loss_that_nobody_asks_for_is_named() {
    let test = "test = 'latency'\nloss = '10%'";
    let run = one(&format!("kind = 'fddi'\nnodes = 3\nprotocol = 'careful'\n{test}"));
    let doubts = run.doubts();
    assert!(
        doubts.iter().any(|it| it.contains("frames were lost (1), and nobody asks")),
        "{doubts:?}"
    );
}

#[test]
fn every_test_ends_well_over_both_protocols_on_rings_and_fabrics() {
    for kind in ["kind = 'fddi'", "kind = 'leaf-spine'\nhosts_per_leaf = 2"] {
        for protocol in ["traditional", "careful"] {
            for test in trunkline_cluster::TESTS {
                let keys = test.trial.replace('=', " = ");
                let test = format!("{{ kind = '{}', {keys} }}", test.name);
                let run =
                    one(&format!("{kind}\nnodes = 5\nprotocol = '{protocol}'\ntest = {test}"));
                let text: Vec<String> = run.notes.iter().map(ToString::to_string).collect();
                assert!(run.notes.iter().all(|it| it.kind == NoteKind::Held), "{test}: {text:?}");
                assert!(!run.traffic[0].samples.is_empty(), "{test}");
            }
        }
    }
}

/// The traditional protocol repairs what is lost; the careful one reports it and delivers nothing after it.
#[test]
fn losses_are_repaired_or_reported() {
    let test = "test = { kind = 'jacobi', side = 8, iterations = 60 }\nloss = '2%'";
    let run_of =
        |protocol: &str| one(&format!("kind = 'fddi'\nnodes = 4\nprotocol = {protocol}\n{test}"));
    let repaired = run_of("'traditional'");
    assert!(repaired.is_valid() && repaired.traffic[0].retransmissions > 0);
    assert!(repaired.traffic[0].packets.dropped > 0);
    let reported = run_of("{ kind = 'careful', audit = '100ms' }");
    let doubts = reported.doubts();
    assert!(doubts.iter().any(|it| it.contains("reliability violated")), "{doubts:?}");
}

/// Table 3 of TR 94-14: with more outstanding than there are buffers, four traditional nodes send, refuse and ask for ever.
#[test]
fn a_livelock_is_named() {
    let test = "test = { kind = 'flood', fragments = 8, ahead = 10, events = 100 }";
    let costs = "costs = 'hp'\n[costs.hp]\ncycle = '20ns'\nsend = '25us'\ninterrupt = '25us'\nreceive = '25us'";
    let run = one(&format!("kind = 'fddi'\nnodes = 4\nprotocol = 'traditional'\n{test}\n{costs}"));
    let text: Vec<String> = run.notes.iter().map(ToString::to_string).collect();
    assert!(text.iter().any(|it| it.contains("livelock")), "{text:?}");
    // It is what the run found, as the report did.
    assert_eq!(run.doubts(), Vec::<String>::new());
}

/// Of many nodes it is told when all have waited for three of the longest time-outs, not when each has seen as much as one
/// of a few.
#[test]
fn a_livelock_of_many_nodes_is_told_soon() {
    let test = "test = { kind = 'flood', ahead = 40, events = 40 }";
    let costs = "costs = 'hp'\n[costs.hp]\ninterrupt = '25us'\nreceive = '25us'";
    let run = one(&format!("kind = 'fddi'\nnodes = 40\nprotocol = 'traditional'\n{test}\n{costs}"));
    let text: Vec<String> = run.notes.iter().map(ToString::to_string).collect();
    assert!(text.iter().any(|it| it.contains("livelock")), "{text:?}");
    assert!(run.ended < Time::ZERO + Span::from_secs(4), "{}", run.ended);
}

/// Nodes that ask each other whether anything was lost faster than they can answer ask less and less, and come on.
#[test]
fn short_audits_leave_nodes_time_for_their_work() {
    let careful = "protocol = { kind = 'careful', audit = '1us' }\ntest = 'latency'";
    let costs = "costs = 'hp'\n[costs.hp]\ninterrupt = '3us'";
    let run = one(&format!("kind = 'fddi'\nnodes = 8\n{careful}\n{costs}"));
    assert_eq!(run.doubts(), Vec::<String>::new());
    // Answers to audits repeat nothing.
    assert_eq!(run.traffic[0].retransmissions, 0);
}

/// Updates that answer each other for ever: buffers are no remedy.
#[test]
fn a_livelock_of_updates_is_told_from_one_of_buffers() {
    let careful = "protocol = { kind = 'careful', literal = true, at_half = true }";
    let run =
        one(&format!("kind = 'fddi'\nnodes = 2\nbuffers = 4\n{careful}\ntest = 'throughput'"));
    let doubts = run.doubts();
    let named = |it: &String| it.contains("livelock") && it.contains("'literal'");
    assert!(doubts.iter().any(named), "{doubts:?}");
}

/// Layers that ask each other once a second at most make few events until `stop_after` ends them, and fail all the same;
/// programs that had no time to tell are cut, which is no failure.
#[test]
fn programs_that_wait_for_very_long_wait_for_ever() {
    for protocol in ["{ kind = 'careful', audit = '1ms' }", "'traditional'"] {
        let test = format!("protocol = {protocol}\nloss = 1.0\ntest = 'latency'");
        let mut scenario = cells(&format!("kind = 'fddi'\nnodes = 4\n{test}")).remove(0);
        let doubts = run(&scenario).unwrap().doubts();
        let named = |it: &String| it.contains("livelock") && it.contains("'loss'");
        assert!(doubts.iter().any(named), "{protocol}: {doubts:?}");
        scenario.stop_after = Span::from_secs(100);
        let cut = run(&scenario).unwrap();
        assert_eq!(cut.doubts(), Vec::<String>::new());
        assert!(cut.notes.iter().any(|it| it.kind == NoteKind::Unfinished), "{:?}", cut.notes);
    }
}

/// The same of nodes that refuse each other once a second: it is a livelock for want of buffers.
#[test]
fn a_slow_livelock_is_named() {
    let protocol = "protocol = { kind = 'traditional', infer = true }\nframe = 64";
    let test = "buffers = 36\nsend_buffers = 1\ntest = { kind = 'all-to-all', bytes = 5000 }";
    let run = one(&format!("kind = 'fddi'\nnodes = 12\n{protocol}\n{test}"));
    let text: Vec<String> = run.notes.iter().map(ToString::to_string).collect();
    let named = |it: &String| it.contains("livelock") && it.contains("give more 'buffers'");
    assert!(text.iter().any(named), "{text:?}");
    assert_eq!(run.doubts(), Vec::<String>::new());
}

/// The remedy is one of the keys that were given.
#[test]
fn a_livelock_names_the_timer_that_is_too_short() {
    let test = "test = { kind = 'halo', bytes = 100000, rounds = 3 }\nframe = 100";
    let run = one(&format!(
        "kind = 'fddi'\nnodes = 4\nprotocol = {{ kind = 'careful', audit = '1us' }}\n{test}"
    ));
    let doubts = run.doubts();
    let named = |it: &String| it.contains("give 'audit' a longer time");
    assert!(doubts.iter().any(named), "{doubts:?}");
    let others = ["'lease'", "'literal'"];
    assert!(!doubts.iter().any(|it| others.iter().any(|key| it.contains(key))), "{doubts:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let keys = "kind = 'fddi'\nnodes = 6\nprotocol = 'traditional'\nloss = '3%'\ntest = { kind = 'all-to-all', rounds = 10 }";
    assert_eq!(one(keys), one(keys));
}

/// What the programs do until the end of the laps asked for is drawn: each node's line, and each message of a ring once.
#[test]
fn what_programs_do_is_recorded_and_drawn() {
    let test = "test = { kind = 'latency', words = 100, rounds = 9, warm_up = 0 }";
    let of = |keys: &str| one(&format!("kind = 'half-duplex'\nnodes = 3\n{test}\n{keys}")).pictures;
    assert_eq!(of(""), []);
    let pictures = of("record = 2");
    let [picture] = &pictures[..] else { panic!("{pictures:?}") };
    assert_eq!(picture.name, "c");
    assert_eq!(picture.svg.matches("class=\"message\"").count(), 6, "{}", picture.svg);
    assert!(picture.about.contains("0 to all nodes, 6 to neighbours"), "{}", picture.about);
    assert!(picture.trace.starts_with("{") && picture.trace.contains("\"node 2\""));
    // A run that ends before is drawn as far as it came.
    let all = of("record = 50");
    assert_eq!(all[0].svg.matches("stroke=\"black\" stroke-width").count(), 27);
}
