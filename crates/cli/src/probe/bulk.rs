//! `trunkline probe bulk`: what a path carries.

use super::rtt::Percent;
use super::sinks::{self, SinkArgs, TOO_LITTLE, rate, rate_if_known, rate_with_interval};
use super::target::{Stop, TargetArgs};
use super::transfers::TransferArgs;
use crate::failure::Failure;
use crate::files;
use crate::options::lasting;
use crate::progress::Progress;
use crate::serve::failure;
use trunkline_core::Span;
use trunkline_fit::Goal;
use trunkline_probe::client::bulk::{
    BulkFigures, BulkPlan, BulkResult, BulkRun, Repeat, measure, with_warmup,
};
use trunkline_probe::result::{IntervalRow, Line, flent, write_intervals};
use trunkline_probe::wire::message::Transport;

/// Measure bulk transfers: goodput at the receiver.
///
/// By tcp: parallel connections of the kernel's TCP, with its retransmissions, round trips and windows. By
/// udp: datagrams at a stated rate, with their loss and jitter. By urp: one stream in blocks. What the
/// receiver has got counts, in intervals after a warm-up.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    transfers: TransferArgs,
    /// What carries the transfers: tcp, udp or urp
    #[arg(long, default_value = "tcp", value_name = "NAME", help_heading = "Transfers")]
    transport: Transport,
    /// User octets of a datagram [default: 1400], or of a URP message [default: a block]
    #[arg(long, value_name = "BYTES", help_heading = "Transfers")]
    size: Option<u32>,
    /// Length of the result's intervals
    #[arg(long, value_name = "TIME", default_value = "1s", help_heading = "Transfers", value_parser = lasting)]
    interval: Span,
    /// Number of repetitions
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Repetition",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Repeat, ten times at least, until the mean of all runs is known within this share of itself
    #[arg(long, value_name = "SHARE%", conflicts_with = "runs", help_heading = "Repetition")]
    within: Option<Percent>,
    /// With this confidence, in percent
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 95.0,
        requires = "within",
        help_heading = "Repetition"
    )]
    confidence: f64,
    /// With --within: the most runs
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "Repetition")]
    max_runs: usize,
    #[command(flatten)]
    sinks: SinkArgs,
}

const EXAMPLES: &str = "\
Examples:
  trunkline probe bulk lab7 --key-file probe.key
  trunkline probe bulk lab7 --direction both --streams 4 --congestion reno
  trunkline probe bulk lab7 --transport udp --rate 20mbit --json
  trunkline probe bulk lab7 --transport urp --window 1024x7
  trunkline probe bulk lab7 --duration 5s --confidence 95 --within 2%";

