//! Looking at a running path, changing it, and capturing what passes.

use crate::support::{Host, Outcome, Running, installed};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A run whose program waits for a file to appear and then pings three times.
fn start(host: &Host, gate: &Path) -> Option<Running> {
    let _ = std::fs::remove_file(gate);
    let script = format!(
        "echo ready >&2; until test -e {}; do sleep 0.05; done; ping -n -c 3 -i 0.2 {{peer}}",
        gate.display()
    );
    let path = ["shell", "--best-effort", "--no-outside", "--json", "--delay", "5ms"];
    let mut running = host.start(&[&path, &["--", "sh", "-c", &script][..]].concat());
    running.await_line("ready");
    Some(running)
}

fn gate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Runs `show` or `set` against a run.
fn ask(host: &Host, arguments: &[&str], pid: u32) -> Outcome {
    let outcome = host.start(&[arguments, &["--pid", &pid.to_string()]].concat()).finish();
    assert!(outcome.status.success(), "{arguments:?}: {outcome:#?}");
    outcome
}

#[test]
fn a_path_is_changed_while_it_runs_and_shows_it() {
    let host = Host::beside();
    if !installed(&["ping"]) || host.run_well(&["shell", "--best-effort", "--", "true"]).is_none() {
        return;
    }
    let gate = gate("gate-change");
    let Some(running) = start(&host, &gate) else { return };
    let pid = running.pid();
    let told = ask(&host, &["set", "delay=40ms", "up-rate=8mbit"], pid);
    assert!(told.stdout.contains("40ms") && told.stdout.contains("8Mbit/s"), "{told:#?}");
    let shown = ask(&host, &["show", "--json"], pid);
    assert!(shown.stdout.contains("40ms"), "{shown:#?}");
    let shown = ask(&host, &["show"], pid);
    assert!(shown.stdout.contains("40ms") && shown.stdout.contains("up"), "{shown:#?}");
    for (wrong, word) in [("delay=-3ms", "negative"), ("speed=3", "speed"), ("queue=drr", "queue")]
    {
        let outcome = host.start(&["set", wrong, "--pid", &pid.to_string()]).finish();
        assert!(matches!(outcome.status.code(), Some(1 | 2)), "{outcome:#?}");
        assert!(outcome.complaint().contains(word), "{outcome:#?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:#?}");
    }
    std::fs::write(&gate, "").unwrap();
    let outcome = running.finish();
    assert!(outcome.status.success(), "{outcome:#?}");
    let times = outcome.ping_times();
    assert!(times.len() == 3 && times.iter().all(|&time| time >= 80.0), "{outcome:#?}");
    host.assert_nothing_left(pid);
}

#[test]
fn inside_a_shell_its_own_path_is_meant() {
    let host = Host::beside();
    let command = env!("CARGO_BIN_EXE_trunkline");
    let Some(mut other) = start(&host, &gate("inside")) else { return };
    let script = format!("{command} set delay=7ms && {command} show");
    let arguments = ["shell", "--delay", "3ms", "--best-effort", "--", "sh", "-c", &script];
    let Some(outcome) = host.run_well(&arguments) else { return };
    assert!(outcome.stdout.contains("delay=7ms"), "{outcome:#?}");
    let shown = ask(&host, &["show"], other.pid());
    assert!(!shown.stdout.contains("delay=7ms"), "another run was changed: {shown:#?}");
    assert!(other.goes_on());
    other.signal(rustix::process::Signal::TERM);
    host.assert_nothing_left(other.finish().pid);
}

#[test]
fn a_change_asked_for_later_is_made_then() {
    let host = Host::beside();
    if !installed(&["ping"]) || host.run_well(&["shell", "--best-effort", "--", "true"]).is_none() {
        return;
    }
    let gate = gate("gate-later");
    let _ = std::fs::remove_file(&gate);
    let script = format!(
        "echo ready >&2; until test -e {}; do sleep 0.05; done; ping -n -c 1 {{peer}}; sleep 4; ping -n -c 1 {{peer}}",
        gate.display()
    );
    let path = ["shell", "--best-effort", "--no-outside", "--json", "--delay", "5ms"];
    let mut running = host.start(&[&path, &["--", "sh", "-c", &script][..]].concat());
    running.await_line("ready");
    // Both at once, later; the description says from now on what will be.
    let told =
        ask(&host, &["set", "up-delay=300ms", "down-delay=500ms", "--after", "4s"], running.pid());
    assert!(told.stdout.contains("300ms") && told.stdout.contains("500ms"), "{told:#?}");
    std::fs::write(&gate, "").unwrap();
    let outcome = running.finish();
    assert!(outcome.status.success(), "{outcome:#?}");
    let times = outcome.ping_times();
    assert!(times.len() == 2 && times[0] < 800.0 && times[1] >= 800.0, "{outcome:#?}");
}

