//! Two tables cell by cell: how far they are apart, and a verdict that names what is too far.

use crate::stats::quantile;
use crate::table::{Key, Table, TableError, key_text};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The allowed distance of a figure from the published one: the larger of the two.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    /// As a share of the published figure: 0.1 for ten percent.
    pub relative: f64,
    /// In the table's unit: for figures that are printed with few digits.
    #[serde(default)]
    pub absolute: f64,
}

impl Tolerance {
    /// So large a share of the published figure.
    pub fn relative(share: f64) -> Tolerance {
        Tolerance { relative: share, absolute: 0.0 }
    }

    fn admits(self, published: f64, ours: f64) -> bool {
        (ours - published).abs() <= (self.relative * published.abs()).max(self.absolute)
    }
}

/// The verdict on one cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// Within the tolerance.
    Within,
    /// Beyond it.
    Outside,
    /// There are both, and one is marked as doubtful: shown, not judged.
    Suspect,
    /// Published, and not among ours.
    Missing,
    /// Among ours, and not published.
    Unpublished,
}

/// One cell of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The cell.
    pub key: Key,
    /// The published figure.
    pub published: Option<f64>,
    /// Ours.
    pub ours: Option<f64>,
    /// `(ours - published) / |published|`, if there are both; infinite if only ours is not zero.
    pub error: Option<f64>,
    /// The verdict.
    pub verdict: Agreement,
}

/// The number of cells of each verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counted {
    /// [`Agreement::Within`].
    pub within: usize,
    /// [`Agreement::Outside`].
    pub outside: usize,
    /// [`Agreement::Suspect`].
    pub suspect: usize,
    /// [`Agreement::Missing`].
    pub missing: usize,
    /// [`Agreement::Unpublished`].
    pub unpublished: usize,
}

impl Counted {
    fn of(rows: &[Row]) -> Counted {
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        Counted {
            within: count(Agreement::Within),
            outside: count(Agreement::Outside),
            suspect: count(Agreement::Suspect),
            missing: count(Agreement::Missing),
            unpublished: count(Agreement::Unpublished),
        }
    }

    /// Cells that a verdict was due on: all published ones but those that are [`Agreement::Suspect`].
    pub fn judged(self) -> usize {
        self.within + self.outside + self.missing
    }
}

/// Two tables cell by cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The published table's name.
    pub name: String,
    /// The unit of all figures.
    pub unit: String,
    /// The allowed distance.
    pub tolerance: Tolerance,
    /// One for each cell, in the published table's order, then those that only ours has in its order.
    pub rows: Vec<Row>,
    /// The number of cells of each verdict.
    pub counts: Counted,
    /// Cells within, as a share of all that a verdict was due on; missing ones count against it. `None`
    /// if there were none.
    pub share_within: Option<f64>,
    /// Median of the absolute relative errors of the cells within and outside.
    pub median: Option<f64>,
    /// The cell within or outside whose relative error is the largest: its index among the rows.
    pub worst: Option<usize>,
}

/// Holds `ours` against `published`. A cell for which a table has a row and no figure is as if it were
/// not there.
///
/// # Errors
/// [`TableError::Units`] if the units differ.
pub fn compare(
    published: &Table,
    ours: &Table,
    tolerance: Tolerance,
) -> Result<Comparison, TableError> {
    if published.unit != ours.unit {
        return Err(TableError::Units {
            published: published.name.clone(),
            one: published.unit.clone(),
            ours: ours.name.clone(),
            other: ours.unit.clone(),
        });
    }
    let of_published = published.cells().iter().map(|(key, _)| key);
    let only_ours =
        ours.cells().iter().map(|(key, _)| key).filter(|key| published.get(key).is_none());
    let rows =
        of_published.chain(only_ours).map(|key| row(key, published, ours, tolerance)).collect();
    Ok(Comparison::of(published, tolerance, rows))
}

fn row(key: &Key, published: &Table, ours: &Table, tolerance: Tolerance) -> Row {
    let (theirs, own) = (published.get(key), ours.get(key));
    let suspect = [theirs, own].into_iter().flatten().any(|cell| cell.suspect);
    let (theirs, own) = (theirs.map(|cell| cell.value), own.map(|cell| cell.value));
    let verdict = match (theirs, own) {
        (_, None) => Agreement::Missing,
        (None, Some(_)) => Agreement::Unpublished,
        (Some(_), Some(_)) if suspect => Agreement::Suspect,
        (Some(theirs), Some(own)) if tolerance.admits(theirs, own) => Agreement::Within,
        (Some(_), Some(_)) => Agreement::Outside,
    };
    let error = theirs.zip(own).map(|(theirs, own)| relative(theirs, own));
    Row { key: key.clone(), published: theirs, ours: own, error, verdict }
}

fn relative(published: f64, ours: f64) -> f64 {
    if ours == published { 0.0 } else { (ours - published) / published.abs() }
}

