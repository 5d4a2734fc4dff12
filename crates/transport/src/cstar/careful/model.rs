//! A model check of the careful protocol: every order in which few nodes with few buffers can send, hear and receive.
//!
//! The nodes are the real ones. A state is what they hold, without counters that only count on; states that differ by a
//! symmetry of the workload are one. Each node sends a bounded number of fragments, so that a circle of states holds no
//! data: it is an exchange of updates that can go on for ever. A state without a next one is an end or a deadlock.

use super::*;
use crate::cstar::Flags;
use crate::cstar::careful::peer::Peer;
use bytes::Bytes;
use std::collections::HashMap;
use trunkline_core::Span;

mod cases;
mod walks;

const AT: Time = Time::ZERO;

/// A cluster, who sends how much to whom, and the renumberings of its nodes that change nothing of that.
#[derive(Debug, Clone)]
struct Case {
    cluster: Cluster,
    settings: CarefulSettings,
    /// Fragments from one node to another.
    unicast: Vec<(u16, u16, u8)>,
    /// Fragments of each node to all.
    to_all: Vec<u8>,
    symmetries: Vec<Vec<usize>>,
    /// Whether applications receive nothing before they have sent everything.
    sends_first: bool,
}

/// What the search found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Found {
    states: usize,
    /// States in which nothing can happen though not all has been received.
    stuck: usize,
    /// States that lie on a circle or lead to none but such.
    circling: usize,
}

#[derive(Debug, Clone)]
struct State {
    nodes: Vec<Careful>,
    /// Frames under way from one node to another, at `from * P + to`.
    wires: Vec<VecDeque<Frame>>,
    /// Fragments not yet sent from one node to another.
    left: Vec<u8>,
    /// Fragments not yet sent to all.
    left_to_all: Vec<u8>,
    /// The buffer that each application holds, and whose fragment lies in it.
    held: Vec<Option<(BufferId, NodeId)>>,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Send(usize, usize),
    SendToAll(usize),
    Deliver(usize, usize),
    /// The application of the first receives what is there of the second, and lets go of what it held.
    Receive(usize, usize),
    Release(usize),
    /// A lease ends at a node, if one is under way.
    Lapse(usize),
}

impl State {
    fn start(case: &Case) -> State {
        let count = usize::from(case.cluster.nodes);
        let node = |me| Careful::new(NodeId(me), &case.cluster, &case.settings).unwrap();
        let mut left = vec![0; count * count];
        for &(from, to, fragments) in &case.unicast {
            left[usize::from(from) * count + usize::from(to)] = fragments;
        }
        State {
            nodes: (0..case.cluster.nodes).map(node).collect(),
            wires: vec![VecDeque::new(); count * count],
            left,
            left_to_all: case.to_all.clone(),
            held: vec![None; count],
        }
    }

    fn actions(&self) -> Vec<Action> {
        let count = self.nodes.len();
        let pairs = (0..count).flat_map(|one| (0..count).map(move |other| (one, other)));
        let mut actions = Vec::new();
        for (one, other) in pairs.filter(|(one, other)| one != other) {
            if self.left[one * count + other] > 0 {
                actions.push(Action::Send(one, other));
            }
            if !self.wires[one * count + other].is_empty() {
                actions.push(Action::Deliver(one, other));
            }
            if self.waiting(one, other).is_some() {
                actions.push(Action::Receive(one, other));
            }
        }
        for node in 0..count {
            if self.left_to_all[node] > 0 {
                actions.push(Action::SendToAll(node));
            }
            if self.held[node].is_some() {
                actions.push(Action::Release(node));
            }
            if self.nodes[node].loans.is_some_and(|loans| loans.ends.is_some()) {
                actions.push(Action::Lapse(node));
            }
        }
        actions
    }

