//! `links.csv`, `steps.csv`, `senders.csv` and `backlog.csv`.

use super::{Rows, named};
use crate::names;
use crate::steps::{StepSum, step_sums};
use crate::summary::Digest;
use std::io::{self, Write};
use trunkline_core::DropCause;
use trunkline_engine::Run;
use trunkline_measure::{LinkRun, TrafficRun};

/// Columns of `steps.csv`.
pub(crate) const STEPS: [&str; 9] =
    ["traffic", "of", "size_bytes", "order", "place", "cause", "n", "total_ns", "mean_ns"];
/// Columns of `senders.csv`.
pub(crate) const SENDERS: [&str; 4] = ["traffic", "flow", "state", "span_ns"];
/// Columns of `backlog.csv`.
pub(crate) const BACKLOG: [&str; 3] = ["link", "at_ns", "bytes"];

const LINK: [&str; 7] =
    ["link", "entered", "entered_bytes", "duplicated", "delivered", "delivered_bytes", "dropped"];
const LINK_LAST: [&str; 9] = [
    "marked",
    "in_flight",
    "busy_ns",
    "ended_ns",
    "queue_n",
    "queue_mean_ns",
    "queue_median_ns",
    "queue_p99_ns",
    "queue_max_ns",
];

/// Columns of `links.csv`.
pub(crate) fn link_columns() -> Vec<String> {
    let drops = DropCause::ALL.map(|cause| format!("dropped_{}", cause.name().replace('-', "_")));
    named(&LINK).into_iter().chain(drops).chain(named(&LINK_LAST)).collect()
}

/// Writes `links.csv`.
pub(crate) fn links(digest: &Digest<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = Rows::new(digest.report, out, &link_columns())?;
    for run in &digest.report.runs {
        for link in &run.links {
            rows.begin(run);
            counts(&mut rows, link);
            rows.number(link.in_flight);
            rows.number(link.busy.as_nanos());
            rows.number(run.ended.as_nanos());
            queueing(&mut rows, link);
            rows.end()?;
        }
    }
    Ok(())
}

fn counts(rows: &mut Rows<'_>, link: &LinkRun) {
    let counts = &link.counts;
    rows.field(&link.name);
    rows.number(counts.entered);
    rows.number(counts.entered_bytes);
    rows.number(counts.duplicated);
    rows.number(counts.delivered);
    rows.number(counts.delivered_bytes);
    rows.number(counts.dropped());
    DropCause::ALL.into_iter().for_each(|cause| rows.number(counts.dropped_by(cause)));
    rows.number(counts.marked);
}

fn queueing(rows: &mut Rows<'_>, link: &LinkRun) {
    match link.queueing.as_ref().map(|times| times.percentiles()) {
        Some(figures) if figures.count > 0 => {
            rows.number(figures.count);
            for span in [figures.mean, figures.p50, figures.p99, figures.max] {
                rows.number(span.as_nanos());
            }
        }
        Some(_) => ["0", "", "", "", ""].into_iter().for_each(|text| rows.field(text)),
        None => [""; 5].into_iter().for_each(|text| rows.field(text)),
    }
}

/// Writes `steps.csv`.
pub(crate) fn steps(digest: &Digest<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = Rows::new(digest.report, out, &named(&STEPS))?;
    for run in &digest.report.runs {
        for traffic in &run.traffic {
            for size in traffic.sizes() {
                let sums = step_sums(run, traffic.steps(size).into_iter(), traffic.count(size));
                step_rows(&mut rows, (run, traffic), "sample", &size.to_string(), &sums)?;
            }
            let blocks = step_sums(run, traffic.blocks.iter().copied(), traffic.block_count);
            step_rows(&mut rows, (run, traffic), "block", "", &blocks)?;
        }
    }
    Ok(())
}

fn step_rows(
    rows: &mut Rows<'_>,
    (run, traffic): (&Run, &TrafficRun),
    of: &str,
    size: &str,
    sums: &[StepSum<'_>],
) -> io::Result<()> {
    for (order, sum) in sums.iter().enumerate() {
        rows.begin(run);
        rows.field(&traffic.name);
        rows.field(of);
        rows.field(size);
        rows.number(order as u64);
        rows.field(sum.place);
        rows.field(names::cause(sum.cause));
        rows.number(sum.count);
        rows.number(sum.total.as_nanos());
        rows.number(sum.mean().as_nanos());
        rows.end()?;
    }
    Ok(())
}

/// Writes `senders.csv`.
pub(crate) fn senders(digest: &Digest<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = Rows::new(digest.report, out, &named(&SENDERS))?;
    for run in &digest.report.runs {
        for traffic in &run.traffic {
            for (flow, states) in traffic.sender.iter().enumerate() {
                for (state, span) in states {
                    rows.begin(run);
                    rows.field(&traffic.name);
                    rows.number(flow as u64);
                    rows.field(names::state(*state));
                    rows.number(span.as_nanos());
                    rows.end()?;
                }
            }
        }
    }
    Ok(())
}

/// Writes `backlog.csv`.
pub(crate) fn backlog(digest: &Digest<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = Rows::new(digest.report, out, &named(&BACKLOG))?;
    for run in &digest.report.runs {
        for link in &run.links {
            for (at, bytes) in &link.backlog {
                rows.begin(run);
                rows.field(&link.name);
                rows.number(at.as_nanos());
                rows.number(*bytes);
                rows.end()?;
            }
        }
    }
    Ok(())
}
