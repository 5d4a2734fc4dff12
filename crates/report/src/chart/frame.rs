//! Everything of a chart around its marks: title, legend, axes, grid, and the room that each needs.

use super::scale::{Ruler, Tick};
use super::style::Look;
use super::svg::{Svg, attributes, coordinate};
use super::text;
use crate::report::INVALID;

const EDGE: f64 = 14.0;
const TICK: f64 = 5.0;
const TICK_SIZE: f64 = 11.0;
const LABEL_SIZE: f64 = 12.0;
const TITLE_SIZE: f64 = 14.0;
const ROW: f64 = 18.0;

/// The plot's rectangle in a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Frame {
    /// Pixels from the left for a position on the level axis.
    pub(crate) fn x(&self, at: f64) -> f64 {
        self.left + at * self.width
    }
    /// Pixels from the top for a position on the upright axis.
    pub(crate) fn y(&self, at: f64) -> f64 {
        self.top + (1.0 - at) * self.height
    }
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }
    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }
}

/// How a series is shown in the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swatch {
    Line,
    Marker,
    Both,
    Bar,
}

/// The parts around the plot, as texts.
pub(crate) struct Surround<'a> {
    pub(crate) title: &'a str,
    pub(crate) level: &'a Ruler,
    pub(crate) level_caption: String,
    pub(crate) upright: &'a Ruler,
    pub(crate) upright_caption: String,
    pub(crate) legend: Vec<(&'a str, Look)>,
    pub(crate) swatch: Swatch,
    pub(crate) note: Option<String>,
    /// The whole chart's width, in pixels.
    pub(crate) width: f64,
    /// The plot's height.
    pub(crate) height: f64,
    /// Categories run from top to bottom.
    pub(crate) downward: bool,
}

/// The layout of a chart.
pub(crate) struct Layout {
    pub(crate) frame: Frame,
    /// The whole chart's height.
    pub(crate) height: f64,
    title: Vec<String>,
    legend: Vec<Entry>,
    slanted: bool,
    level_room: f64,
}

impl Layout {
    /// Gives every part its room.
    pub(crate) fn of(parts: &Surround<'_>) -> Layout {
        let title = text::wrapped(parts.title, TITLE_SIZE * 1.08, parts.width - 2.0 * EDGE);
        let mut top = EDGE + ROW * title.len() as f64;
        let (legend, rows) = legend_places(&parts.legend, top + 4.0, parts.width);
        top += ROW * rows as f64 + 14.0;
        let labels = widest(&parts.upright.ticks());
        let caption = if parts.upright_caption.is_empty() { 0.0 } else { 20.0 };
        let ticks = parts.level.ticks();
        // Half of the last label stands out to the right.
        let last = ticks.last().map_or(0.0, |tick| text::width(&tick.text, TICK_SIZE) / 2.0);
        let category = matches!(parts.level, Ruler::Category(_));
        let right = parts.width - if category { 26.0 } else { last.max(20.0) + 6.0 };
        let left = EDGE + caption + labels + TICK + 4.0;
        let slanted = category && !fits(&ticks, right - left);
        let slope = widest(&ticks).min(LONGEST_SLANTED);
        // The first slanted label reaches out to the left of its tick.
        let left = if slanted { left.max(EDGE + slope * 0.82 - 10.0) } else { left };
        let width = right - left;
        let level_room = if slanted { slope * 0.58 + 14.0 } else { TICK_SIZE + 3.0 };
        let frame = Frame { left, top, width, height: parts.height };
        let below = TICK + level_room + if parts.level_caption.is_empty() { 0.0 } else { ROW };
        let note = if parts.note.is_some() { 14.0 } else { 0.0 };
        let height = frame.bottom() + below + note + 10.0;
        Layout { frame, height, title, legend, slanted, level_room }
    }

