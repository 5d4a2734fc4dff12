//! How long a receiver waits for the packets of its buffers.

use super::super::incoming::{Incoming, Phase};
use super::{Receiver, spacing};
use trunkline_core::{Span, Time};

/// The tick of the timers, of which a data timer has two at least.
const TICK: Span = Span::from_millis(1);

impl Receiver {
    /// The timer of a buffer whose message has been acknowledged.
    pub(super) fn start_timer(&mut self, now: Time, index: usize, by_null_ack: bool) {
        let number = self.base.wrapping_add(index as u32);
        if number < self.untouched || self.buffers[index].is_touched() {
            self.buffers[index].phase = Phase::Receiving;
            return self.set_timer(now, index);
        }
        // Versions 4 and 5 say what has been touched; without that the time of all packets before is waited for.
        if self.dialect.is_classic() {
            let before = self.buffers.range(..=index).map(Incoming::missing);
            let mut patience = self.arrivals.patience(before.sum(), spacing(&*self.law));
            if by_null_ack {
                patience = patience.max(self.keepalive);
            }
            self.arm(now + patience.max(self.least()), index);
        }
    }

    /// The least of a data timer.
    pub(super) fn least(&self) -> Span {
        self.law.quantum().max(TICK.scaled(2, 1)).max(self.control.deviation())
    }

    /// Sets the timer of a buffer of which packets come.
    pub(super) fn set_timer(&mut self, now: Time, index: usize) {
        let ahead = self.buffers[index].ahead() + self.requested;
        let patience = self.arrivals.patience(ahead, spacing(&*self.law));
        self.arm(now + patience.max(self.least()), index);
    }

    /// Sets timers earlier that were set when packets came more slowly than they do now.
    pub(super) fn review(&mut self, now: Time) {
        if now.since(self.reviewed) < self.control.value() {
            return;
        }
        self.reviewed = now;
        for index in 0..self.buffers.len() {
            let buffer = &self.buffers[index];
            let Some(at) = buffer.timer.filter(|_| buffer.phase == Phase::Receiving) else {
                continue;
            };
            let ahead = buffer.ahead() + self.requested;
            let patience = self.arrivals.patience(ahead, spacing(&*self.law)).max(self.least());
            if now + patience < at {
                self.arm(now + patience, index);
            }
        }
    }

    pub(super) fn arm(&mut self, at: Time, index: usize) {
        self.unset_timer(index);
        self.buffers[index].timer = Some(at);
        self.timers.insert((at, self.base.wrapping_add(index as u32)));
    }

    pub(super) fn unset_timer(&mut self, index: usize) {
        if let Some(at) = self.buffers[index].timer.take() {
            self.timers.remove(&(at, self.base.wrapping_add(index as u32)));
        }
    }
}
