//! What follows the last packet, while the receiver's word is on its way and the line is free.
//!
//! A packet that is lost shortly before the end is asked for a round trip after it was sent. If the ends have agreed to parity, the buffers
//! of the last round trip get rows of it: any of them gives any lost packet back, so that a few rows are enough. Otherwise the packets of
//! the last half round trip go twice; the newest gain most and go first. Of a packet sent more than half a round trip before the end,
//! the request comes before its turn would.

use super::super::parity::MOST;
use super::super::wire::Parity;
use super::{Sender, packets};
use trunkline_core::{Span, Time};

/// Those packets.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    /// When a packet was last sent for the first time.
    since: Time,
    /// Whether what follows is known.
    is_found: bool,
    /// Copies that go, oldest first: the buffer's number and the packet's.
    copies: Vec<(u32, u16)>,
    /// Buffers that get parity, how many rows each, and how many rows have gone: in turn one of each buffer.
    buffers: Vec<u32>,
    rows: usize,
    gone: usize,
}

impl Tail {
    /// A packet is sent for the first time.
    pub(super) fn is_new(&mut self, now: Time) {
        self.since = now;
    }

    /// The packet that goes next.
    pub(super) fn next(&self) -> Option<(u32, u16)> {
        self.copies.last().copied()
    }

    /// The row that goes next: the buffer, and its number.
    pub(super) fn next_row(&self) -> Option<(u32, usize)> {
        let count = self.buffers.len().max(1);
        let row = self.gone / count;
        (row < self.rows).then(|| self.buffers.get(self.gone % count).map(|&it| (it, row)))?
    }

    /// A packet is sent again.
    pub(super) fn is_sent(&mut self, packet: (u32, u16)) {
        self.copies.pop_if(|it| *it == packet);
    }

    /// The receiver has a buffer.
    pub(super) fn confirmed(&mut self, buffer: u32) {
        self.copies.retain(|it| it.0 != buffer);
        if let Some(index) = self.buffers.iter().position(|&it| it == buffer) {
            // As many rows as before have gone of each of the others.
            let (count, at) = (self.buffers.len(), self.gone % self.buffers.len());
            self.buffers.remove(index);
            self.gone = self.gone / count * (count - 1) + at - usize::from(index < at);
        }
    }
}

impl Sender {
    /// Finds what follows once everything has been sent, if a law keeps the pace and this path has lost something. Packets of RFC 998
    /// go as they always did.
    pub(super) fn find_tail(&mut self, now: Time) {
        let has_lost = self.lost.0 > 0;
        let is_end = self.ended && self.at as u64 == self.filled - self.done;
        let is_ours = self.pace.is_even() && !self.dialect.is_classic();
        if !(is_end && has_lost && is_ours) || self.tail.is_found {
            return;
        }
        self.tail.is_found = true;
        let since = now.since(self.tail.since);
        let gap = self.pace.gap().max(Span::from_nanos(1)).as_nanos();
        let count = |time: Span| (time.saturating_sub(since).as_nanos() / gap) as usize;
        let half = count(self.timer.scaled(1, 2));
        if self.terms.parity && self.terms.packets() as usize <= MOST {
            return self.find_parity(count(self.timer.scaled(2, 1)), half);
        }
        let mut copies: Vec<_> = self.newest().take(half).collect();
        copies.reverse();
        self.tail.copies = copies;
    }

    /// The packets of buffers that are not confirmed, the last one first.
    fn newest(&self) -> impl Iterator<Item = (u32, u16)> + '_ {
        let base = self.base.unwrap_or_default();
        let buffers = self.buffers.iter().enumerate().filter(|(_, it)| !it.confirmed);
        buffers.rev().flat_map(move |(index, it)| {
            let number = base.wrapping_add(index as u32);
            let count = it.filled.map_or(0, |(bytes, _)| packets(bytes, self.terms.packet));
            (0..count).rev().map(move |packet| (number, packet as u16))
        })
    }

    /// Parity for the buffers of the last `count` packets: of each as many rows as packets of it are lost by the share that was asked for,
    /// and three standard deviations, since one buffer of several is to be short of none; not more than `most` in all.
    fn find_parity(&mut self, count: usize, most: usize) {
        let mut buffers: Vec<u32> = self.newest().take(count.max(1)).map(|it| it.0).collect();
        buffers.dedup();
        let known = self.sent.packets.saturating_sub(count as u64).max(1);
        let lost = (u64::from(self.terms.packets()) * self.lost.0).div_ceil(known);
        let spread = (2 * self.lost.0 / self.lost.1.max(1)).max(2) - 1;
        let rows = lost + (9 * (lost + 1) * spread).isqrt() + 1;
        let most = (most / buffers.len().max(1)).clamp(1, MOST);
        self.tail.rows = usize::try_from(rows).unwrap_or(MOST).min(most);
        self.tail.buffers = buffers;
    }

    /// The next row of parity, if one may be sent, and the number of its buffer, counted from 0.
    pub fn parity(&mut self, now: Time) -> Option<(Parity, u64)> {
        if self.next_data() > now || self.is_needed() {
            return None;
        }
        let (buffer, row) = self.tail.next_row()?;
        let index = buffer.wrapping_sub(self.base?) as usize;
        let (bytes, last) = self.buffers.get(index)?.filled?;
        self.tail.gone += 1;
        self.sent.again += 1;
        self.goes(now);
        let (packet, count) = (self.terms.packet, packets(bytes, self.terms.packet));
        let parity = Parity {
            buffer,
            touched: self.touched,
            ack: self.heard.high(),
            row: row as u16,
            packets: count as u16,
            tail: (bytes - (count - 1) * u32::from(packet)) as u16,
            checksum: 0,
            last,
            bytes: packet,
        };
        Some((parity, self.done + index as u64))
    }
}
