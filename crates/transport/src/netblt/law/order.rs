//! Packets that others have overtaken: which are still to come, and how late they come.
//!
//! A packet that was passed is lost only when it has had the time that others took which came late; until then nobody knows.
//! So what is lost is counted up to the first packet of which it is not known. On a path that keeps order none comes late, and
//! what was passed is lost at once.

use super::window::Losses;
use std::collections::VecDeque;
use trunkline_core::{Span, Time};

/// For how long it is remembered how late packets come, at least.
const MEMORY: Span = Span::from_secs(10);

/// Packets over which their mean lateness is taken (a choice).
const MEAN_OF: u64 = 128;

/// Packets in a row that were passed by one behind them and have not come by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Passed {
    from: u64,
    to: u64,
    at: Time,
}

/// The order in which packets come.
#[derive(Debug, Default)]
pub struct Order {
    /// The place behind the furthest that has come.
    reach: u64,
    passed: VecDeque<Passed>,
    /// How late packets came at most, in this period and in the one before.
    late: [Span; 2],
    turned: Time,
    /// The mean over the latest packets, late or not, in nanoseconds, and how many these are.
    mean: u64,
    count: u64,
}

impl Order {
    /// A packet has come by itself. What comes later than `most` tells nothing of order.
    pub fn take(&mut self, now: Time, place: u64, most: Span) {
        if now.since(self.turned) >= MEMORY {
            self.turned = now;
            self.late = [Span::ZERO, self.late[0]];
        }
        if self.has_passed(place) {
            if let Some(late) = self.came_late(now, place).filter(|it| *it <= most) {
                self.late[0] = self.late[0].max(late);
                self.count_late(late);
            }
            return;
        }
        self.count_late(Span::ZERO);
        // What was sent before the first that has come is not known to be missing.
        if place > self.reach && self.reach > 0 {
            self.passed.push_back(Passed { from: self.reach, to: place, at: now });
        }
        self.reach = place + 1;
    }

    /// Whether one that was sent behind this one has come.
    pub fn has_passed(&self, place: u64) -> bool {
        place < self.reach
    }

    /// Takes a packet out of those that were passed. Answers how long ago it was.
    fn came_late(&mut self, now: Time, place: u64) -> Option<Span> {
        let index = self.passed.partition_point(|it| it.to <= place);
        let passed = self.passed.get_mut(index).filter(|it| it.from <= place)?;
        let Passed { from, to, at } = *passed;
        passed.to = place;
        if place + 1 < to {
            self.passed.insert(index + 1, Passed { from: place + 1, to, at });
        }
        if place == from {
            self.passed.remove(index);
        }
        Some(now.since(at))
    }

    fn count_late(&mut self, late: Span) {
        self.count = MEAN_OF.min(self.count + 1);
        self.mean = self.mean - self.mean / self.count + late.as_nanos() / self.count;
    }

    /// How long after others that were sent behind them packets have come lately, at most.
    pub fn late(&self) -> Span {
        self.late[0].max(self.late[1])
    }

    /// How late a packet is in the mean.
    pub fn usual(&self) -> Span {
        Span::from_nanos(self.mean)
    }

    /// Of the packets from this place on all those of which it is known whether they have come.
    pub fn losses(&self, now: Time, from: u64) -> Losses {
        let (late, mut lost, mut gaps) = (self.late(), 0, 0);
        for passed in self.passed.iter().filter(|it| it.to > from) {
            let begins = passed.from.max(from);
            if now.since(passed.at) < late {
                return Losses { sent: begins - from, lost, gaps };
            }
            lost += passed.to - begins;
            gaps += 1;
        }
        Losses { sent: self.reach.saturating_sub(from), lost, gaps }
    }

