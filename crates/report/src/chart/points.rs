//! Charts of points: lines with markers, distributions, time series, queue depth.

use super::clean::{Clean, Mark};
use super::frame::{Frame, Surround, Swatch, error_bar};
use super::scale::{Ruler, slot};
use super::style::{Look, cross, marker};
use super::svg::{Svg, attributes, coordinate};
use super::{Drawing, Sheet};
use crate::figure::{Axis, Figure, FigureKind, Series};
use crate::number;

/// Up to so many markers a series shows each with its value under the pointer; above it only some have one.
const MARKERS: usize = 64;
/// Points that are all drawn, whatever falls on one pixel.
const DENSE: usize = 1440;
/// Markers on a curve of more points than [`MARKERS`].
const SPARSE: usize = 9;

/// Draws the figure.
pub(super) fn draw(sheet: &Sheet<'_>) -> Drawing {
    let Sheet { figure, clean, looks, slug, embed } = *sheet;
    let level = level(figure, clean, embed.width());
    let upright = upright(figure, clean);
    let names: Vec<String> = figure.series.iter().map(Series::legend).collect();
    let parts = Surround {
        title: &figure.title,
        level: &level,
        level_caption: figure.x.caption(),
        upright: &upright,
        upright_caption: figure.y.caption(),
        legend: names.iter().map(String::as_str).zip(looks.iter().copied()).collect(),
        swatch: if figure.kind == FigureKind::TimeSeries { Swatch::Marker } else { Swatch::Both },
        note: clean.note.clone(),
        width: embed.width(),
        height: embed.height(),
        downward: false,
    };
    Drawing::new(&parts, slug, |svg, frame| {
        let rulers = Rulers { level: &level, upright: &upright, frame };
        // Published points are hollow and few: they come last, so that ours do not hide them.
        for hollow in [false, true] {
            for (index, look) in looks.iter().enumerate().filter(|(_, l)| l.hollow == hollow) {
                let name = &figure.series[index].name;
                curve(svg, figure, &rulers, &clean.series[index], *look, name);
            }
        }
    })
}

/// Up to so many places of a curve each have a tick of their own.
const OWN_TICKS: usize = 12;

fn level(figure: &Figure, clean: &Clean, width: f64) -> Ruler {
    if !clean.categories.is_empty() {
        return Ruler::Category(clean.categories.clone());
    }
    let (places, joined) = (clean.places(), figure.kind == FigureKind::Lines);
    let ruler = Ruler::cover(&figure.x, &places, (width / 90.0) as usize, joined);
    let mut own = places;
    own.sort_by(f64::total_cmp);
    own.dedup();
    match joined && own.len() <= OWN_TICKS {
        true => Ruler::Own { scale: Box::new(ruler), values: own },
        false => ruler,
    }
}

fn upright(figure: &Figure, clean: &Clean) -> Ruler {
    if figure.kind == FigureKind::Cdf {
        let whole = Axis { from: Some(0.0), to: Some(1.0), ..figure.y.clone() };
        return Ruler::cover(&whole, &clean.heights(), 5, true);
    }
    Ruler::cover(&figure.y, &clean.heights(), 6, true)
}

struct Rulers<'a> {
    level: &'a Ruler,
    upright: &'a Ruler,
    frame: &'a Frame,
}

impl Rulers<'_> {
    fn x(&self, x: f64) -> Option<f64> {
        let at = match self.level {
            Ruler::Category(names) => Some(slot(x as usize, names.len())),
            ruler => ruler.at(x),
        };
        at.map(|at| self.frame.x(at))
    }
    fn y(&self, y: f64) -> Option<f64> {
        self.upright.at(y).map(|at| self.frame.y(at))
    }
    fn place(&self, mark: &Mark) -> Option<(f64, f64)> {
        Some((self.x(mark.x)?, self.y(mark.y)?))
    }
}

