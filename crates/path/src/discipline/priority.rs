//! Strict priority by band.

use super::links::List;
use super::packets::Packets;
use super::settings::settings;
use super::tally::Tally;
use super::{Assumptions, Backlog, Chance, Discipline, Drops, Service, Settings};
use crate::Limit;
use trunkline_core::{DropCause, Metered, Time};

/// The eight priorities of IEEE 802.1p.
const BANDS: u8 = 8;

settings! {
    /// Strict priority; band 0 is IP precedence 7, band 7 is precedence 0 (best effort); first in, first out within one.
    pub struct PrioritySettings {
        /// How much may wait in all; the least urgent band gives way.
        limit: Limit;
        /// How many bands.
        bands: u8 = BANDS, "the number of bands" in 1..=MOST_BANDS;
    }
}

impl Settings for PrioritySettings {
    type Queue<P: Metered> = Priority<P>;

    const ALIASES: &'static [&'static str] = &["prio"];

    const TRIALS: &'static [&'static str] = &["bands=3,limit=3kB"];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> Priority<P> {
        Priority::new(self.limit, self.bands)
    }

    fn assumptions(&self) -> Assumptions {
        Assumptions { bands: true, ..Assumptions::FIFO }
    }
}

/// Strict priority: band 0 first, and first in first out within a band. Packets of a band above the
/// last go into the last.
///
/// When the whole is over its limit the last packet of the least urgent band that holds any is
/// dropped: the arriving one if it is the least urgent itself.
#[derive(Debug)]
pub struct Priority<P> {
    packets: Packets<P>,
    bands: Vec<List>,
    /// One bit for each band that holds packets.
    occupied: u64,
    tally: Tally,
    limit: Limit,
}

/// One bit for each band in a word.
const MOST_BANDS: u8 = 64;

impl<P: Metered> Priority<P> {
    /// Empty bands that hold at most `limit` in all. There are at least 1 and at most 64.
    pub fn new(limit: Limit, bands: u8) -> Priority<P> {
        Priority {
            packets: Packets::default(),
            bands: vec![List::EMPTY; usize::from(bands.clamp(1, MOST_BANDS))],
            occupied: 0,
            tally: Tally::default(),
            limit,
        }
    }

    /// Drops the last packet of the least urgent band.
    fn shed(&mut self, drops: &mut Drops<P>) {
        let Some(band) = self.occupied.checked_ilog2() else { return };
        if let Some(packet) = self.packets.pop_back(&mut self.bands[band as usize]) {
            self.left(band, packet.size());
            drops.push(packet, DropCause::QueueLimit);
        }
    }

    /// A packet of `size` bytes has left `band`.
    fn left(&mut self, band: u32, size: u32) {
        self.tally.remove(size);
        if self.bands[band as usize].is_empty() {
            self.occupied &= !(1 << band);
        }
    }
}

impl<P: Metered> Discipline<P> for Priority<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        if self.tally.is_hopeless(packet.size(), self.limit) {
            return drops.push(packet, DropCause::QueueLimit);
        }
        let ceiling = self.tally.ceiling(self.limit);
        let band = usize::from(packet.band()).min(self.bands.len() - 1);
        self.tally.add(packet.size());
        self.packets.push_back(&mut self.bands[band], now, packet);
        self.occupied |= 1 << band;
        while self.tally.exceeds(self.limit, ceiling) {
            self.shed(drops);
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Option<Service<P>> {
        let band = self.occupied.trailing_zeros();
        let queue = self.bands.get_mut(band as usize)?;
        let (_, packet) = self.packets.pop_front(queue)?;
        self.left(band, packet.size());
        Some(Service::whole(packet))
    }

    fn backlog(&self) -> Backlog {
        self.tally.backlog()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::{Channel, Packet};

    #[test]
    fn the_urgent_go_first_and_the_least_urgent_gives_way() {
        let (mut queue, mut drops) = (Priority::new(Limit::Packets(3), 4), Drops::default());
        for (number, band) in [(0, 3), (1, 200), (2, 1), (3, 1), (4, 3)] {
            let packet = Packet { band, ..Packet::new(Channel(0), 100, Time::ZERO, number) };
            queue.enqueue(Time::ZERO, packet, &mut drops);
        }
        let dropped: Vec<i32> = drops.drain().map(|(packet, _)| packet.body).collect();
        assert_eq!(dropped, [1, 4], "the tail of the last band, then the arrival itself");
        let served: Vec<i32> =
            std::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut drops)?.packet.map(|p| p.body))
                .collect();
        assert_eq!(served, [2, 3, 0]);
    }
}
