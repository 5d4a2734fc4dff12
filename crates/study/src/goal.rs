//! Judging goals on tables.

use crate::filter::Filter;
use crate::format::{Goal, Judge};
use crate::result::{ExperimentResult, GoalResult};
use crate::table::within;
use crate::term::median;
use std::collections::BTreeMap;
use trunkline_measure::{Key, Row, key_text};

/// Judges whether the goal was met by these experiments.
pub(crate) fn judge(goal: &Goal, experiments: &[ExperimentResult]) -> GoalResult {
    let Some(experiment) = experiments.iter().find(|one| one.name == goal.experiment) else {
        return verdict(
            goal,
            false,
            format!("there is no experiment {}", goal.experiment),
            Vec::new(),
        );
    };
    let all = &experiment.comparison.rows;
    let rows: Vec<&Row> = all.iter().filter(|row| goal.filter.allows(&row.key)).collect();
    match &goal.judge {
        Judge::Share { tolerance, at_least } => {
            share(goal, &rows, tolerance.or(experiment.tolerance).unwrap_or(0.0), *at_least)
        }
        Judge::Factor { factor: most, at_least } => factor(goal, &rows, *most, *at_least),
        Judge::MedianRatio { low, high } => median_ratio(goal, &rows, *low, *high),
        Judge::Ratio { over, at_least } => ratio(goal, &rows, all, over, *at_least),
        Judge::Between { low, high } => between(goal, &rows, *low, *high),
        Judge::Falling { along, slack } => falling(goal, &rows, along, *slack),
        Judge::Peak { along, at } => peak(goal, &rows, along, at),
        Judge::Decline { along, at, low, high } => decline(goal, &rows, along, *at, [*low, *high]),
    }
}

fn verdict(goal: &Goal, met: bool, found: String, outside: Vec<String>) -> GoalResult {
    GoalResult { title: goal.title.clone(), met, found, outside }
}

fn described(row: &Row) -> String {
    let figure = |value: Option<f64>| value.map_or("nothing".into(), |value| format!("{value:.4}"));
    let error = row.error.map_or(String::new(), |error| format!(", {:+.1} %", 100.0 * error));
    format!("{}: {} for {}{error}", key_text(&row.key), figure(row.ours), figure(row.published))
}

fn share(goal: &Goal, rows: &[&Row], tolerance: f64, at_least: f64) -> GoalResult {
    let judged: Vec<_> =
        rows.iter().filter_map(|row| Some((*row, within(row, tolerance)?))).collect();
    counted(goal, &judged, &format!("{} %", 100.0 * tolerance), at_least)
}

/// Cells that are within a factor of what is published. One without a value of ours is not.
fn factor(goal: &Goal, rows: &[&Row], factor: f64, at_least: f64) -> GoalResult {
    let near = |row: &Row, published: f64| {
        row.ours.is_some_and(|ours| ours <= published * factor && ours * factor >= published)
    };
    let judged: Vec<_> =
        rows.iter().filter_map(|row| Some((*row, near(row, row.published?)))).collect();
    counted(goal, &judged, &format!("a factor of {factor}"), at_least)
}

/// Whether enough of the cells judged are within a limit.
fn counted(goal: &Goal, judged: &[(&Row, bool)], limit: &str, at_least: f64) -> GoalResult {
    let good = judged.iter().filter(|(_, good)| *good).count();
    let outside = judged.iter().filter(|(_, good)| !good).map(|(row, _)| described(row)).collect();
    // No cell at all is no success.
    let met = !judged.is_empty() && good as f64 >= at_least * judged.len() as f64 - 1e-9;
    let percent = 100.0 * good as f64 / judged.len().max(1) as f64;
    let found = format!("{good} of {} cells within {limit}: {percent:.1} %", judged.len());
    verdict(goal, met, found, outside)
}

fn median_ratio(goal: &Goal, rows: &[&Row], low: f64, high: f64) -> GoalResult {
    let ratio = |row: &&Row| Some(row.ours? / row.published.filter(|&published| published != 0.0)?);
    let mut ratios: Vec<f64> = rows.iter().filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let published = rows.iter().filter(|row| row.published.is_some()).count();
    if ratios.is_empty() || ratios.len() < published {
        let found = format!("only {} of {published} cells have a value of ours", ratios.len());
        return verdict(goal, false, found, Vec::new());
    }
    let middle = median(&ratios);
    let found = format!("median of ours over published {middle:.3} of {} cells", ratios.len());
    verdict(goal, (low..=high).contains(&middle), found, Vec::new())
}

