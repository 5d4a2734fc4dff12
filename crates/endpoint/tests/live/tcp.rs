//! The kernel's TCP, asked for what a scenario says.

use super::support::{Hosts, MTU, check_sums, run};
use std::time::Duration;
use trunkline_core::{Size, Span};
use trunkline_endpoint::{Flow, FlowPlan, FlowRun, HostThreads, clock};
use trunkline_engine::NoteKind;
use trunkline_scenario::{TcpSettings, Transport, Workload};

fn greedy() -> Workload {
    let milli = Span::from_millis;
    Workload::Greedy {
        duration: milli(400),
        warm_up: milli(100),
        interval: milli(100),
        write: 8192,
    }
}

/// A greedy flow, and the windows and segments that the kernel told of at its end.
fn run_with(settings: &TcpSettings) -> Option<FlowRun> {
    let hosts = Hosts::build(MTU)?;
    let plan = hosts.plan(greedy(), &Transport::Tcp(settings.clone()));
    let run = run(&[plan], Duration::from_secs(20)).remove(0);
    check_sums(&run);
    assert_eq!(run.samples.len(), 3);
    Some(run)
}

#[test]
fn the_window_advertised_is_the_scenarios() {
    for window in [16_384, 65_535, 200_000] {
        let settings =
            TcpSettings { window: Some(Size::from_bytes(window)), ..TcpSettings::default() };
        let Some(run) = run_with(&settings) else { return };
        let [source, destination] = run.tcp.expect("a TCP connection");
        // The kernel advertises whole segments, of which it may be waiting for one to be read.
        let segment = u64::from(source.send_mss);
        for advertised in [source.send_window, destination.receive_window].map(u64::from) {
            assert!(advertised <= window, "{advertised} of {window}");
        }
        let most = run.peak_window.expect("measured while it ran");
        assert!(most <= window && most + 2 * segment > window, "{most} of {window}");
    }
}

#[test]
fn segments_and_options_are_agreed_upon_as_asked() {
    let settings = TcpSettings {
        mss: Some(1000),
        timestamps: Some(false),
        sack: Some(false),
        window_scaling: Some(false),
        ecn: Some(true),
        congestion: Some("cubic".into()),
        ..TcpSettings::default()
    };
    let Some(run) = run_with(&settings) else { return };
    let [source, _] = run.tcp.expect("a TCP connection");
    assert_eq!(source.send_mss, 1000);
    assert!(!source.timestamps() && !source.sack() && !source.window_scaling() && source.ecn());
    assert!(source.send_window <= 65_535);
    assert!(run.notes.iter().all(|note| !note.text.contains("agree")), "{:?}", run.notes);
    let Some(run) = run_with(&TcpSettings::default()) else { return };
    let [source, _] = run.tcp.expect("a TCP connection");
    assert_eq!(source.send_mss, MTU - 40 - 12);
    assert!(source.timestamps() && source.sack() && source.window_scaling() && !source.ecn());
}

#[test]
fn every_module_of_the_kernel_runs_and_another_is_refused() {
    for congestion in ["reno", "newreno", "cubic", "bbr"] {
        let congestion = Some(congestion.to_owned());
        if run_with(&TcpSettings { congestion, ..TcpSettings::default() }).is_none() {
            return;
        }
    }
    let Some(hosts) = Hosts::build(MTU) else { return };
    let congestion = Some("constant-rate".to_owned());
    let plan =
        hosts.plan(greedy(), &Transport::Tcp(TcpSettings { congestion, ..TcpSettings::default() }));
    let refused = Flow::prepare(&HostThreads::new(), &plan).unwrap_err().to_string();
    assert!(refused.contains("constant-rate"), "{refused}");
}

#[test]
fn the_hosts_settings_are_as_before() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let setting = "net/ipv4/tcp_sack";
    hosts.near.set_sysctl(setting, "1").unwrap();
    let settings = TcpSettings { sack: Some(false), ..TcpSettings::default() };
    let plan = hosts.plan(greedy(), &Transport::Tcp(settings));
    drop(Flow::prepare(&HostThreads::new(), &plan).unwrap());
    assert_eq!(hosts.near.sysctl(setting).unwrap(), "1");
}

#[test]
fn a_hundred_flows_run_at_once() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let workload =
        Workload::Bulk { bytes: Size::from_bytes(100_000), repeat: 1, write: 8192, confirm: true };
    let plan = hosts.plan(workload, &Transport::Tcp(TcpSettings::default()));
    let plans: Vec<_> = (0..100).map(|flow| FlowPlan { flow, ..plan.clone() }).collect();
    for (flow, run) in run(&plans, Duration::from_secs(60)).iter().enumerate() {
        check_sums(run);
        assert_eq!((run.samples.len(), run.samples[0].flow as usize), (1, flow));
        assert_eq!(run.delivered_bytes, 100_004);
    }
}

#[test]
fn connections_made_at_the_same_time_agree_upon_their_own() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let threads = HostThreads::new();
    let make = |index: u32| {
        let sack = Some(index.is_multiple_of(2));
        let settings = TcpSettings { sack, ..TcpSettings::default() };
        let plan = hosts.plan(greedy(), &Transport::Tcp(settings));
        Flow::prepare(&threads, &plan).unwrap().join().tcp.expect("a connection")
    };
    let make = &make;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|index| (index, scope.spawn(move || make(index)))).collect();
        for (index, thread) in threads {
            let [source, _] = thread.join().unwrap();
            assert_eq!(source.sack(), index.is_multiple_of(2), "{index}");
        }
    });
}

/// The end that stops first closes its connection: to the other that is no silence.
#[test]
fn flows_that_are_stopped_have_not_given_up() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let endless = Size::from_bytes(1 << 40);
    let workload = Workload::Bulk { bytes: endless, repeat: 1, write: 8192, confirm: false };
    let plan = hosts.plan(workload, &Transport::Tcp(TcpSettings::default()));
    let threads = HostThreads::new();
    let plans: Vec<_> = (0..40).map(|flow| FlowPlan { flow, ..plan.clone() }).collect();
    let flows = Flow::prepare_all(&threads, &plans).unwrap();
    flows.iter().for_each(|flow| flow.start(clock::now()));
    let limit = clock::now() + Span::from_secs(20);
    while flows.iter().any(|flow| flow.delivered() == 0) && clock::now() < limit {
        std::thread::sleep(Duration::from_millis(1));
    }
    flows.iter().for_each(Flow::stop);
    for run in flows.into_iter().map(Flow::join) {
        let failed = run.notes.iter().find(|note| note.kind == NoteKind::Failed);
        assert_eq!((failed, run.ended), (None, None));
        assert!(run.delivered_bytes > 0);
    }
}
