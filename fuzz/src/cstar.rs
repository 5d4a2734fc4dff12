//! A body for the frames of the message layer among nodes, and for layers that hear them.

use bytes::{Bytes, BytesMut};
use trunkline_core::{Span, Time};
use trunkline_transport::cstar::{
    Careful, CarefulSettings, Cluster, Destination, EventId, Flags, Fragment, Frame, Layer, NodeId,
    Source, Traditional, TraditionalSettings,
};

const CLUSTER: Cluster = Cluster { nodes: 4, receive_buffers: 24, send_buffers: 16, frame: 512 };

/// Frames, each behind its length in two octets, and between them what a program does. What is read can be written and is
/// read the same; a layer that hears it all neither keeps more than it has buffers for, nor says more than it was asked.
pub fn hear(data: &[u8]) {
    let careful = CarefulSettings { audit: Some(Span::from_millis(50)), ..Default::default() };
    let lends = CarefulSettings { lease: Some(Span::from_millis(20)), ..careful.clone() };
    let reserves = CarefulSettings { reserve: Some(2), ..careful.clone() };
    let hands_on = CarefulSettings { grid: Some(2), ..careful.clone() };
    let mut layers: [Box<dyn Layer>; 5] = [
        Box::new(Careful::new(NodeId(0), &CLUSTER, &careful).expect("possible")),
        Box::new(Careful::new(NodeId(0), &CLUSTER, &lends).expect("possible")),
        Box::new(Careful::new(NodeId(0), &CLUSTER, &reserves).expect("possible")),
        Box::new(Careful::new(NodeId(0), &CLUSTER, &hands_on).expect("possible")),
        Box::new(
            Traditional::new(NodeId(0), &CLUSTER, &TraditionalSettings::default())
                .expect("possible"),
        ),
    ];
    let (mut rest, mut now, mut event) = (data, Time::ZERO, 0);
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (octets, behind) = behind.split_at(length);
        rest = behind;
        now += Span::from_millis(7);
        let octets = Bytes::copy_from_slice(octets);
        // Frames behind each other are told apart by this.
        let extent = Frame::extent(&octets);
        assert!((extent > 0 || octets.is_empty()) && extent <= octets.len());
        let Ok(frame) = Frame::decode(octets.clone()) else {
            event += 1;
            layers.iter_mut().for_each(|layer| act(layer.as_mut(), now, event, length));
            continue;
        };
        let mut again = BytesMut::new();
        frame.encode(&mut again);
        assert_eq!(again.freeze(), octets);
        layers.iter_mut().for_each(|layer| hears(layer.as_mut(), now, &frame));
    }
}

fn hears(layer: &mut dyn Layer, now: Time, frame: &Frame) {
    layer.arrive(now, frame.clone());
    if layer.deadline().is_some_and(|deadline| deadline <= now) {
        layer.expire(now);
    }
    check(layer, now);
}

/// The program sends, or receives and is done with what it has received.
fn act(layer: &mut dyn Layer, now: Time, event: u32, what: usize) {
    let to = if what.is_multiple_of(3) { Destination::All } else { Destination::Node(NodeId(1)) };
    let flags = Flags { last: what % 5 != 1, crowd: what.is_multiple_of(3), large: false };
    if what.is_multiple_of(2) {
        let data = Bytes::from_static(b"word");
        let following = what as u32 % 40;
        let _ = layer.send(now, Fragment { to, event: EventId(event), flags, following, data });
    } else if let Some(taken) = layer.receive(now, Source::Any, EventId(event % 8))
        && let Some(buffer) = taken.buffer
    {
        layer.release(now, buffer);
    }
    check(layer, now);
}

fn check(layer: &mut dyn Layer, now: Time) {
    let said = std::iter::from_fn(|| layer.transmit(now)).count();
    assert!(said < 400, "a frame is answered by few");
    let memory = layer.memory();
    assert!(memory.receive <= CLUSTER.receive_buffers && memory.send <= CLUSTER.send_buffers);
}
