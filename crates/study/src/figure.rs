//! Charts: published and ours in one.

use crate::format::{FigureSpec, SeriesSpec};
use crate::result::ExperimentResult;
use crate::table::{agree, side};
use crate::term::Side;
use trunkline_measure::{Key, Row};
use trunkline_report::{Axis, Figure, Place, Point, Role, Scale, Series};

/// The figure with the rows of the experiments that it names.
pub(crate) fn of(spec: &FigureSpec, experiments: &[ExperimentResult]) -> Figure {
    let series: Vec<Series> =
        spec.series.iter().flat_map(|series| lines(series, experiments)).collect();
    Figure {
        name: spec.name.clone(),
        kind: spec.kind,
        title: spec.title.clone(),
        caption: spec.caption.clone(),
        x: axis(&spec.x, &series),
        y: spec.y.clone(),
        series,
    }
}

/// The axis of places. Texts have none on an axis of numbers: each gets its own, by its value where all are quantities
/// such as `10ms`.
fn axis(asked: &Axis, series: &[Series]) -> Axis {
    let mut points = series.iter().flat_map(|series| &series.points);
    match points.any(|point| matches!(point.x, Place::Text(_))) {
        true => Axis { scale: Scale::Category, from: None, to: None, ..asked.clone() },
        false => asked.clone(),
    }
}

fn find<'a>(experiments: &'a [ExperimentResult], name: &str) -> &'a [Row] {
    let found = experiments.iter().find(|experiment| experiment.name == name);
    found.map(|experiment| experiment.comparison.rows.as_slice()).unwrap_or_default()
}

fn lines(spec: &SeriesSpec, experiments: &[ExperimentResult]) -> Vec<Series> {
    let rows = find(experiments, &spec.experiment).iter();
    let rows: Vec<&Row> = rows.filter(|row| spec.filter.allows(&row.key)).collect();
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let name = legend(spec, &row.key);
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((name, vec![row])),
        }
    }
    let sides = [(Side::Published, Role::Published), (Side::Ours, Role::Ours)];
    let wanted = sides.into_iter().filter(|(side, _)| spec.side.is_none_or(|only| only == *side));
    let all = groups.iter().flat_map(|group| wanted.clone().map(move |side| (group, side)));
    all.map(|(group, which)| line(spec, experiments, group, which))
        .filter(|series| !series.points.is_empty())
        .collect()
}

/// What the legend calls a row's series: the series' name and the values of `by`.
fn legend(spec: &SeriesSpec, key: &Key) -> String {
    let values = spec.by.iter().filter_map(|column| key.get(column));
    let values: Vec<String> =
        values.map(|value| spec.labels.get(value).unwrap_or(value).clone()).collect();
    let parts = [spec.name.clone(), values.join(" x ")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn line(
    spec: &SeriesSpec,
    experiments: &[ExperimentResult],
    (name, rows): &(String, Vec<&Row>),
    (which, role): (Side, Role),
) -> Series {
    let point = |row: &&Row| {
        let (x, y) = (place(spec, experiments, row, which)?, side(row, which)?);
        Some(Point::new(x, y))
    };
    let suffix = if which == Side::Published { " (published)" } else { "" };
    Series {
        name: format!("{name}{suffix}"),
        role,
        group: Some(name.clone()),
        points: rows.iter().filter_map(point).collect(),
    }
}

fn place(
    spec: &SeriesSpec,
    experiments: &[ExperimentResult],
    row: &Row,
    which: Side,
) -> Option<Place> {
    if let Some(other) = &spec.x_experiment {
        let other = find(experiments, other)
            .iter()
            .find(|other| agree(&other.key, &row.key) == Some(true))?;
        return side(other, which).map(Place::Number);
    }
    let texts: Vec<&String> = spec.x.iter().filter_map(|column| row.key.get(column)).collect();
    match texts[..] {
        [] => None,
        [text] => Some(text.parse().map_or_else(|_| Place::Text(text.clone()), Place::Number)),
        _ => Some(Place::Text(texts.into_iter().cloned().collect::<Vec<_>>().join(" x "))),
    }
}
