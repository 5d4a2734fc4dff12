//! `trunkline verify`: the emulator measured from outside, against the path that it should be.

use crate::failure::Failure;
use crate::options::{PathArgs, lasting};
use crate::output;
use crate::progress::Progress;
use crate::{describe, emulation, signals};
use comfy_table::{ContentArrangement, Table, presets};
use trunkline_core::Span;
use trunkline_dataplane::capture::CaptureFilter;
use trunkline_emu::{AtWork, broken_off};
use trunkline_measure::Percentiles;
use trunkline_port::Backend;
use trunkline_scenario::{PathSpec, Scenario, Settings};
use trunkline_verify::report::{FORMAT, Report, Row, Thresholds};
use trunkline_verify::sweep::{LDS_DELAYS, LDS_LOADS, LDS_SIZES, LDS_STEP, Load, Sweep};
use trunkline_verify::{Emulator, Laboratory};

/// Measure the emulator's own delay error, spacing error and loss on this machine.
///
/// Sends stamped, numbered UDP probes both ways at once between two hosts of its own, first directly
/// and then through the path, and compares each arrival with the instant that the modelled path
/// prescribes for it. Fails (exit status 1) if the machine does not hold the setting. `trunkline show` looks at
/// the run under way; one that `trunkline set` has changed fails.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Sizes of the probes in bytes of IP packet, from 40 [default: 40,576,1500 up to the MTU]
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', help_heading = "Probes")]
    sizes: Vec<u32>,
    /// Probes each way: per second (1000), a share of the line rate (10%), or max: line rate, or the most
    /// that generator and bare forwarder hold without loss [default: 1,1000,max]
    #[arg(long, value_name = "LOAD,…", value_delimiter = ',', help_heading = "Probes")]
    loads: Vec<Load>,
    /// How long each run lasts [default: 5s; less in the sweep of --preset lds]
    #[arg(long, value_name = "TIME", help_heading = "Probes", value_parser = lasting)]
    duration: Option<Span>,
    /// How often to make each run
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Probes",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Lengthen the delay by TIME after a third of each run, and shorten it again after two thirds
    /// [default if it is given without a time: 500us; in the sweep of --preset lds: on]
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "500us",
          help_heading = "Probes")]
    change_delay: Option<Span>,
    /// Largest acceptable delay error, for 99 in 100 probes
    #[arg(long, value_name = "TIME", default_value = "50us", help_heading = "Validity")]
    delay_error: Span,
    /// Largest acceptable spacing error, for 99 in 100 gaps
    #[arg(long, value_name = "TIME", default_value = "20us", help_heading = "Validity")]
    spacing_error: Span,
    /// How frames are exchanged with the kernel: packet (everywhere) or xdp (faster, root only)
    #[arg(long, default_value = "packet", value_name = "BACKEND", help_heading = "Emulator")]
    backend: Backend,
    /// Never sleep
    #[arg(long, help_heading = "Emulator")]
    busy: bool,
    /// Run the emulator on this processor, the probes on another [default: the last one]
    #[arg(long, value_name = "NUMBER", help_heading = "Emulator")]
    cpu: Option<usize>,
    /// Capture frames at both ends of the path to FILE (pcapng); the second run's go to FILE-2, and so on
    #[arg(long, value_name = "FILE", help_heading = "Emulator")]
    pcap: Option<std::path::PathBuf>,
    /// Print the report as JSON on standard output
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  trunkline verify --delay 10ms
  trunkline verify --preset lds    # the sweep of the LDS report, 4 minutes
  trunkline verify --rate 100mbit --delay 30ms --sizes 64,1500 \\
      --loads 10%,max --runs 5 --json

`--preset lds` alone sweeps delays of 1.5, 10, 100 and 500 ms, sizes of 40 to
9180 bytes and loads of 1 per second to line rate, and changes the delay twice
during each run.";

/// Measures and judges.
pub fn run(args: &Args) -> Result<(), Failure> {
    let sweep = plan(args)?;
    trunkline_verify::check(&sweep.path, &sweep.sizes).map_err(Failure::wrong_use)?;
    let stop = signals::flag()?;
    let (_host, state) = emulation::prepare()?;
    let mut laboratory = Laboratory::build(sweep.path.mtu, args.cpu)?;
    let console = emulation::console(args.pcap.as_deref(), CaptureFilter::Both)?;
    let _control = emulation::listen(&console, Some(&state))?;
    laboratory.attend(console);
    for namespace in laboratory.namespaces() {
        state.note_namespace(namespace)?;
    }
    output::tell(format_args!("{} runs over {}", sweep.runs(), describe::path(&sweep.path)));
    let mut progress = Progress::new(sweep.runs());
    let mut rows = Vec::new();
    let (mut done, progress) = (0, &mut progress);
    let result = {
        let told = std::cell::RefCell::new(progress);
        sweep.run(
            &mut laboratory,
            &stop.raised,
            &mut |what| told.borrow_mut().tell(what),
            &mut |row| {
                done += 1;
                told.borrow_mut().done(done);
                rows.push(row);
            },
        )
    };
    drop(laboratory);
    if !rows.is_empty() {
        print(args, &sweep, &rows)?;
    }
    result.map_err(|error| stop.failure(error))?;
    verdict(&rows)
}

