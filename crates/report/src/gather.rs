//! The figures that every report has, made from its runs: what was measured by engine and cell, its
//! spread and its course over time, the fill of the queues, the causes of time.

use crate::against::comparison_figures;
use crate::axis::{is_numeric, numbered};
use crate::figure::{Axis, Figure, FigureKind, Place, Point, Role, Series, distribution};
use crate::names;
use crate::report::{Report, Shown, Spot, run_name};
use crate::steps::step_sums;
use crate::summary::Digest;
use std::collections::BTreeSet;
use trunkline_core::Cause;
use trunkline_engine::{EngineName, Run};
use trunkline_measure::{Quantity, TrafficRun};

/// Series in one chart: what can be told apart.
const SERIES: usize = 8;
/// Groups of series in one figure of several engines, which has a panel for each.
const PANELS: usize = 12;
/// Cells of which each has charts of its own.
pub(crate) const CELLS: usize = 4;
/// Sizes in the charts of one cell.
const SIZES: usize = 3;

/// Cells whose curves over message sizes go into one chart.
fn per_chart(report: &Report) -> usize {
    if ran(report) > 1 { PANELS } else { SERIES }
}

/// How many engines have measured anything.
fn ran(report: &Report) -> usize {
    let runs = report.runs.iter().filter(|run| !run.traffic.is_empty());
    runs.map(|run| run.engine).collect::<BTreeSet<EngineName>>().len()
}

/// Cells whose curves over message sizes are drawn.
pub(crate) fn curves_cells(report: &Report) -> usize {
    per_chart(report) * CELLS
}

/// The figures asked for, those of the comparisons, then those made from the runs.
pub fn figures(report: &Report) -> Vec<Figure> {
    figures_of(&Digest::of(report))
}

/// The same, of what is worked out already.
pub(crate) fn figures_of(digest: &Digest<'_>) -> Vec<Figure> {
    let report = digest.report;
    let mut figures = report.figures.clone();
    for (index, comparison) in report.comparisons.iter().enumerate() {
        figures.extend(comparison_figures(&format!("against-{index}"), comparison));
    }
    let mut names: Vec<&str> = Vec::new();
    for traffic in report.runs.iter().flat_map(|run| &run.traffic) {
        if !names.contains(&traffic.name.as_str()) {
            names.push(&traffic.name);
        }
    }
    for (index, name) in names.iter().enumerate() {
        figures.extend(measured(digest, name, index));
    }
    for (cell, spot) in report.spots().into_iter().take(CELLS).enumerate() {
        for (index, name) in names.iter().enumerate() {
            let one =
                One { digest, report, spot, traffic: name, label: report.label(spot), cell, index };
            figures.extend(one.figures());
        }
        figures.extend(queues(report, spot, cell));
    }
    figures.retain(|figure| !figure.is_empty() || report.figures.contains(figure));
    figures.iter_mut().for_each(numbered);
    figures
}

/// A unit in which `largest` nanoseconds are a number of few digits, and what to divide by.
fn time_unit(largest: f64) -> (f64, &'static str) {
    match largest {
        l if l >= 2e10 => (1e9, "s"),
        l if l >= 2e5 => (1e6, "ms"),
        l if l >= 2e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    }
}

/// The same for bytes each second, shown as bits each second.
fn rate_unit(largest: f64) -> (f64, &'static str) {
    match largest * 8.0 {
        l if l >= 2e9 => (1e9 / 8.0, "Gbit/s"),
        l if l >= 2e6 => (1e6 / 8.0, "Mbit/s"),
        l if l >= 2e3 => (1e3 / 8.0, "kbit/s"),
        _ => (1.0 / 8.0, "bit/s"),
    }
}

fn axis_name(shown: Shown) -> String {
    let what = match shown.quantity {
        Quantity::Delay => "delay",
        Quantity::Response => "delay from the intended start",
        Quantity::Rate => "throughput per flow",
        Quantity::TotalRate => "throughput in all",
    };
    format!("{what}, {}", shown.estimator)
}

/// With the engine, if only one has run: the legend then names the cells alone.
fn measured_title(report: &Report, traffic: &str, shown: Shown) -> String {
    let title = format!("{traffic}: {}", axis_name(shown));
    match report.runs.iter().find(|run| !run.traffic.is_empty()) {
        Some(run) if ran(report) == 1 => format!("{title} ({})", run.engine),
        _ => title,
    }
}

