//! What has come: whether it may be here, and where it goes.

use super::Careful;
use super::audit::is_audit;
use super::reserve::MOST_ASKED;
use crate::cstar::inbox::Stored;
use crate::cstar::{BufferId, Destination, Failure, Frame, Kind};

impl Careful {
    pub(super) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Whether a frame may be here: it is the next of its sender, which had a credit for it.
    pub(super) fn is_promised(&mut self, frame: &Frame) -> bool {
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
    pub(super) fn keep(&mut self, frame: Frame) {
        let buffer = self.take_buffer(frame.from, self.users(&frame));
        self.hand_on(&frame, buffer);
        if self.is_for_me(&frame) {
            self.store(frame, buffer);
        }
    }

    /// Stores a frame's fragment for the application.
    fn store(&mut self, frame: Frame, buffer: BufferId) {
        let (from, Frame { event, fragment, flags, data, .. }) = (frame.origin(), frame);
        if !self.inbox.takes(event, from, fragment) {
            let what = "its fragments are numbered beyond reason, or its events too many";
            return self.fail(Failure::Protocol { peer: from, what });
        }
        if !self.inbox.put(event, flags, Stored { from, fragment, data, buffer: Some(buffer) }) {
            self.fail(Failure::Disordered { peer: from, event });
        }
    }
}
