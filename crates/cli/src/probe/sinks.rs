//! The places for results: standard output as table, JSON or JSON lines, and files.

use crate::failure::Failure;
use crate::files;
use crate::output;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use std::path::{Path, PathBuf};
use trunkline_fit::Exchange;
use trunkline_fit::flent::{FlentError, MOST_BOTH};
use trunkline_measure::{Interval, MeanInterval};
use trunkline_probe::client::Hosts;
use trunkline_probe::client::transfer::Ways;
use trunkline_probe::result::Line;
use trunkline_probe::stamp::TimingError;

/// The places for results.
#[derive(clap::Args)]
pub struct SinkArgs {
    /// Print the result as one JSON document
    #[arg(long, conflicts_with = "json_lines", help_heading = "Output")]
    pub json: bool,
    /// Print a JSON object for each sample or interval as it comes, the result in the last
    #[arg(long, help_heading = "Output")]
    pub json_lines: bool,
    /// Write the raw samples to FILE
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub csv: Option<PathBuf>,
    /// Write FILE, whose name should end in .flent.gz, for Flent to plot
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub flent: Option<PathBuf>,
}

impl SinkArgs {
    /// Fails before anything is measured if a file that is to be written cannot be.
    pub fn check(&self, another: Option<&Path>) -> Result<(), Failure> {
        files::writable(&[self.csv.as_deref(), self.flent.as_deref(), another])
    }

    /// Fails before anything is measured if Flent has no test with `streams` flows in each of these directions.
    pub fn check_flows(&self, ways: Ways, streams: u16) -> Result<(), Failure> {
        let flows = usize::from(streams);
        match self.flent.is_some() && ways == Ways::Both && flows > MOST_BOTH {
            true => Err(Failure::wrong_use(FlentError::TooManyFlows { flows })),
            false => Ok(()),
        }
    }

    /// Whether a file is wanted, for which the measurement goes on when nobody reads its lines any more.
    pub fn fills_a_file(&self) -> bool {
        self.csv.is_some() || self.flent.is_some()
    }

    /// Prints an answer as it comes, if lines were asked for. Returns whether anybody still wants more.
    pub fn answer(&self, phase: &str, exchange: &Exchange) -> bool {
        !self.json_lines || self.line(&Line::answer(phase, exchange))
    }

    /// Prints a line, if lines were asked for. Returns whether anybody still wants more.
    pub fn line(&self, line: &Line<'_>) -> bool {
        let text = if self.json_lines { line.text().ok() } else { None };
        text.is_none_or(|text| {
            output::line(&text).is_ok() && (output::is_heard() || self.fills_a_file())
        })
    }

    /// Prints the result: as JSON, as the last line, or as the table that `table` gives.
    pub fn result(
        &self,
        result: &impl Serialize,
        table: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json {
            return output::line(&serde_json::to_string_pretty(result)?);
        }
        if self.json_lines {
            let result = serde_json::to_value(result)?;
            return output::line(&Line::Result { result: &result }.text()?);
        }
        output::line(&table())
    }
}

/// Writes Flent's file, if one is wanted; `of` makes it from the time at which all began.
pub fn flent(
    args: &SinkArgs,
    hosts: &Hosts,
    of: impl FnOnce(u64) -> Result<Vec<u8>, FlentError>,
) -> Result<(), Failure> {
    let Some(path) = args.flent.as_deref() else { return Ok(()) };
    let start = hosts.near.first().map_or(0, |reading| reading.wall_ns);
    let octets = of(start)?;
    files::write(Some(path), |out| out.write_all(&octets))
}

/// A table in the style of all.
pub fn new_table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table
}

/// Milliseconds with as many digits as they deserve.
pub fn millis(value: f64) -> String {
    match value.abs() {
        small if small < 10.0 => format!("{value:.3}"),
        middle if middle < 1000.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// The value and half its interval: `12.3 ±0.4`.
pub fn with_interval(value: f64, interval: Option<Interval>) -> String {
    match interval {
        Some(ends) => format!("{} ±{}", millis(value), millis((ends.high - ends.low) / 2.0)),
        None => millis(value),
    }
}

/// A rate in the unit that fits it.
pub fn rate(bits: f64) -> String {
    match bits {
        high if high >= 1e9 => format!("{:.3} Gbit/s", high / 1e9),
        high if high >= 1e6 => format!("{:.3} Mbit/s", high / 1e6),
        low => format!("{:.2} kbit/s", low / 1e3),
    }
}

/// A rate, if one was measured.
pub fn rate_if_known(bits: Option<f64>) -> String {
    bits.map_or(TOO_LITTLE.into(), rate)
}

/// In place of a figure of which nothing was measured.
pub const TOO_LITTLE: &str = "too little to tell";

/// A rate with half its interval in percent.
pub fn rate_with_interval(found: &MeanInterval) -> String {
    let half = (found.ends.high - found.ends.low) / 2.0;
    let sure = if found.trusted { "" } else { ", too short to be trusted" };
    // Of nothing there are no percents.
    let share = if found.mean > 0.0 { half / found.mean * 100.0 } else { 0.0 };
    format!("{} ±{share:.1} %{sure}", rate(found.mean))
}

/// The bound on the error of our own times, in a line.
pub fn timing(error: &TimingError) -> String {
    let stamps = if error.kernel_stamps { "stamped by the kernel" } else { "read off the clock" };
    format!(
        "timing error of this host: round trips are too long by {} (median) to {} (99 in 100); arrivals \
         {stamps}; a timer is late by {} (median), {} (99 in 100)",
        (error.send_to_stamp.p50 + error.send_to_stamp.p50).rounded(),
        error.round_trip().rounded(),
        error.timer_late.p50.rounded(),
        error.timer_late.p99.rounded()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_nothing_there_are_no_percents() {
        let of = |mean, half| {
            let ends = Interval { low: mean - half, high: mean + half };
            rate_with_interval(&MeanInterval {
                mean,
                ends,
                batch: 1,
                batches: 10,
                correlation: 0.0,
                trusted: true,
            })
        };
        assert_eq!(of(0.0, 0.0), "0.00 kbit/s ±0.0 %");
        assert_eq!(of(2e6, 1e5), "2.000 Mbit/s ±5.0 %");
    }
}
