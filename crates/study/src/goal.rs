//! Judging goals on tables.

use crate::filter::Filter;
use crate::format::{Goal, Judge};
use crate::result::{ExperimentResult, GoalResult};
use crate::table::within;
use crate::term::median;
use std::collections::BTreeMap;
use trunkline_measure::{Agreement, Key, Row, key_text};

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
    let all = every_row(experiment);
    let rows: Vec<&Row> = all.iter().filter(|row| goal.filter.allows(&row.key)).collect();
    match &goal.judge {
        Judge::Share { tolerance, at_least } => {
            share(goal, &rows, tolerance.or(experiment.tolerance).unwrap_or(0.0), *at_least)
        }
        Judge::Factor { factor: most, at_least } => factor(goal, &rows, *most, *at_least),
        Judge::MedianRatio { low, high } => median_ratio(goal, &rows, *low, *high),
        Judge::Ratio { over, at_least } => ratio(goal, &rows, &all, over, *at_least),
        Judge::Between { low, high } => between(goal, &rows, *low, *high),
        Judge::Falling { along, slack } => falling(goal, &rows, along, *slack),
        Judge::Peak { along, at } => peak(goal, &rows, along, at),
        Judge::Decline { along, at, low, high } => decline(goal, &rows, along, *at, [*low, *high]),
    }
}

/// The rows of a table, and those that would be there if they had a value.
fn every_row(experiment: &ExperimentResult) -> Vec<Row> {
    let absent = experiment.absent.iter().map(|key| Row {
        key: key.clone(),
        published: None,
        ours: None,
        error: None,
        verdict: Agreement::Missing,
    });
    experiment.comparison.rows.iter().cloned().chain(absent).collect()
}

fn verdict(goal: &Goal, met: bool, found: String, outside: Vec<String>) -> GoalResult {
    GoalResult { title: goal.title.clone(), met, found, outside }
}

fn described(row: &Row) -> String {
    let figure = |value: Option<f64>| value.map_or("nothing".into(), |value| format!("{value:.4}"));
    let error = row.error.map_or(String::new(), |error| format!(", {:+.1} %", 100.0 * error));
    format!("{}: {} for {}{error}", key_text(&row.key), figure(row.ours), figure(row.published))
}

/// The rows that have a published value, but for those whose value is in doubt: these are shown and not judged.
fn published<'a>(rows: &'a [&Row]) -> impl Iterator<Item = (&'a Row, f64)> {
    let sound = rows.iter().filter(|row| row.verdict != Agreement::Suspect);
    sound.filter_map(|&row| Some((row, row.published?)))
}

fn share(goal: &Goal, rows: &[&Row], tolerance: f64, at_least: f64) -> GoalResult {
    let judged: Vec<_> =
        published(rows).filter_map(|(row, _)| Some((row, within(row, tolerance)?))).collect();
    counted(goal, &judged, &format!("{} %", 100.0 * tolerance), at_least)
}

