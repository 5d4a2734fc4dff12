//! What has come: whether it may be here, and where it goes.

use super::Careful;
use super::audit::is_audit;
use super::peer::Peer;
use super::reserve::MOST_ASKED;
use crate::cstar::inbox::{Put, Stored};
use crate::cstar::{BufferId, Destination, Failure, Frame, Kind};

impl Careful {
    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Whether a frame may be here: it is the next of its sender, which had a credit for it.
    #[inline]
    pub(super) fn is_promised(&mut self, frame: &Frame) -> bool {
        self.is_plain(frame) || self.is_justified(frame)
    }

    /// Whether it is the next fragment of a peer that sends to this node alone, within the window, and nothing besides: as
    /// nearly all are.
    #[inline]
    fn is_plain(&mut self, frame: &Frame) -> bool {
        let plain = frame.kind == Kind::Careful
            && frame.to == Destination::Node(self.me)
            && frame.route.is_none()
            && frame.asks == 0
            && frame.back == 0
            && self.grid.is_none()
            && self.loans.is_none();
        let peer = self.peers.latest(frame.from);
        let next = |it: &&mut Peer| {
            it.expected == frame.counter
                && it.theirs > 0
                && it.ours + u32::from(frame.grant) <= it.window
        };
        let Some(peer) = peer.filter(|_| plain).filter(next) else { return false };
        peer.expected = peer.expected.wrapping_add(1);
        true
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
    #[inline]
    pub(super) fn keep(&mut self, frame: Frame) {
        let buffer = self.take_buffer(frame.from, self.users(&frame));
        self.hand_on(&frame, buffer);
        if self.is_for_me(&frame) {
            self.store(frame, buffer);
        }
    }

    /// Stores a frame's fragment for the application.
    #[inline]
    fn store(&mut self, frame: Frame, buffer: BufferId) {
        let (peer, Frame { event, fragment, flags, data, .. }) = (frame.origin(), frame);
        let stored = Stored { from: peer, fragment, data, buffer: Some(buffer) };
        match self.inbox.put(event, flags, stored) {
            Put::New => {}
            Put::Copy => self.fail(Failure::Disordered { peer, event }),
            Put::Beyond => {
                let what = "its fragments are numbered beyond reason, or its events too many";
                self.fail(Failure::Protocol { peer, what });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cstar::{CarefulSettings, Cluster, EventId, Flags, Layer, NodeId, Route};
    use trunkline_core::Seed;

    /// What is plain would be justified too, and changes the same.
    #[test]
    fn a_plain_frame_is_a_justified_one() {
        let cluster = Cluster { nodes: 3, receive_buffers: 12, send_buffers: 12, frame: 100 };
        let mut random = Seed(14).stream("frames");
        let (mut plain, mut justified) = (0, 0);
        for round in 0..20_000 {
            let reserve = (round % 5 == 0).then_some(4);
            let settings = CarefulSettings { reserve, ..CarefulSettings::default() };
            let mut node = Careful::new(NodeId(0), &cluster, &settings).unwrap();
            let mut one_of = |values: &[u32]| values[random.below(values.len() as u64) as usize];
            *node.peer(NodeId(1)) = Peer {
                ours: one_of(&[0, 1, 3, 4]),
                theirs: one_of(&[0, 1, 4, 4]),
                expected: one_of(&[0, 7, u32::MAX]),
                ..Peer::new(4)
            };
            let route = Route { origin: NodeId(2), target: Destination::All };
            let frame = Frame {
                kind: [Kind::Careful, Kind::Update][one_of(&[0, 0, 0, 1]) as usize],
                flags: Flags::default(),
                wants_ack: false,
                again: false,
                from: NodeId(one_of(&[0, 1, 1, 1, 2, 3]) as u16),
                to: [Destination::Node(NodeId(0)), Destination::All]
                    [one_of(&[0, 0, 0, 1]) as usize],
                event: EventId(1),
                fragment: 0,
                grant: one_of(&[0, 0, 1, 4]) as u16,
                back: one_of(&[0, 0, 0, 1]) as u16,
                complete: EventId(0),
                asks: one_of(&[0, 0, 0, 9]),
                route: [None, Some(route)][one_of(&[0, 0, 0, 1]) as usize],
                counter: one_of(&[0, 7, u32::MAX]),
                data: bytes::Bytes::new(),
                list: Vec::new(),
            };
            let mut other = node.clone();
            justified += u32::from(other.is_justified(&frame));
            if node.is_plain(&frame) {
                plain += 1;
                assert_eq!((other.failure(), node.failure()), (None, None), "{frame:?}");
                assert_eq!(other.peers[NodeId(1)], node.peers[NodeId(1)], "{frame:?}");
            }
        }
        assert!(plain > 200 && justified > plain + 200, "{plain} of {justified}");
    }
}
