//! How series are told apart: colour, dash, marker and hatch together, so that a grey print still reads.

use super::svg::{Svg, attributes};
use crate::figure::{Figure, FigureKind, Role};

/// Colours and hatches that follow one another before they repeat.
pub(crate) const COLOURS: usize = 8;

/// Rules for the light page, then for the dark one. Colours are written out, not as variables, because
/// converters for print (rsvg-convert, Inkscape) know no variables; they show the light page.
pub(crate) const STYLE: &str = include_str!("chart.css");

/// The look of one series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    /// Which colour and which marker.
    pub(crate) colour: usize,
    /// Which hatch fills its bars.
    pub(crate) hatch: usize,
    /// Which dash draws its lines.
    pub(crate) dash: usize,
    /// Markers are outlined, not filled: published values.
    pub(crate) hollow: bool,
}

const DASHES: [&str; 6] = ["none", "7 3", "2 2.5", "9 3 2 3", "4 2", "12 3 2 3 2 3"];
const STROKES: [&str; COLOURS] =
    ["tl-s0", "tl-s1", "tl-s2", "tl-s3", "tl-s4", "tl-s5", "tl-s6", "tl-s7"];
const FILLS: [&str; COLOURS] =
    ["tl-f0", "tl-f1", "tl-f2", "tl-f3", "tl-f4", "tl-f5", "tl-f6", "tl-f7"];
const TINTS: [&str; COLOURS] =
    ["tl-t0", "tl-t1", "tl-t2", "tl-t3", "tl-t4", "tl-t5", "tl-t6", "tl-t7"];

/// The look of each series of `figure`. Groups share colour and marker; without groups each series has its
/// own. Curves drawn without many markers need a dash each, others show their role by it.
pub(crate) fn looks(figure: &Figure) -> Vec<Look> {
    let mut groups: Vec<&str> = Vec::new();
    let grouped = figure.series.iter().any(|series| series.group.is_some());
    let by_role = grouped && figure.kind == FigureKind::Lines;
    let mut looks = Vec::new();
    for (index, series) in figure.series.iter().enumerate() {
        let key = series.group.as_deref().unwrap_or(&series.name);
        let known = groups.iter().position(|group| *group == key && grouped);
        let colour = known.unwrap_or_else(|| {
            groups.push(key);
            groups.len() - 1
        });
        let dash = if by_role { role_dash(series.role) } else { index };
        looks.push(Look {
            colour,
            hatch: index + index / COLOURS,
            dash,
            hollow: series.role == Role::Published,
        });
    }
    looks
}

fn role_dash(role: Role) -> usize {
    match role {
        Role::Ours | Role::Sim => 0,
        Role::Published => 1,
        Role::Model => 2,
        Role::Emu => 3,
    }
}

impl Look {
    /// Class that strokes in its colour.
    pub(crate) fn stroke(self) -> &'static str {
        STROKES[self.colour % COLOURS]
    }
    /// Class that fills in its colour, or with paper if hollow.
    pub(crate) fn fill(self) -> &'static str {
        if self.hollow { "tl-paper" } else { FILLS[self.colour % COLOURS] }
    }
    /// Dash of its lines.
    pub(crate) fn dash(self) -> &'static str {
        DASHES[self.dash % DASHES.len()]
    }
    /// Reference to the pattern that fills its bars.
    pub(crate) fn paint(self, figure: &str) -> String {
        format!("url(#{figure}-h{}-{})", self.colour % COLOURS, self.hatch % COLOURS)
    }
}

/// Writes the patterns that `looks` need.
pub(crate) fn patterns(svg: &mut Svg, figure: &str, looks: &[Look]) {
    let mut done = Vec::new();
    for look in looks {
        let key = (look.colour % COLOURS, look.hatch % COLOURS);
        if !done.contains(&key) {
            done.push(key);
            pattern(svg, figure, key.0, key.1);
        }
    }
}

fn pattern(svg: &mut Svg, figure: &str, colour: usize, hatch: usize) {
    let id = format!("{figure}-h{colour}-{hatch}");
    let turn = match hatch {
        1 | 4 => "rotate(45)",
        2 => "rotate(-45)",
        _ => "rotate(0)",
    };
    svg.open(
        "pattern",
        attributes![
            "id" = &id,
            "width" = 6.0,
            "height" = 6.0,
            "patternUnits" = "userSpaceOnUse",
            "patternTransform" = turn,
        ],
    );
    let ground = if hatch == 0 { FILLS[colour] } else { TINTS[colour] };
    svg.leaf("rect", attributes!["class" = ground, "width" = 6.0, "height" = 6.0]);
    if let Some(path) = strokes(hatch) {
        let class = format!("tl-hatch {}", STROKES[colour]);
        svg.leaf("path", attributes!["class" = &class, "d" = path]);
    }
    if hatch == 5 {
        svg.leaf("circle", attributes!["class" = FILLS[colour], "cx" = 3.0, "cy" = 3.0, "r" = 1.5]);
    }
    svg.close();
}

/// The lines of a hatch: plain, slanted both ways, level, crossed, dotted, upright, empty.
fn strokes(hatch: usize) -> Option<&'static str> {
    match hatch {
        1 | 2 | 6 => Some("M3 0V6"),
        3 => Some("M0 3H6"),
        4 => Some("M3 0V6M0 3H6"),
        _ => None,
    }
}

/// A marker of shape `look.colour`, centred on a point.
pub(crate) fn marker(svg: &mut Svg, look: Look, x: f64, y: f64) {
    let class = format!("tl-mark {} {}", look.stroke(), look.fill());
    let path = match look.colour % COLOURS {
        0 => {
            svg.leaf("circle", attributes!["class" = &class, "cx" = x, "cy" = y, "r" = 3.6]);
            return;
        }
        1 => "M-3.3 -3.3H3.3V3.3H-3.3Z",
        2 => "M0 -4.4L4.1 3H-4.1Z",
        3 => "M0 -4.6L4.6 0L0 4.6L-4.6 0Z",
        4 => "M0 4.4L4.1 -3H-4.1Z",
        5 => "M-1.5 -4.2H1.5V-1.5H4.2V1.5H1.5V4.2H-1.5V1.5H-4.2V-1.5H-1.5Z",
        6 => "M0 -4.4L4.2 -1.3L2.6 3.7H-2.6L-4.2 -1.3Z",
        _ => "M-4.2 -2H4.2V2H-4.2Z",
    };
    let place = format!("translate({} {})", super::svg::coordinate(x), super::svg::coordinate(y));
    svg.leaf("path", attributes!["class" = &class, "d" = path, "transform" = &place]);
}

/// A cross over a point whose value must not be used.
pub(crate) fn cross(svg: &mut Svg, x: f64, y: f64) {
    let place = format!("translate({} {})", super::svg::coordinate(x), super::svg::coordinate(y));
    let path = "M-7 -7L7 7M-7 7L7 -7";
    svg.leaf("path", attributes!["class" = "tl-invalid", "d" = path, "transform" = &place]);
}
