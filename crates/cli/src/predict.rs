//! `trunkline predict`: closed formulas with the numbers put in.

use crate::failure::Failure;
use crate::output;
use crate::scenario::FileArgs;
use serde_json::{Value, json};
use trunkline_measure::key_text;
use trunkline_model::{Figure, Prediction, Predictions, Term, predictions};
use trunkline_scenario::{NetworkError, Scenario};

/// Show what closed formulas predict for a scenario file, with the numbers put in.
///
/// Each figure is followed by its terms: those with a + sum to it, the others lead to them. What no
/// formula covers is said in notes.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    file: FileArgs,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  trunkline predict examples/looped-path.toml
  trunkline predict examples/satellite.toml --json | jq '.cells[0].predictions'";

/// Number of the JSON form; it rises when a field changes its meaning or goes.
const FORMAT: u32 = 2;

/// Prints the predictions of each cell.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (cells, _) = args.file.read()?;
    let found = cells.iter().map(|cell| Ok((cell, predictions(cell)?)));
    let found: Vec<(&Scenario, Predictions)> = found.collect::<Result<_, NetworkError>>()?;
    if args.json {
        let name = cells.first().map(|cell| cell.name.as_str());
        let cells: Vec<Value> = found.iter().map(|(cell, found)| of_cell(cell, found)).collect();
        let document = json!({"format": FORMAT, "scenario": name, "cells": cells});
        return output::line(&serde_json::to_string_pretty(&document)?);
    }
    let text: Vec<String> = found.iter().map(|(cell, found)| text(cell, found)).collect();
    output::line(text.join("\n").trim_end())
}

/// A cell under its coordinates, if it has any.
fn text(cell: &Scenario, found: &Predictions) -> String {
    match cell.cell.is_empty() {
        true => format!("{}\n{}", transports(cell), found.text()),
        false => format!("== {} ==\n{}\n{}", key_text(&cell.cell), transports(cell), found.text()),
    }
}

/// A line for each traffic with what its ends speak.
fn transports(cell: &Scenario) -> String {
    cell.traffic.iter().map(|it| format!("{}: {}\n", it.name, it.spoken())).collect()
}

fn of_cell(cell: &Scenario, found: &Predictions) -> Value {
    let list: Vec<Value> = found.list.iter().map(of_prediction).collect();
    let spoken = cell.traffic.iter().map(|it| (it.name.clone(), it.spoken().into()));
    let spoken: serde_json::Map<String, Value> = spoken.collect();
    json!({"cell": cell.cell, "transports": spoken, "predictions": list, "notes": found.notes})
}

fn of_prediction(prediction: &Prediction) -> Value {
    let Prediction { traffic, size, what, value, terms } = prediction;
    let terms: Vec<Value> = terms.iter().map(of_term).collect();
    let (value, unit) = figure(*value);
    json!({"traffic": traffic, "size_bytes": size, "quantity": what.name(), "value": value, "unit": unit, "terms": terms})
}

fn of_term(term: &Term) -> Value {
    let Term { name, place, cause, formula, numbers, value, source } = term;
    let (value, unit) = figure(*value);
    json!({"name": name, "place": place, "cause": cause, "formula": formula, "numbers": numbers, "value": value, "unit": unit, "source": source})
}

/// The value in its unit.
fn figure(figure: Figure) -> (Value, &'static str) {
    let value = match figure {
        Figure::Time(span) => span.as_nanos().into(),
        Figure::Rate(rate) => (rate.millibytes_per_second() as f64 / 1e3).into(),
        Figure::Share(parts) => parts.into(),
        Figure::Count(count) => count.into(),
    };
    (value, figure.unit())
}
