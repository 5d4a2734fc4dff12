//! Flows between two namespaces: every workload over every transport, without an emulator.

use super::support::{Hosts, MTU, check_sums, run, tcp, urp, workloads};
use std::time::Duration;
use trunkline_core::Size;
use trunkline_engine::NoteKind;
use trunkline_scenario::{Echo, Listed, Transport, Workload};
use trunkline_transport::protocol::{self, Value};

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

/// A receiver that holds little takes more when what has come was read, long before the message ends, whatever the
/// interface does about the windows of URP.
#[test]
fn a_message_may_be_longer_than_what_a_receiver_holds() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    for (name, keys) in [
        ("netblt", &[("packets", 8), ("outstanding", 1)][..]),
        ("go-back-n", &[("frames", 4)]),
        ("selective-repeat", &[("frames", 4), ("buffer", 4)]),
    ] {
        let entry = protocol::named(name).unwrap();
        let mut values = entry.defaults();
        keys.iter().for_each(|&(key, value)| values.set(key, Value::Number(value)));
        let transport = Transport::Listed(Listed { entry, values });
        let bytes = Size::from_bytes(300_000);
        for echo in [Echo::Arrival, Echo::Posted, Echo::Consumption] {
            let workload = Workload::Bulk { bytes, repeat: 1, write: 1024, confirm: true };
            let mut plan = hosts.plan(workload, &transport);
            for end in [&mut plan.source, &mut plan.destination] {
                end.interface.echo = echo;
            }
            let run = run(&[plan], Duration::from_secs(20)).remove(0);
            assert_eq!(run.delivered_bytes, 300_004, "{name} {echo:?}: {:?}", run.notes);
        }
    }
}
