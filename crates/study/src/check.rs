//! What must hold of a study before anything is run.

use crate::coordinate::coordinate;
use crate::error::StudyError;
use crate::format::{Experiment, FigureSpec, Goal, Judge, Measure, Parameter, Part, Quote, Study};
use crate::formula;
use crate::join::concerns;
use crate::keypath;
use crate::part::RANGE;
use crate::source::Source;
use crate::table::Published;
use crate::term::Term;
use std::collections::BTreeSet;
use trunkline_engine::EngineName;
use trunkline_measure::{Estimator, key_text};
use trunkline_verify::Trial;

/// Names are unique, and what is named is there.
pub(crate) fn names(study: &Study) -> Result<(), StudyError> {
    unique("experiment", study.experiment.iter().map(|one| one.name.as_str()))?;
    unique("figure", study.figure.iter().map(|one| one.name.as_str()))?;
    unique("variant", study.variant.iter().map(|one| one.name.as_str()))?;
    unique("goal", study.goal.iter().map(|one| one.title.as_str()))?;
    let parameters: Vec<String> =
        study.parameter.iter().map(|one| format!("{} {}", one.file, one.key)).collect();
    unique("parameter", parameters.iter().map(String::as_str))
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> Result<(), StudyError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(StudyError::wrong(
                format!("{kind} {name}"),
                "it is there twice: rename or leave out one",
            ));
        }
    }
    Ok(())
}

/// Everything that concerns other files or other tables of the study.
pub(crate) fn source(source: &Source) -> Result<(), StudyError> {
    let study = &source.study;
    let mut known = BTreeSet::new();
    for one in &study.experiment {
        let place = format!("experiment {}", one.name);
        experiment(source, one, &known).map_err(|problem| StudyError::wrong(place, problem))?;
        known.insert(one.name.as_str());
    }
    for one in &study.quote {
        let row = one.row.constants().into_values().collect::<Vec<_>>().join(" ");
        let place = format!("quote {} {row}", one.file);
        quote(source, one, &known).map_err(|problem| StudyError::wrong(place, problem))?;
    }
    for one in &study.figure {
        figure(study, one)
            .map_err(|problem| StudyError::wrong(format!("figure {}", one.name), problem))?;
    }
    for one in &study.goal {
        goal(study, one)
            .map_err(|problem| StudyError::wrong(format!("goal {}", one.title), problem))?;
    }
    for one in &study.parameter {
        let place = format!("parameter {}", one.key);
        parameter(source, one).map_err(|problem| StudyError::wrong(place, problem))?;
    }
    Ok(())
}

fn experiment(source: &Source, one: &Experiment, known: &BTreeSet<&str>) -> Result<(), String> {
    if let Measure::Delay { estimator, .. } | Measure::Throughput { estimator, .. } = &one.measure {
        estimator.parse::<Estimator>().map_err(|error| error.to_string())?;
    }
    tolerance(one.tolerance)?;
    let is_distribution = matches!(one.measure, Measure::Distribution { .. });
    if is_distribution != one.keys.values().any(|key| key.from == RANGE) {
        return Err(
            "distribution needs a key column from = \"range\", and no other measure has one".into(),
        );
    }
    match (&one.measure, &one.published) {
        (Measure::Formula { .. }, None) if one.rows_of.is_none() => {
            return Err("a formula needs published or rows_of: their rows are evaluated".into());
        }
        (Measure::Formula { formula, arguments }, _) => {
            rows_known(one, known)?;
            formula::known(formula, arguments.keys().map(String::as_str))
                .map_err(|error| error.to_string())?;
            arguments.values().try_for_each(|argument| term(argument, known))?;
        }
        _ => one.resolved().iter().try_for_each(|part| part_is_complete(source, one, part))?,
    }
    if let Measure::Verify { .. } = one.measure {
        one.resolved().iter().try_for_each(|part| verifiable(source, part))?;
    }
    published(source, one)
}

/// Checks that what a part verifies is one path with its probes, in the emulator.
fn verifiable(source: &Source, part: &Part) -> Result<(), String> {
    if part.engine != Some(EngineName::EMU) {
        return Err("what is verified is emulated: say engine = \"emu\"".into());
    }
    let file = part.scenario.as_deref().unwrap_or_default();
    let read = source.scenario(file, part.variant.as_deref()).ok_or("its scenario was not read")?;
    let chosen = read.cells.iter().filter(|cell| part.cell.allows(&cell.cell));
    chosen
        .map(Trial::of)
        .try_for_each(|trial| trial.map(drop).map_err(|error| format!("{file}: {error}")))
}

