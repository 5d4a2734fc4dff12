//! The figures that every report has, made from its runs: what was measured by engine and cell, its
//! spread and its course over time, the fill of the queues, the causes of time.

use crate::against::comparison_figures;
use crate::axis::{is_numeric, numbered};
use crate::cell::{One, SERIES, queues};
use crate::figure::{Axis, Figure, FigureKind, Place, Point, Role, Series};
use crate::names;
use crate::report::{Report, Spot, is_rate};
use crate::summary::{Digest, Drawn};
use std::collections::BTreeSet;
use trunkline_engine::{EngineName, Run};
use trunkline_measure::{Quantity, TrafficRun};

/// Groups of series in one figure of several engines, which has a panel for each.
const PANELS: usize = 12;
/// Cells of which each has charts of its own.
pub(crate) const CELLS: usize = 4;

/// Cells whose curves over message sizes go into one chart.
fn per_chart(digest: &Digest<'_>, traffic: &str) -> usize {
    if measuring(digest, traffic).len() > 1 { PANELS } else { SERIES }
}

/// The engines that have a value of `traffic`: one may have run, and have no formula for it.
fn measuring(digest: &Digest<'_>, traffic: &str) -> BTreeSet<EngineName> {
    let rows =
        digest.rows.iter().filter(|row| row.traffic.name == traffic && row.value().is_some());
    rows.map(|row| row.run.engine).collect()
}

/// Cells whose curves over message sizes are drawn of every traffic.
pub(crate) fn curves_cells(digest: &Digest<'_>) -> usize {
    let each = digest.rows.iter().map(|row| per_chart(digest, &row.traffic.name));
    each.min().unwrap_or(SERIES) * CELLS
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
    let mut names = report.traffics();
    names.truncate(report.charts.of(names.len()));
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

/// What to divide by, and the name of the unit that comes of it.
pub(crate) type Unit = (f64, &'static str);

/// A unit in which `largest` nanoseconds are a number of few digits.
pub(crate) fn time_unit(largest: f64) -> Unit {
    match largest {
        l if l >= 2e10 => (1e9, "s"),
        l if l >= 2e5 => (1e6, "ms"),
        l if l >= 2e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    }
}

/// The same for bytes each second, shown as bits each second.
pub(crate) fn rate_unit(largest: f64) -> Unit {
    match largest * 8.0 {
        l if l >= 2e9 => (1e9 / 8.0, "Gbit/s"),
        l if l >= 2e6 => (1e6 / 8.0, "Mbit/s"),
        l if l >= 2e3 => (1e3 / 8.0, "kbit/s"),
        _ => (1.0 / 8.0, "bit/s"),
    }
}

fn axis_name(drawn: Drawn) -> String {
    let what = match drawn.quantity {
        Quantity::Delay => "delay",
        Quantity::Response => "delay from the intended start",
        Quantity::Rate => "throughput per flow",
        Quantity::TotalRate => "throughput in all",
    };
    match drawn.estimator {
        Some(estimator) => format!("{what}, {estimator}"),
        None => what.into(),
    }
}

/// With the engine, if only one has values: the legend then names the cells alone.
fn measured_title(digest: &Digest<'_>, traffic: &str, drawn: Drawn) -> String {
    let title = format!("{traffic}: {}", axis_name(drawn));
    let engines = measuring(digest, traffic);
    match engines.first() {
        Some(engine) if engines.len() == 1 => format!("{title} ({engine})"),
        _ => title,
    }
}

/// Curves over numbers of one kind, bars over words and over fewer numbers than make a curve.
pub(crate) fn kind(series: &[Series]) -> FigureKind {
    let points = series.iter().flat_map(|series| &series.points);
    let texts = points.filter_map(|point| match &point.x {
        Place::Text(text) => Some(text.as_str()),
        Place::Number(_) => None,
    });
    if is_numeric(texts) { FigureKind::Lines } else { FigureKind::Bars }
}

/// What was measured of one traffic: over sizes with a curve for each engine and cell, over one coordinate
/// of the grid with a curve for each engine and each of the others' values, or over cells.
fn measured(digest: &Digest<'_>, traffic: &str, index: usize) -> Vec<Figure> {
    if let Some(figures) = over_longest(digest, traffic, index) {
        return figures;
    }
    let report = digest.report;
    let Some(drawn) = digest.drawn(traffic) else { return Vec::new() };
    let found = report.runs.iter().filter_map(|run| run.traffic(traffic));
    let sizes: BTreeSet<u64> = found.flat_map(TrafficRun::sizes).collect();
    let spots = report.spots();
    let over_sizes = sizes.len() > 1;
    // Cells that share a curve are many for one chart.
    let per_chart =
        if size_key(report, traffic).is_some() { spots.len() } else { per_chart(digest, traffic) };
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
            let mut figure = Figure {
                name: format!("measured-{index}-{chunk}"),
                kind: kind(&series),
                title: measured_title(digest, traffic, drawn),
                caption: String::new(),
                x: if over_sizes { Axis::category("message", "bytes") } else { cell_axis(report) },
                y: Axis::linear(&axis_name(drawn), ""),
                series,
            };
            scale(&mut figure, drawn);
            figure
        })
        .collect()
}