    /// The event of the first fragment that waits at a node of another.
    fn waiting(&self, node: usize, from: usize) -> Option<EventId> {
        let shape = self.nodes[node].inbox.shape();
        shape.into_iter().find(|it| usize::from(it.1.0) == from).map(|it| it.0)
    }

    /// The state behind an action, if it can be done.
    fn after(&self, action: Action) -> Option<State> {
        let (mut next, count) = (self.clone(), self.nodes.len());
        let node = match action {
            Action::Send(from, to) => {
                next.left[from * count + to] -= 1;
                let event = u32::from(next.left[from * count + to]);
                if !next.send(from, Destination::Node(NodeId(to as u16)), event) {
                    next.left[from * count + to] += 1;
                    if next.nodes[from].out.is_empty() {
                        return None;
                    }
                }
                from
            }
            Action::SendToAll(from) => {
                next.left_to_all[from] -= 1;
                let event = 100 + u32::from(next.left_to_all[from]);
                if !next.send(from, Destination::All, event) {
                    return None;
                }
                from
            }
            Action::Deliver(from, to) => {
                let frame = next.wires[from * count + to].pop_front()?;
                next.nodes[to].arrive(AT, frame);
                to
            }
            Action::Receive(node, from) => {
                let event = next.waiting(node, from)?;
                next.release(node);
                let from = NodeId(from as u16);
                let delivery = next.nodes[node].receive(AT, Source::Node(from), event)?;
                next.held[node] = delivery.buffer.map(|buffer| (buffer, from));
                node
            }
            Action::Release(node) => {
                next.release(node);
                node
            }
            Action::Lapse(node) => {
                next.nodes[node].lease_over(AT);
                node
            }
        };
        next.transmit(node);
        Some(next)
    }

    /// Whether it can be sent. If not, room may have been asked for.
    fn send(&mut self, from: usize, to: Destination, event: u32) -> bool {
        let flags = Flags { last: true, ..Flags::default() };
        let following = match to {
            Destination::Node(to) => self.left[from * self.nodes.len() + usize::from(to.0)].into(),
            Destination::All => 0,
        };
        let (event, data) = (EventId(event), Bytes::new());
        let fragment = Fragment { to, event, flags, following, data };
        self.nodes[from].send(AT, fragment).is_ok()
    }

    fn release(&mut self, node: usize) {
        if let Some((buffer, _)) = self.held[node].take() {
            self.nodes[node].release(AT, buffer);
        }
    }

    fn transmit(&mut self, from: usize) {
        let count = self.nodes.len();
        while let Some(frame) = self.nodes[from].transmit(AT) {
            let receivers: Vec<usize> = match frame.to {
                Destination::Node(to) => vec![usize::from(to.0)],
                Destination::All => (0..count).filter(|&to| to != from).collect(),
            };
            for to in receivers {
                self.wires[from * count + to].push_back(frame.clone());
            }
        }
    }

    fn has_sent(&self, node: usize) -> bool {
        let count = self.nodes.len();
        let left = &self.left[node * count..(node + 1) * count];
        self.left_to_all[node] == 0 && left.iter().all(|&left| left == 0)
    }

    fn is_end(&self) -> bool {
        let sent = self.left.iter().chain(&self.left_to_all).all(|&left| left == 0);
        sent && self.wires.iter().all(VecDeque::is_empty)
            && self.nodes.iter().all(|node| node.inbox.shape().is_empty())
    }

