//! ATM early packet discard.

use super::settings::settings;
use super::{Assumptions, Backlog, Chance, Discipline, Drops, Service, Settings, Standing};
use crate::{Limit, aal5_cells};
use std::collections::VecDeque;
use trunkline_core::{Channel, DropCause, Metered, Time};

/// User bytes of one cell.
const CELL_PAYLOAD: u64 = 48;

settings! {
    /// ATM early packet discard: whole packets are refused above a threshold (Romanow and Floyd 1995; numbers of the
    /// LDS report §3.10).
    pub struct EpdSettings {
        /// Cells in the queue above which an arriving packet is refused whole.
        threshold: u64 as Cells = 1000, "the discard threshold in cells" in 0..=limit;
        /// Cells that the buffer holds; what does not fit in the middle of a packet is lost.
        limit: u64 as Cells = 1200, "the cell limit" in 1..=1 << 40;
    }
}

impl Settings for EpdSettings {
    type Queue<P: Metered> = Epd<P>;

    const TRIALS: &'static [&'static str] = &["threshold=40,limit=60"];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> Epd<P> {
        Epd::new(self.threshold, self.limit)
    }

    fn assumptions(&self) -> Assumptions {
        let standing = Standing::Bytes(self.threshold * CELL_PAYLOAD);
        Assumptions::managed("early packet discard", standing)
    }
}

/// Early packet discard in a cell queue (Romanow and Floyd 1995): a packet that comes while more than
/// `threshold` cells wait is refused whole.
///
/// A packet below the threshold that does not fit loses its last cells. Those that fit stay and use the
/// line although nobody can use them: they are served as a piece without a packet, of 48 bytes for
/// each cell, which an `atm-aal5` line sends as just so many cells. An empty queue takes any one packet.
#[derive(Debug)]
pub struct Epd<P> {
    waiting: VecDeque<Cells<P>>,
    threshold: u64,
    limit: u64,
    cells: u64,
    backlog: Backlog,
}

/// What waits, cell after cell.
#[derive(Debug)]
enum Cells<P> {
    Whole(P),
    /// What is left of a packet whose last cells were lost.
    Useless {
        channel: Channel,
        bytes: u32,
    },
}

impl<P: Metered> Epd<P> {
    /// An empty queue of at most `limit` cells that refuses packets while more than `threshold` wait.
    pub fn new(threshold: u64, limit: u64) -> Epd<P> {
        let backlog = Backlog::default();
        Epd { waiting: VecDeque::new(), threshold, limit, cells: 0, backlog }
    }

    fn push(&mut self, item: Cells<P>) {
        let (packets, bytes, cells) = measure(&item);
        self.backlog.packets += packets;
        self.backlog.bytes += bytes;
        self.cells += cells;
        self.waiting.push_back(item);
    }
}

/// Packets, bytes and cells.
fn measure<P: Metered>(item: &Cells<P>) -> (u64, u64, u64) {
    match item {
        Cells::Whole(packet) => (1, u64::from(packet.size()), aal5_cells(packet.size())),
        Cells::Useless { bytes, .. } => (0, u64::from(*bytes), u64::from(*bytes) / CELL_PAYLOAD),
    }
}

impl<P: Metered> Discipline<P> for Epd<P> {
    fn enqueue(&mut self, _now: Time, packet: P, drops: &mut Drops<P>) {
        if self.cells > self.threshold.min(self.limit) {
            return drops.push(packet, DropCause::EarlyDiscard);
        }
        let room = self.limit - self.cells;
        if aal5_cells(packet.size()) <= room || self.waiting.is_empty() {
            return self.push(Cells::Whole(packet));
        }
        if room > 0 {
            // Fewer cells than the packet has, so that their bytes fit the type of its size.
            let bytes = u32::try_from(room * CELL_PAYLOAD).unwrap_or(u32::MAX);
            self.push(Cells::Useless { channel: packet.channel(), bytes });
        }
        drops.push(packet, DropCause::PartialPacket);
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Option<Service<P>> {
        let item = self.waiting.pop_front()?;
        let (packets, bytes, cells) = measure(&item);
        self.backlog.packets -= packets;
        self.backlog.bytes -= bytes;
        self.cells -= cells;
        Some(match item {
            Cells::Whole(packet) => Service::whole(packet),
            Cells::Useless { channel, bytes } => {
                Service { channel, bytes, controls: 0, packet: None }
            }
        })
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The queue counts cells: bytes are taken at 48 for each cell, packets at their least, one cell.
    fn set_limit(&mut self, limit: Limit) {
        self.limit = match limit {
            Limit::Cells(cells) | Limit::Packets(cells) => cells,
            Limit::Bytes(bytes) => bytes / CELL_PAYLOAD,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Framer, Framing, Piece};
    use trunkline_core::Packet;

    /// Offers packets of 192 cells each (9180 bytes, the LDS report's MTU).
    fn offered(epd: &mut Epd<Packet<()>>, count: u64) -> Vec<(u64, DropCause)> {
        let mut drops = Drops::default();
        for channel in 0..count {
            let packet = Packet::new(Channel(channel), 9180, Time::ZERO, ());
            epd.enqueue(Time::ZERO, packet, &mut drops);
        }
        drops.drain().map(|(packet, cause)| (packet.channel.0, cause)).collect()
    }

    #[test]
    fn whole_packets_are_refused_above_the_threshold() {
        let mut epd = Epd::new(1000, 1200);
        // Five packets are 960 cells, the sixth makes 1152, the seventh finds more than 1000.
        assert_eq!(offered(&mut epd, 7), [(6, DropCause::EarlyDiscard)]);
        assert_eq!((epd.cells, epd.backlog().packets), (1152, 6));
    }

    #[test]
    fn the_cells_that_fit_are_sent_in_vain() {
        let mut epd = Epd::new(1100, 1100);
        let causes = [(5, DropCause::PartialPacket), (6, DropCause::PartialPacket)];
        assert_eq!(offered(&mut epd, 7), causes, "140 cells fit of the first, none of the second");
        assert_eq!(epd.backlog(), Backlog { packets: 5, bytes: 5 * 9180 + 140 * 48 });
        let mut framer = Framer::new(Framing::AtmAal5);
        let mut cells = 0;
        while let Some(piece) = epd.dequeue(Time::ZERO, &mut Drops::default()) {
            let Service { channel, bytes, controls, packet } = piece;
            let piece = Piece { channel, bytes, controls, last: packet.is_some() };
            cells += framer.line_bits(piece, true) / (53 * 8);
        }
        assert_eq!((cells, epd.cells, epd.backlog()), (1100, 0, Backlog::default()));
    }

    #[test]
    fn a_lowered_limit_takes_the_threshold_with_it() {
        let mut epd = Epd::new(1000, 1200);
        assert!(offered(&mut epd, 3).is_empty());
        epd.set_limit(Limit::Cells(500));
        assert_eq!(offered(&mut epd, 1), [(0, DropCause::EarlyDiscard)]);
        assert_eq!(epd.backlog().packets, 3);
    }
}