/// The key with the columns of `over` left out.
fn rest(key: &Key, over: &Filter) -> Key {
    let kept = key.iter().filter(|(column, _)| !over.0.contains_key(*column));
    kept.map(|(column, text)| (column.clone(), text.clone())).collect()
}

fn ratio(goal: &Goal, rows: &[&Row], all: &[Row], over: &Filter, at_least: f64) -> GoalResult {
    let mut outside = Vec::new();
    let mut least = f64::INFINITY;
    for row in rows {
        let twin = |other: &&Row| {
            over.allows(&other.key) && rest(&other.key, over) == rest(&row.key, over)
        };
        let above = all.iter().find(twin).and_then(|other| other.ours);
        let Some(found) = above.zip(row.ours).map(|(above, own)| above / own) else {
            outside.push(format!("{}: one of the two has no value of ours", key_text(&row.key)));
            continue;
        };
        least = least.min(found);
        if found < at_least {
            outside.push(format!("{}: ratio {found:.2}", key_text(&row.key)));
        }
    }
    let met = !rows.is_empty() && outside.is_empty();
    verdict(goal, met, format!("least ratio {least:.2} of {} cells", rows.len()), outside)
}

fn between(goal: &Goal, rows: &[&Row], low: f64, high: f64) -> GoalResult {
    let inside = |row: &&&Row| row.ours.is_some_and(|ours| (low..=high).contains(&ours));
    let good = rows.iter().filter(inside).count();
    let told = |row: &&Row| match row.ours {
        Some(ours) => format!("{}: {ours:.2}", key_text(&row.key)),
        None => format!("{}: no value of ours", key_text(&row.key)),
    };
    let outside = rows.iter().filter(|row| !inside(row)).map(told).collect();
    let ours = || rows.iter().filter_map(|row| row.ours);
    let (least, most) =
        (ours().fold(f64::INFINITY, f64::min), ours().fold(f64::NEG_INFINITY, f64::max));
    let met = !rows.is_empty() && good == rows.len();
    let found = match ours().next() {
        None => format!("none of {} cells has a value of ours", rows.len()),
        _ => format!(
            "{good} of {} cells from {low} to {high}, found {least:.2} to {most:.2}",
            rows.len()
        ),
    };
    verdict(goal, met, found, outside)
}

/// Rows that agree in all keys but `along`, each group in order of the number there.
fn curves(rows: &[&Row], along: &str) -> BTreeMap<String, Vec<(f64, Option<f64>)>> {
    let mut curves: BTreeMap<String, Vec<(f64, Option<f64>)>> = BTreeMap::new();
    for row in rows {
        let Some(place) = row.key.get(along).and_then(|text| text.parse().ok()) else { continue };
        let others: Key = row
            .key
            .iter()
            .filter(|(column, _)| *column != along)
            .map(|(c, t)| (c.clone(), t.clone()))
            .collect();
        curves.entry(key_text(&others)).or_default().push((place, row.ours));
    }
    curves.values_mut().for_each(|curve| curve.sort_by(|one, other| one.0.total_cmp(&other.0)));
    curves
}

fn falling(goal: &Goal, rows: &[&Row], along: &str, slack: f64) -> GoalResult {
    let curves = curves(rows, along);
    let mut outside = Vec::new();
    let mut steps = 0;
    for (name, curve) in &curves {
        for pair in curve.windows(2) {
            let ((_, before), (at, after)) = (pair[0], pair[1]);
            steps += 1;
            match before.zip(after) {
                Some((before, after)) if after <= before + slack => {}
                Some((before, after)) => {
                    outside.push(format!("{name} at {along} {at}: {after:.2} after {before:.2}"))
                }
                None => outside.push(format!("{name} at {along} {at}: no value of ours")),
            }
        }
    }
    let met = steps > 0 && outside.is_empty();
    let found = format!("{} of {steps} steps along {along} fall", steps - outside.len());
    verdict(goal, met, found, outside)
}

