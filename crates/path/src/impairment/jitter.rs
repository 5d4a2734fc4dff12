//! Jitter: delay that varies from packet to packet, with or without regard to order.

use super::achieved::Spread;
use super::smooth::Smooth;
use crate::{LinkSpec, SpecError};
use trunkline_core::{Probability, Span, Stream, Time};

/// Jitter: how the delay of packets varies around the path's delay.
///
/// Read as `[KIND:][SHAPE:]TIME[:rho=R]`; `5ms` alone is `ordered:uniform:5ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jitter {
    /// The relation of one packet's jitter to the next one's.
    pub kind: JitterKind,
    /// The distribution.
    pub shape: Shape,
}

/// The relation of one packet's jitter to that of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JitterKind {
    /// Draws as independent as order allows: no packet is released before the one in front of it.
    ///
    /// Packets whose distance is the range of the distribution are drawn for themselves. Nearer ones resemble
    /// each other, the nearer the more: a delay that falls faster than time goes would let packets overtake, and
    /// to hold them all back would cost the deviation asked for. So the delay follows a smooth process in time
    /// ([`Shape`] says how slow), with the stated distribution at any spacing. The few packets that are
    /// held back all the same are paid for.
    ///
    /// Waiting for the packet in front lengthens the delay, so that plain clamping would raise its
    /// mean. Here the excess over what was drawn is kept as a debt, in whole nanoseconds, and each
    /// packet pays back as much of it as order and the least value of the distribution allow. The
    /// mean achieved over n packets is then above the mean drawn by debt / n. While the debt exceeds
    /// the range R of the distribution it only falls, and in one go it can grow by at most R for each
    /// of the packets that leave the line within R; so the mean is off by at most R·(1 + m) / n,
    /// m being the largest number of packets that leave within R.
    Ordered,
    /// Independent draws; packets may overtake each other.
    Independent,
    /// Each draw correlated with the one before it, whatever the time between them; order kept by holding
    /// packets back, and paid for, as for [`Ordered`](JitterKind::Ordered). If packets follow each other more
    /// closely than draws differ, the deviation is another one (docs/path.md has a table);
    /// [`Achieved`](super::Achieved) states what came about.
    ///
    /// A Gaussian process g' = rho·g + √(1 − rho²)·n is mapped to the distribution, so that the
    /// draws have the stated distribution whatever rho is. (The mixture rho·old + (1 − rho)·new of
    /// uniform draws that netem uses has a smaller variance than its table says.) For the normal shape
    /// rho is the correlation of successive draws, for the other shapes nearly so.
    Correlated {
        /// The correlation of the Gaussian process between one packet and the next, 0 to below 1.
        rho: Probability,
    },
}

/// A distribution of extra delay. Arithmetic is portable: every machine draws the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Even over ± `half` around the delay, which must not be shorter than `half`.
    Uniform {
        /// Half the width.
        half: Span,
    },
    /// Normal around the delay, clipped at ± 4 deviations (6 draws in 100 000) and at ± the delay,
    /// so that nothing arrives before it left; the mean stays, a clipped deviation is reported.
    Normal {
        /// The standard deviation, at most the delay.
        deviation: Span,
    },
    /// A tail behind the delay, which here is the least value, not the mean; clipped at 10 means
    /// (5 draws in 100 000).
    Exponential {
        /// The mean of the extra delay.
        mean: Span,
    },
}

/// The clip of the normal shape, in deviations.
const NORMAL_CLIP: u64 = 4;
/// The clip of the exponential shape, in means.
const EXPONENTIAL_CLIP: u64 = 10;

/// Nanoseconds with a sign. No jitter is longer than the longest delay.
fn nanos(span: Span) -> i64 {
    span.min(LinkSpec::DELAY_MAX).as_nanos() as i64
}

impl Shape {
    /// The most that it adds to the delay.
    pub fn most(self) -> Span {
        match self {
            Shape::Uniform { half } => half,
            Shape::Normal { deviation } => deviation.scaled(NORMAL_CLIP, 1),
            Shape::Exponential { mean } => mean.scaled(EXPONENTIAL_CLIP, 1),
        }
    }

