//! What a dataplane's loop does with frames.

use crate::EmuError;
use crate::clock::Clock;
use crate::snapshot::LaneSnapshot;
use trunkline_core::{Span, Time};
use trunkline_path::Change;
use trunkline_port::Port;

/// What a reading brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    /// The most frames that came from one port.
    pub most: usize,
    /// When the first of all came.
    pub earliest: Option<Time>,
}

impl Taken {
    /// Notes a frame that came at `at`.
    pub fn note(&mut self, at: Time) {
        self.earliest = Some(self.earliest.map_or(at, |earliest| earliest.min(at)));
    }
}

/// What a dataplane's loop does with frames. The loop decides when, and when it may sleep.
pub trait Work {
    /// The ports whose frames end a sleep.
    fn ports(&self) -> impl Iterator<Item = &dyn Port>;

    /// Reads what waits at the ports.
    ///
    /// # Errors
    /// Where receiving fails.
    fn receive(&mut self, clock: &mut Clock) -> Result<Taken, EmuError>;

    /// Lets the links work and sends what is due; answers how many frames that were.
    ///
    /// # Errors
    /// Where a device is gone, or down and that is not expected to pass.
    fn serve(&mut self, clock: &mut Clock) -> Result<usize, EmuError>;

    /// When there is next something to do, as far as is known now.
    fn next_wake(&self) -> Option<Time>;

    /// How long a frame may lie in a port's ring without being late: the least time that any frame is
    /// under way, and none where ports give no arrival stamps.
    fn patience(&self) -> Span;

    /// Looks after the devices.
    ///
    /// # Errors
    /// Where a device is gone, or down and that is not expected to pass.
    fn pulse(&mut self) -> Result<(), EmuError>;

    /// A bit for each port whose device was down at the last pulse and may come up again.
    fn down(&self) -> u64 {
        0
    }

    /// Counts what the ports lost.
    fn account(&mut self);

    /// Changes a setting of the lane with index `lane` at `at`.
    fn change(&mut self, lane: usize, at: Time, change: Change);

    /// What each lane has done so far.
    fn lanes(&self) -> Vec<LaneSnapshot>;
}
