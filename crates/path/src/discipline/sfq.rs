//! Stochastic fair queueing (McKenney 1990).

use super::channels::{Channels, End, Turns, spread};
use super::settings::settings;
use super::{
    Assumptions, Backlog, Chance, Discipline, Drops, PACKET_QUANTUM, QUANTA, Service, Settings,
};
use crate::Limit;
use trunkline_core::{Channel, Metered, Span, Stream, Time};

settings! {
    /// Stochastic fair queueing (McKenney 1990; buckets, quantum and period of Linux's habits).
    pub struct SfqSettings {
        /// How much may wait in all; the longest bucket gives way.
        limit: Limit;
        /// How many queues the channels are hashed into.
        buckets: u32 = 1024, "the number of buckets" in 1..=1 << 20;
        /// Bytes of credit for each turn.
        quantum: u32 as Bytes = PACKET_QUANTUM, "the quantum in bytes" in QUANTA;
        /// How often the hash changes, so that no two channels share a bucket for long; 0s for never.
        perturb: Span = Span::from_secs(10), "the time between perturbations" in least(perturb)..=Span::from_secs(86_400);
    }
}

/// Never, or once in a millisecond at most.
fn least(perturb: Span) -> Span {
    if perturb.is_zero() { Span::ZERO } else { Span::from_millis(1) }
}

impl Settings for SfqSettings {
    type Queue<P: Metered> = Sfq<P>;

    const TRIALS: &'static [&'static str] = &["buckets=3,quantum=300,perturb=9ms,limit=12p"];

    fn build<P: Metered>(self, chance: &Chance<'_>) -> Sfq<P> {
        Sfq::new(self, chance.stream())
    }

    fn assumptions(&self) -> Assumptions {
        let idle = (self.buckets == 1
            && self.perturb != <SfqSettings as super::Keys>::with_limit(self.limit).perturb)
            .then_some("perturb has no effect on one bucket; give more buckets, or leave it out");
        Assumptions { idle, ..Assumptions::turns(self.quantum) }
    }
}

/// Stochastic fair queueing (McKenney, INFOCOM 1990): channels are hashed into buckets, which are served in
/// turn; when all is over its limit the longest bucket loses its last packet. The hash changes every now
/// and then, so that channels that share a bucket part again.
///
/// A turn is a quantum of bytes and not one packet, as is common since: what a packet takes beyond it counts
/// against the bucket's next turns. When the hash changes, what waits is sorted anew, so that the packets
/// of a channel stay in order: each waiting packet moves once in a period. "Longest" is within 5.9 %.
#[derive(Debug)]
pub struct Sfq<P> {
    buckets: Channels<P, Account>,
    settings: SfqSettings,
    /// The hash of this period, and what all of them are made from.
    salt: u64,
    root: u64,
    /// The number of this period.
    period: u64,
    moving: Vec<(Time, P)>,
}

/// What a bucket may still send in its turn.
#[derive(Debug, Default)]
struct Account {
    credits: i64,
}

impl<P: Metered> Sfq<P> {
    /// Empty buckets as `settings` say, whose hash is drawn from `stream`.
    pub fn new(settings: SfqSettings, mut stream: Stream) -> Sfq<P> {
        let root = stream.bits();
        Sfq {
            buckets: Channels::numbered(settings.buckets.max(1), settings.limit, false),
            settings,
            salt: spread(root),
            root,
            period: 0,
            moving: Vec::new(),
        }
    }

    /// The bucket of `channel` in this period. Spread twice, or channels whose numbers are close would part
    /// or not part under every salt alike.
    fn bucket(&self, channel: Channel) -> Channel {
        let hash = spread(spread(channel.0 ^ self.salt).wrapping_add(self.salt));
        let count = u128::from(self.settings.buckets.max(1));
        Channel(((u128::from(hash) * count) >> 64) as u64)
    }

    /// Changes the hash if its period is over.
    fn perturb(&mut self, now: Time) {
        let Some(period) = now.as_nanos().checked_div(self.settings.perturb.as_nanos()) else {
            return;
        };
        if period != self.period {
            self.period = period;
            self.salt = spread(self.root ^ spread(period));
            self.sort_anew();
        }
    }

