//! A measurement as Flent's data file.

use crate::client::bulk::{BulkFigures, BulkResult};
use crate::client::load::{LoadMeasured, Phase};
use crate::client::rtt::Measured;
use crate::client::transfer::Direction;
use trunkline_fit::flent::{Flent, FlentError, Point};
use trunkline_fit::{Exchange, Observations};

/// Seconds from one of the evenly spaced values to the next: Flent's own.
const STEP: f64 = 0.2;

fn seconds(nanos: i64) -> f64 {
    nanos as f64 / 1e9
}

/// Response times at the time of their answers, `began` being zero.
fn pings(observed: &Observations, began: i64) -> impl Iterator<Item = Point> + '_ {
    let point = move |one: &Exchange| Point {
        at: seconds(one.received.saturating_sub(began)),
        value: one.response() as f64 / 1e6,
    };
    observed.exchanges.iter().map(point)
}

/// When the first message was sent.
fn first(observed: &Observations) -> Option<i64> {
    let answered = observed.exchanges.iter().map(|one| one.intended);
    answered.chain(observed.lost.iter().map(|one| one.sent)).min()
}

fn length(pings: &[Point], wanted: f64) -> f64 {
    pings.iter().map(|ping| ping.at).fold(wanted, f64::max).max(STEP)
}

/// Round trips.
///
/// # Errors
/// See [`FlentError`].
pub fn of_rtt(done: &Measured, start_wall_ns: u64) -> Result<Vec<u8>, FlentError> {
    let result = &done.result;
    let began = first(&done.observed).unwrap_or(0);
    let pings: Vec<Point> = pings(&done.observed, began).collect();
    let flent = Flent {
        title: format!("trunkline probe rtt by {}", result.transport),
        note: result.pace.clone(),
        host: result.server.clone(),
        local_host: near_name(&result.hosts),
        transport: result.transport.to_string(),
        start: start_wall_ns,
        length: length(&pings, 0.0),
        step: STEP,
        pings,
        ..Flent::default()
    };
    flent.file()
}

fn near_name(hosts: &crate::client::Hosts) -> String {
    hosts.near.first().map_or(String::new(), |reading| reading.name.clone())
}

/// The goodput of each flow of these figures in Mbit/s, its first octets being at `began` seconds.
fn flows(found: Option<&BulkFigures>, began: f64) -> Vec<Vec<Point>> {
    let Some(found) = found else { return Vec::new() };
    let count = found.streams_bit_per_s.len();
    let flow = |index: usize| {
        let intervals = found.intervals.iter();
        intervals
            .map(|interval| Point {
                at: began + interval.start_s + interval.length_s / 2.0,
                value: interval.streams_octets.get(index).copied().unwrap_or(0) as f64 * 8.0
                    / interval.length_s
                    / 1e6,
            })
            .collect()
    };
    (0..count).map(flow).collect()
}

fn of_direction(list: &[BulkFigures], direction: Direction) -> Option<&BulkFigures> {
    list.iter().find(|found| found.direction == direction)
}

/// The first run of a bulk measurement.
///
/// # Errors
/// See [`FlentError`].
pub fn of_bulk(result: &BulkResult, start_wall_ns: u64) -> Result<Vec<u8>, FlentError> {
    let directions = result.runs.first().map_or(&[][..], |run| &run.directions);
    let flent = Flent {
        title: format!("trunkline probe bulk by {}", result.transport),
        host: result.server.clone(),
        local_host: near_name(&result.hosts),
        transport: result.transport.to_string(),
        start: start_wall_ns,
        length: (result.duration_s + result.warmup_s).max(STEP),
        step: STEP,
        uploads: flows(of_direction(directions, Direction::Up), 0.0),
        downloads: flows(of_direction(directions, Direction::Down), 0.0),
        ..Flent::default()
    };
    flent.file()
}

/// Messages beside transfers, with the idle time before and after.
///
/// # Errors
/// See [`FlentError`].
pub fn of_load(done: &LoadMeasured, start_wall_ns: u64) -> Result<Vec<u8>, FlentError> {
    let result = &done.result;
    let began = done.observed.iter().filter_map(|(_, observed)| first(observed)).min().unwrap_or(0);
    let all = done.observed.iter().flat_map(|(_, observed)| pings(observed, began));
    let pings: Vec<Point> = all.collect();
    let loaded = result.phases.iter().find(|part| part.phase == Phase::Loaded);
    // The transfers began with the messages beside them.
    let load = loaded.map_or(0.0, |part| seconds((part.began_ns as i64).saturating_sub(began)));
    let flent = Flent {
        title: format!("trunkline probe load by {}", result.load_transport),
        note: result.pace.clone(),
        host: result.server.clone(),
        local_host: near_name(&result.hosts),
        transport: result.transport.to_string(),
        start: start_wall_ns,
        length: length(&pings, 0.0),
        step: STEP,
        uploads: flows(of_direction(&result.transfers, Direction::Up), load),
        downloads: flows(of_direction(&result.transfers, Direction::Down), load),
        pings,
    };
    flent.file()
}
