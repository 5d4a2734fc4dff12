//! A traditional node by itself, and two that talk over a network that loses.

use super::requests::{MOST_ASKED, MOST_REQUESTED};
use super::*;
use crate::cstar::Entry;

const AT: Time = Time::ZERO;

fn cluster(nodes: u16) -> Cluster {
    Cluster { nodes, receive_buffers: 16, send_buffers: 16, frame: 8000 }
}

fn node(me: u16, nodes: u16) -> Traditional {
    Traditional::new(NodeId(me), &cluster(nodes), &TraditionalSettings::default()).unwrap()
}

fn fragment(to: u16, event: u32, last: bool) -> Fragment {
    let flags = Flags { last, ..Flags::default() };
    let data = Bytes::from(vec![event as u8; 40]);
    let to = Destination::Node(NodeId(to));
    Fragment { to, event: EventId(event), flags, following: 0, data }
}

fn sent(node: &mut Traditional) -> Vec<Frame> {
    std::iter::from_fn(|| node.transmit(AT)).collect()
}

/// Appendix A: sending a fragment takes 318 cycles beyond what both protocols do, its interrupt 1100.
#[test]
fn a_fragment_costs_what_the_appendix_says() {
    let (mut one, mut other) = (node(0, 2), node(1, 2));
    one.send(AT, fragment(1, 0, true)).unwrap();
    assert_eq!(one.take_tally().cycles(), 318);
    other.arrive(AT, one.transmit(AT).unwrap());
    assert_eq!(other.take_tally().cycles(), 1100);
}

#[test]
fn a_frame_acknowledges_what_its_node_has_received() {
    let (mut one, mut other) = (node(0, 2), node(1, 2));
    one.send(AT, fragment(1, 0, true)).unwrap();
    one.send(AT, fragment(1, 1, true)).unwrap();
    sent(&mut one).into_iter().for_each(|frame| other.arrive(AT, frame));
    // It sends before it has received anything: nothing is acknowledged.
    other.send(AT, fragment(0, 5, true)).unwrap();
    one.arrive(AT, other.transmit(AT).unwrap());
    assert_eq!(one.memory().send, 2);
    assert_eq!(
        other.receive(AT, Source::Any, EventId(0)).unwrap().status,
        super::super::Status::EventDone
    );
    other.send(AT, fragment(0, 6, true)).unwrap();
    one.arrive(AT, other.transmit(AT).unwrap());
    assert_eq!(one.memory().send, 1);
}

#[test]
fn a_hole_is_asked_for_at_once_and_once() {
    let (mut one, mut other) = (node(0, 2), node(1, 2));
    (0..4).for_each(|number| one.send(AT, fragment(1, 0, number == 3)).unwrap());
    let mut frames = sent(&mut one);
    let _lost = frames.remove(1);
    frames.into_iter().for_each(|frame| other.arrive(AT, frame));
    let requests = sent(&mut other);
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].list, [Entry { event: EventId(0), first: 1, following: 0 }]);
    one.arrive(AT, requests[0].clone());
    other.arrive(AT, one.transmit(AT).unwrap());
    let all = (0..4).map(|_| other.receive(AT, Source::Any, EventId(0)).unwrap());
    let mut numbers: Vec<u32> = all.map(|delivery| delivery.fragment).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2, 3]);
}

#[test]
fn what_is_lost_behind_nothing_is_asked_for_while_it_is_waited_for() {
    let (mut one, mut other) = (node(0, 2), node(1, 2));
    one.send(AT, fragment(1, 0, true)).unwrap();
    let _lost = sent(&mut one);
    assert!(other.deadline().is_none());
    assert!(other.receive(AT, Source::Any, EventId(0)).is_none());
    let at = other.deadline().unwrap();
    assert_eq!(at, AT + Span::from_millis(10));
    other.expire(at);
    assert_eq!(other.deadline().unwrap(), at + Span::from_millis(20));
    sent(&mut other).into_iter().for_each(|frame| one.arrive(at, frame));
    sent(&mut one).into_iter().for_each(|frame| other.arrive(at, frame));
    assert!(other.receive(at, Source::Any, EventId(0)).is_some());
}

/// With a quarter of the buffers left a frame asks for an answer, which frees what it names; with none left sending waits,
/// and the oldest is repeated.
#[test]
fn short_buffers_are_freed_by_explicit_acknowledgements() {
    let (mut one, mut other) = (node(0, 2), node(1, 2));
    for event in 0..16 {
        one.send(AT, fragment(1, event, true)).unwrap();
    }
    assert!(matches!(one.send(AT, fragment(1, 16, true)), Err(Blocked::Buffers(_))));
    let frames = sent(&mut one);
    assert_eq!(frames.iter().filter(|frame| frame.wants_ack).count(), 4);
    frames.into_iter().for_each(|frame| other.arrive(AT, frame));
    // Two buffers stay free, one for each node: two fragments are refused, and not acknowledged.
    assert_eq!(other.counters().refused, 2);
    sent(&mut other).into_iter().for_each(|frame| one.arrive(AT, frame));
    assert_eq!(one.memory().send, 14);
    one.send(AT, fragment(1, 16, true)).unwrap();
}

