//! A figure as data: what is drawn, not how.

use crate::report::INVALID;
use serde::{Deserialize, Serialize};
use trunkline_engine::EngineName;

/// What kind of chart shows the points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Upright bars, one group for each category of the x axis.
    Bars,
    /// Points joined by lines, with markers.
    Lines,
    /// A cumulative distribution: x is the value, y the share of samples (0 to 1) that do not exceed it.
    Cdf,
    /// One marker for each point over time, not joined.
    TimeSeries,
    /// A quantity that holds until the next point: bytes in a queue over time.
    QueueDepth,
    /// Horizontal bars, one for each category of the x axis, stacked from series; each begins at the end of the one
    /// above, so that the last ends at the sum.
    Waterfall,
    /// Horizontal bars, one for each category of the x axis, stacked from series; all begin at zero.
    Stacked,
}

/// How an axis maps values to positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal ratios; what is not above zero has no place on it and is counted below the chart.
    Log,
    /// One place for each distinct value; in numerical order if all are numbers, else as they come.
    Category,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// In which unit; empty for none.
    pub unit: String,
    /// How.
    pub scale: Scale,
    /// Its latest beginning; from the points if not given.
    pub from: Option<f64>,
    /// Its earliest end; from the points if not given.
    pub to: Option<f64>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str, unit: &str) -> Axis {
        Axis { label: label.into(), unit: unit.into(), ..Axis::default() }
    }
    /// An axis with one place for each distinct value.
    pub fn category(label: &str, unit: &str) -> Axis {
        Axis { scale: Scale::Category, ..Axis::linear(label, unit) }
    }
    /// Label and unit as printed beside it.
    pub fn caption(&self) -> String {
        match (self.label.is_empty(), self.unit.is_empty()) {
            (_, true) => self.label.clone(),
            (true, false) => self.unit.clone(),
            (false, false) => format!("{} ({})", self.label, self.unit),
        }
    }
}

/// The origin of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A published figure: hollow markers, dashed.
    Published,
    /// Ours, whichever engine.
    #[default]
    Ours,
    /// The formulas.
    Model,
    /// The simulator.
    Sim,
    /// The emulator.
    Emu,
}

impl From<EngineName> for Role {
    fn from(engine: EngineName) -> Role {
        match engine {
            EngineName::MODEL => Role::Model,
            EngineName::SIM => Role::Sim,
            EngineName::EMU => Role::Emu,
            _ => Role::Ours,
        }
    }
}

/// A place on the x axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Place {
    /// A number.
    Number(f64),
    /// A category's name.
    Text(String),
}

impl From<f64> for Place {
    fn from(number: f64) -> Place {
        Place::Number(number)
    }
}

impl From<&str> for Place {
    fn from(text: &str) -> Place {
        Place::Text(text.into())
    }
}

/// One point of a series, with its error bar if it has one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Its place on the x axis.
    pub x: Place,
    /// The value, in the y axis' unit.
    pub y: f64,
    /// Lower end of the error bar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of the error bar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether it is of a run that must not be used. It is crossed out, and its tip says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invalid: bool,
}

impl Point {
    /// A point without error bar.
    pub fn new(x: impl Into<Place>, y: f64) -> Point {
        Point { x: x.into(), y, low: None, high: None, invalid: false }
    }
    /// The same point of a run that may be used, or not.
    pub fn of_valid(self, valid: bool) -> Point {
        Point { invalid: !valid, ..self }
    }
    /// The same point with an error bar that reaches `by` to both sides.
    pub fn spread(self, by: f64) -> Point {
        Point { low: Some(self.y - by), high: Some(self.y + by), ..self }
    }
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// Its origin.
    pub role: Role,
    /// Series of one group share colour and marker, so that published and ours are seen as a pair.
    pub group: Option<String>,
    /// The points.
    pub points: Vec<Point>,
}

impl Series {
    /// Its name with what of it must not be used.
    pub(crate) fn legend(&self) -> String {
        let invalid = self.points.iter().filter(|point| point.invalid).count();
        match (invalid, self.points.len()) {
            (0, _) => self.name.clone(),
            (some, all) if some == all => format!("{} {INVALID}", self.name),
            (some, all) => format!("{} ({some} of {all} {INVALID})", self.name),
        }
    }
}

/// A figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Name of the file and of its parts, unique in a report: letters, digits, `-` and `_`; anything else is
    /// replaced by `-`.
    pub name: String,
    /// FigureKind of chart.
    pub kind: FigureKind,
    /// Heading.
    pub title: String,
    /// A sentence below it on the page.
    #[serde(default)]
    pub caption: String,
    /// The axis of places; of `waterfall` and `stacked` it runs downward.
    #[serde(default)]
    pub x: Axis,
    /// The axis of values.
    #[serde(default)]
    pub y: Axis,
    /// What is shown.
    #[serde(default)]
    pub series: Vec<Series>,
}

impl Figure {
    /// The name as a file name and identifier.
    pub fn slug(&self) -> String {
        let keep = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' };
        let slug: String = self.name.chars().map(keep).collect();
        if slug.is_empty() { "figure".into() } else { slug }
    }
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }
}

/// The steps of a cumulative distribution of `values`: for each distinct value the share that does not
/// exceed it. Values that are not finite are left out.
pub fn distribution(values: impl IntoIterator<Item = f64>) -> Vec<Point> {
    let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let total = sorted.len() as f64;
    let mut points: Vec<Point> = Vec::new();
    for (index, value) in sorted.iter().enumerate() {
        let share = (index + 1) as f64 / total;
        match points.last_mut() {
            Some(last) if last.x == Place::Number(*value) => last.y = share,
            _ => points.push(Point::new(*value, share)),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_can_write_a_figure_down() {
        let figure: Figure = toml::from_str(
            r#"
            name = "figure 3"
            kind = "lines"
            title = "Round trip over message size"
            x = { label = "message", unit = "bytes", scale = "category" }
            y = { label = "round trip", unit = "ms", scale = "log", from = 1 }
            [[series]]
            name = "Hawley 1989"
            role = "published"
            group = "kmc"
            points = [{ x = 1, y = 12.5 }, { x = "2048", y = 80, low = 78.0, high = 83 }]
            "#,
        )
        .unwrap();
        assert_eq!(figure.slug(), "figure-3");
        assert_eq!(figure.series[0].points[1].x, Place::Text("2048".into()));
        assert_eq!(figure.y.caption(), "round trip (ms)");
        assert!(
            toml::from_str::<Figure>("name='a'\nkind='lines'\ntitle='b'\ncolour='red'").is_err()
        );
    }

    #[test]
    fn a_distribution_reaches_one() {
        let points = distribution([3.0, 1.0, f64::NAN, 1.0, 2.0]);
        let shares: Vec<f64> = points.iter().map(|point| point.y).collect();
        assert_eq!(shares, [0.5, 0.75, 1.0]);
    }
}
