//! What a protocol's own settings hold back, and values that hold it back less.
//!
//! Whoever explains a figure tries them: only the protocol knows which of its keys bound what it sends.

use crate::protocol::{ProtocolEntry, Values};

/// How many times as much of a rate is tried.
pub const TIMES: [u64; 2] = [2, 10];

/// Settings by which a sender holds itself back, and how they are eased.
#[derive(Debug, Clone, PartialEq)]
pub struct Restraint {
    /// What they bound.
    pub bounds: Bounds,
    /// Their values now, with units.
    pub now: String,
    /// Values that hold back less, each less than the one before.
    pub steps: Vec<Step>,
}

/// What a restraint bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounds {
    /// What may be sent before it is answered.
    Window,
    /// What is sent in a second.
    Rate,
}

/// A way of easing a restraint.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its name: what it changes, to what.
    pub to: String,
    /// The protocol: another one if this one cannot do it.
    pub entry: &'static ProtocolEntry,
    /// All its values.
    pub values: Values,
}

impl Step {
    /// `entry` with these values; `None` if they do not go together.
    pub fn new(to: String, entry: &'static ProtocolEntry, values: Values) -> Option<Step> {
        (entry.build)(&values).is_ok().then_some(Step { to, entry, values })
    }
}

/// Four times `now`, four times that, and so on up to the first that is `enough`; none is more than `most`.
pub fn fourfold(now: u64, enough: u64, most: u64) -> Vec<u64> {
    let larger = |last: u64| Some(last.saturating_mul(4).min(most)).filter(|next| *next > last);
    let mut steps: Vec<u64> = Vec::new();
    while let Some(next) = larger(steps.last().copied().unwrap_or(now)) {
        steps.push(next);
        if next >= enough {
            break;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_with_what_is_enough_or_the_most() {
        assert_eq!(fourfold(3, 100, 1000), [12, 48, 192]);
        assert_eq!(fourfold(3, 0, 1000), [12]);
        assert_eq!(fourfold(3, 1000, 100), [12, 48, 100]);
        assert!(fourfold(100, 1000, 100).is_empty());
        assert_eq!(fourfold(0, 1000, 100), [] as [u64; 0]);
    }
}
