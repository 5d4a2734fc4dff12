//! Datagrams: no protocol, each a message of its own that nobody answers.

use std::collections::VecDeque;
use trunkline_core::Time;
use trunkline_transport::{Counters, Endpoint, Held};

/// A datagram to be sent.
#[derive(Debug)]
pub struct Datagram<C> {
    /// User bytes.
    pub bytes: u32,
    /// Bytes of header before them.
    pub header: u32,
    /// Since when it could be sent.
    pub ready: Time,
    /// The companions that it brings to its reader, if they go with it.
    pub carried: Option<C>,
}

/// Datagrams that wait to be sent.
#[derive(Debug)]
pub struct Datagrams<C> {
    waiting: VecDeque<Datagram<C>>,
    /// User bytes of those.
    bytes: u64,
    sent: u64,
    header: u32,
}

impl<C> Datagrams<C> {
    /// None yet; each will have so many bytes of header.
    pub fn new(header: u32) -> Datagrams<C> {
        Datagrams { waiting: VecDeque::new(), bytes: 0, sent: 0, header }
    }

    /// Bytes of header that each has.
    pub fn header(&self) -> u32 {
        self.header
    }

    /// Takes over a datagram with what it brings to its reader.
    pub fn offer(&mut self, now: Time, bytes: u32, carried: Option<C>) {
        self.bytes += u64::from(bytes);
        self.waiting.push_back(Datagram { bytes, header: self.header, ready: now, carried });
    }

    /// Counts a datagram that is sent without having waited here. Returns its bytes of header.
    pub fn pass(&mut self) -> u32 {
        self.sent += 1;
        self.header
    }

    /// The next to be sent, and its number.
    pub fn transmit(&mut self) -> Option<(u64, Datagram<C>)> {
        let datagram = self.waiting.pop_front()?;
        self.bytes -= u64::from(datagram.bytes);
        self.sent += 1;
        Some((self.sent - 1, datagram))
    }
}

impl<C> Endpoint for Datagrams<C> {
    fn units_of(&self, _bytes: u32, _end: bool) -> u64 {
        1
    }

    fn deadline(&self) -> Option<Time> {
        None
    }

    fn expire(&mut self, _now: Time) {}

    fn unsent(&self) -> u64 {
        self.bytes
    }

    fn unanswered(&self) -> u64 {
        0
    }

    fn held(&self, _now: Time) -> Option<Held> {
        None
    }

    fn dead(&self) -> bool {
        false
    }

    fn counters(&self) -> Counters {
        Counters { units: self.sent, answered: self.sent, ..Counters::default() }
    }
}
