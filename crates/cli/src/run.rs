//! `trunkline run`: a scenario file through the engines.

use crate::emulation::CaptureArgs;
use crate::engines::{self, Setup};
use crate::failure::Failure;
use crate::output;
use crate::progress::Steps;
use crate::scenario::{
    FileArgs, OutArgs, ResumeArgs, ThreadsArgs, facts, tell_of_kept, unwritten, warn,
};
use crate::validity::{self, EffortArgs};
use crate::work::Watch;
use std::path::Path;
use std::sync::Arc;
use trunkline_batch::{Batch, BatchError, Kept, Outcome, Progress, digest_of, idle_axes, reseed};
use trunkline_engine::EngineName;
use trunkline_measure::Keep;
use trunkline_report::{Charts, Destination, Report, json, terminal};
use trunkline_scenario::Scenario;

/// Run a scenario file: every cell of its grid in every engine that is asked for.
///
/// Prints one table with a column for each engine, and what a reader has to know below it. A run in real time can
/// be watched with `trunkline show` and changed with `trunkline set`; the table then says so. Fails (exit
/// status 1) if no engine could run, a run broke a law of conservation, a run in real time is INVALID, or
/// something failed in a run: a program, a flow, the data.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    file: FileArgs,
    #[arg(long, value_name = "ENGINE,…", value_delimiter = ',', value_parser = engines::parser(),
          default_value = engines::joined(&[EngineName::MODEL, EngineName::SIM]), help = engines::help("The engines"))]
    engine: Vec<EngineName>,
    #[command(flatten)]
    out: OutArgs,
    /// Traffics that have charts in DIR: all, none or a number, the first in the order of the results; tables and CSV
    /// files hold all [default: 20]
    #[arg(long, value_name = "all|none|NUMBER", requires = "out")]
    charts: Option<Charts>,
    #[command(flatten)]
    resume: ResumeArgs,
    /// The seed of all randomness, instead of the file's
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Samples of each traffic to keep: all, none or a number, instead of the file's; figures always cover all
    #[arg(long, value_name = "all|none|NUMBER")]
    samples: Option<Keep>,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Largest number of attempts at a cell in real time, until it is not INVALID [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    attempts: Option<u32>,
    #[command(flatten)]
    effort: EffortArgs,
    /// Print run.json instead of the table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  trunkline run examples/t1-trunk.toml
  trunkline run examples/two-hops.toml --engine model,sim,emu
  trunkline run examples/two-hops.toml --engine emu --pcap hops.pcapng
  trunkline run examples/satellite.toml --out results    # results/index.html
  trunkline run examples/satellite.toml --out results --resume    # goes on
  trunkline run examples/lossy-link.toml --engine sim --json > lossy.json
  trunkline run examples/paced-datagrams.toml --samples none    # figures only";

/// Runs, prints and writes.
pub fn run(args: &Args) -> Result<(), Failure> {
    engines::get_rights(&args.engine);
    let watch = Watch::start()?;
    // On a thread as the runs are made on, to which the C library gives the same heap: what reading gives back is used.
    let file = args.file.clone();
    let (mut cells, mut text) = watch.during(move || file.read())??;
    if let Some(seed) = args.seed {
        reseed(&mut cells, seed).map_err(|error| args.file.refused(&error))?;
    }
    if let Some(samples) = args.samples {
        cells.iter_mut().for_each(|cell| cell.samples = samples);
    }
    let (console, _control) = args.capture.console(&args.engine, args.out.out.as_deref())?;
    let out = &args.out;
    let destination = args.out.destination()?;
    let kept = out.out.as_ref().map(|target| kept(args.resume, target, &cells)).transpose()?;
    let setup = Setup { attempts: args.attempts, console, kept: kept.clone() };
    let engines = setup.engines(&args.engine);
    let batch = Batch { cells, engines, threads: args.threads.number() };
    let refused = |error: &BatchError| args.file.refused(error);
    // Only what is written tells of it.
    if !args.json && destination.is_none() {
        text = String::new();
    }
    let made = outcome(&watch, batch, text, refused).and_then(|mut outcome| {
        outcome.report.charts = args.charts.unwrap_or_default();
        written(&watch, destination, &outcome.report)?;
        Ok(outcome)
    });
    if let Some(kept) = &kept {
        match made {
            Ok(_) => drop(kept.discard()?),
            Err(_) => tell_of_kept(kept),
        }
    }
    let Outcome { report, violations } = made?;
    idle_axes(&report.runs).iter().for_each(|axis| warn(&axis.to_string()));
    let report = match args.json {
        true => output::stream(|out| json(&report, out)).map(|()| report)?,
        false => tabled(&watch, report)?,
    };
    verdict(&report, &violations)?;
    let valid = validity::check(report.runs.iter(), args.effort);
    // The program ends: to give back every sample by itself would be a twentieth of a large run's work.
    std::mem::forget(report);
    valid
}

/// Prints the table. It is made on a thread as the runs were made on, in what they have given back.
fn tabled(watch: &Watch, report: Report) -> Result<Report, Failure> {
    let (report, text) = watch.during(move || {
        let text = terminal(&report);
        (report, text)
    })?;
    output::line(text.trim_end())?;
    Ok(report)
}

/// Writes the report if that is asked for.
pub fn written(
    watch: &Watch,
    destination: Option<Destination>,
    report: &Report,
) -> Result<(), Failure> {
    let Some(destination) = destination else { return Ok(()) };
    destination.fill(report).map_err(unwritten)?;
    watch.check()?;
    let files = destination.publish().map_err(unwritten)?;
    let page = files.iter().find(|file| file.ends_with("index.html"));
    page.iter().for_each(|page| output::tell(format_args!("written: {}", page.display())));
    if let Some(text) = report.undrawn() {
        output::tell(format_args!("{text}; --charts all draws all"));
    }
    Ok(())
}

/// The finished part of an interrupted run to `target`.
fn kept(resume: ResumeArgs, target: &Path, cells: &[Scenario]) -> Result<Arc<Kept>, Failure> {
    let name = cells.first().map(|cell| cell.name.as_str()).unwrap_or_default();
    resume.kept(target, name, digest_of(&cells)).map(Arc::new)
}

/// The runs of the scenario file `text`, with what is known about them. `refused` is the failure for what engines find
/// wrong with the file.
pub fn outcome(
    watch: &Watch,
    batch: Batch,
    text: String,
    refused: impl Fn(&BatchError) -> Failure,
) -> Result<Outcome, Failure> {
    let (steps, total) = (Steps::new(), batch.runs());
    let told = steps.clone();
    let found = watch.during(move || {
        let progress = |now: Progress| told.tell(now.done, total, &now.label);
        batch.run(&progress)
    });
    steps.end();
    let mut outcome = found?.map_err(|error| refused(&error))?;
    outcome.report.version = env!("CARGO_PKG_VERSION").into();
    outcome.report.scenario = text;
    outcome.report.facts = facts();
    Ok(outcome)
}

/// Fails if a run broke a law, or if no engine could run.
pub fn verdict(report: &Report, violations: &[String]) -> Result<(), Failure> {
    if let Some(first) = violations.first() {
        return Err(Failure::failed(format!(
            "the results break {} laws that they must keep, first {first}: this is a fault of the program, please report it with the scenario",
            violations.len()
        )));
    }
    match report.unavailable.first() {
        Some((_, reason)) if report.runs.is_empty() => {
            Err(Failure::failed(format!("no engine could run: {reason}")))
        }
        _ => Ok(()),
    }
}
