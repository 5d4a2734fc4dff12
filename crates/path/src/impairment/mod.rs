//! What a line does to packets on the way: loss, bit errors, duplication, reordering, jitter.

use crate::SpecError;
use serde::{Deserialize, Serialize};
use trunkline_core::{DropCause, Metered, Probability, Seed, Span, Stream, Time};

/// The impairments of one direction.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImpairmentSpec {
    /// Probability that a packet is lost.
    pub loss: Probability,
}

impl ImpairmentSpec {
    /// Checks every parameter against its range.
    pub fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }
    /// The most that a packet can be held beyond the delay.
    pub fn most_extra_delay(&self) -> Span {
        Span::ZERO
    }
}

/// What becomes of a packet that has left the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is lost.
    Lost(DropCause),
    /// It arrives.
    Arrives {
        /// When, never before it left the line.
        release: Time,
        /// May it leave the order of the others?
        unordered: bool,
        /// How often, 1 or more.
        copies: u8,
    },
}

/// The impairments at work: their state, their randomness, and what they have done so far.
#[derive(Debug)]
pub struct Impairments {
    spec: ImpairmentSpec,
    loss: Stream,
}

impl Impairments {
    /// Impairments as `spec` says, drawing from streams of `seed` named after the link called `name`.
    pub fn new(spec: &ImpairmentSpec, seed: Seed, name: &str) -> Impairments {
        Impairments { spec: spec.clone(), loss: seed.stream(&format!("{name}/loss")) }
    }

    /// Decides the fate of `packet`, which left the line at `departed` and would arrive `delay` later.
    pub fn judge(&mut self, departed: Time, delay: Span, _packet: &impl Metered) -> Fate {
        if self.loss.happens(self.spec.loss) {
            return Fate::Lost(DropCause::Loss);
        }
        Fate::Arrives { release: departed + delay, unordered: false, copies: 1 }
    }

    /// Changes the impairments; the random streams and counts go on.
    pub fn set_spec(&mut self, spec: &ImpairmentSpec) {
        self.spec = spec.clone();
    }
}
