//! Published points against ours in one chart.

use crate::figure::{Axis, Figure, Point, Role, Series};
use crate::gather::kind;
use std::collections::BTreeSet;
use trunkline_measure::{Comparison, Key, Row};

/// Pairs of curves in one chart: what can be told apart.
const PAIRS: usize = 4;

/// Charts of `comparison`, named `name-0`, `name-1`, ...: the key with the most distinct values runs along
/// the x axis, and each combination of the others is a pair of series in one colour, hollow for
/// published and filled for ours. Cells with neither figure are left out.
pub fn comparison_figures(name: &str, comparison: &Comparison) -> Vec<Figure> {
    let along = longest_key(comparison);
    let mut groups: Vec<String> = Vec::new();
    for row in &comparison.rows {
        let group = group_of(&row.key, &along, comparison);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let charts = groups.chunks(PAIRS).enumerate();
    charts
        .map(|(index, groups)| {
            let pairs = groups.iter().flat_map(|group| pair(comparison, &along, group));
            (index, pairs.collect::<Vec<Series>>())
        })
        .map(|(index, series)| Figure {
            name: format!("{name}-{index}"),
            kind: kind(&series),
            title: format!("{}: published and ours", comparison.name),
            caption: String::new(),
            x: Axis::category(&along.replace('_', " "), ""),
            y: Axis::linear("", &comparison.unit),
            series,
        })
        .collect()
}

fn values<'a>(comparison: &'a Comparison, key: &str) -> BTreeSet<&'a str> {
    comparison.rows.iter().filter_map(|row| row.key.get(key)).map(String::as_str).collect()
}

/// The key with the most distinct values, of equal ones the first whose values are all numbers.
fn longest_key(comparison: &Comparison) -> String {
    let keys: BTreeSet<&String> = comparison.rows.iter().flat_map(|row| row.key.keys()).collect();
    let rank = |key: &&String| {
        let values = values(comparison, key);
        (values.len(), values.iter().all(|value| value.parse::<f64>().is_ok()))
    };
    keys.into_iter().rev().max_by_key(rank).cloned().unwrap_or_default()
}

/// The other coordinates that differ among the rows, as a text.
fn group_of(key: &Key, along: &str, comparison: &Comparison) -> String {
    let others = key.iter().filter(|(name, _)| *name != along);
    let differing = others.filter(|(name, _)| values(comparison, name).len() > 1);
    let parts: Vec<String> = differing.map(|(name, value)| format!("{name}={value}")).collect();
    parts.join(" ")
}

fn pair(comparison: &Comparison, along: &str, group: &str) -> [Series; 2] {
    let of_group = |row: &&Row| group_of(&row.key, along, comparison) == group;
    let rows: Vec<&Row> = comparison.rows.iter().filter(of_group).collect();
    let series = |what: &str, role, value: fn(&Row) -> Option<f64>| {
        let place = |row: &Row| row.key.get(along).cloned().unwrap_or_default();
        let point = |row: &&Row| Some(Point::new(place(row).as_str(), value(row)?));
        Series {
            name: if group.is_empty() { what.into() } else { format!("{group}, {what}") },
            role,
            group: Some(group.into()),
            points: rows.iter().filter_map(point).collect(),
        }
    };
    [
        series("published", Role::Published, |row| row.published),
        series("ours", Role::Ours, |row| row.ours),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_measure::{Cell, Table, Tolerance, compare};

    #[test]
    fn the_longest_key_runs_along_and_the_others_make_pairs() {
        let mut published = Table::new("figure 3", "ms");
        for (board, size) in [("kmc", 1), ("kmc", 64), ("kmc", 512), ("dkp", 1), ("dkp", 64)] {
            let entries = [("board", board.to_string()), ("size", size.to_string())];
            let key: Key = entries.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
            published.put(key, Some(Cell::of(f64::from(size)))).unwrap();
        }
        let comparison = compare(&published, &published, Tolerance::relative(0.1)).unwrap();
        let figures = comparison_figures("against-0", &comparison);
        assert_eq!(figures.len(), 1);
        let names: Vec<&str> =
            figures[0].series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(
            names,
            ["board=kmc, published", "board=kmc, ours", "board=dkp, published", "board=dkp, ours"]
        );
        assert_eq!(figures[0].series[0].points.len(), 3);
        assert_eq!(figures[0].x.label, "size");
    }
}
