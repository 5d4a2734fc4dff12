//! The format of `study.toml`: what is run, what it is held against, and how it is judged.

use crate::filter::{Choice, Filter};
use crate::term::{Side, Term};
use crate::unit::Unit;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use trunkline_engine::EngineName;
use trunkline_report::{Axis, FigureKind};

/// A study as written in `study.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Its name: that of its directory.
    pub name: String,
    /// One line for lists and headings.
    pub title: String,
    /// The citation of the report, or the subject of the study if there is no report.
    pub report: String,
    /// A paragraph for `study show` and the page.
    #[serde(default)]
    pub about: String,
    /// Files whose tables are appended to every scenario file: hosts and boards that several
    /// scenarios share, so that a parameter stands in one place only.
    #[serde(default)]
    pub shared: Vec<String>,
    /// What is run or computed, and the table it is held against.
    #[serde(default)]
    pub experiment: Vec<Experiment>,
    /// Values quoted in running text.
    #[serde(default)]
    pub quote: Vec<Quote>,
    /// Charts.
    #[serde(default)]
    pub figure: Vec<FigureSpec>,
    /// The source of each parameter of the scenario files.
    #[serde(default)]
    pub parameter: Vec<Parameter>,
    /// What counts as success.
    #[serde(default)]
    pub goal: Vec<Goal>,
    /// Other worlds: settings changed for whole experiments, never for a cell.
    #[serde(default)]
    pub variant: Vec<Variant>,
}

/// A table: one value for each combination of its key columns.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name, unique in the study.
    pub name: String,
    /// Heading of its table.
    pub title: String,
    /// What is read from the runs.
    pub measure: Measure,
    /// The unit of the values.
    pub unit: Unit,
    /// Scenario file, relative to the study's directory; none for a formula.
    pub scenario: Option<String>,
    /// The variant of it.
    pub variant: Option<String>,
    /// The traffic that is measured.
    pub traffic: Option<String>,
    /// The engine that runs it; the simulator if not given.
    pub engine: Option<EngineName>,
    /// Of a formula without a published table: the experiment before it for each of whose rows it is
    /// evaluated; `where` chooses among them.
    pub rows_of: Option<String>,
    /// The cells of the scenario's grid that count; all if empty.
    #[serde(default)]
    pub cell: Filter,
    /// The source of each key column's values.
    #[serde(default)]
    pub keys: BTreeMap<String, Key>,
    /// The published table, relative to the study's directory.
    pub published: Option<String>,
    /// The column of the published table that holds the value.
    pub value: Option<String>,
    /// Which rows of the published table count; single values also stand as constant key columns.
    #[serde(default, rename = "where")]
    pub filter: Filter,
    /// Relative error up to which a cell counts as agreeing; none if it is only shown.
    pub tolerance: Option<f64>,
    /// Whether rows that the published table marks as suspect are shown and not judged. Only if the doubt
    /// concerns the value compared.
    #[serde(default)]
    pub spare_suspects: bool,
    /// The parts, if rows of one table come from different scenarios or traffic.
    #[serde(default)]
    pub part: Vec<Part>,
    /// A remark for the page.
    #[serde(default)]
    pub note: String,
}

/// Some rows of an experiment; what is left out is as in the experiment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Which published rows, or the constant key columns of these rows.
    #[serde(default, rename = "where")]
    pub filter: Filter,
    /// Scenario file.
    pub scenario: Option<String>,
    /// The variant of it.
    pub variant: Option<String>,
    /// The traffic that is measured.
    pub traffic: Option<String>,
    /// The engine that runs it.
    pub engine: Option<EngineName>,
    /// Which cells of the scenario's grid count.
    #[serde(default)]
    pub cell: Filter,
}

