//! Every cell of every study in the simulator, shortened: each message's time is booked to the nanosecond, and
//! no packet is lost in silence. The full runs make the same check of every run.

use std::sync::Mutex;
use trunkline_core::{Size, Span};
use trunkline_measure::{Engine, Run, check};
use trunkline_scenario::{Scenario, Start, Traffic, Workload};
use trunkline_sim::SimError;
use trunkline_study::{Makers, names, run};

/// Repetitions of each message and bytes of each transfer that are left.
const MESSAGES: u32 = 3;
const BYTES: Size = Size::from_bytes(20_000);
/// Of timed tests.
const DURATION: Span = Span::from_secs(1);

fn shorter(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.traffic.iter_mut().for_each(shorten);
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

#[test]
fn every_message_of_every_study_has_its_time_booked() {
    let faults = Mutex::new(Vec::new());
    let samples = Mutex::new(0usize);
    let engine = |_: Engine, scenario: &Scenario| -> Result<Run, SimError> {
        let run = trunkline_sim::run(&shorter(scenario))?;
        let here: Vec<String> = check(&run)
            .iter()
            .map(|fault| format!("{} {:?}: {fault}", run.scenario, run.cell))
            .collect();
        faults.lock().unwrap().extend(here);
        *samples.lock().unwrap() += run.traffic.iter().map(|one| one.samples.len()).sum::<usize>();
        Ok(run)
    };
    let verify = |_: &Scenario| unreachable!("the emulator is not asked");
    let makers = Makers { run: &engine, verify: &verify };
    run(&names(), &makers, &[Engine::Sim], 2, &|_| {}).unwrap();
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{} faults, the first {}", faults.len(), faults[0]);
    assert!(samples.into_inner().unwrap() > 2000, "too few messages to mean anything");
}
