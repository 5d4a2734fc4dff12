//! Frames that no honest node sends.

use bytes::Bytes;
use proptest::prelude::*;
use trunkline_core::{Span, Time};
use trunkline_transport::cstar::{
    Careful, CarefulSettings, Cluster, Destination, Entry, EventId, Flags, Fragment, Frame, Kind,
    Layer, NodeId, Route, Source, Traditional, TraditionalSettings,
};

const CLUSTER: Cluster = Cluster { nodes: 4, receive_buffers: 16, send_buffers: 8, frame: 64 };

/// Small numbers, which are likely to fit what is there, and the last ones.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 0_u32..6, 1 => u32::MAX - 2..=u32::MAX, 1 => any::<u32>()]
}

fn kind() -> impl Strategy<Value = Kind> {
    use Kind::{Acknowledgement, Careful, Request, Traditional, Update};
    prop::sample::select(vec![
        Careful,
        Careful,
        Update,
        Traditional,
        Traditional,
        Acknowledgement,
        Request,
    ])
}

prop_compose! {
    fn frame()(
        kind in kind(), from in 0_u16..6, to_all: bool, bits in 0_u8..32, event in number(),
        fragment in number(), grant in 0_u16..4, back in 0_u16..3, complete in number(), counter in number(),
        (routed, origin, target) in (any::<bool>(), 0_u16..6, 0_u16..8),
        list in prop::collection::vec((number(), number(), any::<u32>()), 0..4),
    ) -> Frame {
        let bit = |at: u8| bits >> at & 1 == 1;
        let entry = |(event, first, following)| Entry { event: EventId(event), first, following };
        Frame {
            kind,
            flags: Flags { last: bit(0), crowd: bit(1), large: bit(2) },
            wants_ack: bit(3),
            again: bit(4),
            from: NodeId(from),
            to: if to_all { Destination::All } else { Destination::Node(NodeId(0)) },
            event: EventId(event),
            fragment,
            grant,
            back,
            complete: EventId(if kind.is_careful() { 0 } else { complete }),
            asks: if kind == Kind::Update { complete } else { 0 },
            route: (kind == Kind::Careful && routed).then_some(Route { origin: NodeId(origin), target: if target > 5 { Destination::All } else { Destination::Node(NodeId(target)) } }),
            counter,
            data: Bytes::from_static(b"word"),
            list: list.into_iter().map(entry).collect(),
        }
    }
}

/// Frames that come, while the program sends, receives and waits in between.
fn hear(layer: &mut dyn Layer, frames: &[Frame]) {
    let mut now = Time::ZERO;
    for (frame, turn) in frames.iter().zip(0_u32..) {
        now += Span::from_millis(4);
        layer.arrive(now, frame.clone());
        if turn % 3 == 0 {
            let (to, event) = (Destination::All, EventId(turn));
            let flags = Flags { last: true, ..Flags::default() };
            let _ = layer
                .send(now, Fragment { to, event, flags, following: turn % 9, data: Bytes::new() });
        }
        if let Some(delivery) = layer.receive(now, Source::Any, EventId(turn % 6)) {
            assert_eq!(delivery.data, "word");
            delivery.buffer.into_iter().for_each(|buffer| layer.release(now, buffer));
        }
        if layer.deadline().is_some_and(|deadline| deadline <= now) {
            layer.expire(now);
        }
        let answers = std::iter::from_fn(|| layer.transmit(now)).count();
        // An answer to each peer, and each fragment that is kept at most once for each that a list names.
        assert!(answers <= 8 + 33 * frame.list.len(), "{answers} answers");
        let memory = layer.memory();
        assert!(memory.receive <= CLUSTER.receive_buffers && memory.send <= CLUSTER.send_buffers);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_careful_node_stands_what_no_honest_peer_sends(
        frames in prop::collection::vec(frame(), 1..80), lends: bool, reserves: bool, in_rows: bool,
    ) {
        let lease = (lends && !in_rows).then(|| Span::from_millis(7));
        let reserve = (reserves && !in_rows).then_some(2);
        let (audit, grid) = (Some(Span::from_millis(9)), in_rows.then_some(2));
        let settings = CarefulSettings { audit, lease, reserve, grid, ..Default::default() };
        hear(&mut Careful::new(NodeId(0), &CLUSTER, &settings).unwrap(), &frames);
    }

    #[test]
    fn a_traditional_node_stands_what_no_honest_peer_sends(frames in prop::collection::vec(frame(), 1..80)) {
        let settings = TraditionalSettings::default();
        hear(&mut Traditional::new(NodeId(0), &CLUSTER, &settings).unwrap(), &frames);
    }
}
