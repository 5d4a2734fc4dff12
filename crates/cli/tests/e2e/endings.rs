//! Runs that are interrupted or killed.

use crate::support::{Host, Running, files_of, own_devices, programs_of};
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;

/// A run with a program at either end, both of which would go on for long.
fn start(host: &Host) -> Running {
    let mut running = host.start(&[
        "shell",
        "--delay",
        "5ms",
        "--best-effort",
        "--peer",
        "echo peer is there >&2; exec sleep 50",
        "--",
        "sh",
        "-c",
        "echo program is there >&2; sleep 51; true",
    ]);
    running.await_line("program is there");
    assert!(programs_of(running.pid()).len() >= 2, "both ends run");
    running
}

#[test]
fn an_interrupted_run_cleans_up() {
    let host = Host::beside();
    for (signal, name) in [
        (Signal::INT, "SIGINT"),
        (Signal::TERM, "SIGTERM"),
        (Signal::HUP, "SIGHUP"),
        (Signal::QUIT, "SIGQUIT"),
    ] {
        let running = start(&host);
        let pid = running.pid();
        running.signal(signal);
        let outcome = running.finish();
        assert_eq!(outcome.status.code(), Some(128 + signal.as_raw()), "{outcome:#?}");
        assert_eq!(outcome.complaint(), format!("trunkline: interrupted by {name}"));
        assert!(outcome.stderr.contains("in flight"), "the statement is printed: {outcome:#?}");
        host.assert_nothing_left(pid);
    }
}

#[test]
fn the_start_after_a_killed_run_removes_what_it_left() {
    let host = Host::alone();
    let Some(namespace) = host.separate() else { return };
    // Somebody lives in this network, as on a real machine.
    let mut sleep = std::process::Command::new("sleep");
    sleep.arg("60");
    let mut dweller = trunkline_netns::spawn(namespace, sleep, Default::default()).unwrap();

    let running = start(&host);
    let killed = running.pid();
    running.kill();
    assert_ne!(files_of(killed), [""; 0], "the killed run's record is there");

    let next = host.start(&["shell", "--best-effort", "--", "true"]);
    let pid = next.pid();
    let outcome = next.finish();
    assert!(outcome.status.success(), "{outcome:#?}");
    for run in [killed, pid] {
        host.assert_nothing_left(run);
    }
    assert_eq!(own_devices(namespace), [""; 0]);
    dweller.kill().unwrap();
    assert_eq!(dweller.wait().unwrap().signal(), Some(9), "it was not swept with the rest");
}
