//! `trunkline ladder`: scenarios predicted, simulated and emulated, and whether the three agree.

use crate::emulation::CaptureArgs;
use crate::engines::{self, Setup};
use crate::failure::Failure;
use crate::options::lasting;
use crate::output::{self, counted};
use crate::progress::Steps;
use crate::scenario::{OutArgs, ThreadsArgs, facts, unwritten, warn_of_remarks};
use crate::validity::{self, EffortArgs};
use crate::work::Watch;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trunkline_core::Span;
use trunkline_dataplane::Console;
use trunkline_engine::EngineName;
use trunkline_ladder::{Climb, Climbed, Ladder, Tally, Tolerances, section, terminal};
use trunkline_report::{Charts, Report, ReportNote};
use trunkline_scenario::Scenario;

/// Run scenarios in every engine and say of each figure whether they agree, or why they do not.
///
/// Each cell is cut down, for all engines alike, to the real time that it may take. The formulas and the
/// emulator are held against the simulator: a delay agrees within 2 % or 100 us, a goodput within 2 %, a loss
/// within its 95 % interval. If the emulator is farther apart, the simulator is asked what it gives when all
/// starts a little earlier or later. The emulator needs root, or user namespaces. Exit status 1 if a value is
/// INVALID: the machine was too busy for it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Scenario files, or folders of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[arg(long, value_name = "ENGINE,…", value_delimiter = ',', value_parser = engines::parser(),
          default_value = engines::joined(&engines::names()), help = engines::help("The engines"))]
    engine: Vec<EngineName>,
    /// Longest real time for a cell, approximately
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = lasting)]
    time: Span,
    /// Largest number of cells of a file's grid, spread over it
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    cells: u16,
    /// Largest number of attempts at a cell in real time, until it is not INVALID [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    attempts: Option<u32>,
    /// The short form: --time 2s --cells 1 --attempts 1
    #[arg(long, conflicts_with_all = ["time", "cells", "attempts"])]
    short: bool,
    /// Exit status 1 if a figure differs without a reason
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    effort: EffortArgs,
    #[command(flatten)]
    out: OutArgs,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Also print the engines' notes: assumptions, limits, what hosts they had
    #[arg(long, conflicts_with = "json")]
    notes: bool,
    /// Print as JSON, notes included
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  trunkline ladder examples/ --short
  trunkline ladder examples/ladder --out results    # results/index.html
  trunkline ladder examples/t1-trunk.toml --time 30s --cells 2";

/// Number of the JSON form; it rises when a field changes its meaning or goes.
const FORMAT: u32 = 2;

/// The limits of the short form: real time per cell, and cells.
const SHORT: (Span, usize) = (Span::from_secs(2), 1);

/// Packets that simulations of a cell in other phases may send, all together: some seconds of a processor.
const PHASES: u64 = 4_000_000;
/// The same in the short form.
const PHASES_SHORT: u64 = 400_000;

/// Runs, prints and writes.
pub fn run(args: &Args) -> Result<(), Failure> {
    let files = files(&args.paths)?;
    let scenarios = files.iter().map(|file| read(file)).collect::<Result<Vec<_>, Failure>>()?;
    engines::get_rights(&args.engine);
    let watch = Watch::start()?;
    let (console, _control) = args.capture.console(&args.engine, args.out.out.as_deref())?;
    let destination = args.out.destination()?;
    let mut all = Vec::new();
    let mut notes = Notes::default();
    for (file, cells) in files.iter().zip(scenarios) {
        let climbed = climb(&watch, args.climb(console.clone()), file, cells)?;
        if !args.json {
            output::line(&shown(file, &climbed))?;
        }
        notes.take(&climbed.outcome.report);
        all.push(climbed);
    }
    let ladders: Vec<&Ladder> = all.iter().flat_map(|it| &it.ladders).collect();
    match args.json {
        true => output::line(&document(&ladders, &notes).to_string())?,
        false => output::line(&(notes.shown(args.notes) + &summary(&ladders)))?,
    }
    if let Some(destination) = destination {
        destination.fill(&report(&all)).map_err(unwritten)?;
        watch.check()?;
        let files = destination.publish().map_err(unwritten)?;
        let page = files.iter().find(|file| file.ends_with("index.html"));
        page.iter().for_each(|page| output::tell(format_args!("written: {}", page.display())));
    }
    verdict(&all, args)
}

impl Args {
    fn climb(&self, console: Option<Arc<Console>>) -> Climb {
        let (allowed, cells) =
            if self.short { SHORT } else { (self.time, usize::from(self.cells)) };
        let attempts = if self.short { Some(1) } else { self.attempts };
        let setup = Setup { attempts, console, kept: None };
        Climb {
            engines: setup.engines(&self.engine),
            simulator: engines::simulator(),
            cells,
            allowed,
            phases: if self.short { PHASES_SHORT } else { PHASES },
            threads: self.threads.number(),
            tolerances: Tolerances::default(),
        }
    }
}

