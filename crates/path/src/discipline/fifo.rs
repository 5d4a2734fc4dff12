//! First in, first out, with a limit in bytes, packets or cells.

use super::settings::settings;
use super::{Assumptions, Backlog, Chance, Discipline, Drops, Service, Settings};
use crate::{BlockQueue, Limit};
use trunkline_core::{DropCause, Metered, Time};

settings! {
    /// First in, first out; the arriving packet is dropped when the queue is full.
    pub struct FifoSettings {
        /// How much may wait.
        limit: Limit;
    }
}

impl Settings for FifoSettings {
    type Queue<P: Metered> = Fifo<P>;

    const ALIASES: &'static [&'static str] = &["pfifo", "bfifo", "droptail", "drop-tail"];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> Fifo<P> {
        Fifo::new(self.limit)
    }

    fn assumptions(&self) -> Assumptions {
        Assumptions::FIFO
    }
}

/// First in, first out. A packet that would take the queue over its limit is dropped on arrival
/// (drop-tail), except that an empty queue takes any one packet.
#[derive(Debug)]
pub struct Fifo<P> {
    waiting: BlockQueue<P>,
    limit: Limit,
    held: u64,
    bytes: u64,
}

impl<P: Metered> Fifo<P> {
    /// An empty queue that holds at most `limit`.
    pub fn new(limit: Limit) -> Fifo<P> {
        Fifo { waiting: BlockQueue::default(), limit, held: 0, bytes: 0 }
    }

    /// Takes `packet` in whatever the limit says.
    pub(crate) fn push(&mut self, packet: P) {
        self.held += self.limit.weight(packet.size());
        self.bytes += u64::from(packet.size());
        self.waiting.push_back(packet);
    }
}

impl<P: Metered> Discipline<P> for Fifo<P> {
    fn enqueue(&mut self, _now: Time, packet: P, drops: &mut Drops<P>) {
        let weight = self.limit.weight(packet.size());
        if self.held + weight > self.limit.amount() && !self.waiting.is_empty() {
            return drops.push(packet, DropCause::QueueLimit);
        }
        self.push(packet);
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Option<Service<P>> {
        let packet = self.waiting.pop_front()?;
        self.held -= self.limit.weight(packet.size());
        self.bytes -= u64::from(packet.size());
        Some(Service::whole(packet))
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting.len() as u64, bytes: self.bytes }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.held = self.waiting.iter().map(|packet| limit.weight(packet.size())).sum();
        self.limit = limit;
    }
}
