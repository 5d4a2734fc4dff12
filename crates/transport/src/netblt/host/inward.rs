//! A transfer of the other end.

use crate::Extent;
use crate::netblt::connection::{Connection, Half};
use crate::netblt::wire::Packet;
use crate::protocol::Delivery;
use std::collections::BTreeMap;
use trunkline_core::Time;

/// A buffer's packets, as far as they have come.
type Parts = Vec<Option<Extent>>;

/// The receiving end of a transfer.
#[derive(Debug)]
pub(super) struct Inward {
    pub connection: Connection,
    /// Buffers of which something has come and that are not taken.
    buffers: BTreeMap<u64, Parts>,
    /// Those of them that are whole.
    whole: BTreeMap<u64, bool>,
    /// The buffer that is taken next, and the packet of it.
    next: (u64, usize),
    /// Packets of a full buffer.
    packets: u64,
    /// Units taken, and whether the last is among them.
    taken: u64,
    is_read: bool,
    /// Bytes taken that the host has not read, and those read that have not made room for a buffer.
    unread: u64,
    read: u64,
}

impl Inward {
    /// As many buffers may be under way as agreed, and as many be whole and not read.
    pub fn new(mut connection: Connection) -> Inward {
        connection.provide(2 * u64::from(connection.terms().outstanding));
        let packets = connection.terms().packets().into();
        Inward {
            connection,
            buffers: BTreeMap::new(),
            whole: BTreeMap::new(),
            next: (0, 0),
            packets,
            taken: 0,
            is_read: false,
            unread: 0,
            read: 0,
        }
    }

    /// A packet has come. Answers the number of its unit in the transfer if it is new.
    pub fn receive(&mut self, now: Time, packet: &Packet, data: Extent) -> Option<u64> {
        let placed = self.connection.receive(now, packet, true);
        if let Some(placed) = placed {
            let parts = self.buffers.entry(placed.buffer).or_default();
            let index = usize::from(placed.packet);
            if parts.len() <= index {
                parts.resize(index + 1, None);
            }
            parts[index] = Some(data);
        }
        if let Some(receiver) = self.connection.receiver() {
            while let Some(whole) = receiver.take() {
                self.whole.insert(whole.buffer, whole.last);
            }
        }
        placed.map(|it| it.buffer * self.packets + u64::from(it.packet))
    }

    /// The next unit of the stream.
    pub fn take(&mut self) -> Option<Delivery> {
        let (buffer, packet) = self.next;
        let last = *self.whole.get(&buffer)?;
        let parts = self.buffers.get(&buffer)?;
        let data = parts[packet].unwrap_or_default();
        let ends = packet + 1 == parts.len();
        self.next = (buffer, packet + 1);
        if ends {
            self.buffers.remove(&buffer);
            self.whole.remove(&buffer);
            self.next = (buffer + 1, 0);
            self.is_read = last;
        }
        let number = self.taken;
        self.taken += 1;
        self.unread += u64::from(data.len);
        Some(Delivery { number, data, end: ends && last })
    }

    /// The host has read so many bytes. Answers those that are not of this transfer.
    pub fn consumed(&mut self, bytes: u64) -> u64 {
        let own = bytes.min(self.unread);
        self.unread -= own;
        self.read += own;
        let size = u64::from(self.connection.terms().buffer);
        self.connection.provide(self.read / size);
        self.read %= size;
        bytes - own
    }

    /// Units taken so far.
    pub fn units(&self) -> u64 {
        self.taken
    }

    /// Whether all has been taken.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// Whether nothing is left to do.
    pub fn is_over(&self) -> bool {
        let is_closed = self.connection.ending().is_some();
        let has_more = match self.connection.half() {
            Some(Half::Receiver(_)) => !self.whole.is_empty(),
            _ => false,
        };
        is_closed && (self.is_read || !has_more)
    }
}