impl Comparison {
    fn of(published: &Table, tolerance: Tolerance, rows: Vec<Row>) -> Comparison {
        let counts = Counted::of(&rows);
        let judged = |row: &Row| matches!(row.verdict, Agreement::Within | Agreement::Outside);
        let errors: Vec<(usize, f64)> = rows
            .iter()
            .enumerate()
            .filter(|(_, row)| judged(row))
            .filter_map(|(index, row)| Some((index, row.error?.abs())))
            .collect();
        let sizes: Vec<f64> = errors.iter().map(|&(_, error)| error).collect();
        let due = counts.judged();
        Comparison {
            name: published.name.clone(),
            unit: published.unit.clone(),
            tolerance,
            counts,
            share_within: (due > 0).then(|| counts.within as f64 / due as f64),
            median: (!sizes.is_empty()).then(|| quantile(&sizes, 0.5)),
            // Of equal ones the first.
            worst: errors.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)).map(|&(index, _)| index),
            rows,
        }
    }

    /// The rows of one verdict.
    pub fn with(&self, verdict: Agreement) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.verdict == verdict)
    }

    /// Whether all cells on which a verdict was due are within the tolerance, and it was due on any.
    pub fn holds(&self) -> bool {
        self.share_within == Some(1.0)
    }

    /// The verdict in words, each cell that is not within named.
    pub fn verdict(&self) -> String {
        self.to_string()
    }

    fn allowed(&self) -> String {
        let Tolerance { relative, absolute } = self.tolerance;
        let share = percent(relative);
        if absolute == 0.0 { share } else { format!("{share} or {absolute} {}", self.unit) }
    }

    fn describe(&self, row: &Row) -> String {
        let figure = |value: Option<f64>| value.map_or("none".into(), rounded);
        let error = row.error.map_or(String::new(), |error| format!(", {}", told(error)));
        let (ours, published) = (figure(row.ours), figure(row.published));
        format!("{} ({ours} against {published} {}{error})", key_text(&row.key), self.unit)
    }

    fn list(&self, f: &mut fmt::Formatter<'_>, title: &str, verdict: Agreement) -> fmt::Result {
        let found: Vec<String> = self.with(verdict).map(|row| self.describe(row)).collect();
        if found.is_empty() { Ok(()) } else { write!(f, "; {title}: {}", found.join(", ")) }
    }
}

impl fmt::Display for Comparison {
    /// One line: counts, median and worst, then the cells that are not within.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (within, due) = (self.counts.within, self.counts.judged());
        write!(f, "{}: {within} of {due} cells within {}", self.name, self.allowed())?;
        if let (Some(median), Some(worst)) = (self.median, self.worst) {
            let worst = &self.rows[worst];
            let error = told(worst.error.unwrap_or_default());
            write!(
                f,
                "; error median {}, worst {error} at {}",
                size(median),
                key_text(&worst.key)
            )?;
        }
        self.list(f, "outside", Agreement::Outside)?;
        self.list(f, "missing", Agreement::Missing)?;
        self.list(f, "not judged, suspect", Agreement::Suspect)?;
        match self.counts.unpublished {
            0 => Ok(()),
            count => write!(f, "; {count} of ours not published"),
        }
    }
}

/// Errors of so much and more are told as a factor.
const FACTOR: f64 = 10.0;

fn percent(share: f64) -> String {
    format!("{} %", rounded(share * 100.0))
}

/// An error in words; beside a published zero no share says how far.
fn told(error: f64) -> String {
    match (error.is_finite(), error.abs() < FACTOR) {
        (false, _) => "where zero is published".into(),
        (true, true) => signed(error),
        (true, false) => format!("{} times", rounded(1.0 + error)),
    }
}

/// The size of an error in words.
fn size(error: f64) -> String {
    if error < FACTOR { percent(error) } else { told(error) }
}

fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "" } else { "+" };
    format!("{sign}{}", percent(share))
}

