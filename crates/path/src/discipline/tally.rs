//! How much a discipline holds, in every unit in which a limit can be set.

use super::{Backlog, Service};
use crate::{Limit, aal5_cells};
use trunkline_core::Metered;

/// What a discipline holds. All units are counted at once, so that a limit can change its unit while
/// packets wait.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    packets: u64,
    bytes: u64,
    cells: u64,
}

impl Tally {
    /// A packet of `size` bytes has come.
    #[inline]
    pub fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
        self.cells += aal5_cells(size);
    }

    /// A packet of `size` bytes has left whole.
    #[inline]
    pub fn remove(&mut self, size: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
        self.cells -= aal5_cells(size);
    }

    /// A part of what is held was `before` and is `after`.
    pub fn replace(&mut self, before: Tally, after: Tally) {
        self.packets = self.packets - before.packets + after.packets;
        self.bytes = self.bytes - before.bytes + after.bytes;
        self.cells = self.cells - before.cells + after.cells;
    }

    /// A piece has left. Its packet and the packet's cells count until the last piece has.
    pub fn release<P: Metered>(&mut self, piece: &Service<P>) {
        self.bytes -= u64::from(piece.bytes);
        if let Some(packet) = &piece.packet {
            self.packets -= 1;
            self.cells -= aal5_cells(packet.size());
        }
    }

    /// What is held, in the unit of `limit`.
    pub fn held(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Bytes(_) => self.bytes,
            Limit::Packets(_) => self.packets,
            Limit::Cells(_) => self.cells,
        }
    }

    /// Whether there is room for another packet of `size` bytes. An empty queue takes any one packet.
    pub fn takes(&self, size: u32, limit: Limit) -> bool {
        self.packets == 0 || self.held(limit) + limit.weight(size) <= limit.amount()
    }

    /// Whether a packet of `size` bytes would be over the limit even if everything else gave way.
    pub fn is_hopeless(&self, size: u32, limit: Limit) -> bool {
        self.packets > 0 && limit.weight(size) > limit.amount()
    }

    /// The most that may be held once an arrival has been dealt with: the limit, or what waits already if
    /// the limit was lowered beneath it.
    pub fn ceiling(&self, limit: Limit) -> u64 {
        self.held(limit).max(limit.amount())
    }

    /// Whether something must give way. Never the only packet.
    pub fn exceeds(&self, limit: Limit, ceiling: u64) -> bool {
        self.packets > 1 && self.held(limit) > ceiling
    }

    /// Packets and bytes.
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets, bytes: self.bytes }
    }
}
