//! What a discipline holds that serves first in, first out.

use super::Backlog;
use super::tally::Tally;
use crate::Limit;
use std::collections::VecDeque;
use trunkline_core::{Metered, Time};

/// Packets, first in first out, each with the time at which it came, and the limit on all of them.
#[derive(Debug)]
pub(super) struct Waiting<P> {
    packets: VecDeque<(Time, P)>,
    tally: Tally,
    limit: Limit,
}

impl<P: Metered> Waiting<P> {
    /// Nothing, where at most `limit` may wait.
    pub fn new(limit: Limit) -> Waiting<P> {
        Waiting { packets: VecDeque::new(), tally: Tally::default(), limit }
    }

    /// Whether there is room for another packet of `size` bytes. An empty queue takes any one packet.
    #[inline]
    pub fn takes(&self, size: u32) -> bool {
        self.tally.takes(size, self.limit)
    }

    /// Puts a packet that comes at `now` behind all others, whether or not there is room.
    #[inline]
    pub fn push_back(&mut self, now: Time, packet: P) {
        self.tally.add(packet.size());
        self.packets.push_back((now, packet));
    }

    /// The first packet.
    #[inline]
    pub fn front(&self) -> Option<&P> {
        self.packets.front().map(|(_, packet)| packet)
    }

    /// Takes the first packet out, with the time at which it came.
    #[inline]
    pub fn pop_front(&mut self) -> Option<(Time, P)> {
        let (came, packet) = self.packets.pop_front()?;
        self.tally.remove(packet.size());
        Some((came, packet))
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// What waits, in the unit of `limit`.
    pub fn held(&self, limit: Limit) -> u64 {
        self.tally.held(limit)
    }

    /// Packets and bytes.
    pub fn backlog(&self) -> Backlog {
        self.tally.backlog()
    }

    /// Sets another limit, in any unit. What waits already stays.
    pub fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }
}
