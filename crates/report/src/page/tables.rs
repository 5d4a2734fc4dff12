//! The page's tables.

use crate::chart::svg::escaped;
use crate::names;
use crate::names::coordinate;
use crate::number;
use crate::overview::{Entry, overview as table_of};
use crate::report::Report;
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
            format!("<tr><th>{}</th><td>{}</td></tr>\n", escaped(name), escaped(value))
        })
        .collect();
    format!("<table>\n<tbody>\n{rows}</tbody>\n</table>\n")
}

/// The table with a column for each engine.
pub(super) fn overview(digest: &Digest<'_>) -> String {
    let table = table_of(digest);
    let engines = table.engines.iter().map(EngineName::as_str);
    let others = ["traffic", "transport", ""].into_iter().chain(engines).map(str::to_owned);
    let coordinates = table.coordinates.iter().map(|key| coordinate(key));
    let head: String =
        coordinates.chain(others).map(|name| format!("<th>{}</th>", escaped(&name))).collect();
    let mut body = String::new();
    for block in &table.blocks {
        let mut place: Vec<String> = block.place.clone();
        for (index, line) in block.lines.iter().enumerate() {
            let first: String = place
                .iter()
                .chain([&line.traffic, &line.transport, &line.what])
                .map(|text| format!("<td>{}</td>", escaped(text)))
                .collect();
            let entries: String = line.entries.iter().map(entry).collect();
            let class = if index == 0 { " class=\"first\"" } else { "" };
            body.push_str(&format!("<tr{class}>{first}{entries}</tr>\n"));
            place.iter_mut().for_each(String::clear);
        }
    }
    let reasons: String =
        table.reasons().iter().map(|reason| format!("<li>{}</li>\n", escaped(reason))).collect();
    let reasons = match reasons.is_empty() {
        true => String::new(),
        false => format!("<ul class=\"aside\">\n{reasons}</ul>\n"),
    };
    let against = table.against.map_or(String::new(), |engine| {
        format!("<p class=\"aside\">Differences in per cent against {engine}.</p>\n")
    });
    format!(
        "<div class=\"wide\">\n<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n\
         </table>\n</div>\n{reasons}{against}"
    )
}

fn entry(entry: &Entry) -> String {
    let difference = entry.difference.as_ref().map_or(String::new(), |difference| {
        format!(" <span class=\"aside\">{}</span>", escaped(difference))
    });
    let class = if entry.invalid { "number invalid" } else { "number" };
    let why =
        entry.why.as_ref().map_or(String::new(), |why| format!(" title=\"{}\"", escaped(why)));
    format!("<td class=\"{class}\"{why}>{}{difference}</td>", escaped(&entry.marked()))
}

/// A published table against ours, with a verdict for each cell, in colour and as a mark.
pub(super) fn comparison(comparison: &Comparison) -> String {
    let unit =
        if comparison.unit.is_empty() { String::new() } else { format!(" ({})", comparison.unit) };
    let rows: String = comparison.rows.iter().map(row).collect();
    let unit = escaped(&unit);
    format!(
        "<h3>{}</h3>\n<p>{}</p>\n<div class=\"wide\">\n<table class=\"sortable\">\n<thead><tr>\
         <th>cell</th><th>published{unit}</th><th>ours{unit}</th><th>error</th><th>verdict</th>\
         </tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n",
        escaped(&comparison.name),
        escaped(&terminal_verdict(comparison)),
    )
}

fn row(row: &Row) -> String {
    let (verdict, mark) = names::verdict(row.verdict);
    let key = escaped(&key_text(&row.key));
    let value = |value: Option<f64>, print: fn(f64) -> String| {
        let finite = value.filter(|value| value.is_finite());
        let raw = finite.map(|value| value.to_string()).unwrap_or_default();
        let text = finite.map_or(number::NONE.into(), print);
        format!("<td class=\"number\" data-value=\"{raw}\">{}</td>", escaped(&text))
    };
    format!(
        "<tr><td>{key}</td>{}{}{}<td class=\"{verdict}\">{mark} {verdict}</td></tr>\n",
        value(row.published, number::short),
        value(row.ours, number::short),
        value(row.error, number::share),
    )
}
