//! Outside programs between namespaces. One that is not installed is skipped with a message.

use super::support::{Hosts, MTU, check_sums};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use trunkline_core::Span;
use trunkline_endpoint::{Flow, FlowRun, HostThreads, clock};
use trunkline_engine::NoteKind;
use trunkline_scenario::{Program, Transport, Workload};
use trunkline_skip::installed;

fn prepare(hosts: &Hosts, command: &str, server: Option<&str>) -> Result<Flow, String> {
    // One whose figure is a rate if that is what the program measures.
    let is_rate = command.starts_with("iperf3") || command.starts_with("curl");
    let of_kind = |workload: &Workload| matches!(workload, Workload::Bulk { .. }) == is_rate;
    let mut workloads = super::support::workloads().into_iter().map(|(workload, ..)| workload);
    let workload = workloads.find(of_kind).unwrap();
    let mut plan = hosts.plan(workload, &Transport::Udp);
    plan.program = Some(Program { command: command.into(), server: server.map(Into::into) });
    Flow::prepare(&HostThreads::new(), &plan).map_err(|error| error.to_string())
}

/// Runs it to its end, or for `most`.
fn run(hosts: &Hosts, command: &str, server: Option<&str>, most: Span) -> FlowRun {
    let flow = prepare(hosts, command, server).unwrap();
    let start = clock::now() + Span::from_millis(10);
    flow.start(start);
    while !flow.ended() && clock::now() < start + most {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut run = flow.join();
    run.rebase(start);
    check_sums(&run);
    run
}

const LONG: Span = Span::from_secs(30);

#[test]
fn ping_is_read() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    if !installed(&["ping"]) {
        return;
    }
    let run = run(&hosts, "ping -c 4 -i 0.05 -s 100 {peer}", None, LONG);
    assert_eq!((run.samples.len(), run.packets_sent, run.packets_received), (4, 4, 4));
    assert!(run.samples.iter().all(|sample| sample.size == 100));
    let apart = run.samples[3].start - run.samples[0].start;
    assert!(apart >= Span::from_millis(140), "{apart}");
    assert!(run.notes.iter().any(|note| note.text.contains("'-D' added")), "{:?}", run.notes);
}

#[test]
fn a_ping_that_nobody_answers_is_an_error_and_a_stopped_one_is_none() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    if !installed(&["ping"]) {
        return;
    }
    let silent = run(&hosts, "ping -c 1 -W 0.2 10.78.0.9", None, LONG);
    assert!(silent.notes.iter().any(|note| note.kind == NoteKind::Failed), "{:?}", silent.notes);
    let stopped = run(&hosts, "ping -i 0.05 {peer}", None, Span::from_secs(2));
    assert!(stopped.samples.len() >= 2 && stopped.ended.is_none(), "{stopped:?}");
    assert!(stopped.samples.iter().all(|it| it.size == 56), "{stopped:?}");
    assert!(stopped.notes.iter().all(|note| note.kind != NoteKind::Failed), "{:?}", stopped.notes);
}

#[test]
fn iperf3_is_read_at_the_receiver() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    if !installed(&["iperf3"]) {
        return;
    }
    let (client, server) =
        ("iperf3 -c {peer} -p {port} -t 1 -i 0.25 -b 20M", "iperf3 -s -p {port}");
    let run = run(&hosts, client, Some(server), LONG);
    assert!(run.samples.len() >= 2, "{run:?}");
    let sum: u64 = run.samples.iter().map(|sample| sample.size).sum();
    assert!(sum > 1_000_000 && sum <= run.delivered_bytes, "{sum} of {}", run.delivered_bytes);
    assert!(run.ended.is_some());
}

#[test]
fn an_iperf3_server_for_one_client_tells_of_its_intervals() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    if !installed(&["iperf3"]) {
        return;
    }
    let client = "iperf3 -u -c {peer} -p {port} -t 1 -i 0.25 -b 2M -l 500";
    let run = run(&hosts, client, Some("iperf3 -s -1 -p {port}"), LONG);
    assert!(run.samples.len() >= 3, "{run:?}");
    assert!(run.notes.iter().all(|note| !note.text.contains("whole run")), "{:?}", run.notes);
}

/// It hears of the end as much later as the path is long. One that is told to end while it prints, prints no more.
#[test]
fn the_server_of_a_stopped_iperf3_has_the_time_to_tell_its_intervals() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    if !installed(&["iperf3"]) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let late = place.path().join("iperf3");
    let script = "#!/bin/sh\ntold=$(iperf3 \"$@\")\nsleep 0.5\necho \"$told\"\n";
    std::fs::write(&late, script).unwrap();
    std::fs::set_permissions(&late, Permissions::from_mode(0o700)).unwrap();
    let server = format!("{} -s -1 -p {{port}}", late.display());
    let client = "iperf3 -c {peer} -p {port} -t 30 -i 0.25 -b 20M";
    let run = run(&hosts, client, Some(&server), Span::from_secs(2));
    assert!(run.ended.is_none() && run.samples.len() >= 3, "{run:?}");
    let apart = run.samples.windows(2).all(|two| two[0].start < two[1].start);
    assert!(apart, "{run:?}");
    assert!(run.notes.iter().all(|note| !note.text.contains("whole run")), "{:?}", run.notes);
}

#[test]
fn irtt_and_curl_are_read() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    if installed(&["irtt"]) {
        let (client, server) =
            ("irtt client -i 20ms -d 200ms -q {peer}:{port}", "irtt server -b 0.0.0.0:{port}");
        let run = run(&hosts, client, Some(server), LONG);
        // On a busy machine it leaves some out.
        let answered = run.samples.len();
        assert!((2..=10).contains(&answered) && run.packets_received == answered as u64, "{run:?}");
        assert!(run.samples.iter().all(|sample| sample.steps.len() == 2));
    }
    if installed(&["curl", "python3"]) {
        let server = "exec python3 -m http.server {port} --directory /proc/self/fdinfo";
        let run = run(&hosts, "curl http://{peer}:{port}/", Some(server), LONG);
        assert_eq!(run.samples.len(), 1, "{run:?}");
        let whole = run.delivered_bytes > 0 && run.samples[0].size == run.delivered_bytes;
        assert!(whole, "{run:?}");
    }
}

#[test]
fn a_server_that_ends_at_once_is_refused_with_its_last_words() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let refused = prepare(&hosts, "true", Some("echo 'no such luck' >&2; exit 4")).unwrap_err();
    assert!(refused.contains("no such luck") && !refused.contains('\n'), "{refused}");
}

#[test]
fn the_placeholders_are_the_other_end_and_one_port() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let run = run(&hosts, "echo {peer} {port} >&2; exit 5", None, LONG);
    let note = run.notes.iter().find(|note| note.kind == NoteKind::Failed).unwrap();
    assert!(note.text.contains("10.78.0.2 2"), "{note:?}");
    assert!(run.samples.is_empty(), "a failure is no measurement: {run:?}");
}
