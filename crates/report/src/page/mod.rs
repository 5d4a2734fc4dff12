//! One page that needs nothing but itself: no network, no fonts, no pictures from elsewhere.
//!
//! It leads with the answer: what was found, what must not be used, one or two charts, the table if it is short. All
//! else is folded. It is written as well-formed XML, so that tests can hold it against a parser.

mod tables;

pub(crate) use tables::{sortable, wide};

use crate::answer;
use crate::chart::svg::escaped;
use crate::chart::{chart_style, charts};
use crate::figure::Figure;
use crate::gather::{CELLS, curves_cells, figures_of};
use crate::number;
use crate::pictures;
use crate::report::Report;
use crate::summary::Digest;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Rows of a table that is not folded.
const SHORT: usize = 12;

/// The page of `report`.
pub fn page(report: &Report) -> String {
    let digest = Digest::of(report);
    page_of(&digest, &figures_of(&digest))
}

/// The page with its figures worked out.
pub(crate) fn page_of(digest: &Digest<'_>, figures: &[Figure]) -> String {
    let report = digest.report;
    let title = if report.title.is_empty() { "Report" } else { &report.title };
    let title = escaped(title);
    let leading = answer::leading(report, figures);
    let (first, rest): (Vec<&Figure>, Vec<&Figure>) =
        figures.iter().partition(|figure| leading.contains(&figure.name));
    let parts = [
        head(digest),
        lead(&first),
        summary(digest),
        tables_of(report),
        section("Notes", &list("", report.notes().iter().map(ToString::to_string))),
        section("Who waits for whom", &pictures::part(report)),
        more_charts(digest, &rest),
        section("Scenario", &scenario(report)),
        section("How it was made", &tables::facts(report)),
    ];
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n\
         {}</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        chart_style(),
        parts.concat()
    )
}

/// What it is about, what must not be used, what was found.
fn head(digest: &Digest<'_>) -> String {
    let report = digest.report;
    let told = !report.comparisons.is_empty() || !report.sections.is_empty();
    if report.runs.is_empty() && !told {
        return "<p><strong>There are no runs to report.</strong></p>\n".into();
    }
    let about = match report.about.is_empty() {
        true => String::new(),
        false => format!("<p class=\"aside\">{}</p>\n", escaped(&report.about)),
    };
    format!(
        "{about}{}{}",
        list("warning", answer::warnings(report).into_iter()),
        list("answer", answer::found(digest).into_iter())
    )
}

/// The charts to begin with.
fn lead(figures: &[&Figure]) -> String {
    let drawn = drawn(figures.iter().copied(), "h2");
    if drawn.is_empty() { drawn } else { format!("<div class=\"lead\">\n{drawn}</div>\n") }
}

/// The table of all runs, open if it is short.
fn summary(digest: &Digest<'_>) -> String {
    if digest.report.runs.is_empty() {
        return String::new();
    }
    let (table, rows) = tables::overview(digest);
    folded("Summary", &table, rows <= SHORT)
}

/// The maker's tables, the first open if it is short; then published figures beside ours.
fn tables_of(report: &Report) -> String {
    let own = report.sections.iter().enumerate().map(|(index, table)| {
        folded(&table.heading, &table.page(), index == 0 && table.rows.len() <= SHORT)
    });
    let against: String = report.comparisons.iter().map(tables::comparison).collect();
    own.chain([section("Published and ours", &against)]).collect()
}

/// A folded part; nothing if it is empty.
fn section(heading: &str, content: &str) -> String {
    folded(heading, content, false)
}

fn folded(heading: &str, content: &str, open: bool) -> String {
    if content.is_empty() {
        return String::new();
    }
    let open = if open { " open=\"open\"" } else { "" };
    let heading = escaped(heading);
    format!("<details{open}>\n<summary><h2>{heading}</h2></summary>\n{content}</details>\n")
}

fn list(class: &str, texts: impl Iterator<Item = String>) -> String {
    let items: String =
        texts.map(|text| format!("<li>{}</li>\n", escaped(&number::glued(&text)))).collect();
    match (items.is_empty(), class) {
        (true, _) => String::new(),
        (false, "") => format!("<ul>\n{items}</ul>\n"),
        (false, class) => format!("<ul class=\"{class}\">\n{items}</ul>\n"),
    }
}

/// Charts that belong together stand under one heading: those asked for, then by what they show.
fn more_charts(digest: &Digest<'_>, figures: &[&Figure]) -> String {
    let report = digest.report;
    let asked = |figure: &Figure| report.figures.iter().any(|one| one.name == figure.name);
    let starts = |figure: &Figure, all: &[&str]| all.iter().any(|it| figure.name.starts_with(it));
    let (against, ledger) = (["against-"], ["ledger-", "places-"]);
    let part = |heading: &str, wanted: &dyn Fn(&Figure) -> bool| {
        section(heading, &drawn(figures.iter().copied().filter(|figure| wanted(figure)), "h3"))
    };
    let mut out = part("Figures", &asked);
    out.push_str(&part("Published and ours, drawn", &|it| !asked(it) && starts(it, &against)));
    let other = |it: &Figure| !asked(it) && !starts(it, &against) && !starts(it, &ledger);
    let others = drawn(figures.iter().copied().filter(|figure| other(figure)), "h3");
    out.push_str(&section("Charts", &(others + &left_out(digest))));
    out.push_str(&part("Where the time went", &|it| !asked(it) && starts(it, &ledger)));
    out
}

/// What is not drawn.
fn left_out(digest: &Digest<'_>) -> String {
    let traffics = digest.report.undrawn().map_or(String::new(), |text| {
        format!("<p class=\"aside\">The {text}; trunkline run --charts all draws all.</p>\n")
    });
    let cells = digest.report.spots().len();
    if cells <= CELLS {
        return traffics;
    }
    let curves = curves_cells(digest).min(cells);
    format!(
        "{traffics}<p class=\"aside\">Not all of the {cells} cells are drawn: charts of one cell show the first {CELLS}, curves \
         over message sizes the first {curves}; the tables and the CSV files hold all.</p>\n"
    )
}

/// Figures beside one another; one of panels takes the whole width, under a heading of level `level`.
fn drawn<'a>(figures: impl Iterator<Item = &'a Figure>, level: &str) -> String {
    let mut out = String::new();
    let mut single = String::new();
    for figure in figures {
        let charts = charts(figure);
        if charts.len() > 1 {
            out.push_str(&beside(&std::mem::take(&mut single)));
            out.push_str(&panels(figure, &charts, level));
        } else {
            single.push_str(&format!(
                "<figure>\n{}{}</figure>\n",
                charts.concat(),
                caption(figure)
            ));
        }
    }
    out.push_str(&beside(&single));
    out
}

fn beside(figures: &str) -> String {
    if figures.is_empty() {
        return String::new();
    }
    format!("<div class=\"charts\">\n{figures}</div>\n")
}

fn panels(figure: &Figure, charts: &[String], level: &str) -> String {
    let title = escaped(&figure.title);
    let all = charts.concat();
    format!(
        "<figure class=\"whole\">\n<{level}>{title}</{level}>\n<div class=\"charts\">\n{all}</div>\n{}</figure>\n",
        caption(figure)
    )
}

fn caption(figure: &Figure) -> String {
    match figure.caption.is_empty() {
        true => String::new(),
        false => format!("<figcaption>{}</figcaption>\n", escaped(&figure.caption)),
    }
}

fn scenario(report: &Report) -> String {
    if report.scenario.is_empty() {
        return String::new();
    }
    format!("<pre tabindex=\"0\">{}</pre>\n", escaped(&report.scenario))
}
