//! Capture of frames into a file.

use trunkline_core::DropCause;

/// The two ends of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Where the command runs, or the first interface.
    Near,
    /// Where the peer runs, or the second interface.
    Far,
}

/// Where frames are shown as they pass. Without a file it does nothing.
#[derive(Debug, Default)]
pub struct CaptureTap;

impl CaptureTap {
    /// A frame came in at `side`; `at` is nanoseconds of CLOCK_REALTIME.
    pub fn arrived(&mut self, _side: Side, _at: u64, _bytes: &[u8]) {}
    /// A frame that had come in at `entry` left at the other side.
    pub fn departed(&mut self, _entry: Side, _at: u64, _bytes: &[u8]) {}
    /// A frame that had come in at `entry` was dropped.
    pub fn dropped(&mut self, _entry: Side, _at: u64, _bytes: &[u8], _cause: DropCause) {}
}
