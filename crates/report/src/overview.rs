//! The table with a column for each engine, as texts: the terminal and the page both show it.

use crate::number;
use crate::report::{Shown, Spot, engine_name};
use crate::summary::Digest;
use std::collections::BTreeSet;
use trunkline_measure::{Conservation, Engine, Quantity, Run, TrafficRun};

/// One place of the table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Entry {
    /// The value with its spread, `unavailable`, or a dash.
    pub(crate) text: String,
    /// How far it is from the reference engine's, where both have a value.
    pub(crate) difference: Option<String>,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) traffic: String,
    /// What its ends speak.
    pub(crate) transport: String,
    pub(crate) what: String,
    /// One for each engine.
    pub(crate) entries: Vec<Entry>,
}

/// The rows of one cell.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Block {
    /// The coordinates, one for each of [`Overview::coordinates`].
    pub(crate) place: Vec<String>,
    pub(crate) lines: Vec<Line>,
}

/// The whole table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Overview {
    pub(crate) engines: Vec<&'static str>,
    /// Which engine's values the differences are against.
    pub(crate) against: Option<&'static str>,
    /// Which engines have no run at all.
    pub(crate) absent: Vec<&'static str>,
    /// Headings of the coordinates that tell cells apart.
    pub(crate) coordinates: Vec<String>,
    pub(crate) blocks: Vec<Block>,
}

/// Lays out the table of `report`.
pub(crate) fn overview(digest: &Digest<'_>) -> Overview {
    let report = digest.report;
    let engines = report.engines();
    let against = report.against();
    let (scenarios, keys) = report.varying();
    let scenario = scenarios.then(|| "scenario".to_string());
    let coordinates = scenario.into_iter().chain(keys.iter().map(|key| key.to_string())).collect();
    let place = |spot: Spot<'_>| {
        let value = |key: &&str| spot.cell.get(*key).cloned().unwrap_or_default();
        let scenario = scenarios.then(|| spot.scenario.to_string());
        scenario.into_iter().chain(keys.iter().map(value)).collect()
    };
    let block = |spot| Block { place: place(spot), lines: Table::at(digest, spot).lines() };
    Overview {
        against: against.filter(|_| engines.len() > 1).map(engine_name),
        absent: engines
            .iter()
            .filter(|engine| report.runs.iter().all(|run| run.engine != **engine))
            .map(|engine| engine_name(*engine))
            .collect(),
        coordinates,
        blocks: report.spots().into_iter().map(block).collect(),
        engines: engines.into_iter().map(engine_name).collect(),
    }
}

/// One cell of the grid, engine by engine.
struct Table<'a> {
    digest: &'a Digest<'a>,
    columns: Vec<(Engine, Option<&'a Run>)>,
}