/// The delay is cut and restored, with rates and jitter in between, while datagrams fill half of the line.
#[test]
fn two_hundred_changes_under_load_lose_nothing() {
    let host = Host::alone();
    if !installed(&["iperf3"]) || host.run_well(&["shell", "--best-effort", "--", "true"]).is_none()
    {
        return;
    }
    let path = [
        "shell",
        "--best-effort",
        "--no-outside",
        "--json",
        "--rate",
        "16mbit",
        "--delay",
        "150ms",
        // A program that the machine has held up catches up in a burst, which is none of this test's business.
        "--limit",
        "9MB",
    ];
    let load = [
        "--peer",
        "iperf3 -s -1 >&2",
        "--",
        "sh",
        "-c",
        "echo ready >&2; iperf3 -c {peer} -u -b 8M -l 1000 -t 8 >&2",
    ];
    let mut running = host.start(&[&path, &load[..]].concat());
    running.await_line("ready");
    std::thread::sleep(Duration::from_secs(1));
    let changes = [
        "delay=5ms",
        "delay=150ms",
        "rate=32mbit",
        "jitter=4ms",
        "delay=20ms",
        "rate=16mbit",
        "jitter=none",
        "delay=100ms",
    ];
    let pid = running.pid().to_string();
    let mut made = 0;
    for change in changes.into_iter().cycle().take(200) {
        made += u32::from(host.start(&["set", change, "--pid", &pid]).finish().status.success());
    }
    let outcome = running.finish();
    assert!(outcome.status.success() && made >= 100, "{made} changes: {outcome:#?}");
    for direction in ["up", "down"] {
        // That the counts add up is asserted of every lane.
        let lane = outcome.lane(direction);
        assert_eq!(
            lane.count("entered"),
            lane.count("delivered") + lane.count("in_flight"),
            "{lane:?}"
        );
    }
    assert!(outcome.lane("up").count("delivered") >= 7000, "{outcome:#?}");
}

#[test]
fn a_path_can_be_watched_until_it_ends() {
    let host = Host::beside();
    if !installed(&["ping"]) || host.run_well(&["shell", "--best-effort", "--", "true"]).is_none() {
        return;
    }
    let gate = gate("gate-watch");
    let Some(running) = start(&host, &gate) else { return };
    let pid = running.pid().to_string();
    let mut watch = host.start(&["show", "--watch", "--interval", "50ms", "--json", "--pid", &pid]);
    watch.await_printed(2);
    std::fs::write(&gate, "").unwrap();
    assert!(running.finish().status.success());
    let outcome = watch.finish();
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(outcome.stderr.contains("the run has ended"), "{outcome:#?}");
    for line in outcome.stdout.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn who_asks_for_no_run_is_told_so() {
    let host = Host::beside();
    for verb in [&["show"][..], &["set", "delay=3ms"]] {
        let outcome = host.run(&[verb, &["--pid", "4194305"]].concat());
        assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
        assert!(outcome.complaint().contains("4194305"), "{outcome:#?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:#?}");
    }
    let outcome = host.run(&["set", "delay"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
    assert!(outcome.complaint().contains("name=value"), "{outcome:#?}");
}

#[test]
fn a_capture_holds_what_passed() {
    let host = Host::beside();
    if !installed(&["ping", "tcpdump"]) {
        return;
    }
    let file = gate("capture.pcapng");
    let name = file.to_str().unwrap();
    let path = ["shell", "--best-effort", "--no-outside", "--json", "--pcap", name];
    let ping = ["--", "ping", "-n", "-c", "3", "-i", "0.2", "{peer}"];
    let Some(outcome) = host.run_well(&[&path, &ping[..]].concat()) else { return };
    assert!(outcome.stderr.contains("captured"), "{outcome:#?}");
    let read = std::process::Command::new("tcpdump").args(["-n", "-r", name, "icmp"]).output();
    let text = String::from_utf8_lossy(&read.unwrap().stdout).into_owned();
    for kind in ["echo request", "echo reply"] {
        assert!(text.matches(kind).count() >= 3, "{text}");
    }
}

#[test]
fn a_capture_that_cannot_be_written_ends_the_run() {
    let host = Host::beside();
    if host.run_well(&["shell", "--best-effort", "--", "true"]).is_none() {
        return;
    }
    for (file, code) in [("/nonexistent/capture.pcapng", 2), ("/dev/full", 1)] {
        let started = Instant::now();
        let outcome = host.run(&[
            "shell",
            "--best-effort",
            "--no-outside",
            "--pcap",
            file,
            "--",
            "sh",
            "-c",
            "ping -n -c 20 -i 0.2 {peer} >/dev/null",
        ]);
        assert_eq!(outcome.status.code(), Some(code), "{outcome:#?}");
        assert!(outcome.complaint().contains(file), "{outcome:#?}");
        assert!(started.elapsed() < crate::support::LIMIT);
    }
}
