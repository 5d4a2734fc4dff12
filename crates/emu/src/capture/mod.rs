//! Capture of frames into a pcapng file, as they pass, without holding up the dataplane.
//!
//! The dataplane puts each record, already in the file's form, into a ring of fixed size; a thread of
//! its own takes them from there to the disk. Where the disk does not keep up the ring fills, records
//! are left out, and how many is counted and written at the end of the file. The file has three
//! interfaces: `near` and `far`, the ends of the path, and `dropped`, where the frames are shown that
//! never arrived, so that they do not look delivered. Records stand in the order in which the
//! dataplane came to them; an arrival is stamped by the kernel before the dataplane sees it, so that
//! stamps may step back a little from one record to the next.

mod error;
mod pcapng;
mod writer;

pub use error::CaptureError;
pub use writer::{Capture, CaptureHandle, CaptureSummary};

use pcapng::{Direction, Interface, Record};
use rtrb::Producer;
use std::sync::Arc;
use trunkline_core::DropCause;
use writer::Shared;

/// The two ends of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Where the command runs, or the first interface.
    Near,
    /// Where the peer runs, or the second interface.
    Far,
}

impl Side {
    /// The other end.
    pub fn opposite(self) -> Side {
        match self {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        }
    }

    /// The name in captures and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Side::Near => "near",
            Side::Far => "far",
        }
    }
}

/// Which ends of the path are captured. Drops are recorded whatever the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CaptureFilter {
    /// The near end only.
    Near,
    /// The far end only.
    Far,
    /// Both ends: each frame that is delivered appears twice.
    #[default]
    Both,
}

impl CaptureFilter {
    /// Is `side` captured?
    pub fn takes(self, side: Side) -> bool {
        match self {
            CaptureFilter::Near => side == Side::Near,
            CaptureFilter::Far => side == Side::Far,
            CaptureFilter::Both => true,
        }
    }
}

/// Where frames are shown as they pass. Without a file it does nothing.
#[derive(Debug, Default)]
pub struct CaptureTap(Option<Recorder>);

/// The dataplane's end of the ring.
#[derive(Debug)]
struct Recorder {
    ring: Producer<u8>,
    /// The block under construction, with room for the largest.
    block: Vec<u8>,
    filter: CaptureFilter,
    shared: Arc<Shared>,
}

impl CaptureTap {
    /// A frame came in at `side`; `at` is nanoseconds of CLOCK_REALTIME.
    pub fn arrived(&mut self, side: Side, at: u64, bytes: &[u8]) {
        self.passed(side, Direction::Inbound, at, bytes);
    }

    /// A frame that had come in at `entry` left at the other side.
    pub fn departed(&mut self, entry: Side, at: u64, bytes: &[u8]) {
        self.passed(entry.opposite(), Direction::Outbound, at, bytes);
    }

    /// A frame that had come in at `entry` was dropped.
    pub fn dropped(&mut self, entry: Side, at: u64, bytes: &[u8], cause: DropCause) {
        let Some(recorder) = &mut self.0 else { return };
        let entry = match entry {
            Side::Near => " (entered at near)",
            Side::Far => " (entered at far)",
        };
        let comment = ["dropped: ", cause.name(), entry];
        let interface = Interface::Dropped;
        recorder.put(&Record { interface, direction: None, at, bytes, comment: &comment });
    }

    /// Why the capture has ended before its time, if it has: one line with cause and remedy.
    pub fn failed(&self) -> Option<String> {
        self.0.as_ref()?.shared.failure()
    }

    fn passed(&mut self, side: Side, direction: Direction, at: u64, bytes: &[u8]) {
        let Some(recorder) = &mut self.0 else { return };
        if recorder.filter.takes(side) {
            let interface = Interface::of(side);
            let direction = Some(direction);
            recorder.put(&Record { interface, direction, at, bytes, comment: &[] });
        }
    }
}

impl Recorder {
    /// Puts the whole record into the ring, or counts it as missed.
    fn put(&mut self, record: &Record<'_>) {
        if self.shared.has_failed() {
            return self.shared.miss(record.interface);
        }
        self.block.clear();
        record.encode(&mut self.block);
        if self.ring.push_entire_slice(&self.block).is_err() {
            self.shared.miss(record.interface);
        }
    }
}
