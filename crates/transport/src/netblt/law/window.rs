//! What a law sees in a stretch of time during which the sender keeps to one rate.

use super::Arrival;
use trunkline_core::{Span, Time};

/// Parts of one in which shares of packets are counted.
pub const PARTS: u64 = 1 << 16;

/// The highest rate that is counted, in bytes per second: what comes at one instant came at no rate.
pub const MOST_RATE: u64 = 1 << 40;

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
        let rate = u128::from(self.bytes) * 1_000_000_000 / nanos;
        u64::try_from(rate).unwrap_or(MOST_RATE).min(MOST_RATE)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(micros: u64, place: Option<u64>) -> Arrival {
        Arrival { at: Time::from_nanos(micros * 1000), bytes: 1000, place }
    }

    #[test]
    fn a_window_counts_what_came_and_what_did_not() {
        let mut window = Window::default();
        // Of eleven packets a millisecond apart two are missing, one comes late, and one is asked for again.
        for (at, place) in [(0, 5), (1, 6), (2, 8), (3, 7), (5, 10), (6, 11), (8, 13), (9, 14)] {
            window.take(&arrival(at * 1000, Some(place)));
        }
        window.take(&arrival(10_000, None));
        assert_eq!((window.count(), window.losses()), (9, (10, 2)));
        assert_eq!((window.rate(), window.span()), (800_000, Span::from_millis(10)));
    }

    #[test]
    fn packets_of_one_instant_have_no_rate_without_end() {
        let mut window = Window::default();
        (0..30).for_each(|place| window.take(&arrival(7, Some(place))));
        assert_eq!(window.rate(), MOST_RATE);
    }

    #[test]
    fn loss_beyond_chance_is_told_from_the_paths_own() {
        let mut own = OwnLoss::default();
        (0..40).for_each(|_| own.take((100, 5)));
        assert_eq!(own.share() * 100 / PARTS, 4);
        assert!(!own.is_exceeded((100, 9)) && !own.is_more((100, 9)));
        assert!(own.is_exceeded((100, 20)) && own.is_more((100, 11)));
        assert!(OwnLoss::default().is_more((50, 1)) && !OwnLoss::default().is_exceeded((50, 1)));
    }

    #[test]
    fn the_least_of_two_periods_is_kept() {
        let mut least = Least::default();
        assert_eq!(least.get(), None);
        least.take(5);
        least.turn();
        least.take(9);
        assert_eq!(least.get(), Some(5));
        least.turn();
        assert_eq!(least.get(), Some(9));
        least.turn();
        assert_eq!(least.get(), Some(9));
    }
}
