//! Flent's data file, so that Flent plots what was measured here.
//!
//! The format is version 4 of `flent/resultset.py` (Flent 2.x; its manual, "The Data File Format"): JSON,
//! compressed by gzip, with `metadata`, `x_values` (seconds since the start, evenly spaced), `results` (for
//! each series a value or null for each of them) and `raw_values` (each measurement with its own Unix time).
//! Flent draws the plots that belong to the *test* named in the metadata, from series that the test
//! knows by name, so a measurement has to come under the name of one of Flent's tests:
//!
//! | measured | test | series |
//! |---|---|---|
//! | round trips | `ping` | `Ping (ms) UDP`, whatever the transport |
//! | with load towards the far host | `tcp_nup` | `TCP upload::1` …, `TCP upload avg`, `TCP upload sum`, `Ping (ms)
//! ICMP` |
//! | with load from the far host | `tcp_ndown` | `TCP download::1` …, `avg`, `sum`, `Ping (ms) ICMP` |
//! | with load both ways | `rrul_be` | `TCP upload BE`, `BE2`, `BE3`, `BE4`, `avg`, `sum`, the same for `download`,
//! `TCP totals`, `Ping (ms) UDP BE1`, `Ping (ms) avg` |
//!
//! The title, the note and `SERIES_META` say what really carried the round trips. Flent's load tests
//! have five seconds without load at either end ([`IDLE`]), which its distribution plots leave out.

use flate2::{Compression, GzBuilder};
use serde_json::{Map, Value, json};
use std::io::Write;

/// Seconds without load at either end of a load test, which Flent's CDF and box plots cut off.
pub const IDLE: f64 = 5.0;
/// The most flows each way for a load both ways: `rrul_be` names four.
pub const MOST_BOTH: usize = 4;
const FORMAT_VERSION: u32 = 4;
/// Flent's version whose format this is.
const FLENT_VERSION: &str = "2.1.1";

/// One value of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Seconds since the start.
    pub at: f64,
    /// Milliseconds, or megabits a second.
    pub value: f64,
}

/// A measurement to be written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Flent {
    /// The name in plots and legends.
    pub title: String,
    /// Anything else to be known of it.
    pub note: String,
    /// The far host.
    pub host: String,
    /// This host.
    pub local_host: String,
    /// The carrier of the round trips: `udp`, `tcp`, `urp`.
    pub transport: String,
    /// The start, in nanoseconds since 1970, UTC.
    pub start: u64,
    /// Seconds from the start to the end.
    pub length: f64,
    /// Seconds from one of the evenly spaced values to the next; Flent's own is 0.2.
    pub step: f64,
    /// Round trips in milliseconds, at the time of their answer.
    pub pings: Vec<Point>,
    /// Goodput of each flow towards the far host, in Mbit/s.
    pub uploads: Vec<Vec<Point>>,
    /// And of each flow from it.
    pub downloads: Vec<Vec<Point>>,
}

/// The reason why no file can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlentError {
    /// Flent knows no test with so many flows both ways.
    #[error(
        "Flent's rrul_be has {MOST_BOTH} flows each way and this load has {flows}; load with {MOST_BOTH} each way at most, or one way only"
    )]
    TooManyFlows {
        /// Flows one way.
        flows: usize,
    },
    /// Nothing to be spaced evenly.
    #[error("a Flent file needs a positive step and length in seconds, the length at most a day")]
    NoTime,
}

/// A series under the name by which a test of Flent's knows it.
struct Series<'a> {
    name: String,
    unit: &'static str,
    points: &'a [Point],
}

