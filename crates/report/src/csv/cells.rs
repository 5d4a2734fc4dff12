//! `cells.csv`: one row for each engine, cell, traffic and size.

use super::{Rows, cause_columns};
use crate::names;
use crate::summary::{Digest, Summary};
use std::io::{self, Write};
use trunkline_measure::{Interval, Spread};

const FIRST: [&str; 31] = [
    "traffic",
    "size_bytes",
    "n",
    "quantity",
    "unit",
    "estimator",
    "value",
    "deviation",
    "low",
    "high",
    "good",
    "bad",
    "min_ns",
    "median_ns",
    "p90_ns",
    "p99_ns",
    "max_ns",
    "median_low_ns",
    "median_high_ns",
    "flow_bytes_per_s",
    "total_bytes_per_s",
    "flows",
    "delivered_bytes",
    "retransmissions",
    "timeouts",
    "sent",
    "duplicated",
    "delivered",
    "dropped",
    "in_flight",
    "ended_ns",
];

/// The columns after those that every file has.
pub(crate) fn columns() -> Vec<String> {
    let first = FIRST.into_iter().map(String::from);
    first.chain(cause_columns()).chain(["transport".into()]).collect()
}

/// Writes the file.
pub(crate) fn cells(digest: &Digest<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = Rows::new(digest.report, out, &columns())?;
    for summary in &digest.rows {
        rows.begin(summary.run);
        rows.field(&summary.traffic.name);
        rows.field(&summary.size.map(|size| size.to_string()).unwrap_or_default());
        estimate(&mut rows, summary);
        spread(&mut rows, summary);
        counts(&mut rows, summary);
        for (_, mean) in &summary.ledger() {
            rows.field(&if summary.count == 0 {
                String::new()
            } else {
                mean.as_nanos().to_string()
            });
        }
        rows.field(&summary.traffic.transport);
        rows.end()?;
    }
    Ok(())
}

fn estimate(rows: &mut Rows<'_>, summary: &Summary<'_>) {
    rows.number(summary.count);
    rows.field(names::quantity(summary.quantity));
    rows.field(summary.unit());
    rows.field(&summary.estimator.to_string());
    let (value, deviation) = summary.value().unzip();
    rows.rounded(value);
    rows.rounded(deviation);
    let estimate = summary.estimate;
    ends(rows, summary.intervals().estimate);
    rows.rounded(estimate.map(|estimate| estimate.good as f64));
    rows.rounded(estimate.map(|estimate| estimate.bad as f64));
}

fn spread(rows: &mut Rows<'_>, summary: &Summary<'_>) {
    let spread = summary.spread();
    let mut put = |value: fn(&Spread) -> f64| rows.rounded(spread.as_ref().map(value));
    put(|spread| spread.min);
    put(|spread| spread.median);
    put(|spread| spread.p90);
    put(|spread| spread.p99);
    put(|spread| spread.max);
    ends(rows, summary.intervals().median);
}

fn ends(rows: &mut Rows<'_>, interval: Option<Interval>) {
    rows.rounded(interval.map(|interval| interval.low));
    rows.rounded(interval.map(|interval| interval.high));
}

fn counts(rows: &mut Rows<'_>, summary: &Summary<'_>) {
    let (traffic, packets) = (summary.traffic, summary.traffic.packets);
    rows.rounded(summary.throughput().map(|rate| rate.per_conversation));
    rows.rounded(summary.total());
    rows.rounded(summary.throughput().map(|rate| rate.conversations as f64));
    for count in [traffic.delivered_bytes, traffic.retransmissions, traffic.timeouts] {
        rows.number(count);
    }
    rows.number(packets.sent);
    rows.number(packets.duplicated);
    rows.number(packets.delivered);
    rows.number(packets.dropped);
    rows.number(packets.in_flight);
    rows.number(summary.run.ended.as_nanos());
}
