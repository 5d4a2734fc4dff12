//! The saw-tooth of connections that overflow a buffer together.
//!
//! The sum of their windows grows until path and buffer are full, P + B; then some of them lose a segment and give
//! up a part of their windows. In the round of the overflow N windows grow, by a segment each, so that about N segments
//! find no room. If each of these may be anybody's, 1 − (1 − 1/N)^N of the connections lose one: the one that is
//! alone, three quarters of two, 63 % of very many.

use super::course::{Course, Law};

/// Steps at most of a tooth's reckoning.
const STEPS: usize = 4_096;
/// Overflows that are reckoned one by one; after that shares even out as the root of their number.
const MOST_OVERFLOWS: f64 = 200.0;

/// The inputs of the saw-tooth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sawtooth {
    /// The windows' law.
    pub law: Law,
    /// Connections.
    pub flows: u32,
    /// P: segments that the path holds without queue.
    pub pipe: f64,
    /// B: segments for which the buffer has room.
    pub buffer: f64,
    /// Seconds of a round trip without queue.
    pub round: f64,
}

/// Means over a tooth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tooth {
    /// The share of the line that is used.
    pub used: f64,
    /// Segments that wait.
    pub queue: f64,
    /// Seconds from overflow to overflow.
    pub lasts: f64,
}

/// The share of `flows` that lose a segment when a buffer overflows: 1 − (1 − 1/N)^N.
pub fn share_hit(flows: u32) -> f64 {
    let flows = f64::from(flows.max(1));
    1.0 - libm::pow(1.0 - 1.0 / flows, flows)
}

/// The means of the saw-tooth between two overflows.
///
/// Holds for greedy senders with equal round trips, FIFO and tail drop.
pub fn tooth(saw: &Sawtooth) -> Tooth {
    let flows = f64::from(saw.flows.max(1));
    let (pipe, top) = (saw.pipe / flows, (saw.pipe + saw.buffer) / flows);
    let left = 1.0 - share_hit(saw.flows) * (1.0 - saw.law.reduced(top) / top.max(1e-9));
    let gone = Law { beta: left, whole: false, ..saw.law };
    let mut course = Course::from(gone, left * top, top, top);
    let mut sums =
        Sums { pipe: pipe.max(1e-9), round: saw.round, time: 0.0, used: 0.0, queue: 0.0 };
    // The round of the repair goes without growth, and in that of the overflow path and buffer are full.
    sums.add(course.window, 1.0);
    for _ in 0..STEPS {
        if course.window >= top {
            break;
        }
        let (before, round) = (course.window, sums.round_at(course.window));
        let left = (top - before) / course.gain(round).max(1e-9);
        let rounds = course.stride(round).min(left);
        course.advance(rounds, round, top);
        sums.add((before + course.window) / 2.0, rounds);
    }
    sums.add(top, 1.0);
    let Sums { time, used, queue, .. } = sums;
    let time = time.max(1e-12);
    Tooth { used: (used / time).min(1.0), queue: queue / time * flows, lasts: time }
}

/// The inequality of connections that lose by turns: an overflow hits each with the same chance, and a connection that
/// it misses keeps its window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inequality {
    /// The share that an overflow hits.
    pub hit: f64,
    /// The part of a window that it leaves.
    pub beta: f64,
    /// Seconds from overflow to overflow.
    pub lasts: f64,
}

impl Inequality {
    /// The standard deviation of what connections that began alike have sent after so many overflows, over the mean.
    ///
    /// An overflow makes W a W: β W with chance h, else W; then all grow alike. The sums' first two moments follow step
    /// by step.
    pub fn spread(&self, overflows: f64) -> f64 {
        let steps = overflows.clamp(0.0, MOST_OVERFLOWS);
        let (a, squares) = self.moments();
        // Means are 1 throughout: what is lost in the mean is what grows.
        let grown = 1.0 - a;
        let (mut window, mut both, mut sum) = (1.0, 0.0, 0.0);
        let (mut count, mut variance) = (0.0, 0.0);
        while count < steps {
            let step = (steps - count).min(1.0);
            // E[W²], E[W S] and E[S²] after an overflow and `step` of the time to the next.
            both = a * both + grown * count;
            window = squares * window + 2.0 * a * grown + grown * grown;
            sum += 2.0 * step * both + step * step * window;
            both += step * window;
            count += step;
            variance = (sum / (count * count) - 1.0).max(0.0);
        }
        libm::sqrt(variance * (steps / overflows.max(1e-9)).min(1.0))
    }

