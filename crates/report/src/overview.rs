//! The table with a column for each engine, as texts: the terminal and the page both show it.

use crate::each_once;
use crate::number;
use crate::report::{INVALID, Shown, Spot};
use crate::summary::Digest;
use serde::Serialize;
use std::collections::{BTreeSet, HashMap, HashSet};
use trunkline_engine::{About, EngineName, Note, NoteKind, Pace, Run};
use trunkline_measure::{Conservation, Quantity, TrafficRun};

/// Why an engine that ran has nothing of a traffic.
const NO_TRAFFIC: &str = "it has nothing of this traffic";
/// Figures that a reason names; of more it tells the number.
const NAMED: usize = 4;

/// One place of the table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Entry {
    /// The value with its spread, `unavailable`, or a dash.
    pub(crate) text: String,
    /// How far it is from the reference engine's, where both have a value.
    pub(crate) difference: Option<String>,
    /// Is it a value of a run that must not be used?
    pub(crate) invalid: bool,
    /// Why there is no value, where there is a dash.
    pub(crate) why: Option<String>,
}

impl Entry {
    /// The value, marked where it must not be used.
    pub(crate) fn marked(&self) -> String {
        if self.invalid { format!("{} {INVALID}", self.text) } else { self.text.clone() }
    }
}

/// A dash of the table, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Absence {
    pub(crate) engine: EngineName,
    /// The coordinates that tell its cell apart.
    pub(crate) cell: String,
    pub(crate) traffic: String,
    pub(crate) figure: String,
    pub(crate) reason: String,
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
    pub(crate) engines: Vec<EngineName>,
    /// Which engine's values the differences are against.
    pub(crate) against: Option<EngineName>,
    /// Which engines have no run at all.
    pub(crate) absent: Vec<EngineName>,
    /// Headings of the coordinates that tell cells apart.
    pub(crate) coordinates: Vec<String>,
    pub(crate) blocks: Vec<Block>,
    /// The dashes, in the order of the table.
    pub(crate) absences: Vec<Absence>,
}

/// A reason in words, with the figures of one traffic that lack a value for it.
fn told(group: &[&Absence]) -> Option<String> {
    let Absence { engine, traffic, reason, .. } = group.first()?;
    let figures = each_once(group.iter().map(|it| it.figure.as_str()));
    let cells = group.iter().map(|it| it.cell.as_str()).collect::<BTreeSet<&str>>().len();
    let mut of = match &figures[..] {
        few if few.len() <= NAMED => {
            few.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
        }
        many => format!("{} figures", many.len()),
    };
    if cells > 1 {
        of.push_str(&format!("; {cells} cells"));
    }
    Some(format!("{} {engine}, {traffic}: {reason} ({of})", number::NONE))
}

impl Overview {
    /// The reasons for the dashes in words: each reason once for a traffic, with the figures that lack a value.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let mut groups: Vec<Vec<&Absence>> = Vec::new();
        let mut places = HashMap::new();
        for absence in &self.absences {
            let Absence { engine, traffic, reason, .. } = absence;
            let place = *places.entry((engine, traffic, reason)).or_insert(groups.len());
            if place == groups.len() {
                groups.push(Vec::new());
            }
            groups[place].push(absence);
        }
        groups.iter().filter_map(|group| told(group)).collect()
    }

    /// Whether any value has a difference.
    pub(crate) fn differs(&self) -> bool {
        let lines = self.blocks.iter().flat_map(|block| &block.lines);
        lines.flat_map(|line| &line.entries).any(|entry| entry.difference.is_some())
    }
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
    let blocks: Vec<Block> = report.spots().into_iter().map(block).collect();
    let cells = report.spots().into_iter().map(|spot| report.label(spot));
    let absences = cells.zip(&blocks).flat_map(|(cell, block)| absences(&engines, &cell, block));
    Overview {
        absences: absences.collect(),
        against: against.filter(|_| engines.len() > 1),
        absent: engines
            .iter()
            .filter(|engine| report.runs.iter().all(|run| run.engine != **engine))
            .copied()
            .collect(),
        coordinates,
        blocks,
        engines,
    }
}

/// The dashes of one cell.
fn absences(engines: &[EngineName], cell: &str, block: &Block) -> Vec<Absence> {
    let of_line = |line: &Line| {
        let (traffic, figure) = (line.traffic.clone(), line.what.clone());
        let absence = move |(engine, entry): (&EngineName, &Entry)| {
            let (cell, traffic, figure) = (cell.to_string(), traffic.clone(), figure.clone());
            let reason = entry.why.clone()?;
            Some(Absence { engine: *engine, cell, traffic, figure, reason })
        };
        engines.iter().zip(&line.entries).filter_map(absence).collect::<Vec<Absence>>()
    };
    block.lines.iter().flat_map(of_line).collect()
}

/// One cell of the grid, engine by engine.
struct Table<'a> {
    digest: &'a Digest<'a>,
    columns: Vec<(EngineName, Option<&'a Run>)>,
    /// Of each column the traffic by name, and what the run's notes say of it.
    known: Vec<Known<'a>>,
}

