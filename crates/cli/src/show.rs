//! `trunkline show`: look at a running path.

use crate::failure::Failure;
use crate::options::lasting;
use crate::progress::obeys;
use crate::{output, send};
use comfy_table::{Table, presets};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use trunkline_control::{Client, ControlError, find};
use trunkline_core::Span;
use trunkline_dataplane::{LaneSnapshot, Snapshot};
use trunkline_mover::Sending;

/// Look at what is emulated, or sent: settings, counts by cause, queue depth and lateness; of a transfer its rate cap and how far
/// it is.
///
/// Works beside shell, bridge, verify, run --engine emu, ladder and send. A scenario's links are shown by their directions,
/// with the name that set --link takes.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  trunkline show\n  trunkline show --watch --interval 500ms\n  trunkline show --json | jq .state.lanes[0].delivered"
)]
pub struct Args {
    /// The run by its process number, if several run; inside a shell, that shell's if nothing else is said
    #[arg(long, value_name = "PID")]
    pid: Option<String>,
    /// Repeat until the run ends or you interrupt
    #[arg(long)]
    watch: bool,
    /// How often to show with --watch
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = lasting)]
    interval: Span,
    /// Print as JSON, with --watch one line each time
    #[arg(long)]
    json: bool,
}

/// The variable by which a run's programs know it.
const OWN_RUN: &str = "TRUNKLINE_PID";

/// The socket of the run that is asked for: the one of `pid`, else the one that this process is a program of, else the
/// only one.
pub fn meant(pid: Option<&str>) -> Result<PathBuf, ControlError> {
    let own = std::env::var(OWN_RUN).ok().filter(|own| !own.is_empty());
    find(pid.or(own.as_deref()))
}

/// Shows what is emulated once, or until it ends.
pub fn run(args: &Args) -> Result<(), Failure> {
    let client = Client::connect(&meant(args.pid.as_deref())?)?;
    match show(&client, args) {
        Err(Shown::Nothing(_)) if args.watch => {}
        shown => shown?,
    }
    while args.watch && output::is_heard() {
        std::thread::sleep(args.interval.to_duration().max(Duration::from_millis(50)));
        match show(&client, args) {
            Err(Shown::Nothing(_)) => {}
            Err(Shown::Gone) => {
                output::tell("the run has ended");
                return Ok(());
            }
            other => other?,
        }
    }
    Ok(())
}

/// The reason why nothing was shown.
enum Shown {
    Gone,
    /// Nothing is emulated at the moment.
    Nothing(Failure),
    Failed(Failure),
}

impl From<Shown> for Failure {
    fn from(shown: Shown) -> Failure {
        match shown {
            Shown::Gone => Failure::failed("the run has ended"),
            Shown::Nothing(failure) | Shown::Failed(failure) => failure,
        }
    }
}

fn get(client: &Client, path: &str) -> Result<Value, Shown> {
    client.get(path).map_err(why)
}

fn why(error: ControlError) -> Shown {
    match error {
        // It may end between two questions, or while it is asked one.
        ControlError::NotRunning(_) | ControlError::Gone(_) | ControlError::Ended(_) => Shown::Gone,
        error @ ControlError::Refused { status: 503, .. } => Shown::Nothing(Failure::failed(error)),
        error => Shown::Failed(Failure::failed(error)),
    }
}

fn show(client: &Client, args: &Args) -> Result<(), Shown> {
    let (path, state) = (get(client, "/v1/path")?, get(client, "/v1/state")?);
    let failed = |error: &dyn std::fmt::Display| Shown::Failed(Failure::failed(error));
    if args.json {
        let both = json!({ "path": path, "state": state });
        let text = if args.watch {
            serde_json::to_string(&both)
        } else {
            serde_json::to_string_pretty(&both)
        };
        return output::line(&text.map_err(|error| failed(&error))?).map_err(Shown::Failed);
    }
    let state = described(&path, state).map_err(|error| failed(&error))?;
    let text = format!("{}{state}", settings(&path));
    let print = if args.watch && obeys(&std::io::stdout()) { output::screen } else { output::line };
    print(&text).map_err(Shown::Failed)
}

/// What a run is at (GET /v1/state): how far a transfer is, or what an emulated path has carried.
fn described(path: &Value, state: Value) -> serde_json::Result<String> {
    if path["transfer"].is_null() {
        return serde_json::from_value(state).map(|snapshot| lanes(&snapshot));
    }
    let phase: Option<Sending> = serde_json::from_value(state["progress"].clone())?;
    Ok(phase.map_or_else(String::new, |it| send::words(&it, &plain(&path["transfer"]["to"]))))
}

