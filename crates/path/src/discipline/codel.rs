//! Controlled delay (RFC 8289): the control law, and a single queue under it.

use super::tally::Tally;
use super::{Backlog, Discipline, Drops, Service};
use crate::Limit;
use std::collections::VecDeque;
use trunkline_core::{DropCause, Metered, Span, Time};

/// CoDel's constants (RFC 8289 §5).
#[derive(Debug, Clone, Copy)]
pub(super) struct Law {
    /// The standing delay that is acceptable (TARGET).
    pub target: Span,
    /// How long it may be exceeded before the first drop (INTERVAL).
    pub interval: Span,
    /// Bytes up to which a queue is never dropped from (MAXPACKET).
    pub mtu: u32,
}

impl Law {
    /// When the next drop is due after one at `at`: `at + interval / sqrt(count)` (RFC 8289 §5).
    ///
    /// Exact integer arithmetic, the same on every machine: the square root of interval² / count, rounded
    /// down to a nanosecond. So each step is less than 1 ns shorter than the real number.
    fn next_drop(&self, at: Time, count: u64) -> Time {
        let (interval, count) = (self.interval.as_nanos(), count.max(1));
        let step = match interval.checked_mul(interval) {
            Some(square) => (square / count).isqrt(),
            None => {
                (u128::from(interval) * u128::from(interval) / u128::from(count)).isqrt() as u64
            }
        };
        at + Span::from_nanos(step)
    }
}

/// A queue that CoDel can look after.
pub(super) trait Source<P> {
    /// Takes out the first packet, with the time at which it came.
    fn pop(&mut self) -> Option<(Time, P)>;
    /// The bytes that wait.
    fn bytes(&self) -> u64;
}

/// CoDel's variables for one queue (RFC 8289 §5).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Control {
    /// When the delay will have been above target for an interval. `None` while it is below.
    first_above: Option<Time>,
    drop_next: Time,
    /// Drops since the dropping state was entered, and that count when it was entered last.
    count: u64,
    last_count: u64,
    dropping: bool,
}

/// The packet at the head, and whether it may be dropped.
struct Head<P> {
    packet: Option<P>,
    ok_to_drop: bool,
}

impl Control {
    /// The next packet to send; those that CoDel gives up go to `drops` (RFC 8289 §5, `dequeue`).
    #[inline]
    pub fn dequeue<P: Metered>(
        &mut self,
        law: &Law,
        now: Time,
        source: &mut impl Source<P>,
        drops: &mut Drops<P>,
    ) -> Option<P> {
        let mut head = self.next(law, now, source);
        if self.dropping {
            self.dropping = head.ok_to_drop;
            // A large backlog can make the next drop due at once, hence the loop.
            while self.dropping && now >= self.drop_next {
                give_up(head.packet, drops);
                self.count += 1;
                head = self.next(law, now, source);
                self.dropping = head.ok_to_drop;
                if self.dropping {
                    self.drop_next = law.next_drop(self.drop_next, self.count);
                }
            }
        } else if head.ok_to_drop {
            give_up(head.packet, drops);
            head = self.next(law, now, source);
            self.start_dropping(law, now);
        }
        head.packet
    }

    /// Enters the dropping state. If it was left not long ago, the drop rate that held the queue then
    /// is where this one starts.
    fn start_dropping(&mut self, law: &Law, now: Time) {
        const LONG_AGO: u64 = 16;
        let recent = now.since(self.drop_next) < law.interval.scaled(LONG_AGO, 1);
        let delta = self.count - self.last_count;
        self.dropping = true;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = law.next_drop(now, self.count);
    }

    /// Takes out the head and judges its delay (RFC 8289 §5, `dodequeue`).
    #[inline]
    fn next<P: Metered>(&mut self, law: &Law, now: Time, source: &mut impl Source<P>) -> Head<P> {
        let Some((came, packet)) = source.pop() else {
            self.first_above = None;
            return Head { packet: None, ok_to_drop: false };
        };
        let below = now.since(came) < law.target || source.bytes() <= u64::from(law.mtu);
        let ok_to_drop = !below && self.first_above.is_some_and(|instant| now >= instant);
        self.first_above = match self.first_above {
            _ if below => None,
            None => Some(now + law.interval),
            since => since,
        };
        Head { packet: Some(packet), ok_to_drop }
    }
}

fn give_up<P: Metered>(packet: Option<P>, drops: &mut Drops<P>) {
    if let Some(packet) = packet {
        drops.push(packet, DropCause::CoDel);
    }
}

/// One queue under CoDel (RFC 8289), first in first out. Delay counts from when a packet entered the
/// discipline. A packet that would take the queue over its limit is dropped on arrival, except that
/// an empty queue takes any one packet.
#[derive(Debug)]
pub struct Codel<P> {
    waiting: Waiting<P>,
    control: Control,
    law: Law,
    limit: Limit,
}

#[derive(Debug)]
struct Waiting<P> {
    packets: VecDeque<(Time, P)>,
    tally: Tally,
}

impl<P: Metered> Source<P> for Waiting<P> {
    fn pop(&mut self) -> Option<(Time, P)> {
        let (came, packet) = self.packets.pop_front()?;
        self.tally.remove(packet.size());
        Some((came, packet))
    }
    fn bytes(&self) -> u64 {
        self.tally.backlog().bytes
    }
}

impl<P: Metered> Codel<P> {
    /// An empty queue that holds at most `limit`, with an acceptable standing delay `target` that may be
    /// exceeded for `interval`, and no drops while at most `mtu` bytes wait.
    pub fn new(limit: Limit, target: Span, interval: Span, mtu: u32) -> Codel<P> {
        Codel {
            waiting: Waiting { packets: VecDeque::new(), tally: Tally::default() },
            control: Control::default(),
            law: Law { target, interval, mtu },
            limit,
        }
    }
}

impl<P: Metered> Discipline<P> for Codel<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        if !self.waiting.tally.takes(packet.size(), self.limit) {
            return drops.push(packet, DropCause::QueueLimit);
        }
        self.waiting.tally.add(packet.size());
        self.waiting.packets.push_back((now, packet));
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Service<P>> {
        self.control.dequeue(&self.law, now, &mut self.waiting, drops).map(Service::whole)
    }

    fn backlog(&self) -> Backlog {
        self.waiting.tally.backlog()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_law_is_within_a_nanosecond_of_the_real_numbers() {
        for interval in [1u64, 999, 100_000_000, 100_000_000_000] {
            let law = Law { target: Span::ZERO, interval: Span::from_nanos(interval), mtu: 1500 };
            for count in (1..2000).chain((1..40).map(|k| k * k * 1_000_003)) {
                let step = law.next_drop(Time::ZERO, count).as_nanos();
                let real = interval as f64 / (count as f64).sqrt();
                // A double holds these quotients to better than 2e-5 ns.
                assert!((step as f64) < real + 2e-5 && step as f64 > real - 1.0 - 2e-5);
            }
        }
    }
}
