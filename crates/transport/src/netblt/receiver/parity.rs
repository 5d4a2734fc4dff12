//! Parity at the receiver, which says what a buffer lacks; its client keeps rows and works out what they give back.

use super::super::incoming::Phase;
use super::super::law::{Arrival, on_path};
use super::super::parity::MOST;
use super::super::wire::Parity;
use super::{Holes, Receiver};
use trunkline_core::Time;

impl Receiver {
    /// A row of parity has come, which is as it was sent if `is_right`. Answers the number of its buffer, counted from 0, if that lacks
    /// packets.
    pub fn parity(&mut self, now: Time, parity: &Parity, is_right: bool) -> Option<u64> {
        self.acknowledged(now, parity.ack, None, false);
        if !is_right || !self.terms.parity || usize::from(parity.row) >= MOST {
            return None;
        }
        let bytes = on_path(parity.bytes, self.dialect);
        self.law.arrived(&Arrival { at: now, bytes, place: None });
        let index = parity.buffer.wrapping_sub(self.base) as usize;
        let is_open = self.buffers.get(index).is_some_and(|it| it.phase != Phase::Received);
        if !is_open {
            return None;
        }
        let is_wrong = self.contradicts(parity.buffer, parity.last);
        if is_wrong || self.buffers[index].learn(parity, self.terms.packet).is_err() {
            self.received.strays += 1;
            return None;
        }
        if parity.last && self.last.is_none() {
            self.found_last(parity.buffer);
        }
        self.pass(now, parity.buffer, parity.touched);
        Some(self.done + index as u64)
    }

    /// What a buffer lacks of which something has come, counted from 0, if it is known where it ends.
    pub fn holes(&self, buffer: u64) -> Option<Holes> {
        let index = usize::try_from(buffer.checked_sub(self.done)?).ok()?;
        let it = self.buffers.get(index)?;
        let is_open = it.phase != Phase::Received && it.is_sized();
        let (missing, packet) = (it.absent(), self.terms.packet);
        is_open.then(|| Holes { missing: missing.collect(), bytes: it.bytes(packet) })
    }

    /// Bytes of a full packet, and of a row of parity.
    pub fn packet(&self) -> usize {
        self.terms.packet.into()
    }

    /// All that a buffer with [`holes`](Receiver::holes) lacks is known and in its place.
    pub fn fill_in(&mut self, buffer: u64) {
        if self.holes(buffer).is_some() {
            let index = (buffer - self.done) as usize;
            self.received.packets += u64::from(self.buffers[index].fill_in());
            self.completed(index);
        }
    }
}
