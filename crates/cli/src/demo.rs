//! `trunkline demo`: what a queue does to a call, predicted, simulated and emulated on this machine.

use crate::emulation::CaptureArgs;
use crate::engines::{self, Setup};
use crate::failure::Failure;
use crate::output;
use crate::run::{outcome, verdict, written};
use crate::scenario::{OutArgs, ThreadsArgs};
use crate::validity::{self, EffortArgs};
use crate::work::Watch;
use trunkline_batch::{Batch, Outcome};
use trunkline_report::{answer, terminal};
use trunkline_scenario::Scenario;

/// Show what a queue does: a call beside a download, behind a FIFO and behind FQ-CoDel.
///
/// Predicts, simulates and emulates the same scenario, with real TCP on this machine, and says what came out. Takes
/// under a minute. Without root it needs user namespaces; without those it predicts and simulates.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Print the scenario file instead, to change it and run it
    #[arg(long, conflicts_with_all = ["out", "pcap", "threads", "best_effort"])]
    print: bool,
    #[command(flatten)]
    out: OutArgs,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    threads: ThreadsArgs,
    #[command(flatten)]
    effort: EffortArgs,
}

const EXAMPLES: &str = "\
Examples:
  trunkline demo
  trunkline demo --out results                 # then open results/index.html
  trunkline demo --print > path.toml           # a file to start from";

/// The scenario file.
const FILE: &str = include_str!("demo.toml");

/// Runs the scenario, prints the table and what was found, and writes the page.
pub fn run(args: &Args) -> Result<(), Failure> {
    if args.print {
        return output::line(FILE.trim_end());
    }
    let cells = Scenario::parse(FILE, "demo.toml").map_err(Failure::failed)?;
    let names = engines::names();
    engines::get_rights(&names);
    let watch = Watch::start()?;
    let (console, _control) = args.capture.console(&names, args.out.out.as_deref())?;
    let destination = args.out.destination()?;
    let engines = Setup { console, ..Setup::default() }.engines(&names);
    output::tell(format_args!(
        "{} Two queues, three engines; real time takes half a minute.",
        cells[0].about
    ));
    let batch = Batch { cells, engines, threads: args.threads.number() };
    let made = outcome(&watch, batch, FILE.into(), |error| Failure::failed(error))?;
    let Outcome { report, violations } = made;
    written(&watch, destination, &report)?;
    output::line(terminal(&report).trim_end())?;
    output::line(&format!("\n{}", answer(&report).join("\n")))?;
    verdict(&report, &violations)?;
    validity::check(report.runs.iter(), args.effort)
}