/// The places of a series, as far as they are texts.
fn texts(series: &Series) -> impl Iterator<Item = &str> {
    series.points.iter().filter_map(|point| match &point.x {
        Place::Text(text) => Some(text.as_str()),
        Place::Number(_) => None,
    })
}

/// What was measured of one traffic: over sizes with a curve for each engine and cell, over one coordinate
/// of the grid with a curve for each engine and each of the others' values, or over cells.
fn measured(digest: &Digest<'_>, traffic: &str, index: usize) -> Vec<Figure> {
    if let Some(figures) = over_longest(digest, traffic, index) {
        return figures;
    }
    let report = digest.report;
    let shown = report.shown(traffic);
    let found = report.runs.iter().filter_map(|run| run.traffic(traffic));
    let sizes: BTreeSet<u64> = found.flat_map(TrafficRun::sizes).collect();
    let spots = report.spots();
    let over_sizes = sizes.len() > 1;
    // Cells that share a curve are many for one chart.
    let per_chart =
        if size_key(report, traffic).is_some() { spots.len() } else { per_chart(report) };
    let chunks: Vec<&[Spot<'_>]> =
        if over_sizes { spots.chunks(per_chart).take(CELLS).collect() } else { vec![&spots] };
    chunks
        .into_iter()
        .enumerate()
        .filter(|_| !sizes.is_empty())
        .map(|(chunk, spots)| {
            let series = if over_sizes {
                by_size(digest, traffic, spots)
            } else {
                by_cell(digest, traffic, spots)
            };
            let curves = over_sizes || is_numeric(series.iter().flat_map(texts));
            let mut figure = Figure {
                name: format!("measured-{index}-{chunk}"),
                kind: if curves { FigureKind::Lines } else { FigureKind::Bars },
                title: measured_title(report, traffic, shown),
                caption: String::new(),
                x: if over_sizes { Axis::category("message", "bytes") } else { cell_axis(report) },
                y: Axis::linear(&axis_name(shown), ""),
                series,
            };
            scale(&mut figure, shown);
            figure
        })
        .collect()
}

/// Of a traffic with one size in a grid of several axes: curves over the axis with the most values.
fn over_longest(digest: &Digest<'_>, traffic: &str, index: usize) -> Option<Vec<Figure>> {
    let report = digest.report;
    let shown = report.shown(traffic);
    let found = report.runs.iter().filter_map(|run| run.traffic(traffic));
    let sizes: BTreeSet<u64> = found.flat_map(TrafficRun::sizes).collect();
    let size = sizes.first().filter(|_| sizes.len() == 1)?;
    let (false, keys @ [_, _, ..]) = (report.varying().0, &report.varying().1[..]) else {
        return None;
    };
    let values = |key: &str| {
        let values = report.spots().into_iter().filter_map(|spot| spot.cell.get(key));
        values.collect::<BTreeSet<&String>>().len()
    };
    // The first of the longest.
    let longest = keys.iter().rev().max_by_key(|key| values(key))?;
    let groups = grouped(report, longest);
    let figure = |(chunk, groups): (usize, &[(String, Vec<Spot<'_>>)])| {
        let mut figure = Figure {
            name: format!("measured-{index}-{chunk}"),
            kind: FigureKind::Lines,
            title: measured_title(report, traffic, shown),
            caption: String::new(),
            x: Axis::category(&names::coordinate(longest), ""),
            y: Axis::linear(&axis_name(shown), ""),
            series: groups
                .iter()
                .flat_map(|group| along(digest, traffic, *size, longest, group))
                .collect(),
        };
        scale(&mut figure, shown);
        figure
    };
    Some(groups.chunks(per_chart(report)).take(CELLS).enumerate().map(figure).collect())
}

/// The cells that differ in `key` alone, under what the other coordinates are.
fn grouped<'a>(report: &'a Report, key: &str) -> Vec<(String, Vec<Spot<'a>>)> {
    let mut groups: Vec<(String, Vec<Spot<'a>>)> = Vec::new();
    let keys = report.varying().1;
    for spot in report.spots() {
        let others = keys.iter().filter(|other| **other != key);
        let pair = |other: &&str| {
            Some(format!("{} = {}", names::coordinate(other), spot.cell.get(*other)?))
        };
        let name = others.filter_map(pair).collect::<Vec<String>>().join(", ");
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, spots)) => spots.push(spot),
            None => groups.push((name, vec![spot])),
        }
    }
    groups
}

