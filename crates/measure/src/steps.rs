//! The steps of a measurement, in few octets: of measurements a run has very many.

use crate::Step;
use serde::{Deserialize, Serialize};
use std::fmt;
use trunkline_core::{Cause, Span};

/// Octets that lie in the measurement itself: enough for a packet over two links that waits at one of them.
const SHORT: usize = 22;

/// The parts of a measurement's time, in order. They are packed: of each step the distance of its place from that of
/// the step before, with the cause in the lowest three bits, and its nanoseconds, both in groups of seven bits, the
/// lowest first. Most places follow each other closely and most spans are short, so that a step takes some four octets
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
        Unpacked { octets: octets.iter(), place: 0 }
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

/// Octets while they are packed.
#[derive(Default)]
struct Packer {
    count: usize,
    short: [u8; SHORT],
    /// All octets, once there are too many.
    long: Vec<u8>,
}

impl Packer {
    fn octet(&mut self, octet: u8) {
        match self.short.get_mut(self.count) {
            Some(place) => *place = octet,
            None => {
                if self.long.is_empty() {
                    self.long.extend(self.short);
                }
                self.long.push(octet);
            }
        }
        self.count += 1;
    }

    fn number(&mut self, mut number: u64) {
        while number >= 1 << 7 {
            self.octet(number as u8 | 1 << 7);
            number >>= 7;
        }
        self.octet(number as u8);
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Steps {
        let (mut packer, mut before) = (Packer::default(), 0);
        for Step { place, cause, span } in steps {
            let distance = i64::from(place) - i64::from(before);
            // The sign in the lowest bit.
            let folded = (distance << 1 ^ distance >> 63) as u64;
            packer.number(folded << 3 | cause as u64);
            packer.number(span.as_nanos());
            before = place;
        }
        Steps(match packer.long.is_empty() {
            true => Octets::Short(packer.count as u8, packer.short),
            false => Octets::Long(packer.long.into()),
        })
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
    octets: std::slice::Iter<'a, u8>,
    /// Of the step before.
    place: u32,
}

impl Unpacked<'_> {
    #[inline]
    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let octet = *self.octets.next()?;
            number |= u64::from(octet & 0x7f) << shift;
            if octet < 1 << 7 {
                return Some(number);
            }
            shift += 7;
        }
    }
}

impl Iterator for Unpacked<'_> {
    type Item = Step;

    #[inline]
    fn next(&mut self) -> Option<Step> {
        let key = self.number()?;
        let span = Span::from_nanos(self.number()?);
        let folded = key >> 3;
        let distance = (folded >> 1) as i64 ^ -((folded & 1) as i64);
        self.place = self.place.wrapping_add(distance as u32);
        Some(Step { place: self.place, cause: Cause::ALL[(key & 7) as usize], span })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;
    use proptest::prelude::*;

    fn step() -> impl Strategy<Value = Step> {
        let place = prop_oneof![0..10u32, any::<u32>()];
        let span = prop_oneof![0..2_000_000u64, any::<u64>()];
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
