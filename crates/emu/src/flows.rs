//! The flows of a scenario, prepared on the hosts of a laboratory.

use crate::laboratory::Laboratory;
use crate::plan::{Plan, addresses};
use crate::{EmuError, Options, frame, places};
use std::thread;
use trunkline_core::Span;
use trunkline_endpoint::{EndPlan, EndpointError, Flow, FlowPlan, HostThreads};
use trunkline_scenario::{Crossing, Network, Traffic, Transport};

/// Connections that are made at the same time.
const AT_ONCE: usize = 16;
/// Beside the path's own delay, how long datagrams are waited for: for what hosts take.
const PATIENCE: Span = Span::from_millis(100);

/// The flows of each traffic, ready to start. TCP connections are made here, across the network.
///
/// # Errors
/// If a flow cannot be had on real hosts, or the run is broken off.
pub fn prepare(
    network: &Network<'_>,
    plan: &Plan,
    laboratory: &Laboratory,
    threads: &HostThreads,
    options: &Options<'_>,
) -> Result<Vec<Vec<Flow>>, EmuError> {
    let scenario = network.scenario();
    let mut plans = Vec::new();
    for (index, traffic) in scenario.traffic.iter().enumerate() {
        for flow in 0..traffic.count {
            plans.push((index, flow_plan(network, plan, laboratory, (index, traffic), flow)));
        }
    }
    let mut flows: Vec<Vec<Flow>> = scenario.traffic.iter().map(|_| Vec::new()).collect();
    for batch in plans.chunks(AT_ONCE) {
        if options.is_cancelled() {
            return Err(EmuError::Cancelled);
        }
        let made = at_once(threads, batch);
        for (index, flow) in made {
            let traffic = &scenario.traffic[index].name;
            let flow =
                flow.map_err(|source| EmuError::Flow { traffic: traffic.clone(), source })?;
            flows[index].push(flow);
        }
    }
    Ok(flows)
}

/// The flows of a batch, each prepared by a thread of its own.
fn at_once(
    threads: &HostThreads,
    batch: &[(usize, FlowPlan)],
) -> Vec<(usize, Result<Flow, EndpointError>)> {
    thread::scope(|scope| {
        let threads: Vec<_> = (batch.iter())
            .map(|(index, plan)| (*index, scope.spawn(move || Flow::prepare(threads, plan))))
            .collect();
        let join = |(index, thread): (usize, thread::ScopedJoinHandle<'_, _>)| {
            (index, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        };
        threads.into_iter().map(join).collect()
    })
}

fn flow_plan(
    network: &Network<'_>,
    plan: &Plan,
    laboratory: &Laboratory,
    (index, traffic): (usize, &Traffic),
    flow: u32,
) -> FlowPlan {
    let (scenario, number) = (network.scenario(), network.way_of(index, flow));
    let circuit = &plan.circuits[number];
    let (near, far) = addresses(number);
    let end = |station: usize, address, transport: &Transport| {
        let host = plan.stations[station].host;
        EndPlan {
            namespace: laboratory.station(station).clone(),
            address,
            transport: transport.clone(),
            interface: (*scenario.hosts[host].interface).clone(),
            places: places::of_host(plan, host),
        }
    };
    let mtu = |station| frame::mtu(scenario, plan, station);
    FlowPlan {
        traffic: index as u16,
        flow,
        workload: traffic.workload.clone(),
        source: end(circuit.near, near, &traffic.transport),
        destination: end(circuit.far, far, &traffic.reply_transport),
        channel: network.circuit(index, flow),
        mtu: mtu(circuit.near).min(mtu(circuit.far)),
        band: traffic.band,
        program: traffic.program.clone(),
        places: places::between(scenario, plan),
        linger: longest(plan, &circuit.way.there) + PATIENCE,
        keep: scenario.samples,
        seed: scenario.seed,
    }
}

/// The delay of a way, without its queues.
fn longest(plan: &Plan, crossed: &[Crossing]) -> Span {
    let delay = |it: &Crossing| {
        let spec = &plan.lanes[it.lane].spec;
        spec.delay + spec.impairments.most_extra_delay()
    };
    crossed.iter().map(delay).sum()
}
