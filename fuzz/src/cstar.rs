//! A body for the frames of the message layer among nodes, and for layers that hear them.

use bytes::{Bytes, BytesMut};
use trunkline_core::{Span, Time};
use trunkline_transport::cstar::{
    Careful, CarefulSettings, Cluster, Destination, EventId, Flags, Fragment, Frame, Layer, NodeId,
    Source, Traditional, TraditionalSettings,
};

const CLUSTER: Cluster = Cluster { nodes: 4, receive_buffers: 24, send_buffers: 16, frame: 512 };

/// The layers of a node: the careful protocol with each of its schemes, and the traditional one.
fn layers() -> [Box<dyn Layer>; 5] {
    let careful = CarefulSettings { audit: Some(Span::from_millis(50)), ..Default::default() };
    let lends = CarefulSettings { lease: Some(Span::from_millis(20)), ..careful.clone() };
    let reserves = CarefulSettings { reserve: Some(2), ..careful.clone() };
    let hands_on = CarefulSettings { grid: Some(2), ..careful.clone() };
    [
        Box::new(Careful::new(NodeId(0), &CLUSTER, &careful).expect("possible")),
        Box::new(Careful::new(NodeId(0), &CLUSTER, &lends).expect("possible")),
        Box::new(Careful::new(NodeId(0), &CLUSTER, &reserves).expect("possible")),
        Box::new(Careful::new(NodeId(0), &CLUSTER, &hands_on).expect("possible")),
        Box::new(
            Traditional::new(NodeId(0), &CLUSTER, &TraditionalSettings::default())
                .expect("possible"),
        ),
    ]
}

/// Frames, each behind its length in two octets, and between them what a program does. What is read can be written and is
/// read the same; a layer that hears it all neither keeps more than it has buffers for, nor says more than it was asked. One
/// that hears octets and posts what it can does as one that is handed frames and is asked for each.
pub fn hear(data: &[u8]) {
    let (mut layers, mut others) = (layers(), layers());
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
        let frame = Frame::decode(octets.clone());
        if let Ok(frame) = &frame {
            let mut again = BytesMut::new();
            frame.encode(&mut again);
            assert_eq!(again.freeze(), octets);
        } else {
            event += 1;
        }
        for (layer, other) in layers.iter_mut().zip(&mut others) {
            let (layer, other) = (layer.as_mut(), other.as_mut());
            let said = match &frame {
                Ok(frame) => {
                    layer.arrive(now, frame.clone());
                    assert_eq!(other.hear(now, octets.clone()), Ok(frame.from));
                    [layer, other].map(|it| expires(it, now))
                }
                Err(_) => {
                    [act(layer, now, event, length, false), act(other, now, event, length, true)]
                }
            };
            let [said, otherwise] = said;
            assert_eq!(said, otherwise);
        }
    }
}

type Header = [u8; Frame::HEADER as usize];

fn expires(layer: &mut dyn Layer, now: Time) -> Vec<Header> {
    if layer.deadline().is_some_and(|deadline| deadline <= now) {
        layer.expire(now);
    }
    checked(layer, now, None)
}

/// The program sends, by a post if that can be, or receives and is done with what it has received. Returns what is said then.
fn act(layer: &mut dyn Layer, now: Time, event: u32, what: usize, posts: bool) -> Vec<Header> {
    let to = if what.is_multiple_of(3) { Destination::All } else { Destination::Node(NodeId(1)) };
    let flags = Flags { last: what % 5 != 1, crowd: what.is_multiple_of(3), large: false };
    let mut posted = None;
    if what.is_multiple_of(2) {
        let data = Bytes::from_static(b"word");
        let following = what as u32 % 40;
        let fragment = Fragment { to, event: EventId(event), flags, following, data };
        posted = if posts { layer.post(&fragment) } else { None };
        if posted.is_none() {
            let _ = layer.send(now, fragment);
        }
    } else if let Some(taken) = layer.receive(now, Source::Any, EventId(event % 8))
        && let Some(buffer) = taken.buffer
    {
        layer.release(now, buffer);
    }
    checked(layer, now, posted)
}

/// The headers of what is said, that which was posted first.
fn checked(layer: &mut dyn Layer, now: Time, posted: Option<Header>) -> Vec<Header> {
    let frames = std::iter::from_fn(|| layer.transmit(now)).map(|frame| frame.header());
    let said: Vec<Header> = posted.into_iter().chain(frames).collect();
    assert!(said.len() < 400, "a frame is answered by few");
    let memory = layer.memory();
    assert!(memory.receive <= CLUSTER.receive_buffers && memory.send <= CLUSTER.send_buffers);
    said
}