    /// Nobody has failed, no buffer is used twice, and each credit of each window is in one place.
    fn check(&self) {
        let count = self.nodes.len();
        for (from, to) in (0..count * count).map(|pair| (pair / count, pair % count)) {
            if from == to {
                continue;
            }
            let (one, other) = (&self.nodes[from], &self.nodes[to]);
            assert_eq!(one.failure(), None);
            assert!(one.memory().receive <= one.cluster.receive_buffers);
            let window = one.window;
            let of = |node: &Careful, peer: usize| {
                let known = node.peers.get(NodeId(peer as u16)).copied();
                known.unwrap_or_else(|| Peer::new(window))
            };
            let (sender, receiver) = (of(one, to), of(other, from));
            let wire = &self.wires[from * count + to];
            let there: u32 = wire.iter().map(|frame| 1 + u32::from(frame.back)).sum();
            let back: u32 =
                self.wires[to * count + from].iter().map(|frame| u32::from(frame.grant)).sum();
            assert_eq!(sender.ours + there + back, receiver.theirs);
            let all = receiver.theirs + receiver.held + receiver.owed;
            assert_eq!(all, receiver.window + receiver.lent + receiver.reserved);
            assert!(other.opens(one.me, receiver), "{other:?} keeps {} waiting", one.me);
        }
        for node in &self.nodes {
            let lent: u32 = node.peers.values().map(|peer| peer.lent + peer.reserved).sum();
            let pool = || node.cluster.receive_buffers - node.window * count as u32;
            assert!(node.loans.is_none_or(|loans| loans.free + lent == pool()));
        }
    }

    /// What tells states apart, with node `order[i]` in the place of node i.
    fn key(&self, order: &[usize]) -> Vec<u8> {
        let (count, mut key) = (self.nodes.len(), Vec::new());
        for &one in order {
            let node = &self.nodes[one];
            let held = self.held[one].map(|(_, from)| usize::from(from.0));
            let shape = node.inbox.shape();
            key.push(self.left_to_all[one]);
            key.push(u8::from(node.loans.is_some_and(|loans| loans.ends.is_some())));
            for &other in order.iter().filter(|&&other| other != one) {
                let id = NodeId(other as u16);
                let peer = node.peers.get(id).copied().unwrap_or_else(|| Peer::new(node.window));
                let due = u8::from(node.due.contains(&id)) | u8::from(held == Some(other)) << 1;
                key.extend([self.left[one * count + other], peer.ours as u8, peer.theirs as u8]);
                key.extend([peer.held as u8, peer.owed as u8, due]);
                key.extend([peer.lent as u8, peer.recent as u8, u8::from(peer.used)]);
                key.extend([peer.reserved as u8, u8::from(peer.promised), u8::from(peer.asked)]);
                let asking = node.asking.iter().position(|it| it.0 == id);
                key.push(asking.map_or(253, |place| place as u8));
                key.push(asking.map_or(0, |place| node.asking[place].1 as u8));
                for frame in &self.wires[one * count + other] {
                    let is_data = u8::from(frame.kind == Kind::Careful);
                    let event = frame.event.0 as u8 * is_data;
                    key.extend([is_data, frame.grant as u8, frame.back as u8, event]);
                    key.push(frame.asks as u8);
                    key.extend(ends(frame, order));
                }
                key.push(254);
                for frame in node.transit.queue(id) {
                    key.push(frame.event.0 as u8);
                    key.extend(ends(frame, order));
                }
                key.push(254);
                for (event, _, on_board) in shape.iter().filter(|it| it.1 == id) {
                    key.extend([event.0 as u8, u8::from(*on_board)]);
                }
                key.push(255);
            }
        }
        key
    }
}

impl Careful {
    /// Whether a peer has a window for data, is due an update, or will be when what the application and other nodes have of
    /// its frames comes free: nothing else of it lies in a buffer. With windows of 2 and 1 that is not always so.
    fn opens(&self, from: NodeId, peer: Peer) -> bool {
        let is_theirs = |buffer| self.buffers.owner(buffer) == Some(from);
        peer.window < self.settings.least_window()
            || peer.theirs >= 2
            || peer.is_due(self.settings.at_half)
            || self.inbox.clone().latest_on_board(is_theirs).is_none()
    }
}

