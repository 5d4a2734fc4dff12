//! What a connection brings to the receiver: chunks, or octets that belong together.

use crate::CHUNK;
use crate::desk::Task;
use std::collections::BTreeMap;
use trunkline_core::Time;
use trunkline_transport::netblt::wire::Packet;
use trunkline_transport::netblt::{Connection, Half, Placed, Whole};

/// The connection at work.
pub(crate) struct Current {
    /// The number of the session.
    pub guest: u64,
    /// The number of the connection.
    pub uid: u32,
    pub connection: Connection,
    stream: Stream,
}

/// What a connection brings.
pub(crate) enum Stream {
    /// These chunks, one in each buffer.
    Chunks {
        /// Their numbers.
        list: Vec<u64>,
        /// Those that are on their way, by their places in the list.
        inbox: BTreeMap<u64, Vec<u8>>,
    },
    /// Octets that are kept until all have come.
    Octets {
        octets: Vec<u8>,
        /// Buffers that have come, and all of them once that is known.
        come: u64,
        all: Option<u64>,
        /// What becomes of them.
        task: fn(Vec<u8>) -> Task,
    },
}

impl Stream {
    /// Chunks of these numbers.
    pub fn chunks(list: Vec<u64>) -> Stream {
        Stream::Chunks { list, inbox: BTreeMap::new() }
    }

    /// So many octets.
    pub fn octets(count: u64, task: fn(Vec<u8>) -> Task) -> Stream {
        Stream::Octets { octets: vec![0; count as usize], come: 0, all: None, task }
    }
}

impl Current {
    /// A connection that brings `stream`. `room` is for so many chunks.
    pub fn new(
        guest: u64,
        uid: u32,
        mut connection: Connection,
        stream: Stream,
        room: u64,
    ) -> Current {
        connection.provide(match &stream {
            Stream::Chunks { .. } => room,
            Stream::Octets { octets, .. } => octets.len().div_ceil(CHUNK as usize).max(1) as u64,
        });
        Current { guest, uid, connection, stream }
    }

    /// A packet has come. Each thing to do that comes of it goes to `give`.
    pub fn take(&mut self, now: Time, packet: &Packet, data: &[u8], give: &mut dyn FnMut(Task)) {
        if let Some(placed) = self.connection.receive(now, packet, true) {
            self.stream.place(&placed, data);
        }
        while let Some(whole) = self.connection.receiver().and_then(|half| half.take()) {
            self.stream.complete(whole).into_iter().for_each(&mut *give);
        }
    }

    /// There is room for a chunk more.
    pub fn provide(&mut self) {
        if let Stream::Chunks { .. } = self.stream {
            self.connection.provide(1);
        }
    }

    /// Whether no chunk is asked for because there is no room.
    pub fn is_starved(&self) -> bool {
        let half = self.connection.half();
        matches!(self.stream, Stream::Chunks { .. })
            && matches!(half, Some(Half::Receiver(half)) if half.is_starved())
    }
}

impl Stream {
    fn place(&mut self, placed: &Placed, data: &[u8]) {
        let offset = placed.offset as usize;
        match self {
            Stream::Chunks { inbox, .. } => {
                let chunk = inbox
                    .entry(placed.buffer)
                    .or_insert_with(|| Vec::with_capacity(CHUNK as usize));
                let end = offset + data.len();
                if chunk.len() < end {
                    chunk.resize(end, 0);
                }
                chunk[offset..end].copy_from_slice(data);
            }
            Stream::Octets { octets, .. } => {
                let start = placed.buffer as usize * CHUNK as usize + offset;
                // What does not fit was not announced.
                if let Some(place) = octets.get_mut(start..start + data.len()) {
                    place.copy_from_slice(data);
                }
            }
        }
    }

    fn complete(&mut self, whole: Whole) -> Option<Task> {
        match self {
            Stream::Chunks { list, inbox } => {
                let data = inbox.remove(&whole.buffer)?;
                let number = *list.get(whole.buffer as usize)?;
                Some(Task::Write(number, data))
            }
            Stream::Octets { octets, come, all, task } => {
                *come += 1;
                if whole.last {
                    *all = Some(whole.buffer + 1);
                }
                (*all == Some(*come)).then(|| task(std::mem::take(octets)))
            }
        }
    }
}
