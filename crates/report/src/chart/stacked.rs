//! Horizontal bars stacked from series: the causes of time.

use super::clean::{Clean, Mark};
use super::frame::{Frame, Surround, Swatch, bar};
use super::scale::{Ruler, slot};
use super::style::Look;
use super::svg::{Svg, attributes, coordinate};
use super::{Drawing, Sheet};
use crate::figure::{Axis, Figure, FigureKind};
use crate::number;

/// Pixels from one bar to the next, and of a bar.
const PITCH: f64 = 26.0;
const THICK: f64 = 17.0;

/// A stretch of one row.
struct Segment {
    row: usize,
    series: usize,
    from: f64,
    to: f64,
}

/// Draws the figure.
pub(super) fn draw(sheet: &Sheet<'_>) -> Drawing {
    let Sheet { figure, clean, looks, slug, embed } = *sheet;
    let segments = segments(clean, figure.kind == FigureKind::Waterfall);
    let ends = row_ends(&segments, clean.categories.len());
    let reach = segments.iter().map(|segment| segment.to).fold(0.0, f64::max);
    // Room for the sum printed behind the longest bar.
    let axis = Axis { scale: crate::figure::Scale::Linear, ..figure.y.clone() };
    let level = Ruler::cover(&axis, &[0.0, reach * 1.12], 8, true);
    let upright = Ruler::Category(clean.categories.clone());
    let parts = Surround {
        title: &figure.title,
        level: &level,
        level_caption: figure.y.caption(),
        upright: &upright,
        upright_caption: figure.x.caption(),
        legend: legend(figure, looks, &segments),
        swatch: Swatch::Bar,
        note: clean.note.clone(),
        width: embed.width(),
        height: (PITCH * clean.categories.len() as f64).max(PITCH) + 8.0,
        downward: true,
    };
    Drawing::new(&parts, slug, |svg, frame| {
        let rows = Rows { frame, level: &level, figure, clean, slug };
        if figure.kind == FigureKind::Waterfall {
            rows.joints(svg, &ends);
        }
        segments.iter().for_each(|segment| rows.segment(svg, segment, looks[segment.series]));
        rows.sums(svg, &segments, &ends);
    })
}

/// The series that are drawn at all.
fn legend<'a>(figure: &'a Figure, looks: &[Look], segments: &[Segment]) -> Vec<(&'a str, Look)> {
    let names = figure.series.iter().map(|series| series.name.as_str());
    let drawn = |index: usize| segments.iter().any(|segment| segment.series == index);
    let all = names.zip(looks.iter().copied()).enumerate();
    all.filter(|(index, _)| drawn(*index)).map(|(_, entry)| entry).collect()
}

/// Stacks the series row by row; in a waterfall a row begins at the end of the one above.
fn segments(clean: &Clean, waterfall: bool) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut end = 0.0;
    for row in 0..clean.categories.len() {
        if !waterfall {
            end = 0.0;
        }
        for (series, marks) in clean.series.iter().enumerate() {
            let here = |mark: &&Mark| mark.x as usize == row && mark.y > 0.0;
            let length: f64 = marks.iter().filter(here).map(|mark| mark.y).sum();
            if length > 0.0 {
                segments.push(Segment { row, series, from: end, to: end + length });
                end += length;
            }
        }
    }
    segments
}

fn row_ends(segments: &[Segment], rows: usize) -> Vec<f64> {
    let mut ends = vec![0.0; rows];
    for segment in segments {
        ends[segment.row] = segment.to;
    }
    ends
}

struct Rows<'a> {
    frame: &'a Frame,
    level: &'a Ruler,
    figure: &'a Figure,
    clean: &'a Clean,
    slug: &'a str,
}

impl Rows<'_> {
    fn x(&self, value: f64) -> f64 {
        self.frame.x(self.level.at(value).unwrap_or(0.0))
    }
    fn middle(&self, row: usize) -> f64 {
        self.frame.top + slot(row, self.clean.categories.len()) * self.frame.height
    }

    fn segment(&self, svg: &mut Svg, segment: &Segment, look: Look) {
        let (from, to) = (self.x(segment.from), self.x(segment.to));
        let (cause, row) =
            (&self.figure.series[segment.series].name, &self.clean.categories[segment.row]);
        let length = number::short(segment.to - segment.from);
        svg.open("g", &[]);
        let tip = format!("{row}, {cause}: {length} {}", self.figure.y.unit);
        svg.text("title", &[], tip.trim_end());
        let at = (from, self.middle(segment.row) - THICK / 2.0);
        bar(svg, look, at, (to - from, THICK), self.slug);
        svg.close();
    }

    /// Dotted lines that lead from a row's end to the next row.
    fn joints(&self, svg: &mut Svg, ends: &[f64]) {
        for (row, end) in ends.iter().enumerate().take(ends.len().saturating_sub(1)) {
            let (from, to) = (self.middle(row) + THICK / 2.0, self.middle(row + 1) - THICK / 2.0);
            let x = self.x(*end);
            let path = format!("M{} {}V{}", coordinate(x), coordinate(from), coordinate(to));
            svg.leaf("path", attributes!["class" = "tl-join", "d" = &path]);
        }
    }

    /// Each row's own sum behind its end.
    fn sums(&self, svg: &mut Svg, segments: &[Segment], ends: &[f64]) {
        for (row, end) in ends.iter().enumerate() {
            let own: f64 = segments.iter().filter(|s| s.row == row).map(|s| s.to - s.from).sum();
            let place = attributes![
                "class" = "tl-tick",
                "x" = self.x(*end) + 5.0,
                "y" = self.middle(row) + 4.0,
            ];
            svg.text("text", place, &number::short(own));
        }
    }
}