/// Measures the one path of a scenario from outside, for a study.
pub fn measure(scenario: &Scenario) -> Result<Row, String> {
    let _at_work = AtWork::begin().map_err(|error| error.to_string())?;
    in_laboratory(scenario).map_err(|failure| failure.message().to_string())
}

fn in_laboratory(scenario: &Scenario) -> Result<Row, Failure> {
    let (_host, state) = emulation::prepare()?;
    let mut laboratory = Laboratory::build(scenario.mtu, None)?;
    for namespace in laboratory.namespaces() {
        state.note_namespace(namespace)?;
    }
    Ok(trunkline_verify::measure(scenario, &mut laboratory, broken_off())?)
}

/// The runs that the options describe.
fn plan(args: &Args) -> Result<Sweep, Failure> {
    let path = args.path.resolve()?;
    let whole = args.sizes.is_empty() && args.loads.is_empty();
    let report = whole && path == lds()?;
    let fitting = || LDS_SIZES.into_iter().filter(|&size| size <= path.mtu).collect();
    let loads = || vec![Load::PerSecond(1.0), Load::PerSecond(1000.0), Load::Most];
    Ok(Sweep {
        delays: if report { LDS_DELAYS.to_vec() } else { Vec::new() },
        sizes: if args.sizes.is_empty() { fitting() } else { args.sizes.clone() },
        loads: match (report, args.loads.is_empty()) {
            (true, _) => LDS_LOADS.to_vec(),
            (false, true) => loads(),
            (false, false) => args.loads.clone(),
        },
        duration: if report { args.duration } else { Some(args.duration.unwrap_or(DURATION)) },
        repeat: args.runs,
        change: args.change_delay.or(report.then_some(LDS_STEP)),
        emulator: Emulator { backend: args.backend, busy: args.busy },
        thresholds: Thresholds { delay: args.delay_error, spacing: args.spacing_error },
        path,
    })
}

const DURATION: Span = Span::from_secs(5);

fn lds() -> Result<PathSpec, Failure> {
    let mut settings = Settings::default();
    settings.start_from("lds")?;
    Ok(settings.resolve()?)
}

fn print(args: &Args, sweep: &Sweep, rows: &[Row]) -> Result<(), Failure> {
    if args.json {
        let report = Report {
            format: FORMAT,
            holds: rows.iter().all(Row::holds),
            thresholds: sweep.thresholds,
            backend: sweep.emulator.backend.to_string(),
            busy: sweep.emulator.busy,
            runs: rows.to_vec(),
        };
        return output::line(&serde_json::to_string_pretty(&report)?);
    }
    output::line(&table(rows).to_string())?;
    summary(rows).iter().try_for_each(|line| output::line(line))
}

const HEADER: [&str; 12] = [
    "delay",
    "bytes",
    "each way/s (bound)",
    "sent",
    "lost emu/queue",
    "reord/dup",
    "delay error us\nmean",
    "p50 p99 p99.9 max",
    "spacing error us\np50 p99 p99.9 max",
    "RTT spread us: sd, p99-p1\nwith | direct",
    "stalls emu/gen",
    "verdict",
];

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(HEADER);
    for row in rows {
        table.add_row(cells(row));
    }
    table
}

fn cells(row: &Row) -> [String; 12] {
    let delay = match row.delay_up == row.delay_down {
        true => row.delay_up.to_string(),
        false => format!("{}/{}", row.delay_up, row.delay_down),
    };
    [
        delay,
        row.size.to_string(),
        format!("{} ({})", rate(row.offered_per_second), row.bound),
        row.sent.to_string(),
        format!("{}/{}", row.lost.emulator, row.lost.queue),
        format!("{}/{}", row.reordered, row.duplicated),
        format!("{:+.1}", row.mean_error_ns as f64 / 1e3),
        percentiles(&row.delay_error),
        percentiles(&row.spacing_error),
        format!(
            "{} {} | {} {}",
            micros(row.rtt_with.deviation),
            micros(row.rtt_with.range),
            micros(row.rtt_without.deviation),
            micros(row.rtt_without.range)
        ),
        stalls(row),
        if row.holds() { "holds".into() } else { "FAILS".into() },
    ]
}

