//! `trunkline calibrate`: what this machine can hold.

use crate::emulation;
use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::signals;
use crate::verify::micros;
use comfy_table::{Table, presets};
use trunkline_measure::{Percentiles, TimeRange};
use trunkline_verify::calibrate::{Calibration, Ceiling, Holds, calibrate};
use trunkline_verify::costs::{Cost, Costs};

/// Measure what this machine can do: smallest delay, timers, highest loss-free rates.
///
/// Takes under a minute. Everything is measured with a forwarder that does nothing to its packets, so
/// that it bounds what any path can do here.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  trunkline calibrate --json > this-machine.json")]
pub struct Args {
    /// Run the forwarder on this processor, the probes on another [default: the last one]
    #[arg(long, value_name = "NUMBER")]
    cpu: Option<usize>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Calibrates and prints.
pub fn run(args: &Args) -> Result<(), Failure> {
    let stop = signals::flag()?;
    let (_host, state) = emulation::prepare()?;
    let mut progress = Progress::new(0);
    let calibration =
        calibrate(args.cpu, &stop.raised, &mut |what| progress.tell(what), &mut |laboratory| {
            laboratory.namespaces().try_for_each(|namespace| state.note_namespace(namespace))
        })
        .map_err(|error| stop.failure(error))?;
    drop(progress);
    if args.json {
        return output::line(&serde_json::to_string_pretty(&calibration)?);
    }
    output::line(&words(&calibration).join("\n"))
}

fn words(calibration: &Calibration) -> Vec<String> {
    let mut lines = vec![format!(
        "measurement itself (direct veth): {} us one way, 99 in 100 within {} us more",
        micros(calibration.baseline_lead),
        micros(calibration.baseline_p99)
    )];
    for floor in &calibration.floors {
        let how = if floor.busy { "--busy" } else { "sleeping" };
        lines.push(format!("delay floor, {how:<8}: one way {}", figures(&floor.added)));
    }
    lines.push(format!("timer, slept 1 ms       : late by {}", figures(&calibration.sleep_late)));
    lines.push(format!("timer, last 100 us spun : late by {}", figures(&calibration.spin_late)));
    lines.extend(costs(&calibration.costs));
    lines.push(ceilings(&calibration.ceilings).to_string());
    lines.push(holds(&calibration.presets).to_string());
    lines
}

fn figures(p: &Percentiles) -> String {
    format!(
        "p50 {} us, p99 {} us, p99.9 {} us, max {} us",
        micros(p.p50),
        micros(p.p99),
        micros(p.p999),
        micros(p.max)
    )
}

/// What an emulator does between packets, and from when on spinning pays.
fn costs(costs: &Costs) -> Vec<String> {
    let rows = [
        ("read of the clock", &costs.clock_read),
        ("look at a ring", &costs.ring_look),
        ("empty system call", &costs.system_call),
        ("wake-up of a thread", &costs.wake_up),
    ];
    let row = |(name, cost): (&str, &Cost)| {
        let p = &cost.times;
        let all = format!(
            "{name:<23} : mean {} ns, min {}, p99 {}, max {}",
            p.mean.as_nanos(),
            p.min.as_nanos(),
            p.p99.as_nanos(),
            p.max.as_nanos()
        );
        [all, spread(cost)]
    };
    let pays = costs.spinning_pays_from().map(|rate| {
        let processor = micros(costs.wake_up_processor);
        format!(
            "a wake-up takes {processor} us of processor time: from {rate:.0} frames a second on, sleeping before each takes a whole one"
        )
    });
    rows.into_iter().flat_map(row).chain(pays).collect()
}

/// How often an operation took how long, in parts of all.
fn spread(cost: &Cost) -> String {
    let share = |count: u64| 100.0 * count as f64 / cost.times.count.max(1) as f64;
    let range = |it: &TimeRange| format!("{} ns {:.2} %", it.up_to.as_nanos(), share(it.count));
    let ranges: Vec<String> = cost.ranges.iter().map(range).collect();
    format!("{:<23}   up to {}", "", ranges.join(", "))
}

fn ceilings(ceilings: &[Ceiling]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["backend", "frame bytes", "directions", "loss-free packets/s each", "bound"]);
    for ceiling in ceilings {
        let (rate, bound) = match &ceiling.highest {
            Ok(highest) => (format!("{:.0}", highest.per_second), highest.bound.to_string()),
            Err(error) => ("-".into(), error.clone()),
        };
        let (frame, ways) = (ceiling.frame.to_string(), ceiling.ways.to_string());
        table.add_row([ceiling.backend.clone(), frame, ways, rate, bound]);
    }
    table
}

fn holds(list: &[Holds]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "preset",
        "line rate, full / 50-byte packets/s",
        "held both ways at line rate",
    ]);
    for preset in list {
        let rate = |rate: Option<f64>| rate.map_or("unlimited".into(), |rate| format!("{rate:.0}"));
        let rates = format!("{} / {}", rate(preset.full_packets), rate(preset.small_packets));
        let held = match (preset.full, preset.small) {
            (true, true) => "yes, at any packet size",
            (true, false) => "with full packets",
            (false, _) => "no",
        };
        table.add_row([preset.preset.clone(), rates, held.into()]);
    }
    table
}