/// The settings of a description (GET /v1/path): of a transfer its rate cap, otherwise a line for each direction of each path.
pub fn settings(description: &Value) -> String {
    let mut text = format!("run {}: {}\n", description["pid"], plain(&description["command"]));
    if let Some(transfer) = description["transfer"].as_object() {
        let rate = transfer.get("rate").filter(|it| !it.is_null());
        text.push_str(&format!("transfer: rate={}\n", rate.map_or("unlimited".into(), plain)));
    }
    for path in description["paths"].as_array().into_iter().flatten() {
        let name = plain(&path["name"]);
        for (index, direction) in ["up", "down"].into_iter().enumerate() {
            let title = title(&name, direction, &plain(&path["lanes"][index]));
            text.push_str(&format!("{title:>6}: {}\n", link_words(&path[direction])));
        }
    }
    for change in description["pending"].as_array().into_iter().flatten() {
        let path = plain(&change["path"]);
        let of = if path.is_empty() { String::new() } else { format!(" of {path}") };
        let after = plain(&change["after"]);
        let after = after.parse().map_or(after, |span: Span| span.rounded().to_string());
        text.push_str(&format!("in {after}{of}: {}\n", plain(&change["settings"])));
    }
    text
}

/// A direction by its name in the table, and if that does not tell it by what `set` calls it, too.
fn title(path: &str, direction: &str, lane: &str) -> String {
    match path.is_empty() || lane == format!("{path}/{direction}") {
        true => lane.to_string(),
        false => format!("{lane} ({path}, {direction})"),
    }
}

/// Every setting of a link that says something, as name=value.
fn link_words(link: &Value) -> String {
    let mut words = Vec::new();
    for (name, value) in link.as_object().into_iter().flatten() {
        let inner = value.as_object();
        match (name.as_str(), inner) {
            ("impairments", Some(impairments)) => {
                let active = impairments.iter().filter(|(_, value)| says_something(value));
                words.extend(active.map(|(name, value)| format!("{name}={}", plain(value))));
            }
            (_, Some(parts)) => {
                let parts: Vec<String> =
                    parts.iter().map(|(name, value)| format!("{name} {}", plain(value))).collect();
                words.push(format!("{name}=({})", parts.join(", ")));
            }
            _ if says_something(value) => words.push(format!("{name}={}", plain(value))),
            _ => {}
        }
    }
    words.join(" ")
}

fn says_something(value: &Value) -> bool {
    !value.is_null() && !["0%", "0B", "none"].contains(&plain(value).as_str())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

fn lanes(snapshot: &Snapshot) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "direction",
        "in",
        "out",
        "copies",
        "dropped",
        "in flight",
        "queue",
        "late p50 / p99 / max",
        "spacing off p50 / p99",
    ]);
    for lane in &snapshot.lanes {
        table.add_row(row(lane));
    }
    let stalls = match snapshot.stalls {
        0 => String::new(),
        stalls => format!(
            "; machine stalled {stalls} times, longest {}",
            snapshot.longest_stall.rounded()
        ),
    };
    let ends = match snapshot.ends {
        ends if ends.count == 0 => String::new(),
        ends => format!(
            "\nwaiting programs ran {} (p50), {} (p99), {} (max) after their frames were handed over",
            ends.p50.rounded(),
            ends.p99.rounded(),
            ends.max.rounded()
        ),
    };
    let achieved: String = snapshot
        .lanes
        .iter()
        .flat_map(|lane| {
            lane.impairments.iter().map(move |line| format!("\n{}: {line}", lane.name))
        })
        .collect();
    let uptime = Span::from_millis(snapshot.uptime.as_nanos() / 1_000_000);
    format!("running for {uptime}{stalls}{ends}{achieved}\n{table}")
}

fn row(lane: &LaneSnapshot) -> [String; 9] {
    let causes: Vec<String> =
        lane.dropped.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
    let late = lane.lateness;
    [
        lane.name.clone(),
        lane.entered.to_string(),
        lane.delivered.to_string(),
        lane.duplicated.to_string(),
        if causes.is_empty() { "0".into() } else { causes.join("\n") },
        lane.in_flight.to_string(),
        format!("{} ({}B)", lane.queued_packets, lane.queued_bytes),
        format!("{} / {} / {}", late.p50.rounded(), late.p99.rounded(), late.max.rounded()),
        format!("{} / {}", lane.spacing_error.p50.rounded(), lane.spacing_error.p99.rounded()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_shown_with_its_rate_and_how_far_it_is() {
        let path = |rate: Value| json!({ "pid": 7, "command": "trunkline send", "paths": [], "transfer": { "rate": rate, "to": "lab7:1818" } });
        let settings = |rate| settings(&path(rate));
        assert_eq!(settings(json!("5Mbit/s")), "run 7: trunkline send\ntransfer: rate=5Mbit/s\n");
        assert!(settings(Value::Null).ends_with("transfer: rate=unlimited\n"));
        let told =
            |progress| described(&path(Value::Null), json!({ "progress": progress })).unwrap();
        assert_eq!(
            told(json!({ "phase": "connect", "seconds": 0.0 })),
            "connect: calling lab7:1818"
        );
        assert_eq!(told(Value::Null), "");
    }

    /// Who watches a run until it ends may ask just then.
    #[test]
    fn a_run_that_ends_while_it_is_asked_has_ended() {
        assert!(matches!(why(ControlError::Ended("7.sock".into())), Shown::Gone));
    }
}