    /// E\[A\] and E\[A²\] of the factor of an overflow.
    fn moments(&self) -> (f64, f64) {
        let of = |left: f64| 1.0 - self.hit * (1.0 - left);
        (of(self.beta), of(self.beta * self.beta))
    }

    /// The mean end of equal transfers by `flows` connections over the end of the last, `time` after they began
    /// alike. Of two that share w : w' the one with more ends when w'/w of the other's is through, so that the mean
    /// is 1 − E|w − w'|/2; for normal w that is 1 − σ/√π.
    pub fn mean_end(&self, time: f64, flows: u32) -> f64 {
        let others = 1.0 - 1.0 / f64::from(flows.max(1));
        let sigma = self.spread(time / self.lasts.max(1e-9));
        (1.0 - others * sigma / libm::sqrt(std::f64::consts::PI)).max(0.5)
    }
}

/// Sums over the rounds of one connection's part.
struct Sums {
    /// The part that the path holds.
    pipe: f64,
    round: f64,
    time: f64,
    used: f64,
    queue: f64,
}

impl Sums {
    /// Seconds of a round with a window.
    fn round_at(&self, window: f64) -> f64 {
        self.round * (window / self.pipe).max(1.0)
    }

    fn add(&mut self, window: f64, rounds: f64) {
        let span = rounds * self.round_at(window);
        self.time += span;
        self.used += span * (window / self.pipe).min(1.0);
        self.queue += span * (window - self.pipe).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(law: Law, flows: u32, pipe: f64, buffer: f64) -> Tooth {
        tooth(&Sawtooth { law, flows, pipe, buffer, round: 0.05 })
    }

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found / expected - 1.0).abs() <= tolerance, "{found}, expected {expected}");
    }

    /// Reno without a buffer uses three quarters, with one of a round trip everything; large windows, so that the
    /// rounds of repair and overflow hardly count.
    #[test]
    fn reno_alone() {
        let reno = Law::reno(1);
        for (buffer, used) in [(0.0, 0.75), (100.0, 0.8176), (428.572, 0.9494), (1_000.0, 1.0)] {
            close(of(reno, 1, 1_000.0, buffer).used, used, 0.005);
        }
        // From 1000 to 2000 segments: ∫(W − P) W dW / ∫ W dW over the rounds.
        let mean = (7e9 / 3.0 - 1.5e9) / 1.5e6;
        close(of(reno, 1, 1_000.0, 1_000.0).queue, mean, 0.01);
    }

    /// An overflow hits three quarters of two: the sum falls to 5/8, and half of what is lost between is 3/16.
    #[test]
    fn two_of_reno() {
        close(of(Law::reno(1), 2, 1_000.0, 0.0).used, 13.0 / 16.0, 0.005);
    }

    /// Far from its Reno-friendly region CUBIC uses 92.5 % without a buffer; within it 85 %.
    #[test]
    fn cubic_alone() {
        let large = tooth(&Sawtooth {
            law: Law::cubic(false),
            flows: 1,
            pipe: 100_000.0,
            buffer: 0.0,
            round: 0.2,
        });
        close(large.used, 0.925, 0.01);
        close(of(Law::cubic(true), 1, 60.0, 0.0).used, 0.85, 0.02);
    }

    #[test]
    fn many_flows_keep_the_queue_fuller() {
        assert_eq!(share_hit(1), 1.0);
        close(share_hit(2), 0.75, 1e-9);
        close(share_hit(1_000), 0.632, 0.001);
        let queue = |flows| of(Law::reno(1), flows, 1_000.0, 1_000.0).queue;
        assert!(queue(1) < queue(2) && queue(2) < queue(8));
        // Windows below two segments cannot be halved.
        close(of(Law::reno(1), 100, 50.0, 100.0).queue, 100.0, 1e-6);
    }

    /// Whom every overflow hits alike stays alike. Of half of them halved once the variance is E[A²] − E[A]², 1/16.
    #[test]
    fn who_loses_by_turns_ends_apart() {
        let all = Inequality { hit: 1.0, beta: 0.5, lasts: 1.0 };
        close(1.0 + all.spread(3.0), 1.0, 1e-6);
        let half = Inequality { hit: 0.5, ..all };
        close(half.spread(1.0), 0.25, 1e-9);
        close(half.mean_end(1.0, 2), 1.0 - 0.125 / libm::sqrt(std::f64::consts::PI), 1e-9);
        assert_eq!(half.mean_end(1.0, 1), 1.0);
        // Shares even out as the root of the overflows.
        close(half.spread(100.0) / half.spread(400.0), 2.0, 0.1);
    }
}
