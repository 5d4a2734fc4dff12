//! The processor of the emulator, and whom it keeps from running: `--busy`, one processor, a busy one.

use crate::support::{Host, Outcome, Running, installed};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use trunkline_core::Span;

/// The number of times that the dataplane's thread of run `pid` has gone to sleep.
fn sleeps(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let is_dataplane = |path: &std::path::PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "dataplane")
    };
    let task = tasks.map(|task| task.path()).find(is_dataplane).expect("a dataplane");
    let status = fs::read_to_string(task.join("status")).unwrap();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.unwrap().trim().parse().unwrap()
}

/// The number of times that the dataplane of a run with these options goes to sleep within a second.
fn sleeps_in_a_second(host: &Host, options: &[&str]) -> (u64, Outcome) {
    let shell = ["shell", "--no-outside", "--json", "--best-effort", "--delay", "5ms"];
    let program = ["--", "sh", "-c", "echo ready >&2; sleep 2"];
    let mut running: Running = host.start(&[&shell[..], options, &program].concat());
    running.await_line("ready");
    sleep(Duration::from_millis(500));
    let before = sleeps(running.pid());
    sleep(Duration::from_secs(1));
    let slept = sleeps(running.pid()) - before;
    (slept, running.finish())
}

#[test]
fn a_busy_emulator_never_sleeps_and_another_one_does() {
    let host = Host::alone();
    if host.run_well(&["shell", "--best-effort", "--", "true"]).is_none() {
        return;
    }
    let (slept, outcome) = sleeps_in_a_second(&host, &["--busy"]);
    assert_eq!(slept, 0, "{outcome:#?}");
    let (slept, outcome) = sleeps_in_a_second(&host, &[]);
    assert!(slept >= 2, "{slept}: {outcome:#?}");
}

/// Sends datagrams to the peer and back, one after the other; prints the median round trip in microseconds.
const ECHO: &str = r"
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == 'serve':
    s.bind(('', 9000))
    while True:
        s.sendto(*s.recvfrom(2048))
s.connect((sys.argv[1], 9000))
s.settimeout(10)
trips = []
for _ in range(1000):
    sent = time.monotonic_ns()
    s.send(bytes(22))
    s.recv(2048)
    trips.append(time.monotonic_ns() - sent)
print('median', sorted(trips)[500] // 1000)
";

fn micros(value: &serde_json::Value) -> f64 {
    value.as_str().and_then(|text| text.parse::<Span>().ok()).expect("a time").as_micros_f64()
}

/// The statement accounts for what the programs saw beyond the path's own time, but for the time that the
/// programs and the kernel take themselves.
#[test]
fn on_one_processor_the_statement_knows_what_the_programs_saw() {
    /// An interpreter's part of a round trip, twice there and back, with room for a loaded machine.
    const OWN: f64 = 250.0;
    let host = Host::alone();
    if !installed(&["taskset", "python3"])
        || host.run_well(&["shell", "--best-effort", "--", "true"]).is_none()
    {
        return;
    }
    let script = format!("{}/echo.py", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&script, ECHO).unwrap();
    let mut command = Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_trunkline"), "shell", "--no-outside", "--json"]);
    command.args(["--best-effort", "--delay", "100us", "--peer"]);
    command.arg(format!("python3 {script} serve"));
    command.args(["--", "python3", &script, "{peer}"]);
    let outcome = host.start_command(command).finish();
    assert!(outcome.status.success(), "{outcome:#?}");
    let median = outcome.stdout.lines().find_map(|line| line.strip_prefix("median "));
    let median: f64 = median.unwrap().parse().unwrap();
    let statement = outcome.statement();
    let state = &statement["state"];
    assert!(state["ends"]["count"].as_u64().unwrap() > 5, "{outcome:#?}");
    let late = |lane: usize| micros(&state["lanes"][lane]["lateness"]["p50"]);
    let told = late(0) + late(1) + 2.0 * micros(&state["ends"]["p50"]);
    assert!(median - 200.0 <= told + OWN, "{median} us, told {told}: {outcome:#?}");
}

/// An emulator that never sleeps keeps the programs off the one processor: that is told, and not VALID.
#[test]
fn a_busy_emulator_on_the_only_processor_is_told() {
    let host = Host::alone();
    if !installed(&["taskset", "ping"])
        || host.run_well(&["shell", "--best-effort", "--", "true"]).is_none()
    {
        return;
    }
    let mut command = Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_trunkline"), "shell", "--no-outside", "--json"]);
    command
        .args(["--busy", "--delay", "1ms", "--", "ping", "-n", "-i", "0.02", "-c", "50", "{peer}"]);
    let outcome = host.start_command(command).finish();
    let mut times = outcome.ping_times();
    times.sort_by(f64::total_cmp);
    assert!(times.len() > 20, "{outcome:#?}");
    // A median of twice the bound beyond the path's own 2 ms is beyond anything that VALID allows for.
    let excess = times[times.len() / 2] - 2.0;
    if excess > 0.4 {
        assert_eq!(outcome.statement()["valid"], false, "{excess} ms: {outcome:#?}");
    }
}