/// The files named, and those of the folders named in the order of their names.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = path.read_dir().map_err(|error| unreadable(path, &error))?;
        let mut own: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        own.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
        if own.is_empty() {
            let problem = format!("{}: no scenario file (*.toml) in it", path.display());
            return Err(Failure::wrong_use(problem));
        }
        own.sort();
        files.extend(own);
    }
    Ok(files)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::wrong_use(format!("{}: cannot be read: {error}", path.display()))
}

fn read(file: &Path) -> Result<Vec<Scenario>, Failure> {
    let cells = Scenario::read(file).map_err(Failure::wrong_use)?;
    warn_of_remarks(&cells);
    Ok(cells)
}

fn climb(
    watch: &Watch,
    climb: Climb,
    file: &Path,
    cells: Vec<Scenario>,
) -> Result<Climbed, Failure> {
    let (steps, total) = (Steps::new(), cells.len().min(climb.cells) * climb.engines.len());
    let told = steps.clone();
    let found =
        watch.during(move || climb.climb(&cells, &|now| told.tell(now.done, total, &now.label)));
    steps.end();
    found?.map_err(|error| Failure::wrong_use(format!("{}: {error}", file.display())))
}

/// A file's tables, and which engines could not run it.
fn shown(file: &Path, climbed: &Climbed) -> String {
    let mut text = format!("{}\n", file.display());
    if climbed.ladders.len() < climbed.cells {
        text += &format!("{} of {} cells\n", climbed.ladders.len(), climbed.cells);
    }
    if climbed.cut {
        text += "repetitions and durations cut to the time allowed\n";
    }
    text += &climbed.ladders.iter().map(terminal).collect::<String>();
    for (engine, reason) in &climbed.outcome.report.unavailable {
        text += &format!("{engine}: unavailable: {reason}\n");
    }
    text
}

/// The engines' notes, each once, in the order in which they came.
#[derive(Default)]
struct Notes(Vec<ReportNote>);

impl Notes {
    fn take(&mut self, report: &Report) {
        for note in report.notes() {
            if !self.0.contains(&note) {
                self.0.push(note);
            }
        }
    }

    /// All of them, or how many there are.
    fn shown(&self, all: bool) -> String {
        match (all, self.0.len()) {
            (_, 0) => String::new(),
            (true, _) => self.0.iter().map(|note| format!("note: {note}\n")).collect(),
            (false, count) => {
                format!("{} of the engines: --notes, or the page\n", counted(count as u64, "note"))
            }
        }
    }
}

fn document(ladders: &[&Ladder], notes: &Notes) -> serde_json::Value {
    json!({"format": FORMAT, "ladders": ladders, "notes": notes.0})
}

fn summary(ladders: &[&Ladder]) -> String {
    let of = |engine: EngineName| {
        let tallies = ladders.iter().map(|ladder| ladder.tally(engine));
        let all = tallies.fold(Tally::default(), Tally::plus);
        format!(
            "{engine} against {}: {} agree, {} within the phase range, {} undecided, {} differ with a reason, {} unexplained, {} missing, {} invalid",
            EngineName::SIM,
            all.agree,
            all.phase,
            all.undecided,
            all.explained,
            all.unexplained,
            all.missing,
            all.invalid
        )
    };
    let cells = counted(ladders.len() as u64, "cell");
    let others = engines::names().into_iter().filter(|engine| *engine != EngineName::SIM);
    format!("{cells}\n{}", others.map(of).collect::<Vec<String>>().join("\n"))
}

/// Everything on one page.
fn report(all: &[Climbed]) -> Report {
    let mut report = Report {
        title: "The truth ladder".into(),
        about: "The same scenarios predicted, simulated and emulated.".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        facts: facts(),
        charts: Charts::All,
        ..Report::default()
    };
    let ladders: Vec<Ladder> = all.iter().flat_map(|it| it.ladders.clone()).collect();
    report.answer =
        summary(&ladders.iter().collect::<Vec<_>>()).lines().map(str::to_owned).collect();
    report.sections.push(section(&ladders));
    for one in all {
        let own = &one.outcome.report;
        report.runs.extend(own.runs.iter().cloned());
        report.unavailable.extend(own.unavailable.iter().cloned());
        report.shown.extend(&own.shown);
    }
    report
}

fn verdict(all: &[Climbed], args: &Args) -> Result<(), Failure> {
    if let Some(first) = all.iter().flat_map(|it| &it.outcome.violations).next() {
        return Err(Failure::failed(format!(
            "the results break a law that they must keep: {first}: this is a fault of the program, please report it with the scenario"
        )));
    }
    validity::check(all.iter().flat_map(|it| &it.outcome.report.runs), args.effort)?;
    let tallies = all.iter().flat_map(|it| &it.ladders).map(|it| it.tally(EngineName::EMU));
    let unexplained = tallies.fold(Tally::default(), Tally::plus).unexplained;
    match args.strict && unexplained > 0 {
        true => Err(Failure::failed(format!(
            "{unexplained} figures of the emulator differ without a reason, see above"
        ))),
        false => Ok(()),
    }
}