/// Cells that are within a factor of what is published. One without a value of ours is not.
fn factor(goal: &Goal, rows: &[&Row], factor: f64, at_least: f64) -> GoalResult {
    let near = |row: &Row, published: f64| {
        row.ours.is_some_and(|ours| ours <= published * factor && ours * factor >= published)
    };
    let judged: Vec<_> = published(rows).map(|(row, value)| (row, near(row, value))).collect();
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
    let ratio = |row: &Row, value: f64| Some(row.ours? / value).filter(|_| value != 0.0);
    let cells = published(rows).count();
    let mut ratios: Vec<f64> = published(rows).filter_map(|(row, it)| ratio(row, it)).collect();
    ratios.sort_by(f64::total_cmp);
    if ratios.is_empty() || ratios.len() < cells {
        let without = published(rows).filter(|&(row, value)| ratio(row, value).is_none());
        let outside = without.map(|(row, _)| described(row)).collect();
        let found = format!("only {} of {cells} cells have a ratio", ratios.len());
        return verdict(goal, false, found, outside);
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
    let (mut least, mut some) = (f64::INFINITY, false);
    for row in rows {
        let twin = |other: &&Row| {
            over.allows(&other.key) && rest(&other.key, over) == rest(&row.key, over)
        };
        let above = all.iter().find(twin).and_then(|other| other.ours);
        let Some(found) = above.zip(row.ours).map(|(above, own)| above / own) else {
            outside.push(format!("{}: one of the two has no value of ours", key_text(&row.key)));
            continue;
        };
        if found.is_nan() {
            outside.push(format!("{}: both of the two are 0", key_text(&row.key)));
            continue;
        }
        least = least.min(found);
        some = true;
        if found < at_least {
            outside.push(format!("{}: ratio {found:.2}", key_text(&row.key)));
        }
    }
    let met = some && outside.is_empty();
    let found = match some {
        true => format!("least ratio {least:.2} of {} cells", rows.len()),
        false => format!("none of {} cells has a ratio", rows.len()),
    };
    verdict(goal, met, found, outside)
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

/// Rows that agree in all keys but one, each with the number there.
struct Curve {
    /// The other keys.
    name: String,
    /// In order of the number.
    points: Vec<(f64, Option<f64>)>,
}

impl Curve {
    /// The place and the value of the greatest of ours, and the places that have none.
    fn greatest(&self) -> (Option<(f64, f64)>, Vec<f64>) {
        let ours = self.points.iter().filter_map(|&(at, ours)| Some((at, ours?)));
        let without = self.points.iter().filter(|point| point.1.is_none()).map(|point| point.0);
        (ours.max_by(|one, other| one.1.total_cmp(&other.1)), without.collect())
    }
}

/// The curves along a key column, and what is wrong with the rows that have no number there.
fn curves(rows: &[&Row], along: &str) -> (Vec<Curve>, Vec<String>) {
    let mut curves: BTreeMap<String, Vec<(f64, Option<f64>)>> = BTreeMap::new();
    let mut outside = Vec::new();
    for row in rows {
        let place = match row.key.get(along).map(|text| text.parse().map_err(|_| text)) {
            Some(Ok(place)) => place,
            Some(Err(text)) => {
                outside.push(format!("{}: {along} {text:?} is not a number", key_text(&row.key)));
                continue;
            }
            // What was not run has no column that is read off a run.
            None => {
                outside.push(format!("{}: no value of ours", key_text(&row.key)));
                continue;
            }
        };
        let others = row.key.iter().filter(|(column, _)| *column != along);
        let others: Key = others.map(|(c, t)| (c.clone(), t.clone())).collect();
        curves.entry(key_text(&others)).or_default().push((place, row.ours));
    }
    let sorted = |(name, mut points): (String, Vec<(f64, Option<f64>)>)| {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Curve { name, points }
    };
    (curves.into_iter().map(sorted).collect(), outside)
}

fn falling(goal: &Goal, rows: &[&Row], along: &str, slack: f64) -> GoalResult {
    let (curves, mut outside) = curves(rows, along);
    let placeless = outside.len();
    let mut steps = 0;
    for Curve { name, points } in &curves {
        for pair in points.windows(2) {
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
    let fall = steps - (outside.len() - placeless);
    verdict(goal, met, format!("{fall} of {steps} steps along {along} fall"), outside)
}

/// Judges every curve along a column by what `judged` finds of its greatest value: whether it is as wanted, in words.
/// A curve with a place without a value of ours is not, for the greatest may be there.
fn each_curve(
    goal: &Goal,
    rows: &[&Row],
    along: &str,
    judged: impl Fn(&Curve, (f64, f64)) -> (bool, String),
) -> GoalResult {
    let (curves, mut outside) = curves(rows, along);
    let mut told = Vec::new();
    for curve in &curves {
        let (greatest, without) = curve.greatest();
        let lacking =
            without.iter().map(|at| format!("{} at {along} {at}: no value of ours", curve.name));
        outside.extend(lacking);
        let Some(greatest) = greatest else { continue };
        let (good, words) = judged(curve, greatest);
        if !good && curves.len() > 1 {
            outside.push(format!("{}: {words}", curve.name));
        }
        told.push((good, words));
    }
    let good = told.iter().filter(|(good, _)| *good).count();
    let met = !told.is_empty() && good == told.len() && outside.is_empty();
    let found = match &told[..] {
        [] => "no cell has a value of ours".into(),
        [(_, words)] => words.clone(),
        _ => format!("{good} of {} curves along {along} are so", told.len()),
    };
    verdict(goal, met, found, outside)
}

fn peak(goal: &Goal, rows: &[&Row], along: &str, at: &[f64]) -> GoalResult {
    each_curve(goal, rows, along, |_, (x, y)| {
        (at.contains(&x), format!("greatest at {along} {x}: {y:.1}"))
    })
}

fn decline(goal: &Goal, rows: &[&Row], along: &str, at: f64, [low, high]: [f64; 2]) -> GoalResult {
    each_curve(goal, rows, along, |curve, (_, top)| {
        let end = curve.points.iter().find(|(x, _)| *x == at);
        let Some(end) = end.and_then(|point| point.1) else {
            return (false, format!("no cell has a value of ours at {along} {at}"));
        };
        let part = end / top;
        let words = format!("{:.1} % of the greatest at {along} {at}", 100.0 * part);
        ((low..=high).contains(&part), words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Unit;
    use trunkline_measure::{Cell, Table, Tolerance, compare};

    /// Rows with the key columns `kind` and `n`, ours and the published value; a published value below zero is none.
    fn experiment(rows: &[(&str, u32, f64, f64)]) -> ExperimentResult {
        let (mut published, mut ours) = (Table::new("x", ""), Table::new("x", ""));
        let key = |kind: &str, n: u32| {
            Key::from([("kind".into(), kind.into()), ("n".into(), n.to_string())])
        };
        for &(kind, n, own, print) in rows {
            let key = key(kind, n);
            if print >= 0.0 {
                published.put(key.clone(), Some(Cell::of(print))).unwrap();
            }
            ours.put(key, own.is_finite().then(|| Cell::of(own))).unwrap();
        }
        let absent = rows.iter().filter(|row| !row.2.is_finite() && row.3 < 0.0);
        ExperimentResult {
            absent: absent.map(|row| key(row.0, row.1)).collect(),
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

    /// Rows that the experiment shows and does not judge are not judged by its goals either.
    #[test]
    fn goals_spare_suspects_as_tables_do() {
        let mut doubtful = experiment(&[("a", 1, 10.0, 10.0), ("a", 2, 30.0, 10.0)]);
        doubtful.comparison.rows[1].verdict = Agreement::Suspect;
        let judges = [
            "kind = 'share', at_least = 1.0",
            "kind = 'factor', factor = 1.1, at_least = 1.0",
            "kind = 'median-ratio', low = 1.0, high = 1.0",
        ];
        for judge in judges {
            let text = format!("title = 'goal'\nexperiment = 'x'\njudge = {{ {judge} }}");
            let goal = super::judge(&toml::from_str(&text).unwrap(), &[doubtful.clone()]);
            assert!(goal.met, "{judge}: {goal:?}");
        }
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
    fn what_has_no_ratio_does_not_meet_one() {
        let of = |rows: &[_], judge| judged(rows, "kind = 'b'", judge);
        let nothing = [("a", 1, 0.0, -1.0), ("b", 1, 0.0, -1.0)];
        let goal = of(&nothing, "kind = 'ratio', over = { kind = 'a' }, at_least = 2.0");
        assert!(!goal.met && goal.outside[0].contains("both of the two are 0"), "{goal:?}");
        assert_eq!(goal.found, "none of 1 cells has a ratio");
        let zero = [("b", 1, 1.0, 0.0), ("b", 2, 1.0, 1.0)];
        let goal = of(&zero, "kind = 'median-ratio', low = 0.5, high = 2.0");
        assert_eq!((goal.met, goal.found.as_str()), (false, "only 1 of 2 cells have a ratio"));
        assert!(goal.outside[0].starts_with("kind=b n=1: 1.0000 for 0.0000"), "{goal:?}");
    }

    #[test]
    fn a_range_holds_in_every_row() {
        let on_a = |judge: &str| judged(&ROWS, "kind = 'a'", judge);
        assert!(on_a("kind = 'between', low = 9.0, high = 12.0").met);
        let missed = on_a("kind = 'between', low = 9.0, high = 11.0");
        assert!(!missed.met && missed.outside == ["kind=a n=2: 12.00"], "{missed:?}");
        assert!(!judged(&ROWS, "kind = 'c'", "kind = 'between', low = 0, high = 99").met);
        for missing in [[("a", 1, f64::NAN, 10.0), ROWS[1]], [("a", 1, f64::NAN, -1.0), ROWS[1]]] {
            let goal = judged(&missing, "", "kind = 'between', low = 0, high = 99");
            assert_eq!((goal.met, &goal.outside[0][..]), (false, "kind=a n=1: no value of ours"));
        }
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

    /// Each curve is judged by itself, and none whose greatest value may be where ours is missing.
    #[test]
    fn peak_and_decline_hold_on_every_curve_with_all_its_values() {
        let of = |rows: &[_], judge| judged(rows, "", judge);
        let both =
            [("a", 1, 5.0, -1.0), ("a", 2, 9.0, -1.0), ("b", 1, 2.0, -1.0), ("b", 2, 1.0, -1.0)];
        let peak = of(&both, "kind = 'peak', along = 'n', at = [2]");
        assert_eq!((peak.met, peak.found.as_str()), (false, "1 of 2 curves along n are so"));
        assert_eq!(peak.outside, ["kind=b: greatest at n 1: 2.0"]);
        let decline = of(&both, "kind = 'decline', along = 'n', at = 2, low = 0.9, high = 1.0");
        assert_eq!(decline.outside, ["kind=b: 50.0 % of the greatest at n 2"]);
        let missing = [("a", 1, 5.0, -1.0), ("a", 2, f64::NAN, -1.0)];
        for judge in [
            "kind = 'peak', along = 'n', at = [1]",
            "kind = 'decline', along = 'n', at = 1, low = 1, high = 1",
        ] {
            let goal = of(&missing, judge);
            assert!(!goal.met && goal.outside == ["kind=a at n 2: no value of ours"], "{goal:?}");
        }
    }

    #[test]
    fn places_that_are_no_numbers_are_named() {
        for judge in [
            "kind = 'falling', along = 'kind'",
            "kind = 'peak', along = 'kind', at = [1]",
            "kind = 'decline', along = 'kind', at = 1, low = 0, high = 1",
        ] {
            let goal = judged(&ROWS, "", judge);
            assert!(!goal.met && goal.outside.len() == 4, "{goal:?}");
            assert_eq!(goal.outside[3], "kind=b n=1: kind \"b\" is not a number");
        }
    }
}