/// Of a traffic with one size in a grid of several axes: curves over the axis with the most values.
fn over_longest(digest: &Digest<'_>, traffic: &str, index: usize) -> Option<Vec<Figure>> {
    let report = digest.report;
    let drawn = digest.drawn(traffic)?;
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
        let curves = groups.iter().flat_map(|it| along(digest, traffic, *size, longest, it));
        let series: Vec<Series> = curves.collect();
        let mut figure = Figure {
            name: format!("measured-{index}-{chunk}"),
            kind: kind(&series),
            title: measured_title(digest, traffic, drawn),
            caption: String::new(),
            x: Axis::category(&names::coordinate(longest), ""),
            y: Axis::linear(&axis_name(drawn), ""),
            series,
        };
        scale(&mut figure, drawn);
        figure
    };
    Some(groups.chunks(per_chart(digest, traffic)).take(CELLS).enumerate().map(figure).collect())
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
    let several = measuring(digest, traffic).len() > 1;
    let series = |engine| {
        let points = spots.iter().filter_map(|spot| {
            let run = report.run(engine, *spot)?;
            point(digest, run, traffic, size, spot.cell.get(key)?)
        });
        Series {
            name: series_name(several, engine, label),
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
    let several = measuring(digest, name).len() > 1;
    for run in spots.iter().flat_map(|spot| report.runs_at(*spot)) {
        let Some(traffic) = run.traffic(name) else { continue };
        let label = report.label_without(Spot::of(run), without);
        let sizes = traffic.sizes().into_iter();
        let points = sizes.filter_map(|size| point(digest, run, name, size, &size.to_string()));
        let title = series_name(several, run.engine, &label);
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
    curves.retain(|curve| !curve.points.is_empty());
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

/// A cell's series: its engine if `several` have values, and its coordinates.
fn series_name(several: bool, engine: EngineName, label: &str) -> String {
    match label {
        label if !several && !label.is_empty() => label.into(),
        _ => joined(engine.as_str(), label),
    }
}

/// Two parts of a name, the second of which may be empty.
pub(crate) fn joined(first: &str, second: &str) -> String {
    if second.is_empty() { first.into() } else { format!("{first}, {second}") }
}

fn point(digest: &Digest<'_>, run: &Run, traffic: &str, size: u64, x: &str) -> Option<Point> {
    let row = digest.get(run, traffic, size)?;
    let drawn = digest.drawn(traffic)?;
    let (value, deviation) = row.value().filter(|_| row.quantity == drawn.quantity)?;
    let point = Point::new(x, value).of_valid(run.is_valid());
    Some(if deviation > 0.0 { point.spread(deviation) } else { point })
}

/// Brings all values into the unit that suits them, and says what error bars are.
fn scale(figure: &mut Figure, drawn: Drawn) {
    let values = figure.series.iter().flat_map(|series| &series.points).map(|point| point.y);
    let largest = values.fold(0.0, f64::max);
    let (divisor, unit) =
        if is_rate(drawn.quantity) { rate_unit(largest) } else { time_unit(largest) };
    figure.y.unit = unit.into();
    for point in figure.series.iter_mut().flat_map(|series| &mut series.points) {
        point.y /= divisor;
        point.low = point.low.map(|low| (low / divisor).max(0.0));
        point.high = point.high.map(|high| high / divisor);
    }
    if figure.series.iter().flat_map(|series| &series.points).any(|point| point.high.is_some()) {
        figure.caption =
            "Error bars: a standard deviation of the measurements to each side.".into();
    }
}
