//! Runs that are interrupted or killed.

use crate::support::{
    Host, Running, files_of, installed, is_forbidden, own_devices, programs_of, skipped,
};
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

/// Runs a command at a terminal of its own, types a character when it is ready, and prints what it said and its status.
const TERMINAL: &str = r"
import os, pty, select, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
said, typed = b'', False
while select.select([terminal], [], [], 60)[0]:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    said += piece
    if b'ready' in said and not typed:
        os.write(terminal, bytes([int(sys.argv[1])]))
        typed = True
os.close(terminal)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(said.decode(errors='replace'), 'status', status)
";

#[test]
fn a_key_that_ends_the_program_is_told_as_its_signal() {
    let host = Host::beside();
    if !installed(&["python3"]) {
        return;
    }
    let waits = "ulimit -c 0; echo ready; exec sleep 50";
    let heeds = "trap 'exit 0' INT; echo ready; sleep 50 & wait";
    // Ctrl-C is character 3, Ctrl-\ is 28.
    for (key, script, status) in [("3", waits, 130), ("28", waits, 131), ("3", heeds, 0)] {
        let mut command = std::process::Command::new("python3");
        command.args(["-c", TERMINAL, key, env!("CARGO_BIN_EXE_trunkline")]);
        command.args(["shell", "--quiet", "--best-effort", "--delay", "1ms", "--"]);
        command.args(["sh", "-c", script]);
        let outcome = host.start_command(command).finish();
        if is_forbidden(&outcome.stdout) {
            return skipped(&outcome.stdout);
        }
        assert!(outcome.stdout.trim_end().ends_with(&format!("status {status}")), "{outcome:#?}");
        host.assert_nothing_left(outcome.pid);
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
