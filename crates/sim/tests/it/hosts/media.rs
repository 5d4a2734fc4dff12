//! Shared media under simulated hosts: times, ways, results, and the laws of the house.

use crate::hosts::random::{AMOUNTS, BOARDS, PROCESSORS, WORKLOADS};
use crate::hosts::support::{run, scenario};
use proptest::prelude::*;
use trunkline_core::{Cause, Span, Time};
use trunkline_engine::{NoteKind, Run, check};
use trunkline_path::medium::KINDS;

/// Hosts on a medium of 10 Mbit/s.
fn hosts(names: &[&str], medium: &str) -> String {
    let hosts: String = names.iter().map(|name| format!("[[host]]\nname = \"{name}\"\n")).collect();
    format!(
        "{hosts}[[medium]]\nname = \"lan\"\nstations = {names:?}\nrate = \"10Mbit/s\"\n{medium}\n"
    )
}

fn bulk(name: &str, from: &str, to: &str) -> String {
    format!(
        "[[traffic]]\nname = \"{name}\"\nkind = \"greedy\"\nfrom = \"{from}\"\nto = \"{to}\"\nduration = \"4s\"\n"
    )
}

/// Bytes a second of all that is delivered, in Mbit/s.
fn goodput(run: &Run) -> f64 {
    let bytes: u64 = run.traffic.iter().map(|traffic| traffic.delivered_bytes).sum();
    bytes as f64 * 8.0 / run.ended.as_nanos() as f64 * 1e3
}

/// 100 bytes take 80 us of bits and 10 us there, and the echo the same with the turnaround before it.
#[test]
fn a_message_and_its_echo_take_turns() {
    let text = hosts(
        &["a", "b"],
        "kind = \"half-duplex\"\ndelay = \"10us\"\nturnaround = \"30us\"",
    ) + "[[traffic]]\nname = \"t\"\nkind = \"interactive\"\nfrom = \"a\"\nto = \"b\"\nsizes = [100]\nrepeat = 3\n\
           transport = { kind = \"urp\", block = 256, packet = 0 }\nevery = \"1ms\"\n";
    let run = run(&text);
    let sample = &run.traffic[0].samples[0];
    // 104 envelopes with URP's trailer each way. The answer of URP's own to the first goes before the echo.
    let frame = Span::from_micros(104 * 8 / 10);
    assert!(sample.end - sample.start >= frame.scaled(2, 1) + Span::from_micros(20 + 30));
    assert_eq!(sample.booked(Cause::Propagate), Span::from_micros(20));
    let names: Vec<&str> = run.links.iter().map(|link| &*link.name).collect();
    assert_eq!(names, ["a>lan", "b>lan"]);
    assert_eq!(run.places[..2], ["a>lan", "b>lan"]);
    assert_eq!(run.links[0].counts.in_flight(), run.links[0].in_flight);
    assert!(run.links[0].busy > Span::ZERO && run.links[0].queueing.is_some());
}

/// Connections in opposite directions share one channel, of which they have most and no more; on a fabric each has cables of
/// its own.
#[test]
fn a_medium_is_one_channel_for_all() {
    for kind in KINDS {
        let names = ["a", "b", "c", "d"];
        let medium = format!("kind = \"{}\"\ndelay = \"5us\"\nframing = \"ethernet\"", kind.name);
        let text = hosts(&names, &medium)
            + &bulk("one", "a", "b")
            + &bulk("two", "c", "a")
            + &bulk("three", "b", "d");
        let run = run(&text);
        let seen = goodput(&run);
        for link in &run.links {
            let (busy, ended) = (link.busy, run.ended.since(Time::ZERO));
            assert!(busy <= ended, "{} of {}: {busy} of {ended}", link.name, kind.name);
        }
        // The frames of a satellite channel carry 3006 bytes each, and four seconds are few round trips.
        let (least, most) = match kind.name {
            "wideband" => (0.1, 1.134),
            "leaf-spine" => (24.0, 28.5),
            _ => (6.5, 9.5),
        };
        assert!(seen > least && seen < most, "{}: {seen} Mbit/s", kind.name);
    }
}

