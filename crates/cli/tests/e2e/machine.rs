//! A run's changes to the machine, all of which are undone when the run has ended, however it ended.

use crate::support::{Host, Outcome, Running, files_of, installed, is_forbidden, skipped};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;
use trunkline_netns::{End, Namespace, create_veth};

/// Settings by their path below `/proc/sys`.
type Settings = BTreeMap<String, String>;

/// All settings of the namespace's network, except counters.
fn settings(namespace: &Namespace) -> Settings {
    let mut found = Settings::new();
    namespace.run(|| gather(Path::new("/proc/sys/net"), &mut found)).unwrap();
    found.retain(|path, _| !path.ends_with("nf_conntrack_count"));
    assert!(found.len() > 300, "{} settings", found.len());
    found
}

fn gather(directory: &Path, into: &mut Settings) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            gather(&path, into);
        } else if let Ok(text) = fs::read_to_string(&path) {
            into.insert(path.display().to_string().replace("/proc/sys/", ""), text);
        }
    }
}

/// The settings that differ, except those of devices of the laboratory's.
fn changed(before: &Settings, after: &Settings) -> Vec<String> {
    let names = before.keys().chain(after.keys());
    let ours =
        |path: &str| path.split('/').any(|part| part.starts_with("tl") && part.contains('o'));
    let mut names: Vec<String> = names
        .filter(|name| before.get(*name) != after.get(*name) && !ours(name))
        .cloned()
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Two networks on either side of the machine. Each has a host that sends what is for the other through the machine.
///
/// ```text
///  one tltl ─── tlta  host  tltb ─── tltr two
///  192.0.2.2     .1          198.51.100.1   .2
/// ```
struct Neighbours {
    one: Namespace,
    two: Namespace,
}

impl Neighbours {
    fn build(host: &Namespace) -> Neighbours {
        let (one, two) = (Namespace::create().unwrap(), Namespace::create().unwrap());
        for (side, outer, inner, net) in
            [(&one, "tltl", "tlta", "192.0.2"), (&two, "tltr", "tltb", "198.51.100")]
        {
            create_veth(&End::new(side, outer), &End::new(host, inner), 1500).unwrap();
            side.add_address(outer, format!("{net}.2/24").parse().unwrap()).unwrap();
            host.add_address(inner, format!("{net}.1/24").parse().unwrap()).unwrap();
            side.add_default_route(format!("{net}.1").parse().unwrap()).unwrap();
        }
        Neighbours { one, two }
    }

    /// Whether the machine passes a packet on from one to the other.
    fn meet(&self) -> bool {
        let bind = |at: &str| UdpSocket::bind((at, 7000)).unwrap();
        let from = self.one.run(|| bind("192.0.2.2")).unwrap();
        let to = self.two.run(|| bind("198.51.100.2")).unwrap();
        to.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        from.send_to(b"x", "198.51.100.2:7000").unwrap();
        to.recv_from(&mut [0; 9]).is_ok()
    }
}

/// A run with the world outside, whose program pings both neighbours and then sleeps.
fn start(host: &Host) -> Running {
    let script = "ping -n -c 1 -W 5 192.0.2.2 && ping -n -c 1 -W 5 198.51.100.2 && echo reached >&2; \
                  echo ready >&2; sleep 40; true";
    let mut running = host.start(&["shell", "--best-effort", "--", "sh", "-c", script]);
    running.await_line("ready");
    assert!(running.has_told("reached"), "the neighbours are not reached: {:#?}", running.told());
    running
}

#[test]
fn the_machine_forwards_for_the_laboratory_alone_and_every_setting_comes_back() {
    let host = Host::alone();
    let Some(namespace) = host.separate().filter(|_| installed(&["ping"])) else { return };
    let neighbours = Neighbours::build(namespace);
    namespace.set_sysctl("net/ipv4/conf/tlta/accept_redirects", "0").unwrap();
    namespace.set_sysctl("net/ipv4/conf/tltb/accept_redirects", "1").unwrap();
    namespace.set_sysctl("net/ipv4/conf/default/forwarding", "1").unwrap();
    namespace.set_sysctl("net/ipv6/conf/tltb/forwarding", "1").unwrap();
    let before = settings(namespace);
    assert!(!neighbours.meet());

    let running = start(&host);
    let allowed = ["tlta", "tltb"].map(|device| format!("net/ipv4/conf/{device}/forwarding"));
    assert_eq!(changed(&before, &settings(namespace)), allowed);
    assert!(!neighbours.meet(), "the machine forwards for others");
    // A second run at the same time, which ends first, and then one that ends last.
    let second = start(&host);
    running.signal(Signal::TERM);
    running.finish();
    assert_eq!(changed(&before, &settings(namespace)), allowed, "the second run needs them");
    assert!(!neighbours.meet(), "the machine forwards for others");
    second.signal(Signal::TERM);
    host.assert_nothing_left(second.finish().pid);
    assert_eq!(changed(&before, &settings(namespace)), [""; 0]);
}

#[test]
fn a_killed_run_forwards_for_nobody_and_the_next_start_restores_the_settings() {
    let host = Host::alone();
    let Some(namespace) = host.separate().filter(|_| installed(&["ping"])) else { return };
    let neighbours = Neighbours::build(namespace);
    let before = settings(namespace);
    let running = start(&host);
    running.kill();
    assert!(!neighbours.meet(), "the machine forwards for others after the kill");
    let next = host.start(&["shell", "--best-effort", "--no-outside", "--", "true"]).finish();
    assert!(next.status.success(), "{next:#?}");
    host.assert_nothing_left(next.pid);
    assert_eq!(changed(&before, &settings(namespace)), [""; 0]);
}

/// A host that forwards on its own account goes on to, and nothing of it is dropped.
#[test]
fn a_machine_that_is_a_router_remains_one() {
    let host = Host::alone();
    let Some(namespace) = host.separate().filter(|_| installed(&["ping"])) else { return };
    let neighbours = Neighbours::build(namespace);
    namespace.set_sysctl("net/ipv4/ip_forward", "1").unwrap();
    let before = settings(namespace);
    let running = start(&host);
    assert!(neighbours.meet(), "a router is stopped");
    assert_eq!(changed(&before, &settings(namespace)), [""; 0]);
    running.signal(Signal::INT);
    host.assert_nothing_left(running.finish().pid);
    assert!(neighbours.meet());
    assert_eq!(changed(&before, &settings(namespace)), [""; 0]);
}

/// A number that looks random and is the same in each run of the test.
fn scrambled(index: u64, below: u64) -> u64 {
    trunkline_core::Seed(index).stream("moments").below(below)
}

#[test]
fn a_signal_at_any_early_moment_leaves_nothing() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    let _neighbours = Neighbours::build(namespace);
    let before = settings(namespace);
    for index in 0..40 {
        let running = host.start(&["shell", "--best-effort", "--", "true"]);
        thread::sleep(Duration::from_micros(scrambled(index, 120_000)));
        running.signal(Signal::TERM);
        let outcome = running.finish();
        assert_eq!(files_of(outcome.pid), [""; 0], "{index}: {outcome:#?}");
        host.assert_nothing_left(outcome.pid);
    }
    assert_eq!(changed(&before, &settings(namespace)), [""; 0]);
}

