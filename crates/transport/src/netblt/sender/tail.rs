//! The packets of the last half round trip, which go twice.
//!
//! When everything has been sent, the line is free while the receiver's word is on its way. A packet that is lost shortly before
//! the end is asked for a round trip after it was sent, so that a copy is there sooner; the newest gain most and go first. Of a
//! packet sent more than half a round trip before the end, the request comes before its turn would.

use super::{Sender, packets};
use trunkline_core::{Span, Time};

/// Those packets.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    /// When a packet was last sent for the first time.
    since: Time,
    /// The packets, oldest first, once they are known: the buffer's number and the packet's.
    left: Option<Vec<(u32, u16)>>,
}

impl Tail {
    /// A packet is sent for the first time.
    pub(super) fn is_new(&mut self, now: Time) {
        self.since = now;
    }

    /// The packet that goes next.
    pub(super) fn next(&self) -> Option<(u32, u16)> {
        self.left.as_ref()?.last().copied()
    }

    /// A packet is sent again.
    pub(super) fn is_sent(&mut self, packet: (u32, u16)) {
        if let Some(left) = self.left.as_mut().filter(|it| it.last() == Some(&packet)) {
            left.pop();
        }
    }

    /// The receiver has a buffer.
    pub(super) fn confirmed(&mut self, buffer: u32) {
        if let Some(left) = &mut self.left {
            left.retain(|it| it.0 != buffer);
        }
    }
}

impl Sender {
    /// Finds the tail once everything has been sent, if a law keeps the pace and this path has lost something. Packets of RFC 998
    /// go as they always did.
    pub(super) fn find_tail(&mut self, now: Time) {
        let has_lost = self.sent.again > 0 || !self.again.is_empty();
        let is_end = self.ended && self.at as u64 == self.filled - self.done;
        let is_ours = self.pace.is_even() && !self.dialect.is_classic();
        if !(is_end && has_lost && is_ours) || self.tail.left.is_some() {
            return;
        }
        let Some(base) = self.base else { return };
        let time = self.timer.scaled(1, 2).saturating_sub(now.since(self.tail.since));
        let count = time.as_nanos() / self.pace.gap().max(Span::from_nanos(1)).as_nanos();
        let buffers = self.buffers.iter().enumerate().filter(|(_, it)| !it.confirmed);
        let all = buffers.rev().flat_map(|(index, it)| {
            let number = base.wrapping_add(index as u32);
            let count = it.filled.map_or(0, |(bytes, _)| packets(bytes, self.terms.packet));
            (0..count).rev().map(move |packet| (number, packet as u16))
        });
        let mut left: Vec<_> = all.take(count as usize).collect();
        left.reverse();
        self.tail.left = Some(left);
    }
}