    /// Puts what waits into the buckets of the present hash, and the buckets in the order of their turns.
    #[cold]
    fn sort_anew(&mut self) {
        while let Some(id) = self.buckets.first(Turns::First) {
            while let Some(waiting) = self.buckets.pop(id) {
                self.moving.push(waiting);
            }
            self.buckets.forget(id);
        }
        let mut moving = std::mem::take(&mut self.moving);
        let quantum = i64::from(self.settings.quantum);
        for (came, packet) in moving.drain(..) {
            let bucket = self.bucket(packet.channel());
            self.buckets.put(came, bucket, packet, |account| account.credits = quantum);
        }
        self.moving = moving;
    }
}

impl<P: Metered> Discipline<P> for Sfq<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        self.perturb(now);
        let (key, quantum) = (self.bucket(packet.channel()), i64::from(self.settings.quantum));
        let activate = |account: &mut Account| account.credits = quantum;
        self.buckets.enqueue(now, key, packet, End::Tail, drops, activate);
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Option<Service<P>> {
        self.perturb(now);
        loop {
            let id = self.buckets.first(Turns::First)?;
            let account = self.buckets.state(id);
            if account.credits <= 0 {
                account.credits += i64::from(self.settings.quantum);
                self.buckets.list(id, Turns::First);
                continue;
            }
            let (_, packet) = self.buckets.pop(id)?;
            self.buckets.state(id).credits -= i64::from(packet.size());
            if self.buckets.is_idle(id) {
                self.buckets.forget(id);
            }
            return Some(Service::whole(packet));
        }
    }

    fn backlog(&self) -> Backlog {
        self.buckets.backlog()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.buckets.set_limit(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::{Packet, Seed};

    fn sfq(text: &str) -> Sfq<Packet<u32>> {
        match text.parse().unwrap() {
            crate::DisciplineSpec::Sfq(settings) => Sfq::new(settings, Seed(3).stream("sfq")),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn two_channels_meet_in_one_period_of_as_many_as_there_are_buckets() {
        let mut sfq = sfq("sfq:buckets=8,perturb=1ms");
        for (one, other) in [(1, 2), (7, 1 << 40), (1000, 1001)] {
            let meets = |ms: u64| {
                sfq.perturb(Time::ZERO + Span::from_millis(ms));
                sfq.bucket(Channel(one)) == sfq.bucket(Channel(other))
            };
            // 8000 periods: 1000 meetings expected, with a deviation of 30.
            let met = (1..=8000).map(meets).filter(|&it| it).count();
            assert!((850..1150).contains(&met), "{one} and {other} met {met} times");
        }
    }

    #[test]
    fn a_new_hash_keeps_what_waits_in_order() {
        let mut sfq = sfq("sfq:buckets=4,perturb=1s,limit=1000p");
        let mut drops = Drops::default();
        for number in 0..600 {
            let channel = Channel(u64::from(number % 6));
            let packet = Packet::new(channel, 100, Time::ZERO, number);
            sfq.enqueue(Time::ZERO, packet, &mut drops);
        }
        let mut last = [None; 6];
        for step in 0..600u64 {
            let now = Time::ZERO + Span::from_millis(20 * step);
            let packet = sfq.dequeue(now, &mut drops).unwrap().packet.unwrap();
            let before = last[packet.channel.0 as usize].replace(packet.body);
            assert!(before < Some(packet.body), "{before:?} before {}", packet.body);
        }
        assert!(sfq.dequeue(Time::NEVER, &mut drops).is_none() && drops.is_empty());
    }

    #[test]
    fn a_turn_is_a_quantum_of_bytes() {
        let mut sfq = sfq("sfq:buckets=1024,quantum=1000,perturb=0s,limit=1000p");
        assert_ne!(sfq.bucket(Channel(1)), sfq.bucket(Channel(2)));
        for (channel, size) in [(1, 400), (2, 1000), (1, 400), (1, 400), (1, 400), (2, 1000)] {
            let packet = Packet::new(Channel(channel), size, Time::ZERO, 0);
            sfq.enqueue(Time::ZERO, packet, &mut Drops::default());
        }
        // Channel 1 has 1000, overdraws by 200 with its third packet, and has 800 in its next turn.
        let served: Vec<u64> =
            std::iter::from_fn(|| sfq.dequeue(Time::ZERO, &mut Drops::default()))
                .map(|service| service.channel.0)
                .collect();
        assert_eq!(served, [1, 1, 1, 2, 1, 2]);
    }
}