impl Flent {
    /// The Flent test under which it is written.
    pub fn test(&self) -> &'static str {
        match (self.uploads.is_empty(), self.downloads.is_empty()) {
            (true, true) => "ping",
            (false, true) => "tcp_nup",
            (true, false) => "tcp_ndown",
            (false, false) => "rrul_be",
        }
    }

    /// The compressed file. The same measurement gives the same bytes. Flent wants its name to end in
    /// `.flent.gz`.
    ///
    /// # Errors
    /// See [`FlentError`].
    pub fn file(&self) -> Result<Vec<u8>, FlentError> {
        let text = self.json()?.to_string();
        let mut writer = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
        // Writing to memory cannot fail.
        let written = writer.write_all(text.as_bytes()).and_then(|()| writer.finish());
        Ok(written.unwrap_or_default())
    }

    /// The content of the file.
    ///
    /// # Errors
    /// See [`FlentError`].
    pub fn json(&self) -> Result<Value, FlentError> {
        let flows = self.uploads.len().max(self.downloads.len());
        if self.test() == "rrul_be" && flows > MOST_BOTH {
            return Err(FlentError::TooManyFlows { flows });
        }
        if !(self.step > 0.0
            && self.length > 0.0
            && self.length <= 86_400.0
            && self.step <= self.length)
        {
            return Err(FlentError::NoTime);
        }
        let times: Vec<f64> = (0..=(self.length / self.step) as u32)
            .map(|step| f64::from(step) * self.step)
            .collect();
        let series = self.series();
        let mut results = Map::new();
        let mut raw = Map::new();
        for one in &series {
            results.insert(one.name.clone(), self.spaced(one.points, &times));
            raw.insert(one.name.clone(), self.raw(one.points));
        }
        self.add_totals(&mut results, times.len());
        Ok(json!({
            "version": FORMAT_VERSION,
            "metadata": self.metadata(&series),
            "x_values": times,
            "results": results,
            "raw_values": raw,
        }))
    }

    fn series(&self) -> Vec<Series<'_>> {
        let ping = match self.test() {
            "ping" => "Ping (ms) UDP",
            "rrul_be" => "Ping (ms) UDP BE1",
            _ => "Ping (ms) ICMP",
        };
        let mut all = vec![Series { name: ping.into(), unit: "ms", points: &self.pings }];
        for (way, flows) in [("upload", &self.uploads), ("download", &self.downloads)] {
            let named = (1..).zip(flows).map(|(number, points)| Series {
                name: self.flow_name(way, number),
                unit: "Mbits/s",
                points,
            });
            all.extend(named);
        }
        all
    }

    fn flow_name(&self, way: &str, number: usize) -> String {
        match (self.test(), number) {
            ("rrul_be", 1) => format!("TCP {way} BE"),
            ("rrul_be", _) => format!("TCP {way} BE{number}"),
            _ => format!("TCP {way}::{number}"),
        }
    }

    /// For each evenly spaced time the mean of the values that lie less than half a step from it.
    fn spaced(&self, points: &[Point], times: &[f64]) -> Value {
        let mut sums = vec![(0.0, 0u32); times.len()];
        for point in points {
            let place = (point.at / self.step).round();
            let sum = (place >= 0.0).then(|| sums.get_mut(place as usize)).flatten();
            if let Some((sum, count)) = sum {
                (*sum, *count) = (*sum + point.value, *count + 1);
            }
        }
        let mean = |(sum, count): (f64, u32)| {
            if count == 0 { Value::Null } else { json!(sum / f64::from(count)) }
        };
        sums.into_iter().map(mean).collect()
    }

    fn raw(&self, points: &[Point]) -> Value {
        let start = self.start as f64 / 1e9;
        points.iter().map(|point| json!({ "t": start + point.at, "val": point.value })).collect()
    }

    /// The averages and sums that Flent would have computed.
    fn add_totals(&self, results: &mut Map<String, Value>, count: usize) {
        for (way, flows) in [("upload", self.uploads.len()), ("download", self.downloads.len())] {
            let names: Vec<String> = (1..=flows).map(|n| self.flow_name(way, n)).collect();
            if flows > 0 {
                let sums = sums(results, &names, count);
                let averages = scaled(&sums, 1.0 / flows as f64);
                results.insert(format!("TCP {way} avg"), averages);
                results.insert(format!("TCP {way} sum"), scaled(&sums, 1.0));
            }
        }
        if self.test() == "rrul_be" {
            let both = ["TCP upload sum".to_string(), "TCP download sum".to_string()];
            let totals = sums(results, &both, count);
            results.insert("TCP totals".into(), scaled(&totals, 1.0));
            let pings = results["Ping (ms) UDP BE1"].clone();
            results.insert("Ping (ms) avg".into(), pings);
        }
    }

    fn metadata(&self, series: &[Series<'_>]) -> Value {
        let idle = if self.test() == "ping" { 0.0 } else { 2.0 * IDLE };
        let about = |one: &Series<'_>| {
            let command = format!("trunkline probe, transport {}", self.transport);
            (one.name.clone(), json!({ "UNITS": one.unit, "COMMAND": command, "IDX": null }))
        };
        let parameters = match self.test() {
            "tcp_nup" => json!({ "upload_streams": self.uploads.len().to_string() }),
            "tcp_ndown" => json!({ "download_streams": self.downloads.len().to_string() }),
            _ => json!({}),
        };
        let time = utc(self.start);
        json!({
            "NAME": self.test(),
            "TITLE": self.title,
            "NOTE": self.note,
            "HOST": self.host,
            "HOSTS": [self.host],
            "LOCAL_HOST": self.local_host,
            "TIME": time,
            "T0": time,
            "LENGTH": (self.length - idle).max(0.0),
            "TOTAL_LENGTH": self.length,
            "STEP_SIZE": self.step,
            "TEST_PARAMETERS": parameters,
            "FLENT_VERSION": FLENT_VERSION,
            "IP_VERSION": null,
            "BATCH_NAME": null,
            "BATCH_TIME": null,
            "BATCH_TITLE": null,
            "BATCH_UUID": null,
            "DATA_FILENAME": null,
            "SERIES_META": series.iter().map(about).collect::<Map<String, Value>>(),
        })
    }
}

