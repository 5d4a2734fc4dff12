//! `run.json`: everything in one document, described in `docs/results.md`.

use crate::names;
use crate::overview::{Absence, overview};
use crate::report::{Report, ReportNote};
use crate::steps::step_sums;
use crate::summary::{Digest, Summary};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use serde_json::{Value, json};
use std::io::{self, Write};
use trunkline_core::Cause;
use trunkline_engine::{EngineName, Note, Run};
use trunkline_measure::{Course, LinkRun, Sample, TrafficRun};

/// The format's number. It rises when a field changes its meaning or goes; new fields do not raise it.
pub const FORMAT: u32 = 2;

/// Writes what [`write()`](crate::write()) leaves in `run.json`: one line.
///
/// # Errors
/// Where `out` takes no more.
pub fn json(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    write_json(&Digest::of(report), out)
}

/// Writes the document and a line end.
pub(crate) fn write_json(digest: &Digest<'_>, out: &mut dyn Write) -> io::Result<()> {
    let report = digest.report;
    let document = Document {
        format: FORMAT,
        title: &report.title,
        about: &report.about,
        version: &report.version,
        seeds: report.seeds(),
        engines: report.engines(),
        unavailable: report
            .unavailable
            .iter()
            .map(|(engine, reason)| json!({"engine": engine, "reason": reason}))
            .collect(),
        facts: report
            .facts
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect(),
        scenario: &report.scenario,
        notes: report.notes(),
        absent: overview(digest).absences,
        comparisons: serde_json::to_value(&report.comparisons)?,
        runs: Runs(digest),
    };
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    title: &'a str,
    about: &'a str,
    version: &'a str,
    seeds: Vec<u64>,
    engines: Vec<EngineName>,
    unavailable: Vec<Value>,
    facts: Vec<Value>,
    scenario: &'a str,
    notes: Vec<ReportNote>,
    absent: Vec<Absence>,
    comparisons: Value,
    runs: Runs<'a>,
}

/// Writes a sequence item by item, so that the document is never whole in memory.
macro_rules! sequence {
    ($name:ident, $self:ident => $items:expr) => {
        impl Serialize for $name<'_> {
            fn serialize<S: Serializer>(&$self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut sequence = serializer.serialize_seq(None)?;
                for item in $items {
                    sequence.serialize_element(&item)?;
                }
                sequence.end()
            }
        }
    };
}

struct Runs<'a>(&'a Digest<'a>);
sequence!(Runs, self => self.0.report.runs.iter().map(|run| RunJson::of(self.0, run)));

#[derive(Serialize)]
struct RunJson<'a> {
    engine: EngineName,
    scenario: &'a str,
    cell: &'a trunkline_measure::Key,
    seed: u64,
    ended_ns: u64,
    places: &'a [String],
    notes: &'a [Note],
    invalid: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<&'a trunkline_measure::Accuracy>,
    traffic: Vec<TrafficJson<'a>>,
    links: Vec<Value>,
}

impl<'a> RunJson<'a> {
    fn of(digest: &'a Digest<'a>, run: &'a Run) -> RunJson<'a> {
        RunJson {
            engine: run.engine,
            scenario: &run.scenario,
            cell: &run.cell,
            seed: run.seed,
            ended_ns: run.ended.as_nanos(),
            places: &run.places,
            notes: &run.notes,
            invalid: run.doubts(),
            accuracy: run.accuracy.as_ref(),
            traffic: run
                .traffic
                .iter()
                .map(|traffic| TrafficJson::of(digest, run, traffic))
                .collect(),
            links: run.links.iter().map(link).collect(),
        }
    }
}

#[derive(Serialize)]
struct TrafficJson<'a> {
    name: &'a str,
    transport: &'a str,
    summary: Vec<Value>,
    packets: trunkline_measure::Conservation,
    delivered_bytes: u64,
    courses: Vec<Value>,
    retransmissions: u64,
    timeouts: u64,
    sender: Vec<Value>,
    block_count: u64,
    block_steps: Vec<Value>,
    rounds: Vec<Value>,
    samples_of: u64,
    samples: Samples<'a>,
}

