//! Upright bars, grouped by category.

use super::clean::{Clean, Mark};
use super::frame::{Frame, Surround, Swatch, bar, error_bar};
use super::scale::{Ruler, slot};
use super::style::{Look, cross};
use super::svg::{Svg, attributes};
use super::text;
use super::{Drawing, Sheet};
use crate::figure::{Figure, Series};
use crate::number;

/// The part of a category's width that its bars fill.
const FILLED: f64 = 0.78;
const VALUE_SIZE: f64 = 10.0;

/// Draws the figure.
pub(super) fn draw(sheet: &Sheet<'_>) -> Drawing {
    let Sheet { figure, clean, looks, slug, embed } = *sheet;
    let level = Ruler::Category(clean.categories.clone());
    let upright = Ruler::cover(&figure.y, &clean.heights(), 6, true);
    let names: Vec<String> = figure.series.iter().map(Series::legend).collect();
    let parts = Surround {
        title: &figure.title,
        level: &level,
        level_caption: figure.x.caption(),
        upright: &upright,
        upright_caption: figure.y.caption(),
        legend: names.iter().map(String::as_str).zip(looks.iter().copied()).collect(),
        swatch: Swatch::Bar,
        note: clean.note.clone(),
        width: embed.width(),
        height: embed.height() - 20.0,
        downward: false,
    };
    Drawing::new(&parts, slug, |svg, frame| {
        let group = Group { frame, upright: &upright, figure, clean, slug };
        for (index, look) in looks.iter().enumerate() {
            clean.series[index].iter().for_each(|mark| group.bar(svg, index, *look, mark));
        }
    })
}

struct Group<'a> {
    frame: &'a Frame,
    upright: &'a Ruler,
    figure: &'a Figure,
    clean: &'a Clean,
    slug: &'a str,
}

impl Group<'_> {
    fn bar(&self, svg: &mut Svg, series: usize, look: Look, mark: &Mark) {
        let count = self.clean.categories.len();
        let width = self.frame.width / count as f64 * FILLED / self.clean.series.len() as f64;
        let middle = self.frame.x(slot(mark.x as usize, count));
        let offset = series as f64 - (self.clean.series.len() as f64 - 1.0) / 2.0;
        let x = middle + offset * width;
        let Some(top) = self.upright.at(mark.y) else { return };
        let (top, base) = (self.frame.y(top), self.frame.y(self.upright.base()));
        svg.open("g", &[]);
        svg.text("title", &[], &self.tip(series, mark));
        let size = ((width - 1.5).max(0.8), (base - top).abs());
        bar(svg, look, (x - size.0 / 2.0, top.min(base)), size, self.slug);
        if mark.invalid {
            cross(svg, x, (top + base) / 2.0);
        }
        svg.close();
        let crown = self.whisker(svg, x, mark, top);
        self.value(svg, x, crown, width, mark);
    }

    fn tip(&self, series: usize, mark: &Mark) -> String {
        let (name, value) = (&self.figure.series[series].name, number::short(mark.y));
        let category = &self.clean.categories[mark.x as usize];
        let tip = format!("{name}, {category}: {value} {}", self.figure.y.unit);
        format!("{}{}", tip.trim_end(), mark.warning())
    }

    /// Draws the error bar, if any, and returns the height above which nothing is drawn.
    fn whisker(&self, svg: &mut Svg, x: f64, mark: &Mark, top: f64) -> f64 {
        let y = |value: f64| self.upright.at(value).map(|at| self.frame.y(at));
        let ends = (mark.low.or(mark.high.map(|_| mark.y)), mark.high.or(mark.low.map(|_| mark.y)));
        let (Some(low), Some(high)) = (ends.0.and_then(y), ends.1.and_then(y)) else { return top };
        error_bar(svg, x, low, high, "");
        top.min(high)
    }

    /// The value above the bar, if it fits into the bar's width.
    fn value(&self, svg: &mut Svg, x: f64, top: f64, width: f64, mark: &Mark) {
        let label = number::short(mark.y);
        if text::width(&label, VALUE_SIZE) > width - 1.0 || mark.y < 0.0 {
            return;
        }
        let place =
            attributes!["class" = "tl-value", "text-anchor" = "middle", "x" = x, "y" = top - 3.0,];
        svg.text("text", place, &label);
    }
}
