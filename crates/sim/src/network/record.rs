//! The full trace: one binary record for everything that happens to a packet.

use std::fmt;
use std::io::{self, Write};
use trunkline_core::{DropCause, Time};

/// What a record tells of.
///
/// A record is 24 bytes, integers in little-endian order: time in nanoseconds (8 bytes), link (4), route (4),
/// user bytes (4), kind (1), drop cause (1: its index in [`DropCause::ALL`], 255 for none), and two zeros.
/// There is no header. A packet that is sent enters its first link; one that passes a link enters the next
/// link of its route at the same instant, or arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// It was sent and enters its first link.
    Sent = 0,
    /// It came out at the far end of the link.
    Passed = 1,
    /// It came out at the far end of the last link of its route.
    Arrived = 2,
    /// It was lost on the link.
    Lost = 3,
}

/// Bytes of one record.
pub const RECORD_BYTES: usize = 24;
/// Bytes gathered before they are written.
const BATCH: usize = 1 << 16;
/// The link of a packet whose route has none.
const NOWHERE: u32 = u32::MAX;

/// What a record says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) at: Time,
    pub(super) link: Option<u32>,
    pub(super) route: u32,
    pub(super) size: u32,
    pub(super) kind: RecordKind,
    pub(super) cause: Option<DropCause>,
}

impl Record {
    fn bytes(self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[..8].copy_from_slice(&self.at.as_nanos().to_le_bytes());
        bytes[8..12].copy_from_slice(&self.link.unwrap_or(NOWHERE).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.route.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.size.to_le_bytes());
        bytes[20] = self.kind as u8;
        bytes[21] = self.cause.map_or(u8::MAX, |cause| cause as u8);
        bytes
    }
}

/// Gathers records and writes them.
pub(super) struct Recorder {
    sink: Box<dyn Write + Send>,
    batch: Vec<u8>,
    records: u64,
    /// The first failure; nothing is written after it.
    failure: Option<io::Error>,
}

impl Recorder {
    pub(super) fn new(sink: Box<dyn Write + Send>) -> Recorder {
        let batch = Vec::with_capacity(BATCH + RECORD_BYTES);
        Recorder { sink, batch, records: 0, failure: None }
    }

    /// Adds a record.
    #[inline]
    pub(super) fn note(&mut self, record: Record) {
        self.batch.extend_from_slice(&record.bytes());
        self.records += 1;
        if self.batch.len() >= BATCH {
            self.write();
        }
    }

    #[cold]
    fn write(&mut self) {
        if self.failure.is_none() {
            self.failure = self.sink.write_all(&self.batch).err();
        }
        self.batch.clear();
    }

    /// Writes what is left. How many records there were, or the first failure.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.write();
        self.failure.map_or_else(|| self.sink.flush(), Err)?;
        Ok(self.records)
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("records", &self.records).finish_non_exhaustive()
    }
}
