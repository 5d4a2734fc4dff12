//! One sender, one bottleneck with a first-in-first-out queue, a constant way there and back: enough to
//! see what a controller makes of a path. Every segment is new; a lost one is noticed when the third
//! after it is acknowledged.

use crate::congestion::MSS;
use std::collections::VecDeque;
use trunkline_core::{Rate, Span, Time};
use trunkline_transport::tcp::congestion::{
    Ack, Congestion, Controller, RateSampler, Reason, Stamp,
};

/// The bottleneck and the way.
#[derive(Clone, Copy)]
pub struct Path {
    pub rate: Rate,
    /// There and back, without queue and transmission.
    pub way: Span,
    /// Bytes that the queue holds.
    pub buffer: u64,
}

impl Path {
    /// The round trip of one segment on an empty path.
    pub fn round_trip(&self) -> Span {
        self.way + self.transmission()
    }

    /// The bytes in flight when the pipe is just full.
    pub fn pipe(&self) -> u64 {
        self.rate.bytes_in(self.round_trip())
    }

    /// The time that a segment takes on the line.
    pub fn transmission(&self) -> Span {
        let bits = 8 * u64::from(MSS) * 1_000_000_000;
        Span::from_nanos(bits.div_ceil(self.rate.bits_per_second()))
    }
}

struct Segment {
    number: u64,
    sent: Time,
    stamp: Stamp,
    /// The time at which its ACK comes; `None` if it was lost.
    back: Option<Time>,
}

/// The observations from some instant on.
#[derive(Default, Debug, Clone, Copy)]
pub struct Seen {
    pub delivered: u64,
    pub lost: u64,
    pub most_in_flight: u64,
    pub longest_rtt: Span,
    rtts: Span,
    acks: u64,
}

impl Seen {
    pub fn mean_rtt(&self) -> Span {
        self.rtts.scaled(1, self.acks)
    }
}

pub struct Sender {
    pub controller: Controller,
    path: Path,
    sampler: RateSampler,
    now: Time,
    next: u64,
    flight: VecDeque<Segment>,
    in_flight: u64,
    /// Nothing goes out before this instant, by pacing.
    paced_until: Time,
    line_free: Time,
    recover_until: Option<u64>,
    /// Losses before this number belong to a recovery that has begun.
    accounted: u64,
    round_ends: u64,
    smoothed: Span,
    shortest: Span,
    pub seen: Seen,
}

impl Sender {
    pub fn new(controller: Controller, path: Path) -> Sender {
        Sender {
            controller,
            path,
            sampler: RateSampler::new(),
            now: Time::ZERO,
            next: 0,
            flight: VecDeque::new(),
            in_flight: 0,
            paced_until: Time::ZERO,
            line_free: Time::ZERO,
            recover_until: None,
            accounted: 0,
            round_ends: 0,
            smoothed: Span::ZERO,
            shortest: Span::MAX,
            seen: Seen::default(),
        }
    }

    /// The path is another from now on.
    pub fn reroute(&mut self, path: Path) {
        self.path = path;
    }

    /// Runs for `span` and answers what was seen in it.
    pub fn run(&mut self, span: Span) -> Seen {
        self.seen = Seen::default();
        let end = self.now + span;
        loop {
            let ack = self.flight.iter().find_map(|segment| segment.back).unwrap_or(Time::NEVER);
            let send = if self.may_send() { self.paced_until.max(self.now) } else { Time::NEVER };
            if ack.min(send) > end {
                self.now = end;
                return self.seen;
            }
            self.now = ack.min(send);
            if send <= ack { self.send() } else { self.acknowledge() }
        }
    }

    fn may_send(&self) -> bool {
        self.in_flight + u64::from(MSS) <= self.controller.window()
    }

    fn send(&mut self) {
        let (now, mss) = (self.now, u64::from(MSS));
        let queued = self.path.rate.bytes_in(self.line_free.since(now));
        let back = (queued <= self.path.buffer).then(|| {
            self.line_free = self.line_free.max(now) + self.path.transmission();
            self.line_free + self.path.way
        });
        let stamp = self.sampler.stamp(now, self.in_flight);
        self.flight.push_back(Segment { number: self.next, sent: now, stamp, back });
        self.next += 1;
        self.in_flight += mss;
        self.seen.most_in_flight = self.seen.most_in_flight.max(self.in_flight);
        self.controller.sent(now, mss, self.in_flight);
        if let Some(rate) = self.controller.pacing() {
            self.paced_until = now + Span::from_secs(1).scaled(8 * mss, rate.bits_per_second());
        }
    }

    /// Takes out what the third segment after it has overtaken. Answers the bytes lost, and whether a
    /// recovery is to begin.
    fn notice_losses(&mut self, number: u64) -> (u64, bool) {
        let (before, accounted) = (self.flight.len(), self.accounted);
        let gone = |segment: &Segment| segment.back.is_none() && segment.number + 3 <= number;
        let fresh = self.flight.iter().any(|segment| gone(segment) && segment.number >= accounted);
        self.flight.retain(|segment| !gone(segment));
        let lost = (before - self.flight.len()) as u64 * u64::from(MSS);
        self.in_flight -= lost;
        self.seen.lost += lost;
        (lost, fresh)
    }

    fn acknowledge(&mut self) {
        let first = self.flight.iter().position(|segment| segment.back.is_some()).unwrap();
        let segment = self.flight.remove(first).unwrap();
        let (now, mss, before) = (self.now, u64::from(MSS), self.in_flight);
        let flight_size = before;
        self.in_flight -= mss;
        let (lost, fresh) = self.notice_losses(segment.number);
        self.mind_recovery(segment.number, fresh, flight_size);
        let rtt = self.measure(&segment);
        self.sampler.delivered(now, &segment.stamp, segment.sent, mss);
        let round_start = segment.number >= self.round_ends;
        if round_start {
            self.round_ends = self.next;
        }
        self.controller.acked(&Ack {
            rtt: Some(rtt),
            smoothed_rtt: self.smoothed,
            min_rtt: self.shortest,
            in_flight_before: before,
            in_flight: self.in_flight,
            rate_sample: self.sampler.sample(self.shortest, lost, before),
            round_start,
            recovering: self.recover_until.is_some(),
            ..Ack::of(now, mss)
        });
    }

    fn mind_recovery(&mut self, number: u64, fresh: bool, flight_size: u64) {
        if self.recover_until.is_some_and(|until| number >= until) {
            self.recover_until = None;
            self.controller.recovered(self.now);
        }
        if fresh {
            self.controller.congested(self.now, flight_size, Reason::Loss);
            self.recover_until = Some(self.next);
            self.accounted = self.next;
        }
    }

    fn measure(&mut self, segment: &Segment) -> Span {
        let rtt = self.now.since(segment.sent);
        let old = if self.smoothed.is_zero() { rtt } else { self.smoothed };
        self.smoothed = old.scaled(7, 8) + rtt.scaled(1, 8);
        self.shortest = self.shortest.min(rtt);
        self.seen.delivered += u64::from(MSS);
        self.seen.rtts += rtt;
        self.seen.acks += 1;
        self.seen.longest_rtt = self.seen.longest_rtt.max(rtt);
        rtt
    }
}
