//! The state of a running path, for `show`, for the closing statement and for JSON.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trunkline_core::{Cause, Span};
use trunkline_measure::Percentiles;

/// The state of one direction. Times are printed with their units.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LaneSnapshot {
    /// Name of the direction: `up` or `down`, with the link's name before it if there are several.
    pub name: String,
    /// Packets that entered.
    pub entered: u64,
    /// User bytes that entered.
    pub entered_bytes: u64,
    /// Extra copies that the path made.
    pub duplicated: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
    /// User bytes delivered.
    pub delivered_bytes: u64,
    /// Packets that a discipline has marked as having experienced congestion (ECN).
    #[serde(default)]
    pub marked: u64,
    /// Packets dropped, by cause.
    pub dropped: BTreeMap<String, u64>,
    /// Those of them that the emulator, not the modelled path, lost.
    pub dropped_by_emulator: u64,
    /// Packets still under way: entered + duplicated − delivered − dropped.
    pub in_flight: u64,
    /// The effects that the impairments have achieved beside those asked of them, a line each.
    #[serde(default)]
    pub impairments: Vec<String>,
    /// Packets that wait for the line.
    pub queued_packets: u64,
    /// User bytes that wait for the line.
    pub queued_bytes: u64,
    /// Frames that left later than the bound of the run allows.
    pub late: u64,
    /// The lateness of frames that left, against their schedule.
    pub lateness: Percentiles,
    /// The difference of the gap between two frames from the gap that the path prescribes.
    pub spacing_error: Percentiles,
    /// The mean delay of delivered packets, by cause.
    pub mean_delay: Vec<(Cause, Span)>,
}

/// The state of a whole dataplane.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// The time that it has run.
    pub uptime: Span,
    /// Every direction.
    pub lanes: Vec<LaneSnapshot>,
    /// The number of times that the machine did not let the dataplane run for longer than a millisecond.
    pub stalls: u64,
    /// The time so lost in all.
    #[serde(default)]
    pub stalled: Span,
    /// The longest of these stalls.
    pub longest_stall: Span,
    /// The number of times that the dataplane lost more than 20 us while it was spinning or working.
    #[serde(default)]
    pub interruptions: u64,
    /// The time so lost in all.
    #[serde(default)]
    pub interrupted: Span,
    /// The time for which a program that waits for a frame waited for a processor once it was handed over: as a witness
    /// on this machine saw it, which is asked at most a hundred times a second.
    #[serde(default)]
    pub ends: Percentiles,
    /// The number of these waits longer than 10 ms.
    #[serde(default)]
    pub ends_late: u64,
    /// Whether programs are kept off the emulator's processor, so that they wait for each other only.
    #[serde(default)]
    pub own_processor: bool,
    /// The number of times that the wall clock was stepped.
    pub clock_steps: u64,
    /// Arrival stamps made before a step of the wall clock and read after it, and put right.
    #[serde(default)]
    pub stamps_corrected: u64,
    /// Arrival stamps of which nobody knows whether a step came before or after.
    #[serde(default)]
    pub stamps_uncertain: u64,
    /// By how much the arrival of one of those is uncertain at most.
    #[serde(default)]
    pub stamp_uncertainty: Span,
    /// Arrival stamps that cannot be true and were replaced by the time of reading.
    pub stamps_replaced: u64,
}

impl Snapshot {
    /// Packets lost by the emulator itself.
    pub fn dropped_by_emulator(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.dropped_by_emulator).sum()
    }
}
