//! The trace as a space–time diagram.

use super::{Act, Record, arrows, awaited, slices};
use std::fmt::Write as _;
use trunkline_core::Time;

/// Nodes that are drawn at most.
pub const MOST_NODES: usize = 16;
/// Messages that are drawn at most.
pub const MOST_LINES: usize = 400;

/// Colours of the palette of Okabe and Ito (2008), which the colour-blind can tell apart, without its black.
const COLOURS: [&str; 7] =
    ["#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7"];
/// Waits for no node in particular.
const GREY: &str = "#BBBBBB";
/// Messages of no bytes, such as those with which programs end.
const EMPTY: &str = "#AAAAAA";

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 50.0;
const LINE: f64 = 44.0;
/// Half the height of the bar of a node.
const BAR: f64 = 7.0;
/// A bar narrower than this has no number in it.
const LEGIBLE: f64 = 12.0;

const LEGEND: &str = "Messages slant from sender to receiver, grey if empty. Dark: work. Coloured, with its number: waits \
                      for that node; grey: for any, or for buffers.";

/// The places of times and nodes in the picture.
struct Scale {
    start: Time,
    /// Nanoseconds from the first to the last record, at least 1.
    length: f64,
    /// Nanoseconds of the axis's unit, and its name.
    unit: (f64, &'static str),
}

/// A space–time diagram as SVG: time goes to the right, each node has a line, messages slant from sender to receiver, work is
/// dark, and waits have the colour and the number of the node that is waited for, or grey. It draws the first [`MOST_NODES`]
/// nodes and at most [`MOST_LINES`] messages, evenly thinned, and says what it left out. `nodes` are the records of each node,
/// from node 0.
pub fn picture(nodes: &[Vec<Record>]) -> String {
    let shown = &nodes[..nodes.len().min(MOST_NODES)];
    let scale = Scale::of(shown);
    let height = TOP + LINE * shown.len() as f64 + 50.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0} {height:.0}\" font-family=\"sans-serif\" \
         font-size=\"12\" role=\"img\"><title>Messages among {} nodes</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        LEFT + WIDTH + 20.0,
        nodes.len(),
    );
    shown.iter().enumerate().for_each(|(node, records)| bar(&mut svg, &scale, node, records));
    let note = messages(&mut svg, &scale, nodes, shown.len());
    axis(&mut svg, &scale, height - 40.0);
    text(&mut svg, LEFT, 18.0, "start", LEGEND);
    text(&mut svg, LEFT, 34.0, "start", &note);
    svg.push_str("</svg>\n");
    svg
}

impl Scale {
    fn of(nodes: &[Vec<Record>]) -> Scale {
        let times = || nodes.iter().flatten().map(|record| record.at);
        let start = times().min().unwrap_or(Time::ZERO);
        let length = times().max().unwrap_or(start).since(start).as_nanos().max(1) as f64;
        let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
        let unit = units.into_iter().find(|unit| length >= unit.0).unwrap_or((1.0, "ns"));
        Scale { start, length, unit }
    }

    fn x(&self, at: Time) -> f64 {
        LEFT + WIDTH * at.since(self.start).as_nanos() as f64 / self.length
    }

    fn y(node: usize) -> f64 {
        TOP + LINE * (node as f64 + 0.5)
    }

    /// From one tick of the axis to the next, in its unit: 1, 2 or 5 times a power of ten, so that there are 5 to 12.
    fn tick(&self) -> f64 {
        let rough = self.length / self.unit.0 / 10.0;
        let power = 10_f64.powf(rough.log10().floor());
        let fits = |&factor: &f64| factor * power >= rough;
        [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * power
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, words: &str) {
    let _ =
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

/// A node's line with its work and its waits.
fn bar(svg: &mut String, scale: &Scale, node: usize, records: &[Record]) {
    let y = Scale::y(node);
    text(svg, LEFT - 8.0, y + 4.0, "end", &format!("node {node}"));
    let right = LEFT + WIDTH;
    let _ = writeln!(
        svg,
        "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#888888\"/>"
    );
    for (record, end) in slices(records) {
        let (colour, number) = match record.act {
            Act::Work(_) => ("#444444", None),
            Act::Wait(waiting) => match awaited(waiting) {
                Some(node) => (COLOURS[usize::from(node.0) % COLOURS.len()], Some(node.0)),
                None => (GREY, None),
            },
            _ => continue,
        };
        let (x, width) = (scale.x(record.at), scale.x(end) - scale.x(record.at));
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.2}\" y=\"{:.1}\" width=\"{width:.2}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            y - BAR,
            2.0 * BAR,
        );
        if let Some(number) = number.filter(|_| width >= LEGIBLE) {
            text(svg, x + width / 2.0, y + 4.0, "middle", &number.to_string());
        }
    }
}

/// The messages. Answers a note of what is left out.
fn messages(svg: &mut String, scale: &Scale, nodes: &[Vec<Record>], shown: usize) -> String {
    let mut arrows = arrows(nodes);
    arrows.retain(|it| usize::from(it.from.0.max(it.to.0)) < shown);
    arrows.sort_by_key(|it| (it.sent, it.from, it.to, it.fragment));
    let every = arrows.len().div_ceil(MOST_LINES).max(1);
    for arrow in arrows.iter().step_by(every) {
        let (from, to) = (Scale::y(usize::from(arrow.from.0)), Scale::y(usize::from(arrow.to.0)));
        let (sent, received) = (scale.x(arrow.sent), scale.x(arrow.received));
        let colour = if arrow.bytes > 0 { "black" } else { EMPTY };
        let _ = writeln!(
            svg,
            "<line class=\"message\" x1=\"{sent:.2}\" y1=\"{from:.1}\" x2=\"{received:.2}\" y2=\"{to:.1}\" \
             stroke=\"{colour}\" stroke-width=\"0.8\"/><circle cx=\"{received:.2}\" cy=\"{to:.1}\" r=\"2\" fill=\"{colour}\"/>"
        );
    }
    let mut notes = Vec::new();
    if every > 1 {
        notes.push(format!("1 message in {every} is drawn."));
    }
    if nodes.len() > shown {
        notes.push(format!("The first {shown} of {} nodes are drawn.", nodes.len()));
    }
    notes.join(" ")
}

fn axis(svg: &mut String, scale: &Scale, y: f64) {
    let right = LEFT + WIDTH;
    let _ = writeln!(
        svg,
        "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"black\"/>"
    );
    let (tick, all) = (scale.tick(), scale.length / scale.unit.0);
    let places = if tick < 1.0 { (-tick.log10().floor()) as usize } else { 0 };
    for number in 0..=(all / tick + 1e-9) as u32 {
        let value = f64::from(number) * tick;
        let x = LEFT + WIDTH * value / all;
        let below = y + 5.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{x:.1}\" y2=\"{below:.1}\" stroke=\"black\"/>"
        );
        text(svg, x, y + 18.0, "middle", &format!("{value:.places$}"));
    }
    text(svg, right, y + 34.0, "end", &format!("time in {}", scale.unit.1));
}
