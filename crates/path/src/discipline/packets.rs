//! The slab of waiting packets: one for all queues of a discipline.

use super::links::{Links, List};
use trunkline_core::Time;

/// Packets in numbered slots, with the time at which each came. A slot is used again once its packet
/// has left, so that nothing is allocated while the number of packets stays below its highest so far.
#[derive(Debug)]
pub(super) struct Packets<P> {
    slots: Vec<Option<(Time, P)>>,
    free: Vec<u32>,
    links: Links,
}

impl<P> Default for Packets<P> {
    fn default() -> Packets<P> {
        Packets { slots: Vec::new(), free: Vec::new(), links: Links::default() }
    }
}

impl<P> Packets<P> {
    /// Appends a packet that comes at `now` to `queue`.
    #[inline(always)]
    pub fn push_back(&mut self, queue: &mut List, now: Time, packet: P) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some((now, packet));
                slot
            }
            None => {
                self.slots.push(Some((now, packet)));
                (self.slots.len() - 1) as u32
            }
        };
        self.links.push_back(queue, slot);
    }

    /// The first packet of `queue`.
    #[inline]
    pub fn front(&self, queue: List) -> Option<&P> {
        self.slots[queue.first()? as usize].as_ref().map(|(_, packet)| packet)
    }

    /// Takes the first packet out of `queue`, with the time at which it came.
    #[inline(always)]
    pub fn pop_front(&mut self, queue: &mut List) -> Option<(Time, P)> {
        let slot = queue.first()?;
        self.take(queue, slot)
    }

    /// Takes the last packet out of `queue`.
    pub fn pop_back(&mut self, queue: &mut List) -> Option<P> {
        let slot = queue.last()?;
        self.take(queue, slot).map(|(_, packet)| packet)
    }

    #[inline(always)]
    fn take(&mut self, queue: &mut List, slot: u32) -> Option<(Time, P)> {
        self.links.remove(queue, slot);
        self.free.push(slot);
        self.slots[slot as usize].take()
    }
}
