//! Small multiples: curves or bars of several origins and several groups, such as engines and cells of a grid, are drawn in a
//! panel for each group. All panels have the same axes, and an origin has the same look in each.

use super::clean::clean;
use super::svg::{Svg, attributes, coordinate};
use super::{Chart, Embed, one, open, text};
use crate::figure::{Figure, FigureKind, Role, Scale, Series};

/// Panels in a row of a file.
const ACROSS: usize = 2;
/// Height of the heading above the panels of a file, for each line.
const HEADING: f64 = 22.0;

/// The panels of `figure`; fewer than two if it is drawn as one chart.
pub(super) fn panels(figure: &Figure) -> Vec<Figure> {
    let mut groups: Vec<&str> = Vec::new();
    for group in figure.series.iter().filter_map(|series| series.group.as_deref()) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let origins = |role: Role| figure.series.iter().any(|series| series.role != role);
    let several = figure.series.first().is_some_and(|first| origins(first.role));
    let kinds = matches!(figure.kind, FigureKind::Lines | FigureKind::Bars);
    if !kinds || !several || groups.len() < 2 {
        return Vec::new();
    }
    let whole = framed(figure);
    groups.iter().enumerate().map(|(index, group)| panel(&whole, index, group)).collect()
}

/// The figure with the ends of its axes written down, so that all panels share them.
fn framed(figure: &Figure) -> Figure {
    let clean = clean(figure);
    let ends = |values: Vec<f64>| {
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        (finite().reduce(f64::min), finite().reduce(f64::max))
    };
    let mut figure = figure.clone();
    let (low, high) = ends(clean.heights());
    figure.y.from = least(figure.y.from, low);
    figure.y.to = greatest(figure.y.to, high);
    if figure.x.scale != Scale::Category {
        let (low, high) = ends(clean.places());
        figure.x.from = least(figure.x.from, low);
        figure.x.to = greatest(figure.x.to, high);
    }
    figure
}

fn least(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    [a, b].into_iter().flatten().reduce(f64::min)
}

fn greatest(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    [a, b].into_iter().flatten().reduce(f64::max)
}

/// The series of one group, under the group's name.
fn panel(figure: &Figure, index: usize, group: &str) -> Figure {
    let of_group = |series: &&Series| series.group.as_deref() == Some(group);
    let mut series: Vec<Series> = figure.series.iter().filter(of_group).cloned().collect();
    let distinct = |one: &Series| series.iter().filter(|other| other.role == one.role).count() == 1;
    if series.iter().all(distinct) {
        series.iter_mut().for_each(|series| series.name = origin(series.role).into());
    }
    Figure {
        name: format!("{}-{index}", figure.slug()),
        title: group.into(),
        caption: String::new(),
        series,
        ..figure.clone()
    }
}

/// What the legend of a panel calls an origin.
fn origin(role: Role) -> &'static str {
    match role {
        Role::Published => "published",
        Role::Ours => "ours",
        Role::Model => "model",
        Role::Sim => "sim",
        Role::Emu => "emu",
    }
}

/// The panels as one drawing that stands alone.
pub(super) fn grid(figure: &Figure, panels: &[Figure]) -> String {
    let drawn: Vec<Chart> = panels.iter().map(|panel| one(panel, Embed::Page)).collect();
    let (across, pitch) = (ACROSS.min(drawn.len()), Embed::Page.width());
    let title = text::wrapped(&figure.title, 16.0, pitch * across as f64 - 28.0);
    let mut top = HEADING * title.len() as f64 + 10.0;
    let mut inside = Svg::default();
    for row in drawn.chunks(across) {
        for (column, chart) in row.iter().enumerate() {
            let left = coordinate(pitch * column as f64);
            let place = format!("translate({left} {})", coordinate(top));
            inside.open("g", attributes!["transform" = &place]);
            inside.nested(&chart.text);
            inside.close();
        }
        top += row.iter().map(|chart| chart.height).fold(0.0, f64::max);
    }
    let mut svg = Svg::default();
    open(&mut svg, figure, Embed::File, (pitch * across as f64, top));
    for (index, line) in title.iter().enumerate() {
        let y = HEADING * (index + 1) as f64;
        svg.text("text", attributes!["class" = "tl-heading", "x" = 14.0, "y" = y], line);
    }
    svg.append(inside);
    svg.finish()
}