fn curve(
    svg: &mut Svg,
    figure: &Figure,
    rulers: &Rulers<'_>,
    marks: &[Mark],
    look: Look,
    name: &str,
) {
    let mut marks = marks.to_vec();
    marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    let places: Vec<(f64, f64)> = marks.iter().filter_map(|mark| rulers.place(mark)).collect();
    let path = match figure.kind {
        FigureKind::TimeSeries => String::new(),
        FigureKind::Lines => straight(&places),
        FigureKind::Cdf => stairs(&rising(rulers, &thinned(&places))),
        _ => stairs(&thinned(&places)),
    };
    if !path.is_empty() {
        let class = format!("tl-line {}", look.stroke());
        let dash = attributes!["class" = &class, "stroke-dasharray" = look.dash(), "d" = &path];
        svg.leaf("path", dash);
    }
    for mark in &marks {
        whisker(svg, rulers, mark, look);
    }
    if marks.len() <= MARKERS {
        named_markers(svg, figure, rulers, &marks, look, name);
    } else if figure.kind == FigureKind::TimeSeries {
        cloud(svg, &thinned(&places), look);
    } else {
        let stride = (places.len() / SPARSE).max(1);
        let chosen = places.iter().skip(stride / 2).step_by(stride);
        chosen.for_each(|(x, y)| marker(svg, look, *x, *y));
    }
}

/// A distribution rises from no share at all at its first value.
fn rising(rulers: &Rulers<'_>, places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let foot = places.first().map(|(x, _)| (*x, rulers.frame.bottom()));
    foot.into_iter().chain(places.iter().copied()).collect()
}

fn whisker(svg: &mut Svg, rulers: &Rulers<'_>, mark: &Mark, look: Look) {
    let end = |end: Option<f64>| rulers.y(end.unwrap_or(mark.y));
    if mark.low.is_none() && mark.high.is_none() {
        return;
    }
    if let (Some(x), Some(low), Some(high)) = (rulers.x(mark.x), end(mark.low), end(mark.high)) {
        error_bar(svg, x, low, high, &look.stroke());
    }
}

fn named_markers(
    svg: &mut Svg,
    figure: &Figure,
    rulers: &Rulers<'_>,
    marks: &[Mark],
    look: Look,
    name: &str,
) {
    for mark in marks {
        let Some((x, y)) = rulers.place(mark) else { continue };
        let at = match rulers.level {
            Ruler::Category(names) => names[mark.x as usize].clone(),
            _ => number::short(mark.x),
        };
        svg.open("g", &[]);
        let value = number::short(mark.y);
        let tip = format!("{name}: {at} {}, {value} {}", figure.x.unit, figure.y.unit);
        svg.text("title", &[], &format!("{}{}", tip.trim_end(), mark.warning()));
        marker(svg, look, x, y);
        if mark.invalid {
            cross(svg, x, y);
        }
        svg.close();
    }
}

/// Many points as one path of short strokes: a file of a hundred thousand circles opens in no viewer.
fn cloud(svg: &mut Svg, places: &[(f64, f64)], look: Look) {
    let mut path = String::new();
    for (x, y) in places {
        path.push_str(&format!("M{} {}h2.4v2.4h-2.4z", coordinate(x - 1.2), coordinate(y - 1.2)));
    }
    let class = format!("{} {}", look.stroke(), look.fill());
    svg.leaf("path", attributes!["class" = &class, "stroke-width" = 0.6, "d" = &path]);
}

/// Of all points that fall on one pixel from the left the first, lowest, highest and last.
fn thinned(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if places.len() <= DENSE {
        return places.to_vec();
    }
    let mut kept = Vec::new();
    for column in places.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
        let low = (0..column.len()).min_by(by_height).unwrap_or(0);
        let high = (0..column.len()).max_by(by_height).unwrap_or(0);
        let mut chosen = [0, low, high, column.len() - 1];
        chosen.sort_unstable();
        let mut last = None;
        for index in chosen {
            if last != Some(index) {
                kept.push(column[index]);
            }
            last = Some(index);
        }
    }
    kept
}

fn straight(places: &[(f64, f64)]) -> String {
    joined(places, |path, (x, y)| {
        path.push_str(&format!("L{} {}", coordinate(x), coordinate(y)));
    })
}

fn stairs(places: &[(f64, f64)]) -> String {
    joined(places, |path, (x, y)| {
        path.push_str(&format!("H{}V{}", coordinate(x), coordinate(y)));
    })
}

fn joined(places: &[(f64, f64)], mut next: impl FnMut(&mut String, (f64, f64))) -> String {
    let Some(((x, y), rest)) = places.split_first() else { return String::new() };
    if rest.is_empty() {
        return String::new();
    }
    let mut path = format!("M{} {}", coordinate(*x), coordinate(*y));
    rest.iter().for_each(|place| next(&mut path, *place));
    path
}
