//! What a law sees in a stretch of time during which the sender keeps to one rate.

use super::Arrival;
use trunkline_core::{Span, Time};

/// Parts of one in which shares of packets are counted.
pub const PARTS: u64 = 1 << 16;

/// The packets of a stretch of time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Window {
    first: Option<(Time, u64)>,
    last: Time,
    /// Bytes behind the first packet, and packets.
    bytes: u64,
    count: u64,
    /// Packets that came by themselves, and how far their places have gone since the first.
    fresh: u64,
    from: Option<u64>,
    reach: u64,
}

impl Window {
    /// Counts a packet.
    pub fn take(&mut self, arrival: &Arrival) {
        match self.first {
            None => self.first = Some((arrival.at, arrival.bytes.into())),
            Some(_) => self.bytes += u64::from(arrival.bytes),
        }
        self.count += 1;
        self.last = arrival.at;
        if let Some(place) = arrival.place {
            let from = *self.from.get_or_insert(place);
            // What began before the window is not counted.
            if place >= from {
                self.fresh += 1;
                self.reach = self.reach.max(place + 1 - from);
            }
        }
    }

    /// Packets.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// From the first packet to the last.
    pub fn span(&self) -> Span {
        self.first.map_or(Span::ZERO, |(at, _)| self.last.since(at))
    }

    /// Bytes per second.
    pub fn rate(&self) -> u64 {
        let nanos = u128::from(self.span().as_nanos().max(1));
        u64::try_from(u128::from(self.bytes) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
    }

    /// Packets that were sent for the first time, and those of them that did not come.
    pub fn losses(&self) -> (u64, u64) {
        (self.reach, self.reach - self.fresh.min(self.reach))
    }
}

/// The share of packets that a path loses of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnLoss {
    sent: u64,
    lost: u64,
}

/// Packets after which the older ones count half.
const AGE: u64 = 4000;

impl OwnLoss {
    /// Counts packets, of which so many were lost.
    pub fn take(&mut self, (sent, lost): (u64, u64)) {
        self.sent += sent;
        self.lost += lost;
        if self.sent > AGE {
            (self.sent, self.lost) = (self.sent / 2, self.lost / 2);
        }
    }

    /// The share, in [`PARTS`].
    pub fn share(&self) -> u64 {
        (self.lost * PARTS / self.sent.max(1)).min(PARTS / 2)
    }

    /// Whether so many lost packets are more than the path's own by two standard deviations: of a path that loses nothing,
    /// one is.
    pub fn is_more(&self, (sent, lost): (u64, u64)) -> bool {
        let expected = self.lost * sent / self.sent.max(1);
        let over = lost.saturating_sub(expected);
        over * over > 4 * expected && over > 0
    }

    /// Whether so many lost packets are more than chance explains: beyond the expected number by three standard deviations
    /// (of a Poisson distribution), by two packets and by a fiftieth.
    pub fn is_exceeded(&self, (sent, lost): (u64, u64)) -> bool {
        // Of a path that is hardly known one more loss is expected.
        let expected = (self.lost + 1) * sent / (self.sent + sent).max(1);
        let over = lost.saturating_sub(expected);
        over > 2 + sent / 50 && over * over > 9 * (expected + 1)
    }
}

/// The least of what was seen lately.
#[derive(Debug, Clone, Default)]
pub struct Least<T> {
    /// The least of the present period and of the one before.
    now: Option<T>,
    before: Option<T>,
}

impl<T: Ord + Copy> Least<T> {
    /// Counts a value.
    pub fn take(&mut self, value: T) {
        self.now = Some(self.now.map_or(value, |it| it.min(value)));
    }

    /// The least of this period and the one before.
    pub fn get(&self) -> Option<T> {
        self.now.into_iter().chain(self.before).min()
    }

    /// A period ends.
    pub fn turn(&mut self) {
        self.before = self.now.take().or(self.before);
    }
}
