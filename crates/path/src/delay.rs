//! The delay line: what is in flight. It never drops, and keeps order and spacing exactly.

use crate::BlockQueue;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use trunkline_core::Time;

/// Packets in flight, each with its release time.
///
/// Packets that keep order sit in a ring; only those that were asked to overtake or to be overtaken
/// sit in a heap beside it, so that the common case costs a push and a pop.
#[derive(Debug)]
pub struct DelayLine<P> {
    ring: BlockQueue<Flight<P>>,
    strays: BinaryHeap<Flight<P>>,
    pushed: u64,
}

#[derive(Debug)]
struct Flight<P> {
    release: Time,
    order: u64,
    packet: P,
}

/// Earliest release first; first in, first out among equals. Reversed, because the heap keeps the greatest.
impl<P> Ord for Flight<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.release, other.order).cmp(&(self.release, self.order))
    }
}
impl<P> PartialOrd for Flight<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> PartialEq for Flight<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<P> Eq for Flight<P> {}

impl<P> Default for DelayLine<P> {
    fn default() -> Self {
        DelayLine { ring: BlockQueue::default(), strays: BinaryHeap::new(), pushed: 0 }
    }
}

impl<P> DelayLine<P> {
    /// Takes `packet` in, to be released at `release`, or together with the packet before it if
    /// that is later (after the delay was shortened). Returns the release time.
    pub fn push(&mut self, release: Time, packet: P) -> Time {
        let release = self.ring.back().map_or(release, |last| release.max(last.release));
        let flight = self.flight(release, packet);
        self.ring.push_back(flight);
        release
    }

    /// Takes `packet` in, to be released at `release` whatever is before or behind it.
    pub fn push_unordered(&mut self, release: Time, packet: P) -> Time {
        let flight = self.flight(release, packet);
        self.strays.push(flight);
        release
    }

    fn flight(&mut self, release: Time, packet: P) -> Flight<P> {
        self.pushed += 1;
        Flight { release, order: self.pushed, packet }
    }

    /// When the next packet is due.
    #[inline]
    pub fn next_release(&self) -> Option<Time> {
        if self.strays.is_empty() {
            return self.ring.front().map(|flight| flight.release);
        }
        let ring = self.ring.front().map(|flight| flight.release);
        let stray = self.strays.peek().map(|flight| flight.release);
        ring.into_iter().chain(stray).min()
    }

    /// Takes out the next packet that is due by `now`, with its release time.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<(Time, P)> {
        if self.next_release()? > now {
            return None;
        }
        let flight = match self.strays.is_empty() {
            true => self.ring.pop_front(),
            false => self.pop_first(),
        }?;
        Some((flight.release, flight.packet))
    }

    /// Takes out the first of the ring and the strays.
    fn pop_first(&mut self) -> Option<Flight<P>> {
        let stray_first = match (self.ring.front(), self.strays.peek()) {
            (Some(ring), Some(stray)) => stray > ring,
            (None, Some(_)) => true,
            _ => false,
        };
        if stray_first { self.strays.pop() } else { self.ring.pop_front() }
    }

    /// The number of packets in flight.
    pub fn len(&self) -> usize {
        self.ring.len() + self.strays.len()
    }

    /// Whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(line: &mut DelayLine<usize>) -> Vec<(u64, usize)> {
        std::iter::from_fn(|| line.pop(Time::NEVER)).map(|(t, p)| (t.as_nanos(), p)).collect()
    }

    #[test]
    fn nothing_comes_out_early() {
        let mut line = DelayLine::default();
        line.push(Time::from_nanos(10), 'a');
        assert_eq!(line.pop(Time::from_nanos(9)), None);
        assert_eq!(line.pop(Time::from_nanos(10)), Some((Time::from_nanos(10), 'a')));
        assert!(line.is_empty() && line.next_release().is_none());
    }

    proptest! {
        /// Spacing is kept exactly while the delay stands; a change of delay keeps order and leaves
        /// what is under way alone.
        #[test]
        fn spacing_and_order_under_live_changes(
            arrivals in prop::collection::vec((0u64..1000, prop::option::of(0u64..5000)), 1..200),
        ) {
            let mut line = DelayLine::default();
            let (mut now, mut delay, mut expected) = (0, 1000, Vec::<u64>::new());
            for (index, (gap, change)) in arrivals.iter().enumerate() {
                now += gap;
                if let Some(new) = change { delay = *new; }
                let due = (now + delay).max(expected.last().copied().unwrap_or(0));
                prop_assert_eq!(line.push(Time::from_nanos(now + delay), index).as_nanos(), due);
                expected.push(due);
            }
            let expected: Vec<_> = expected.into_iter().zip(0..).collect();
            prop_assert_eq!(drain(&mut line), expected);
        }

        #[test]
        fn strays_leave_by_release_time_and_nothing_is_lost(
            releases in prop::collection::vec((0u64..50, any::<bool>()), 0..200),
        ) {
            let mut line = DelayLine::default();
            let mut last = 0;
            for (index, &(release, ordered)) in releases.iter().enumerate() {
                if ordered {
                    last = release.max(last);
                    line.push(Time::from_nanos(last), index);
                } else {
                    line.push_unordered(Time::from_nanos(release), index);
                }
            }
            let out = drain(&mut line);
            prop_assert!(out.is_sorted_by_key(|&(release, _)| release));
            let mut seen: Vec<usize> = out.iter().map(|&(_, index)| index).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..releases.len()).collect::<Vec<_>>());
        }
    }
}