fn stalls(row: &Row) -> String {
    let stalls = &row.stalls;
    let longest = stalls.emulator_longest.max(stalls.generator_longest);
    match stalls.any() {
        true => format!("{}/{} ≤{}us", stalls.emulator, stalls.generator, micros(longest)),
        false => "-".into(),
    }
}

fn rate(per_second: f64) -> String {
    if per_second < 100.0 { format!("{per_second}") } else { format!("{per_second:.0}") }
}

fn percentiles(figures: &Percentiles) -> String {
    let all = [figures.p50, figures.p99, figures.p999, figures.max];
    all.map(micros).join(" ")
}

/// Microseconds to three digits or so.
pub fn micros(span: Span) -> String {
    let micros = span.as_micros_f64();
    match micros {
        micros if micros < 10.0 => format!("{micros:.2}"),
        micros if micros < 100.0 => format!("{micros:.1}"),
        micros => format!("{micros:.0}"),
    }
}

/// The lines below the table: the measurement's own error, what was left out, and why runs failed.
fn summary(rows: &[Row]) -> Vec<String> {
    let sum = |field: fn(&Row) -> u64| rows.iter().map(field).sum::<u64>();
    let most = |field: fn(&Row) -> Span| rows.iter().map(field).max().unwrap_or_default();
    let mut lines = vec![
        format!(
            "{} probes: lost by the emulator {}, by the modelled queue {}; still under way {}; reordered {}; duplicated {}",
            sum(|r| r.sent),
            sum(|r| r.lost.emulator),
            sum(|r| r.lost.queue),
            sum(|r| r.lost.under_way),
            sum(|r| r.reordered),
            sum(|r| r.duplicated)
        ),
        format!(
            "the measurement itself (direct veth): at most {} us one way, which is taken off, with 99 in 100 within {} us more",
            micros(most(|r| r.baseline_lead)),
            micros(most(|r| r.baseline_p99))
        ),
        format!(
            "left out of the errors: {} whose sending was interrupted, {} next to a change of the delay, {} with another fate than prescribed; {} counted with the nearer of two slots",
            sum(|r| r.interrupted),
            sum(|r| r.near_change),
            sum(|r| r.other_fate),
            sum(|r| r.slot_open)
        ),
        format!(
            "round trips widened (standard deviation) by at most {} us; delay changed {} times while probes were under way",
            micros(most(Row::rtt_widening)),
            sum(|r| r.delay_changes)
        ),
    ];
    lines.extend(rows.iter().filter(|row| !row.holds()).map(complaint));
    lines
}

fn complaint(row: &Row) -> String {
    let stalls = match row.stalls.any() {
        true => format!("stalled {}", stalls(row)),
        false => "did not stall".into(),
    };
    let machine = format!(
        " (the machine {stalls}, and interrupted the emulator {} times for more than 20us, {} in all)",
        row.stalls.interruptions,
        row.stalls.interrupted.rounded()
    );
    format!(
        "FAILS at delay {}, {} bytes, {}/s: {}{machine}",
        row.delay_up,
        row.size,
        rate(row.offered_per_second),
        row.problems.join(", ")
    )
}

fn verdict(rows: &[Row]) -> Result<(), Failure> {
    let failed: Vec<&Row> = rows.iter().filter(|row| !row.holds()).collect();
    let Some(first) = failed.first() else { return Ok(()) };
    Err(Failure::failed(format!(
        "this machine did not hold {} of {} runs; first {}; use a quieter machine, --busy, or a lower load",
        failed.len(),
        rows.len(),
        complaint(first)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn plan_of(words: &str) -> Sweep {
        let line = Line::parse_from(std::iter::once("verify").chain(words.split_whitespace()));
        plan(&line.args).unwrap()
    }

    #[test]
    fn the_preset_alone_is_the_reports_sweep() {
        let sweep = plan_of("--preset lds");
        assert_eq!((sweep.runs(), sweep.change), (64, Some(LDS_STEP)));
        let one = plan_of("--preset lds --delay 10ms --sizes 40,9180 --loads 10%,max");
        assert_eq!((one.runs(), one.change, one.delays.len()), (4, None, 0));
    }

    #[test]
    fn sizes_stay_below_the_mtu_and_changes_are_asked_for() {
        let sweep = plan_of("--delay 10ms --change-delay --runs 2");
        assert_eq!(sweep.sizes, [40, 576, 1500]);
        assert_eq!((sweep.runs(), sweep.change), (18, Some(Span::from_micros(500))));
        assert_eq!(plan_of("--change-delay 2ms").change, Some(Span::from_millis(2)));
    }
}
