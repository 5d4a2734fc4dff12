//! The page's tables.

use crate::chart::svg::escaped;
use crate::names;
use crate::names::coordinate;
use crate::number;
use crate::overview::{Block, Entry, overview as table_of};
use crate::report::{INVALID, Report};
use crate::summary::Digest;
use crate::terminal::terminal_verdict;
use trunkline_engine::EngineName;
use trunkline_measure::{Comparison, Row, key_text};

/// Seed, version, engines and whatever else was kept.
pub(super) fn facts(report: &Report) -> String {
    let seeds: Vec<String> = report.seeds().iter().map(u64::to_string).collect();
    let engines: Vec<String> = report.engines().iter().map(EngineName::to_string).collect();
    let common = [
        ("version", report.version.clone()),
        ("seed", seeds.join(", ")),
        ("engines", engines.join(", ")),
    ];
    let common = common.iter().map(|(name, value)| (*name, value.as_str()));
    let own = report.facts.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let rows: String = common
        .chain(own)
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| {
            format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
                escaped(name),
                escaped(value)
            )
        })
        .collect();
    format!("<table>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

/// The table with a column for each engine, and its number of rows. On a narrow screen each row is a card, in which
/// values stand beside their column's heading.
pub(super) fn overview(digest: &Digest<'_>) -> (String, usize) {
    let table = table_of(digest);
    let engines = table.engines.iter().map(EngineName::as_str);
    let others = ["traffic", "transport", "figure"].into_iter().chain(engines).map(str::to_owned);
    let coordinates = table.coordinates.iter().map(|key| coordinate(key));
    let heads: Vec<String> = coordinates.chain(others).map(|name| escaped(&name)).collect();
    let figures = heads.len() - table.engines.len();
    let head = |(index, name): (usize, &String)| {
        let class = if index < figures { "" } else { " class=\"number\"" };
        format!("<th scope=\"col\"{class}>{name}</th>")
    };
    let head: String = heads.iter().enumerate().map(head).collect();
    let lines = table.blocks.iter().map(|block| block.lines.len()).sum();
    let body: String = table.blocks.iter().map(|block| rows(block, &heads)).collect();
    let reasons: String = table
        .reasons()
        .iter()
        .map(|reason| format!("<li>{}</li>\n", escaped(&number::glued(reason))))
        .collect();
    let reasons = match reasons.is_empty() {
        true => String::new(),
        false => format!("<ul class=\"aside\">\n{reasons}</ul>\n"),
    };
    let against = table.against.filter(|_| table.differs());
    let against = against.map_or(String::new(), |engine| {
        format!("<p class=\"aside\">Differences in per cent against {engine}.</p>\n")
    });
    let page = format!(
        "{}<table class=\"cards\">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n\
         </table>\n</div>\n{reasons}{against}",
        wide("Summary")
    );
    (page, lines)
}

/// The rows of one cell of the grid, whose coordinates stand in the first.
fn rows(block: &Block, heads: &[String]) -> String {
    let mut place: Vec<String> = block.place.clone();
    let mut out = String::new();
    for (index, line) in block.lines.iter().enumerate() {
        let texts = place.iter().chain([&line.traffic, &line.transport, &line.what]);
        let first: String = heads
            .iter()
            .zip(texts)
            .map(|(head, text)| format!("<td data-label=\"{head}\">{}</td>", escaped(text)))
            .collect();
        let entries = heads[place.len() + 3..].iter().zip(&line.entries);
        let entries: String = entries.map(|(head, one)| entry(one, head)).collect();
        let class = if index == 0 { " class=\"first\"" } else { "" };
        out.push_str(&format!("<tr{class}>{first}{entries}</tr>\n"));
        place.iter_mut().for_each(String::clear);
    }
    out
}

/// Opens a part that scrolls sideways if it has to, by keyboard too.
pub(crate) fn wide(name: &str) -> String {
    let name = escaped(name);
    format!("<div class=\"wide\" role=\"region\" aria-label=\"{name}\" tabindex=\"0\">\n")
}

/// The heading of a column by which a table can be sorted.
pub(crate) fn sortable(name: &str) -> String {
    format!("<th scope=\"col\"><button type=\"button\">{}</button></th>", escaped(name))
}

fn entry(entry: &Entry, head: &str) -> String {
    let difference = entry.difference.as_ref().map_or(String::new(), |difference| {
        format!(" <span class=\"aside\">{}</span>", escaped(difference))
    });
    let why =
        entry.why.as_ref().map_or(String::new(), |why| format!(" title=\"{}\"", escaped(why)));
    let (class, value) = match (entry.invalid, &entry.why) {
        (true, _) => ("number invalid", format!("<s>{}</s> {INVALID}", escaped(&entry.text))),
        // A dash takes no line of a card: its reason stands below the table.
        (false, Some(_)) => ("number none", escaped(&entry.text)),
        (false, None) => ("number", escaped(&entry.text)),
    };
    format!("<td class=\"{class}\" data-label=\"{head}\"{why}>{value}{difference}</td>")
}

/// A published table against ours, with a verdict for each cell, in colour and as a mark.
pub(super) fn comparison(comparison: &Comparison) -> String {
    let unit =
        if comparison.unit.is_empty() { String::new() } else { format!(" ({})", comparison.unit) };
    let heads = ["cell", &format!("published{unit}"), &format!("ours{unit}"), "error", "verdict"];
    let rows: String = comparison.rows.iter().map(|one| row(one, heads)).collect();
    let heads: String = heads.into_iter().map(sortable).collect();
    format!(
        "<h3>{}</h3>\n<p>{}</p>\n{}<table class=\"sortable cards\">\n<thead><tr>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</div>\n",
        escaped(&comparison.name),
        escaped(&terminal_verdict(comparison)),
        wide(&comparison.name),
    )
}

fn row(row: &Row, heads: [&str; 5]) -> String {
    let [cell, published, ours, error, judged] =
        heads.map(|head| format!("data-label=\"{}\"", escaped(head)));
    let (verdict, mark) = names::verdict(row.verdict);
    let key = escaped(&key_text(&row.key));
    let value = |value: Option<f64>, label: &str, print: fn(f64) -> String| {
        let finite = value.filter(|value| value.is_finite());
        let raw = finite.map(|value| value.to_string()).unwrap_or_default();
        let text = finite.map_or(number::NONE.into(), print);
        format!("<td class=\"number\" {label} data-value=\"{raw}\">{}</td>", escaped(&text))
    };
    format!(
        "<tr><td {cell}>{key}</td>{}{}{}<td class=\"{verdict}\" {judged}>{mark} {verdict}</td></tr>\n",
        value(row.published, &published, number::short),
        value(row.ours, &ours, number::short),
        value(row.error, &error, number::share),
    )
}