/// A curve for each engine over the values of `key`.
fn along(
    digest: &Digest<'_>,
    traffic: &str,
    size: u64,
    key: &str,
    (label, spots): &(String, Vec<Spot<'_>>),
) -> Vec<Series> {
    let report = digest.report;
    let series = |engine| {
        let points = spots.iter().filter_map(|spot| {
            let run = report.run(engine, *spot)?;
            point(digest, run, traffic, size, spot.cell.get(key)?)
        });
        Series {
            name: series_name(report, engine, label),
            role: Role::from(engine),
            group: Some(label.clone()),
            points: points.collect(),
        }
    };
    let all = report.engines().into_iter().map(series);
    all.filter(|series: &Series| !series.points.is_empty()).collect()
}

fn cell_axis(report: &Report) -> Axis {
    match report.varying() {
        (false, keys) if keys.len() == 1 => Axis::category(&names::coordinate(keys[0]), ""),
        _ => Axis::category("", ""),
    }
}

/// Curves over sizes, one for each engine and cell. If a coordinate is the size in other words, the cells that differ
/// in it alone share a curve.
fn by_size(digest: &Digest<'_>, name: &str, spots: &[Spot<'_>]) -> Vec<Series> {
    let report = digest.report;
    let mut curves: Vec<Series> = Vec::new();
    let without = size_key(report, name);
    for run in spots.iter().flat_map(|spot| report.runs_at(*spot)) {
        let Some(traffic) = run.traffic(name) else { continue };
        let label = report.label_without(Spot::of(run), without);
        let sizes = traffic.sizes().into_iter();
        let points = sizes.filter_map(|size| point(digest, run, name, size, &size.to_string()));
        let title = series_name(report, run.engine, &label);
        match curves.iter_mut().find(|curve| curve.name == title) {
            Some(curve) => curve.points.extend(points),
            None => curves.push(Series {
                name: title,
                role: Role::from(run.engine),
                group: (spots.len() > 1).then_some(label),
                points: points.collect(),
            }),
        }
    }
    curves
}

/// The coordinate of which each value has one size, and each size one value.
fn size_key<'a>(report: &'a Report, name: &str) -> Option<&'a str> {
    let pairs = |key: &str| -> Option<BTreeSet<(String, u64)>> {
        let found = report.runs.iter().filter_map(|run| Some((run, run.traffic(name)?)));
        found
            .map(|(run, traffic)| match traffic.sizes()[..] {
                [size] => Some((run.cell.get(key)?.clone(), size)),
                _ => None,
            })
            .collect()
    };
    let is_size = |key: &&str| {
        pairs(key).is_some_and(|pairs| {
            let values: BTreeSet<&String> = pairs.iter().map(|(value, _)| value).collect();
            let sizes: BTreeSet<u64> = pairs.iter().map(|(_, size)| *size).collect();
            values.len() == pairs.len() && sizes.len() == pairs.len()
        })
    };
    report.varying().1.into_iter().find(is_size)
}

fn by_cell(digest: &Digest<'_>, name: &str, spots: &[Spot<'_>]) -> Vec<Series> {
    let report = digest.report;
    let place = |spot: Spot<'_>| match report.varying() {
        (false, keys) if keys.len() == 1 => spot.cell.get(keys[0]).cloned().unwrap_or_default(),
        _ if spots.len() == 1 => name.to_string(),
        _ => report.label(spot),
    };
    let series = |engine| {
        let points = spots.iter().filter_map(|spot| {
            let run = report.run(engine, *spot)?;
            let traffic = run.traffic(name)?;
            point(digest, run, name, *traffic.sizes().first()?, &place(*spot))
        });
        Series {
            name: engine.to_string(),
            role: Role::from(engine),
            group: None,
            points: points.collect(),
        }
    };
    let all = report.engines().into_iter().map(series);
    all.filter(|series: &Series| !series.points.is_empty()).collect()
}

/// A cell's series: its engine if there are several, and its coordinates.
fn series_name(report: &Report, engine: EngineName, label: &str) -> String {
    match (ran(report), label) {
        (0 | 1, label) if !label.is_empty() => label.into(),
        _ => joined(engine.as_str(), label),
    }
}

fn joined(first: &str, second: &str) -> String {
    if second.is_empty() { first.into() } else { format!("{first}, {second}") }
}

