//! `trunkline probe load`: delay under load.

use super::bulk::row;
use super::sinks::{self, SinkArgs, millis, rate_if_known};
use super::target::{Stop, TargetArgs};
use super::transfers::TransferArgs;
use crate::failure::Failure;
use crate::files;
use crate::options::lasting;
use crate::progress::Progress;
use crate::serve::failure;
use trunkline_core::{Seed, Span};
use trunkline_fit::{Compared, Figure};
use trunkline_probe::Pace;
use trunkline_probe::client::Event;
use trunkline_probe::client::load::{
    LoadMeasured, LoadPlan, LoadResult, Phase, PhaseFigures, measure,
};
use trunkline_probe::client::transfer::Ways;
use trunkline_probe::result::{flent, write_samples};
use trunkline_probe::stamp::calibrate;
use trunkline_probe::wire::message::Transport;

/// Measure how much worse delay gets under load.
///
/// Paced messages go over the idle path, then beside bulk transfers, then over the idle path again; they
/// count from the instant at which they were meant to be sent.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    transfers: TransferArgs,
    /// What carries the transfers: tcp, udp or urp
    #[arg(long, default_value = "tcp", value_name = "NAME", help_heading = "Transfers")]
    load_transport: Transport,
    /// Like Flent's rrul: four TCP connections up and four down at once
    #[arg(long, conflicts_with_all = ["streams", "direction"], help_heading = "Transfers")]
    rrul: bool,
    /// What carries the messages: udp, tcp or urp
    #[arg(long, default_value = "udp", value_name = "NAME", help_heading = "Messages")]
    transport: Transport,
    /// User octets of a message
    #[arg(long, value_name = "BYTES", default_value_t = 64, help_heading = "Messages")]
    size: u32,
    /// Interval between messages
    #[arg(long, value_name = "TIME", default_value = "20ms", help_heading = "Messages", value_parser = lasting)]
    every: Span,
    /// How long to measure the idle path, before and afterwards
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Messages", value_parser = lasting)]
    idle: Span,
    /// Seed of the intervals of the result
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Messages")]
    seed: u64,
    #[command(flatten)]
    sinks: SinkArgs,
}

const EXAMPLES: &str = "\
Examples:
  trunkline probe load lab7 --key-file probe.key
  trunkline probe load lab7 --rrul --duration 60s --flent rrul.flent.gz
  trunkline probe load lab7 --direction down --streams 4 --json";

/// Streams of Flent's rrul, each way.
const RRUL: u16 = 4;
/// The intervals in which transfers are counted: Flent's.
const INTERVAL: Span = Span::from_millis(200);

impl Args {
    fn plan(&self) -> LoadPlan {
        let mut transfer = self.transfers.plan(self.load_transport, None, INTERVAL);
        if self.rrul {
            transfer.streams = RRUL;
        }
        LoadPlan {
            transport: self.transport,
            size: self.size,
            pace: Pace::Every(self.every),
            idle: self.idle,
            warmup: self.transfers.warmup.unwrap_or(Span::from_secs(2)),
            transfer,
            ways: if self.rrul { Ways::Both } else { self.transfers.direction },
            seed: Seed(self.seed),
        }
    }
}

/// Measures and prints.
pub fn run(args: &Args) -> Result<(), Failure> {
    let plan = args.plan();
    args.sinks.check(None)?;
    args.sinks.check_flows(plan.ways, plan.transfer.streams)?;
    let stop = Stop::on_signals()?;
    let connection = args.target.connect(&stop)?;
    let mut progress = Progress::new(0);
    let mut tell = |phase: Phase, event: Event| match event {
        Event::Answer(exchange) => stop.unless(args.sinks.answer(phase.name(), &exchange)),
        Event::Sent(count) if count % 16 == 0 => {
            progress.tell(&format!("{}: {count} messages sent", phase.name()));
        }
        Event::Sent(_) => {}
    };
    let done = measure(&connection, &plan, calibrate(), &mut tell).map_err(failure)?;
    drop(progress);
    // Files first: they are wanted whether or not anybody reads the rest.
    let saved = save(args, &done);
    args.sinks.result(&done.result, || text(&done.result))?;
    saved?;
    stop.check()?;
    done.failure.map_or(Ok(()), |error| Err(failure(error)))
}

