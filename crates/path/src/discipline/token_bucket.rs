//! The token bucket, as a shaper and as a policer.

use super::settings::{choice, settings};
use super::waiting::Waiting;
use super::{Assumptions, Backlog, Chance, Discipline, Drops, PACKET_QUANTUM, Service, Settings};
use crate::Limit;
use crate::spec::SpecError;
use trunkline_core::{DropCause, Metered, Rate, Span, Time};

settings! {
    /// A token bucket: no more leaves in any time than the burst and what the rate gives (RFC 2697's committed rate and
    /// burst; tc's tbf). Bytes are user bytes.
    pub struct TokenBucketSettings {
        /// How much may wait.
        limit: Limit;
        /// The rate at which tokens come; it must be given.
        rate: Option<Rate> = None, "the token rate" in RATES;
        /// Bytes that may leave at once after a pause: what the bucket holds. No larger packet passes.
        burst: u32 as Bytes = 10 * PACKET_QUANTUM, "the burst in bytes" in BYTES;
        /// The rate of a second bucket, of mtu bytes: how fast a burst may leave.
        peak: Option<Rate> = None, "the peak rate" in RATES;
        /// Bytes that the peak rate's bucket holds.
        mtu: u32 as Bytes = PACKET_QUANTUM, "the mtu in bytes" in BYTES;
        /// What becomes of a packet without tokens: with shape it waits for them, with police it is dropped.
        mode: Mode = Mode::Shape;
    }
}

choice! {
    /// What becomes of a packet for which there are no tokens.
    pub enum Mode {
        /// It waits for them, and all others behind it.
        Shape = "shape",
        /// It is dropped when it comes.
        Police = "police",
    }
}

const RATES: std::ops::RangeInclusive<Rate> =
    Rate::from_bits_per_second(1)..=Rate::from_bits_per_second(10_000_000_000_000);
const BYTES: std::ops::RangeInclusive<u32> = 1..=1 << 30;

impl Settings for TokenBucketSettings {
    type Queue<P: Metered> = TokenBucket<P>;

    const ALIASES: &'static [&'static str] = &["tbf", "shaper", "policer", "police"];

    const TRIALS: &'static [&'static str] = &[
        "rate=2Mbit/s,burst=3kB,limit=9p",
        "rate=1Mbit/s,peak=4Mbit/s,burst=4kB,mtu=2kB,limit=5kB",
        "rate=4Mbit/s,burst=9kB,mode=police,limit=9p",
        "rate=3Mbit/s,burst=1900,limit=80c",
    ];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> TokenBucket<P> {
        TokenBucket::new(self)
    }

    fn assumptions(&self) -> Assumptions {
        let early = (self.mode == Mode::Police).then_some("a policer");
        let largest = Some(self.peak.map_or(self.burst, |_| self.burst.min(self.mtu)));
        let idle = (self.peak.is_none() && self.mtu != PACKET_QUANTUM)
            .then_some("mtu has no effect without a peak; give a peak, or leave it out");
        Assumptions { cap: self.rate, burst: self.burst, early, largest, idle, ..Assumptions::FIFO }
    }

    fn check(&self) -> Result<(), SpecError> {
        let problem = match (self.rate, self.peak) {
            (None, _) => "a token bucket needs a rate: give rate=1Mbit/s".to_string(),
            (Some(rate), Some(peak)) if peak < rate => {
                format!("peak {peak} is below rate {rate}: give a higher one, or leave it out")
            }
            _ => return Ok(()),
        };
        Err(SpecError::Conflict(problem))
    }
}

/// A queue, first in first out, in front of one or two token buckets that are full at the beginning of time.
///
/// A packet leaves when each bucket holds as many tokens as it has user bytes, and takes them along. One that is
/// larger than a bucket would wait for ever and is dropped when it comes. A policer's tokens are taken on arrival.
#[derive(Debug)]
pub struct TokenBucket<P> {
    waiting: Waiting<P>,
    mode: Mode,
    buckets: Vec<Bucket>,
}

/// Tokens, exactly: in bits times a second in nanoseconds, so that the rate times nanoseconds adds to them.
#[derive(Debug)]
struct Bucket {
    rate: u64,
    depth: u128,
    level: u128,
    /// When the level was that.
    at: Time,
}

fn tokens(bytes: u32) -> u128 {
    u128::from(bytes) * 8 * 1_000_000_000
}

impl Bucket {
    fn new(rate: Rate, bytes: u32) -> Bucket {
        let depth = tokens(bytes);
        Bucket { rate: rate.bits_per_second().max(1), depth, level: depth, at: Time::ZERO }
    }

    fn fill(&mut self, now: Time) {
        let come = u128::from(self.rate) * u128::from(now.since(self.at).as_nanos());
        self.level = (self.level + come).min(self.depth);
        self.at = self.at.max(now);
    }

    /// When it holds the tokens of `bytes`.
    fn ready(&self, bytes: u32) -> Time {
        let lacking = tokens(bytes).saturating_sub(self.level);
        let wait = lacking.div_ceil(u128::from(self.rate));
        self.at + Span::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }
}

impl<P: Metered> TokenBucket<P> {
    /// An empty queue and full buckets as `settings` say.
    pub fn new(settings: TokenBucketSettings) -> TokenBucket<P> {
        let TokenBucketSettings { limit, rate, burst, peak, mtu, mode } = settings;
        let buckets = [(rate, burst), (peak, mtu)].into_iter();
        let buckets = buckets.filter_map(|(rate, bytes)| Some(Bucket::new(rate?, bytes))).collect();
        TokenBucket { waiting: Waiting::new(limit), mode, buckets }
    }

    /// Whether a packet of `bytes` has all its tokens at `now`.
    fn conforms(&mut self, now: Time, bytes: u32) -> bool {
        self.buckets.iter_mut().for_each(|bucket| bucket.fill(now));
        self.buckets.iter().all(|bucket| bucket.level >= tokens(bytes))
    }

    fn take(&mut self, bytes: u32) {
        self.buckets.iter_mut().for_each(|bucket| bucket.level -= tokens(bytes));
    }

    /// Whether a packet of `bytes` may come in, and when it does a policer's tokens are gone.
    fn admits(&mut self, now: Time, bytes: u32) -> bool {
        match self.mode {
            Mode::Shape => self.buckets.iter().all(|bucket| bucket.depth >= tokens(bytes)),
            Mode::Police => {
                let conforms = self.conforms(now, bytes);
                if conforms {
                    self.take(bytes);
                }
                conforms
            }
        }
    }
}

impl<P: Metered> Discipline<P> for TokenBucket<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let size = packet.size();
        if !self.waiting.takes(size) {
            return drops.push(packet, DropCause::QueueLimit);
        }
        if !self.admits(now, size) {
            return drops.push(packet, DropCause::EarlyDiscard);
        }
        self.waiting.push_back(now, packet);
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Option<Service<P>> {
        let size = self.waiting.front()?.size();
        if self.holds() {
            if !self.conforms(now, size) {
                return None;
            }
            self.take(size);
        }
        let (_, packet) = self.waiting.pop_front()?;
        Some(Service::whole(packet))
    }

    fn holds(&self) -> bool {
        self.mode == Mode::Shape
    }

    fn next_ready(&self) -> Option<Time> {
        let size = self.waiting.front()?.size();
        self.buckets.iter().map(|bucket| bucket.ready(size)).max()
    }

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.waiting.set_limit(limit);
    }
}
