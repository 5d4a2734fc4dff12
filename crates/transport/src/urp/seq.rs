//! Arithmetic modulo 8.

use std::fmt;

/// A block's sequence number, 0 to 7. The first block after initialisation is 1, then 2 … 7, 0, 1 …
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(u8);

impl Seq {
    /// The number of the first block, which is also "none yet" plus one.
    pub const FIRST: Seq = Seq(1);
    /// "None yet": the last good block after initialisation.
    pub const NONE: Seq = Seq(0);

    /// `number` modulo 8.
    pub const fn new(number: u8) -> Seq {
        Seq(number & 7)
    }
    /// 0 to 7.
    pub const fn get(self) -> u8 {
        self.0
    }
    /// The number after this one.
    pub const fn next(self) -> Seq {
        self.plus(1)
    }
    /// The number `steps` after this one.
    pub const fn plus(self, steps: usize) -> Seq {
        Seq(self.0.wrapping_add((steps & 7) as u8) & 7)
    }
    /// The number `steps` before this one.
    pub const fn minus(self, steps: usize) -> Seq {
        self.plus(8 - (steps & 7))
    }
    /// The steps from `earlier` to this one, 0 to 7.
    pub const fn since(self, earlier: Seq) -> usize {
        (self.0.wrapping_sub(earlier.0) & 7) as usize
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_forward_and_back_agree() {
        for start in 0..8 {
            for steps in 0..20 {
                let (from, to) = (Seq::new(start), Seq::new(start).plus(steps));
                assert_eq!(to.since(from), steps % 8);
                assert_eq!(to.minus(steps), from);
            }
        }
        assert_eq!(Seq::new(7).next(), Seq::NONE);
        assert_eq!(Seq::NONE.next(), Seq::FIRST);
    }
}
