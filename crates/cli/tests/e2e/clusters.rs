//! `trunkline cluster`: nodes as processes, losses, a node that dies, wrong use.

use crate::support::{Host, is_forbidden};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::time::Duration;

/// The arguments of a run, in namespaces or on loopback.
fn arguments<'a>(here: bool, rest: &[&'a str]) -> Vec<&'a str> {
    let place = if here { &["--here"][..] } else { &[] };
    [&["cluster", "run", "--json", "--buffers", "32"], rest, place].concat()
}

/// What a run that has to end well says; nothing where namespaces may not be had.
fn well(host: &Host, arguments: &[&str]) -> Option<Value> {
    let outcome = host.run(arguments);
    if is_forbidden(&outcome.stderr) {
        return None;
    }
    assert_eq!(outcome.status.code(), Some(0), "{}", outcome.stderr);
    let said: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(said["right"], true, "{said}");
    Some(said)
}

/// Four processes compute what one does, to the last bit, whatever the layer and wherever they run.
#[test]
fn processes_compute_what_one_does() {
    let host = Host::beside();
    for protocol in ["careful", "traditional", "careful:grid=2"] {
        for place in [&["--here"][..], &[], &["--over", "ethernet"]] {
            let test = "jacobi:side=24,iterations=60";
            let run = [&["--nodes", "4", "--test", test, "--protocol", protocol], place].concat();
            let run = arguments(false, &run);
            let Some(said) = well(&host, &run) else { continue };
            assert_eq!(said["outcomes"].as_array().unwrap().len(), 4);
            assert_eq!(said["laps"], 1);
        }
    }
}

/// Between namespaces a broadcast is one datagram, for all that listen to the group.
#[test]
fn a_broadcast_is_one_datagram_between_namespaces() {
    let host = Host::beside();
    let test = "flood:words=1,ahead=2,events=1000,fragments=4";
    let Some(said) = well(&host, &arguments(false, &["--nodes", "3", "--test", test])) else {
        return;
    };
    for outcome in said["outcomes"].as_array().unwrap() {
        // 4000 broadcasts, updates, and greetings; to each of the others alone there would be 8000.
        let sent = outcome["sent"].as_u64().unwrap();
        assert!((4000..7000).contains(&sent), "{outcome}");
    }
}

/// Each of many namespaces knows the addresses of all others. The kernel keeps a thousand that were asked for on the
/// wire, in all of them together.
#[test]
fn more_nodes_meet_than_the_kernel_keeps_addresses_for() {
    let host = Host::beside();
    let run = ["cluster", "run", "--json", "--nodes", "36", "--test", "halo:rounds=2"];
    let Some(said) = well(&host, &[&run[..], &["--buffers", "210"]].concat()) else { return };
    assert_eq!(said["outcomes"].as_array().unwrap().len(), 36);
}

#[test]
fn every_test_ends_well_among_processes() {
    let host = Host::beside();
    for kind in trunkline_cluster::TESTS {
        let test = format!("{}:{}", kind.name, kind.trial);
        well(&host, &arguments(true, &["--nodes", "3", "--test", &test]));
    }
}

#[test]
fn the_traditional_layer_repairs_what_is_dropped() {
    let host = Host::beside();
    let test = "jacobi:side=16,iterations=100";
    let run = ["--nodes", "4", "--test", test, "--protocol", "traditional", "--drop", "5%"];
    let said = well(&host, &arguments(true, &run)).unwrap();
    let sum = |key: &str| -> u64 {
        said["outcomes"].as_array().unwrap().iter().filter_map(|it| it[key].as_u64()).sum()
    };
    assert!(sum("dropped") > 0 && sum("again") > 0, "{said}");
}

