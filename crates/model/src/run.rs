//! Predictions as a [`Run`].

use crate::engine::rounds;
use crate::prediction::{Figure, Prediction, Predictions, What};
use crate::throughput::{SECOND, Throughput};
use std::collections::BTreeMap;
use trunkline_core::{Counts, Span, Time};
use trunkline_engine::{EngineName, Pace, Run};
use trunkline_measure::{Course, LinkRun, Sample, Step, TrafficRun};
use trunkline_scenario::{Lane, Network, Traffic, Workload};

/// The run that shows what was predicted.
pub(crate) fn build(network: &Network<'_>, predictions: &Predictions) -> Run {
    let mut places = Vec::new();
    let traffic: Vec<TrafficRun> = (0..network.scenario().traffic.len())
        .map(|index| traffic_run(network, index, predictions, &mut places))
        .collect();
    let ends = traffic.iter().flat_map(|run| &run.samples).map(|sample| sample.end);
    Run {
        engine: EngineName::MODEL,
        pace: Pace::Formulas,
        scenario: network.scenario().name.clone(),
        cell: network.scenario().cell.clone(),
        seed: network.scenario().seed.0,
        ended: ends.max().unwrap_or(Time::ZERO),
        traffic,
        // Formulas count nothing on a shared medium: none of its stations has a row.
        links: network.lanes().iter().filter(|lane| lane.link().is_some()).map(link_run).collect(),
        places,
        notes: predictions.notes.clone(),
        accuracy: None,
        pictures: Vec::new(),
    }
}

fn traffic_run(
    network: &Network<'_>,
    index: usize,
    predictions: &Predictions,
    places: &mut Vec<String>,
) -> TrafficRun {
    let traffic = &network.scenario().traffic[index];
    let Traffic { name, count, workload, .. } = traffic;
    let starting = |flow: u32, apart: Span, sample: &Sample| {
        let later = apart.scaled(flow.into(), 1);
        let [intended, start, end] =
            [sample.intended, sample.start, sample.end].map(|it| it + later);
        Sample { flow, intended, start, end, ..sample.clone() }
    };
    let own = predictions.list.iter().filter(|p| &p.traffic == name && p.what.is_measured());
    let own: Vec<Sample> = own.filter_map(|prediction| sample(prediction, places)).collect();
    let policed = predictions.list.iter().find_map(|p| match p.value {
        Figure::Rate(rate) if &p.traffic == name && p.what == What::Throughput => Some(rate),
        _ => None,
    });
    let courses = own.iter().flat_map(|sample| courses(network, traffic, sample, policed));
    TrafficRun {
        name: name.clone(),
        transport: traffic.spoken(),
        courses: courses.collect(),
        samples: own
            .iter()
            .flat_map(|sample| {
                let apart = apart(traffic, sample.delay());
                (0..*count).map(move |flow| starting(flow, apart, sample))
            })
            .collect(),
        amounts: workload.is_greedy(),
        writes: workload.times_writes(),
        rounds: rounds(network, index).into_iter().collect(),
        ..TrafficRun::default()
    }
}

/// How far the measurements of a traffic's flows lie apart, `measured` long each: single transfers as their starts do, all else
/// so that the total is that of as many flows as are there at a time.
fn apart(traffic: &Traffic, measured: Span) -> Span {
    let lasts = match traffic.workload {
        Workload::Bulk { repeat: 1, .. } | Workload::Push { repeat: 1, .. } => {
            return traffic.stagger;
        }
        Workload::Bulk { repeat, .. } | Workload::Push { repeat, .. } => {
            measured.scaled(repeat.into(), 1)
        }
        Workload::TimedTransfer { duration, .. } | Workload::Greedy { duration, .. } => duration,
        _ => return Span::ZERO,
    };
    let (count, together) = (traffic.count, together(traffic, lasts));
    measured.scaled((count - together).into(), u64::from(together * (count - 1).max(1)))
}

/// How many of a traffic's flows, which last so long, are there at once for most of their time.
fn together(traffic: &Traffic, lasts: Span) -> u32 {
    let starts = (0..traffic.count).map(|flow| traffic.stagger.scaled(flow.into(), 1));
    let mut changes: Vec<(Span, bool)> =
        starts.flat_map(|start| [(start, true), (start + lasts, false)]).collect();
    // Who ends makes room for who starts at the same instant.
    changes.sort_unstable();
    let (mut there, mut last) = (0, Span::ZERO);
    let mut times: BTreeMap<u32, Span> = BTreeMap::new();
    for (at, starts) in changes {
        *times.entry(there).or_default() += (at - last).scaled(there.into(), 1);
        there = if starts { there + 1 } else { there - 1 };
        last = at;
    }
    times.into_iter().max_by_key(|&(_, time)| time).map_or(1, |(there, _)| there.max(1))
}

/// What the flows of datagrams move, and when: each its rate, or what is `carried` if formulas know that not all is. `sample` is
/// the delay of one. What else is sent moves as much as its samples say.
fn courses(
    network: &Network<'_>,
    traffic: &Traffic,
    sample: &Sample,
    carried: Option<Throughput>,
) -> Vec<Course> {
    let Workload::Paced { size, rate, duration } = traffic.workload else { return Vec::new() };
    let duration = duration.min(network.scenario().stop_after);
    let bytes = Workload::Paced { size, rate, duration }.most_bytes().unwrap_or_default();
    let last = Throughput::from(rate).time_for(bytes.saturating_sub(sample.size));
    let bytes = carried.map_or(bytes, |carried| bytes_in(carried, duration).min(bytes));
    let course = |flow: u32| {
        let from = Time::ZERO + traffic.stagger.scaled(flow.into(), 1);
        Course { flow, from, to: from + last + sample.delay(), bytes }
    };
    (0..traffic.count).map(course).collect()
}

/// What is carried in a time, in bytes.
fn bytes_in(rate: Throughput, time: Span) -> u64 {
    let millibytes = u128::from(rate.millibytes_per_second()) * u128::from(time.as_nanos());
    u64::try_from(millibytes / 1_000 / SECOND).unwrap_or(u64::MAX)
}

/// A sample that starts at the origin of time. What is predicted of one flow holds for each of its traffic's.
fn sample(prediction: &Prediction, places: &mut Vec<String>) -> Option<Sample> {
    let total = prediction.value.time()?;
    Some(Sample {
        flow: 0,
        index: 0,
        size: prediction.size,
        intended: Time::ZERO,
        start: Time::ZERO,
        end: Time::ZERO + total,
        steps: steps(prediction, places).into(),
    })
}

/// The terms by place and cause, in the order in which they first occur.
fn steps(prediction: &Prediction, places: &mut Vec<String>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for term in &prediction.terms {
        let Some(cause) = term.cause else { continue };
        let (place, span) = (place(places, &term.place), term.span());
        match steps.iter_mut().find(|step| step.place == place && step.cause == cause) {
            Some(step) => step.span += span,
            None if span > Span::ZERO => steps.push(Step { place, cause, span }),
            None => {}
        }
    }
    steps
}

fn place(places: &mut Vec<String>, name: &str) -> u32 {
    let known = places.iter().position(|known| known == name).unwrap_or_else(|| {
        places.push(name.to_string());
        places.len() - 1
    });
    u32::try_from(known).unwrap_or(u32::MAX)
}

fn link_run(lane: &Lane<'_>) -> LinkRun {
    LinkRun {
        name: lane.name(),
        counts: Counts::default(),
        in_flight: 0,
        busy: Span::ZERO,
        queueing: None,
        backlog: Vec::new(),
    }
}
