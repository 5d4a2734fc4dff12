//! One page that needs nothing but itself: no network, no fonts, no pictures from elsewhere.
//!
//! It is written as well-formed XML, so that tests can hold it against a parser.

mod tables;

use crate::chart::svg::escaped;
use crate::chart::{Embed, chart, chart_style};
use crate::figure::Figure;
use crate::gather::{CELLS, curves_cells, figures_of};
use crate::pictures;
use crate::report::Report;
use crate::summary::Digest;

const STYLE: &str = include_str!("page.css");
const SORT: &str = include_str!("sort.js");

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
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{title}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n",
        chart_style()
    );
    if !report.about.is_empty() {
        out.push_str(&format!("<p>{}</p>\n", escaped(&report.about)));
    }
    out.push_str(&tables::facts(report));
    let told = !report.comparisons.is_empty() || !report.sections.is_empty();
    if report.runs.is_empty() && !told {
        out.push_str("<p><strong>There are no runs to report.</strong></p>\n");
    } else if !report.runs.is_empty() {
        out.push_str(&section("Summary", &tables::overview(digest)));
    }
    for table in &report.sections {
        out.push_str(&section(&table.heading, &table.page()));
    }
    out.push_str(&section("Notes", &notes(report)));
    let against: String = report.comparisons.iter().map(tables::comparison).collect();
    out.push_str(&section("Published and ours", &against));
    out.push_str(&section("Who waits for whom", &pictures::part(report)));
    out.push_str(&charts(report, figures));
    out.push_str(&section("Scenario", &scenario(report)));
    out.push_str(&format!("<script>\n{SORT}</script>\n</body>\n</html>\n"));
    out
}

/// A heading with its content; nothing where there is none.
fn section(heading: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<section>\n<h2>{}</h2>\n{content}</section>\n", escaped(heading))
}

fn notes(report: &Report) -> String {
    let notes = report.notes();
    if notes.is_empty() {
        return String::new();
    }
    let items: String =
        notes.iter().map(|note| format!("<li>{}</li>\n", escaped(&note.to_string()))).collect();
    format!("<ul>\n{items}</ul>\n")
}

/// Charts that belong together stand under one heading: those asked for, then by what they show.
fn charts(report: &Report, figures: &[Figure]) -> String {
    let (asked, own) = figures.split_at(report.figures.len().min(figures.len()));
    let ledger = |figure: &&Figure| {
        ["ledger-", "places-"].iter().any(|start| figure.name.starts_with(start))
    };
    let drawn =
        |figures: &mut dyn Iterator<Item = &Figure>| figures.map(figure).collect::<String>();
    let mut out = section("Figures", &drawn(&mut asked.iter()));
    let against = |figure: &&Figure| figure.name.starts_with("against-");
    out.push_str(&section("Published and ours, drawn", &drawn(&mut own.iter().filter(against))));
    let other = |figure: &&Figure| !ledger(figure) && !against(figure);
    out.push_str(&section("Charts", &drawn(&mut own.iter().filter(other))));
    out.push_str(&section("Where the time went", &drawn(&mut own.iter().filter(ledger))));
    let cells = report.spots().len();
    if cells > CELLS {
        out.push_str(&format!(
            "<p class=\"aside\">Not all of the {cells} cells are drawn: charts of one cell show the first \
             {CELLS}, curves over message sizes the first {}; the tables and the CSV files hold all.</p>\n",
            curves_cells(report).min(cells)
        ));
    }
    out
}

fn figure(figure: &Figure) -> String {
    let caption = match figure.caption.is_empty() {
        true => String::new(),
        false => format!("<figcaption>{}</figcaption>\n", escaped(&figure.caption)),
    };
    format!("<figure>\n{}{caption}</figure>\n", chart(figure, Embed::Page))
}

fn scenario(report: &Report) -> String {
    if report.scenario.is_empty() {
        return String::new();
    }
    format!(
        "<details>\n<summary>The scenario as read</summary>\n<pre>{}</pre>\n</details>\n",
        escaped(&report.scenario)
    )
}