#[test]
fn the_oldest_of_what_the_adapter_cannot_hold_is_copied_to_memory() {
    let mut one = node(0, 2);
    let settings = TraditionalSettings { on_board: 2, ..Default::default() };
    let mut short = Traditional::new(NodeId(0), &cluster(2), &settings).unwrap();
    for event in 0..5 {
        one.send(AT, fragment(1, event, true)).unwrap();
        short.send(AT, fragment(1, event, true)).unwrap();
    }
    assert_eq!((one.take_tally().copied, short.take_tally().copied), (0, 3 * 40));
}

/// TR 94-14 §6.1: with one buffer on board a backup is made of each fragment, also of one that is acknowledged before the next.
#[test]
fn an_adapter_that_keeps_nothing_has_each_fragment_copied() {
    let settings = TraditionalSettings { on_board: 0, ..Default::default() };
    let mut one = Traditional::new(NodeId(0), &cluster(2), &settings).unwrap();
    for event in 0..5 {
        one.send(AT, fragment(1, event, true)).unwrap();
        assert_eq!(one.take_tally().copied, 40);
        one.acknowledged_by(NodeId(1), EventId(event + 1));
    }
    assert_eq!(one.memory().send, 0);
}

/// A hostile peer's numbers cost neither time nor memory.
#[test]
fn a_fragment_numbered_beyond_reason_is_refused() {
    let mut one = node(0, 2);
    let frame = one.frame(Kind::Traditional, Destination::Node(NodeId(0)), EventId(0));
    for event in 0..10_000 {
        let (event, fragment) = (EventId(event), if event % 2 == 0 { u32::MAX } else { 60_000 });
        one.arrive(AT, Frame { from: NodeId(1), event, fragment, ..frame.clone() });
        assert!(sent(&mut one).iter().all(|frame| frame.list.len() <= MOST_ASKED));
    }
    assert!(one.requested.len() <= MOST_REQUESTED);
    assert_eq!(one.failure(), None);
}

#[test]
fn one_who_asks_for_what_it_has_acknowledged_is_reported() {
    let mut one = node(0, 2);
    let mut request = one.frame(Kind::Request, Destination::Node(NodeId(0)), EventId(3));
    (request.from, request.complete) = (NodeId(1), EventId(3));
    request.list.push(Entry { event: EventId(1), first: 0, following: 0 });
    one.arrive(AT, request);
    assert!(matches!(one.failure(), Some(Failure::Protocol { .. })));
    let told = one.failure().unwrap().to_string();
    assert!(told.contains("out of their order") && !told.contains("infer"), "{told}");
}

/// It sends under event 1 before it has received what it is sent under event 0, and that is lost: only `infer` takes it for
/// acknowledged, so that is what is told.
#[test]
fn of_what_was_acknowledged_by_inference_alone_the_setting_is_told() {
    let settings = TraditionalSettings { infer: true, ..Default::default() };
    let mut one = Traditional::new(NodeId(0), &cluster(2), &settings).unwrap();
    let mut other = node(1, 2);
    one.send(AT, fragment(1, 0, true)).unwrap();
    let _lost = sent(&mut one);
    other.send(AT, fragment(0, 1, true)).unwrap();
    sent(&mut other).into_iter().for_each(|frame| one.arrive(AT, frame));
    assert!(other.receive(AT, Source::Any, EventId(0)).is_none());
    let at = other.deadline().unwrap();
    other.expire(at);
    sent(&mut other).into_iter().for_each(|frame| one.arrive(at, frame));
    let told = one.failure().expect("it is gone").to_string();
    assert!(told.contains("leave out `infer`") && !told.contains("out of their order"), "{told}");
}

/// Who has received all of an event has acknowledged all before it: what it waits for then cannot come, and it says so itself.
#[test]
fn a_program_that_receives_events_out_of_their_order_is_told() {
    let (mut one, mut other) = (node(0, 2), node(1, 2));
    for event in [1, 2] {
        other.send(AT, fragment(0, event, true)).unwrap();
    }
    sent(&mut other).into_iter().for_each(|frame| one.arrive(AT, frame));
    assert!(one.receive(AT, Source::Any, EventId(2)).is_some());
    // This one is there already.
    assert!(one.receive(AT, Source::Any, EventId(1)).is_some());
    assert_eq!(one.failure(), None);
    assert!(one.receive(AT, Source::Any, EventId(3)).is_none());
    assert_eq!(one.failure(), None);
    assert!(one.receive(AT, Source::Any, EventId(0)).is_none());
    let told = one.failure().expect("it cannot come").to_string();
    assert!(told.contains("waits for event 0") && told.contains("all of event 2"), "{told}");
}
