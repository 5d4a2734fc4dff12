//! How series are told apart: colour, dash, marker and hatch together, so that a grey print still reads.
//!
//! An engine has one colour in all charts, and published figures are ink. What is no engine, such as a cause of delay
//! or a cell of a grid, takes a colour that no engine has.

use super::svg::{Svg, attributes};
use crate::figure::{Figure, FigureKind, Role};
use std::collections::BTreeSet;

/// Colours, markers and hatches that follow one another before they repeat.
pub(crate) const COLOURS: usize = 8;

/// Rules for the light page, then for the dark one. Colours are written out, not as variables, because
/// converters for print (rsvg-convert, Inkscape) know no variables; they show the light page.
pub(crate) const STYLE: &str = include_str!("chart.css");

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hue {
    /// One of [`COLOURS`] that no engine has.
    Free(usize),
    /// An engine's own, or that of published figures.
    Of(Role),
}

impl Hue {
    /// The end of its classes' names.
    fn name(self) -> String {
        match self {
            Hue::Free(index) => (index % COLOURS).to_string(),
            Hue::Of(Role::Published) => "p".into(),
            Hue::Of(Role::Model) => "m".into(),
            Hue::Of(Role::Ours | Role::Sim) => "s".into(),
            Hue::Of(Role::Emu) => "e".into(),
        }
    }
    fn stroke(self) -> String {
        format!("tl-s{}", self.name())
    }
    fn fill(self) -> String {
        format!("tl-f{}", self.name())
    }
    fn tint(self) -> String {
        format!("tl-t{}", self.name())
    }
}

/// The look of one series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) hue: Hue,
    /// Which shape its markers have.
    pub(crate) marker: usize,
    /// Which hatch fills its bars.
    pub(crate) hatch: usize,
    /// Which dash draws its lines.
    pub(crate) dash: usize,
    /// Markers are outlined, not filled: published values and the model's, which stay visible before others.
    pub(crate) hollow: bool,
}

const DASHES: [&str; 6] = ["none", "7 3", "2 2.5", "9 3 2 3", "4 2", "12 3 2 3 2 3"];

/// The look of each series of `figure`. If its series are of several origins, each origin has its colour, and groups
/// differ in marker and dash. If all are of one, groups differ in colour too.
pub(crate) fn looks(figure: &Figure) -> Vec<Look> {
    let roles: BTreeSet<usize> = figure.series.iter().map(|series| rank(series.role)).collect();
    let single = figure.series.len() < 2;
    let causes = matches!(figure.kind, FigureKind::Stacked | FigureKind::Waterfall);
    let by_role = !causes && (single || roles.len() > 1);
    let mut groups: Vec<&str> = Vec::new();
    let mut looks = Vec::new();
    for (index, series) in figure.series.iter().enumerate() {
        let before = figure.series[..index].iter().filter(|other| other.role == series.role);
        let group = match &series.group {
            None if by_role => before.count(),
            None => index,
            Some(group) => place(&mut groups, group),
        };
        looks.push(match by_role {
            true => of_role(series.role, group),
            false => of_group(group, series.role),
        });
    }
    looks
}

/// The place of `group` among those seen so far.
fn place<'a>(groups: &mut Vec<&'a str>, group: &'a str) -> usize {
    groups.iter().position(|known| *known == group).unwrap_or_else(|| {
        groups.push(group);
        groups.len() - 1
    })
}

/// Origins in the order of their markers, dashes and hatches.
fn rank(role: Role) -> usize {
    match role {
        Role::Ours | Role::Sim => 0,
        Role::Published => 1,
        Role::Model => 2,
        Role::Emu => 3,
    }
}

fn of_role(role: Role, group: usize) -> Look {
    let rank = rank(role);
    Look {
        hue: Hue::Of(role),
        marker: rank + 4 * (group % 2),
        hatch: rank + 4 * (group % 2),
        dash: rank + group,
        hollow: matches!(role, Role::Published | Role::Model),
    }
}

fn of_group(group: usize, role: Role) -> Look {
    Look {
        hue: Hue::Free(group),
        marker: group,
        hatch: group + group / COLOURS,
        dash: group,
        hollow: role == Role::Published,
    }
}

impl Look {
    /// Class that strokes in its colour.
    pub(crate) fn stroke(self) -> String {
        self.hue.stroke()
    }
    /// Class that fills in its colour, or not at all if hollow.
    pub(crate) fn fill(self) -> String {
        if self.hollow { "tl-none".into() } else { self.hue.fill() }
    }
    /// Dash of its lines.
    pub(crate) fn dash(self) -> &'static str {
        DASHES[self.dash % DASHES.len()]
    }
    /// Reference to the pattern that fills its bars.
    pub(crate) fn paint(self, figure: &str) -> String {
        format!("url(#{})", self.pattern(figure))
    }
    fn pattern(self, figure: &str) -> String {
        format!("{figure}-h{}-{}", self.hue.name(), self.hatch % COLOURS)
    }
}

/// Writes the patterns that `looks` need.
pub(crate) fn patterns(svg: &mut Svg, figure: &str, looks: &[Look]) {
    let mut done = BTreeSet::new();
    for look in looks {
        if done.insert(look.pattern(figure)) {
            pattern(svg, figure, *look);
        }
    }
}

fn pattern(svg: &mut Svg, figure: &str, look: Look) {
    let (id, hatch) = (look.pattern(figure), look.hatch % COLOURS);
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
    let ground = if hatch == 0 { look.hue.fill() } else { look.hue.tint() };
    svg.leaf("rect", attributes!["class" = &ground, "width" = 6.0, "height" = 6.0]);
    if let Some(path) = strokes(hatch) {
        let class = format!("tl-hatch {}", look.hue.stroke());
        svg.leaf("path", attributes!["class" = &class, "d" = path]);
    }
    if hatch == 5 {
        let class = look.hue.fill();
        svg.leaf("circle", attributes!["class" = &class, "cx" = 3.0, "cy" = 3.0, "r" = 1.5]);
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

/// A marker of shape `look.marker`, centred on a point. Hollow ones are larger, so that one behind them is seen.
pub(crate) fn marker(svg: &mut Svg, look: Look, x: f64, y: f64) {
    let class = format!("tl-mark {} {}", look.stroke(), look.fill());
    let path = match look.marker % COLOURS {
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
    let larger = if look.hollow { " scale(1.3)" } else { "" };
    let place =
        format!("translate({} {}){larger}", super::svg::coordinate(x), super::svg::coordinate(y));
    svg.leaf("path", attributes!["class" = &class, "d" = path, "transform" = &place]);
}

/// A cross over a point whose value must not be used.
pub(crate) fn cross(svg: &mut Svg, x: f64, y: f64) {
    let place = format!("translate({} {})", super::svg::coordinate(x), super::svg::coordinate(y));
    let path = "M-7 -7L7 7M-7 7L7 -7";
    svg.leaf("path", attributes!["class" = "tl-invalid", "d" = path, "transform" = &place]);
}