    /// Draws all but the marks.
    pub(crate) fn draw(&self, svg: &mut Svg, parts: &Surround<'_>, figure: &str) {
        for (index, line) in self.title.iter().enumerate() {
            let y = EDGE + 10.0 + ROW * index as f64;
            svg.text("text", attributes!["class" = "tl-title", "x" = EDGE, "y" = y], line);
        }
        for entry in &self.legend {
            let (x, y) = (entry.x, entry.y);
            swatch(svg, parts.swatch, parts.legend[entry.series].1, x, y, figure);
            for (row, line) in entry.lines.iter().enumerate() {
                let y = y + 4.0 + ROW * row as f64;
                svg.text(
                    "text",
                    attributes!["class" = "tl-label", "x" = x + SWATCH, "y" = y],
                    line,
                );
            }
        }
        self.upright(svg, parts);
        self.level(svg, parts);
        self.captions(svg, parts);
    }

    fn upright(&self, svg: &mut Svg, parts: &Surround<'_>) {
        let frame = &self.frame;
        let category = matches!(parts.upright, Ruler::Category(_));
        for tick in parts.upright.ticks() {
            let y = frame.y(if parts.downward { 1.0 - tick.at } else { tick.at });
            if !tick.text.is_empty() && !category {
                grid(svg, (frame.left, y), (frame.right(), y));
            }
            if !category {
                grid_tick(svg, (frame.left - TICK, y), (frame.left, y));
            }
            let lines = two_lines(&tick.text);
            let first = y + 4.0 - TICK_SIZE * 0.55 * (lines.len() as f64 - 1.0);
            for (index, line) in lines.iter().enumerate() {
                let place = attributes![
                    "class" = "tl-tick",
                    "text-anchor" = "end",
                    "x" = frame.left - TICK - 3.0,
                    "y" = first + TICK_SIZE * 1.1 * index as f64,
                ];
                svg.text("text", place, line);
            }
        }
    }

    fn level(&self, svg: &mut Svg, parts: &Surround<'_>) {
        let frame = &self.frame;
        let ticks = parts.level.ticks();
        let category = matches!(parts.level, Ruler::Category(_));
        let labelled = match (category, self.slanted) {
            (true, true) => every(thinning(ticks.len(), frame.width), ticks.len()),
            (true, false) => every(stride(&ticks, frame.width), ticks.len()),
            (false, _) => apart(&ticks, frame.width),
        };
        for (tick, labelled) in ticks.iter().zip(labelled) {
            let x = frame.x(tick.at);
            if !tick.text.is_empty() && !category {
                grid(svg, (x, frame.top), (x, frame.bottom()));
            }
            grid_tick(svg, (x, frame.bottom()), (x, frame.bottom() + TICK));
            if labelled && !tick.text.is_empty() {
                self.level_label(svg, x, &tick.text);
            }
        }
    }

    fn level_label(&self, svg: &mut Svg, x: f64, label: &str) {
        let y = self.frame.bottom() + TICK + TICK_SIZE;
        let longest = if self.slanted { LONGEST_SLANTED } else { LONGEST_LABEL };
        let label = text::cut(label, TICK_SIZE, longest);
        if self.slanted {
            let turn = format!("rotate(-35 {} {})", coordinate(x + 4.0), coordinate(y));
            let place = attributes![
                "class" = "tl-tick",
                "text-anchor" = "end",
                "x" = x + 4.0,
                "y" = y,
                "transform" = &turn,
            ];
            svg.text("text", place, &label);
        } else {
            let place =
                attributes!["class" = "tl-tick", "text-anchor" = "middle", "x" = x, "y" = y];
            svg.text("text", place, &label);
        }
    }

