//! Datagrams on a wire.

use super::{Delivered, Departure, Wired};
use crate::Datagrams;
use std::collections::VecDeque;
use trunkline_core::Time;
use trunkline_transport::protocol::Unit;
use trunkline_transport::{Endpoint, Extent};

/// An end that sends datagrams. Their octets mean nothing; what comes is told by its size.
#[derive(Debug)]
pub struct DatagramWire {
    queue: Datagrams<()>,
    /// Bytes of header in front of what the other end sends.
    their_header: u32,
    heard: u64,
    inbox: VecDeque<Delivered>,
}

impl DatagramWire {
    /// An end whose datagrams count so many bytes of header on the path, and those that it gets so many.
    pub fn new(header: u32, their_header: u32) -> DatagramWire {
        DatagramWire {
            queue: Datagrams::new(header),
            their_header,
            heard: 0,
            inbox: VecDeque::new(),
        }
    }
}

impl Wired for DatagramWire {
    fn end(&self) -> &dyn Endpoint {
        &self.queue
    }

    fn end_mut(&mut self) -> &mut dyn Endpoint {
        &mut self.queue
    }

    fn offer(&mut self, now: Time, data: Extent, _end: bool) {
        self.queue.offer(now, data.len, None);
    }

    fn depart(&mut self, _now: Time, _room: usize, _out: &mut Vec<u8>) -> Option<Departure> {
        let (number, datagram) = self.queue.transmit()?;
        Some(Departure {
            size: datagram.bytes.saturating_add(datagram.header),
            filler: datagram.bytes,
            unit: Some(Unit { number, end: true, eligible: datagram.ready, first_sent: None }),
            ..Departure::default()
        })
    }

    fn arrive(&mut self, _now: Time, _octets: &[u8], size: u32) -> Option<u64> {
        let number = self.heard;
        self.heard += 1;
        let bytes = size.saturating_sub(self.their_header);
        self.inbox.push_back(Delivered { number, bytes, end: true, right: true });
        Some(number)
    }

    fn take(&mut self) -> Option<Delivered> {
        self.inbox.pop_front()
    }

    fn is_datagram(&self) -> bool {
        true
    }
}