/// The one who misses a frame says whose and under which event, and the others are stopped.
#[test]
fn the_careful_layer_reports_what_is_dropped() {
    let host = Host::beside();
    let test = "jacobi:side=16,iterations=3000";
    let outcome = host.run(&arguments(true, &["--nodes", "4", "--test", test, "--drop", "1%"]));
    assert_eq!(outcome.status.code(), Some(1));
    let told = &outcome.stderr;
    assert!(told.contains("reliability violated"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    // What others came to is told too, not that of the first alone: of all who say it within a second.
    let said: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let outcomes = said["outcomes"].as_array().unwrap();
    let dropped: u64 = outcomes.iter().filter_map(|it| it["dropped"].as_u64()).sum();
    assert!(outcomes.len() > 1 && dropped > 0, "{said}");
}

/// The loss of a frame behind which nothing more comes is found too, whichever way the layer was named.
#[test]
fn a_lost_last_frame_is_no_silence() {
    let host = Host::beside();
    for protocol in ["careful", "careful:lease=1s", "careful:grid=2"] {
        let run =
            ["--nodes", "4", "--test", "latency:rounds=3000", "--drop", "5%", "--most", "20s"];
        let outcome = host.run(&arguments(true, &[&run[..], &["--protocol", protocol]].concat()));
        assert_eq!(outcome.status.code(), Some(1));
        let said = outcome.stderr;
        assert!(said.contains("reliability violated"), "{protocol}: {said}");
    }
}

/// If all frames are lost, and so the audits, it is told who cannot be reached; the words among nodes still pass.
#[test]
fn the_loss_of_all_frames_is_told() {
    let host = Host::beside();
    for protocol in ["careful", "careful:grid=2"] {
        let run = ["--nodes", "4", "--test", "latency:rounds=3000", "--drop", "100%"];
        let outcome = host.run(&arguments(true, &[&run[..], &["--protocol", protocol]].concat()));
        assert_eq!(outcome.status.code(), Some(1));
        let said = outcome.stderr;
        assert!(said.contains("cannot be reached: it is there"), "{protocol}: {said}");
        assert!(said.contains("no frame passes"), "{protocol}: {said}");
    }
}

/// A traditional cluster with more outstanding than its buffers hold says so while it is busy, and when it is given up.
#[test]
fn a_livelock_is_named_while_it_lasts() {
    let host = Host::beside();
    let test = "flood:words=100,ahead=64,events=100,fragments=4";
    let buffers = ["--buffers", "8", "--send-buffers", "64", "--most", "8s"];
    let run = ["cluster", "run", "--here", "--nodes", "4", "--protocol", "traditional"];
    let outcome = host.run(&[&run[..], &["--test", test], &buffers].concat());
    assert_eq!(outcome.status.code(), Some(1));
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    let (last, before) = lines.split_last().unwrap();
    assert!(before[0].contains("livelock: no program has come on for 3 s"), "{lines:#?}");
    assert!(last.contains("has not ended in time: livelock"), "{lines:#?}");
    assert!(last.contains("--buffers"), "{lines:#?}");
}

/// A traditional cluster to which no frame passes says so while it asks, and when it is given up; nodes that cannot start
/// alike are told once.
#[test]
fn what_all_nodes_have_alike_is_told_once() {
    let host = Host::beside();
    let run = |rest: &[&str]| {
        let run = ["cluster", "run", "--here", "--nodes", "4", "--test", "latency"];
        let outcome = host.run(&[&run[..], rest].concat());
        assert_eq!(outcome.status.code(), Some(1), "{}", outcome.stderr);
        outcome.stderr.lines().map(String::from).collect::<Vec<_>>()
    };
    let lines = run(&["--protocol", "traditional", "--drop", "100%", "--most", "6s"]);
    assert!(lines[0].contains("nothing passes: no frame has come"), "{lines:#?}");
    assert!(lines.last().unwrap().contains("in time: nothing passes"), "{lines:#?}");
    let lines = run(&["--buffers", "4000000000"]);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(lines[0].contains("node") && lines[0].contains("fewer --buffers"), "{lines:#?}");
}

/// The processes that `parent` has started.
fn children(parent: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    list.unwrap_or_default().split_whitespace().filter_map(|it| it.parse().ok()).collect()
}

#[test]
fn a_node_that_is_killed_is_told_and_the_others_end() {
    let host = Host::beside();
    for protocol in ["careful", "traditional", "careful:grid=3"] {
        killed(&host, protocol, 1, false);
    }
}

/// The same if it dies before it is told where the others are: the launcher is stopped until it has.
#[test]
fn a_node_that_is_killed_before_all_have_met_is_told() {
    let host = Host::beside();
    for victim in 0..3 {
        killed(&host, "careful", victim, true);
    }
}

fn killed(host: &Host, protocol: &str, victim: usize, before_they_meet: bool) {
    let test = "latency:rounds=100000000";
    let run = ["--nodes", "3", "--test", test, "--protocol", protocol];
    let running = host.start(&arguments(true, &run));
    let nodes = (0..400).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        Some(children(running.pid())).filter(|nodes| nodes.len() == 3)
    });
    let nodes = nodes.expect("three nodes");
    if before_they_meet {
        running.signal(Signal::STOP);
    }
    std::thread::sleep(Duration::from_millis(300));
    let victim = Pid::from_raw(nodes[victim] as i32).unwrap();
    kill_process(victim, Signal::KILL).unwrap();
    running.signal(Signal::CONT);
    let outcome = running.finish();
    assert_eq!(outcome.status.code(), Some(1));
    assert!(outcome.stderr.contains("died before its program had ended"), "{}", outcome.stderr);
    for node in nodes {
        assert!(!std::path::Path::new(&format!("/proc/{node}")).exists(), "{node} is left");
    }
}

