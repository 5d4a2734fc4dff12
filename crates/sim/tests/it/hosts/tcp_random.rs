//! Random small scenarios with TCP: the laws of the house hold whatever the path does, and TCP is never deceived.

use crate::hosts::random::{BOARDS, ORDERLY, PROCESSORS, WILD};
use crate::hosts::support::scenario;
use proptest::prelude::*;
use trunkline_core::Time;
use trunkline_engine::{Run, check};
use trunkline_path::DisciplineSpec;
use trunkline_path::discipline::{DisciplineKind, KINDS};

/// Queues that are small enough to overflow: every discipline under its trials, and some that need no small limit.
fn queues() -> Vec<String> {
    let trials = KINDS.iter().flat_map(DisciplineKind::texts);
    let bare = KINDS.iter().map(|kind| kind.name.to_string());
    let texts = trials.chain(bare.filter(|text| text.parse::<DisciplineSpec>().is_ok()));
    let keys = texts.map(|text| format!("discipline = \"{text}\""));
    [r#"limit = "4KiB""#, r#"discipline = { kind = "epd", threshold = 60, limit = 90 }"#]
        .map(str::to_string)
        .into_iter()
        .chain(keys)
        .collect()
}

const WORKLOADS: [&str; 8] = [
    "kind = \"interactive\"\nsizes = [1, 3000]\nrepeat = 4\nreply = 4",
    "kind = \"interactive\"\nsizes = [1, 17]\nrepeat = 3\nreply = 1",
    "kind = \"bulk\"\nbytes = 30000\nwrite = 700\nrepeat = 2",
    "kind = \"push\"\nbytes = 9000\nrepeat = 2\nstore = \"5ms\"",
    "kind = \"greedy\"\nduration = \"3s\"\nwarm_up = \"1s\"\ninterval = \"200ms\"",
    "kind = \"bulk\"\nbytes = 3000\nconfirm = false",
    "kind = \"timed-echo\"\nsizes = [1, 100]\nduration = \"300ms\"",
    "kind = \"timed-transfer\"\nsizes = [50, 9000]\nduration = \"300ms\"",
];
/// How many of them transfer an amount that is known, both ways together.
const AMOUNTS: [u64; 4] = [4 * (3001 + 8), 3 * (1 + 17 + 2), 2 * 30_004, 2 * 9004];

const OPTIONS: [&str; 9] = [
    "",
    "profile = \"linux\"",
    "profile = \"bsd-reno\"",
    "profile = \"bsd-reno\", mss = 200, window = 2000",
    "profile = \"linux\", congestion = \"newreno\", sack = false, timestamps = false",
    "mss = 100, congestion = \"cubic\", ecn = true",
    "congestion = \"bbr\"",
    "window = 5000, initial_window = 1, delayed_ack = \"0s\"",
    "congestion = \"constant-rate\", min_rto = \"200ms\"",
];

#[derive(Debug, Clone)]
struct Flows {
    workload: usize,
    count: u32,
    looped: bool,
    options: &'static str,
}

#[derive(Debug, Clone)]
struct Plan {
    seed: u64,
    hosts: [(usize, usize); 2],
    links: [&'static str; 3],
    queue: String,
    flows: Vec<Flows>,
    sampled: bool,
}

impl Flows {
    fn text(&self, index: usize) -> String {
        let Flows { workload, count, looped, options } = self;
        let ends = match looped {
            true => "from = \"b\"\nto = \"b\"\nvia = [\"n\", \"m\", \"n\"]",
            false => "from = \"a\"\nto = \"b\"",
        };
        let comma = if options.is_empty() { "" } else { "," };
        format!(
            "[[traffic]]\nname = \"t{index}\"\n{}\n{ends}\ncount = {count}\nstagger = \"7ms\"\n\
             transport = {{ kind = \"tcp\"{comma} {options} }}\n",
            WORKLOADS[*workload]
        )
    }
}

impl Plan {
    fn text(&self) -> String {
        let mut text = format!("seed = {}\nstop_after = \"20min\"\n", self.seed);
        if self.sampled {
            text += "sample_backlog = \"50ms\"\n";
        }
        for (name, (processor, board)) in std::iter::zip(["a", "b"], self.hosts) {
            text += &format!(
                "[[host]]\nname = \"{name}\"\nprocessor = \"{name}\"\ninterface = \"{name}\"\n\
                 [processor.{name}]\n{}\n[interface.{name}]\n{}\n",
                PROCESSORS[processor], BOARDS[board]
            );
        }
        text += "[[node]]\nname = \"m\"\n[[node]]\nname = \"n\"\n";
        let [first, second, third] = self.links;
        text += &format!("[[link]]\nbetween = [\"a\", \"m\"]\n{first}\n");
        text +=
            &format!("[[link]]\nbetween = [\"m\", \"n\"]\nrate = \"2Mbit/s\"\n{}\n", self.queue);
        text +=
            &format!("delay = \"3ms\"\n{second}\n[[link]]\nbetween = [\"n\", \"b\"]\n{third}\n");
        for (index, flows) in self.flows.iter().enumerate() {
            text += &flows.text(index);
        }
        text
    }
}

/// What the middle link does beside queueing.
const HARM: [&str; 4] = ["", "loss = \"2%\"", "duplicate = \"4%\"", "reorder = \"3%:5ms\""];

fn plan(links: Vec<&'static str>, boards: usize, workloads: usize) -> impl Strategy<Value = Plan> {
    let host = move || (0..PROCESSORS.len(), 0..boards);
    let link = prop::sample::select(links);
    let flows = (0..workloads, 1u32..3, any::<bool>(), prop::sample::select(OPTIONS.to_vec()))
        .prop_map(|(workload, count, looped, options)| Flows { workload, count, looped, options });
    let queue = prop::sample::select(queues());
    let harm = prop::sample::select(HARM.to_vec());
    let flows = prop::collection::vec(flows, 1..4);
    (any::<u16>(), [host(), host()], [link.clone(), link], (queue, harm), flows, any::<bool>())
        .prop_map(|(seed, hosts, [first, third], (queue, harm), flows, sampled)| {
            let links = [first, harm, third];
            Plan { seed: seed.into(), hosts, links, queue, flows, sampled }
        })
}

/// Nobody has been given data that were not the next of their stream.
fn undeceived(run: &Run) -> bool {
    run.failures().next().is_none()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever the path does: the steps of each sample sum to its delay, the packets add up, and the same
    /// again is the same to the last bit.
    #[test]
    fn the_laws_hold(plan in plan([&ORDERLY[..], &WILD].concat(), BOARDS.len(), WORKLOADS.len())) {
        let scenario = scenario(&plan.text());
        let run = trunkline_sim::run(&scenario).unwrap();
        prop_assert_eq!(check(&run), []);
        prop_assert!(undeceived(&run), "{:?}", run.notes);
        prop_assert!(run.ended <= Time::ZERO + scenario.stop_after);
        prop_assert_eq!(&trunkline_sim::run(&scenario).unwrap(), &run);
    }

    /// As long as something comes through, everything does, once.
    #[test]
    fn everything_arrives_once(plan in plan([&ORDERLY[..], &WILD[..2]].concat(), 1, AMOUNTS.len())) {
        let run = trunkline_sim::run(&scenario(&plan.text())).unwrap();
        prop_assert_eq!(check(&run), []);
        prop_assert!(undeceived(&run), "{:?}", run.notes);
        for (flows, traffic) in std::iter::zip(&plan.flows, &run.traffic) {
            let amount = AMOUNTS[flows.workload] * u64::from(flows.count);
            prop_assert_eq!(traffic.delivered_bytes, amount, "{}: {:?}", traffic.name, run.notes);
        }
    }
}
