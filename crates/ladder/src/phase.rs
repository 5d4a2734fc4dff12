//! The same scenario in other phases.
//!
//! If windows and queues keep time with each other, a figure can hang on the instant at which a block comes:
//! just before another one's, or just behind it. A description says nothing of that, no seed draws it, and hosts
//! settle it anew in each run; the simulator takes one phase and keeps to it, and the samples within one run
//! know no other. So it is asked again, with everything moved by what nobody has described.

use serde::Serialize;
use trunkline_core::{Rate, Seed, Span};
use trunkline_scenario::{Scenario, Traffic, Transport};

/// Simulations in all, the one in the table among them. If the emulator's figure were one more of them, it would
/// lie outside the range of 39 others once in twenty.
const FULL: u64 = 39;
/// And no fewer than these.
const FEWEST: u64 = 8;
/// Starts are moved by so much if a block takes less: real hosts do not start at the same instant to better
/// than that.
const START: Span = Span::from_millis(1);
/// The packets of a flow leave their host earlier or later by up to so much: about what the kernel takes to wake a
/// process, which for one process is more and for another less.
const HOST: Span = Span::from_micros(100);
/// And by no more than this part of the shortest round trip: both ends together move a figure that simply follows
/// the round trip by 1 %, which is less than the tolerance.
const PART: u64 = 200;

/// How far the simulations of a scenario moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Moves {
    /// How many there were, the one in the table among them.
    pub runs: u64,
    /// Each flow starts later by up to so much.
    pub starts: Span,
    /// And the packets of each flow leave each of its hosts earlier or later by up to so much.
    pub packets: Span,
}

impl Moves {
    /// The moves for `scenario`, of which one simulation sends `packets` packets, if all together may send
    /// `budget`. The number of runs follows from that, not from a clock, so that it is the same on every machine.
    pub fn of(scenario: &Scenario, packets: u64, budget: u64) -> Moves {
        let runs = (budget / packets.max(1)).clamp(FEWEST, FULL);
        Moves { runs, starts: longest_block(scenario).max(START), packets: packets_of(scenario) }
    }

    /// `scenario` in each of the other phases.
    pub fn phases(&self, scenario: &Scenario) -> Vec<Scenario> {
        (1..self.runs).map(|number| self.phase(scenario, number)).collect()
    }

    fn phase(&self, scenario: &Scenario, number: u64) -> Scenario {
        let named = |name: &str| scenario.seed.stream(&format!("phase {number}{name}"));
        let mut moved = Scenario { seed: Seed(named("").bits()), ..scenario.clone() };
        for traffic in &mut moved.traffic {
            let mut stream = named(&format!(" {}", traffic.name));
            traffic.late = stream.span_to(self.starts);
            // So that the last flow moves no farther against the first than traffics against each other.
            let apart = self.starts.scaled(1, u64::from(traffic.count.max(1)));
            traffic.stagger += stream.span_to(apart);
        }
        for host in &mut moved.hosts {
            host.processor.unsteady = self.packets.scaled(2, 1);
        }
        for wire in &mut moved.links {
            let at_host = |end: &String| scenario.hosts.iter().any(|host| host.name == *end);
            // Packets leave later only; their first link gives back what that is on average, so that no range
            // has in it what real hosts take.
            let back = |end: &String| if at_host(end) { self.packets } else { Span::ZERO };
            wire.forward.delay = wire.forward.delay.saturating_sub(back(&wire.from));
            wire.backward.delay = wire.backward.delay.saturating_sub(back(&wire.to));
        }
        moved
    }
}

/// By how much packets vary: at most a small part of the shortest round trip over the links at hosts, and no more
/// than the delay that is to give it back.
fn packets_of(scenario: &Scenario) -> Span {
    let is_host = |end: &String| scenario.hosts.iter().any(|host| host.name == *end);
    let links = scenario.links.iter().filter(|wire| is_host(&wire.from) || is_host(&wire.to));
    let room = links.map(|wire| {
        let (there, back) = (wire.forward.delay, wire.backward.delay);
        (there + back).scaled(1, PART).min(there).min(back)
    });
    room.min().unwrap_or(Span::ZERO).min(HOST)
}

/// How long the largest block of any traffic keeps the slowest line.
fn longest_block(scenario: &Scenario) -> Span {
    let directions = scenario.links.iter().flat_map(|wire| [&*wire.forward, &*wire.backward]);
    let slowest = directions.filter_map(|link| link.rate).map(Rate::bits_per_second).min();
    let mtu = u64::from(scenario.mtu);
    let largest = scenario.traffic.iter().map(|traffic| block(traffic, mtu)).max().unwrap_or(0);
    slowest.map_or(Span::ZERO, |rate| Span::from_secs(1).scaled(largest * 8, rate))
}

/// User bytes of what a traffic sends in one piece.
fn block(traffic: &Traffic, mtu: u64) -> u64 {
    let of = |transport: &Transport| match transport {
        Transport::Urp(urp) => u64::from(urp.block),
        Transport::Listed(listed) => (listed.entry.shape)(&listed.values).unit.into(),
        Transport::Datagram | Transport::Udp | Transport::Tcp(_) => mtu,
    };
    of(&traffic.transport).max(of(&traffic.reply_transport))
}
