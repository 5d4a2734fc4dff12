//! Every cell of every study in the simulator, shortened: each message's time is booked to the nanosecond, and
//! no packet is lost in silence. The full runs make the same check of every run.

use std::sync::{Arc, Mutex};
use trunkline_core::{Size, Span};
use trunkline_engine::{Engine, EngineError, EngineName, Pace, Run, check};
use trunkline_scenario::{Network, Scenario, Start, Traffic, Workload};
use trunkline_sim::Simulator;
use trunkline_study::{Makers, names, run};

/// Repetitions of each message and bytes of each transfer that are left.
const MESSAGES: u32 = 3;
const BYTES: Size = Size::from_bytes(20_000);
/// Of timed tests.
const DURATION: Span = Span::from_secs(1);
const NODES: u16 = 64;

fn shorter(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.traffic.iter_mut().for_each(shorten);
    for cluster in &mut scenario.clusters {
        cluster.layout.nodes = cluster.layout.nodes.min(NODES);
    }
    scenario
}

fn shorten(traffic: &mut Traffic) {
    if let Start::AfterBytes(_, size) = &mut traffic.start {
        *size = (*size).min(BYTES);
    }
    let accompanies = traffic.until.is_some();
    match &mut traffic.workload {
        Workload::Interactive { repeat, .. } => *repeat = (*repeat).min(MESSAGES),
        Workload::Bulk { bytes, repeat, .. } | Workload::Push { bytes, repeat, .. } => {
            *bytes = (*bytes).min(BYTES);
            *repeat = if accompanies { *repeat } else { (*repeat).min(2) };
        }
        Workload::TimedEcho { duration, .. }
        | Workload::TimedTransfer { duration, .. }
        | Workload::Greedy { duration, .. }
        | Workload::Paced { duration, .. } => *duration = (*duration).min(DURATION),
    }
}

/// The simulator, cut short, with what it was found to do.
#[derive(Debug, Default)]
struct Watched {
    faults: Mutex<Vec<String>>,
    samples: Mutex<usize>,
}

impl Engine for Watched {
    fn name(&self) -> EngineName {
        Simulator.name()
    }

    fn pace(&self) -> Pace {
        Simulator.pace()
    }

    fn run(&self, network: &Network<'_>, told: &(dyn Fn(&str) + Sync)) -> Result<Run, EngineError> {
        let shorter = shorter(network.scenario());
        let run = Simulator.run(&Network::of(&shorter)?, told)?;
        let faults = check(&run);
        let here = faults.iter().map(|fault| format!("{} {:?}: {fault}", run.scenario, run.cell));
        self.faults.lock().unwrap().extend(here);
        *self.samples.lock().unwrap() +=
            run.traffic.iter().map(|one| one.samples.len()).sum::<usize>();
        Ok(run)
    }
}

#[test]
fn every_message_of_every_study_has_its_time_booked() {
    let watched = Arc::new(Watched::default());
    let verify = |_: &Scenario| unreachable!("the emulator is not asked");
    let engines: [Arc<dyn Engine>; 1] = [watched.clone()];
    let makers = Makers { engines: &engines, verify: &verify };
    run(&names(), &makers, 2, &|_| {}).unwrap();
    let faults = watched.faults.lock().unwrap();
    assert!(faults.is_empty(), "{} faults, the first {}", faults.len(), faults[0]);
    assert!(*watched.samples.lock().unwrap() > 2000, "too few messages to mean anything");
}