/// At most three decimals, at least three digits.
fn rounded(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 100.0 => 0,
        tens if tens >= 10.0 => 1,
        ones if ones >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cell;
    use proptest::prelude::*;

    fn key(size: u32) -> Key {
        Key::from([("size".into(), size.to_string())])
    }

    fn table(cells: &[(u32, f64, bool)]) -> Table {
        let mut table = Table::new("delays", "ms");
        for &(size, value, suspect) in cells {
            table.put(key(size), Some(Cell { suspect, ..Cell::of(value) })).unwrap();
        }
        table
    }

    fn sample() -> Comparison {
        let published = table(&[
            (1, 4.0, false),
            (2, 4.0, false),
            (64, 100.0, false),
            (65, 7.0, true),
            (256, 8.0, false),
        ]);
        let ours = table(&[
            (3, 1.0, false),
            (1, 4.2, false),
            (2, 3.0, false),
            (64, 101.0, false),
            (65, 9.0, false),
        ]);
        compare(&published, &ours, Tolerance::relative(0.1)).unwrap()
    }

    #[test]
    fn every_cell_has_its_verdict() {
        use Agreement::{Missing, Outside, Suspect, Unpublished, Within};
        let found = sample();
        let verdicts: Vec<Agreement> = found.rows.iter().map(|row| row.verdict).collect();
        assert_eq!(verdicts, [Within, Outside, Within, Suspect, Missing, Unpublished]);
        let expected = Counted { within: 2, outside: 1, suspect: 1, missing: 1, unpublished: 1 };
        assert_eq!((found.counts, found.share_within, found.holds()), (expected, Some(0.5), false));
        assert_eq!((found.worst, found.rows[1].error), (Some(1), Some(-0.25)));
        assert!((found.median.unwrap() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn the_verdict_names_what_is_not_within() {
        assert_eq!(
            sample().verdict(),
            "delays: 2 of 4 cells within 10 %; error median 5 %, worst -25 % at size=2; \
             outside: size=2 (3 against 4 ms, -25 %); missing: size=256 (none against 8 ms); \
             not judged, suspect: size=65 (9 against 7 ms, +28.6 %); 1 of ours not published"
        );
    }

    #[test]
    fn the_absolute_tolerance_serves_small_figures() {
        let (published, ours) = (table(&[(1, 0.02, false)]), table(&[(1, 0.018, false)]));
        let within = |tolerance| compare(&published, &ours, tolerance).unwrap().counts.within;
        assert_eq!(within(Tolerance::relative(0.05)), 0);
        let tolerance = Tolerance { relative: 0.05, absolute: 0.005 };
        assert_eq!(within(tolerance), 1);
        let text = compare(&published, &ours, tolerance).unwrap().verdict();
        assert!(text.contains("within 5 % or 0.005 ms"), "{text}");
    }

    #[test]
    fn nothing_to_compare_is_no_agreement() {
        let found = compare(&table(&[]), &table(&[]), Tolerance::relative(1.0)).unwrap();
        assert_eq!((found.share_within, found.holds()), (None, false));
        let missing = compare(&table(&[(1, 1.0, false)]), &table(&[]), Tolerance::relative(1.0));
        assert_eq!(missing.unwrap().share_within, Some(0.0));
    }

    #[test]
    fn units_are_not_mixed() {
        let other = table(&[]).converted(1.0, "us");
        let complaint = compare(&table(&[]), &other, Tolerance::relative(1.0)).unwrap_err();
        assert!(complaint.to_string().contains("in ms and 'delays' in us; convert"));
    }

    #[test]
    fn zero_published_is_met_by_zero_only() {
        let found = |ours| {
            compare(
                &table(&[(1, 0.0, false)]),
                &table(&[(1, ours, false)]),
                Tolerance::relative(0.5),
            )
        };
        assert_eq!(found(0.0).unwrap().rows[0].error, Some(0.0));
        let away = found(1.0).unwrap();
        assert_eq!((away.rows[0].error, away.counts.outside), (Some(f64::INFINITY), 1));
        let text = away.verdict();
        assert!(text.contains("where zero is published") && !text.contains("inf"), "{text}");
        let far = compare(
            &table(&[(1, 1e-3, false)]),
            &table(&[(1, 5.0, false)]),
            Tolerance::relative(0.5),
        );
        let text = far.unwrap().verdict();
        assert!(text.contains("5000 times") && !text.contains("499900"), "{text}");
    }

    fn tables() -> impl Strategy<Value = Table> {
        let cell = (0u32..20, 0.1..100.0f64, prop::bool::weighted(0.2));
        prop::collection::vec(cell, 0..20).prop_map(|cells| {
            let mut table = Table::new("delays", "ms");
            for (size, value, suspect) in cells {
                // A size drawn twice stays as first drawn.
                let _ = table.put(key(size), Some(Cell { suspect, ..Cell::of(value) }));
            }
            table
        })
    }

    proptest! {
        #[test]
        fn comparison_is_symmetric_in_keys(one in tables(), other in tables(), share in 0.0..1.0f64) {
            let tolerance = Tolerance::relative(share);
            let there = compare(&one, &other, tolerance).unwrap();
            let back = compare(&other, &one, tolerance).unwrap();
            prop_assert_eq!(there.rows.len(), back.rows.len());
            for row in &there.rows {
                let twin = back.rows.iter().find(|twin| twin.key == row.key).unwrap();
                prop_assert_eq!((row.published, row.ours), (twin.ours, twin.published));
                let suspect = |row: &Row| row.verdict == Agreement::Suspect;
                prop_assert_eq!(suspect(row), suspect(twin));
            }
            prop_assert_eq!(there.counts.missing, back.counts.unpublished);
            prop_assert_eq!(there.counts.unpublished, back.counts.missing);
        }

        #[test]
        fn a_table_agrees_with_itself(one in tables()) {
            let found = compare(&one, &one, Tolerance::relative(0.0)).unwrap();
            prop_assert_eq!(found.counts.within + found.counts.suspect, one.cells().len());
            prop_assert_eq!(found.counts.outside, 0);
            prop_assert!(found.median.is_none_or(|median| median == 0.0));
        }
    }
}