    /// The gap from which packets are drawn for themselves, in nanoseconds: with all but the rarest draws they keep
    /// their order then.
    fn apart(self) -> i64 {
        match self {
            Shape::Uniform { half } => 2 * nanos(half),
            Shape::Normal { deviation } => 6 * nanos(deviation),
            Shape::Exponential { mean } => 7 * nanos(mean),
        }
    }

    /// For how long the delay of packets close to each other stays alike, in nanoseconds: so long that it
    /// falls faster than time goes, and order has to be kept by force, for about 1 packet in 100 at most.
    fn memory(self) -> i64 {
        match self {
            Shape::Uniform { half } => 2 * nanos(half),
            Shape::Normal { deviation } => 3 * nanos(deviation),
            Shape::Exponential { mean } => 4 * nanos(mean),
        }
    }

    /// The measure of a gap between two packets for the process, in units of its memory: the gap if it is
    /// small, without end if draws are to be independent.
    fn elapsed(self, gap: Span) -> f64 {
        let (gap, apart) = (nanos(gap) as f64, self.apart() as f64);
        if gap >= apart { f64::INFINITY } else { gap / self.memory() as f64 / (1.0 - gap / apart) }
    }

    /// The least that it adds to `delay`, in nanoseconds: never more taken off than there is.
    fn least(self, delay: Span) -> i64 {
        match self {
            Shape::Exponential { .. } => 0,
            _ => -nanos(self.most().min(delay)),
        }
    }

    /// Mean and standard deviation, in nanoseconds.
    fn moments(self) -> (f64, f64) {
        match self {
            Shape::Uniform { half } => (0.0, nanos(half) as f64 / libm::sqrt(3.0)),
            Shape::Normal { deviation } => (0.0, nanos(deviation) as f64),
            Shape::Exponential { mean } => (nanos(mean) as f64, nanos(mean) as f64),
        }
    }

    /// An independent draw.
    fn draw(self, stream: &mut Stream) -> i64 {
        match self {
            Shape::Uniform { half } => {
                let half = nanos(half);
                stream.below(2 * half as u64 + 1) as i64 - half
            }
            Shape::Normal { deviation } => scale(deviation, stream.normal()),
            Shape::Exponential { mean } => scale(mean, -libm::log(1.0 - stream.unit())),
        }
    }

    /// The value that corresponds to `gauss`, a value of a standard normal variable.
    fn map(self, gauss: f64) -> i64 {
        // The upper tail of the normal distribution, which libm gives exactly far out as well.
        let tail = |g: f64| 0.5 * libm::erfc(g * std::f64::consts::FRAC_1_SQRT_2);
        match self {
            Shape::Uniform { half } => scale(half, 1.0 - 2.0 * tail(gauss)),
            Shape::Normal { deviation } => scale(deviation, gauss),
            Shape::Exponential { mean } => scale(mean, -libm::log(tail(gauss))),
        }
    }
}

fn scale(unit: Span, factor: f64) -> i64 {
    libm::round(nanos(unit) as f64 * factor) as i64
}

impl Jitter {
    /// Whether packets may overtake each other.
    pub fn reorders(&self) -> bool {
        self.kind == JitterKind::Independent
    }

    pub(super) fn check(&self, delay: Span) -> Result<(), SpecError> {
        if let JitterKind::Correlated { rho } = self.kind
            && rho >= Probability::ALWAYS
        {
            return Err(SpecError::Conflict(
                "jitter with rho=1 would never vary: give a rho below 1".into(),
            ));
        }
        let most = match self.shape {
            Shape::Uniform { half } if half > delay => half,
            Shape::Normal { deviation } if deviation > delay => deviation,
            Shape::Exponential { mean }
                if mean > LinkSpec::DELAY_MAX.scaled(1, EXPONENTIAL_CLIP) =>
            {
                return Err(SpecError::Conflict(format!(
                    "an exponential jitter of {mean} is too long: at most {} is allowed",
                    LinkSpec::DELAY_MAX.scaled(1, EXPONENTIAL_CLIP)
                )));
            }
            _ => return Ok(()),
        };
        Err(SpecError::Conflict(format!(
            "a jitter of {most} does not fit a delay of {delay}, for packets would arrive before they \
             left: lengthen the delay, or use exponential jitter, which only adds"
        )))
    }
}

