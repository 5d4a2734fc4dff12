//! Audits: whoever waits asks its peers whether anything was lost, so that the loss of a last frame is found too.
//!
//! Each peer is asked the later the longer nothing but answers comes of it, so that audits shorter than a round trip do not
//! swamp the nodes. So a loss is found within as long again as nothing has come, at most [`LONGEST`], and a round trip.

use super::{Careful, Waits};
use crate::cstar::{Frame, Kind, NodeId, Source};
use std::collections::BTreeSet;
use trunkline_core::{Span, Time};

/// Questions to a peer of which nothing else comes are no further apart than this, unless `audit` is longer (a choice).
pub(super) const LONGEST: Span = Span::from_secs(1);

/// The questions to a peer of which nothing else has come since the first of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Questions {
    /// When it may be asked again.
    next: Time,
    /// For how long it is left in peace then.
    pause: Span,
}

impl Careful {
    /// The application waits for something of `from`, or goes on waiting.
    pub(super) fn awaits(&mut self, now: Time, from: Source) {
        let Some(audit) = self.settings.audit else { return };
        if self.waits.is_none_or(|waits| waits.from != from) {
            self.waits = Some(Waits { from, audit: now + audit });
        }
    }

    /// Asks the suspects whose time it is, if the application has waited for long enough.
    pub(super) fn audits(&mut self, now: Time) {
        let (Some(waits), Some(audit)) = (self.waits, self.settings.audit) else { return };
        if now < waits.audit {
            return;
        }
        let next = self.ask_suspects(now, waits.from, audit);
        self.waits = Some(Waits { audit: next.unwrap_or(now + audit), ..waits });
    }

    /// A peer asks. What it waits for may have to come over this node, which asks in its turn.
    pub(super) fn is_audited(&mut self, now: Time, by: NodeId) {
        self.asked.insert(by);
        if let Some(audit) = self.settings.audit.filter(|_| self.grid.is_some()) {
            self.ask_suspects(now, Source::Any, audit);
        }
    }

    /// Asks those suspects whose time it is: each time they are left in peace twice as long. Returns when the next is due.
    fn ask_suspects(&mut self, now: Time, from: Source, audit: Span) -> Option<Time> {
        let suspects = self.suspects(from);
        for &node in &suspects {
            let first = Questions { next: now, pause: audit };
            let Questions { next, pause } = self.questions.get(&node).copied().unwrap_or(first);
            if now < next {
                continue;
            }
            let longer = pause.scaled(2, 1).min(LONGEST.max(audit));
            self.questions.insert(node, Questions { next: now + pause, pause: longer });
            let frame = self.audit(node, true);
            self.out.push_back(frame);
            let peer = self.peer(node);
            peer.vain = peer.vain.saturating_add(1);
        }
        suspects.iter().filter_map(|node| Some(self.questions.get(node)?.next)).min()
    }

    /// Something of a peer has come that is neither a question nor an answer: it may be asked as early as at first.
    #[cold]
    pub(super) fn talks(&mut self, now: Time, peer: NodeId) {
        let (Some(audit), Some(questions)) = (self.settings.audit, self.questions.get_mut(&peer))
        else {
            return;
        };
        *questions = Questions { next: now + audit, pause: audit };
        if let Some(waits) = &mut self.waits {
            waits.audit = waits.audit.min(now + audit);
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
