//! `samples.csv`: one row for each sample.

use super::{Rows, cause_columns};
use crate::summary::Digest;
use std::io::{self, Write};
use trunkline_core::Cause;
use trunkline_measure::Sample;

const FIRST: [&str; 8] =
    ["traffic", "flow", "size_bytes", "index", "intended_ns", "start_ns", "end_ns", "delay_ns"];

/// The columns after those that every file has.
pub(crate) fn columns() -> Vec<String> {
    FIRST.into_iter().map(String::from).chain(cause_columns()).collect()
}

/// Writes the file.
pub(crate) fn samples(digest: &Digest<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut rows = Rows::new(digest.report, out, &columns())?;
    for run in &digest.report.runs {
        for traffic in &run.traffic {
            for sample in &traffic.samples {
                rows.begin(run);
                rows.field(&traffic.name);
                row(&mut rows, sample);
                rows.end()?;
            }
        }
    }
    Ok(())
}

fn row(rows: &mut Rows<'_>, sample: &Sample) {
    rows.number(sample.flow);
    rows.number(sample.size);
    rows.number(sample.index);
    for time in [sample.intended, sample.start, sample.end] {
        rows.number(time.as_nanos());
    }
    rows.number(sample.delay().as_nanos());
    for cause in Cause::ALL {
        rows.number(sample.booked(cause).as_nanos());
    }
}
