//! Figures as SVG, readable on paper and on screen, in light, dark and grey.
//!
//! The chart room is our own because no crate at hand does all that a study needs: `plotters` fixes its
//! colours when it draws and so has no dark page, `poloto` has neither bars nor hatches, `charming` needs a
//! browser's scripts.

mod bars;
mod clean;
mod frame;
mod panels;
mod points;
mod scale;
mod stacked;
mod style;
pub(crate) mod svg;
mod text;

use crate::figure::{Figure, FigureKind};
use frame::{Layout, Surround};
use style::{Look, STYLE};
use svg::{Svg, attributes, coordinate};

/// The surroundings of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Embed {
    /// In a file of its own, with its style sheet.
    File,
    /// In a page that holds [`chart_style`] once.
    Page,
}

impl Embed {
    /// Width of the whole chart, in pixels. That of a page can be read on a telephone, and three stand side by side on
    /// a screen.
    pub(crate) fn width(self) -> f64 {
        match self {
            Embed::File => 720.0,
            Embed::Page => 400.0,
        }
    }
    /// Height of a plot, its surroundings aside.
    pub(crate) fn height(self) -> f64 {
        match self {
            Embed::File => 300.0,
            Embed::Page => 200.0,
        }
    }
}

/// The style sheet of all charts, for pages.
pub fn chart_style() -> &'static str {
    STYLE
}

/// Draws `figure`. The same figure gives the same text. In a file, panels stand in a grid.
pub fn chart(figure: &Figure, embed: Embed) -> String {
    let panels = panels::panels(figure);
    match panels.len() {
        0 | 1 => one(figure, embed).text,
        _ => panels::grid(figure, &panels),
    }
}

/// The charts of `figure` for a page, which puts them beside one another as far as its width allows.
pub(crate) fn charts(figure: &Figure) -> Vec<String> {
    let panels = panels::panels(figure);
    match panels.len() {
        0 | 1 => vec![one(figure, Embed::Page).text],
        _ => panels.iter().map(|panel| one(panel, Embed::Page).text).collect(),
    }
}

/// A finished drawing and its height in pixels.
struct Chart {
    text: String,
    height: f64,
}

fn one(figure: &Figure, embed: Embed) -> Chart {
    let (slug, looks, clean) = (figure.slug(), style::looks(figure), clean::clean(figure));
    let sheet = Sheet { figure, clean: &clean, looks: &looks, slug: &slug, embed };
    let drawing = match figure.kind {
        FigureKind::Bars => bars::draw(&sheet),
        FigureKind::Waterfall | FigureKind::Stacked => stacked::draw(&sheet),
        FigureKind::Lines | FigureKind::Cdf | FigureKind::TimeSeries | FigureKind::QueueDepth => {
            points::draw(&sheet)
        }
    };
    let height = drawing.height;
    Chart { text: document(&sheet, drawing), height }
}

/// What every kind of chart is drawn from.
struct Sheet<'a> {
    figure: &'a Figure,
    clean: &'a clean::Clean,
    looks: &'a [Look],
    slug: &'a str,
    embed: Embed,
}

/// The marks of a chart, and what is drawn around them.
struct Drawing {
    height: f64,
    behind: Svg,
    marks: Svg,
    above: Svg,
    frame: frame::Frame,
}

impl Drawing {
    /// Lays out the surroundings; `marks` then draws within the frame.
    fn new(
        parts: &Surround<'_>,
        slug: &str,
        marks: impl FnOnce(&mut Svg, &frame::Frame),
    ) -> Drawing {
        let layout = Layout::of(parts);
        let (mut behind, mut inside, mut above) = (Svg::default(), Svg::default(), Svg::default());
        layout.draw(&mut behind, parts, slug);
        marks(&mut inside, &layout.frame);
        layout.axes(&mut above);
        Drawing { height: layout.height, behind, marks: inside, above, frame: layout.frame }
    }
}

fn document(sheet: &Sheet<'_>, drawing: Drawing) -> String {
    let Sheet { figure, looks, slug, embed, .. } = *sheet;
    let mut svg = Svg::default();
    open(&mut svg, figure, embed, (embed.width(), drawing.height));
    svg.open("defs", &[]);
    style::patterns(&mut svg, slug, looks);
    clip(&mut svg, slug, &drawing.frame);
    svg.close();
    svg.append(drawing.behind);
    let clip = format!("url(#{slug}-clip)");
    svg.open("g", attributes!["clip-path" = &clip]);
    svg.append(drawing.marks);
    svg.close();
    svg.append(drawing.above);
    svg.finish()
}

/// The root of a drawing: its size, its names, its paper, and in a file its style sheet.
fn open(svg: &mut Svg, figure: &Figure, embed: Embed, (width, height): (f64, f64)) {
    let (width, height) = (coordinate(width), coordinate(height));
    let view = format!("0 0 {width} {height}");
    let mut root = vec![
        ("class", "tl-chart".into()),
        ("viewBox", (&view).into()),
        ("role", "img".into()),
        ("aria-label", (&figure.title).into()),
        ("width", (&width).into()),
        ("height", (&height).into()),
    ];
    if embed == Embed::File {
        root.push(("xmlns", "http://www.w3.org/2000/svg".into()));
    }
    svg.open("svg", &root);
    svg.text("title", &[], &figure.title);
    if embed == Embed::File {
        svg.text("desc", &[], &figure.caption);
        svg.raw("style", STYLE);
    }
    svg.leaf("rect", attributes!["class" = "tl-paper", "width" = &width, "height" = &height]);
}

/// Marks may stand out of the plot by a marker's size, not more.
fn clip(svg: &mut Svg, slug: &str, frame: &frame::Frame) {
    let id = format!("{slug}-clip");
    svg.open("clipPath", attributes!["id" = &id]);
    svg.leaf(
        "rect",
        attributes![
            "x" = frame.left - 6.0,
            "y" = frame.top - 16.0,
            "width" = frame.width + 30.0,
            "height" = frame.height + 22.0,
        ],
    );
    svg.close();
}