/// Jitter at work.
#[derive(Debug)]
pub(super) struct Jitters {
    stream: Stream,
    /// The Gaussian process of correlated jitter.
    gauss: Option<f64>,
    /// That of ordered jitter, and when the last packet left the line.
    smooth: Option<(Smooth, Time)>,
    /// The time that order-keeping has added and has not yet been paid back, in nanoseconds.
    debt: i64,
    /// The last packet: when it left the line, and its jitter.
    last: Option<(Time, i64)>,
    pub(super) spread: Spread,
}

impl Jitters {
    pub(super) fn new(stream: Stream) -> Jitters {
        Jitters {
            stream,
            gauss: None,
            smooth: None,
            debt: 0,
            last: None,
            spread: Spread::default(),
        }
    }

    /// Forgets the debt and the last packet's jitter, which belonged to the setting before this one. Order
    /// goes on elsewhere.
    pub(super) fn change(&mut self) {
        (self.debt, self.last) = (0, None);
    }

    /// Draws the jitter of the next packet, which left the line at `departed`, in nanoseconds, within what
    /// `delay` allows.
    pub(super) fn draw(&mut self, jitter: &Jitter, departed: Time, delay: Span) -> i64 {
        let drawn = match jitter.kind {
            JitterKind::Correlated { rho } => {
                let gauss = self.advance(rho.as_f64());
                jitter.shape.map(gauss)
            }
            JitterKind::Ordered => {
                let gauss = self.follow(jitter.shape, departed);
                jitter.shape.map(gauss)
            }
            JitterKind::Independent => jitter.shape.draw(&mut self.stream),
        };
        let least = jitter.shape.least(delay);
        let most = match jitter.shape {
            // Clipped alike on both sides, so that the mean stays.
            Shape::Normal { .. } => -least,
            shape => nanos(shape.most()),
        };
        drawn.clamp(least, most)
    }

    fn follow(&mut self, shape: Shape, departed: Time) -> f64 {
        let smooth = match self.smooth {
            Some((smooth, before)) => {
                smooth.after(shape.elapsed(departed.since(before)), &mut self.stream)
            }
            None => Smooth::new(&mut self.stream),
        };
        self.smooth = Some((smooth, departed));
        smooth.value
    }

    fn advance(&mut self, rho: f64) -> f64 {
        let fresh = self.stream.normal();
        let gauss = match self.gauss {
            Some(old) => rho * old + libm::sqrt(1.0 - rho * rho) * fresh,
            None => fresh,
        };
        self.gauss = Some(gauss);
        gauss
    }

    /// Turns what was drawn for a packet that left the line at `departed` into what it gets, and
    /// books that.
    pub(super) fn place(
        &mut self,
        jitter: &Jitter,
        drawn: i64,
        departed: Time,
        delay: Span,
    ) -> i64 {
        let placed = if jitter.reorders() {
            drawn
        } else {
            let wanted = drawn.saturating_sub(self.debt).max(jitter.shape.least(delay));
            let placed = wanted.max(self.floor(departed));
            self.debt = self.debt.saturating_add(placed - drawn);
            self.last = Some((departed, placed));
            placed
        };
        let (mean, deviation) = jitter.shape.moments();
        self.spread.count(placed, mean, deviation);
        placed
    }

    /// The jitter with which a packet that leaves at `departed` is released together with the one in
    /// front of it. Counted from departure, so that a change of the delay is no jitter.
    fn floor(&self, departed: Time) -> i64 {
        self.last.map_or(i64::MIN, |(before, placed)| {
            let gap = i64::try_from(departed.since(before).as_nanos()).unwrap_or(i64::MAX);
            placed.saturating_sub(gap)
        })
    }
}
