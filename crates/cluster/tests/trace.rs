//! Records of programs, and what is made of them.

use serde_json::Value;
use trunkline_cluster::pattern::Pattern;
use trunkline_cluster::together::Network;
use trunkline_cluster::trace::{Act, MOST_LINES, MOST_NODES, Record, arrows, perfetto, picture};
use trunkline_cluster::{Flood, Node, Test};
use trunkline_core::Time;
use trunkline_transport::cstar::{Careful, CarefulSettings, Cluster, NodeId};

const FRAME: u32 = 1000;

/// The records of each node of a test.
fn recorded(test: &str, nodes: u16) -> Vec<Vec<Record>> {
    let test = Test::parse(test).unwrap();
    test.check(nodes, FRAME).unwrap();
    let receive_buffers = 16 * u32::from(nodes);
    let cluster = Cluster { nodes, receive_buffers, send_buffers: 64, frame: FRAME };
    let node = |me| {
        let layer = Careful::new(NodeId(me), &cluster, &CarefulSettings::default()).unwrap();
        let mut node = Node::new(test.program(NodeId(me), nodes, FRAME), Box::new(layer));
        node.record(usize::MAX);
        node
    };
    let ended = Network::default().run((0..nodes).map(node).collect()).unwrap();
    ended.into_iter().map(|mut node| node.take_records()).collect()
}

/// 5 rounds of 2 fragments over 3 hops, and 4 closing messages, of which the first is node 0's word, to 2 nodes each.
const LATENCY: (&str, u16, usize) =
    ("latency:words=400,rounds=4,warm_up=1,processing=true", 3, 5 * 2 * 3 + 4 * 2);

#[test]
fn an_arrow_for_each_fragment_that_was_received() {
    let (test, nodes, expected) = LATENCY;
    let records = recorded(test, nodes);
    let arrows = arrows(&records);
    assert_eq!(arrows.len(), expected);
    assert!(arrows.iter().all(|it| it.sent < it.received && it.from != it.to));
    let hops = arrows.iter().filter(|it| it.bytes > 0);
    let bytes: u32 = hops.map(|it| it.bytes).sum();
    assert_eq!(bytes, 5 * 3 * 1600);
    assert!(records.iter().all(|node| node.last().unwrap().act == Act::End));
    assert!(records.iter().all(|node| node.is_sorted_by_key(|record| record.at)));
}

#[test]
fn nothing_is_recorded_unasked_and_nothing_twice() {
    let cluster = Cluster { nodes: 1, receive_buffers: 64, send_buffers: 64, frame: FRAME };
    let node = || {
        let layer = Careful::new(NodeId(0), &cluster, &CarefulSettings::default()).unwrap();
        let test = Test::parse("jacobi:side=4,iterations=3").unwrap();
        Node::new(test.program(NodeId(0), 1, FRAME), Box::new(layer))
    };
    let run = |node: Node| Network::default().run(vec![node]).unwrap().remove(0);
    assert!(run(node()).take_records().is_empty());
    let mut recording = node();
    recording.record(usize::MAX);
    let mut ended = run(recording);
    let all = ended.take_records();
    assert!(all.len() > 3);
    assert!(ended.take_records().is_empty());
    // The first ones, if there is no room for more.
    let mut short = node();
    short.record(3);
    let acts = |records: &[Record]| records.iter().map(|it| it.act).collect::<Vec<_>>();
    assert_eq!(acts(&run(short).take_records()), acts(&all[..3]));
}

/// The trace is read back: a named thread for each node, slices that do not overlap, and arrows that end within a slice of
/// their receiver.
#[test]
fn the_trace_for_perfetto_can_be_read() {
    let (test, nodes, expected) = LATENCY;
    let trace: Value = serde_json::from_str(&perfetto(&recorded(test, nodes))).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of =
        |phase: &str| -> Vec<&Value> { events.iter().filter(|it| it["ph"] == phase).collect() };
    assert_eq!((of("s").len(), of("f").len()), (expected, expected));
    let names: Vec<&Value> = of("M").iter().map(|it| &it["args"]["name"]).collect();
    assert_eq!(names, ["cluster", "node 0", "node 1", "node 2"]);
    for thread in 0..nodes {
        let slices: Vec<(f64, f64)> = of("X")
            .iter()
            .filter(|it| it["tid"] == thread)
            .map(|it| (it["ts"].as_f64().unwrap(), it["dur"].as_f64().unwrap()))
            .collect();
        assert!(slices.iter().zip(&slices[1..]).all(|(one, next)| one.0 + one.1 <= next.0 + 1e-6));
        for arrow in of("f").iter().filter(|it| it["tid"] == thread) {
            let at = arrow["ts"].as_f64().unwrap();
            assert!(slices.iter().any(|&(start, length)| start <= at && at <= start + length));
        }
    }
    for name in ["wait for node 2, event 0", "receive from node 1", "send to all", "work", "lap"] {
        assert!(of("X").iter().any(|it| it["name"] == name), "{name}");
    }
}

