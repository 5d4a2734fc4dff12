//! Published tables as a whole, and rows of comparisons seen by their keys.

use crate::filter::same;
use crate::term::Side;
use trunkline_measure::{Key, Row};

/// A published table: for each row column to text, in the file's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The columns, in order.
    pub columns: Vec<String>,
    /// The rows, in order.
    pub rows: Vec<Key>,
}

impl Published {
    /// Reads comma-separated values with a heading.
    ///
    /// # Errors
    /// If a row has more or fewer entries than the heading.
    pub fn read(text: &str) -> Result<Published, String> {
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let wrong = |error: csv::Error| format!("{error}; each row needs an entry for each column");
        let columns: Vec<String> =
            reader.headers().map_err(wrong)?.iter().map(String::from).collect();
        let row = |record: csv::StringRecord| {
            columns.iter().cloned().zip(record.iter().map(String::from)).collect()
        };
        let rows = reader.records().map(|record| record.map(row).map_err(wrong));
        Ok(Published { rows: rows.collect::<Result<_, String>>()?, columns })
    }
}

/// Ours or the report's value of a row.
pub fn side(row: &Row, side: Side) -> Option<f64> {
    match side {
        Side::Ours => row.ours,
        Side::Published => row.published,
    }
}

/// Whether the columns that both keys have say the same. `None` if they have none in common.
pub fn agree(one: &Key, other: &Key) -> Option<bool> {
    let common: Vec<bool> =
        one.iter().filter_map(|(column, text)| Some(same(text, other.get(column)?))).collect();
    (!common.is_empty()).then(|| common.into_iter().all(|same| same))
}

/// Whether the row is published, and ours within the relative error. `None` if nothing is published.
pub fn within(row: &Row, tolerance: f64) -> Option<bool> {
    row.published?;
    // A printed tolerance of 5 % shall not fail on the last bit of a quotient.
    Some(row.error.is_some_and(|error| error.abs() <= tolerance + 1e-12))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_measure::Agreement;

    #[test]
    fn whole_rows_are_read() {
        let table = Published::read("a,b\n1,\"x, \"\"y\"\"\"\n2,\n").unwrap();
        assert_eq!(table.columns, ["a", "b"]);
        assert_eq!(table.rows[0]["b"], "x, \"y\"");
        assert_eq!(table.rows[1]["b"], "");
        assert!(Published::read("a,b\n1,2,3\n").unwrap_err().contains("line: 2"));
    }

    #[test]
    fn keys_agree_in_what_they_share() {
        let key = |pairs: &[(&str, &str)]| -> Key {
            pairs.iter().map(|(column, text)| ((*column).into(), (*text).into())).collect()
        };
        let one = key(&[("a", "1.0"), ("b", "x")]);
        assert_eq!(agree(&one, &key(&[("a", "1"), ("c", "z")])), Some(true));
        assert_eq!(agree(&one, &key(&[("a", "1"), ("b", "z")])), Some(false));
        assert_eq!(agree(&one, &key(&[("c", "z")])), None);
    }

    #[test]
    fn a_published_row_without_ours_is_outside() {
        let row = |published, ours, error| Row {
            key: Key::new(),
            published,
            ours,
            error,
            verdict: Agreement::Missing,
        };
        assert_eq!(within(&row(Some(10.0), Some(11.0), Some(0.1)), 0.1), Some(true));
        assert_eq!(within(&row(Some(10.0), None, None), 0.1), Some(false));
        assert_eq!(within(&row(None, Some(1.0), None), 0.1), None);
    }
}
