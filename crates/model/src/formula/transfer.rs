//! A transfer on a new connection: slow start until something ends it, then the window's course, then the mean
//! rate (N. Cardwell, S. Savage, T. Anderson, *Modeling TCP Latency*, INFOCOM 2000, §2).
//!
//! Slow start ends by the first loss, whose round is a matter of chance, by an overflow of the buffer, or as
//! HyStart has it. Each of the rounds in which it may end counts with its chance. Windows are in segments, times in
//! seconds; the connection has a part of the line and of its buffer to itself.

use super::course::{Course, Law};

/// Losses after which the mean rate is taken.
const LOSSES: usize = 6;
/// Steps of a course at most.
const STEPS: usize = 2_000;
/// Segments below which HyStart leaves a window alone (Ha and Rhee 2011).
const LOW_WINDOW: f64 = 16.0;

/// What a transfer asks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer {
    /// Segments to be sent.
    pub segments: f64,
    /// The first window (RFC 6928: 10).
    pub first: f64,
    /// The window grows by this part of itself in a round of slow start: 1, or 1/b where each ACK of b segments
    /// adds one (Cardwell et al. 2000 §2.1).
    pub growth: f64,
    /// The largest window: the receiver's.
    pub most: f64,
    /// Seconds of a round trip without queue.
    pub round: f64,
    /// Segments that the connection's part of the path holds, and of the buffer.
    pub pipe: f64,
    /// The part of the buffer.
    pub buffer: f64,
    /// The probability that a packet is lost.
    pub loss: f64,
    /// The law of the window after slow start; `None` for a controller that losses do not move.
    pub law: Option<Law>,
    /// Does HyStart end slow start when half of the path is filled?
    pub hystart: bool,
    /// Segments per second in the long run.
    pub steady: f64,
}

/// How long a transfer takes, up to the end of its last segment at the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Latency {
    /// Rounds of slow start in which the sender waited for ACKs, in the mean.
    pub rounds: f64,
    /// Seconds of these.
    pub slow: f64,
    /// Seconds of the rest.
    pub rest: f64,
    /// The chance that a loss or an overflow ended slow start.
    pub lost: f64,
}

impl Latency {
    fn add(&mut self, chance: f64, rounds: f64, slow: f64, rest: f64) {
        self.rounds += chance * rounds;
        self.slow += chance * slow;
        self.rest += chance * rest;
    }
}

/// The time of a transfer in the mean.
///
/// Holds for connections that begin together and share equally: where they do not, the mean of their times is less.
pub fn latency(transfer: &Transfer) -> Latency {
    let mut mean = Latency::default();
    let (mut window, mut left) = (transfer.first.min(transfer.most), transfer.segments);
    let (mut alive, mut rounds, mut slow) = (1.0, 0.0, 0.0);
    loop {
        if left <= window || transfer.is_full(window) {
            mean.add(alive, rounds, slow, transfer.burst(left, window));
            return mean;
        }
        let round = transfer.round_at(window);
        let lost = match transfer.law {
            None => 0.0,
            Some(_) if window > transfer.overflow() => 1.0,
            Some(_) => 1.0 - libm::pow(1.0 - transfer.loss, window),
        };
        left -= window;
        (rounds, slow) = (rounds + 1.0, slow + round);
        mean.lost += alive * lost;
        mean.add(alive * lost, rounds, slow, transfer.after_loss(window, left));
        alive *= 1.0 - lost;
        if let Some(law) = transfer.law.filter(|_| transfer.leaves(window)) {
            let course = Course::from(law, window, window, window);
            mean.add(alive, rounds, slow, transfer.course(course, left));
            return mean;
        }
        if alive < 1e-6 || (window >= transfer.most && transfer.loss == 0.0) {
            mean.add(alive, rounds, slow, transfer.at_most(left));
            return mean;
        }
        window = (window * (1.0 + transfer.growth)).min(transfer.most);
    }
}

impl Transfer {
    /// Segments per second on the connection's part of the line.
    fn line(&self) -> f64 {
        self.pipe / self.round.max(1e-12)
    }

    fn round_at(&self, window: f64) -> f64 {
        self.round * (window / self.pipe.max(1e-12)).max(1.0)
    }

    /// Does a window keep the line busy for a round, with nothing to end that?
    fn is_full(&self, window: f64) -> bool {
        let ends = self.law.is_some() && (self.loss > 0.0 || self.overflow() < self.pipe);
        window >= self.pipe && !ends
    }

    /// The window that overflows the buffer in slow start: path and buffer full, or, before that, a burst: two
    /// segments for each that leaves let half a window wait.
    fn overflow(&self) -> f64 {
        (self.pipe + self.buffer).min(2.0 * self.buffer + 1.0)
    }

    fn leaves(&self, window: f64) -> bool {
        self.hystart && window >= LOW_WINDOW && 2.0 * window >= self.pipe
    }

    /// What is left goes out without a pause.
    fn burst(&self, left: f64, window: f64) -> f64 {
        let rate = if window >= self.pipe { self.steady.min(self.line()) } else { self.line() };
        left / rate.max(1e-12)
    }