/// Sums of series; `None` if none has a value.
fn sums(results: &Map<String, Value>, names: &[String], count: usize) -> Vec<Option<f64>> {
    let at = |index: usize| {
        let values = names.iter().filter_map(|name| results.get(name)?.get(index)?.as_f64());
        values.reduce(|sum, value| sum + value)
    };
    (0..count).map(at).collect()
}

fn scaled(values: &[Option<f64>], by: f64) -> Value {
    values.iter().map(|value| value.map(|value| value * by)).map(Value::from).collect()
}

/// A time as Flent writes it: `2026-11-21T16:00:00.123456Z`. Days become dates as in the civil calendar
/// whose year begins in March, so that the leap day is the last.
fn utc(nanos: u64) -> String {
    let (seconds, micros) = (nanos / 1_000_000_000, nanos / 1_000 % 1_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // From 0000-03-01; a cycle of 400 years has 146 097 days.
    let day = days + 719_468;
    let (cycle, of_cycle) = (day / 146_097, day % 146_097);
    let year_of_cycle =
        (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    // Five months from March on have 153 days, and again from August on.
    let from_march = (5 * of_year + 2) / 153;
    let date = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = cycle * 400 + year_of_cycle + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn series(values: &[(f64, f64)]) -> Vec<Point> {
        values.iter().map(|&(at, value)| Point { at, value }).collect()
    }

    fn load(up: usize, down: usize) -> Flent {
        let flow = series(&[(0.0, 1.0), (0.2, 3.0), (0.25, 5.0)]);
        Flent {
            length: 1.0,
            step: 0.2,
            pings: series(&[(0.1, 10.0), (0.9, 12.0)]),
            uploads: vec![flow.clone(); up],
            downloads: vec![flow; down],
            ..Flent::default()
        }
    }

    #[test]
    fn times_are_as_date_says() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000000Z");
        assert_eq!(utc(951_782_400_000_000_000), "2000-02-29T00:00:00.000000Z");
        assert_eq!(utc(1_709_251_199_999_999_999), "2024-02-29T23:59:59.999999Z");
        assert_eq!(utc(4_102_444_800_000_001_000), "2100-01-01T00:00:00.000001Z");
    }

    #[test]
    fn each_kind_of_measurement_has_its_test_and_series() {
        let names = |flent: &Flent| -> Vec<String> {
            flent.json().unwrap()["results"].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!((load(0, 0).test(), names(&load(0, 0))), ("ping", vec!["Ping (ms) UDP".into()]));
        assert_eq!(load(0, 2).test(), "tcp_ndown");
        let up = names(&load(2, 0));
        for name in
            ["Ping (ms) ICMP", "TCP upload::1", "TCP upload::2", "TCP upload avg", "TCP upload sum"]
        {
            assert!(up.contains(&name.to_string()), "{up:?}");
        }
        let both = names(&load(2, 1));
        for name in
            ["TCP upload BE", "TCP upload BE2", "TCP download BE", "TCP totals", "Ping (ms) avg"]
        {
            assert!(both.contains(&name.to_string()), "{both:?}");
        }
        assert_eq!(load(5, 1).json(), Err(FlentError::TooManyFlows { flows: 5 }));
        assert!(load(5, 0).json().is_ok());
        assert_eq!(Flent { step: 0.0, ..load(0, 0) }.json(), Err(FlentError::NoTime));
    }

    #[test]
    fn values_are_spaced_evenly_and_summed() {
        let json = load(2, 0).json().unwrap();
        assert_eq!(json["results"]["TCP upload::1"], json!([1.0, 4.0, null, null, null, null]));
        assert_eq!(json["results"]["TCP upload sum"], json!([2.0, 8.0, null, null, null, null]));
        assert_eq!(json["results"]["TCP upload avg"][1], json!(4.0));
        assert_eq!(json["raw_values"]["Ping (ms) ICMP"][1]["val"], json!(12.0));
        assert_eq!(json["x_values"].as_array().unwrap().len(), 6);
    }

    proptest! {
        #[test]
        fn every_series_is_as_long_as_the_times(
            step in 0.05..2.0f64,
            length in 2.0..60.0f64,
            at in prop::collection::vec((-1.0..90.0f64, 0.0..99.0f64), 0..40),
        ) {
            let flent = Flent { step, length, pings: series(&at), ..load(1, 1) };
            let json = flent.json().unwrap();
            let count = json["x_values"].as_array().unwrap().len();
            for values in json["results"].as_object().unwrap().values() {
                prop_assert_eq!(values.as_array().unwrap().len(), count);
            }
            prop_assert_eq!(flent.file().unwrap(), flent.file().unwrap());
        }
    }
}
