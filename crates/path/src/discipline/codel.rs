//! Controlled delay (RFC 8289): the control law, and a single queue under it.

use super::settings::settings;
use super::waiting::Waiting;
use super::{
    Assumptions, Backlog, Chance, Discipline, Drops, MTU, Service, Settings, Standing, TARGETS,
    TEN_SECONDS,
};
use crate::Limit;
use trunkline_core::{DropCause, Metered, Span, Time};

/// The standing delay that is acceptable (RFC 8289 §5.3 and RFC 8290 §5.2.2).
pub(super) const TARGET: Span = Span::from_millis(5);
/// How long it may be exceeded (RFC 8289 §5.3 and RFC 8290 §5.2.1).
pub(super) const INTERVAL: Span = Span::from_millis(100);
/// The longest interval that is accepted.
pub(super) const INTERVAL_MAX: Span = Span::from_secs(100);
/// The reason why CoDel does nothing in a queue of so little. `None` if it does something.
pub(super) fn never_acts(limit: Limit, mtu: u32) -> Option<&'static str> {
    let little = match limit {
        Limit::Bytes(bytes) => bytes <= u64::from(mtu),
        Limit::Packets(packets) => packets <= 1,
        Limit::Cells(_) => false,
    };
    little.then_some(
        "limit is not above mtu, so that CoDel never drops or marks; give a larger limit or a smaller mtu",
    )
}

/// What a message calls a queue under CoDel.
pub(super) const CODEL: &str = "CoDel";

settings! {
    /// Controlled delay (RFC 8289).
    pub struct CodelSettings {
        /// How much may wait.
        limit: Limit;
        /// The standing delay that is acceptable.
        target: Span = TARGET, "the target" in TARGETS;
        /// How long it may be exceeded before the first drop.
        interval: Span = INTERVAL, "the interval" in target..=INTERVAL_MAX;
        /// Bytes in the queue up to which nothing is dropped: one maximal packet.
        mtu: u32 as Bytes = MTU;
        /// Whether packets that can be marked are marked instead of dropped.
        #[serde(default)]
        ecn: bool = false;
        /// The delay above which every packet that can be marked is, whatever CoDel says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ce_threshold: Option<Span> = None, "the marking threshold ce_threshold" in Span::ZERO..=TEN_SECONDS;
    }
}

impl Settings for CodelSettings {
    type Queue<P: Metered> = Codel<P>;

    const TRIALS: &'static [&'static str] = &[
        "target=5ms,interval=20ms,mtu=100,limit=9p",
        "target=5ms,interval=20ms,mtu=100,ecn=true,ce_threshold=3ms,limit=9p",
    ];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> Codel<P> {
        Codel::new(self)
    }

    fn assumptions(&self) -> Assumptions {
        let idle = never_acts(self.limit, self.mtu);
        let marks = self.ce_threshold;
        Assumptions { idle, marks, ..Assumptions::managed(CODEL, Standing::Delay(self.target)) }
    }
}

/// CoDel's constants (RFC 8289 §5.3).
#[derive(Debug, Clone, Copy)]
pub(super) struct Law {
    /// The standing delay that is acceptable (TARGET).
    pub target: Span,
    /// How long it may be exceeded before the first drop (INTERVAL).
    pub interval: Span,
    /// Bytes up to which a queue is never dropped from (MAXPACKET).
    pub mtu: u32,
    /// Whether packets that can be marked are marked instead of dropped (RFC 8290 §5.2.6).
    pub ecn: bool,
    /// The delay above which every packet is marked that can be (RFC 8290 §5.2.7); the longest span if
    /// there is none.
    pub ce_threshold: Span,
}

impl Law {
    /// When the next drop is due after one at `at`: `at + interval / sqrt(count)` (RFC 8289 §5.6).
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

    /// Marks the head's packet if that may be, else gives it up. Returns whether it is still there.
    fn spares<P: Metered>(&self, head: &mut Head<P>, drops: &mut Drops<P>) -> bool {
        let taken = head.packet.take();
        head.packet = taken.and_then(|it| drops.mark_or_drop(it, self.ecn, DropCause::CoDel));
        head.packet.is_some()
    }
}

/// The longest span, for a threshold that is never passed.
pub(super) const NEVER: Span = Span::from_nanos(u64::MAX);

