//! Random small scenarios: the laws of the house hold whatever is described.

use crate::hosts::support::{life, scenario};
use proptest::prelude::*;
use trunkline_core::{Span, Time};
use trunkline_engine::{NoteKind, check};
use trunkline_scenario::Scenario;

pub const PROCESSORS: [&str; 3] = [
    "",
    "write = { fixed = \"100us\", per_byte = \"1us\" }\nread = \"300us\"\nrequest = \"50us\"\n\
     interrupt = \"70us\"\nsend_block = { fixed = \"30us\", per_byte = \"1us\" }\n\
     receive_block = \"200us\"\ncontrol = \"10us\"",
    "write = \"2ms\"\nread = { fixed = \"3ms\", per_byte = \"20us\" }\ninterrupt = \"4ms\"\n\
     disturbance = { probability = \"20%\", mean = \"5ms\" }",
];

pub const BOARDS: [&str; 7] = [
    "",
    "protocol = \"board\"\nrequests = 1\nsplit = [{ below = 512, piece = 64 }, { piece = 1024 }]\n\
     half_duplex = true\nsend_block = { fixed = \"70us\", per_byte = \"4us\" }\n\
     receive_block = { fixed = \"70us\", per_byte = \"4us\" }\ncontrol = \"60us\"\n\
     receive_buffer = 1024\nreturns = \"message\"\necho = \"posted\"\nmemory = 8192",
    "split = [{ piece = 1024 }]\nreceive_buffer = 64\nrequests = 2",
    "programmed = \"5us\"\nreturns = \"message\"",
    "echo = \"consumption\"\nreceive_buffer = 100\nreturns = \"message\"\nrequests = 3\n\
     split = [{ piece = 100 }]",
    "memory = 3000\necho = \"posted\"\nsend_block = \"1ms\"\ncontrol = \"1ms\"\nhalf_duplex = true",
    "protocol = \"board\"\nrequests = 1\nreceive_block = { per_byte = \"9us\" }",
];

/// Links that keep the order of a channel; the first four lose nothing.
pub const ORDERLY: [&str; 8] = [
    "delay = \"200us\"",
    "rate = \"1.544Mbit/s\"\nframing = \"t1-lapd\"\ndelay = \"3ms\"\n\
     discipline = { kind = \"round-robin\", quantum = 64 }",
    "rate = \"8Mbit/s\"\nframing = \"datakit\"",
    "rate = \"200kbit/s\"\ndelay = \"20ms\"\njitter = \"3ms\"",
    "rate = \"1Mbit/s\"\ndelay = \"2ms\"\nloss = \"1%\"",
    "rate = \"1Mbit/s\"\nduplicate = \"3%\"",
    "rate = \"500kbit/s\"\nbit_errors = 1e-5\ndelay = \"1ms\"",
    "rate = \"300kbit/s\"\nlimit = \"1KiB\"",
];

/// And some that do not, or that do all at once.
pub const WILD: [&str; 4] = [
    "rate = \"1Mbit/s\"\nloss = \"2%\"\nduplicate = \"5%\"\nreorder = \"5%:3ms\"",
    "delay = \"5ms\"\njitter = \"independent:uniform:4ms\"\nduplicate = \"10%\"",
    "rate = \"2Mbit/s\"\nschedule = \"100ms rate=100kbit; 200ms loss=20%; 900ms loss=0%\"",
    "rate = \"1Mbit/s\"\nbackward = { loss = \"100%\" }",
];

pub const WORKLOADS: [&str; 7] = [
    "kind = \"interactive\"\nsizes = [1, 300]\nrepeat = 4\nreply = 4",
    "kind = \"interactive\"\nsizes = [1024, 17]\nrepeat = 2\nevery = \"40ms\"",
    "kind = \"bulk\"\nbytes = 5000\nwrite = 700\nrepeat = 2",
    "kind = \"push\"\nbytes = 3000\nrepeat = 2\nstore = \"5ms\"",
    "kind = \"bulk\"\nbytes = 3000\nconfirm = false",
    "kind = \"timed-echo\"\nsizes = [1, 100]\nduration = \"300ms\"",
    "kind = \"timed-transfer\"\nsizes = [50, 900]\nduration = \"300ms\"",
];
/// How many of them transfer an amount that is known, both ways together.
pub const AMOUNTS: [u64; 4] = [4 * (1 + 4 + 300 + 4), 2 * 2 * (1024 + 17), 2 * 5004, 2 * 3004];

