//! What has come: whether it may be here, and where it goes.

use super::Careful;
use super::audit::is_audit;
use super::reserve::MOST_ASKED;
use crate::cstar::frame::Head;
use crate::cstar::inbox::{Put, Stored};
use crate::cstar::{
    Destination, EventId, Failure, Flags, Frame, FrameError, Kind, NodeId, Operation,
};
use bytes::Bytes;
use trunkline_core::Time;

impl Careful {
    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Whether it is the next fragment of a peer that sends to this node alone, within the window, and nothing besides: as
    /// nearly all are. Nothing changes.
    #[inline]
    pub(super) fn is_next(&mut self, head: &Head) -> bool {
        let plain = head.kind == Kind::Careful
            && head.to == Destination::Node(self.me)
            && self.grid.is_none()
            && self.loans.is_none()
            && self.failure.is_none();
        let peer = self.peers.latest(head.from).filter(|_| plain);
        peer.is_some_and(|it| {
            it.expected == head.counter
                && it.theirs > 0
                && it.ours + u32::from(head.grant) <= it.window
        })
    }

    /// Takes in a fragment that is [next](Careful::is_next).
    #[inline]
    pub(super) fn take_in(&mut self, now: Time, head: &Head, data: Bytes) {
        let &Head { from, event, fragment, flags, grant, .. } = head;
        if !self.questions.is_empty() {
            self.talks(now, from);
        }
        let peer = self.peer(from);
        peer.expected = peer.expected.wrapping_add(1);
        peer.credit(grant);
        peer.recent = peer.recent.saturating_add(1);
        peer.held += 1;
        let has_half = peer.has_half();
        self.note_arrival();
        self.tally.note(Operation::SkipCopyOut);
        let buffer = Some(self.buffers.take(from, 1));
        self.store(event, flags, Stored { from, fragment, data, buffer });
        if !has_half {
            self.copy_out(from);
        }
    }

    /// Takes in any frame.
    pub(super) fn arrive_any(&mut self, now: Time, frame: Frame) {
        if self.failure.is_some() || !self.is_justified(&frame) {
            return;
        }
        let from = frame.from;
        if is_audit(&frame) {
            if frame.again {
                self.peer(from).vain = 0;
            }
            if frame.wants_ack {
                self.is_audited(now, from);
            }
            return;
        }
        self.talks(now, from);
        let peer = self.peer(from);
        peer.credit(frame.grant);
        peer.recent = peer.recent.saturating_add(u32::from(frame.kind == Kind::Careful));
        if let Some(loans) = &mut self.loans {
            loans.begin(now);
        }
        let lends = self.loans.is_some();
        if (lends || frame.back > 0) && !self.given_back(from, frame.back) {
            let what = "it gives back more than it was lent";
            return self.fail(Failure::Protocol { peer: from, what });
        }
        if self.settings.reserve.is_some() {
            self.is_asked(from, frame.asks);
            self.settle(from);
        }
        self.note_arrival();
        if frame.kind == Kind::Update {
            self.freed(from, 0);
        } else {
            self.keep(frame);
            self.tally.note(Operation::SkipCopyOut);
        }
        // An update takes a credit too: data that wait may have to make room for the last ones.
        self.copy_out(from);
    }

    /// Reads any frame and takes it in. Returns who sent it.
    #[inline(never)]
    pub(super) fn hear_any(&mut self, now: Time, octets: Bytes) -> Result<NodeId, FrameError> {
        let frame = Frame::decode(octets)?;
        let from = frame.from;
        self.arrive_any(now, frame);
        Ok(from)
    }

    #[inline]
    fn note_arrival(&mut self) {
        self.tally.note(Operation::ProcessUpdate);
        self.tally.note(Operation::TrackEvent);
        self.tally.note(Operation::ShrinkSender);
    }