    fn captions(&self, svg: &mut Svg, parts: &Surround<'_>) {
        let frame = &self.frame;
        let middle = frame.left + frame.width / 2.0;
        let y = frame.bottom() + TICK + self.level_room + 14.0;
        if !parts.level_caption.is_empty() {
            let place =
                attributes!["class" = "tl-label", "text-anchor" = "middle", "x" = middle, "y" = y];
            svg.text("text", place, &parts.level_caption);
        }
        if !parts.upright_caption.is_empty() {
            let (x, y) = (EDGE + 10.0, frame.top + frame.height / 2.0);
            let turn = format!("rotate(-90 {} {})", coordinate(x), coordinate(y));
            let place = attributes![
                "class" = "tl-label",
                "text-anchor" = "middle",
                "x" = x,
                "y" = y,
                "transform" = &turn,
            ];
            svg.text("text", place, &self.beside(parts));
        }
        if let Some(note) = &parts.note {
            let place = attributes!["class" = "tl-note", "x" = EDGE, "y" = self.height - 8.0];
            svg.text("text", place, note);
        }
    }

    /// The upright axis' caption: its unit alone if there is no room for more; the title says the rest.
    fn beside(&self, parts: &Surround<'_>) -> String {
        let (caption, room) = (&parts.upright_caption, self.frame.height + 40.0);
        let unit = caption.rsplit_once(" (").map(|(_, unit)| unit.trim_end_matches(')'));
        match unit {
            Some(unit) if text::width(caption, LABEL_SIZE) > room => unit.into(),
            _ => text::cut(caption, LABEL_SIZE, room),
        }
    }

    /// The axes themselves, drawn after the marks so that bars do not cover them.
    pub(crate) fn axes(&self, svg: &mut Svg) {
        let frame = &self.frame;
        let path = format!(
            "M{} {}V{}H{}",
            coordinate(frame.left),
            coordinate(frame.top),
            coordinate(frame.bottom()),
            coordinate(frame.right())
        );
        svg.leaf("path", attributes!["class" = "tl-axis", "d" = &path]);
    }
}

/// Labels longer than this many pixels are cut.
const LONGEST_LABEL: f64 = 190.0;
/// The same for labels that stand aslant.
const LONGEST_SLANTED: f64 = 140.0;

/// A label beside the upright axis, in two lines if it is long. Only what two do not hold is cut.
fn two_lines(label: &str) -> Vec<String> {
    let lines = text::wrapped(label, TICK_SIZE, LONGEST_LABEL);
    match &lines[..] {
        [first, rest @ ..] if rest.len() > 1 => {
            vec![first.clone(), text::cut(&rest.join(" "), TICK_SIZE, LONGEST_LABEL)]
        }
        _ => lines,
    }
}

fn widest(ticks: &[Tick]) -> f64 {
    let width = |tick: &Tick| text::width(&tick.text, TICK_SIZE).min(LONGEST_LABEL);
    ticks.iter().map(width).fold(0.0, f64::max)
}

/// Whether all labels stand beside one another.
fn fits(ticks: &[Tick], width: f64) -> bool {
    stride(ticks, width) == 1
}

/// Every how many-th label of categories has to be left out for the others not to touch.
fn stride(ticks: &[Tick], width: f64) -> usize {
    let named: Vec<&Tick> = ticks.iter().filter(|tick| !tick.text.is_empty()).collect();
    let room = |tick: &Tick| text::width(&tick.text, TICK_SIZE).min(LONGEST_LABEL) + 8.0;
    let touch = |every: usize| {
        let kept: Vec<&&Tick> = named.iter().step_by(every).collect();
        kept.windows(2)
            .any(|pair| (pair[1].at - pair[0].at) * width < (room(pair[0]) + room(pair[1])) / 2.0)
    };
    (1..=ticks.len().max(1)).find(|every| !touch(*every)).unwrap_or(1)
}

/// Every `step`-th of `count`.
fn every(step: usize, count: usize) -> Vec<bool> {
    (0..count).map(|index| index % step == 0).collect()
}

/// Labels of numbers, which stand where their values are: each that does not touch the one before.
fn apart(ticks: &[Tick], width: f64) -> Vec<bool> {
    let mut free = f64::MIN;
    let mut kept = Vec::new();
    for tick in ticks {
        let half = (text::width(&tick.text, TICK_SIZE).min(LONGEST_LABEL) + 8.0) / 2.0;
        let keeps = !tick.text.is_empty() && tick.at * width - half >= free;
        if keeps {
            free = tick.at * width + half;
        }
        kept.push(keeps);
    }
    kept
}

