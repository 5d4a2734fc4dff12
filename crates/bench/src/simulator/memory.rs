//! Memory of the simulator, by an allocator that counts the bytes asked of it.

use super::Switches;
use super::constant::{Constant, Sources};
use super::dumbbell::Dumbbell;
use crate::ALLOCATOR;
use anyhow::Result;
use serde::Serialize;
use trunkline_core::{Span, Time};

/// Goals, in bytes.
const FLOW_GOAL: f64 = 1024.0;
const PACKET_GOAL: f64 = 32.0;
/// Numbers of flows whose difference counts.
const FLOWS: [usize; 2] = [1_000, 11_000];
/// Distances behind the bottleneck, for few and for many packets in flight.
const DELAYS: [Span; 2] = [Span::from_millis(1), Span::from_millis(201)];

/// Bytes, each the slope between two networks that differ in nothing else.
#[derive(Debug, Serialize)]
pub struct Memory {
    /// For each flow: a route of two hops with its sums, a link of its own, and a timer. At the end of
    /// a run, so that everything has been used.
    flow: f64,
    /// For each packet in flight.
    packet: f64,
    /// For each connection of B1: both ends' TCP, four links of its own, two routes of three hops and a timer,
    /// without what is kept for each segment that is not acknowledged.
    connection: f64,
}

/// Measures both.
pub fn measure() -> Result<Memory> {
    let [few, many] = FLOWS.map(|flows| held(Constant::fifo(flows)));
    let flow = slope(&few?, &many?, |held| held.flows);
    let far = |delay| held(Constant { delay, ..Constant::fifo(100) });
    let [near, far] = DELAYS.map(far);
    let packet = slope(&near?, &far?, |held| held.in_flight);
    let connection = connection()?;
    Ok(Memory { flow, packet, connection })
}

/// Bytes for each connection before its first segment.
fn connection() -> Result<f64> {
    let held = |pairs| -> Result<f64> {
        let before = ALLOCATOR.allocated();
        let dumbbell = Dumbbell::new(pairs, Time::ZERO, Switches::default())?;
        let bytes = ALLOCATOR.allocated().saturating_sub(before) as f64;
        drop(dumbbell);
        Ok(bytes)
    };
    let [few, many] = FLOWS.map(held);
    Ok((many? - few?) / (FLOWS[1] - FLOWS[0]) as f64)
}

/// What a network holds after a run.
struct Held {
    bytes: f64,
    flows: f64,
    in_flight: f64,
}

fn slope(less: &Held, more: &Held, of: impl Fn(&Held) -> f64) -> f64 {
    (more.bytes - less.bytes) / (of(more) - of(less))
}

fn held(what: Constant) -> Result<Held> {
    let before = ALLOCATOR.allocated();
    let mut sources = Sources::new(what, Switches::default())?;
    sources.run()?;
    let bytes = ALLOCATOR.allocated().saturating_sub(before) as f64;
    Ok(Held { bytes, flows: what.sources as f64, in_flight: sources.in_flight() as f64 })
}

impl Memory {
    /// As lines of text.
    pub fn text(&self) -> String {
        let Memory { flow, packet, connection } = self;
        format!(
            "memory, in bytes asked of the allocator: {flow:.0} for each flow (a link, a route of two hops, a \
             timer; goal {FLOW_GOAL:.0}),\n{packet:.1} for each packet in flight (goal {PACKET_GOAL:.0}; \
             its release time is in it),\n{connection:.0} for each connection of B1 (two ends of TCP, four links, two \
             routes of three hops; goal {FLOW_GOAL:.0})\n"
        )
    }
}
