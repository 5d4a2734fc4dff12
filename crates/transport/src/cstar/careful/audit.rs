//! Audits: whoever waits asks its peers whether anything was lost, so that the loss of a last frame is found too.

use super::{Careful, Waits};
use crate::cstar::{Frame, Kind, NodeId, Source};
use std::collections::BTreeSet;
use trunkline_core::Time;

impl Careful {
    /// The application waits for something of `from`, or goes on waiting.
    pub(super) fn awaits(&mut self, now: Time, from: Source) {
        let Some(audit) = self.settings.audit else { return };
        if self.waits.is_none_or(|waits| waits.from != from) {
            self.waits = Some(Waits { from, audit: now + audit });
        }
    }

    /// Asks all suspects, if that is due.
    pub(super) fn audits(&mut self, now: Time) {
        let (Some(waits), Some(audit)) = (self.waits, self.settings.audit) else { return };
        if now < waits.audit {
            return;
        }
        self.waits = Some(Waits { audit: now + audit, ..waits });
        self.ask_all(now, waits.from);
    }

    /// A peer asks. What it waits for may have to come over this node, which asks in its turn, once in the time of an audit.
    pub(super) fn is_audited(&mut self, now: Time, by: NodeId) {
        self.asked.insert(by);
        let Some(audit) = self.settings.audit.filter(|_| self.grid.is_some()) else { return };
        if self.asked_all.is_none_or(|at| now.since(at) >= audit) {
            self.ask_all(now, Source::Any);
        }
    }

    fn ask_all(&mut self, now: Time, from: Source) {
        self.asked_all = Some(now);
        for node in self.suspects(from) {
            let frame = self.audit(node, true);
            self.out.push_back(frame);
            let peer = self.peer(node);
            peer.vain = peer.vain.saturating_add(1);
        }
    }

    /// A question whether anything was lost, or the answer. Neither takes a credit nor counts: else nodes that ask each
    /// other could close both their windows. It is done with when it comes, in the share of the buffers, ⌊R/P⌋, that is
    /// no peer's; if it is lost another follows.
    pub(super) fn audit(&mut self, node: NodeId, asks: bool) -> Frame {
        let counter = self.peer(node).sent;
        Frame { wants_ack: asks, again: !asks, ..self.control(node, 0, counter) }
    }

    /// The peers to be asked while the application waits: those it waits for, and all dealt with, since it may be one of
    /// those that waits for this node and cannot ask.
    fn suspects(&self, from: Source) -> BTreeSet<NodeId> {
        let known = self.peers.nodes();
        match from {
            _ if self.grid.is_some() => known.collect(),
            Source::Node(node) => known.chain([node]).collect(),
            Source::Any => self.cluster.others(self.me).collect(),
        }
    }
}

/// Whether a frame asks whether anything was lost, or answers that.
pub(super) fn is_audit(frame: &Frame) -> bool {
    frame.kind == Kind::Update && frame.grant == 0 && (frame.wants_ack || frame.again)
}
