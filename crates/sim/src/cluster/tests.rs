//! Frames that come while a processor is at another's interrupt, by hand.

use super::world::Cluster;
use std::collections::VecDeque;
use trunkline_cluster::{Node, Op, Outcome, Program, Work};
use trunkline_core::{Cause, Time};
use trunkline_measure::Sample;
use trunkline_scenario::Scenario;
use trunkline_transport::cstar::{EventId, Flags, Fragment, NodeId, Source};

/// A program that does these operations, whatever it receives.
#[derive(Debug)]
struct Listed(VecDeque<Op>);

impl Program for Listed {
    fn next(&mut self, _: Outcome) -> Op {
        self.0.pop_front().unwrap_or(Op::Done)
    }

    fn verdict(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Sends a word to a node under an event.
fn word(to: u16, event: u32) -> Op {
    let flags = Flags { last: true, ..Flags::default() };
    let (to, event, data) = (NodeId(to).into(), EventId(event), vec![0; 4].into());
    Op::Send(Fragment { to, event, flags, following: 0, data })
}

fn receive(from: u16, event: u32) -> Op {
    Op::Receive(Source::Node(NodeId(from)), EventId(event))
}

/// Works for so many microseconds.
fn micros(written: u64) -> Op {
    Op::Work(Work { written, ..Work::default() })
}

/// The first lap of node 0 of a cluster whose nodes have these programs. A word is 4.48 us on the wire, an interrupt takes
/// 100 us.
fn lap(protocol: &str, costs: &str, programs: [&[Op]; 4]) -> Sample {
    let text = format!(
        "stop_after = '1s'\nsamples = 'all'\n[[cluster]]\nname = 'c'\nkind = 'half-duplex'\nrate = '100Mbit/s'\nlimit = '1MB'\nnodes = 4\nprotocol = {protocol}\ntest = 'incast'\ncosts = 'c'\n[costs.c]\ninterrupt = '100us'\nwrite = '1us'\n{costs}"
    );
    let scenario = &Scenario::parse(&text, "test.toml").unwrap_or_else(|it| panic!("{it}"))[0];
    let spec = &scenario.clusters[0];
    let nodes = std::iter::zip(0.., programs).map(|(me, ops): (u16, &[Op])| {
        let layer = spec.layer(NodeId(me)).unwrap();
        Node::new(Box::new(Listed(ops.iter().cloned().collect())), layer)
    });
    let mut cluster = Cluster::new(scenario, spec, nodes.collect(), 0);
    cluster.run(Time::ZERO + scenario.stop_after, &|_| {});
    cluster.samples.finish();
    cluster.samples[0].clone()
}

fn steps(sample: &Sample) -> Vec<(Cause, u64)> {
    sample.steps.iter().map(|it| (it.cause, it.span.as_nanos())).collect()
}

/// In a square, node 3's word for node 0 comes to node 1 at 8.96 us, during the interrupt by node 0's, which takes it to
/// 104.48 us. Its own then takes it to 204.48 us, and only then is it handed on.
#[test]
fn a_frame_is_handed_on_behind_its_own_interrupt() {
    let zero = [Op::Begin, word(1, 0), receive(3, 1), Op::Lap(4)];
    let sample = lap(
        "{ kind = 'careful', grid = 2 }",
        "",
        [&zero, &[receive(0, 0)], &[], &[micros(1), word(0, 1)]],
    );
    assert_eq!(sample.delay().as_nanos(), 204_480 + 4_480 + 100_000);
}

/// Node 0 waits for node 1's word. Node 2's comes during the interrupt by that, and is none of the lap's history, although
/// its interrupt holds node 0 up.
#[test]
fn the_path_is_that_of_the_fragment_received() {
    let zero = [Op::Begin, receive(1, 0), Op::Lap(4), receive(2, 1)];
    let sample = lap("'careful'", "", [&zero, &[word(0, 0)], &[micros(1), word(0, 1)], &[]]);
    assert_eq!(steps(&sample), [(Cause::Transmit, 4_480), (Cause::Host, 200_000)]);
}

/// The same when it comes before: node 2's word waits for the wire and for the interrupt by node 1's.
#[test]
fn the_path_is_that_of_the_fragment_waited_for() {
    let zero = [Op::Begin, receive(2, 1), Op::Lap(4), receive(1, 0)];
    let sample = lap("'careful'", "", [&zero, &[word(0, 0)], &[micros(1), word(0, 1)], &[]]);
    let of_two = [(Cause::Host, 1_000 + 195_520), (Cause::Queue, 3_480), (Cause::Transmit, 4_480)];
    let mut booked = steps(&sample);
    booked.sort_by_key(|it| it.0 as u8);
    assert_eq!(booked.iter().map(|it| it.1).sum::<u64>(), 204_480);
    assert_eq!(booked, of_two);
}

/// Node 0 sends from 30 us on, which takes 50 us, and is interrupted at 54.48 us for 100 us: its word leaves at 180 us.
#[test]
fn a_frame_leaves_when_its_sending_is_done() {
    let zero = [Op::Begin, micros(30), word(1, 0), receive(1, 2), Op::Lap(4)];
    let answer = [receive(0, 0), word(0, 2)];
    let sample = lap("'careful'", "send = '50us'", [&zero, &answer, &[word(0, 1)], &[]]);
    let hop = 4_480 + 100_000;
    assert_eq!(sample.delay().as_nanos(), 180_000 + hop + 50_000 + hop);
}