/// Rows with the number under `along`, and ours.
fn curve(rows: &[&Row], along: &str) -> Vec<(f64, f64)> {
    let point = |row: &&Row| Some((row.key.get(along)?.parse().ok()?, row.ours?));
    rows.iter().filter_map(point).collect()
}

fn greatest(curve: &[(f64, f64)]) -> Option<(f64, f64)> {
    curve.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1))
}

fn peak(goal: &Goal, rows: &[&Row], along: &str, at: &[f64]) -> GoalResult {
    match greatest(&curve(rows, along)) {
        None => verdict(goal, false, "no cell has a value of ours".into(), Vec::new()),
        Some((x, y)) => {
            verdict(goal, at.contains(&x), format!("greatest at {along} {x}: {y:.1}"), Vec::new())
        }
    }
}

fn decline(goal: &Goal, rows: &[&Row], along: &str, at: f64, [low, high]: [f64; 2]) -> GoalResult {
    let curve = curve(rows, along);
    let end = curve.iter().find(|(x, _)| *x == at);
    let (Some((_, end)), Some((_, top))) = (end, greatest(&curve)) else {
        return verdict(
            goal,
            false,
            format!("no cell has a value of ours at {along} {at}"),
            Vec::new(),
        );
    };
    let part = end / top;
    let found = format!("{:.1} % of the greatest at {along} {at}", 100.0 * part);
    verdict(goal, (low..=high).contains(&part), found, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Unit;
    use trunkline_measure::{Cell, Table, Tolerance, compare};

    /// Rows with the key columns `kind` and `n`, ours and the published value; a published value below zero is none.
    fn experiment(rows: &[(&str, u32, f64, f64)]) -> ExperimentResult {
        let (mut published, mut ours) = (Table::new("x", ""), Table::new("x", ""));
        for &(kind, n, own, print) in rows {
            let key = Key::from([("kind".into(), kind.into()), ("n".into(), n.to_string())]);
            if print >= 0.0 {
                published.put(key.clone(), Some(Cell::of(print))).unwrap();
            }
            ours.put(key, own.is_finite().then(|| Cell::of(own))).unwrap();
        }
        ExperimentResult {
            name: "x".into(),
            title: "X".into(),
            note: String::new(),
            unit: Unit::One,
            tolerance: Some(0.1),
            comparison: compare(&published, &ours, Tolerance::relative(0.1)).unwrap(),
            problems: Vec::new(),
        }
    }

    fn judged(rows: &[(&str, u32, f64, f64)], filter: &str, judge: &str) -> GoalResult {
        let text = format!(
            "title = 'goal'\nexperiment = 'x'\nwhere = {{ {filter} }}\njudge = {{ {judge} }}"
        );
        super::judge(&toml::from_str(&text).unwrap(), &[experiment(rows)])
    }

    const ROWS: [(&str, u32, f64, f64); 4] =
        [("a", 1, 10.5, 10.0), ("a", 2, 12.0, 10.0), ("a", 3, 9.0, 10.0), ("b", 1, 2.0, -1.0)];

    #[test]
    fn a_factor_holds_both_ways() {
        let rows = [("a", 1, 5.0, 10.0), ("a", 2, 20.0, 10.0), ("b", 1, 4.9, 10.0)];
        let nan = [("a", 1, f64::NAN, 10.0), ("a", 2, 9.0, -1.0)];
        let met = |rows: &[_], filter: &str, text: &str| {
            let goal = judged(rows, filter, text);
            (goal.met, goal.found)
        };
        let of = |good: u32, all: u32, percent: &str| {
            format!("{good} of {all} cells within a factor of 2: {percent} %")
        };
        let all = "kind = 'factor', factor = 2, at_least = 1";
        assert_eq!(met(&rows, "kind = 'a'", all), (true, of(2, 2, "100.0")));
        assert_eq!(met(&rows, "", all), (false, of(2, 3, "66.7")));
        assert!(met(&rows, "", "kind = 'factor', factor = 2, at_least = 0.6").0);
        assert_eq!(met(&nan, "", all), (false, of(0, 1, "0.0")));
    }

    #[test]
    fn a_share_counts_published_cells_and_names_those_outside() {
        let goal = judged(&ROWS, "", "kind = 'share', at_least = 0.66");
        assert!(goal.met && goal.found.starts_with("2 of 3"), "{goal:?}");
        assert_eq!(goal.outside, ["kind=a n=2: 12.0000 for 10.0000, +20.0 %"]);
        assert!(!judged(&ROWS, "", "kind = 'share', at_least = 0.67").met);
        assert!(judged(&ROWS, "", "kind = 'share', at_least = 1.0, tolerance = 0.2").met);
        assert!(judged(&ROWS, "n = [1, 3]", "kind = 'share', at_least = 1.0").met);
        assert!(
            !judged(&ROWS, "kind = 'b'", "kind = 'share', at_least = 0.0").met,
            "no cell, no success"
        );
        let missing = [("a", 1, f64::NAN, 10.0), ("a", 2, 10.0, 10.0)];
        assert!(!judged(&missing, "", "kind = 'share', at_least = 0.6").met);
    }

    #[test]
    fn a_median_ratio_lies_in_its_range() {
        let goal = judged(&ROWS, "", "kind = 'median-ratio', low = 1.0, high = 1.1");
        assert!(goal.met && goal.found.contains("1.050 of 3"), "{goal:?}");
        assert!(!judged(&ROWS, "", "kind = 'median-ratio', low = 1.1, high = 2.0").met);
        let missing = [("a", 1, f64::NAN, 10.0), ("a", 2, 10.0, 10.0)];
        assert!(!judged(&missing, "", "kind = 'median-ratio', low = 0.5, high = 2.0").met);
    }

    #[test]
    fn a_ratio_holds_in_every_row() {
        let goal =
            judged(&ROWS, "kind = 'b'", "kind = 'ratio', over = { kind = 'a' }, at_least = 5.25");
        assert!(goal.met && goal.found.contains("5.25"), "{goal:?}");
        let higher =
            judged(&ROWS, "kind = 'b'", "kind = 'ratio', over = { kind = 'a' }, at_least = 5.3");
        assert!(!higher.met && higher.outside[0].contains("5.25"), "{higher:?}");
        assert!(
            !judged(&ROWS, "kind = 'a'", "kind = 'ratio', over = { kind = 'b' }, at_least = 0.1")
                .met
        );
        assert!(
            !judged(&ROWS, "kind = 'c'", "kind = 'ratio', over = { kind = 'a' }, at_least = 0.1")
                .met
        );
    }

    #[test]
    fn a_range_holds_in_every_row() {
        let on_a = |judge: &str| judged(&ROWS, "kind = 'a'", judge);
        assert!(on_a("kind = 'between', low = 9.0, high = 12.0").met);
        let missed = on_a("kind = 'between', low = 9.0, high = 11.0");
        assert!(!missed.met && missed.outside == ["kind=a n=2: 12.00"], "{missed:?}");
        assert!(!judged(&ROWS, "kind = 'c'", "kind = 'between', low = 0, high = 99").met);
        let missing = [("a", 1, f64::NAN, 10.0)];
        assert!(!judged(&missing, "", "kind = 'between', low = 0, high = 99").met);
    }

    #[test]
    fn a_curve_falls_within_its_slack() {
        let falling = |rows: &[(&str, u32, f64, f64)], slack: &str| {
            judged(rows, "", &format!("kind = 'falling', along = 'n', slack = {slack}"))
        };
        assert!(falling(&ROWS, "1.5").met, "b has no step of its own");
        let missed = falling(&ROWS, "1.0");
        assert!(!missed.met && missed.outside[0].contains("12.00 after 10.50"), "{missed:?}");
        assert!(!falling(&[("a", 1, 3.0, -1.0), ("a", 2, f64::NAN, -1.0)], "0.0").met);
        assert!(!falling(&[("a", 1, 3.0, -1.0)], "0.0").met, "no step");
    }

    #[test]
    fn a_curve_has_its_peak_and_its_decline() {
        let on_a = |judge: &str| judged(&ROWS, "kind = 'a'", judge).met;
        assert!(on_a("kind = 'peak', along = 'n', at = [2, 4]"));
        assert!(!on_a("kind = 'peak', along = 'n', at = [1, 3]"));
        assert!(on_a("kind = 'decline', along = 'n', at = 3, low = 0.75, high = 0.75"));
        assert!(!on_a("kind = 'decline', along = 'n', at = 3, low = 0.8, high = 1.0"));
        assert!(!on_a("kind = 'decline', along = 'n', at = 9, low = 0.0, high = 1.0"));
    }
}
