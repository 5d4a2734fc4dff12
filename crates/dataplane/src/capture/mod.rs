//! Capture of frames into a pcapng file, as they pass, without holding up the dataplane.
//!
//! The dataplane puts each record, already in the file's form, into a ring of fixed size; a thread of
//! its own takes them from there to the disk. If the disk does not keep up the ring fills, records
//! are left out, and how many is counted and written at the end of the file. A [`CapturePlan`] names
//! the interfaces of the file: the two ends of each path, or each direction of each link, and `dropped`,
//! which shows the frames that never arrived, so that they do not look delivered. Records stand in the
//! order in which the dataplane came to them; an arrival is stamped by the kernel before the dataplane
//! sees it, so that stamps may step back a little from one record to the next.

mod error;
mod pcapng;
mod plan;
mod writer;

pub use error::CaptureError;
pub use plan::{CaptureFilter, CapturePlan};
pub use writer::{Capture, CaptureHandle, CaptureSummary, create_file};

use pcapng::{Direction, Record};
use rtrb::Producer;
use std::sync::Arc;
use trunkline_core::DropCause;
use writer::Shared;

/// The capture's view of the frames that pass. Without a file it does nothing.
#[derive(Debug, Default)]
pub struct CaptureTap(Option<Box<Recorder>>);

/// The dataplane's end of the ring.
#[derive(Debug)]
struct Recorder {
    ring: Producer<u8>,
    /// The block under construction, with room for the largest.
    block: Vec<u8>,
    plan: CapturePlan,
    shared: Arc<Shared>,
}

impl CaptureTap {
    /// A frame entered lane `lane`; `at` is nanoseconds of CLOCK_REALTIME.
    #[inline]
    pub fn arrived(&mut self, lane: usize, at: u64, bytes: &[u8]) {
        if let Some(recorder) = &mut self.0 {
            let interface = recorder.plan.lanes[lane].entry;
            recorder.passed(interface, Direction::Inbound, at, bytes);
        }
    }

    /// A frame came out of lane `lane`.
    #[inline]
    pub fn departed(&mut self, lane: usize, at: u64, bytes: &[u8]) {
        if let Some(recorder) = &mut self.0 {
            let interface = recorder.plan.lanes[lane].exit;
            recorder.passed(interface, Direction::Outbound, at, bytes);
        }
    }

    /// A frame that had entered lane `lane` was dropped.
    #[inline]
    pub fn dropped(&mut self, lane: usize, at: u64, bytes: &[u8], cause: DropCause) {
        let Some(recorder) = &mut self.0 else { return };
        let Recorder { ring, block, plan, shared } = &mut **recorder;
        let interface = plan.interfaces.len() as u32 - 1;
        let comment = ["dropped: ", cause.name(), &plan.lanes[lane].entered_at];
        let record = Record { interface, direction: None, at, bytes, comment: &comment };
        put(ring, block, shared, &record);
    }

    /// The reason why the capture has ended before its time, if it has: one line with cause and remedy.
    pub fn failed(&self) -> Option<String> {
        self.0.as_ref()?.shared.failure()
    }
}

impl Recorder {
    fn passed(&mut self, interface: u32, direction: Direction, at: u64, bytes: &[u8]) {
        let Recorder { ring, block, plan, shared } = self;
        if plan.interfaces[interface as usize].taken {
            let direction = Some(direction);
            put(ring, block, shared, &Record { interface, direction, at, bytes, comment: &[] });
        }
    }
}

/// Puts the whole record into the ring, or counts it as missed.
fn put(ring: &mut Producer<u8>, block: &mut Vec<u8>, shared: &Shared, record: &Record<'_>) {
    if shared.has_failed() {
        return shared.miss(record.interface);
    }
    block.clear();
    record.encode(block);
    if ring.push_entire_slice(block).is_err() {
        shared.miss(record.interface);
    }
}