/// SIGABRT: how a process ends that is given no memory.
const ABORTED: i32 = 6;

/// A laboratory under each of these limits of ulimit, and the start of the next one, which sweeps.
///
/// From `enough` on a process must not be aborted: what it needs for itself, and not for the path, it has then.
fn start_under(limit: &str, enough: u32, values: impl IntoIterator<Item = u32>) -> Vec<Outcome> {
    let host = Host::alone();
    let mut outcomes = Vec::new();
    let Some(namespace) = host.separate() else { return outcomes };
    let _neighbours = Neighbours::build(namespace);
    let before = settings(namespace);
    for value in values {
        let mut command = Command::new("sh");
        let script = format!("ulimit -{limit} {value}; exec \"$@\"");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_trunkline")]);
        command.args(["shell", "--best-effort", "--", "true"]);
        let outcome = host.start_command(command).finish();
        let aborted = outcome.status.signal() == Some(ABORTED);
        assert!(!aborted || value < enough, "{value}: {outcome:#?}");
        assert_ne!(outcome.status.code(), Some(101), "{value}: {outcome:#?}");
        let next = host.start(&["shell", "--best-effort", "--no-outside", "--", "true"]).finish();
        assert!(next.status.success(), "{next:#?}");
        for pid in [outcome.pid, next.pid] {
            host.assert_nothing_left(pid);
        }
        assert_eq!(changed(&before, &settings(namespace)), [""; 0], "{value}: {outcome:#?}");
        outcomes.push(outcome);
    }
    outcomes
}

#[test]
fn too_little_memory_is_said_and_leaves_nothing() {
    let kibibytes = [20, 40, 80, 120, 160, 200, 300, 500, 800].map(|megabytes| megabytes * 1024);
    start_under("v", 120 * 1024, kibibytes);
}

#[test]
fn too_few_files_leave_nothing() {
    let outcomes = start_under("n", 0, (12..60).step_by(3));
    for outcome in outcomes.iter().filter(|it| !it.status.success()) {
        assert!(outcome.complaint().contains("ulimit -n 65536"), "{outcome:#?}");
    }
}

#[test]
fn a_limit_of_open_files_that_may_be_raised_is_no_limit() {
    let host = Host::beside();
    let script = format!("ulimit -Sn 24; exec {} \"$@\"", env!("CARGO_BIN_EXE_trunkline"));
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh", "shell", "--best-effort", "--", "sh", "-c", "ulimit -Sn"]);
    let outcome = host.start_command(command).finish();
    if is_forbidden(&outcome.stderr) {
        return skipped(&outcome.stderr);
    }
    assert!(outcome.status.success(), "{outcome:#?}");
    assert_eq!(outcome.stdout.trim(), "24", "the program's own limit is as it was");
}
