//! Datagrams of ideal hosts go a short way; a limit that nothing reaches sends them the long one, to the same result.

use crate::hosts::random::{ORDERLY, WILD};
use crate::hosts::support::{run, scenario};
use proptest::prelude::*;
use trunkline_core::{Cause, Span};
use trunkline_engine::{Run, check};
use trunkline_measure::Sample;

/// An interface with room for more than is ever sent.
const ROOMY: &str = "[interface.roomy]\nmemory = 1000000000\n";

/// Datagrams over two links, both ways and several at once; `roomy` says which of the hosts are not ideal.
#[derive(Debug, Clone)]
struct Plan {
    links: [usize; 2],
    sizes: [u32; 3],
    kilobits: [u64; 3],
    count: u32,
    /// Microseconds from flow to flow, and from traffic to traffic.
    stagger: u32,
    transport: &'static str,
}

impl Plan {
    fn text(&self, roomy: [bool; 2]) -> String {
        let host = |name, roomy| {
            let interface = if roomy { "interface = \"roomy\"\n" } else { "" };
            format!("[[host]]\nname = \"{name}\"\n{interface}")
        };
        let all: Vec<&str> = ORDERLY.into_iter().chain(WILD).collect();
        let [first, second] = self.links.map(|link| all[link % all.len()]);
        let traffic = |index: usize, from, to| {
            let (size, rate) = (self.sizes[index], self.kilobits[index]);
            format!(
                "[[traffic]]\nname = \"t{index}\"\nkind = \"paced\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
                 size = {size}\nrate = \"{rate}kbit/s\"\nduration = \"200ms\"\ncount = {}\n\
                 start = \"{}us\"\nstagger = \"{}us\"\ntransport = \"{}\"\n",
                self.count,
                index as u32 * self.stagger,
                self.stagger,
                self.transport
            )
        };
        let names = [("a", "b"), ("b", "a"), ("a", "b")];
        let traffic =
            names.iter().enumerate().map(|(index, (from, to))| traffic(index, *from, *to));
        format!(
            "stop_after = \"10min\"\n{ROOMY}{}{}[[node]]\nname = \"n\"\n\
             [[link]]\nbetween = [\"a\", \"n\"]\n{first}\n[[link]]\nbetween = [\"n\", \"b\"]\n{second}\n{}",
            host("a", roomy[0]),
            host("b", roomy[1]),
            traffic.collect::<String>()
        )
    }

    fn run(&self, roomy: [bool; 2]) -> Run {
        let run = trunkline_sim::run(&scenario(&self.text(roomy))).unwrap();
        assert_eq!(check(&run), []);
        run
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let kilobits = 20u64..3000;
    let size = prop_oneof![1u32..1400, Just(1)];
    let transport = prop_oneof![Just("datagram"), Just("udp")];
    (
        any::<[usize; 2]>(),
        [size.clone(), size.clone(), size],
        [kilobits.clone(), kilobits.clone(), kilobits],
        1u32..3,
        prop_oneof![Just(0), Just(700)],
        transport,
    )
        .prop_map(|(links, sizes, [one, two, three], count, stagger, transport)| {
            // Two thousand datagrams a second: a run ends soon.
            let few = |size: u32, kilobits: u64| kilobits.min(u64::from(size) * 8 * 2);
            let kilobits = [few(sizes[0], one), few(sizes[1], two), few(sizes[2], three)];
            Plan { links, sizes, kilobits, count, stagger, transport }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_short_way_and_the_long_one_come_to_the_same(plan in plans()) {
        let long = plan.run([true, true]);
        for roomy in [[false, false], [true, false], [false, true]] {
            prop_assert_eq!(&plan.run(roomy), &long, "roomy hosts: {:?}", roomy);
        }
    }
}

/// Several datagrams due at one instant leave in order, and a source that ends with one under way waits for it.
#[test]
fn datagrams_of_one_instant_leave_together() {
    let plan = Plan {
        links: [0, 0],
        sizes: [1; 3],
        kilobits: [80_000_000, 8, 8],
        count: 1,
        stagger: 1000,
        transport: "datagram",
    };
    let text = plan.text([false; 2]).replace("200ms", "100ns");
    let ideal = run(&text);
    let long = run(&plan.text([true; 2]).replace("200ms", "100ns"));
    assert_eq!(ideal, long);
    let samples = &ideal.traffic[0].samples;
    assert!(samples.len() >= 1000, "{}", samples.len());
}

/// Both forms of a scenario: hosts that are ideal, and hosts whose interface has a limit that nothing reaches.
fn both(traffic: &str, link: &str) -> [Run; 2] {
    ["", "interface = \"roomy\"\n"].map(|interface| {
        let host = |name| format!("[[host]]\nname = \"{name}\"\n{interface}");
        run(&format!(
            "stop_after = \"10s\"\n{ROOMY}{}{}[[link]]\nbetween = [\"a\", \"b\"]\n{link}\n{traffic}",
            host("a"),
            host("b")
        ))
    })
}

const PACED: &str = "[[traffic]]\nname = \"d\"\nkind = \"paced\"\nfrom = \"a\"\nto = \"b\"\nsize = 100\n\
                     rate = \"100kbit/s\"\nduration = \"200ms\"\ntransport = \"datagram\"\n";

/// An application that stores what it reads keeps the processor of its host, which is no ideal one then.
#[test]
fn datagrams_wait_for_an_application_that_works() {
    for (from, to) in [("a", "b"), ("b", "a")] {
        let push = format!(
            "[[traffic]]\nname = \"p\"\nkind = \"push\"\nfrom = \"{from}\"\nto = \"{to}\"\nbytes = 6000\n\
             repeat = 3\nstore = \"15ms\"\n"
        );
        let link = "rate = \"1Mbit/s\"\ndelay = \"1ms\"";
        let [ideal, long] = both(&format!("{push}{PACED}"), link);
        assert_eq!(ideal, long, "from {from} to {to}");
        let waited = |sample: &Sample| sample.booked(Cause::Host) > Span::from_millis(1);
        assert!(ideal.traffic[1].samples.iter().any(waited), "from {from} to {to}");
    }
}

/// At the origin of time each step of a host waits its turn behind those of others, though it takes no time.
#[test]
fn at_the_origin_of_time_steps_take_their_turns() {
    let tcp = "[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nbytes = 5000\n\
               transport = { kind = \"tcp\", profile = \"trunkline\" }\n";
    for link in ["rate = \"1Mbit/s\"\ndelay = \"1ms\"", "delay = \"0s\""] {
        for traffic in [format!("{PACED}{tcp}"), format!("{tcp}{PACED}")] {
            let [ideal, long] = both(&traffic, link);
            assert_eq!(ideal, long, "{link}");
        }
    }
}
