//! Flows between two namespaces: every workload over every transport, without an emulator.

use super::support::{Hosts, MTU, check_sums, run, tcp, urp, workloads};
use std::time::Duration;
use trunkline_engine::NoteKind;
use trunkline_scenario::Transport;

fn every_workload_over(transport: &Transport) {
    let Some(hosts) = Hosts::build(MTU) else { return };
    for (workload, samples, bytes) in workloads() {
        let plan = hosts.plan(workload.clone(), transport);
        let run = run(&[plan], Duration::from_secs(20)).remove(0);
        check_sums(&run);
        match samples {
            Some(samples) => assert_eq!(run.samples.len(), samples, "{workload:?} {:?}", run.notes),
            None => assert!(run.samples.len() > 1, "{workload:?}"),
        }
        assert!(bytes.is_none_or(|bytes| run.delivered_bytes == bytes), "{workload:?} {run:?}");
        assert!(run.notes.iter().all(|note| note.kind != NoteKind::Failed), "{:?}", run.notes);
    }
}

#[test]
fn every_workload_runs_over_udp() {
    every_workload_over(&Transport::Udp);
}

#[test]
fn every_workload_runs_over_datagrams() {
    every_workload_over(&Transport::Datagram);
}

#[test]
fn every_workload_runs_over_urp() {
    every_workload_over(&urp());
}

#[test]
fn every_workload_runs_over_tcp() {
    every_workload_over(&tcp());
}
