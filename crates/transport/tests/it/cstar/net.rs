//! A cluster in one process: random programs, over a network in which whatever can happen next is drawn.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};
use trunkline_core::{Probability, Seed, Span, Stream, Time};
use trunkline_transport::cstar::{
    BufferId, Destination, EventId, Failure, Flags, Fragment, Frame, Kind, Layer, NodeId, Source,
    Status,
};

/// Who sends under an event.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Every node, to all others.
    Crowd,
    /// Every node, to the one so many behind it.
    Shift(u16),
    /// One node, to all others.
    One(u16),
}

/// What all nodes do.
#[derive(Debug, Clone)]
pub struct Plan {
    pub nodes: u16,
    /// Who sends under each event, and how many fragments.
    pub events: Vec<(Shape, u8)>,
    /// How many events a node sends under before it receives the first.
    pub ahead: usize,
    /// In how many of 100 cases a program rests though it could go on.
    pub sloth: u64,
    pub seed: u64,
}

/// Programs of up to `nodes` nodes and so many events.
pub fn plan(nodes: u16, events: usize, ahead: usize) -> impl Strategy<Value = Plan> {
    let event = |nodes: u16| {
        let shape = prop_oneof![
            Just(Shape::Crowd),
            (1..nodes).prop_map(Shape::Shift),
            (0..nodes).prop_map(Shape::One),
        ];
        (shape, 1_u8..5)
    };
    let all = move |nodes| {
        let events = prop::collection::vec(event(nodes), 1..events);
        (Just(nodes), events, 0..=ahead, 0_u64..100, any::<u64>())
    };
    (2..=nodes).prop_flat_map(all).prop_map(|(nodes, events, ahead, sloth, seed)| Plan {
        nodes,
        events,
        ahead,
        sloth,
        seed,
    })
}

/// What a program does next.
#[derive(Debug, Clone)]
enum Op {
    Send(Fragment),
    Receive(EventId),
}

type Label = (u16, u32, u32);

fn octets(from: u16, event: u32, fragment: u32) -> Bytes {
    let (event, fragment) = (event.to_be_bytes(), fragment.to_be_bytes());
    [from.to_be_bytes().as_slice(), &event, &fragment].concat().into()
}

impl Plan {
    fn send(&self, me: u16, event: usize) -> Vec<Op> {
        let (shape, fragments) = self.events[event];
        let to = match shape {
            Shape::Crowd => Destination::All,
            Shape::Shift(by) => Destination::Node(NodeId((me + by) % self.nodes)),
            Shape::One(node) if node == me => Destination::All,
            Shape::One(_) => return Vec::new(),
        };
        let (event, crowd) = (event as u32, matches!(shape, Shape::Crowd));
        let fragment = |number: u8| {
            let flags = Flags { last: number + 1 == fragments, crowd, large: fragments > 1 };
            let data = octets(me, event, u32::from(number));
            let following = u32::from(fragments - number - 1);
            Op::Send(Fragment { to, event: EventId(event), flags, following, data })
        };
        (0..fragments).map(fragment).collect()
    }

    /// The fragments that a node gets under an event.
    fn expected(&self, me: u16, event: usize) -> Vec<Label> {
        let (shape, fragments) = self.events[event];
        let senders: Vec<u16> = match shape {
            Shape::Crowd => (0..self.nodes).filter(|&node| node != me).collect(),
            Shape::Shift(by) => vec![(me + self.nodes - by) % self.nodes],
            Shape::One(node) if node == me => Vec::new(),
            Shape::One(node) => vec![node],
        };
        let of = |node| (0..fragments).map(move |number| (node, event as u32, u32::from(number)));
        senders.into_iter().flat_map(of).collect()
    }

    fn program(&self, me: u16) -> VecDeque<Op> {
        let mut ops = Vec::new();
        let receive = |event: usize| {
            let any = !self.expected(me, event).is_empty();
            any.then_some(Op::Receive(EventId(event as u32)))
        };
        for event in 0..self.events.len() {
            ops.extend(self.send(me, event));
            ops.extend(event.checked_sub(self.ahead).and_then(receive));
        }
        ops.extend(
            (self.events.len().saturating_sub(self.ahead)..self.events.len()).filter_map(receive),
        );
        ops.into()
    }
}