    /// Whether any frame may be here; it is a failure if not.
    fn is_justified(&mut self, frame: &Frame) -> bool {
        let (peer, event) = (frame.from, frame.event);
        let known = peer.0 < self.cluster.nodes && peer != self.me;
        let known = known && (self.grid.is_none() || self.peers.get(peer).is_some());
        if !known || !matches!(frame.kind, Kind::Careful | Kind::Update) {
            let what = if known { "it sent a frame of another protocol" } else { "it is no peer" };
            self.fail(Failure::Protocol { peer, what });
            return false;
        }
        let to_all = frame.to == Destination::All;
        let lends = self.loans.map(|_| self.cluster.receive_buffers);
        let it = self.peer(peer);
        let most = lends.unwrap_or(it.window);
        let audits = is_audit(frame);
        let missing = match audits {
            true => it.ahead(frame.counter),
            false => it.counted(to_all, frame.counter),
        };
        let of_all = frame.fragment.wrapping_sub(it.expected_of_all);
        let missing = match frame.kind {
            Kind::Update if missing == 0 => of_all,
            _ => missing,
        };
        let failure = match missing {
            0 if it.theirs == 0 && !audits => Failure::Overrun { peer, event },
            0 if it.ours + u32::from(frame.grant) > most => {
                Failure::Protocol { peer, what: "it granted more than its window" }
            }
            0 if frame.back > 0 && frame.kind != Kind::Update => {
                Failure::Protocol { peer, what: "it gives back with data" }
            }
            0 if frame.asks > MOST_ASKED || frame.asks > 0 && !self.may_ask(frame.kind) => {
                Failure::Protocol { peer, what: "it asks for room that is not to be had so" }
            }
            0 if self.is_astray(frame) => {
                Failure::Protocol { peer, what: "it sends what is not on its way" }
            }
            0 => return true,
            1..=0x7fff_ffff => Failure::Lost { peer, event, missing },
            _ => Failure::Disordered { peer, event },
        };
        self.fail(failure);
        false
    }

    /// Keeps a frame with a fragment: for the application, for nodes to which it is handed on, or for both.
    fn keep(&mut self, frame: Frame) {
        let buffer = self.take_buffer(frame.from, self.users(&frame));
        self.hand_on(&frame, buffer);
        if self.is_for_me(&frame) {
            let (from, Frame { event, fragment, flags, data, .. }) = (frame.origin(), frame);
            self.store(event, flags, Stored { from, fragment, data, buffer: Some(buffer) });
        }
    }

    /// Stores a fragment for the application.
    #[inline]
    fn store(&mut self, event: EventId, flags: Flags, stored: Stored) {
        let peer = stored.from;
        match self.inbox.put(event, flags, stored) {
            Put::New => {}
            wrong => self.is_misplaced(peer, wrong),
        }
    }