fn point(digest: &Digest<'_>, run: &Run, traffic: &str, size: u64, x: &str) -> Option<Point> {
    let (value, deviation) = digest.get(run, traffic, size)?.value()?;
    let point = Point::new(x, value).of_valid(run.is_valid());
    Some(if deviation > 0.0 { point.spread(deviation) } else { point })
}

/// Brings all values into the unit that suits them.
fn scale(figure: &mut Figure, shown: Shown) {
    let values = figure.series.iter().flat_map(|series| &series.points).map(|point| point.y);
    let largest = values.fold(0.0, f64::max);
    let (divisor, unit) = if shown.is_rate() { rate_unit(largest) } else { time_unit(largest) };
    figure.y.unit = unit.into();
    for point in figure.series.iter_mut().flat_map(|series| &mut series.points) {
        point.y /= divisor;
        point.low = point.low.map(|low| (low / divisor).max(0.0));
        point.high = point.high.map(|high| high / divisor);
    }
}

/// One traffic in one cell.
struct One<'a> {
    digest: &'a Digest<'a>,
    report: &'a Report,
    spot: Spot<'a>,
    traffic: &'a str,
    label: String,
    cell: usize,
    index: usize,
}

impl<'a> One<'a> {
    fn figures(&self) -> Vec<Figure> {
        let mut figures = vec![self.spread(), self.over_time(), self.ledger()];
        figures.extend(self.waterfalls());
        figures
    }

    fn figure(
        &self,
        name: &str,
        kind: FigureKind,
        what: &str,
        x: Axis,
        y: Axis,
        series: Vec<Series>,
    ) -> Figure {
        Figure {
            name: format!("{name}-{}-{}", self.cell, self.index),
            kind,
            title: joined(&format!("{}: {what}", self.traffic), &self.label),
            caption: String::new(),
            x,
            y,
            series,
        }
    }

    fn runs(&self) -> impl Iterator<Item = (&'a Run, &'a TrafficRun)> {
        let name = self.traffic;
        let runs = self.report.runs_at(self.spot).into_iter();
        runs.filter_map(move |run| Some((run, run.traffic(name)?)))
    }

    /// At most [`SIZES`] sizes, the least and the greatest among them.
    fn sizes(&self) -> Vec<u64> {
        let sizes: BTreeSet<u64> = self.runs().flat_map(|(_, traffic)| traffic.sizes()).collect();
        let sizes: Vec<u64> = sizes.into_iter().collect();
        if sizes.len() <= SIZES {
            return sizes;
        }
        (0..SIZES).map(|i| sizes[i * (sizes.len() - 1) / (SIZES - 1)]).collect()
    }

    /// A series for each engine and size, of the values that `points` makes of a traffic.
    fn series(&self, points: impl Fn(&TrafficRun, u64) -> Vec<Point>) -> Vec<Series> {
        let sizes = self.sizes();
        let each = sizes.iter().flat_map(|size| self.runs().map(move |found| (*size, found)));
        let series = each.map(|(size, (run, traffic))| Series {
            name: match sizes.len() {
                1 => run_name(run),
                _ => format!("{}, {size} B", run_name(run)),
            },
            role: Role::from(run.engine),
            group: (sizes.len() > 1).then(|| size.to_string()),
            points: points(traffic, size),
        });
        series.filter(|series| !series.points.is_empty()).take(SERIES).collect()
    }

    fn time_unit(&self) -> (f64, &'static str) {
        let samples = self.runs().flat_map(|(_, traffic)| &traffic.samples);
        let largest = samples.map(|sample| sample.delay()).max().unwrap_or_default();
        time_unit(largest.as_nanos() as f64)
    }

    fn spread(&self) -> Figure {
        let (divisor, unit) = self.time_unit();
        let series = self.series(|traffic, size| {
            let delays = traffic.delays(size);
            match delays.len() {
                0 | 1 => Vec::new(),
                _ => distribution(delays.iter().map(|delay| delay.as_nanos() as f64 / divisor)),
            }
        });
        let (x, y) = (Axis::linear("delay", unit), Axis::linear("share of samples", ""));
        self.figure("cdf", FigureKind::Cdf, "how the delays are spread", x, y, series)
    }

