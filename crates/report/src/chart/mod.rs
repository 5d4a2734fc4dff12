//! Figures as SVG, readable on paper and on screen, in light, dark and grey.
//!
//! The chart room is our own because no crate at hand does all that a study needs: `plotters` fixes its
//! colours when it draws and so has no dark page, `poloto` has neither bars nor hatches, `charming` needs a
//! browser's scripts.

mod bars;
mod clean;
mod frame;
mod points;
mod scale;
mod stacked;
mod style;
pub(crate) mod svg;
mod text;

use crate::figure::{Figure, FigureKind};
use frame::{Layout, Surround, WIDTH};
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

/// The style sheet of all charts, for pages.
pub fn chart_style() -> &'static str {
    STYLE
}

/// Draws `figure`. The same figure gives the same text.
pub fn chart(figure: &Figure, embed: Embed) -> String {
    let slug = figure.slug();
    let looks = style::looks(figure);
    let clean = clean::clean(figure);
    let drawing = match figure.kind {
        FigureKind::Bars => bars::draw(figure, &clean, &looks, &slug),
        FigureKind::Waterfall | FigureKind::Stacked => stacked::draw(figure, &clean, &looks, &slug),
        FigureKind::Lines | FigureKind::Cdf | FigureKind::TimeSeries | FigureKind::QueueDepth => {
            points::draw(figure, &clean, &looks, &slug)
        }
    };
    document(figure, embed, &slug, &looks, drawing)
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

fn document(figure: &Figure, embed: Embed, slug: &str, looks: &[Look], drawing: Drawing) -> String {
    let mut svg = Svg::default();
    let (width, height) = (coordinate(WIDTH), coordinate(drawing.height));
    let view = format!("0 0 {width} {height}");
    let alone = embed == Embed::File;
    let mut root =
        vec![("class", "tl-chart".into()), ("viewBox", (&view).into()), ("role", "img".into())];
    root.push(("aria-label", (&figure.title).into()));
    if alone {
        root.push(("xmlns", "http://www.w3.org/2000/svg".into()));
        root.push(("width", (&width).into()));
        root.push(("height", (&height).into()));
    }
    svg.open("svg", &root);
    svg.text("title", &[], &figure.title);
    if alone {
        svg.text("desc", &[], &figure.caption);
        svg.raw("style", STYLE);
    }
    svg.open("defs", &[]);
    style::patterns(&mut svg, slug, looks);
    clip(&mut svg, slug, &drawing.frame);
    svg.close();
    svg.leaf("rect", attributes!["class" = "tl-paper", "width" = &width, "height" = &height]);
    svg.append(drawing.behind);
    let clip = format!("url(#{slug}-clip)");
    svg.open("g", attributes!["clip-path" = &clip]);
    svg.append(drawing.marks);
    svg.close();
    svg.append(drawing.above);
    svg.finish()
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