impl<'a> TrafficJson<'a> {
    fn of(digest: &Digest<'_>, run: &'a Run, traffic: &'a TrafficRun) -> TrafficJson<'a> {
        let sizes = traffic.sizes().into_iter();
        let blocks = step_sums(run, traffic.blocks.iter().copied(), traffic.block_count);
        TrafficJson {
            name: &traffic.name,
            transport: &traffic.transport,
            summary: sizes.filter_map(|size| digest.get(run, &traffic.name, size)).map(summed).collect(),
            packets: traffic.packets,
            delivered_bytes: traffic.delivered_bytes,
            courses: courses(traffic),
            retransmissions: traffic.retransmissions,
            timeouts: traffic.timeouts,
            sender: senders(traffic),
            block_count: traffic.block_count,
            block_steps: blocks
                .iter()
                .map(|sum| {
                    json!({"place": sum.place, "cause": names::cause(sum.cause), "total_ns": sum.total.as_nanos()})
                })
                .collect(),
            rounds: traffic
                .rounds
                .iter()
                .map(|(size, bytes)| json!({"size_bytes": size, "bytes": bytes}))
                .collect(),
            samples_of: traffic.samples.count(),
            samples: Samples(&traffic.samples),
        }
    }
}

fn courses(traffic: &TrafficRun) -> Vec<Value> {
    let course = |course: &Course| {
        let Course { flow, from, to, bytes } = course;
        json!({"flow": flow, "from_ns": from.as_nanos(), "to_ns": to.as_nanos(), "delivered_bytes": bytes})
    };
    traffic.courses.iter().map(course).collect()
}

fn senders(traffic: &TrafficRun) -> Vec<Value> {
    let states = traffic.sender.iter().enumerate();
    let each = states.flat_map(|(flow, states)| states.iter().map(move |entry| (flow, entry)));
    each.map(|(flow, (state, span))| {
        json!({"flow": flow, "state": names::state(*state), "span_ns": span.as_nanos()})
    })
    .collect()
}

fn summed(summary: &Summary<'_>) -> Value {
    let spread = summary.spread();
    let (value, deviation) = summary.value().unzip();
    let (estimate, intervals) = (summary.estimate, summary.intervals());
    let ledger = summary.ledger();
    let ledger = ledger.iter();
    json!({
        "size_bytes": summary.size,
        "invalid": !summary.run.is_valid(),
        "n": summary.count,
        "quantity": names::quantity(summary.quantity),
        "unit": summary.unit(),
        "estimator": summary.estimator.to_string(),
        "value": value,
        "deviation": deviation,
        "low": intervals.estimate.map(|interval| interval.low),
        "high": intervals.estimate.map(|interval| interval.high),
        "good": estimate.map(|estimate| estimate.good),
        "bad": estimate.map(|estimate| estimate.bad),
        "threshold": estimate.and_then(|estimate| estimate.threshold),
        "min_ns": spread.map(|spread| spread.min),
        "median_ns": spread.map(|spread| spread.median),
        "p90_ns": spread.map(|spread| spread.p90),
        "p99_ns": spread.map(|spread| spread.p99),
        "max_ns": spread.map(|spread| spread.max),
        "median_low_ns": intervals.median.map(|interval| interval.low),
        "median_high_ns": intervals.median.map(|interval| interval.high),
        "flow_bytes_per_s": summary.throughput().map(|rate| rate.per_conversation),
        "total_bytes_per_s": summary.total(),
        "flows": summary.throughput().map(|rate| rate.conversations),
        "ledger_ns": ledger.map(|(_, mean)| mean.as_nanos()).collect::<Vec<u64>>(),
    })
}

fn link(link: &LinkRun) -> Value {
    let counts = &link.counts;
    let drops =
        counts.drops().map(|(cause, count)| json!({"cause": cause.name(), "packets": count}));
    let queueing = link.queueing.as_ref().map(|times| {
        let figures = times.percentiles();
        json!({
            "n": figures.count,
            "mean_ns": figures.mean.as_nanos(),
            "median_ns": figures.p50.as_nanos(),
            "p99_ns": figures.p99.as_nanos(),
            "max_ns": figures.max.as_nanos(),
        })
    });
    json!({
        "name": link.name,
        "entered": counts.entered,
        "entered_bytes": counts.entered_bytes,
        "duplicated": counts.duplicated,
        "delivered": counts.delivered,
        "delivered_bytes": counts.delivered_bytes,
        "marked": counts.marked,
        "drops": drops.collect::<Vec<Value>>(),
        "in_flight": link.in_flight,
        "busy_ns": link.busy.as_nanos(),
        "queueing": queueing,
        "backlog": link.backlog.iter().map(|(at, bytes)| (at.as_nanos(), *bytes)).collect::<Vec<_>>(),
    })
}

struct Samples<'a>(&'a [Sample]);
sequence!(Samples, self => self.0.iter().map(SampleJson::of));

#[derive(Serialize)]
struct SampleJson<'a> {
    flow: u32,
    index: u32,
    size_bytes: u64,
    intended_ns: u64,
    start_ns: u64,
    end_ns: u64,
    steps: Steps<'a>,
}

impl<'a> SampleJson<'a> {
    fn of(sample: &'a Sample) -> SampleJson<'a> {
        SampleJson {
            flow: sample.flow,
            index: sample.index,
            size_bytes: sample.size,
            intended_ns: sample.intended.as_nanos(),
            start_ns: sample.start.as_nanos(),
            end_ns: sample.end.as_nanos(),
            steps: Steps(&sample.steps),
        }
    }
}

struct Steps<'a>(&'a trunkline_measure::Steps);
sequence!(Steps, self => self.0.iter().map(|step| -> (u32, Cause, u64) {
    (step.place, step.cause, step.span.as_nanos())
}));