    /// What was passed before this place, and cannot come late any more, is not asked for.
    pub fn forget(&mut self, now: Time, before: u64, most: Span) {
        let is_old = |it: &Passed| it.to <= before && now.since(it.at) > most;
        while self.passed.front().is_some_and(is_old) {
            self.passed.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOST: Span = Span::from_millis(500);

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    fn taken(packets: &[(u64, u64)]) -> Order {
        let mut order = Order::default();
        packets.iter().for_each(|&(millis, place)| order.take(at(millis), place, MOST));
        order
    }

    #[test]
    fn what_is_passed_on_a_path_that_keeps_order_is_lost() {
        let order = taken(&[(0, 5), (1, 6), (2, 8), (5, 11), (6, 12)]);
        assert_eq!(order.losses(at(6), 5), Losses { sent: 8, lost: 3, gaps: 2 });
        assert_eq!(order.losses(at(6), 10), Losses { sent: 3, lost: 1, gaps: 1 });
        assert_eq!(order.losses(at(6), 20), Losses::default());
        assert_eq!(order.late(), Span::ZERO);
    }

    /// Packet 7 comes three milliseconds behind 8: what was passed less than three milliseconds ago may still come.
    #[test]
    fn what_may_still_come_is_not_lost() {
        let mut order = taken(&[(0, 5), (1, 6), (2, 8), (5, 7), (6, 11), (8, 13)]);
        assert_eq!(order.late(), Span::from_millis(3));
        assert_eq!(order.losses(at(8), 5), Losses { sent: 4, lost: 0, gaps: 0 });
        assert_eq!(order.losses(at(9), 5), Losses { sent: 7, lost: 2, gaps: 1 });
        order.take(at(10), 10, MOST);
        assert_eq!(order.losses(at(11), 5), Losses { sent: 7, lost: 1, gaps: 1 });
        assert_eq!(order.losses(at(12), 5), Losses { sent: 9, lost: 2, gaps: 2 });
        // Much too late, as what was sent again is.
        order.take(at(900), 12, MOST);
        assert_eq!(order.late(), Span::from_millis(4));
        order.forget(at(900), 10, MOST);
        assert_eq!(order.losses(at(900), 5).lost, 0);
    }

    /// One of four packets comes three milliseconds late.
    #[test]
    fn packets_are_late_in_the_mean() {
        let mut order = Order::default();
        let places = (0..400).flat_map(|four| [0, 2, 3, 1].map(|it| 4 * four + it));
        places.zip(0..).for_each(|(place, half)| {
            order.take(Time::from_nanos(half * 1_500_000), place, MOST);
        });
        let off = order.usual().abs_diff(Span::from_micros(750));
        assert!(off < Span::from_micros(30), "{}", order.usual());
        assert_eq!(taken(&[(0, 0), (5, 3), (9, 4)]).usual(), Span::ZERO);
    }

    #[test]
    fn how_late_packets_come_is_forgotten() {
        let mut order = taken(&[(0, 0), (2, 2), (5, 1)]);
        (1..30).for_each(|second| order.take(at(second * 1000), 2 + second, MOST));
        assert_eq!(order.late(), Span::ZERO);
    }

    proptest! {
        /// Whatever comes in whatever order: when all is known, the packets behind the first that have not come are the lost ones.
        #[test]
        fn in_the_end_the_lost_are_those_that_have_not_come(
            places in prop::collection::vec(0..200_u64, 1..150), from in 0..200_u64,
        ) {
            let mut order = Order::default();
            let mut here = std::collections::BTreeSet::new();
            let first = places[0];
            for (place, millis) in places.into_iter().zip(0..) {
                if here.insert(place) {
                    order.take(at(millis), place, Span::from_secs(60));
                }
                let known = order.losses(at(millis), from);
                prop_assert!(known.lost <= known.sent && known.gaps <= known.lost);
            }
            let (from, reach) = (from.max(first), here.last().unwrap() + 1);
            let absent: Vec<u64> = (from..reach).filter(|it| !here.contains(it)).collect();
            let gaps = absent.iter().filter(|it| **it == from || here.contains(&(**it - 1)));
            let expected = Losses {
                sent: reach.saturating_sub(from),
                lost: absent.len() as u64,
                gaps: gaps.count() as u64,
            };
            prop_assert_eq!(order.losses(at(100_000), from), expected);
        }
    }
}
