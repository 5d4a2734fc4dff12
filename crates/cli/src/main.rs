//! The `trunkline` command: one file for each verb, no logic of its own.

mod bound;
mod bridge;
mod calibrate;
mod cluster;
mod demo;
mod describe;
mod doctor;
#[cfg(test)]
mod documented;
mod emulation;
mod engines;
mod explain;
mod failure;
mod files;
mod foreign;
mod harmless;
mod installed;
mod ladder;
mod links;
mod moved;
mod options;
mod output;
mod predict;
mod presets;
mod probe;
mod programs;
mod progress;
mod reach;
mod receive;
mod run;
mod scenario;
mod send;
mod serve;
mod set;
mod shell;
mod show;
mod signals;
mod statement;
mod study;
mod validity;
mod verify;
mod work;

use clap::{CommandFactory, Parser, Subcommand};
use failure::Failure;
use std::process::ExitCode;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// A network path laboratory: predict a path, simulate it, or put it between real programs.
#[derive(Parser)]
#[command(name = "trunkline", version, max_term_width = 80, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  trunkline demo
  trunkline shell --delay 300ms --rate 10mbit -- curl https://example.org
  trunkline shell --preset t1-1989 --peer 'iperf3 -s' -- iperf3 -c {peer}
  trunkline bridge eth1 eth2 --delay 250ms
  trunkline verify --preset lds
  trunkline run examples/t1-trunk.toml --out results
  trunkline study run hawley1989
  trunkline send results/ k7q-m2x@lab7.example.org

Exit status: 0 success, 1 failure (the run was invalid, the program failed, the
machine refused), 2 wrong use, 130 Ctrl-C (128 and the signal's number), 141 the
reader of the output closed it.";

#[derive(Subcommand)]
enum Verb {
    /// Show what a queue does: a call beside a download, predicted, simulated and emulated
    Demo(demo::Args),
    /// Run a program in its own network namespace, behind the emulated path
    Shell(shell::Args),
    /// Join two interfaces by an emulated path
    Bridge(bridge::Args),
    /// Look at a running path: settings, counts by cause, queue depth, lateness
    Show(show::Args),
    /// Change a running path while traffic flows
    Set(set::Args),
    /// Measure the emulator's own delay error, spacing error and loss on this machine
    Verify(verify::Args),
    /// Measure what this machine can do: smallest delay, timers, highest loss-free rates
    Calibrate(calibrate::Args),
    /// List what this machine can and cannot do, with the remedies
    Doctor(doctor::Args),
    /// Run a scenario file: one table with a column for each engine, and charts
    Run(run::Args),
    /// Show what closed formulas predict for a scenario file, with the numbers put in
    Predict(predict::Args),
    /// Redo published measurements and compare with what was published
    Study(study::Args),
    /// Explain a scenario's figures: where the time went, what limits them, what would help most
    Explain(explain::Args),
    /// Predict, simulate and emulate scenarios, with a verdict for each figure
    Ladder(ladder::Args),
    /// Answer the probes of other hosts
    Serve(serve::Args),
    /// Measure a real path to a host that runs `trunkline serve`
    Probe(Box<probe::Args>),
    /// Send files to a host that runs `trunkline receive`, over long and lossy paths
    Send(send::Args),
    /// Receive what `trunkline send` sends
    Receive(receive::Args),
    /// Run a test of a message layer among nodes, each a process
    Cluster(cluster::Args),
    /// List the named paths with their numbers and sources
    Presets(presets::Args),
    /// Print a shell's completion script for this command
    Completions(installed::CompletionsArgs),
    /// Print the manual page, or write those of all verbs into a directory
    Man(installed::ManArgs),
    /// Print the JSON Schema of scenario files, for editors
    Schema(installed::SchemaArgs),
}

fn main() -> ExitCode {
    output::status(work())
}

/// Tells of the insides what `TRUNKLINE_LOG` asks for, such as `debug` or `trunkline_netns=trace,warn`; errors alone
/// without it.
fn begin_log() {
    let asked = std::env::var("TRUNKLINE_LOG").unwrap_or_default();
    let filter = match asked.parse::<Targets>() {
        Ok(filter) if !asked.is_empty() => filter,
        Ok(_) => Targets::new().with_default(LevelFilter::ERROR),
        Err(error) => {
            output::tell(format_args!(
                "TRUNKLINE_LOG={asked}: {error}: write a level, such as debug, or trunkline_netns=trace,warn"
            ));
            Targets::new().with_default(LevelFilter::ERROR)
        }
    };
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| output::Log);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}

/// Does what the command line asks for, and returns the exit status.
fn work() -> u8 {
    begin_log();
    if let Err(error) = signals::bear_limits() {
        return Failure::failed(error).report();
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return Failure::of_usage(&error),
    };
    let result = match cli.verb {
        Verb::Shell(args) => shell::run(&args),
        Verb::Bridge(args) => bridge::run(&args),
        Verb::Show(args) => show::run(&args),
        Verb::Set(args) => set::run(&args),
        Verb::Verify(args) => verify::run(&args),
        Verb::Calibrate(args) => calibrate::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Run(args) => run::run(&args),
        Verb::Predict(args) => predict::run(&args),
        Verb::Study(args) => study::run(&args),
        Verb::Explain(args) => explain::run(&args),
        Verb::Ladder(args) => ladder::run(&args),
        Verb::Serve(args) => serve::run(&args),
        Verb::Probe(args) => probe::run(&args),
        Verb::Send(args) => send::run(&args),
        Verb::Receive(args) => receive::run(&args),
        Verb::Cluster(args) => cluster::run(&args),
        Verb::Presets(args) => presets::run(&args),
        Verb::Completions(args) => installed::completions(&args, Cli::command()),
        Verb::Man(args) => installed::man(&args, Cli::command()),
        Verb::Schema(_) => installed::schema(),
    };
    result.map_or_else(Failure::report, |()| 0)
}
