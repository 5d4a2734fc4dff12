//! The data that the application has offered, kept until they are acknowledged.

use crate::Payload;
use std::collections::VecDeque;
use trunkline_core::Time;

/// One offer.
#[derive(Debug, Clone)]
struct Chunk<B> {
    start: u64,
    data: B,
    offered: Time,
}

impl<B: Payload> Chunk<B> {
    /// The data from `start`, which lies in it, to before `end`.
    #[inline]
    fn cut(&self, start: u64, end: u64) -> B {
        let mut data = self.data.clone();
        data.take_front((start - self.start) as u32);
        data.take_front((end - start).min(u64::from(u32::MAX)) as u32)
    }
}

/// The offers that are not acknowledged yet, in order. An offer is kept whole until all of it is.
#[derive(Debug, Clone)]
pub struct Stream<B> {
    chunks: VecDeque<Chunk<B>>,
    /// The position after the last octet offered.
    end: u64,
}

impl<B: Payload> Stream<B> {
    /// Nothing offered; the first octet will be at position 1, after the SYN.
    pub const fn new() -> Stream<B> {
        Stream { chunks: VecDeque::new(), end: 1 }
    }

    /// The position after the last octet offered.
    pub const fn end(&self) -> u64 {
        self.end
    }

    pub fn offer(&mut self, now: Time, data: B) {
        let start = self.end;
        self.end += u64::from(data.len());
        if self.end > start {
            if self.chunks.is_empty() {
                // Many a flow is one offer: it shall not pay for four.
                self.chunks.reserve_exact(1);
            }
            self.chunks.push_back(Chunk { start, data, offered: now });
        }
    }

    /// The octets from `start` to before `end`, and when the last of them was offered.
    #[inline]
    pub fn slice(&self, start: u64, end: u64) -> (B, Time) {
        let whole = |chunk: &&Chunk<B>| {
            chunk.start <= start && start < end && end - chunk.start <= u64::from(chunk.data.len())
        };
        match self.chunks.front().filter(whole) {
            Some(chunk) => (chunk.cut(start, end), chunk.offered),
            None => self.gather(start, end),
        }
    }

    /// The same, from however many offers.
    fn gather(&self, start: u64, end: u64) -> (B, Time) {
        let first = match self.chunks.front() {
            Some(chunk) if start < chunk.start + u64::from(chunk.data.len()) => 0,
            _ => self.chunks.partition_point(|chunk| chunk.start <= start).saturating_sub(1),
        };
        let (mut joined, mut offered) = (B::default(), Time::ZERO);
        let mut at = start;
        for chunk in self.chunks.iter().skip(first).take_while(|chunk| chunk.start < end) {
            let part = chunk.cut(at, end);
            at += u64::from(part.len());
            joined.append(part);
            offered = chunk.offered;
        }
        (joined, offered)
    }

    /// Whether an offer ends after `start` and no later than `end`.
    pub fn ends_within(&self, start: u64, end: u64) -> bool {
        let ends = |chunk: &Chunk<B>| chunk.start + u64::from(chunk.data.len());
        let first = self.chunks.partition_point(|chunk| ends(chunk) <= start);
        self.chunks.get(first).is_some_and(|chunk| ends(chunk) <= end)
    }

    /// Lets go of the offers that end before `position`.
    pub fn release(&mut self, position: u64) {
        let ends = |chunk: &Chunk<B>| chunk.start + u64::from(chunk.data.len());
        while self.chunks.front().is_some_and(|chunk| ends(chunk) <= position) {
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Extent;

    #[test]
    fn slices_cross_the_bounds_of_offers() {
        let mut stream = Stream::new();
        for (offset, at) in [(0, 0), (10, 5), (20, 9)] {
            stream.offer(Time::from_nanos(at), Extent::new(offset, 10));
        }
        assert_eq!(stream.end(), 31);
        assert!(stream.ends_within(10, 11) && stream.ends_within(1, 30));
        assert!(!stream.ends_within(11, 20) && !stream.ends_within(31, 40));
        assert_eq!(stream.slice(6, 26), (Extent::new(5, 20), Time::from_nanos(9)));
        stream.release(11);
        assert_eq!(stream.slice(12, 14), (Extent::new(11, 2), Time::from_nanos(5)));
        assert_eq!(stream.slice(25, 31).0, Extent::new(24, 6));
        stream.release(31);
        assert!(stream.chunks.is_empty());
    }
}