    /// A fragment could not be stored.
    #[cold]
    fn is_misplaced(&mut self, peer: NodeId, why: Put) {
        let what = match why {
            Put::Crowded(events) => return self.fail(Failure::Events { events }),
            // Its frames came once and in order, as their counters tell.
            Put::Copy => "its program sends two messages to this node under one event",
            _ => "its fragments are numbered beyond reason",
        };
        self.fail(Failure::Protocol { peer, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cstar::careful::peer::Peer;
    use crate::cstar::{CarefulSettings, Cluster, Fragment, Layer, Route};
    use bytes::BytesMut;
    use trunkline_core::{Seed, Stream};

    const CLUSTER: Cluster =
        Cluster { nodes: 3, receive_buffers: 12, send_buffers: 12, frame: 100 };
    const AT: Time = Time::ZERO;

    fn one_of(random: &mut Stream, values: &[u32]) -> u32 {
        values[random.below(values.len() as u64) as usize]
    }

    /// A node somewhere on its way with node 1.
    fn node(random: &mut Stream, reserves: bool) -> Careful {
        let reserve = reserves.then_some(4);
        let settings = CarefulSettings { reserve, ..CarefulSettings::default() };
        let mut node = Careful::new(NodeId(0), &CLUSTER, &settings).unwrap();
        *node.peer(NodeId(1)) = Peer {
            ours: one_of(random, &[0, 1, 3, 4]),
            theirs: one_of(random, &[0, 1, 4, 4]),
            owed: one_of(random, &[0, 0, 2]),
            expected: one_of(random, &[0, 7, u32::MAX]),
            ..Peer::new(4)
        };
        node
    }

    fn frame(random: &mut Stream) -> Frame {
        let mut one_of = |values: &[u32]| one_of(random, values);
        let route = Route { origin: NodeId(2), target: Destination::All };
        Frame {
            kind: [Kind::Careful, Kind::Update][one_of(&[0, 0, 0, 1]) as usize],
            flags: Flags { last: one_of(&[0, 1]) > 0, ..Flags::default() },
            wants_ack: false,
            again: false,
            from: NodeId(one_of(&[0, 1, 1, 1, 2, 3]) as u16),
            to: [Destination::Node(NodeId(0)), Destination::All][one_of(&[0, 0, 0, 1]) as usize],
            event: EventId(1),
            fragment: one_of(&[0, 0, 1, 1 << 20]),
            grant: one_of(&[0, 0, 1, 4]) as u16,
            back: one_of(&[0, 0, 0, 1]) as u16,
            complete: EventId(0),
            asks: 0,
            route: [None, Some(route)][one_of(&[0, 0, 0, 1]) as usize],
            counter: one_of(&[0, 7, u32::MAX]),
            data: Bytes::from_static(b"four"),
            list: Vec::new(),
        }
    }

    /// All that a node holds but the place of the peer that it changed last.
    fn state(node: &Careful) -> String {
        let mut all = node.clone();
        all.peer(NodeId(1));
        format!("{all:?}")
    }

    /// A fragment that is next is taken in as any frame is, and its octets are.
    #[test]
    fn what_is_next_is_taken_in_as_any_frame() {
        let mut random = Seed(14).stream("frames");
        let (mut next, mut good) = (0, 0);
        for round in 0..20_000 {
            let mut node = node(&mut random, round % 5 == 0);
            let mut frame = frame(&mut random);
            if frame.kind == Kind::Update {
                frame.route = None;
            }
            let mut octets = BytesMut::new();
            frame.encode(&mut octets);
            let (mut plain, mut heard) = (node.clone(), node.clone());
            node.arrive_any(AT, frame.clone());
            good += u32::from(node.failure().is_none());
            next += u32::from(Head::of(&frame).is_some_and(|head| plain.is_next(&head)));
            plain.arrive(AT, frame.clone());
            assert_eq!(heard.hear(AT, octets.freeze()), Ok(frame.from));
            assert_eq!(state(&plain), state(&node), "{frame:?}");
            assert_eq!(state(&heard), state(&node), "{frame:?}");
        }
        assert!(next > 200 && good > next + 200, "{next} of {good}");
    }

    /// What is posted is what would be sent, octet for octet, and leaves the node the same.
    #[test]
    fn what_is_posted_is_what_would_be_sent() {
        let mut random = Seed(15).stream("fragments");
        let mut posted = 0;
        for round in 0..10_000 {
            let mut sends = node(&mut random, round % 5 == 0);
            if one_of(&mut random, &[0, 0, 0, 1]) > 0 {
                sends.audits(AT);
                sends.asked.insert(NodeId(2));
            }
            let mut posts = sends.clone();
            let to = match one_of(&mut random, &[0, 1, 1, 2]) {
                0 => Destination::All,
                node => Destination::Node(NodeId(node as u16)),
            };
            let flags = Flags { last: one_of(&mut random, &[0, 1]) > 0, ..Flags::default() };
            let (event, data) =
                (EventId(one_of(&mut random, &[0, 5])), Bytes::from_static(b"word"));
            let fragment = Fragment { to, event, flags, following: 0, data };
            let before = state(&posts);
            let Some(header) = posts.post(&fragment) else {
                assert_eq!(state(&posts), before);
                continue;
            };
            posted += 1;
            sends.send(AT, fragment).unwrap();
            assert_eq!(sends.transmit(AT).unwrap().header(), header);
            let rest = |node: &mut Careful| -> Vec<Frame> {
                std::iter::from_fn(|| node.transmit(AT)).collect()
            };
            assert_eq!(rest(&mut posts), rest(&mut sends));
            assert!(!posts.has_frames());
            assert_eq!(state(&posts), state(&sends));
        }
        assert!(posted > 2000, "{posted}");
    }
}