impl<'a> Table<'a> {
    fn at(digest: &'a Digest<'a>, spot: Spot<'_>) -> Table<'a> {
        let report = digest.report;
        let column = |engine| (engine, report.run(engine, spot));
        Table { digest, columns: report.engines().into_iter().map(column).collect() }
    }

    fn lines(&self) -> Vec<Line> {
        let mut names: Vec<&str> = Vec::new();
        for run in self.columns.iter().filter_map(|(_, run)| *run) {
            for traffic in &run.traffic {
                if !names.contains(&traffic.name.as_str()) {
                    names.push(&traffic.name);
                }
            }
        }
        names.into_iter().flat_map(|name| self.traffic(name)).collect()
    }

    fn traffic(&self, name: &str) -> Vec<Line> {
        let found =
            self.columns.iter().filter_map(|(_, run)| run.and_then(|run| run.traffic(name)));
        let sizes: BTreeSet<u64> = found.clone().flat_map(TrafficRun::sizes).collect();
        let shown = self.digest.report.shown(name);
        let mut lines: Vec<Line> =
            sizes.iter().flat_map(|size| self.size(name, *size, shown)).collect();
        if sizes.is_empty() {
            lines.push(self.delivered(name));
        }
        if found.clone().any(|traffic| traffic.packets.dropped > 0) {
            lines.push(self.counted(name, "packets lost", lost));
        }
        if found.clone().any(|traffic| traffic.retransmissions > 0) {
            lines.push(self.counted(name, "sent again", |t| t.retransmissions.to_string()));
        }
        if found.clone().any(|traffic| traffic.timeouts > 0) {
            lines.push(self.counted(name, "time-outs", |t| t.timeouts.to_string()));
        }
        lines
    }

    /// A delay has one row, a transfer one for the flow and one for all flows together.
    fn size(&self, name: &str, size: u64, shown: Shown) -> Vec<Line> {
        let kinds: &[Quantity] = match shown.quantity {
            Quantity::Rate | Quantity::TotalRate => &[Quantity::Rate, Quantity::TotalRate],
            Quantity::Delay => &[Quantity::Delay],
            Quantity::Response => &[Quantity::Response],
        };
        kinds.iter().map(|kind| self.value(name, size, *kind, shown)).collect()
    }

    fn value(&self, name: &str, size: u64, quantity: Quantity, shown: Shown) -> Line {
        let value =
            |run: &'a Run| self.digest.get(run, name, size).and_then(|row| row.value_of(quantity));
        let print = |(value, deviation)| match quantity {
            Quantity::Delay | Quantity::Response => number::time(value, deviation),
            Quantity::Rate => number::rate(value, deviation),
            Quantity::TotalRate => number::rate(value, 0.0),
        };
        let estimator = shown.estimator;
        let what = match quantity {
            Quantity::Delay => format!("{}: {estimator}", number::bytes(size)),
            Quantity::Response => format!("{}: {estimator}, as intended", number::bytes(size)),
            Quantity::Rate => format!("{}: {estimator} per flow", number::bytes(size)),
            Quantity::TotalRate => format!("{}: total", number::bytes(size)),
        };
        self.line(name, what, value, print)
    }

    /// What a traffic without measurements delivered, over the whole run.
    fn delivered(&self, name: &str) -> Line {
        let rate = |run: &Run| {
            let rate = run.traffic(name)?.delivered_bytes as f64
                / run.ended.since(trunkline_core::Time::ZERO).as_secs_f64();
            rate.is_finite().then_some((rate, 0.0))
        };
        self.line(name, "delivered".into(), rate, |(value, _)| number::rate(value, 0.0))
    }

    fn line(
        &self,
        name: &str,
        what: String,
        value: impl Fn(&'a Run) -> Option<(f64, f64)>,
        print: impl Fn((f64, f64)) -> String,
    ) -> Line {
        let against = self.digest.report.against();
        let column = self.columns.iter().find(|(engine, _)| Some(*engine) == against);
        let reference = column.and_then(|(_, run)| run.and_then(&value));
        let entry = |(engine, run): &(Engine, Option<&'a Run>)| match run.and_then(&value) {
            None => self.absent(*engine),
            Some(found) => Entry {
                text: print(found),
                difference: reference
                    .filter(|_| Some(*engine) != against)
                    .map(|(reference, _)| number::difference(found.0, reference)),
            },
        };
        let entries = self.columns.iter().map(entry).collect();
        Line { traffic: name.into(), transport: self.transport(name), what, entries }
    }

    fn counted(&self, name: &str, what: &str, print: impl Fn(&TrafficRun) -> String) -> Line {
        let entry = |(engine, run): &(Engine, Option<&'a Run>)| {
            // Formulas count no packets.
            let counted = |traffic: &&TrafficRun| traffic.packets != Conservation::default();
            run.and_then(|run| run.traffic(name)).filter(counted).map_or_else(
                || self.absent(*engine),
                |traffic| Entry { text: print(traffic), difference: None },
            )
        };
        let entries = self.columns.iter().map(entry).collect();
        let (traffic, transport) = (name.into(), self.transport(name));
        Line { traffic, transport, what: what.into(), entries }
    }

    fn transport(&self, name: &str) -> String {
        let runs = self.columns.iter().filter_map(|(_, run)| run.and_then(|run| run.traffic(name)));
        let mut known = runs.map(|traffic| &traffic.transport).filter(|it| !it.is_empty());
        known.next().cloned().unwrap_or_default()
    }

    fn absent(&self, engine: Engine) -> Entry {
        let text =
            if self.digest.report.reason(engine).is_some() { "unavailable" } else { number::NONE };
        Entry { text: text.into(), difference: None }
    }
}

fn lost(traffic: &TrafficRun) -> String {
    let (lost, sent) = (traffic.packets.dropped, traffic.packets.sent + traffic.packets.duplicated);
    let share = lost as f64 / sent as f64 * 100.0;
    format!("{lost} of {sent} ({} %)", number::short(share))
}