fn save(args: &Args, done: &LoadMeasured) -> Result<(), Failure> {
    let phases: Vec<_> =
        done.observed.iter().map(|(phase, observed)| (phase.name(), observed)).collect();
    files::write(args.sinks.csv.as_deref(), |out| write_samples(out, &phases))?;
    sinks::flent(&args.sinks, &done.result.hosts, |start| flent::of_load(done, start))
}

fn text(result: &LoadResult) -> String {
    let mut phases = sinks::new_table();
    phases.set_header([
        "path",
        "answers",
        "response ms\nmin",
        "median",
        "p90",
        "p99",
        "max",
        "one way ms, median\nup / down",
        "jitter ms\nup / down",
        "lost\nup / down",
    ]);
    for part in &result.phases {
        phases.add_row(phase(part));
    }
    let mut transfers = sinks::new_table();
    transfers.set_header([
        "",
        "way",
        "goodput meanwhile",
        "in intervals",
        "by stream",
        "what happened",
    ]);
    for (number, found) in result.transfers.iter().enumerate() {
        transfers.add_row(row(number + 1, found));
    }
    let mut lines = vec![phases.to_string(), transfers.to_string()];
    lines.extend(verdict(result));
    lines.push(sinks::timing(&result.timing_error));
    lines.extend(result.hosts.warnings.iter().map(|warning| format!("WARNING: {warning}")));
    lines.join("\n")
}

fn phase(part: &PhaseFigures) -> Vec<String> {
    let figures = &part.figures;
    let of = |pick: fn(&trunkline_fit::Spread) -> f64| {
        figures.response_ms.map_or("-".into(), |spread| millis(pick(&spread)))
    };
    let way = |way: &trunkline_probe::result::OneDirection| {
        way.delay_ms.map_or("-".into(), |spread| millis(spread.median))
    };
    let jitter = |value: Option<f64>| value.map_or("-".into(), millis);
    vec![
        part.phase.name().into(),
        figures.response_ms.map_or(0, |spread| spread.count).to_string(),
        of(|spread| spread.min),
        of(|spread| spread.median),
        of(|spread| spread.p90),
        of(|spread| spread.p99),
        of(|spread| spread.max),
        format!("{} / {}", way(&figures.up), way(&figures.down)),
        format!("{} / {}", jitter(figures.up.jitter_ms), jitter(figures.down.jitter_ms)),
        format!("{} / {}", figures.loss.out.least, figures.loss.back.least),
    ]
}

fn ends(figure: &Figure, show: fn(f64) -> String) -> String {
    let (low, high) = (show(figure.interval.low), show(figure.interval.high));
    format!("{} ({low} to {high})", show(figure.value))
}

fn verdict(result: &LoadResult) -> Vec<String> {
    let Some(worse) = &result.worse else {
        return vec!["how much worse it is under load cannot be said: a part is missing".into()];
    };
    let times = |value: f64| format!("{value:.1}");
    let line = |found: &Compared| {
        let ratio = found.ratio.map_or("-".into(), |ratio| ends(&ratio, times));
        let name = if found.share == 0.5 {
            "median".into()
        } else {
            format!("p{:.0}", found.share * 100.0)
        };
        let more = ends(&found.difference, millis);
        format!("under load the {name} is {ratio} times the idle one, {more} ms more")
    };
    let mut lines: Vec<String> = worse.quantiles.iter().map(line).collect();
    let [idle, loaded] = worse.per_minute;
    lines.push(format!(
        "round trips a minute, one after the other: {:.0} idle, {:.0} under load",
        idle.value, loaded.value
    ));
    let goodput = result.transfers.iter();
    let goodput = goodput
        .map(|found| format!("{} {}", found.direction, rate_if_known(found.goodput_bit_per_s)));
    lines.push(format!("goodput meanwhile: {}", goodput.collect::<Vec<_>>().join(", ")));
    lines
}
