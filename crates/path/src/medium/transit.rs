//! Frames that have left their station and are held on their way, in the buffers of switches.

use super::StationId;
use super::slab::Slab;
use super::stations::{Addressed, Stations, To};
use crate::framing::Piece;
use trunkline_core::{Carried, DropCause, Span, Time};

/// A frame on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FrameId(u32);

/// The stations that a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Destination {
    /// One station.
    One(StationId),
    /// All but the one that sent it.
    All,
}

/// Every frame on its way.
pub(super) type Transit<P> = Slab<Held<P>>;

/// A frame on its way, kept once however many copies of it there are.
#[derive(Debug)]
pub(super) struct Held<P> {
    packet: P,
    from: StationId,
    /// Stations that have neither heard it nor lost it.
    left: u64,
    /// How long it kept its station sending, until that is counted with the first copy that is heard or lost.
    sending: Span,
    /// How it is copied, if it is for several.
    copy: Option<fn(&P) -> P>,
}

impl<P: Carried> Stations<P> {
    /// The frame in hand as a wire sees it. None without a frame.
    pub fn piece(&self, station: StationId) -> Option<Piece> {
        self.list[station.0].frame.as_ref().map(|frame| frame.piece())
    }

    /// Takes the frame in hand away from its station and holds it until it has come to all that it is for, or is lost.
    pub fn lift(&mut self, from: StationId) -> Option<(FrameId, Destination)> {
        let others = self.list.len() as u64 - 1;
        let station = &mut self.list[from.0];
        let Addressed { to, packet } = station.frame.take()?.packet?;
        let (destination, copy, left) = match to {
            To::One(to) => (Destination::One(to), None, 1),
            To::All(copy) => (Destination::All, Some(copy), others),
        };
        station.counts.duplicated += left.saturating_sub(1);
        let sending = self.wire.nominal(packet.size(), packet.controls());
        let held = Held { packet, from, left, sending, copy };
        Some((FrameId(self.transit.insert(held)), destination))
    }

    /// Marks a frame on its way, if its sender can take that.
    pub fn mark(&mut self, frame: FrameId) {
        let Some(held) = self.transit.get_mut(frame.0) else { return };
        let before = held.packet.ecn();
        held.packet.mark();
        if held.packet.ecn() != before {
            let station = &mut self.list[held.from.0];
            station.marked_on_way += 1;
            station.counts.marked += 1;
        }
    }

    /// A frame on its way comes to `to` at `release`. Its bits took `own`, and cables and switches `way`.
    pub fn land(&mut self, frame: FrameId, to: StationId, release: Time, own: Span, way: Span) {
        if let Some((from, packet, sending)) = self.copy_of(frame) {
            self.set_out((from, to), release.before(way), (own, sending), way, packet);
        }
    }

    /// Loses a frame on its way to as many stations as `copies`.
    pub fn lose(&mut self, frame: FrameId, copies: usize, cause: DropCause) {
        for _ in 0..copies {
            let Some((from, packet, sending)) = self.copy_of(frame) else { return };
            self.list[from.0].busy += sending;
            self.list[from.0].counts.drop(cause);
            self.given_up.push((from, packet, cause));
        }
    }

    /// One of the packets that a held frame stands for, with what counts as sending it: the last is the frame itself.
    fn copy_of(&mut self, frame: FrameId) -> Option<(StationId, P, Span)> {
        let held = self.transit.get_mut(frame.0)?;
        held.left -= 1;
        let sending = std::mem::take(&mut held.sending);
        if let (Some(copy), true) = (held.copy, held.left > 0) {
            return Some((held.from, copy(&held.packet), sending));
        }
        self.transit.remove(frame.0).map(|held| (held.from, held.packet, sending))
    }
}