/// The source of a key column's values.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "KeyForm")]
pub struct Key {
    /// `size`, or a coordinate of the grid.
    pub from: String,
    /// Published text to the grid's, of which several may be published alike; the same if not listed.
    pub values: BTreeMap<String, Choice>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum KeyForm {
    Short(String),
    Long(LongKey),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LongKey {
    from: String,
    #[serde(default)]
    values: BTreeMap<String, Choice>,
}

impl From<KeyForm> for Key {
    fn from(form: KeyForm) -> Key {
        match form {
            KeyForm::Short(from) => Key { from, values: BTreeMap::new() },
            KeyForm::Long(LongKey { from, values }) => Key { from, values },
        }
    }
}

/// What is read from a run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Measure {
    /// The delay of samples, for each size.
    Delay {
        /// Which samples count, by the estimator's name.
        estimator: String,
        /// What of them.
        #[serde(default)]
        statistic: Statistic,
    },
    /// User bytes a second of transfers.
    Throughput {
        /// Of all flows together, or of one.
        #[serde(default)]
        of: Share,
        /// Which samples count, by the estimator's name.
        estimator: String,
        /// What of them.
        #[serde(default)]
        statistic: Statistic,
    },
    /// The mean time from one sample's start to the next one's, for each size.
    Interval,
    /// Samples a second, for each size.
    MessageRate,
    /// User bytes a second of samples of one size that follow one another.
    MessageThroughput,
    /// Blocks sent again.
    Retransmissions,
    /// The share of packets that were sent and never came.
    Lost,
    /// Mean time of a packet or block on the lines of its way: queues, lines and distances, one way.
    PathDelay,
    /// How many messages of one size took how long: one value for each range of times that occurs. A key column `from = "range"`
    /// has the lower end of the range, in microseconds.
    Distribution {
        /// User bytes of the messages.
        size: u64,
        /// Microseconds of a range.
        range_us: NonZeroU64,
    },
    /// A figure of the path measured from outside, as `trunkline verify` does, by the probes that the
    /// scenario's one traffic describes; in the emulator.
    Verify {
        /// Which.
        quantity: Quantity,
    },
    /// A formula; evaluated for each published row, or each row of another experiment.
    Formula {
        /// Its name.
        formula: String,
        /// What its parameters stand for.
        #[serde(default)]
        arguments: BTreeMap<String, Term>,
    },
}

/// What is measured of a path from outside (LDS report §3.9); times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Frames that were sent and never came, and that the queue has not refused by its rule.
    Dropped,
    /// Frames behind one with a higher number.
    Reordered,
    /// Second arrivals.
    Duplicated,
    /// Frames sent, both ways.
    Sent,
    /// Half of what the mean round trip with the path is longer than without: the delay of one way.
    Delay,
    /// Standard deviation of round trips with the path.
    DeviationWith,
    /// The same without the path: what the hosts do by themselves.
    DeviationWithout,
    /// What a frame's delay is off from the one that the path then prescribes: 99 in 100 are nearer. The delay may change
    /// by a schedule.
    DelayError,
}

/// A figure about the samples that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Their mean.
    #[default]
    Mean,
    /// Their standard deviation.
    StdDev,
    /// Mean over standard deviation, a pure number.
    MeanOverStdDev,
    /// How many the rule eliminated.
    Eliminated,
}

/// Whose throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// The sum over the flows.
    #[default]
    Total,
    /// The mean of the flows.
    Flow,
}

/// A value quoted in running text, held against ours; or the reason why there is nothing to hold it against.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quote {
    /// The published table it is in.
    pub file: String,
    /// Which row: exactly one.
    pub row: Filter,
    /// The subject of the comparison, in a few words; the row's own words if empty.
    #[serde(default)]
    pub title: String,
    /// The column of the value.
    #[serde(default = "value_column")]
    pub value: String,
    /// Ours.
    pub ours: Option<Term>,
    /// The unit of both; a pure number if not given.
    #[serde(default)]
    pub unit: Unit,
    /// Relative error up to which ours counts as agreeing.
    pub tolerance: Option<f64>,
    /// Ours has to lie in this range, if the text names a range or none but words.
    pub between: Option<[f64; 2]>,
    /// Why there is no value of ours.
    pub none: Option<String>,
}

fn value_column() -> String {
    "value".into()
}

/// A chart and the experiments that it shows.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// Name of its file.
    pub name: String,
    /// FigureKind of chart.
    pub kind: FigureKind,
    /// Heading.
    pub title: String,
    /// A sentence below.
    #[serde(default)]
    pub caption: String,
    /// The axis of places.
    pub x: Axis,
    /// The axis of values.
    pub y: Axis,
    /// What it shows.
    pub series: Vec<SeriesSpec>,
}