/// What a run has by the name of its traffic.
#[derive(Default)]
struct Known<'a> {
    traffic: HashMap<&'a str, &'a TrafficRun>,
    notes: HashMap<&'a str, Vec<String>>,
    /// Whether it must not be used. To know that takes all its notes.
    invalid: bool,
}

impl<'a> Known<'a> {
    fn of(run: &'a Run) -> Known<'a> {
        let mut notes: HashMap<&str, Vec<String>> = HashMap::new();
        for (name, text) in run.notes.iter().filter_map(Note::word_on_traffic) {
            notes.entry(name).or_default().push(text);
        }
        // Of two traffics of one name the first counts.
        let traffic = run.traffic.iter().rev().map(|traffic| (traffic.name.as_str(), traffic));
        Known { traffic: traffic.collect(), notes, invalid: !run.is_valid() }
    }
}

impl<'a> Table<'a> {
    fn at(digest: &'a Digest<'a>, spot: Spot<'_>) -> Table<'a> {
        let report = digest.report;
        let column = |engine| (engine, report.run(engine, spot));
        let columns: Vec<_> = report.engines().into_iter().map(column).collect();
        let known = columns.iter().map(|(_, run)| run.map(Known::of).unwrap_or_default());
        Table { digest, known: known.collect(), columns }
    }

    /// What a run of the table has by name.
    fn known(&self, run: &Run) -> Option<&Known<'a>> {
        let is =
            |column: &(EngineName, Option<&Run>)| column.1.is_some_and(|it| std::ptr::eq(it, run));
        self.known.get(self.columns.iter().position(is)?)
    }

    fn is_invalid(&self, run: &Run) -> bool {
        self.known(run).is_some_and(|known| known.invalid)
    }

    /// The traffic of a run of the table.
    fn of(&self, run: &Run, name: &str) -> Option<&'a TrafficRun> {
        self.known(run)?.traffic.get(name).copied()
    }

    /// The traffic of each column that has it.
    fn found<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'a TrafficRun> + Clone + 's {
        self.known.iter().filter_map(move |known| known.traffic.get(name).copied())
    }

    fn lines(&self) -> Vec<Line> {
        let runs = self.columns.iter().filter_map(|(_, run)| *run);
        let names = runs.flat_map(|run| &run.traffic).map(|traffic| traffic.name.as_str());
        let mut known = HashSet::new();
        let names = names.filter(|name| known.insert(*name));
        names.flat_map(|name| self.traffic(name)).collect()
    }