const PROFILES: [&str; 4] = ["trunkline", "v10", "plan9", "kmc"];
const MODES: [&str; 2] = ["block", "character"];

#[derive(Debug, Clone)]
struct Flows {
    workload: usize,
    count: u32,
    looped: bool,
    modes: [&'static str; 2],
    profile: &'static str,
    block: u16,
    outstanding: u8,
    packet: u32,
}

#[derive(Debug, Clone)]
struct Plan {
    seed: u64,
    hosts: [(usize, usize); 2],
    links: [&'static str; 3],
    backplane: bool,
    traffic: Vec<Flows>,
    datagrams: bool,
    company: bool,
}

impl Plan {
    fn text(&self) -> String {
        let mut text = format!("seed = {}\nstop_after = \"10min\"\n", self.seed);
        for (name, (processor, board)) in std::iter::zip(["a", "b"], self.hosts) {
            text += &format!(
                "[[host]]\nname = \"{name}\"\nprocessor = \"{name}\"\ninterface = \"{name}\"\n\
                 [processor.{name}]\n{}\n[interface.{name}]\n{}\n",
                PROCESSORS[processor], BOARDS[board]
            );
        }
        let backplane = if self.backplane { "backplane = \"8Mbit/s\"" } else { "" };
        for node in ["m", "n"] {
            text += &format!("[[node]]\nname = \"{node}\"\n{backplane}\n");
        }
        let ends = [["a", "m"], ["m", "n"], ["n", "b"]];
        for ([from, to], link) in std::iter::zip(ends, self.links) {
            text += &format!("[[link]]\nbetween = [\"{from}\", \"{to}\"]\n{link}\n");
        }
        // A bulk flow of its own that goes on as long as the first traffic.
        if self.company {
            text += "[[traffic]]\nname = \"company\"\nkind = \"bulk\"\nbytes = 900\nfrom = \"a\"\nto = \"b\"\n\
                     until = \"t0\"\ntransport = \"urp\"\n";
        }
        if self.datagrams {
            text += "[[traffic]]\nname = \"d\"\nkind = \"paced\"\nsize = 90\nrate = \"40kbit/s\"\n\
                     duration = \"1s\"\nfrom = \"b\"\nto = \"a\"\n";
        }
        for (index, flows) in self.traffic.iter().enumerate() {
            text += &flows.text(index);
        }
        text
    }

    fn scenario(&self) -> Scenario {
        scenario(&self.text())
    }
}

impl Flows {
    fn text(&self, index: usize) -> String {
        let Flows { modes: [mode, back], profile, block, outstanding, packet, count, .. } = self;
        let ends = if self.looped {
            "from = \"a\"\nto = \"a\"\nvia = [\"m\", \"n\", \"m\"]"
        } else {
            "from = \"a\"\nto = \"b\""
        };
        format!(
            "[[traffic]]\nname = \"t{index}\"\n{}\n{ends}\ncount = {count}\nstagger = \"10ms\"\n\
             transport = {{ kind = \"urp\", profile = \"{profile}\", block = {block}, outstanding = {outstanding}, \
             packet = {packet}, mode = \"{mode}\" }}\nreply_transport = {{ mode = \"{back}\" }}\n",
            WORKLOADS[self.workload]
        )
    }
}

fn flows(
    profiles: &'static [&'static str],
    modes: &'static [&'static str],
    workloads: usize,
) -> impl Strategy<Value = Flows> {
    let shape = (0..workloads, 1u32..3, any::<bool>(), prop::sample::select(profiles));
    let urp = (prop::sample::select(vec![12u16, 28, 100, 252, 256]), 1u8..=7, 0u32..3);
    let modes = [prop::sample::select(modes), prop::sample::select(modes)];
    (shape, urp, modes).prop_map(|(shape, (block, outstanding, packet), modes)| {
        let (workload, count, looped, profile) = shape;
        let packet = [0, 16, 40][packet as usize];
        Flows { workload, count, looped, modes, profile, block, outstanding, packet }
    })
}

