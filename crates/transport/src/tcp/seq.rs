//! Arithmetic modulo 2³² (RFC 9293 §3.4), and positions that never wrap.
//!
//! Inside an end everything is a *position*: how many sequence numbers lie between the SYN, which is
//! at 0, and the octet. A connection does not live to see 2⁶⁴ of them.

use std::fmt;

/// A sequence number as a segment carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(u32);

impl Seq {
    /// The sequence number `number`.
    pub const fn new(number: u32) -> Seq {
        Seq(number)
    }
    /// As on the wire.
    pub const fn get(self) -> u32 {
        self.0
    }
    /// The number of the octet at `position` of a stream whose SYN has this number.
    pub const fn plus(self, position: u64) -> Seq {
        Seq(self.0.wrapping_add(position as u32))
    }
    /// The number `steps` before this one.
    pub const fn minus(self, steps: u32) -> Seq {
        Seq(self.0.wrapping_sub(steps))
    }
    /// The distance of this number after `earlier`, at most half the circle; negative if it lies
    /// before.
    pub const fn since(self, earlier: Seq) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }
    /// The position that this number has in a stream that began with `first`, the one closest to
    /// `near`; `None` if it lies before the stream.
    pub fn position(self, first: Seq, near: u64) -> Option<u64> {
        near.checked_add_signed(i64::from(self.since(first.plus(near))))
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
    use proptest::prelude::*;

    #[test]
    fn numbers_before_the_stream_have_no_position() {
        let first = Seq::new(5);
        assert_eq!(Seq::new(4).position(first, 0), None);
        assert_eq!(first.position(first, 9), Some(0));
        assert_eq!(Seq::new(2).since(Seq::new(u32::MAX)), 3);
    }

    proptest! {
        #[test]
        fn positions_survive_the_wire(
            first in any::<u32>(),
            near in 0..1u64 << 40,
            step in -(1i64 << 31) + 1..1i64 << 31,
        ) {
            let Some(position) = near.checked_add_signed(step) else { return Ok(()) };
            let first = Seq::new(first);
            prop_assert_eq!(first.plus(position).position(first, near), Some(position));
        }
    }
}
