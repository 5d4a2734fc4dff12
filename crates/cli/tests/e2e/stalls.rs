//! Runs whose emulator is stopped for a while: the statement must tell what the programs saw.

use crate::support::{Host, Outcome, installed};
use rustix::process::Signal;
use std::thread::sleep;
use std::time::{Duration, Instant};
use trunkline_core::Span;

/// A path that is pinged every 10 ms, whose emulator stands still for `stop` in between. Gives the outcome
/// and how long it stood still at least.
fn stopped(host: &Host, options: &[&str], stop: Duration) -> Option<(Outcome, Span)> {
    let shell = ["shell", "--no-outside", "--json", "--delay", "1ms", "--rate", "20mbit"];
    if !installed(&["ping"]) || host.run_well(&["shell", "--best-effort", "--", "true"]).is_none() {
        return None;
    }
    let script = "echo ready >&2; ping -n -i 0.01 -c 300 {peer}";
    let mut running = host.start(&[&shell, options, &["--", "sh", "-c", script]].concat());
    running.await_line("ready");
    sleep(Duration::from_millis(500));
    running.signal(Signal::STOP);
    await_stop(running.pid());
    let began = Instant::now();
    sleep(stop);
    let stood = began.elapsed();
    running.signal(Signal::CONT);
    Some((running.finish(), Span::from_nanos(stood.as_nanos() as u64)))
}

/// Waits until all threads of a process have stopped: on a busy processor one may take its time to see the signal.
fn await_stop(pid: u32) {
    let stands = |thread: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(thread.unwrap().path().join("stat")).unwrap();
        text.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
    };
    let until = Instant::now() + Duration::from_secs(10);
    while !std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().all(stands) {
        assert!(Instant::now() < until, "the emulator does not stop");
        sleep(Duration::from_millis(1));
    }
}

fn span(value: &serde_json::Value) -> Span {
    value.as_str().unwrap_or_else(|| panic!("no time: {value}")).parse().unwrap()
}

/// The statement knows of the stall, and of frames as late as the programs saw them.
fn assert_told(outcome: &Outcome, stood: Span) {
    let statement = outcome.statement();
    assert_eq!(statement["valid"], false, "{outcome:#?}");
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    let state = &statement["state"];
    // A sleeping emulator is missed from the first frame on that waits for it, up to a ping later.
    let longest = span(&state["longest_stall"]);
    assert!(longest.as_millis_f64() > stood.as_millis_f64() * 0.9, "{stood}: {outcome:#?}");
    let late = state["lanes"].as_array().unwrap().iter().map(|lane| span(&lane["lateness"]["max"]));
    let late = late.max().unwrap();
    let seen = outcome.ping_times().into_iter().fold(0.0, f64::max);
    assert!(seen > stood.as_millis_f64() * 0.9, "the stop did not matter: {outcome:#?}");
    assert!(late.as_millis_f64() > seen * 0.9, "late {late}, but {seen} ms seen: {outcome:#?}");
}

#[test]
fn a_stall_of_a_sleeping_emulator_is_told() {
    let host = Host::among_few();
    for millis in [300, 1500] {
        let Some((outcome, stood)) = stopped(&host, &[], Duration::from_millis(millis)) else {
            return;
        };
        assert_told(&outcome, stood);
    }
}

#[test]
fn a_stall_of_an_emulator_that_never_sleeps_is_told() {
    let host = Host::alone();
    for millis in [300, 1500] {
        let Some((outcome, stood)) = stopped(&host, &["--busy"], Duration::from_millis(millis))
        else {
            return;
        };
        assert_told(&outcome, stood);
        // It was spinning or at work when it was stopped, which is an interruption too.
        let state = &outcome.statement()["state"];
        assert!(state["interruptions"].as_u64() > Some(0), "{outcome:#?}");
        assert!(span(&state["interrupted"]) >= stood, "{outcome:#?}");
    }
}

#[test]
fn a_program_that_ends_while_the_emulator_stands_still_was_not_served() {
    let host = Host::among_few();
    if !installed(&["ping"]) || host.run_well(&["shell", "--best-effort", "--", "true"]).is_none() {
        return;
    }
    let shell = ["shell", "--no-outside", "--json", "--delay", "1ms"];
    // ping gives up while the emulator stands still; what it sent lies unread.
    let script = "echo ready >&2; sleep 0.5; ping -n -q -i 0.01 -w 1 {peer}; true";
    let mut running = host.start(&[&shell, &["--", "sh", "-c", script][..]].concat());
    running.await_line("ready");
    sleep(Duration::from_millis(300));
    running.signal(Signal::STOP);
    sleep(Duration::from_millis(2500));
    running.signal(Signal::CONT);
    let outcome = running.finish();
    assert_eq!(outcome.statement()["valid"], false, "{outcome:#?}");
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    assert!(outcome.lane("up").count("entered") > 50, "{outcome:#?}");
}

#[test]
fn a_run_without_a_frame_is_not_called_valid() {
    let host = Host::beside();
    // The first frames of IPv6 are sent as soon as the devices are there: they are all under way at the end.
    let shell = ["shell", "--no-outside", "--delay", "60s", "--", "true"];
    let Some(outcome) = host.run_well(&shell) else { return };
    assert!(outcome.stderr.contains("nothing to judge"), "{outcome:#?}");
    assert!(!outcome.stderr.contains(" VALID"), "{outcome:#?}");
}