/// What a network does to frames.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    pub loss: Probability,
    pub duplication: Probability,
    /// Whether frames overtake each other between two nodes.
    pub disorder: bool,
    /// What happens to one frame, counted as they come.
    pub one: Option<(u64, Fault)>,
}

/// What happens to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    Lost,
    Twice,
    Damaged,
}

pub const NONE: Faults = Faults {
    loss: Probability::NEVER,
    duplication: Probability::NEVER,
    disorder: false,
    one: None,
};

/// How a run ended, if not well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stopped {
    Failed(u16, Failure),
    /// All wait, nothing is under way and nothing is due.
    Deadlocked,
    /// Frames flow, and the programs do not end or the frames do not cease.
    Endless,
}

struct Peer {
    layer: Box<dyn Layer>,
    program: VecDeque<Op>,
    held: Option<BufferId>,
    ready: bool,
    seen: BTreeSet<Label>,
}

/// A run under way.
pub struct Net {
    plan: Plan,
    faults: Faults,
    buffers: u32,
    peers: Vec<Peer>,
    wires: Vec<Vec<Frame>>,
    random: Stream,
    now: Time,
    delivered: u64,
    /// Frames that only updated a window, and fragments.
    pub updates: u64,
    pub fragments: u64,
}

/// Happenings after which a run is given up.
const MOST: u32 = 400_000;

impl Net {
    /// The nodes of a plan, whose ends `layer` makes and who have so many receive buffers each.
    pub fn new(
        plan: &Plan,
        faults: Faults,
        buffers: u32,
        layer: impl Fn(NodeId) -> Box<dyn Layer>,
    ) -> Net {
        let peer = |me| Peer {
            layer: layer(NodeId(me)),
            program: plan.program(me),
            held: None,
            ready: true,
            seen: BTreeSet::new(),
        };
        Net {
            peers: (0..plan.nodes).map(peer).collect(),
            wires: vec![Vec::new(); usize::from(plan.nodes).pow(2)],
            random: Seed(plan.seed).stream("network"),
            plan: plan.clone(),
            faults,
            buffers,
            now: Time::ZERO,
            delivered: 0,
            updates: 0,
            fragments: 0,
        }
    }

    /// Runs until all programs have ended and no frame is under way, and checks what they got.
    pub fn run(&mut self) -> Result<(), Stopped> {
        for _ in 0..MOST {
            let ended = self.peers.iter().all(|peer| peer.program.is_empty());
            if ended && self.wires.iter().all(Vec::is_empty) {
                self.check_all();
                return Ok(());
            }
            self.happen()?;
        }
        Err(Stopped::Endless)
    }

    fn happen(&mut self) -> Result<(), Stopped> {
        self.now += Span::from_micros(1);
        let ready = |node: &usize| self.peers[*node].ready && !self.peers[*node].program.is_empty();
        let steps: Vec<usize> = (0..self.peers.len()).filter(ready).collect();
        let wires: Vec<usize> =
            (0..self.wires.len()).filter(|&wire| !self.wires[wire].is_empty()).collect();
        let rests = self.random.below(100) < self.plan.sloth;
        if !steps.is_empty() && (wires.is_empty() || !rests) {
            let node = steps[self.random.below(steps.len() as u64) as usize];
            self.step(node);
        } else if !wires.is_empty() {
            let wire = wires[self.random.below(wires.len() as u64) as usize];
            self.deliver(wire);
        } else {
            let deadlines = self.peers.iter().filter_map(|peer| peer.layer.deadline());
            self.now = self.now.max(deadlines.min().ok_or(Stopped::Deadlocked)?);
        }
        self.due();
        self.check()
    }

    fn step(&mut self, node: usize) {
        let now = self.now;
        let peer = &mut self.peers[node];
        if let Some(buffer) = peer.held.take() {
            peer.layer.release(now, buffer);
        }
        match peer.program.pop_front() {
            Some(Op::Send(fragment)) => self.send(node, fragment),
            Some(Op::Receive(event)) => self.receive(node, event),
            None => {}
        }
        // A program that has ended has done with what it received last.
        let peer = &mut self.peers[node];
        if peer.program.is_empty()
            && let Some(buffer) = peer.held.take()
        {
            peer.layer.release(now, buffer);
        }
        self.transmit(node);
    }