/// Slanted labels stand as close as their height allows.
fn thinning(count: usize, width: f64) -> usize {
    ((count as f64 * (TICK_SIZE + 5.0) / width).ceil() as usize).max(1)
}

/// An entry of the legend: its series, the middle of its swatch's left end, and its name in lines.
struct Entry {
    series: usize,
    x: f64,
    y: f64,
    lines: Vec<String>,
}

/// Room of a swatch, and that behind a name.
const SWATCH: f64 = 36.0;
const BEHIND: f64 = 18.0;

/// The entries of the legend, and its number of rows. A name that is longer than a row has several. One series needs
/// no legend, unless that tells that it must not be used.
fn legend_places(entries: &[(&str, Look)], top: f64, width: f64) -> (Vec<Entry>, usize) {
    if entries.len() < 2 && !entries.iter().any(|(name, _)| name.contains(INVALID)) {
        return (Vec::new(), 0);
    }
    let (mut x, mut row, mut rows) = (EDGE, 0, 0);
    let mut places = Vec::new();
    for (series, (name, _)) in entries.iter().enumerate() {
        let lines = text::wrapped(name, LABEL_SIZE, width - 2.0 * EDGE - SWATCH);
        let widest = lines.iter().map(|line| text::width(line, LABEL_SIZE)).fold(0.0, f64::max);
        let reach = SWATCH + widest + BEHIND;
        if x > EDGE && x + reach > width - EDGE {
            (x, row) = (EDGE, rows);
        }
        rows = rows.max(row + lines.len().max(1));
        places.push(Entry { series, x, y: top + 4.0 + ROW * row as f64, lines });
        x += reach;
    }
    (places, rows)
}

fn swatch(svg: &mut Svg, kind: Swatch, look: Look, x: f64, y: f64, figure: &str) {
    if kind == Swatch::Bar {
        bar(svg, look, (x + 4.0, y - 6.0), (24.0, 12.0), figure);
        return;
    }
    if kind != Swatch::Marker {
        let class = format!("tl-line {}", look.stroke());
        let path = format!("M{} {}h30", coordinate(x), coordinate(y));
        svg.leaf(
            "path",
            attributes!["class" = &class, "stroke-dasharray" = look.dash(), "d" = &path],
        );
    }
    if kind != Swatch::Line {
        super::style::marker(svg, look, x + 15.0, y);
    }
}

/// A hatched rectangle.
pub(crate) fn bar(svg: &mut Svg, look: Look, at: (f64, f64), size: (f64, f64), figure: &str) {
    let class = format!("tl-edge {}", look.stroke());
    svg.leaf(
        "rect",
        attributes![
            "class" = &class,
            "fill" = &look.paint(figure),
            "x" = at.0,
            "y" = at.1,
            "width" = size.0,
            "height" = size.1,
        ],
    );
}

fn line(svg: &mut Svg, class: &str, from: (f64, f64), to: (f64, f64)) {
    svg.leaf(
        "line",
        attributes!["class" = class, "x1" = from.0, "y1" = from.1, "x2" = to.0, "y2" = to.1],
    );
}

fn grid(svg: &mut Svg, from: (f64, f64), to: (f64, f64)) {
    line(svg, "tl-grid", from, to);
}

fn grid_tick(svg: &mut Svg, from: (f64, f64), to: (f64, f64)) {
    line(svg, "tl-axis", from, to);
}

/// An upright error bar with ends, in the colour of the class `stroke` or, if that is empty, in ink.
pub(crate) fn error_bar(svg: &mut Svg, x: f64, low: f64, high: f64, stroke: &str) {
    let path = format!(
        "M{x0} {low}h6m-3 0V{high}m-3 0h6",
        x0 = coordinate(x - 3.0),
        low = coordinate(low),
        high = coordinate(high)
    );
    let class = format!("tl-bar-end {stroke}");
    svg.leaf("path", attributes!["class" = class.trim_end(), "d" = &path]);
}
