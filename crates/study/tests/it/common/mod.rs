//! An engine for tests: it simulates nothing, and answers with delays that depend on scenario and size alone.

use std::collections::BTreeMap;
use std::fmt;
use trunkline_core::{Cause, Span, Time};
use trunkline_engine::{Engine, EngineError, EngineName, Note, NoteKind, Pace, Run};
use trunkline_measure::{Conservation, Percentiles, Sample, Step, TrafficRun};
use trunkline_scenario::{Network, Scenario, Traffic, Workload};
use trunkline_verify::report::{Lost, Row, Stalls, Thresholds};
use trunkline_verify::{Trial, limits::Bound, spread::Spread};

/// A verification in which the path does exactly what is set, with 20 us of spread.
#[allow(dead_code)]
pub fn verify(scenario: &Scenario) -> Result<Row, String> {
    let trial = Trial::of(scenario).map_err(|error| error.to_string())?;
    let spread = Spread { count: 100, deviation: Span::from_micros(20), ..Spread::default() };
    let row = Row {
        delay_up: trial.path.up.delay,
        delay_down: trial.path.down.delay,
        size: trial.size,
        offered_per_second: trial.per_second,
        sent_per_second: trial.per_second,
        complete: true,
        bound: Bound::Asked,
        delay_changes: 0,
        sent: 1000,
        refused: 0,
        lost: Lost::default(),
        reordered: 0,
        duplicated: 0,
        late: 0,
        uneven: 0,
        delay_error: Percentiles { count: 1000, ..Percentiles::default() },
        mean_error_ns: 0,
        spacing_error: Percentiles::default(),
        interrupted: 0,
        near_change: 0,
        other_fate: 0,
        slot_open: 0,
        rtt_with: spread,
        rtt_without: spread,
        baseline_lead: Span::ZERO,
        baseline_p99: Span::ZERO,
        sender_late: Percentiles::default(),
        own_statement: Percentiles::default(),
        stalls: Stalls::default(),
        clock_stepped: false,
        problems: Vec::new(),
    };
    Ok(row.judged(&Thresholds::default()))
}

/// An engine of this name whose runs `make` makes.
pub struct Made<F> {
    /// The name.
    pub name: EngineName,
    /// Makes the runs.
    pub make: F,
}

impl<F> fmt::Debug for Made<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "made up {}", self.name)
    }
}

impl<F: Fn(&Scenario) -> Result<Run, String> + Send + Sync> Engine for Made<F> {
    fn name(&self) -> EngineName {
        self.name
    }

    fn pace(&self) -> Pace {
        Pace::Virtual
    }

    fn run(&self, network: &Network<'_>, _: &(dyn Fn(&str) + Sync)) -> Result<Run, EngineError> {
        (self.make)(network.scenario()).map_err(EngineError::Refused)
    }
}

/// The run of a network in which every message takes 3 ms and 10 us a byte, and a little more from sample to
/// sample; and more in every further cell.
pub fn engine(scenario: &Scenario) -> Result<Run, String> {
    let extra: u64 = scenario.cell.values().flat_map(|text| text.bytes()).map(u64::from).sum();
    let traffic: Vec<TrafficRun> = (scenario.traffic.iter().map(|one| measured(one, extra)))
        .chain(scenario.clusters.iter().map(|one| cluster(&one.name, extra)))
        .collect();
    let last = traffic.iter().flat_map(|one| &one.samples).map(|sample| sample.end).max();
    Ok(Run {
        engine: EngineName::SIM,
        pace: Pace::Virtual,
        scenario: scenario.name.clone(),
        cell: scenario.cell.clone(),
        seed: scenario.seed.0,
        traffic,
        links: Vec::new(),
        places: vec!["everywhere".into()],
        ended: last.unwrap_or(Time::ZERO),
        notes: vec![Note::new(NoteKind::Assumed, "made up")],
        accuracy: None,
        pictures: Vec::new(),
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
    let way = Step { place: 0, cause: Cause::Transmit, span: Span::from_millis(2) };
    TrafficRun {
        name: traffic.name.clone(),
        samples,
        blocks: vec![way],
        block_count: 1,
        packets: Conservation { sent: 100, delivered: 100, ..Conservation::default() },
        ..TrafficRun::default()
    }
}

fn cluster(name: &str, extra: u64) -> TrafficRun {
    let samples = samples(0, &[(1000, 10)], extra).into_iter().collect();
    TrafficRun { name: name.into(), samples, ..TrafficRun::default() }
}

fn samples(flow: u32, plan: &[(u64, u32)], extra: u64) -> Vec<Sample> {
    let mut now = Time::ZERO;
    let mut samples = Vec::new();
    for &(size, repeat) in plan {
        for index in 0..repeat {
            let micros = 3_000 + 10 * size + extra + u64::from(index % 7);
            let span = Span::from_micros(micros);
            let (start, end) = (now, now + span);
            let steps = vec![Step { place: 0, cause: Cause::Host, span }].into();
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
