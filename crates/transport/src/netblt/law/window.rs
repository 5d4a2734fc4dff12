//! What a law sees in a stretch of time during which the sender keeps to one rate.

use super::Arrival;
use trunkline_core::{Span, Time};

/// The highest rate that is counted, in bytes per second: what comes at one instant came at no rate.
pub const MOST_RATE: u64 = 1 << 40;

/// Packets that were sent for the first time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Losses {
    /// All of them.
    pub sent: u64,
    /// Those that did not come.
    pub lost: u64,
    /// Gaps that they left.
    pub gaps: u64,
}

impl Losses {
    /// These but for some of them.
    pub fn without(self, some: Losses) -> Losses {
        Losses {
            sent: self.sent.saturating_sub(some.sent),
            lost: self.lost.saturating_sub(some.lost),
            gaps: self.gaps.saturating_sub(some.gaps),
        }
    }

    /// The rate at which the packets were sent of which those that came had the rate `through`: at most twice as much.
    pub fn sent_at(self, through: u64) -> u64 {
        let came = (self.sent - self.lost.min(self.sent)).max(self.sent.div_ceil(2)).max(1);
        let rate = u128::from(through) * u128::from(self.sent.max(1)) / u128::from(came);
        rate as u64
    }
}

/// The packets of a stretch of time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Window {
    first: Option<(Time, u64)>,
    last: Time,
    /// Bytes behind the first packet, and packets.
    bytes: u64,
    count: u64,
    /// The shortest and the longest time from one packet to the next.
    gaps: Option<(Span, Span)>,
    /// The place of the first packet that came by itself.
    from: Option<u64>,
}

impl Window {
    /// Counts a packet.
    pub fn take(&mut self, arrival: &Arrival) {
        match self.first {
            None => self.first = Some((arrival.at, arrival.bytes.into())),
            Some(_) => {
                self.bytes += u64::from(arrival.bytes);
                let gap = arrival.at.since(self.last);
                let (shortest, longest) = self.gaps.unwrap_or((gap, gap));
                self.gaps = Some((shortest.min(gap), longest.max(gap)));
            }
        }
        self.count += 1;
        self.last = arrival.at;
        self.from = self.from.or(arrival.place);
    }

    /// Packets.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The place of the first packet that came for the first time by itself; what began before the window is not counted.
    pub fn from(&self) -> Option<u64> {
        self.from
    }

    /// From the first packet to the last.
    pub fn span(&self) -> Span {
        self.first.map_or(Span::ZERO, |(at, _)| self.last.since(at))
    }

    /// From packet to packet.
    pub fn spacing(&self) -> Span {
        self.span().scaled(1, self.count.saturating_sub(1).max(1))
    }

    /// The longest time from one packet to the next.
    pub fn longest(&self) -> Span {
        self.gaps.map_or(Span::ZERO, |it| it.1)
    }

    /// The shortest.
    pub fn shortest(&self) -> Span {
        self.gaps.map_or(Span::ZERO, |it| it.0)
    }

    /// When the last packet came.
    pub fn last(&self) -> Time {
        self.last
    }

    /// Bytes per second.
    pub fn rate(&self) -> u64 {
        let nanos = u128::from(self.span().as_nanos().max(1));
        let rate = u128::from(self.bytes) * 1_000_000_000 / nanos;
        u64::try_from(rate).unwrap_or(MOST_RATE).min(MOST_RATE)
    }
}

/// The share of packets that a path loses of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnLoss(Losses);

/// Packets after which the older ones count half.
const AGE: u64 = 4000;
/// Packets that are kept at least if others are to weigh as much.
const ENOUGH: u64 = 100;