/// The ends of a frame's way, as nodes are numbered by their places in `order`.
fn ends(frame: &Frame, order: &[usize]) -> [u8; 2] {
    let place = |NodeId(node)| order.iter().position(|&it| it == usize::from(node));
    let number = |node| place(node).map_or(252, |place| place as u8);
    let to = |to| if let Destination::Node(node) = to { number(node) } else { 251 };
    frame.route.map_or([250; 2], |route| [number(route.origin), to(route.target)])
}

impl Case {
    fn new(nodes: u16, receive_buffers: u32, unicast: &[(u16, u16, u8)]) -> Case {
        Case {
            cluster: Cluster { nodes, receive_buffers, send_buffers: 1, frame: 1 },
            settings: CarefulSettings { literal: true, ..CarefulSettings::default() },
            unicast: unicast.to_vec(),
            to_all: vec![0; usize::from(nodes)],
            symmetries: vec![(0..usize::from(nodes)).collect()],
            sends_first: false,
        }
    }

    fn at_half(mut self) -> Case {
        self.settings.at_half = true;
        self
    }

    fn adaptive(mut self) -> Case {
        self.settings.lease = Some(Span::from_millis(1));
        self
    }

    fn reserving(mut self) -> Case {
        self.settings.reserve = Some(2);
        self
    }

    fn in_rows_of(mut self, columns: u16) -> Case {
        self.settings.grid = Some(columns);
        self
    }

    fn without_piggyback(mut self) -> Case {
        self.settings.piggyback = false;
        self
    }

    fn sends_first(mut self) -> Case {
        self.sends_first = true;
        self
    }

    fn symmetries(mut self, orders: &[&[usize]]) -> Case {
        self.symmetries = orders.iter().map(|order| order.to_vec()).collect();
        self
    }

    fn broadcasts(mut self, fragments: &[u8]) -> Case {
        self.to_all = fragments.to_vec();
        self
    }

    fn key(&self, state: &State) -> Vec<u8> {
        let keys = self.symmetries.iter().map(|order| state.key(order));
        keys.min().unwrap_or_default()
    }

    /// What can happen next, but for what the applications do not do.
    fn actions(&self, state: &State) -> Vec<Action> {
        let done = |action: &Action| match *action {
            Action::Receive(node, _) => !self.sends_first || state.has_sent(node),
            _ => true,
        };
        state.actions().into_iter().filter(done).collect()
    }

    fn nexts(&self, state: &State) -> Vec<State> {
        let actions = self.actions(state).into_iter();
        actions.filter_map(|action| state.after(action)).collect()
    }

    /// Goes to every state that can be reached, the nearest first.
    fn explore(&self) -> Found {
        let start = State::start(self);
        let mut known = HashMap::from([(self.key(&start), 0_usize)]);
        let (mut queue, mut next_of) = (VecDeque::from([start]), Vec::new());
        let mut stuck = 0;
        while let Some(state) = queue.pop_front() {
            state.check();
            let nexts = self.nexts(&state);
            stuck += usize::from(nexts.is_empty() && !state.is_end());
            let mut edges = Vec::new();
            for next in nexts {
                let new = known.len();
                let number = *known.entry(self.key(&next)).or_insert(new);
                edges.push(number);
                if number == new {
                    queue.push_back(next);
                }
            }
            next_of.push(edges);
        }
        Found { states: next_of.len(), stuck, circling: circling(&next_of) }
    }
}

/// How many states are left when those that no others lead to are taken away again and again: 0 if there is no circle.
fn circling(next_of: &[Vec<usize>]) -> usize {
    let mut leading = vec![0_usize; next_of.len()];
    next_of.iter().flatten().for_each(|&next| leading[next] += 1);
    let mut free: Vec<usize> = (0..next_of.len()).filter(|&state| leading[state] == 0).collect();
    let mut taken = 0;
    while let Some(state) = free.pop() {
        taken += 1;
        for &next in &next_of[state] {
            leading[next] -= 1;
            if leading[next] == 0 {
                free.push(next);
            }
        }
    }
    next_of.len() - taken
}