#[test]
fn the_picture_has_every_message_or_says_what_it_left_out() {
    let (test, nodes, expected) = LATENCY;
    let lines = |svg: &str| svg.matches("class=\"message\"").count();
    let few = picture(&recorded(test, nodes));
    assert_eq!(lines(&few), expected);
    assert!(!few.contains("is drawn") && few.contains("time in µs") && few.contains(">node 2<"));
    let many = picture(&recorded("all-to-all:bytes=10,rounds=3", 20));
    assert!(lines(&many) <= MOST_LINES && lines(&many) > MOST_LINES / 2);
    // Among the 16 nodes drawn 3 rounds and the closing event have 4 × 16 × 15 messages.
    assert!(many.contains("1 message in 3 is drawn. The first 16 of 20 nodes are drawn."));
    assert!(many.contains(">node 15<") && !many.contains(">node 16<"));
    assert_eq!(MOST_NODES, 16);
    let opened = many.matches("<text").count();
    assert_eq!(opened, many.matches("</text>").count());
}

#[test]
fn nothing_recorded_still_makes_a_picture() {
    let svg = picture(&[vec![], vec![]]);
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("NaN"));
}

#[test]
fn patterns_tell_broadcasts_neighbours_and_others() {
    let shares = |test: &str, nodes: u16| {
        let pattern = Pattern::of(&recorded(test, nodes));
        [pattern.broadcast, pattern.neighbour, pattern.other].map(|it| it.fragments)
    };
    // At the end there are broadcasts of each node, and one more of node 0.
    assert_eq!(shares("latency:words=1,rounds=3,warm_up=0", 5), [6, 15, 0]);
    assert_eq!(shares("flood:words=1,fragments=2,ahead=1,events=3", 4), [4 * 6 + 5, 0, 0]);
    assert_eq!(shares("all-to-all:rounds=2,bytes=8", 5), [6, 2 * 5 * 2, 2 * 5 * 2]);
    let table = Pattern::of(&recorded("jacobi:side=8,iterations=8", 4)).to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[2], format!("{:<10} {:>12} {:>7} {:>15}", "neighbour", 48, "90.6", 48 * 64));
}

#[test]
fn a_lap_holds_the_user_bytes_of_its_senders() {
    let laps = |test: &str| -> Vec<u64> {
        let lap = |it: &Record| if let Act::Lap(bytes) = it.act { Some(bytes) } else { None };
        recorded(test, 3)[0].iter().filter_map(lap).collect()
    };
    assert_eq!(laps("latency:words=5,rounds=2,warm_up=1"), [20, 20]);
    // Nodes 0 and 1 send 4 messages of 20 bytes each.
    assert_eq!(laps("throughput:words=5,messages=4,ahead=2"), [2 * 4 * 20]);
    assert_eq!(laps("flood:words=5,fragments=2,ahead=3,events=6"), [3 * 40, 3 * 40]);
}

#[test]
fn sixty_four_nodes_end_with_a_crowd_and_sixty_five_do_not() {
    let closing = |nodes| {
        let records = recorded("latency:words=1,rounds=1,warm_up=0", nodes);
        Pattern::of(&records).broadcast.fragments
    };
    assert_eq!((closing(64), closing(65)), (65, 0));
}

/// With the most fragments that its keys allow a message stays below 4 GiB, whatever the frame.
#[test]
fn a_fragment_of_a_flood_fills_a_frame_at_most() {
    let check = |words| {
        let flood = Flood { words, fragments: 1, ahead: 1, events: 1, processing: false };
        Test::Flood(flood).check(2, FRAME).is_ok()
    };
    assert!(check(FRAME / 4) && !check(FRAME / 4 + 1));
}

#[test]
fn slices_have_the_category_of_their_act() {
    let (test, nodes, _) = LATENCY;
    let trace: Value = serde_json::from_str(&perfetto(&recorded(test, nodes))).unwrap();
    let slices = trace["traceEvents"].as_array().unwrap().iter().filter(|it| it["ph"] == "X");
    for slice in slices {
        let expected = match slice["name"].as_str().unwrap().split(' ').next().unwrap() {
            "send" | "receive" => "message",
            "wait" => "wait",
            "work" => "work",
            _ => "program",
        };
        assert_eq!(slice["cat"], expected, "{slice}");
    }
}

#[test]
fn only_empty_messages_are_grey() {
    let (test, nodes, _) = LATENCY;
    let svg = picture(&recorded(test, nodes));
    assert_eq!(svg.matches("stroke=\"#AAAAAA\"").count(), 4 * 2);
}

#[test]
fn the_axis_has_five_to_twelve_ticks() {
    for length in (1_000..1_000_000).step_by(7_919) {
        let record = |at| Record { at: Time::from_nanos(at), act: Act::End };
        let svg = picture(&[vec![record(0), record(length)]]);
        // The axis itself is a black line too.
        let ticks = svg.matches("stroke=\"black\"/>").count() - 1;
        assert!((5..=12).contains(&ticks), "{ticks} ticks in {length} ns");
    }
}
