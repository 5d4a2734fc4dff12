//! An engine for tests: it simulates nothing, and answers with delays that depend on scenario and size alone.

use std::collections::BTreeMap;
use trunkline_core::{Cause, Span, Time};
use trunkline_measure::{Engine, Run, Sample, Step, TrafficRun};
use trunkline_scenario::{Scenario, Traffic, Workload};

/// The run of a network in which every message takes 3 ms and 10 us a byte, and a little more from sample to
/// sample; and more in every further cell.
pub fn engine(scenario: &Scenario) -> Result<Run, String> {
    let extra: u64 = scenario.cell.values().flat_map(|text| text.bytes()).map(u64::from).sum();
    let traffic: Vec<TrafficRun> =
        scenario.traffic.iter().map(|one| measured(one, extra)).collect();
    let last = traffic.iter().flat_map(|one| &one.samples).map(|sample| sample.end).max();
    Ok(Run {
        engine: Engine::Sim,
        scenario: scenario.name.clone(),
        cell: scenario.cell.clone(),
        seed: scenario.seed.0,
        traffic,
        links: Vec::new(),
        places: vec!["everywhere".into()],
        ended: last.unwrap_or(Time::ZERO),
        notes: vec!["made up".into()],
        invalid: Vec::new(),
        accuracy: None,
    })
}

fn measured(traffic: &Traffic, extra: u64) -> TrafficRun {
    let plan: Vec<(u64, u32)> = match &traffic.workload {
        Workload::Interactive { sizes, repeat, .. } => {
            sizes.iter().map(|&size| (u64::from(size), *repeat)).collect()
        }
        Workload::Bulk { bytes, repeat, .. } | Workload::Push { bytes, repeat, .. } => {
            vec![(bytes.bytes(), (*repeat).min(10))]
        }
        Workload::TimedEcho { sizes, .. } | Workload::TimedTransfer { sizes, .. } => {
            sizes.iter().map(|&size| (u64::from(size), 50)).collect()
        }
        Workload::Greedy { .. } => vec![(100_000, 10)],
        Workload::Paced { size, .. } => vec![(u64::from(*size), 50)],
    };
    let samples = (0..traffic.count).flat_map(|flow| samples(flow, &plan, extra)).collect();
    TrafficRun { name: traffic.name.clone(), samples, ..TrafficRun::default() }
}

fn samples(flow: u32, plan: &[(u64, u32)], extra: u64) -> Vec<Sample> {
    let mut now = Time::ZERO;
    let mut samples = Vec::new();
    for &(size, repeat) in plan {
        for index in 0..repeat {
            let micros = 3_000 + 10 * size + extra + u64::from(index % 7);
            let span = Span::from_micros(micros);
            let (start, end) = (now, now + span);
            let steps = vec![Step { place: 0, cause: Cause::Host, span }];
            samples.push(Sample { flow, index, size, intended: start, start, end, steps });
            now = end;
        }
    }
    samples
}

/// A study in texts: `study.toml`, one scenario, one published table.
#[allow(dead_code)]
pub fn texts(study: &str) -> BTreeMap<String, String> {
    let scenario = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nname = 't1'\nbetween = ['a', 'b']\n\
                    rate = ['1Mbit/s', '2Mbit/s']\n[[traffic]]\nname = 'echo'\nkind = 'interactive'\nfrom = 'a'\n\
                    to = 'b'\nsizes = [1, 64]\nrepeat = 30\n";
    let published = "rate,size,delay_ms,suspect,note\nslow,1,3.8,0,\nslow,64,4.4,0,\nfast,1,3.8,1,smudged\nfast,64,9.9,0,\n";
    let file = |name: &str, text: &str| (name.to_string(), text.to_string());
    BTreeMap::from([
        file("study.toml", study),
        file("scenario.toml", scenario),
        file("published.csv", published),
    ])
}