    fn traffic(&self, name: &str) -> Vec<Line> {
        let found = self.found(name);
        let sizes: BTreeSet<u64> = found.clone().flat_map(TrafficRun::sizes).collect();
        let shown = self.shown(name);
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

    /// How the traffic of this name is summarised in the table's cell.
    fn shown(&self, name: &str) -> Shown {
        let run = self.columns.iter().find_map(|(_, run)| *run);
        run.map_or(Shown::default(), |run| self.digest.report.shown.at(Spot::of(run), name))
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
        let why = |run: &'a Run| self.why(run, name, size, quantity);
        let size = number::bytes(size, self.found(name).any(|traffic| traffic.amounts));
        let what = match quantity {
            Quantity::Delay => format!("{size}: {estimator}"),
            Quantity::Response => format!("{size}: {estimator}, as intended"),
            Quantity::Rate => format!("{size}: {estimator} per flow"),
            Quantity::TotalRate => format!("{size}: total"),
        };
        self.line(name, what, (value, why), print)
    }

    /// Why `run` has no figure for `size` bytes of a traffic.
    fn why(&self, run: &Run, name: &str, size: u64, quantity: Quantity) -> String {
        let Some(traffic) = self.of(run, name) else { return NO_TRAFFIC.into() };
        match (self.digest.get(run, name, size), traffic.of_size(size).count()) {
            (Some(row), 0) if row.estimate.is_some() && quantity == Quantity::Rate => {
                format!(
                    "no samples are kept, which the rule '{}' needs of each flow (--samples)",
                    row.estimator
                )
            }
            (Some(row), count) if row.estimate.is_none() && row.throughput().is_none() => {
                format!("the rule '{}' leaves none of {count} measurements", row.estimator)
            }
            (Some(_), _) => "what was measured took no time".into(),
            (None, _) => {
                let told = self.other_sizes(name, size, traffic).or_else(|| self.noted(run, name));
                told.unwrap_or_else(|| {
                    format!(
                        "nothing of this size was completed; {} B were delivered in all",
                        traffic.delivered_bytes
                    )
                })
            }
        }
    }

    /// That a traffic has none of the sizes of those that have `size`: an outside program does otherwise than the
    /// scenario says.
    fn other_sizes(&self, name: &str, size: u64, traffic: &TrafficRun) -> Option<String> {
        let own = traffic.sizes();
        let mut others = self.found(name).map(TrafficRun::sizes).filter(|it| it.contains(&size));
        let shared = others.any(|it| it.iter().any(|size| own.contains(size)));
        let sizes: Vec<String> =
            own.iter().map(|&size| number::bytes(size, traffic.amounts)).collect();
        (!own.is_empty() && !shared)
            .then(|| format!("only other sizes were measured: {}", sizes.join(", ")))
    }

    /// What a traffic without measurements delivered, over the time in which it was under way, or where that is
    /// not known over the whole run.
    fn delivered(&self, name: &str) -> Line {
        let rate = |run: &Run| {
            let traffic = self.of(run, name).filter(|it| !untold(run, it))?;
            let lasted = run.ended.since(trunkline_core::Time::ZERO).as_secs_f64();
            let whole =
                || Some(traffic.delivered_bytes as f64 / lasted).filter(|it| it.is_finite());
            traffic.course_rate().or_else(whole).map(|rate| (rate, 0.0))
        };
        let why = |run: &Run| match self.of(run, name) {
            Some(_) => self.noted(run, name).unwrap_or_else(|| "the run took no time".into()),
            None => NO_TRAFFIC.into(),
        };
        self.line(name, "delivered".into(), (rate, why), |(value, _)| number::rate(value, 0.0))
    }

    fn line(
        &self,
        name: &str,
        what: String,
        (value, why): (impl Fn(&'a Run) -> Option<(f64, f64)>, impl Fn(&'a Run) -> String),
        print: impl Fn((f64, f64)) -> String,
    ) -> Line {
        let against = self.digest.report.against();
        let column = self.columns.iter().find(|(engine, _)| Some(*engine) == against);
        let reference = column.and_then(|(_, run)| run.and_then(&value));
        let entry = |(engine, run): &(EngineName, Option<&'a Run>)| match run.and_then(&value) {
            None => self.absent(*engine, run.map(&why)),
            Some(found) => Entry {
                text: print(found),
                difference: reference
                    .filter(|_| Some(*engine) != against)
                    .map(|(reference, _)| number::difference(found.0, reference)),
                invalid: run.is_some_and(|run| self.is_invalid(run)),
                why: None,
            },
        };
        let entries = self.columns.iter().map(entry).collect();
        Line { traffic: name.into(), transport: self.transport(name), what, entries }
    }

    fn counted(&self, name: &str, what: &str, print: impl Fn(&TrafficRun) -> String) -> Line {
        let entry = |(engine, run): &(EngineName, Option<&'a Run>)| {
            // Formulas count no packets.
            let counted = |traffic: &TrafficRun| traffic.packets != Conservation::default();
            let why = |run: &Run| match self.of(run, name) {
                Some(_) => "no packets are counted".to_string(),
                None => NO_TRAFFIC.into(),
            };
            run.and_then(|run| self.of(run, name)).filter(|it| counted(it)).map_or_else(
                || self.absent(*engine, run.map(why)),
                |traffic| Entry {
                    text: print(traffic),
                    invalid: run.is_some_and(|run| self.is_invalid(run)),
                    ..Entry::default()
                },
            )
        };
        let entries = self.columns.iter().map(entry).collect();
        let (traffic, transport) = (name.into(), self.transport(name));
        Line { traffic, transport, what: what.into(), entries }
    }

    /// What a run itself says of a traffic.
    fn noted(&self, run: &Run, traffic: &str) -> Option<String> {
        Some(self.known(run)?.notes.get(traffic)?.join("; "))
    }

    fn transport(&self, name: &str) -> String {
        let mut known =
            self.found(name).map(|traffic| &traffic.transport).filter(|it| !it.is_empty());
        known.next().cloned().unwrap_or_default()
    }

    /// No value: the engine is not to be had, which a note tells, or `why`; without that, nobody ran the cell.
    fn absent(&self, engine: EngineName, why: Option<String>) -> Entry {
        if self.digest.report.reason(engine).is_some() {
            return Entry { text: "unavailable".into(), ..Entry::default() };
        }
        let why = why.unwrap_or_else(|| "this cell was not run".into());
        Entry { text: number::NONE.into(), why: Some(why), ..Entry::default() }
    }
}

/// Whether the bytes are an outside program's that tells none, or one's that failed: that none are known is no rate of 0.
fn untold(run: &Run, traffic: &TrafficRun) -> bool {
    let about = About::Traffic(traffic.name.clone());
    let unknown = |note: &Note| {
        matches!(note.kind, NoteKind::Program | NoteKind::Failed) && note.about == about
    };
    traffic.delivered_bytes == 0 && run.pace == Pace::Real && run.notes.iter().any(unknown)
}

fn lost(traffic: &TrafficRun) -> String {
    let (lost, sent) = (traffic.packets.dropped, traffic.packets.sent + traffic.packets.duplicated);
    let share = traffic.packets.lost().unwrap_or_default() * 100.0;
    format!("{lost} of {sent} ({} %)", number::short(share))
}
