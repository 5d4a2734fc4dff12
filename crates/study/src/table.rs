//! Tables: published ones as read from CSV, and ours row by row beside them.

use crate::filter::same;
use crate::term::Side;
use std::collections::BTreeMap;
use thiserror::Error;

/// A published table: for each row column to text, in the file's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The columns, in order.
    pub columns: Vec<String>,
    /// The rows, in order.
    pub rows: Vec<BTreeMap<String, String>>,
}

/// Why a text is not such a table.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// Nothing in it.
    #[error("the table is empty: the first line names the columns")]
    Empty,
    /// A row of another length.
    #[error("line {line} has {found} entries where the heading has {expected}: quote entries with commas")]
    Length {
        /// The line.
        line: usize,
        /// Its entries.
        found: usize,
        /// The heading's.
        expected: usize,
    },
}

impl Published {
    /// Reads comma-separated values with a heading; entries with commas stand in double quotes (RFC 4180,
    /// without line breaks inside entries).
    ///
    /// # Errors
    /// Where a row has more or fewer entries than the heading.
    pub fn read(text: &str) -> Result<Published, TableError> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
        let columns = entries(lines.next().ok_or(TableError::Empty)?.1);
        let row = |(index, line): (usize, &str)| {
            let entries = entries(line);
            match entries.len() == columns.len() {
                true => Ok(columns.iter().cloned().zip(entries).collect()),
                false => Err(TableError::Length {
                    line: index + 1,
                    found: entries.len(),
                    expected: columns.len(),
                }),
            }
        };
        let rows = lines.map(row).collect::<Result<_, _>>()?;
        Ok(Published { columns, rows })
    }
}

fn entries(line: &str) -> Vec<String> {
    let mut entries = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = entries.last_mut().expect("it starts with one");
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => last.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => entries.push(String::new()),
            _ => last.push(letter),
        }
    }
    entries
}

/// One row of an experiment: its keys, the report's value and ours, both in the experiment's unit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// Key column to text.
    pub keys: BTreeMap<String, String>,
    /// What the report prints.
    pub published: Option<f64>,
    /// What we found.
    pub ours: Option<f64>,
    /// Why we have nothing, where that is so.
    pub missing: Option<String>,
    /// A doubt about the printed value.
    pub suspect: Option<String>,
}

impl Row {
    /// Ours or the report's.
    pub fn side(&self, side: Side) -> Option<f64> {
        match side {
            Side::Ours => self.ours,
            Side::Published => self.published,
        }
    }

    /// (ours - published) / published; none where one of them is missing or the report prints zero.
    pub fn error(&self) -> Option<f64> {
        let published = self.published.filter(|&published| published != 0.0)?;
        Some((self.ours? - published) / published)
    }

    /// Does ours lie within the relative error `tolerance`? A published row without ours does not.
    pub fn within(&self, tolerance: f64) -> Option<bool> {
        self.published?;
        // A printed tolerance of 5 % shall not fail on the last bit of a quotient.
        Some(self.error().is_some_and(|error| error.abs() <= tolerance + 1e-12))
    }

    /// Do the key columns that both have say the same? Rows without a common column do not agree.
    pub fn agrees_with(&self, columns: &BTreeMap<String, String>) -> bool {
        let mut common = self.keys.iter().filter_map(|(key, text)| Some((text, columns.get(key)?)));
        let mut any = false;
        common.all(|(one, other)| {
            any = true;
            same(one, other)
        }) && any
    }

    /// The row in one line: `discipline hardware_fifo, message_bytes 64`.
    pub fn label(&self) -> String {
        let pairs: Vec<String> = self.keys.iter().map(|(key, text)| format!("{key} {text}")).collect();
        pairs.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_entries_hold_commas_and_quotes() {
        let table = Published::read("a,b\n1,\"x, \"\"y\"\"\"\n2,\n").unwrap();
        assert_eq!(table.columns, ["a", "b"]);
        assert_eq!(table.rows[0]["b"], "x, \"y\"");
        assert_eq!(table.rows[1]["b"], "");
        let wrong = Published::read("a,b\n1,2,3\n").unwrap_err();
        assert_eq!(wrong, TableError::Length { line: 2, found: 3, expected: 2 });
        assert_eq!(Published::read("\n").unwrap_err(), TableError::Empty);
    }

    #[test]
    fn an_error_is_relative_to_the_print() {
        let row = |ours, published| Row { ours, published, ..Row::default() };
        assert_eq!(row(Some(11.0), Some(10.0)).error(), Some(0.1));
        assert_eq!(row(Some(11.0), Some(10.0)).within(0.1), Some(true));
        assert_eq!(row(Some(8.9), Some(10.0)).within(0.1), Some(false));
        assert_eq!(row(None, Some(10.0)).within(0.1), Some(false));
        assert_eq!(row(Some(1.0), None).within(0.1), None);
        assert_eq!(row(Some(1.0), Some(0.0)).within(0.1), Some(false));
    }
}
