//! Samples of the delivery rate, taken from the ACKs.
//!
//! Each sent segment carries a [`Stamp`] of what had been delivered by then. When it is delivered itself,
//! what was delivered in between, over the longer of the times in which it was sent and in which it was
//! acknowledged, is one sample: never above the rate of the path, however ACKs bunch
//! (draft-cheng-iccrg-delivery-rate-estimation, §2 and §3).

use trunkline_core::{Rate, Span, Time};

/// The sampler's note on each segment sent, kept by whoever keeps the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// P.delivered, and P.is_app_limited in the highest bit.
    delivered: u64,
    /// P.delivered_time.
    delivered_at: Time,
    /// P.first_sent_time.
    first_sent_at: Time,
}

const APP_LIMITED: u64 = 1 << 63;

impl Stamp {
    /// Bytes that had been delivered when the segment was sent.
    pub const fn delivered(&self) -> u64 {
        self.delivered & !APP_LIMITED
    }

    /// Whether the application limited the rate then.
    pub const fn app_limited(&self) -> bool {
        self.delivered & APP_LIMITED != 0
    }
}

/// One sample of the delivery rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes delivered in the interval.
    pub delivered: u64,
    /// The interval; `None` if it was too short to say anything of the rate (shorter than the shortest
    /// round trip).
    pub interval: Option<Span>,
    /// Bytes that had been delivered when the newest segment of the sample was sent. With `delivered` it
    /// sums to all that has been delivered on the connection.
    pub prior_delivered: u64,
    /// Whether the application limited the rate.
    pub app_limited: bool,
    /// Bytes newly found lost since the last ACK.
    pub lost: u64,
    /// Bytes in flight before the ACK.
    pub prior_in_flight: u64,
}