/// Rows of an experiment as one or several series.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeriesSpec {
    /// Whose rows.
    pub experiment: String,
    /// Which of them.
    #[serde(default, rename = "where")]
    pub filter: Filter,
    /// The key columns that give the place on the x axis; several are joined to one category.
    #[serde(default)]
    pub x: Vec<String>,
    /// Or the value of another experiment under the same keys.
    pub x_experiment: Option<String>,
    /// One series for each combination of values of these key columns.
    #[serde(default)]
    pub by: Vec<String>,
    /// Only ours, or only the published values; both if not given.
    pub side: Option<Side>,
    /// What the legend calls it, before the value of `by`.
    #[serde(default)]
    pub name: String,
    /// The legend's names for the values of `by`; the values themselves if not listed.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// The source of a parameter.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The file it stands in, relative to the study's directory.
    pub file: String,
    /// Its path: `interface.kmc.requests`, `link.t1.rate`.
    pub key: String,
    /// The section that states it.
    pub section: Option<String>,
    /// The reason for thinking so, if no section states it.
    pub inferred: Option<String>,
    /// The parameter whose value it takes over, and why: nothing new is inferred.
    pub like: Option<String>,
    /// The reason for it, if it only says how we went about the test and decides no figure.
    pub choice: Option<String>,
}

impl Parameter {
    /// The kind of its provenance and the text, if there is exactly one.
    pub fn provenance(&self) -> Option<(Provenance, &str)> {
        let all = [
            (Provenance::Stated, &self.section),
            (Provenance::Inferred, &self.inferred),
            (Provenance::Like, &self.like),
            (Provenance::Choice, &self.choice),
        ];
        let mut given = all.into_iter().filter_map(|(kind, text)| Some((kind, text.as_deref()?)));
        given.next().filter(|_| given.next().is_none())
    }
}

/// The source of a parameter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provenance {
    /// A section of the report states it.
    Stated,
    /// Nothing states it: it is thought to be so.
    Inferred,
    /// It is that of another parameter.
    Like,
    /// It says how the test is run and decides no figure.
    Choice,
}

impl std::fmt::Display for Provenance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Provenance::Stated => "stated",
            Provenance::Inferred => "inferred",
            Provenance::Like => "like another",
            Provenance::Choice => "choice",
        })
    }
}

/// Settings changed for whole experiments.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// What is different and why.
    pub title: String,
    /// Path in the scenario file to the new value.
    pub set: BTreeMap<String, toml::Value>,
}

/// What counts as success.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// In one sentence.
    pub title: String,
    /// Whose rows.
    pub experiment: String,
    /// Which of them.
    #[serde(default, rename = "where")]
    pub filter: Filter,
    /// What of them.
    pub judge: Judge,
}

/// How rows are judged.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Judge {
    /// A share of the rows lies within a relative error of the published value.
    Share {
        /// The relative error; the experiment's if not given.
        tolerance: Option<f64>,
        /// The least share, 0 to 1.
        at_least: f64,
    },
    /// A share of the rows lies within a factor of the published value.
    Factor {
        /// Ours over published is no more than this and no less than its inverse.
        factor: f64,
        /// The least share, 0 to 1.
        at_least: f64,
    },
    /// The median of ours over published lies in a range.
    MedianRatio {
        /// Lowest.
        low: f64,
        /// Highest.
        high: f64,
    },
    /// Ours of the rows of `over` divided by ours of the rows judged, with all other keys the same, is at
    /// least so much in every row.
    Ratio {
        /// The key columns in which numerator rows differ, and their values there.
        over: Filter,
        /// The least ratio.
        at_least: f64,
    },
    /// Ours lies in a range in every row; in the experiment's unit.
    Between {
        /// Lowest.
        low: f64,
        /// Highest.
        high: f64,
    },
    /// Ours never rises along a key column, but by no more than a slack; among rows that agree in all other
    /// keys.
    Falling {
        /// The key column.
        along: String,
        /// In the experiment's unit.
        #[serde(default)]
        slack: f64,
    },
    /// Ours is greatest at one of these values of a key column.
    Peak {
        /// The key column.
        along: String,
        /// The values.
        at: Vec<f64>,
    },
    /// Ours at one value of a key column, over the greatest, lies in a range.
    Decline {
        /// The key column.
        along: String,
        /// The value.
        at: f64,
        /// Lowest.
        low: f64,
        /// Highest.
        high: f64,
    },
}