/// A launcher that is killed takes its nodes along: their input has ended.
#[test]
fn no_node_outlives_a_killed_launcher() {
    let host = Host::beside();
    let test = "latency:rounds=100000000";
    let running = host.start(&arguments(true, &["--nodes", "2", "--test", test]));
    let nodes = (0..400).find_map(|_| {
        std::thread::sleep(Duration::from_millis(10));
        Some(children(running.pid())).filter(|nodes| nodes.len() == 2)
    });
    let nodes = nodes.expect("two nodes");
    kill_process(Pid::from_raw(running.pid() as i32).unwrap(), Signal::KILL).unwrap();
    drop(running.finish());
    let gone = |node: &u32| !std::path::Path::new(&format!("/proc/{node}/exe")).exists();
    let ended = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        nodes.iter().all(gone)
    });
    assert!(ended, "{nodes:?} go on");
}

/// Records of real nodes lie on one time: no message comes before it was sent.
#[test]
fn real_nodes_are_recorded_and_drawn() {
    let host = Host::beside();
    let place = tempfile::tempdir().unwrap();
    let [trace, picture] = ["trace.json", "who.svg"].map(|name| place.path().join(name));
    let files = ["--trace", trace.to_str().unwrap(), "--picture", picture.to_str().unwrap()];
    let test = &["--nodes", "3", "--test", "latency:rounds=20"][..];
    let said = well(&host, &arguments(true, &[test, &files].concat())).expect("loopback is there");
    assert!(said["outcomes"][0].get("records").is_none(), "they are in the files");
    let events: Value = serde_json::from_str(&std::fs::read_to_string(trace).unwrap()).unwrap();
    let events = events["traceEvents"].as_array().unwrap();
    let at = |phase: &str| {
        let of = events.iter().filter(|it| it["ph"] == phase);
        of.map(|it| (it["id"].to_string(), it["ts"].as_f64().unwrap())).collect::<Vec<_>>()
    };
    let (sent, received) = (at("s"), at("f"));
    assert!(sent.len() >= 60, "{}", sent.len());
    for ((one, sent), (other, received)) in sent.iter().zip(&received) {
        assert!(one == other && sent <= received, "{one} {sent} {other} {received}");
    }
    assert!(std::fs::read_to_string(picture).unwrap().contains("node 2"));
    // Told before a run that may take minutes: this one would take longer than tests may.
    let nowhere = &["--trace", "/nonexistent/trace.json"][..];
    let long = &["--nodes", "3", "--test", "latency:rounds=100000000"][..];
    let outcome = host.run(&arguments(true, &[long, nowhere].concat()));
    assert_eq!(outcome.status.code(), Some(2));
    assert!(outcome.stderr.contains("cannot write /nonexistent/trace.json"), "{}", outcome.stderr);
}

#[test]
fn wrong_use_is_told_in_a_line() {
    let host = Host::beside();
    for (rest, says) in [
        (&["--nodes", "4", "--test", "ring"][..], "use one of latency"),
        (&["--nodes", "4", "--test", "latency:word=1"], "use words"),
        (&["--nodes", "40", "--test", "latency"], "give 120 buffers"),
        (&["--nodes", "30", "--test", "jacobi:side=8"], "larger side"),
        (&["--nodes", "2", "--test", "latency", "--protocol", "rude"], "traditional or careful"),
        (&["--nodes", "4", "--test", "latency", "--protocol", "careful:grid=3"], "rows of 3"),
        (&["--nodes", "4", "--test", "latency", "--silence", "1s"], "give 2s or more"),
    ] {
        let outcome = host.run(&arguments(true, rest));
        assert_eq!(outcome.status.code(), Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
    }
}