/// A node on a medium and a link: packets go on from the one to the other.
#[test]
fn a_node_leads_from_a_medium_to_a_link() {
    let text = hosts(&["a", "b"], "kind = \"half-duplex\"")
        .replace("\"a\", \"b\"]", "\"a\", \"b\", \"n\"]")
        + "[[node]]\nname = \"n\"\n[[host]]\nname = \"far\"\n[[link]]\nbetween = [\"n\", \"far\"]\nrate = \"1Mbit/s\"\ndelay = \"3ms\"\n"
        + &bulk("out", "a", "far");
    let run = run(&text);
    let seen = goodput(&run);
    assert!(seen > 0.85 && seen < 1.0, "{seen} Mbit/s");
    let entered =
        |name: &str| run.links.iter().find(|link| link.name == name).unwrap().counts.entered;
    assert_eq!(entered("b>lan"), 0);
    assert!(entered("a>lan") > 300 && entered("n>lan") > 100 && entered("n>far") > 300);
}

#[test]
fn backlogs_and_traces_are_of_the_station() {
    let text = format!(
        "sample_backlog = \"10ms\"\n{}{}",
        hosts(&["a", "b"], "kind = \"half-duplex\""),
        bulk("t", "a", "b")
    );
    let run = run(&text);
    let most = |link: usize| run.links[link].backlog.iter().map(|it| it.1).max().unwrap();
    assert!(run.links[0].backlog.len() > 300, "{}", run.links[0].backlog.len());
    assert!(most(0) > 10_000 && most(1) < 10_000, "{} {}", most(0), most(1));
    let sample = &run.traffic[0].samples;
    assert!(!sample.is_empty() || !run.traffic[0].courses.is_empty());
}

/// Incast of 16 senders: what drops loses segments and waits for a time-out; what pauses or grants credits loses none and keeps
/// the receiver's cable busy, with the buffers that it has.
#[test]
fn incast_of_tcp_on_a_fabric() {
    let senders: Vec<String> = (1..=16).map(|number| format!("h{number}")).collect();
    let mut names: Vec<&str> = vec!["h0"];
    names.extend(senders.iter().map(String::as_str));
    for flow in ["drop", "pause", "credit"] {
        let keys = format!(
            "kind = \"leaf-spine\"\nhosts_per_leaf = 5\nspines = 2\nflow = \"{flow}\"\nbuffer = \"60kB\"\ndelay = \"100ns\""
        );
        let text = hosts(&names, &keys).replace("10Mbit/s", "100Gbit/s")
            + &format!(
                "[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nbytes = \"64kB\"\nwrite = 65536\ncount = 16\nfrom_each = {senders:?}\nto = \"h0\"\n"
            );
        let run = run(&text);
        assert_eq!(check(&run), [], "{flow}");
        let lost: u64 = run.links.iter().map(|link| link.counts.dropped()).sum();
        // 1024 kB at 100 Gbit/s take 82 us.
        let ended = Span::from_nanos(run.ended.as_nanos());
        if flow == "drop" {
            assert!(lost > 0 && ended > Span::from_millis(100), "{lost} {ended}");
        } else {
            assert!(lost == 0 && ended < Span::from_micros(100), "{flow}: {lost} {ended}");
        }
        let held = run.notes.iter().find(|note| note.kind == NoteKind::Held).unwrap();
        let bytes = held.text.split(' ').find_map(|word| word.parse::<u64>().ok()).unwrap();
        assert!((40_000..=60_000).contains(&bytes), "{flow}: {}", held.text);
    }
}

#[derive(Debug, Clone)]
struct Plan {
    kind: usize,
    keys: usize,
    limit: &'static str,
    delay: u32,
    flows: Vec<(usize, u32, usize, usize, bool)>,
    hosts: [(usize, usize); 3],
    seed: u16,
}