impl RateSample {
    /// The rate in bytes per second, rounded down.
    pub fn bytes_per_second(&self) -> Option<u64> {
        let nanos = self.interval?.as_nanos().max(1);
        let rate = u128::from(self.delivered) * 1_000_000_000 / u128::from(nanos);
        Some(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// The rate in bits per second.
    pub fn rate(&self) -> Option<Rate> {
        self.bytes_per_second().map(|bytes| Rate::from_bits_per_second(bytes.saturating_mul(8)))
    }
}

/// The segment with the newest stamp among those delivered by one ACK.
#[derive(Debug, Clone, Copy)]
struct Newest {
    stamp: Stamp,
    send_elapsed: Span,
}

/// Takes the samples. One for each sending end.
///
/// [`stamp`](RateSampler::stamp) at each transmission, first or repeated;
/// [`delivered`](RateSampler::delivered) for each segment that an ACK newly acknowledges or SACKs; then
/// [`sample`](RateSampler::sample) once for the ACK.
#[derive(Debug, Clone, Default)]
pub struct RateSampler {
    /// C.delivered: bytes delivered so far.
    delivered: u64,
    /// C.delivered_time.
    delivered_at: Time,
    /// C.first_sent_time.
    first_sent_at: Time,
    /// C.app_limited: what will have been delivered when the bubble has passed; 0 for none.
    app_limited_until: u64,
    newest: Option<Newest>,
}

impl RateSampler {
    /// A sampler at the beginning of a connection.
    pub fn new() -> RateSampler {
        RateSampler::default()
    }

    /// Bytes delivered so far.
    pub const fn total_delivered(&self) -> u64 {
        self.delivered
    }

    /// The stamp of a segment sent `now`, with `in_flight` bytes in flight before it (draft §3.2).
    pub fn stamp(&mut self, now: Time, in_flight: u64) -> Stamp {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        let mark = if self.app_limited_until == 0 { 0 } else { APP_LIMITED };
        Stamp {
            delivered: self.delivered | mark,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
        }
    }

    /// The application has nothing to send while the window would allow it, with `in_flight` bytes in
    /// flight and nothing lost waiting to be sent again (draft §3.4).
    pub fn app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// A segment of `bytes`, sent at `sent_at` with `stamp`, is newly known to have arrived (draft §3.3).
    pub fn delivered(&mut self, now: Time, stamp: &Stamp, sent_at: Time, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
        let newer = |newest: &Newest| stamp.delivered() >= newest.stamp.delivered();
        if self.newest.as_ref().is_none_or(newer) {
            let send_elapsed = sent_at.since(stamp.first_sent_at);
            self.newest = Some(Newest { stamp: *stamp, send_elapsed });
            self.first_sent_at = sent_at;
        }
    }

    /// The sample of the ACK that has just been processed; `None` if it delivered nothing.
    /// `lost` and `prior_in_flight` are handed on.
    pub fn sample(&mut self, min_rtt: Span, lost: u64, prior_in_flight: u64) -> Option<RateSample> {
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let Newest { stamp, send_elapsed } = self.newest.take()?;
        let interval = send_elapsed.max(self.delivered_at.since(stamp.delivered_at));
        Some(RateSample {
            delivered: self.delivered - stamp.delivered(),
            interval: Some(interval).filter(|&interval| interval >= min_rtt && !interval.is_zero()),
            prior_delivered: stamp.delivered(),
            app_limited: stamp.app_limited(),
            lost,
            prior_in_flight,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Ten segments of 1000 bytes, one each millisecond, each acknowledged 20 ms later.
    #[test]
    fn a_steady_stream_shows_its_own_rate() {
        let mut sampler = RateSampler::new();
        let mut stamps = Vec::new();
        let mut last = None;
        for millis in 0..60 {
            if millis >= 20 {
                let sent = millis - 20;
                sampler.delivered(at(millis), &stamps[sent as usize], at(sent), 1000);
                last = sampler.sample(Span::from_millis(20), 0, 20_000);
            }
            stamps.push(sampler.stamp(at(millis), 1000 * millis.min(20)));
        }
        let sample = last.unwrap();
        assert_eq!(sample.bytes_per_second(), Some(1_000_000));
        assert_eq!(sample.prior_delivered + sample.delivered, sampler.total_delivered());
        assert!(!sample.app_limited);
    }

    /// ACKs held back and let go at once do not show a rate above that of sending (draft §2.2).
    #[test]
    fn bunched_acks_do_not_flatter() {
        let mut sampler = RateSampler::new();
        let stamps: Vec<Stamp> =
            (0..10).map(|millis| sampler.stamp(at(millis), 1000 * millis)).collect();
        for (sent, stamp) in (0..).zip(&stamps) {
            sampler.delivered(at(100), stamp, at(sent), 1000);
        }
        let sample = sampler.sample(Span::from_millis(91), 0, 10_000).unwrap();
        assert_eq!(sample.interval, Some(Span::from_millis(100)));
        assert_eq!(sample.bytes_per_second(), Some(100_000));
    }

    #[test]
    fn an_interval_below_the_shortest_round_trip_says_nothing() {
        let mut sampler = RateSampler::new();
        let stamp = sampler.stamp(at(0), 0);
        sampler.delivered(at(5), &stamp, at(0), 1000);
        let sample = sampler.sample(Span::from_millis(10), 0, 1000).unwrap();
        assert_eq!((sample.interval, sample.bytes_per_second()), (None, None));
        assert_eq!(sampler.sample(Span::ZERO, 0, 0), None, "no delivery, no sample");
    }

    #[test]
    fn a_bubble_marks_what_is_sent_until_it_has_passed() {
        let mut sampler = RateSampler::new();
        let first = sampler.stamp(at(0), 0);
        sampler.app_limited(1000);
        let second = sampler.stamp(at(1), 1000);
        assert!(!first.app_limited() && second.app_limited());
        sampler.delivered(at(10), &first, at(0), 1000);
        assert!(!sampler.sample(Span::ZERO, 0, 2000).unwrap().app_limited);
        assert!(sampler.stamp(at(10), 1000).app_limited(), "the bubble is at 1000 still");
        sampler.delivered(at(11), &second, at(1), 1000);
        assert!(sampler.sample(Span::ZERO, 0, 1000).unwrap().app_limited);
        assert!(!sampler.stamp(at(12), 0).app_limited());
    }
}