/// A queue that CoDel can look after.
pub(super) trait Source<P> {
    /// Takes out the first packet, with the time at which it came.
    fn pop(&mut self) -> Option<(Time, P)>;
    /// The bytes that wait.
    fn bytes(&self) -> u64;
}

/// CoDel's variables for one queue (RFC 8289 §5.2).
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

/// The packet at the head, how long it has waited, and whether it may be dropped.
struct Head<P> {
    packet: Option<P>,
    waited: Span,
    ok_to_drop: bool,
}

impl Control {
    /// The next packet to send; those that CoDel gives up go to `drops` (RFC 8289 §5.5, `dequeue`). A packet
    /// that is marked instead is sent, and counts as a drop in all else.
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
                self.count += 1;
                if law.spares(&mut head, drops) {
                    self.drop_next = law.next_drop(self.drop_next, self.count);
                    break;
                }
                head = self.next(law, now, source);
                self.dropping = head.ok_to_drop;
                if self.dropping {
                    self.drop_next = law.next_drop(self.drop_next, self.count);
                }
            }
        } else if head.ok_to_drop {
            if !law.spares(&mut head, drops) {
                head = self.next(law, now, source);
            }
            self.start_dropping(law, now);
        }
        if head.waited > law.ce_threshold
            && let Some(packet) = &mut head.packet
        {
            drops.mark(packet);
        }
        head.packet
    }

    /// Enters the dropping state. If it was left not long ago, this one starts with the drop rate that held
    /// the queue then.
    fn start_dropping(&mut self, law: &Law, now: Time) {
        const LONG_AGO: u64 = 16;
        let recent = now.since(self.drop_next) < law.interval.scaled(LONG_AGO, 1);
        let delta = self.count - self.last_count;
        self.dropping = true;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = law.next_drop(now, self.count);
    }

    /// Takes out the head and judges its delay (RFC 8289 §5.6, `dodequeue`).
    #[inline]
    fn next<P: Metered>(&mut self, law: &Law, now: Time, source: &mut impl Source<P>) -> Head<P> {
        let Some((came, packet)) = source.pop() else {
            self.first_above = None;
            return Head { packet: None, waited: Span::ZERO, ok_to_drop: false };
        };
        let waited = now.since(came);
        let below = waited < law.target || source.bytes() <= u64::from(law.mtu);
        let ok_to_drop = !below && self.first_above.is_some_and(|instant| now >= instant);
        self.first_above = match self.first_above {
            _ if below => None,
            None => Some(now + law.interval),
            since => since,
        };
        Head { packet: Some(packet), waited, ok_to_drop }
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
}

impl<P: Metered> Source<P> for Waiting<P> {
    fn pop(&mut self) -> Option<(Time, P)> {
        self.pop_front()
    }
    fn bytes(&self) -> u64 {
        self.backlog().bytes
    }
}

impl<P: Metered> Codel<P> {
    /// An empty queue as `settings` say.
    pub fn new(settings: CodelSettings) -> Codel<P> {
        let CodelSettings { limit, target, interval, mtu, ecn, ce_threshold } = settings;
        Codel {
            waiting: Waiting::new(limit),
            control: Control::default(),
            law: Law { target, interval, mtu, ecn, ce_threshold: ce_threshold.unwrap_or(NEVER) },
        }
    }
}

impl<P: Metered> Discipline<P> for Codel<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        if !self.waiting.takes(packet.size()) {
            return drops.push(packet, DropCause::QueueLimit);
        }
        self.waiting.push_back(now, packet);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Service<P>> {
        self.control.dequeue(&self.law, now, &mut self.waiting, drops).map(Service::whole)
    }

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.waiting.set_limit(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_law_is_within_a_nanosecond_of_the_real_numbers() {
        for interval in [1u64, 999, 100_000_000, 100_000_000_000] {
            let (target, interval_span) = (Span::ZERO, Span::from_nanos(interval));
            let ecn = false;
            let law = Law { target, interval: interval_span, mtu: 1500, ecn, ce_threshold: NEVER };
            for count in (1..2000).chain((1..40).map(|k| k * k * 1_000_003)) {
                let step = law.next_drop(Time::ZERO, count).as_nanos();
                let real = interval as f64 / (count as f64).sqrt();
                // A double holds these quotients to better than 2e-5 ns.
                assert!((step as f64) < real + 2e-5 && step as f64 > real - 1.0 - 2e-5);
            }
        }
    }
}