fn plan(
    links: Vec<&'static str>,
    profiles: &'static [&'static str],
    modes: &'static [&'static str],
    workloads: usize,
) -> impl Strategy<Value = Plan> {
    let host = || (0..PROCESSORS.len(), 0..BOARDS.len());
    let link = prop::sample::select(links);
    (
        any::<u16>(),
        [host(), host()],
        [link.clone(), link.clone(), link],
        any::<[bool; 3]>(),
        prop::collection::vec(flows(profiles, modes, workloads), 1..4),
    )
        .prop_map(|(seed, hosts, links, [backplane, datagrams, company], traffic)| {
            let seed = seed.into();
            Plan { seed, hosts, links, backplane, traffic, datagrams, company }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever the path does and whoever speaks: the steps of each sample sum to its delay, the packets
    /// add up, and the same again is the same to the last bit.
    #[test]
    fn the_laws_hold(plan in plan([&ORDERLY[..], &WILD].concat(), &PROFILES, &MODES, WORKLOADS.len())) {
        let scenario = plan.scenario();
        let run = trunkline_sim::run(&scenario).unwrap();
        prop_assert_eq!(check(&run), []);
        prop_assert!(run.ended <= Time::ZERO + scenario.stop_after);
        prop_assert_eq!(&trunkline_sim::run(&scenario).unwrap(), &run);
    }

    /// Over links that keep a channel's order everything arrives, once, and what a sender's time went into
    /// sums to its life.
    #[test]
    fn everything_arrives_once(plan in plan(ORDERLY.to_vec(), &["trunkline"], &["block"], AMOUNTS.len())) {
        let run = trunkline_sim::run(&plan.scenario()).unwrap();
        prop_assert_eq!(check(&run), []);
        for (index, flows) in plan.traffic.iter().enumerate() {
            let name = format!("t{index}");
            let traffic = run.traffic.iter().find(|traffic| traffic.name == name).unwrap();
            let amount = AMOUNTS[flows.workload] * u64::from(flows.count);
            prop_assert_eq!(traffic.delivered_bytes, amount, "{}: {:?}", name, run.notes);
            for flow in 0..flows.count {
                let last = traffic.samples.iter().rfind(|sample| sample.flow == flow).unwrap();
                let start = Time::ZERO + Span::from_millis(10 * u64::from(flow));
                prop_assert_eq!(life(traffic, flow as usize), last.end - start);
            }
        }
        let unfinished = run.notes.iter().any(|it| matches!(it.kind, NoteKind::Unfinished | NoteKind::GaveUp));
        prop_assert!(!unfinished, "{:?}", run.notes);
    }

    /// Where nothing is lost or copied nothing is sent again, and every byte is the next of its stream.
    #[test]
    fn a_sound_path_needs_no_recovery(plan in plan(ORDERLY[..4].to_vec(), &PROFILES, &MODES, WORKLOADS.len())) {
        let mut scenario = plan.scenario();
        scenario.hosts.iter_mut().for_each(|host| host.interface.memory = None);
        let run = trunkline_sim::run(&scenario).unwrap();
        prop_assert_eq!(check(&run), []);
        prop_assert_eq!(&run.notes, &[]);
        for traffic in &run.traffic {
            prop_assert_eq!((traffic.packets.dropped, traffic.packets.duplicated), (0, 0));
        }
        for (index, flows) in plan.traffic.iter().enumerate().filter(|(_, it)| it.workload < AMOUNTS.len()) {
            let name = format!("t{index}");
            let traffic = run.traffic.iter().find(|traffic| traffic.name == name).unwrap();
            prop_assert_eq!(traffic.delivered_bytes, AMOUNTS[flows.workload] * u64::from(flows.count));
        }
    }
}
