//! `trunkline explain`: where the time went, what binds, and what relaxing it buys.

use crate::engines;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::scenario::warn_of_remarks;
use clap::Parser;
use std::path::PathBuf;
use trunkline_explain::{Explanation, Options, Stage, explain_with, text};
use trunkline_scenario::Scenario;

#[derive(Parser)]
#[command(after_help = EXAMPLE)]
pub struct Args {
    /// The scenario file
    scenario: PathBuf,
    /// Explain only this traffic or cluster; may be given several times
    #[arg(long, value_name = "NAME")]
    traffic: Vec<String>,
    /// Explain only the cells of the grid where KEY has this value; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    cell: Vec<String>,
    /// Run everything at its full length, even if a part of it gives the same figure, or a cluster takes long
    #[arg(long)]
    full: bool,
    /// Print JSON: an array with an explanation for each cell of the grid
    #[arg(long)]
    json: bool,
}

const EXAMPLE: &str = "\
Example:
  trunkline explain examples/xunet-small-window.toml --traffic echo

  prints, for messages of 112 bytes among others, where their time went, place
  by place, and
    112 bytes go as 84, wait, 28, wait: two round trips (the window is 84
    bytes).
    The window binds (84 B; 67 % of the time is Window): 756 B would cut 181 ms
    to 61.3 ms.

Each constraint is relaxed in turn and the scenario run again, on all cores;
docs/explain.md says how.
Exit status: 0 done, 1 the scenario cannot be simulated, 2 wrong use or a wrong
file.";

pub fn run(args: &Args) -> Result<(), Failure> {
    let cells = Scenario::read(&args.scenario).map_err(Failure::wrong_use)?;
    warn_of_remarks(&cells);
    let cells = chosen(cells, &args.cell)?;
    let mut options = Options { traffic: args.traffic.clone(), ..Options::default() };
    if args.full {
        options.budget = u64::MAX;
    }
    let mut progress = Progress::new(0);
    let (count, simulator) = (cells.len(), engines::simulator());
    let mut explanations = Vec::new();
    for (at, scenario) in cells.iter().enumerate() {
        let mut tell = |stage: Stage| progress.tell(&told(at, count, &stage));
        explanations
            .push(explain_with(scenario, &*simulator, &options, &mut tell).map_err(failure)?);
    }
    drop(progress);
    output::line(&shown(&explanations, args.json)?)
}

fn told(at: usize, cells: usize, stage: &Stage) -> String {
    let cell = if cells > 1 { format!("cell {} of {cells}, ", at + 1) } else { String::new() };
    format!("{cell}{}: run {} of {}", stage.traffic, stage.done, stage.runs)
}

fn failure(error: trunkline_explain::ExplainError) -> Failure {
    match error {
        trunkline_explain::ExplainError::NoTraffic { .. } => Failure::wrong_use(error),
        error => Failure::failed(error),
    }
}

fn shown(explanations: &[Explanation], json: bool) -> Result<String, Failure> {
    if json {
        return Ok(serde_json::to_string_pretty(explanations)?);
    }
    let texts: Vec<String> =
        explanations.iter().map(|it| text(it).trim_end().to_string()).collect();
    Ok(texts.join("\n\n"))
}

/// The cells whose coordinates are those asked for.
fn chosen(cells: Vec<Scenario>, wanted: &[String]) -> Result<Vec<Scenario>, Failure> {
    let wanted: Vec<(&str, &str)> =
        wanted.iter().map(|it| pair(it)).collect::<Result<_, Failure>>()?;
    let axes: Vec<String> =
        cells.first().map(|it| it.cell.keys().cloned().collect()).unwrap_or_default();
    if let Some((key, _)) = wanted.iter().find(|(key, _)| !axes.iter().any(|axis| axis == key)) {
        let axes = if axes.is_empty() { "no grid".to_string() } else { axes.join(", ") };
        return Err(Failure::wrong_use(format!("--cell {key}: the scenario has {axes}")));
    }
    let fits = |it: &Scenario| {
        wanted.iter().all(|(key, value)| it.cell.get(*key).is_some_and(|found| found == value))
    };
    let chosen: Vec<Scenario> = cells.into_iter().filter(fits).collect();
    if chosen.is_empty() {
        return Err(Failure::wrong_use("--cell: no cell of the grid has these values"));
    }
    Ok(chosen)
}

fn pair(text: &str) -> Result<(&str, &str), Failure> {
    text.split_once('=').ok_or_else(|| {
        Failure::wrong_use(format!("--cell {text}: write KEY=VALUE, as in link.t1.discipline=fifo"))
    })
}