    fn over_time(&self) -> Figure {
        let (divisor, unit) = self.time_unit();
        let series = self.series(|traffic, size| {
            let point = |sample: &trunkline_measure::Sample| {
                let at = sample.start.as_nanos() as f64 / 1e9;
                Point::new(at, sample.delay().as_nanos() as f64 / divisor)
            };
            let points: Vec<Point> = traffic.of_size(size).map(point).collect();
            if points.len() > 1 { points } else { Vec::new() }
        });
        let (x, y) = (Axis::linear("start", "s"), Axis::linear("delay", unit));
        self.figure("time", FigureKind::TimeSeries, "delay over time", x, y, series)
    }

    /// For each size and engine the causes of the mean delay.
    fn ledger(&self) -> Figure {
        let (divisor, unit) = self.time_unit();
        let mut series = cause_series();
        for size in self.sizes() {
            for (run, traffic) in self.runs() {
                let row = format!("{size} B, {}", run_name(run));
                let Some(found) = self.digest.get(run, &traffic.name, size) else { continue };
                for ((_, mean), series) in found.ledger().iter().zip(&mut series) {
                    let value = mean.as_nanos() as f64 / divisor;
                    series.points.push(Point::new(row.as_str(), value));
                }
            }
        }
        let (x, y) = (Axis::category("", ""), Axis::linear("mean time", unit));
        self.figure("ledger", FigureKind::Stacked, "where the time went", x, y, booked(series))
    }

    /// For each engine the mean delay of the middle size, place by place.
    fn waterfalls(&self) -> Vec<Figure> {
        let sizes = self.sizes();
        let Some(size) = sizes.get(sizes.len() / 2).copied() else { return Vec::new() };
        let one = |(run, traffic): (&Run, &TrafficRun)| {
            let engine = run.engine;
            let what = format!("{size} bytes, place by place, {}", run_name(run));
            let (x, y) = (Axis::category("", ""), Axis::linear("mean time", self.time_unit().1));
            let series = self.places(run, traffic, size);
            self.figure(&format!("places-{engine}"), FigureKind::Waterfall, &what, x, y, series)
        };
        self.runs().map(one).collect()
    }

    fn places(&self, run: &Run, traffic: &TrafficRun, size: u64) -> Vec<Series> {
        let divisor = self.time_unit().0;
        let sums = step_sums(run, traffic.steps(size).into_iter(), traffic.count(size));
        let mut order: Vec<&str> = Vec::new();
        for sum in &sums {
            if !order.contains(&sum.place) {
                order.push(sum.place);
            }
        }
        let mut series = cause_series();
        for (place, sum) in order.iter().flat_map(|p| sums.iter().map(move |sum| (*p, sum))) {
            if sum.place == place {
                let value = sum.mean().as_nanos() as f64 / divisor;
                series[sum.cause as usize].points.push(Point::new(place, value));
            }
        }
        // All places as rows in their order, whichever causes they have.
        series[0].points.splice(0..0, order.iter().map(|place| Point::new(*place, 0.0)));
        booked(series)
    }
}

/// One empty series for each cause, in the order of booking.
fn cause_series() -> Vec<Series> {
    let series = |cause| Series { name: names::cause(cause).into(), ..Series::default() };
    Cause::ALL.into_iter().map(series).collect()
}

/// All causes or, if nothing is booked, none: unused ones keep their place, so that a cause looks the same in
/// every chart. The legend leaves them out.
fn booked(series: Vec<Series>) -> Vec<Series> {
    let any = series.iter().flat_map(|series| &series.points).any(|point| point.y > 0.0);
    if any { series } else { Vec::new() }
}

fn queues(report: &Report, spot: Spot<'_>, cell: usize) -> Option<Figure> {
    let runs = report.runs_at(spot).into_iter();
    let links = runs.flat_map(|run| run.links.iter().map(move |link| (run, link)));
    let series = links
        .filter(|(_, link)| link.backlog.iter().any(|(_, bytes)| *bytes > 0))
        .take(SERIES)
        .map(|(run, link)| Series {
            name: format!("{}, {}", run_name(run), link.name),
            role: Role::from(run.engine),
            group: Some(link.name.clone()),
            points: link
                .backlog
                .iter()
                .map(|(at, bytes)| Point::new(at.as_nanos() as f64 / 1e9, *bytes as f64))
                .collect(),
        })
        .collect::<Vec<Series>>();
    (!series.is_empty()).then(|| Figure {
        name: format!("queue-{cell}"),
        kind: FigureKind::QueueDepth,
        title: joined("Bytes waiting in queues", &report.label(spot)),
        caption: String::new(),
        x: Axis::linear("time", "s"),
        y: Axis::linear("waiting", "bytes"),
        series,
    })
}
