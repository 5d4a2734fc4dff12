//! `docs/control-api.md` is run as written: its commands against a server, its answers compared.
//!
//! With TRUNKLINE_UPDATE_DOCS set, the answers in the page are replaced by those that came.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use trunkline_control::{Controller, Pending, Server, SetRequest, description};
use trunkline_core::{Cause, Span};
use trunkline_dataplane::{LaneSnapshot, Snapshot};
use trunkline_measure::Percentiles;
use trunkline_scenario::{PathSpec, Settings};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/control-api.md");

/// The path of the page: its settings are real ones, its figures are made up.
struct Example(Mutex<PathSpec>);

impl Example {
    fn new() -> Example {
        let mut settings = Settings::default();
        [("delay", "300ms"), ("rate", "10mbit")].iter().for_each(|(n, v)| settings.add(n, v));
        Example(Mutex::new(settings.resolve().unwrap()))
    }
}

impl Controller for Example {
    fn describe(&self) -> Option<Value> {
        Some(self.description(&[]))
    }
    fn state(&self) -> Option<Value> {
        Some(json!(snapshot()))
    }
    fn set(&self, request: SetRequest) -> Result<Value, String> {
        let mut settings = Settings::default();
        request.settings.iter().for_each(|(name, value)| settings.add(name, value));
        self.0.lock().unwrap().change(&settings).map_err(|error| error.to_string())?;
        let words = request.settings.iter().map(|(name, value)| format!("{name}={value}"));
        let settings = words.collect::<Vec<_>>().join(" ");
        let pending = request.after.map(|after| Pending { path: String::new(), settings, after });
        Ok(self.description(pending.as_slice()))
    }
}

impl Example {
    fn description(&self, pending: &[Pending]) -> Value {
        let backends = ["packet".to_string(), "packet".to_string()];
        let paths = [(String::new(), self.0.lock().unwrap().clone())];
        let lanes = ["up".to_string(), "down".to_string()];
        let command = "trunkline shell --delay 300ms --rate 10mbit";
        description(4711, command, (&backends, &lanes), &paths, pending)
    }
}

fn snapshot() -> Snapshot {
    let up = LaneSnapshot {
        name: "up".into(),
        entered: 1000,
        entered_bytes: 1_500_000,
        delivered: 985,
        delivered_bytes: 1_477_500,
        dropped: [("loss".to_string(), 10)].into(),
        in_flight: 5,
        queued_packets: 2,
        queued_bytes: 3000,
        lateness: percentiles(985),
        spacing_error: percentiles(984),
        mean_delay: vec![
            (Cause::Queue, Span::from_micros(4800)),
            (Cause::Transmit, Span::from_micros(1200)),
            (Cause::Propagate, Span::from_millis(300)),
            (Cause::Emulator, Span::from_nanos(2100)),
        ],
        ..LaneSnapshot::default()
    };
    let down = LaneSnapshot { name: "down".into(), ..LaneSnapshot::default() };
    Snapshot { uptime: Span::from_millis(12_500), lanes: vec![up, down], ..Snapshot::default() }
}

fn percentiles(count: u64) -> Percentiles {
    let [mean, min, p50, p99, p999, max] =
        [2100, 300, 1500, 2500, 4000, 11_000].map(Span::from_nanos);
    Percentiles { count, mean, min, p50, p99, p999, max }
}

/// Returns what `command` prints, with SOCKET set.
fn run(command: &str, socket: &Path) -> String {
    let output = Command::new("sh").args(["-c", command]).env("SOCKET", socket).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The page with each command's answer as it came. A block is `$ command` and its answer; a command
/// goes on behind a backslash.
fn rerun(page: &str, socket: &Path) -> (String, usize) {
    let (mut out, mut commands) = (String::new(), 0);
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out += &format!("{line}\n");
        let Some(command) = line.strip_prefix("$ ").filter(|text| text.starts_with("curl")) else {
            continue;
        };
        let mut command = command.to_string();
        while command.ends_with('\\') {
            let more = lines.next().unwrap();
            out += &format!("{more}\n");
            command = format!("{}{more}", command.trim_end_matches('\\'));
        }
        out += &run(&command, socket);
        commands += 1;
        let end = lines.by_ref().find(|line| *line == "```").expect("the block ends");
        out += &format!("{end}\n");
    }
    (out, commands)
}

#[test]
fn the_page_is_as_the_server_answers() {
    if !trunkline_skip::installed(&["curl"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(&directory.path().join("4711.sock"), Arc::new(Example::new()));
    let server = server.unwrap();
    let page = fs::read_to_string(PAGE).unwrap();
    let (rerun, commands) = rerun(&page, server.path());
    assert!(commands >= 6, "{commands} commands");
    if std::env::var_os("TRUNKLINE_UPDATE_DOCS").is_some() {
        fs::write(PAGE, &rerun).unwrap();
    } else {
        assert!(rerun == page, "the page is out of date; it would now be:\n{rerun}");
    }
}

/// Every field of every answer is described in a table row that starts with its name.
#[test]
fn the_page_names_every_field() {
    let page = fs::read_to_string(PAGE).unwrap();
    let example = Example::new();
    let mut names = Vec::new();
    fields(&example.describe().unwrap(), &mut names);
    fields(&example.state().unwrap(), &mut names);
    fields(
        &json!(SetRequest {
            link: Some(String::new()),
            after: Some(Span::ZERO),
            ..SetRequest::default()
        }),
        &mut names,
    );
    let missing: Vec<&String> =
        names.iter().filter(|name| !page.contains(&format!("| `{name}`"))).collect();
    assert!(names.len() > 40, "{names:?}");
    assert!(missing.is_empty(), "not described: {missing:?}");
    for cause in trunkline_core::DropCause::ALL {
        assert!(page.contains(&format!("`{cause}`")), "not described: {cause}");
    }
}

fn fields(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                names.push(name.clone());
                // The names in there are causes, not fields.
                if name != "dropped" {
                    fields(value, names);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, names)),
        _ => {}
    }
}