impl OwnLoss {
    /// Counts packets, of which so many were lost.
    pub fn take(&mut self, losses: Losses) {
        self.0.sent += losses.sent;
        self.0.lost += losses.lost;
        self.0.gaps += losses.gaps;
        if self.0.sent > AGE {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let Losses { sent, lost, gaps } = self.0;
        self.0 = Losses { sent: sent / 2, lost: lost / 2, gaps: gaps / 2 };
    }

    /// Counts packets that weigh as much as all before, or nearly.
    pub fn correct(&mut self, losses: Losses) {
        while self.0.sent > losses.sent.max(ENOUGH) {
            self.halve();
        }
        self.take(losses);
    }

    fn expected(&self, sent: u64) -> u64 {
        self.0.lost * sent / self.0.sent.max(1)
    }

    /// By how much the variance of a number of losses is greater than its mean, because they come in bursts whose lengths are
    /// drawn: E(L²) / E(L).
    fn spread(&self) -> u64 {
        (2 * self.0.lost / self.0.gaps.max(1)).max(2) - 1
    }

    /// The lost packets that are not the path's own: those beyond the expected number, if they are more by two standard
    /// deviations. Of a path that loses nothing one is.
    pub fn over(&self, losses: Losses) -> u64 {
        let expected = self.expected(losses.sent);
        let over = losses.lost.saturating_sub(expected);
        if over * over > 4 * expected * self.spread() { over } else { 0 }
    }

    /// Whether so many lost packets are more than chance explains: beyond the expected number by three standard deviations
    /// (of a Poisson distribution of bursts, and of what is known of its mean), by two packets and by a fiftieth.
    pub fn is_exceeded(&self, losses: Losses) -> bool {
        losses.lost > self.most(losses.sent)
    }

    /// The packets, of which no more are lost than chance explains.
    pub fn explained(&self, losses: Losses) -> Losses {
        Losses { lost: losses.lost.min(self.most(losses.sent)), ..losses }
    }

    /// The packets, of which no more are lost than the share makes likely: the expected number and two standard deviations (of that,
    /// and of what is known of it). Of a path that loses nothing none is.
    pub fn likely(&self, losses: Losses) -> Losses {
        let expected = self.expected(losses.sent);
        let variance = (expected + self.unknown(expected, losses.sent)) * self.spread();
        Losses { lost: losses.lost.min(expected + (4 * variance).isqrt()), ..losses }
    }

    /// The variance of an expected number as far as its mean is not known.
    fn unknown(&self, expected: u64, sent: u64) -> u64 {
        (expected * sent).checked_div(self.0.sent).unwrap_or(0)
    }

    fn most(&self, sent: u64) -> u64 {
        // Of a path that is hardly known one more loss is expected.
        let expected = self.expected(sent) + sent / (self.0.sent + sent).max(1);
        let variance = (expected + self.unknown(expected, sent) + 1) * self.spread();
        expected + (2 + sent / 50).max((9 * variance).isqrt() + self.tail())
    }

    /// What losses in bursts exceed three standard deviations by, because the longest of them are much longer than the mean: by
    /// Bernstein's inequality for a sum of so many geometric lengths, t = 9 / 2 of what a burst has beyond one packet.
    fn tail(&self) -> u64 {
        let Losses { lost, gaps, .. } = self.0;
        9 * (lost - gaps.min(lost)) / (2 * gaps.max(1))
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

    /// Forgets what was seen but for this value.
    pub fn restart(&mut self, value: T) {
        (self.now, self.before) = (Some(value), None);
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
    fn a_window_measures_what_came() {
        let mut window = Window::default();
        window.take(&arrival(0, None));
        for (at, place) in [(1, 5), (2, 6), (3, 8), (4, 7), (6, 10), (7, 11), (9, 13)] {
            window.take(&arrival(at * 1000, Some(place)));
        }
        window.take(&arrival(10_000, None));
        assert_eq!((window.count(), window.from()), (9, Some(5)));
        assert_eq!((window.rate(), window.span()), (800_000, Span::from_millis(10)));
    }

    #[test]
    fn packets_of_one_instant_have_no_rate_without_end() {
        let mut window = Window::default();
        (0..30).for_each(|place| window.take(&arrival(7, Some(place))));
        assert_eq!(window.rate(), MOST_RATE);
    }

    fn losses(sent: u64, lost: u64, gaps: u64) -> Losses {
        Losses { sent, lost, gaps }
    }

    #[test]
    fn loss_beyond_chance_is_told_from_the_paths_own() {
        let mut own = OwnLoss::default();
        (0..40).for_each(|_| own.take(losses(100, 5, 5)));
        assert_eq!(own.expected(1000), 50);
        let excess = |own: &OwnLoss, lost| own.is_exceeded(losses(100, lost, lost));
        let over = |own: &OwnLoss, lost| own.over(losses(100, lost, lost));
        assert!(!excess(&own, 9) && over(&own, 9) == 0);
        assert!(excess(&own, 20) && over(&own, 11) == 6);
        assert_eq!(own.explained(losses(100, 60, 60)).lost, 12);
        let unknown = OwnLoss::default();
        assert!(over(&unknown, 1) == 1 && !excess(&unknown, 1));
    }

    /// Of a path that loses one in twenty, a stretch counts what it has lost itself: nothing if nothing was, and what is more than
    /// likely is not the path's. Of packets of which none was sent for the first time, and of most lost, the rate is bounded.
    #[test]
    fn a_stretch_counts_its_own_losses_as_far_as_they_are_likely() {
        let mut own = OwnLoss::default();
        assert_eq!(own.likely(losses(100, 3, 3)).lost, 0);
        (0..30).for_each(|_| own.take(losses(100, 5, 5)));
        let counted = |lost| own.likely(losses(100, lost, lost)).sent_at(900_000);
        assert_eq!([0, 5, 10].map(counted), [900_000, 947_368, 989_010]);
        assert_eq!(counted(10), counted(60));
        assert_eq!(losses(0, 0, 0).sent_at(900_000), 900_000);
        assert_eq!(losses(9, 9, 1).sent_at(MOST_RATE), MOST_RATE * 9 / 5);
    }

    /// Of a path that loses ten packets in a row now and then, twenty of a hundred lost are chance.
    #[test]
    fn bursts_of_losses_are_chance_on_a_path_that_has_them() {
        let mut own = OwnLoss::default();
        (0..40).for_each(|stretch| own.take(losses(100, stretch % 2 * 10, stretch % 2)));
        assert!(!own.is_exceeded(losses(100, 30, 3)) && own.over(losses(100, 20, 2)) == 0);
        // Half a burst is expected; of geometric lengths chance makes 60 packets and more once in 350 stretches, 90 once in 4000.
        assert!(!own.is_exceeded(losses(100, 60, 6)));
        assert!(own.is_exceeded(losses(100, 90, 9)));
    }

    /// What a path loses has changed: packets without a queue weigh as much as all before.
    #[test]
    fn a_path_that_has_changed_is_learned_anew() {
        let mut own = OwnLoss::default();
        (0..40).for_each(|_| own.take(losses(100, 0, 0)));
        own.correct(losses(100, 20, 20));
        assert!((10..=12).contains(&own.expected(100)), "{}", own.expected(100));
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
