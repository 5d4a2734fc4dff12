//! The order in which things are declared changes nothing.

use std::collections::BTreeMap;
use trunkline_batch::make;
use trunkline_core::{Seed, Stream};
use trunkline_engine::{Engine, Run};
use trunkline_measure::Sample;
use trunkline_model::Formulas;
use trunkline_path::discipline::KINDS;
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

/// Traffic that meets itself: equal flows that are ready at the same instants, two equally short ways, hosts that
/// are disturbed, chance on every line.
const TEXT: &str = r#"
stop_after = "20s"
[processor.slow]
write = "100us"
interrupt = "50us"
disturbance = { probability = "5%", mean = "1ms" }
[[host]]
name = "b"
processor = "slow"
[[host]]
name = "a"
[[host]]
name = "c"
processor = "slow"
[[node]]
name = "n"
[[node]]
name = "m"
[[node]]
name = "k"
[[link]]
between = ["a", "n"]
rate = "10Mbit/s"
[[link]]
name = "right"
between = ["n", "m"]
rate = "1Mbit/s"
delay = "5ms"
limit = "8KiB"
loss = "0.5%"
[[link]]
name = "left"
between = ["n", "k"]
rate = "2Mbit/s"
delay = "9ms"
discipline = "DISCIPLINE"
jitter = "1ms"
[[link]]
between = ["k", "c"]
rate = "10Mbit/s"
[[link]]
between = ["m", "c"]
rate = "10Mbit/s"
[[link]]
between = ["b", "n"]
rate = "10Mbit/s"
[[traffic]]
name = "zebra"
kind = "bulk"
from = "a"
to = "c"
bytes = "100kB"
count = 2
transport = "TRANSPORT"
[[traffic]]
name = "gnu"
kind = "bulk"
from = "b"
to = "c"
bytes = "100kB"
transport = "TRANSPORT"
[[traffic]]
name = "ant"
kind = "interactive"
from = "a"
to = "c"
sizes = [1, 64]
repeat = 40
transport = "TRANSPORT"
[[traffic]]
name = "hare"
kind = "greedy"
from = "a"
to = "c"
via = ["n", "m"]
duration = "3s"
start_after = "gnu"
transport = "TRANSPORT"
[[traffic]]
name = "bee"
kind = "bulk"
from = "c"
to = "b"
bytes = "10kB"
until = "ant"
transport = "TRANSPORT"
[[traffic]]
name = "midge"
kind = "paced"
from = "a"
to = "c"
size = 100
rate = "100kbit/s"
duration = "2s"
"#;

fn shuffled<T: Clone>(items: &[T], stream: &mut Stream) -> Vec<T> {
    let mut items = items.to_vec();
    for last in (1..items.len()).rev() {
        items.swap(last, stream.below(last as u64 + 1) as usize);
    }
    items
}

/// The same scenario, everything declared in another order.
fn declared_otherwise(scenario: &Scenario, stream: &mut Stream) -> Scenario {
    Scenario {
        hosts: shuffled(&scenario.hosts, stream),
        nodes: shuffled(&scenario.nodes, stream),
        links: shuffled(&scenario.links, stream),
        traffic: shuffled(&scenario.traffic, stream),
        clusters: shuffled(&scenario.clusters, stream),
        ..scenario.clone()
    }
}

/// A measurement with the names of its places.
fn told(run: &Run, sample: &Sample) -> String {
    let steps = sample.steps.iter();
    let steps: Vec<String> = steps
        .map(|step| format!("{} {:?} {}", run.places[step.place as usize], step.cause, step.span))
        .collect();
    let Sample { flow, index, size, intended, start, end, .. } = sample;
    format!("{flow} {index} {size} {intended} {start} {end} {steps:?}")
}

/// Everything that a run says, by name.
fn by_name(run: &Run) -> BTreeMap<String, Vec<String>> {
    let traffic = run.traffic.iter().map(|traffic| {
        let counts = format!(
            "{:?} {} {} {} {:?} {:?}",
            traffic.packets,
            traffic.delivered_bytes,
            traffic.retransmissions,
            traffic.timeouts,
            traffic.sender,
            traffic.rounds
        );
        let samples = traffic.samples.iter().map(|sample| told(run, sample));
        (format!("traffic {}", traffic.name), samples.chain([counts]).collect())
    });
    let links = run.links.iter().map(|link| {
        let counts =
            format!("{:?} {} {} {:?}", link.counts, link.in_flight, link.busy, link.queueing);
        (format!("link {}", link.name), vec![counts])
    });
    let mut notes: Vec<String> = run.notes.iter().map(ToString::to_string).collect();
    notes.sort();
    let rest = [("notes".into(), notes), ("ended".into(), vec![run.ended.to_string()])];
    traffic.chain(links).chain(rest).collect()
}

/// Holds a scenario against itself in other orders, in both engines.
fn held(scenario: &Scenario, orders: u64) {
    for engine in [&Simulator as &dyn Engine, &Formulas] {
        let first = by_name(&make(engine, scenario).unwrap());
        for order in 0..orders {
            let mut stream = Seed(order).stream("order");
            let other = declared_otherwise(scenario, &mut stream);
            let found = by_name(&make(engine, &other).unwrap());
            for (name, value) in &first {
                let names = |of: &[String]| of.join(", ");
                let order: Vec<String> = other.traffic.iter().map(|it| it.name.clone()).collect();
                assert_eq!(
                    value,
                    &found[name],
                    "{engine:?}, {}: {name} differs where traffic is declared as {}",
                    scenario.name,
                    names(&order)
                );
            }
        }
    }
}

#[test]
fn the_order_of_declarations_changes_nothing() {
    for transport in ["urp", "tcp"] {
        for kind in KINDS {
            let discipline = kind.texts().next().unwrap();
            let text = TEXT.replace("TRANSPORT", transport).replace("DISCIPLINE", &discipline);
            let name = format!("{transport}-{}.toml", kind.name);
            held(&Scenario::parse(&text, &name).unwrap()[0], 6);
        }
    }
}

/// The examples, one cell of each.
#[test]
fn nor_that_of_the_examples() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
    assert!(files.len() >= 10);
    for file in files {
        held(&Scenario::read(&file).unwrap()[0], 2);
    }
}