const TRANSPORTS: [&str; 2] = ["\"tcp\"", "{ kind = \"urp\", block = 252, outstanding = 3 }"];

impl Plan {
    fn text(&self, names: [&str; 3]) -> String {
        let kind = &KINDS[self.kind];
        let keys = kind.trials[self.keys % kind.trials.len()];
        let lines = keys.split(',').filter(|pair| !pair.is_empty()).map(|pair| {
            let (key, value) = pair.split_once('=').unwrap();
            let plain = value.parse::<u64>().is_ok() || value == "true";
            if plain { format!("{key} = {value}\n") } else { format!("{key} = \"{value}\"\n") }
        });
        let mut text = format!(
            "seed = {}\nstop_after = \"5min\"\n[[medium]]\nname = \"m\"\nkind = \"{}\"\nstations = {names:?}\nrate = \"2Mbit/s\"\n\
             delay = \"{}us\"\nlimit = \"{}\"\n{}",
            self.seed,
            kind.name,
            self.delay,
            self.limit,
            lines.collect::<String>()
        );
        for (name, (processor, board)) in std::iter::zip(["a", "b", "c"], self.hosts) {
            text += &format!(
                "[[host]]\nname = \"{name}\"\nprocessor = \"{name}\"\ninterface = \"{name}\"\n\
                 [processor.{name}]\n{}\n[interface.{name}]\n{}\n",
                PROCESSORS[processor], BOARDS[board]
            );
        }
        for (index, &(workload, count, from, transport, onward)) in self.flows.iter().enumerate() {
            let hosts = ["a", "b", "c"];
            let to = hosts[(from + 1 + usize::from(onward)) % 3];
            text += &format!(
                "[[traffic]]\nname = \"t{index}\"\n{}\nfrom = \"{}\"\nto = \"{to}\"\ncount = {count}\ntransport = {}\n",
                WORKLOADS[workload], hosts[from], TRANSPORTS[transport]
            );
        }
        text
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    let host = || (0..PROCESSORS.len(), 0..BOARDS.len());
    let flow = (0..AMOUNTS.len(), 1u32..3, 0..3usize, 0..TRANSPORTS.len(), any::<bool>());
    let medium =
        (0..KINDS.len(), 0..4usize, prop::sample::select(vec!["64KiB", "3p", "900B"]), 0u32..200);
    (medium, prop::collection::vec(flow, 1..4), [host(), host(), host()], any::<u16>()).prop_map(
        |((kind, keys, limit, delay), flows, hosts, seed)| Plan {
            kind,
            keys,
            limit,
            delay,
            flows,
            hosts,
            seed,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_laws_hold(plan in plan()) {
        let scenario = scenario(&plan.text(["a", "b", "c"]));
        let run = trunkline_sim::run(&scenario).unwrap();
        prop_assert_eq!(check(&run), []);
        prop_assert_eq!(&trunkline_sim::run(&scenario).unwrap(), &run);
    }

    /// The order in which stations are declared means nothing unless it is that of a ring, on leaves or of a bus, where
    /// it is their priority.
    #[test]
    fn the_order_of_stations_means_nothing(plan in plan()) {
        if ["token-ring", "fddi", "leaf-spine", "bus"].contains(&KINDS[plan.kind].name) {
            return Ok(());
        }
        let traffic = |names| trunkline_sim::run(&scenario(&plan.text(names))).unwrap().traffic;
        let seen = |names| -> Vec<_> {
            let samples = traffic(names).into_iter().flat_map(|it| it.samples.iter().cloned().collect::<Vec<_>>());
            samples.map(|sample| (sample.flow, sample.start, sample.end)).collect()
        };
        prop_assert_eq!(seen(["a", "b", "c"]), seen(["c", "a", "b"]));
    }
}
