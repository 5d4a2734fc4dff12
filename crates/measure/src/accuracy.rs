//! The accuracy of a real-time run.

use crate::Percentiles;
use serde::{Deserialize, Serialize};
use trunkline_core::Span;

/// The accuracy statement of a real-time run: what the emulator did beside what it was asked to do.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Accuracy {
    /// Frames taken in.
    pub frames_in: u64,
    /// Frames sent on.
    pub frames_out: u64,
    /// Frames lost by failings of the emulator, not by the path described.
    pub dropped_by_emulator: u64,
    /// The lateness of frames that left, against the departure that the path gave them.
    pub lateness: Percentiles,
    /// By how much the distance of two frames that left one after the other was wrong.
    pub spacing_error: Percentiles,
    /// The number of times that the machine did not let the emulator run for a millisecond or more.
    pub stalls: u64,
    /// The longest of these.
    pub longest_stall: Span,
    /// The time for which programs that wait for frames waited for a processor once these were handed over, as a
    /// witness on the machine saw it.
    #[serde(default)]
    pub ends: Percentiles,
    /// The number of times that the clock of the arrival stamps was set.
    pub clock_steps: u64,
}