fn rows_known(one: &Experiment, known: &BTreeSet<&str>) -> Result<(), String> {
    match &one.rows_of {
        Some(_) if one.published.is_some() => {
            Err("it has both published and rows_of: leave out one".into())
        }
        Some(name) if !known.contains(name.as_str()) => {
            Err(format!("rows_of: there is no experiment {name} before it"))
        }
        _ => Ok(()),
    }
}

/// A part has a scenario with the traffic, and every key column has a value in it.
fn part_is_complete(source: &Source, one: &Experiment, part: &Part) -> Result<(), String> {
    let file = part.scenario.as_deref().ok_or("scenario is missing: name its file")?;
    let traffic =
        part.traffic.as_deref().ok_or("traffic is missing: name one of the scenario's")?;
    let read = source.scenario(file, part.variant.as_deref()).ok_or("its scenario was not read")?;
    let chosen: Vec<_> = read.cells.iter().filter(|cell| part.cell.allows(&cell.cell)).collect();
    let first = chosen.first().ok_or_else(|| format!("no cell of {file} is chosen: check cell"))?;
    let names = first.traffic.iter().map(|one| one.name.as_str());
    let names: Vec<&str> =
        names.chain(first.clusters.iter().map(|one| one.name.as_str())).collect();
    if !names.contains(&traffic) {
        return Err(format!("{file} has no traffic {traffic}: it has {}", names.join(", ")));
    }
    for (column, key) in one.keys.iter().filter(|(_, key)| !key.is_of_reading()) {
        if coordinate(&first.cell, &read.values, &key.from).is_none() {
            let axes: Vec<&str> = first.cell.keys().map(String::as_str).collect();
            return Err(format!(
                "key {column}: {file} has no {}: its grid has {}",
                key.from,
                axes.join(", ")
            ));
        }
    }
    Ok(())
}

fn published(source: &Source, one: &Experiment) -> Result<(), String> {
    let Some(file) = &one.published else {
        return match one.value {
            Some(_) => Err("value names a column, but published is missing".into()),
            None => Ok(()),
        };
    };
    let value =
        one.value.as_ref().ok_or("value is missing: name the column of the published values")?;
    let table = source.published(file).ok_or("its published table was not read")?;
    let named =
        one.columns().into_iter().chain([value.clone()]).chain(one.filter.0.keys().cloned());
    match named.into_iter().find(|column| !table.columns.contains(column)) {
        Some(column) => {
            Err(format!("{file} has no column {column}: it has {}", table.columns.join(", ")))
        }
        None => figures(one, table, value).map_err(|problem| format!("{file}: {problem}")),
    }
}

/// The rows that are compared have a number each, and a key of their own.
fn figures(one: &Experiment, table: &Published, value: &str) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for row in table.rows.iter().filter(|row| concerns(one, row)) {
        let (key, text) = (one.key_of(row), row[value].as_str());
        if !text.parse().is_ok_and(f64::is_finite) {
            return Err(format!(
                "{value} at {} is {text:?}: give a number, or nothing if none is published",
                key_text(&key)
            ));
        }
        if let Some(key) = known.replace(key) {
            return Err(format!(
                "it has two figures for {}: name more key columns, or choose rows with where",
                key_text(&key)
            ));
        }
    }
    if known.is_empty() { Err("no row with a value is chosen: check where".into()) } else { Ok(()) }
}

fn tolerance(share: Option<f64>) -> Result<(), String> {
    match share {
        Some(share) if !(share >= 0.0 && share.is_finite()) => {
            Err(format!("tolerance: found {share}, allowed from 0, where 0.1 is 10 %"))
        }
        _ => Ok(()),
    }
}

fn least_share(share: f64) -> Result<(), String> {
    match (0.0..=1.0).contains(&share) {
        true => Ok(()),
        false => Err(format!("at_least: found {share}, allowed 0 to 1, where 0.9 is 90 %")),
    }
}

/// A range has something in it.
fn range(low: f64, high: f64) -> Result<(), String> {
    match low <= high {
        true => Ok(()),
        false => Err(format!("no value lies between {low} and {high}: give the lower one first")),
    }
}

