//! The steps of a measurement, in few octets: of measurements a run has very many.

use crate::Step;
use serde::{Deserialize, Serialize};
use std::fmt;
use trunkline_core::{Cause, Span};

/// Octets that lie in the measurement itself: enough for a packet over two links that waits at one of them.
const SHORT: usize = 22;

/// The parts of a measurement's time, in order. They are packed: of each step an octet that tells the cause and how
/// many octets follow, then the distance of its place from that of the step before, then its nanoseconds, the lowest
/// octet first. Most places follow each other closely and most spans are short, so that a step takes some four octets
/// instead of 16; those of a short way need no memory of their own.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Step>", into = "Vec<Step>")]
pub struct Steps(Octets);

#[derive(Clone, PartialEq, Eq)]
enum Octets {
    /// So many of these; the others are 0.
    Short(u8, [u8; SHORT]),
    Long(Box<[u8]>),
}

impl Steps {
    /// The steps one after the other.
    pub fn iter(&self) -> Unpacked<'_> {
        let octets = match &self.0 {
            Octets::Short(count, octets) => &octets[..usize::from(*count)],
            Octets::Long(octets) => octets,
        };
        Unpacked { octets, place: 0 }
    }

    /// The number of steps, which are counted.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        matches!(self.0, Octets::Short(0, _))
    }
}

impl Default for Steps {
    fn default() -> Steps {
        Steps(Octets::Short(0, [0; SHORT]))
    }
}

/// Octets that a distance takes, by its two bits in a step's first octet.
const DISTANCES: [usize; 4] = [0, 1, 2, 4];
/// Octets that a step takes at most, and those that are written beyond them.
const STEP: usize = 1 + 4 + 8 + 8;

/// Octets while they are packed.
struct Packer {
    count: usize,
    last: [u8; 3 * STEP],
    /// Those before them.
    first: Vec<u8>,
}

impl Packer {
    fn step(&mut self, cause: Cause, distance: u32, span: u64) {
        if self.count > self.last.len() - STEP {
            self.first.extend(&self.last[..self.count]);
            self.count = 0;
        }
        let bits = u32::BITS - distance.leading_zeros();
        let kind = [0, 1, 2, 3, 3][bits.div_ceil(8) as usize];
        let octets = (u64::BITS - (span | 1).leading_zeros()).div_ceil(8) as usize;
        self.put(cause as u64 | (kind as u64) << 3 | (octets as u64 - 1) << 5, 1);
        self.put(distance.into(), DISTANCES[kind]);
        self.put(span, octets);
    }

    /// Puts the lowest `octets` of a number behind those there are.
    #[inline]
    fn put(&mut self, number: u64, octets: usize) {
        self.last[self.count..self.count + 8].copy_from_slice(&number.to_le_bytes());
        self.count += octets;
    }

    fn packed(mut self) -> Octets {
        let last = &self.last[..self.count];
        if self.first.is_empty() && self.count <= SHORT {
            let mut short = [0; SHORT];
            short[..self.count].copy_from_slice(last);
            return Octets::Short(self.count as u8, short);
        }
        self.first.extend(last);
        Octets::Long(self.first.into())
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Steps {
        let mut packer = Packer { count: 0, last: [0; 3 * STEP], first: Vec::new() };
        let mut before = 0;
        for Step { place, cause, span } in steps {
            let distance = place.wrapping_sub(before) as i32;
            // The sign in the lowest bit.
            packer.step(cause, (distance << 1 ^ distance >> 31) as u32, span.as_nanos());
            before = place;
        }
        Steps(packer.packed())
    }
}

impl From<&[Step]> for Steps {
    fn from(steps: &[Step]) -> Steps {
        steps.iter().copied().collect()
    }
}

impl From<Vec<Step>> for Steps {
    fn from(steps: Vec<Step>) -> Steps {
        steps.into_iter().collect()
    }
}

impl From<Steps> for Vec<Step> {
    fn from(steps: Steps) -> Vec<Step> {
        steps.iter().collect()
    }
}

impl<'a> IntoIterator for &'a Steps {
    type Item = Step;
    type IntoIter = Unpacked<'a>;
    fn into_iter(self) -> Unpacked<'a> {
        self.iter()
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

/// The steps of a [`Steps`] one after the other.
#[derive(Debug, Clone)]
pub struct Unpacked<'a> {
    octets: &'a [u8],
    /// Of the step before.
    place: u32,
}

impl Unpacked<'_> {
    /// The number in the next `octets`.
    #[inline]
    fn number(&mut self, octets: usize) -> u64 {
        let (number, rest) = self.octets.split_at(octets);
        self.octets = rest;
        number.iter().rev().fold(0, |number, octet| number << 8 | u64::from(*octet))
    }
}

impl Iterator for Unpacked<'_> {
    type Item = Step;

    #[inline]
    fn next(&mut self) -> Option<Step> {
        let (kind, rest) = self.octets.split_first()?;
        self.octets = rest;
        let folded = self.number(DISTANCES[usize::from(kind >> 3 & 3)]) as u32;
        let distance = folded >> 1 ^ (folded & 1).wrapping_neg();
        self.place = self.place.wrapping_add(distance);
        let span = Span::from_nanos(self.number(usize::from(kind >> 5) + 1));
        Some(Step { place: self.place, cause: Cause::ALL[usize::from(kind & 7)], span })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;
    use proptest::prelude::*;

    /// Numbers of every length, 0 among them.
    fn step() -> impl Strategy<Value = Step> {
        let place = (0..=32u32, any::<u32>());
        let place = place.prop_map(|(bits, it)| it.checked_shr(32 - bits).unwrap_or(0));
        let span = (0..=64u32, any::<u64>());
        let span = span.prop_map(|(bits, it)| it.checked_shr(64 - bits).unwrap_or(0));
        (place, 0..Cause::ALL.len(), span).prop_map(|(place, cause, span)| Step {
            place,
            cause: Cause::ALL[cause],
            span: Span::from_nanos(span),
        })
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_again(all in prop::collection::vec(step(), 0..12)) {
            let steps = Steps::from(&all[..]);
            prop_assert_eq!(steps.iter().collect::<Vec<_>>(), all.clone());
            prop_assert_eq!((steps.len(), steps.is_empty()), (all.len(), all.is_empty()));
            prop_assert_eq!(format!("{steps:?}"), format!("{all:?}"));
            prop_assert_eq!(Vec::from(steps), all);
        }
    }

    #[test]
    fn a_way_over_two_links_lies_in_the_sample() {
        assert_eq!((size_of::<Steps>(), size_of::<Sample>()), (24, 64));
        let step = |place, cause, nanos| Step { place, cause, span: Span::from_nanos(nanos) };
        let steps: Steps = [
            step(2001, Cause::Transmit, 1_200),
            step(2001, Cause::Propagate, 10_000),
            step(40, Cause::Queue, 1_200_000),
            step(40, Cause::Transmit, 1_200),
            step(40, Cause::Propagate, 1_000_000),
        ]
        .into_iter()
        .collect();
        assert!(matches!(steps.0, Octets::Short(21, _)), "{steps:?}");
    }
}