    /// Nodes of odd numbers post what they can and hear octets; the others queue what they send and are handed frames.
    fn send(&mut self, node: usize, fragment: Fragment) {
        let peer = &mut self.peers[node];
        let posted = if node % 2 == 1 { peer.layer.post(&fragment) } else { None };
        if let Some(header) = posted {
            let octets = [&header[..], &fragment.data].concat();
            let frame = Frame::decode(octets.into()).expect("a header and its octets are a frame");
            return self.carry(node, frame);
        }
        if let Err(blocked) = peer.layer.send(self.now, fragment) {
            peer.program.push_front(Op::Send(blocked.into_fragment()));
            peer.ready = false;
        }
    }

    fn hear(&mut self, node: usize, frame: Frame) {
        let layer = &mut self.peers[node].layer;
        if node.is_multiple_of(2) {
            return layer.arrive(self.now, frame);
        }
        let mut octets = BytesMut::new();
        frame.encode(&mut octets);
        assert_eq!(layer.hear(self.now, octets.freeze()), Ok(frame.from));
    }

    /// What is delivered is what its sender sent, and comes once.
    fn receive(&mut self, node: usize, event: EventId) {
        let peer = &mut self.peers[node];
        let Some(delivery) = peer.layer.receive(self.now, Source::Any, event) else {
            peer.program.push_front(Op::Receive(event));
            peer.ready = false;
            return;
        };
        let label = (delivery.from.0, delivery.event.0, delivery.fragment);
        assert_eq!(delivery.data, octets(label.0, label.1, label.2));
        assert!(peer.seen.insert(label), "{label:?} twice at {node}");
        peer.held = delivery.buffer;
        if delivery.status != Status::EventDone {
            peer.program.push_front(Op::Receive(event));
        }
    }

    fn deliver(&mut self, wire: usize) {
        let frames = self.wires[wire].len() as u64;
        let place = if self.faults.disorder { self.random.below(frames) } else { 0 };
        let frame = self.wires[wire].remove(place as usize);
        let node = wire % self.peers.len();
        let of_one = self.faults.one.filter(|it| it.0 == self.delivered).map(|it| it.1);
        self.delivered += 1;
        let lost = self.random.happens(self.faults.loss) || of_one == Some(Fault::Lost);
        let twice = self.random.happens(self.faults.duplication) || of_one == Some(Fault::Twice);
        if of_one == Some(Fault::Damaged) {
            self.peers[node].layer.damaged(self.now);
        } else if !lost {
            if twice {
                self.wires[wire].push(frame.clone());
            }
            self.hear(node, frame);
        }
        self.heard(node);
    }

    fn heard(&mut self, node: usize) {
        self.peers[node].ready = true;
        self.transmit(node);
    }

    fn transmit(&mut self, from: usize) {
        while let Some(frame) = self.peers[from].layer.transmit(self.now) {
            self.carry(from, frame);
        }
    }

    fn carry(&mut self, from: usize, frame: Frame) {
        let count = self.peers.len();
        self.updates += u64::from(frame.kind == Kind::Update);
        self.fragments += u64::from(matches!(frame.kind, Kind::Careful | Kind::Traditional));
        match frame.to {
            Destination::Node(to) => self.wires[from * count + usize::from(to.0)].push(frame),
            Destination::All => {
                for to in (0..count).filter(|&to| to != from) {
                    self.wires[from * count + to].push(frame.clone());
                }
            }
        }
    }

    fn due(&mut self) {
        for node in 0..self.peers.len() {
            if self.peers[node].layer.deadline().is_some_and(|deadline| deadline <= self.now) {
                self.peers[node].layer.expire(self.now);
                self.heard(node);
            }
        }
    }

    fn check(&self) -> Result<(), Stopped> {
        for (peer, node) in self.peers.iter().zip(0..) {
            assert!(peer.layer.memory().receive_most <= self.buffers);
            if let Some(failure) = peer.layer.failure() {
                return Err(Stopped::Failed(node, failure.clone()));
            }
        }
        Ok(())
    }

    fn check_all(&self) {
        for (peer, node) in self.peers.iter().zip(0..) {
            let events = 0..self.plan.events.len();
            let expected: BTreeSet<Label> =
                events.flat_map(|event| self.plan.expected(node, event)).collect();
            assert_eq!(peer.seen, expected, "at {node}");
        }
    }
}
