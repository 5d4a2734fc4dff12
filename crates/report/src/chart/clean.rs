//! What of a figure can be drawn: finite values, categories in order. What cannot is counted, not hidden.

use crate::figure::{Axis, Figure, FigureKind, Place, Point, Scale};
use crate::number;
use std::collections::BTreeSet;

/// A point with its place on the axis settled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mark {
    /// Index of the category, or the number.
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    pub(crate) invalid: bool,
}

/// The drawable part of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Clean {
    /// For each series of the figure its marks.
    pub(crate) series: Vec<Vec<Mark>>,
    /// The categories of the x axis; empty if it is an axis of numbers.
    pub(crate) categories: Vec<String>,
    /// What the reader has to know about points that are not drawn.
    pub(crate) note: Option<String>,
}

impl Clean {
    /// All values of y, error bars included.
    pub(crate) fn heights(&self) -> Vec<f64> {
        let ends = |mark: &Mark| [Some(mark.y), mark.low, mark.high].into_iter().flatten();
        self.series.iter().flatten().flat_map(ends).collect()
    }
    /// All values of x.
    pub(crate) fn places(&self) -> Vec<f64> {
        self.series.iter().flatten().map(|mark| mark.x).collect()
    }
}

/// Whether the figure's x axis holds categories.
pub(crate) fn has_categories(figure: &Figure) -> bool {
    matches!(figure.kind, FigureKind::Bars | FigureKind::Waterfall | FigureKind::Stacked)
        || figure.x.scale == Scale::Category
}

/// Settles every point of `figure`.
pub(crate) fn clean(figure: &Figure) -> Clean {
    let categories = if has_categories(figure) { categories(figure) } else { Vec::new() };
    let mut dropped = 0usize;
    let mut settle = |point: &Point| {
        let mark = mark(point, &categories, &figure.x, &figure.y);
        dropped += usize::from(mark.is_none());
        mark
    };
    let mut series: Vec<Vec<Mark>> = figure
        .series
        .iter()
        .map(|series| series.points.iter().filter_map(&mut settle).collect())
        .collect();
    if figure.kind == FigureKind::Bars {
        dropped += series.iter_mut().map(first_of_each_place).sum::<usize>();
    }
    let note = note(dropped, figure.is_empty());
    Clean { series, categories, note }
}

impl Mark {
    /// What its tip ends with.
    pub(crate) fn warning(&self) -> &'static str {
        if self.invalid { ", INVALID" } else { "" }
    }
}

/// A bar's place holds one bar: returns how many others were taken away.
fn first_of_each_place(marks: &mut Vec<Mark>) -> usize {
    let before = marks.len();
    let mut taken = BTreeSet::new();
    marks.retain(|mark| taken.insert(mark.x as usize));
    before - marks.len()
}

fn note(dropped: usize, empty: bool) -> Option<String> {
    match dropped {
        0 if empty => Some("There is nothing to draw.".into()),
        0 => None,
        1 => Some("Not drawn: 1 point without a place on these axes.".into()),
        n => Some(format!("Not drawn: {n} points without a place on these axes.")),
    }
}

fn mark(point: &Point, categories: &[String], x_axis: &Axis, y_axis: &Axis) -> Option<Mark> {
    let drawable =
        |axis: &Axis, value: f64| value.is_finite() && (axis.scale != Scale::Log || value > 0.0);
    let x = if categories.is_empty() {
        value(&point.x).filter(|x| drawable(x_axis, *x))?
    } else {
        let name = name(&point.x);
        categories.iter().position(|category| *category == name)? as f64
    };
    let end = |end: Option<f64>| end.filter(|end| drawable(y_axis, *end));
    drawable(y_axis, point.y).then_some(Mark {
        x,
        y: point.y,
        low: end(point.low),
        high: end(point.high),
        invalid: point.invalid,
    })
}

fn value(place: &Place) -> Option<f64> {
    match place {
        Place::Number(number) => Some(*number),
        Place::Text(text) => text.trim().parse().ok(),
    }
}

fn name(place: &Place) -> String {
    match place {
        Place::Number(number) => number::short(*number),
        Place::Text(text) => text.clone(),
    }
}

fn categories(figure: &Figure) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for point in figure.series.iter().flat_map(|series| &series.points) {
        let name = name(&point.x);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let numbers: Option<Vec<f64>> = names.iter().map(|name| name.parse().ok()).collect();
    if let Some(numbers) = numbers {
        let mut paired: Vec<(f64, String)> = numbers.into_iter().zip(names).collect();
        paired.sort_by(|a, b| a.0.total_cmp(&b.0));
        names = paired.into_iter().map(|(_, name)| name).collect();
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Series;

    fn of_kind(kind: FigureKind) -> Clean {
        let points = vec![
            Point::new(64.0, 1.0),
            Point::new(8.0, f64::NAN),
            Point::new(8.0, 2.0),
            Point::new(64.0, 3.0),
        ];
        let series = vec![Series { points, ..Series::default() }];
        let x = Axis::category("message", "bytes");
        clean(&Figure {
            name: "a".into(),
            kind,
            title: String::new(),
            caption: String::new(),
            x,
            y: Axis::default(),
            series,
        })
    }

    #[test]
    fn what_is_not_drawn_is_counted() {
        let lines = of_kind(FigureKind::Lines);
        assert_eq!(lines.categories, ["8", "64"]);
        assert_eq!(lines.heights(), [1.0, 2.0, 3.0]);
        assert!(lines.note.unwrap().starts_with("Not drawn: 1 point "));
        let bars = of_kind(FigureKind::Bars);
        assert_eq!(bars.heights(), [1.0, 2.0]);
        assert!(bars.note.unwrap().starts_with("Not drawn: 2 points "));
    }
}