impl Args {
    fn plan(&self) -> BulkPlan {
        let until = |Percent(relative): Percent| {
            Repeat::Until(Goal {
                relative,
                confidence: self.confidence / 100.0,
                least: 10,
                most: self.max_runs,
                ..Goal::default()
            })
        };
        BulkPlan {
            transfer: self.transfers.plan(self.transport, self.size, self.interval),
            ways: self.transfers.direction,
            warmup: self.transfers.warmup.unwrap_or(Span::from_secs(1)),
            repeat: self.within.map_or(Repeat::Times(self.runs), until),
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
    let each = with_warmup(&plan.transfer, plan.warmup).duration;
    let mut progress = Progress::new(0);
    progress.tell(&format!("transferring {} for {each}", plan.transfer.transport));
    let mut count = 0;
    let mut tell = |run: &BulkRun| {
        count += 1;
        progress.tell(&format!("{count} runs done"));
        stop.unless(run.directions.iter().all(|found| lines(args, found)));
    };
    let done = measure(&connection, &plan, &mut tell).map_err(failure)?;
    drop(progress);
    // Files first: they are wanted whether or not anybody reads the rest.
    let saved = save(args, &done.result);
    args.sinks.result(&done.result, || table(&done.result))?;
    saved?;
    stop.check()?;
    done.failure.map_or(Ok(()), |error| Err(failure(error)))
}

fn save(args: &Args, result: &BulkResult) -> Result<(), Failure> {
    files::write(args.sinks.csv.as_deref(), |out| write_intervals(out, &rows(result)))?;
    sinks::flent(&args.sinks, &result.hosts, |start| flent::of_bulk(result, start))
}

/// Prints the intervals of a direction, if lines were asked for. Returns whether anybody still listens.
pub fn lines(args: &Args, found: &BulkFigures) -> bool {
    found.intervals.iter().all(|interval| {
        args.sinks.line(&Line::Interval {
            phase: "bulk",
            direction: found.direction.name(),
            start_s: interval.start_s,
            length_s: interval.length_s,
            octets: interval.octets,
            goodput_bit_per_s: interval.goodput_bit_per_s,
        })
    })
}

fn rows(result: &BulkResult) -> Vec<IntervalRow<'_>> {
    let all = result.runs.iter().flat_map(|run| &run.directions);
    all.flat_map(|found| {
        let row = |one: &trunkline_probe::client::bulk::IntervalFigures| {
            (found.direction.name(), one.start_s, one.length_s, one.octets)
        };
        found.intervals.iter().map(row).collect::<Vec<_>>()
    })
    .collect()
}

fn table(result: &BulkResult) -> String {
    let mut table = sinks::new_table();
    table.set_header(["run", "way", "goodput", "in intervals", "by stream", "what happened"]);
    for (number, run) in result.runs.iter().enumerate() {
        for found in &run.directions {
            table.add_row(row(number + 1, found));
        }
    }
    let mut lines = vec![table.to_string()];
    for total in &result.goodput {
        let text = total.bit_per_s.as_ref().map_or(TOO_LITTLE.into(), rate_with_interval);
        let reached = match total.reached {
            Some(false) => "; not known as well as asked",
            _ => "",
        };
        lines.push(format!("{} to {}: {text}{reached}", total.direction, result.server));
    }
    lines.extend(result.hosts.warnings.iter().map(|warning| format!("WARNING: {warning}")));
    lines.join("\n")
}

/// A row of a table of transfers.
pub fn row(number: usize, found: &BulkFigures) -> Vec<String> {
    let rates = found.intervals.iter().filter(|one| !one.warmup).map(|one| one.goodput_bit_per_s);
    let (least, most) =
        rates.fold((f64::INFINITY, 0.0f64), |(low, high), one| (low.min(one), high.max(one)));
    let range =
        if least <= most { format!("{} to {}", rate(least), rate(most)) } else { "-".into() };
    let streams: Vec<String> =
        found.streams_bit_per_s.iter().map(|&bits| rate_if_known(bits)).collect();
    vec![
        number.to_string(),
        found.direction.to_string(),
        rate_if_known(found.goodput_bit_per_s),
        range,
        if streams.len() > 1 { streams.join("\n") } else { "-".into() },
        happened(found),
    ]
}

fn happened(found: &BulkFigures) -> String {
    let mut words = Vec::new();
    if let (Some(name), Some(count)) = (&found.congestion, found.retransmits) {
        let last = found.tcp.first().and_then(|stream| stream.last());
        let state = last.map_or(String::new(), |last| {
            format!(", rtt {:.1} ms, cwnd {}", f64::from(last.rtt_us) / 1e3, last.cwnd_segments)
        });
        words.push(format!("{name}: {count} sent again{state}"));
    }
    if let Some(seen) = &found.datagrams {
        let jitter = seen.jitter_ms.map_or(String::new(), |ms| format!(", jitter {ms:.3} ms"));
        words.push(format!(
            "{} of {} lost ({:.2} %), {} reordered{jitter}",
            seen.lost,
            seen.counts.sent,
            seen.lost_share * 100.0,
            seen.counts.reordered
        ));
    }
    if let Some(sender) = &found.urp_sender {
        words.push(format!("urp: {} blocks, {} sent again", sender.blocks, sender.resent));
    }
    words.join("; ")
}