    /// Full windows of the receiver's, which do not fill the path, and the last one.
    fn at_most(&self, left: f64) -> f64 {
        let more = libm::floor((left - 1e-9).max(0.0) / self.most);
        more * self.round_at(self.most) + (left - more * self.most) / self.line().max(1e-12)
    }

    fn after_loss(&self, window: f64, left: f64) -> f64 {
        let Some(law) = self.law else { return 0.0 };
        let course = Course::after(law, window, window);
        self.course(course, left)
    }

    /// The course of the window, losses at equal distances, until all is sent or the mean rate is reached.
    fn course(&self, mut course: Course, mut left: f64) -> f64 {
        let distance = if self.loss > 0.0 { 1.0 / self.loss } else { f64::INFINITY };
        let (mut time, mut until, mut losses) = (0.0, distance, 0);
        for _ in 0..STEPS {
            if losses >= LOSSES || left <= course.window {
                break;
            }
            let round = self.round_at(course.window);
            let strides = course
                .stride(round)
                .min(left / course.window)
                .min((until / course.window).max(1.0));
            let sent = course.window * strides;
            (time, left, until) = (time + strides * round, left - sent, until - sent);
            let before = course.window;
            if until <= 0.0 || before > self.pipe + self.buffer {
                course = self.fallen(&course);
                (until, losses) = (distance, losses + 1);
            } else {
                course.advance(strides, round, self.most);
            }
        }
        let rate = if left <= course.window { self.line() } else { self.steady };
        time + left.max(0.0) / rate.max(1e-12)
    }

    fn fallen(&self, course: &Course) -> Course {
        self.law.map_or(*course, |law| Course::after(law, course.window, course.window))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Segments of 1 ms on the line, 100 ms of round trip, a buffer that takes everything.
    fn transfer(segments: f64) -> Transfer {
        Transfer {
            segments,
            first: 10.0,
            growth: 1.0,
            most: 1e6,
            round: 0.1,
            pipe: 100.0,
            buffer: 1e6,
            loss: 0.0,
            law: Some(Law::reno(1)),
            hystart: false,
            steady: 1_000.0,
        }
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    }

    #[test]
    fn rounds_double_until_the_pipe_is_full() {
        let one = latency(&transfer(10.0));
        close(one.slow + one.rest, 0.01);
        // 10 and 20 segments in a round trip each, 10 of the third window.
        let three = latency(&transfer(40.0));
        assert_eq!(three.rounds, 2.0);
        close(three.slow + three.rest, 0.21);
        // 10 + 20 + 40 + 80; the next window of 160 keeps the line busy for longer than a round trip.
        let long = latency(&transfer(1_150.0));
        assert_eq!(long.rounds, 4.0);
        close(long.slow + long.rest, 1.4);
        // b = 2 and ACKs counted: 10, 15, 22.5, 13 of the fourth.
        let slower = latency(&Transfer { growth: 0.5, ..transfer(60.0) });
        assert_eq!(slower.rounds, 3.0);
        close(slower.rest, 0.0125);
    }

    #[test]
    fn a_small_window_stays_small() {
        // 10, then 20 a round: 990 leave 49 full rounds and 10.
        let small = latency(&Transfer { most: 20.0, ..transfer(1_000.0) });
        close(small.slow + small.rest, 5.01);
    }

    /// A burst of ten finds room for three: slow start is over in the first round.
    #[test]
    fn a_small_buffer_ends_slow_start() {
        let small = latency(&Transfer { buffer: 3.0, ..transfer(200.0) });
        assert_eq!((small.rounds, small.lost), (1.0, 1.0));
        let large = latency(&transfer(200.0));
        assert!(small.slow + small.rest > 2.0 * (large.slow + large.rest));
    }

    /// Linux leaves slow start when half the path is full; CUBIC is then flat for a while.
    #[test]
    fn hystart_is_careful() {
        let cubic = Transfer { law: Some(Law::cubic(true)), pipe: 1_000.0, ..transfer(5_000.0) };
        let cubic = Transfer { steady: 10_000.0, ..cubic };
        let (plain, early) = (latency(&cubic), latency(&Transfer { hystart: true, ..cubic }));
        assert!(early.slow + early.rest > plain.slow + plain.rest);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        /// Never faster than the line; more to send takes longer.
        #[test]
        fn more_takes_longer(
            segments in 1.0f64..1e5, more in 1.0f64..2.0, loss in prop::option::of(1e-5f64..0.05),
            pipe in 1.0f64..1e4, buffer in 3.0f64..1e4, cubic in any::<bool>(), hystart in any::<bool>(),
        ) {
            let law = Some(if cubic { Law::cubic(false) } else { Law::reno(1) });
            let round = 0.1;
            let loss = loss.unwrap_or(0.0);
            let steady = pipe / round * 0.9;
            let own = Transfer { pipe, buffer, law, hystart, loss, steady, ..transfer(segments) };
            let time = |own: &Transfer| { let found = latency(own); found.slow + found.rest };
            prop_assert!(time(&own) >= segments / (pipe / round) * 0.999);
            let longer = Transfer { segments: segments * more, ..own };
            prop_assert!(time(&longer) >= time(&own) * 0.9, "{} {}", time(&longer), time(&own));
        }
    }
}