fn term(term: &Term, known: &BTreeSet<&str>) -> Result<(), String> {
    match term {
        Term::Number(_) | Term::Column(_) => Ok(()),
        Term::Experiment(other) if known.contains(other.experiment.as_str()) => Ok(()),
        Term::Experiment(other) => Err(format!(
            "there is no experiment {} before it: check the name and the order",
            other.experiment
        )),
        Term::Formula(inner) => {
            formula::known(&inner.formula, inner.arguments.keys().map(String::as_str))
                .map_err(|error| error.to_string())?;
            inner.arguments.values().try_for_each(|argument| self::term(argument, known))
        }
    }
}

fn quote(source: &Source, one: &Quote, known: &BTreeSet<&str>) -> Result<(), String> {
    let table = source.published(&one.file).ok_or("its published table was not read")?;
    let rows: Vec<_> = table.rows.iter().filter(|row| one.row.allows(row)).collect();
    let [row] = rows[..] else {
        return Err(format!("{} rows of {} are chosen: name exactly one", rows.len(), one.file));
    };
    tolerance(one.tolerance)?;
    one.between.map_or(Ok(()), |[low, high]| range(low, high))?;
    let text =
        row.get(&one.value).ok_or_else(|| format!("{} has no column {}", one.file, one.value))?;
    match (&one.ours, &one.none) {
        (Some(_), Some(_)) => Err("it has both ours and none: leave out one".into()),
        (None, None) => {
            Err("it has neither ours nor none: say what it is held against, or why nothing is"
                .into())
        }
        (None, Some(_)) => Ok(()),
        (Some(ours), None) => {
            if text.parse::<f64>().is_err() && one.between.is_none() {
                return Err(format!(
                    "{text:?} is not a number: give between, or none with a reason"
                ));
            }
            term(ours, known)
        }
    }
}

fn find<'a>(study: &'a Study, name: &str) -> Result<&'a Experiment, String> {
    let found = study.experiment.iter().find(|experiment| experiment.name == name);
    found.ok_or_else(|| format!("there is no experiment {name}: check the name"))
}

fn has_columns<'a>(
    one: &Experiment,
    mut named: impl Iterator<Item = &'a String>,
) -> Result<(), String> {
    let columns = one.columns();
    let Some(column) = named.find(|column| !columns.contains(*column)) else { return Ok(()) };
    let known: Vec<String> = columns.into_iter().collect();
    Err(format!("{} has no key column {column}: it has {}", one.name, known.join(", ")))
}

fn figure(study: &Study, one: &FigureSpec) -> Result<(), String> {
    for series in &one.series {
        let experiment = find(study, &series.experiment)?;
        has_columns(experiment, series.filter.0.keys().chain(&series.by).chain(&series.x))?;
        match (&series.x_experiment, series.x.is_empty()) {
            (Some(other), true) => drop(find(study, other)?),
            (None, false) => {}
            _ => return Err("each series needs either x or x_experiment".into()),
        }
    }
    Ok(())
}

fn goal(study: &Study, one: &Goal) -> Result<(), String> {
    let experiment = find(study, &one.experiment)?;
    has_columns(experiment, one.filter.0.keys())?;
    match &one.judge {
        Judge::Share { tolerance: None, .. } if experiment.tolerance.is_none() => {
            Err(format!("neither it nor {} has a tolerance: give one", experiment.name))
        }
        Judge::Share { tolerance: share, at_least } => {
            tolerance(*share)?;
            least_share(*at_least)
        }
        Judge::Factor { factor, .. } if !(*factor >= 1.0 && factor.is_finite()) => {
            Err(format!("factor: found {factor}, allowed from 1"))
        }
        Judge::Factor { at_least, .. } => least_share(*at_least),
        Judge::MedianRatio { low, high } | Judge::Between { low, high } => range(*low, *high),
        Judge::Ratio { over, .. } => has_columns(experiment, over.0.keys()),
        Judge::Peak { along, .. } | Judge::Falling { along, .. } => {
            has_columns(experiment, std::iter::once(along))
        }
        Judge::Decline { along, low, high, .. } => {
            range(*low, *high)?;
            has_columns(experiment, std::iter::once(along))
        }
    }
}

fn parameter(source: &Source, one: &Parameter) -> Result<(), String> {
    if one.provenance().is_none() {
        return Err("it needs exactly one of section, inferred, like and choice".into());
    }
    let values = source.values(&one.file).map_err(|error| error.to_string())?;
    match keypath::get(&values, &one.key) {
        Some(_) => Ok(()),
        None => Err(format!("{} has no {}: check the path", one.file, one.key)),
    }
}
