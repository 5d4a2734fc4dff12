//! The offset between the two clocks, as far as it is known.

use super::source::Source;
use trunkline_core::{Span, Time};

/// Bounds further apart than this exclude each other. Less is what processors' own clocks differ by.
const NOISE: i64 = 1_000;

/// CLOCK_REALTIME less CLOCK_MONOTONIC, in nanoseconds: it lies between these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    least: i64,
    most: i64,
}

impl Offset {
    /// Compares the clocks. Gives the time of the comparison too: its end.
    pub fn read(source: &dyn Source) -> (Offset, Time) {
        let before = source.monotonic();
        let realtime = source.realtime();
        let after = source.monotonic();
        let less = |at: Time| realtime - at.as_nanos() as i64;
        (Offset { least: less(after), most: less(before) }, after)
    }

    /// The offset that both comparisons allow; nothing if they exclude each other.
    pub fn narrowed(self, other: Offset) -> Option<Offset> {
        let (least, most) = (self.least.max(other.least), self.most.min(other.most));
        match least - most {
            ..=0 => Some(Offset { least, most }),
            // The older one stands, so that small steps add up and are noticed.
            1..=NOISE => Some(self),
            _ => None,
        }
    }

    /// The likeliest value.
    pub fn middle(self) -> i64 {
        self.least + (self.most - self.least) / 2
    }

    /// The uncertainty that the bounds and the clocks leave.
    pub fn width(self) -> Span {
        Span::from_nanos((self.most - self.least + NOISE) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_narrow_each_other_or_are_a_step() {
        let offset = |least, most| Offset { least, most };
        let known = offset(1_000, 3_000);
        assert_eq!(known.narrowed(offset(2_500, 90_000)), Some(offset(2_500, 3_000)));
        assert_eq!(known.narrowed(offset(3_900, 5_000)), Some(known), "noise");
        assert_eq!(known.narrowed(offset(4_001, 5_000)), None);
        assert_eq!(known.narrowed(offset(-9_000, -1)), None);
        assert_eq!(known.middle(), 2_000);
    }
}
