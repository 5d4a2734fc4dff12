//! Judging goals on tables.

use crate::filter::Filter;
use crate::format::{Goal, Judge};
use crate::result::{ExperimentResult, GoalResult};
use crate::table::within;
use crate::term::median;
use trunkline_measure::{Key, Row, key_text};

/// Was the goal met by these experiments?
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
        Judge::MedianRatio { low, high } => median_ratio(goal, &rows, *low, *high),
        Judge::Ratio { over, at_least } => ratio(goal, &rows, all, over, *at_least),
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
    let judged: Vec<(&Row, bool)> =
        rows.iter().filter_map(|row| Some((*row, within(row, tolerance)?))).collect();
    let good = judged.iter().filter(|(_, good)| *good).count();
    let outside = judged.iter().filter(|(_, good)| !good).map(|(row, _)| described(row)).collect();
    // No cell at all is no success.
    let met = !judged.is_empty() && good as f64 >= at_least * judged.len() as f64 - 1e-9;
    let percent = 100.0 * good as f64 / judged.len().max(1) as f64;
    let limit = 100.0 * tolerance;
    let found = format!("{good} of {} cells within {limit} %: {percent:.1} %", judged.len());
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
