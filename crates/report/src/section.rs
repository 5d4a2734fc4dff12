//! Tables of text that a report has beside its runs: goals, quotations, sources of parameters.

use crate::chart::svg::escaped;
use crate::number;
use crate::page::{sortable, wide};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// A heading, a sentence and a table of text. It stands on the page and is written as `NAME.csv`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Section {
    /// Stem of its file: letters, digits, `-` and `_`.
    pub name: String,
    /// Its heading.
    pub heading: String,
    /// A sentence below it; may be empty.
    pub about: String,
    /// The columns.
    pub columns: Vec<String>,
    /// The rows, each with an entry for each column.
    pub rows: Vec<Vec<String>>,
}

impl Section {
    /// Its part of the page.
    pub(crate) fn page(&self) -> String {
        let cells = |texts: &[String]| -> String {
            self.columns.iter().zip(texts).map(|(head, text)| cell(text, head)).collect()
        };
        let rows: String =
            self.rows.iter().map(|row| format!("<tr>{}</tr>\n", cells(row))).collect();
        let heads: String = self.columns.iter().map(|name| sortable(name)).collect();
        let about = match self.about.is_empty() {
            true => String::new(),
            false => format!("<p>{}</p>\n", escaped(&self.about)),
        };
        format!(
            "{about}{}<table class=\"sortable cards\">\n<thead><tr>{heads}</tr></thead>\n\
             <tbody>\n{rows}</tbody>\n</table>\n</div>\n",
            wide(&self.heading)
        )
    }

    /// Its CSV file.
    pub(crate) fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let line = |entries: &[String]| {
            entries.iter().map(|text| entry(text)).collect::<Vec<_>>().join(",")
        };
        writeln!(out, "{}", line(&self.columns))?;
        self.rows.iter().try_for_each(|row| writeln!(out, "{}", line(row)))
    }
}

/// Digits after which a number is shortened; its file has them all.
const DIGITS: usize = 8;

/// An entry of the table on the page. Numbers stand to the right.
fn cell(text: &str, head: &str) -> String {
    let label = format!("data-label=\"{}\"", escaped(head));
    match text.parse::<f64>().ok().filter(|value| value.is_finite()) {
        Some(value) if text.len() > DIGITS => {
            let short = escaped(&number::short(value));
            format!("<td class=\"number\" {label} data-value=\"{text}\">{short}</td>")
        }
        Some(_) => format!("<td class=\"number\" {label}>{}</td>", escaped(text)),
        None => format!("<td {label}>{}</td>", escaped(&number::glued(text))),
    }
}

/// An entry of a CSV line, in quotes if it has to be (RFC 4180).
fn entry(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        Section {
            name: "goals".into(),
            heading: "Goals".into(),
            about: "What counts.".into(),
            columns: vec!["goal".into(), "found".into()],
            rows: vec![
                vec!["a < b".into(), "1, 2".into()],
                vec!["c".into(), "86.58400000000002".into()],
            ],
        }
    }

    #[test]
    fn it_is_shown_and_written() {
        let page = section().page();
        assert!(
            page.contains(">goal</button></th>")
                && page.contains("<td data-label=\"goal\">a &lt; b</td>"),
            "{page}"
        );
        assert!(
            page.contains("<td class=\"number\" data-label=\"found\" data-value=\"86.58400000000002\">86.58</td>"),
            "{page}"
        );
        let mut out = Vec::new();
        section().csv(&mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "goal,found\na < b,\"1, 2\"\nc,86.58400000000002\n"
        );
    }
}
