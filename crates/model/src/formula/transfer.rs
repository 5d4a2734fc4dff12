//! A transfer on a new connection: slow start until something ends it, then the window's course, then the mean
//! rate (N. Cardwell, S. Savage, T. Anderson, *Modeling TCP Latency*, INFOCOM 2000, §2).
//!
//! Slow start ends by the first loss, whose round is a matter of chance, by an overflow of the buffer, or by
//! [HyStart](super::hystart). Each of the rounds in which it may end counts with its chance. Which block overflows the
//! buffer, and when the last one has left, is worked out in [`opening`](super::opening). Windows are in segments, times
//! in seconds.

use super::chance::{Repair, Telling};
use super::course::{Course, Law};
use super::hystart::HyStart;
use super::opening::{Line, Opening, Round};
use super::sawtooth::Inequality;

/// Losses after which the mean rate is taken.
const LOSSES: usize = 6;
/// Steps of a course at most.
const STEPS: usize = 2_000;
/// Rounds of slow start at most; whoever is not through then is at the largest window.
const ROUNDS: u32 = 64;

/// The inputs of a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer {
    /// Segments to be sent.
    pub segments: f64,
    /// The first window (RFC 6928: 10).
    pub first: f64,
    /// The part of a full segment that those of the first block have, if the window counts segments of any size: else 1.
    pub filled: f64,
    /// The window grows by this part of itself in a round of slow start: 1, or 1/b if each ACK of b segments
    /// adds one (Cardwell et al. 2000 §2.1).
    pub growth: f64,
    /// Segments that an ACK stands for.
    pub acked: f64,
    /// The largest window: the receiver's.
    pub most: f64,
    /// What the receiver takes before the first ACK, until which no window is scaled (RFC 7323 §2.2).
    pub unscaled: f64,
    /// Seconds of a round trip without queue.
    pub round: f64,
    /// Seconds by which that of the first block's segments is less, if they are short.
    pub sooner: f64,
    /// Seconds of the whole line by which their headers make that block longer.
    pub longer: f64,
    /// Connections that begin together, and the seconds from one beginning to the next.
    pub flows: u32,
    /// The seconds.
    pub apart: f64,
    /// Whether the line serves them in turn.
    pub in_turn: bool,
    /// Parts like the connection's own that make up the line: as many as there are connections, if they are alike.
    pub parts: f64,
    /// Segments that the connection's part of the path holds, and of the buffer.
    pub pipe: f64,
    /// The part of the buffer.
    pub buffer: f64,
    /// The probability that a packet is lost.
    pub loss: f64,
    /// The law of the window after slow start; `None` for a controller that losses do not move.
    pub law: Option<Law>,
    /// HyStart, if the connection has it.
    pub hystart: Option<HyStart>,
    /// The repair of a loss.
    pub repair: Repair,
    /// Segments per second in the long run.
    pub steady: f64,
    /// The inequality of the connections that overflow a buffer together.
    pub inequality: Option<Inequality>,
}

/// The time that a transfer takes, up to the end of its last segment at the bottleneck.
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

/// Whether HyStart has ended slow start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    No,
    /// While the window that is to be sent was being reached.
    Now,
    /// In a round that is over.
    Past,
}

/// A connection in slow start.
#[derive(Debug, Clone, Copy)]
struct Start {
    window: f64,
    /// The window of the round before, and the part of it by which it grew.
    before: f64,
    grew: f64,
    end: End,
    left: f64,
    /// The chance that it is still there.
    alive: f64,
    /// Blocks sent, and rounds spent waiting.
    sent: u32,
    rounds: f64,
    /// Seconds since the beginning, and those of them that were spent waiting.
    slow: f64,
    waited: f64,
    /// Seconds from the first ACK until all losses are known.
    known: f64,
}

impl Latency {
    /// Ends slow start with a chance, `rest` seconds before the end.
    fn add(&mut self, chance: f64, start: &Start, rest: f64) {
        let all = (start.slow + rest).max(0.0);
        let waited = start.waited.min(all);
        self.rounds += chance * start.rounds;
        self.slow += chance * waited;
        self.rest += chance * (all - waited);
    }
}

/// The time of a transfer in the mean, over chance and over the connections that begin together.
pub fn latency(transfer: &Transfer) -> Latency {
    let mut mean = Latency::default();
    let mut opening = Opening::new(transfer.shared());
    let mut start = Start {
        window: transfer.first_block(),
        before: 0.0,
        grew: transfer.growth,
        end: End::No,
        left: transfer.segments,
        alive: 1.0,
        sent: 0,
        rounds: 0.0,
        slow: 0.0,
        waited: 0.0,
        known: f64::NEG_INFINITY,
    };
    loop {
        if let Some(rest) = transfer.settled(&start) {
            mean.add(start.alive, &start, rest);
            return mean;
        }
        let sent = opening.send(start.left.min(start.window), start.grew);
        if start.left <= start.window {
            let rest =
                (sent.end - start.slow).max(start.known) + transfer.mending(start.left, &sent);
            mean.add(start.alive, &start, rest);
            return mean;
        }
        transfer.go_on(&mut start, &sent, &mut mean);
        if start.alive < 1e-6 {
            return mean;
        }
    }
}

impl Transfer {
    /// The line as all see it.
    fn shared(&self) -> Line {
        Line {
            flows: self.flows,
            apart: self.apart,
            segment: 1.0 / (self.line() * self.parts).max(1e-12),
            buffer: self.buffer * self.parts,
            round: self.round,
            sooner: self.sooner,
            longer: self.longer,
            acked: self.acked,
            in_turn: self.in_turn,
        }
    }

    /// Seconds from which on rounds need no longer be told apart: a controller that losses do not move has filled
    /// its part, HyStart has ended slow start in the round before, or the window is the largest.
    fn settled(&self, start: &Start) -> Option<f64> {
        let Start { window, left, .. } = *start;
        if left <= window {
            return None;
        }
        match self.law {
            None if window >= self.pipe => Some(left / self.steady.min(self.line()).max(1e-12)),
            Some(law) if start.end == End::Past => {
                Some(self.course(Course::from(law, window, window, window), left))
            }
            _ if window >= self.most && self.loss == 0.0 && start.sent > 0 => {
                Some(self.at_most(left))
            }
            _ if start.sent >= ROUNDS => Some(left / self.steady.max(1e-12)),
            _ => None,
        }
    }

    /// A full round of slow start: those whom a loss has ended leave it.
    fn go_on(&self, start: &mut Start, sent: &Round, mean: &mut Latency) {
        let window = start.window;
        start.sent += 1;
        let first = start.sent == 1;
        let (sooner, longer) =
            if first { (self.sooner, self.longer * self.parts) } else { (0.0, 0.0) };
        let round = self.round - sooner;
        let busy = |window: f64| window / self.line().max(1e-12) + longer;
        start.slow += round.max(busy(window - sent.hit * sent.lost));
        if busy(window) < round {
            (start.rounds, start.waited) = (start.rounds + 1.0, start.waited + round);
        }
        start.left -= window * (1.0 - self.loss);
        start.known = f64::NEG_INFINITY;
        let (hit, by_chance) = match self.law {
            None => {
                start.left += sent.hit * sent.lost;
                start.known = sent.hit * self.known_after(sent, window);
                (0.0, 0.0)
            }
            Some(_) => (sent.hit, 1.0 - libm::pow(1.0 - self.loss, window)),
        };
        let (hit, by_chance) = (start.alive * hit, start.alive * (1.0 - hit) * by_chance);
        if hit > 0.0 {
            mean.add(hit, start, self.after_overflow(window, start.left, sent));
        }
        if by_chance > 0.0 {
            // It is known when its place in the block is acknowledged, half of it in the mean, and the window has
            // grown.
            let window = self.grown(window, window / 2.0);
            mean.add(by_chance, start, self.after_loss(window, start.left));
        }
        mean.lost += hit + by_chance;
        start.alive -= hit + by_chance;
        self.grow(start);
    }

    /// The next round's window, when all of this one has been acknowledged. The first may be a part of the sender's.
    fn grow(&self, start: &mut Start) {
        let Start { before, window, .. } = *start;
        if start.end == End::Now {
            start.end = End::Past;
            return;
        }
        let sooner = if start.sent == 1 { 0.0 } else { self.sooner };
        let ended = self.hystart.and_then(|it| it.ends(self, (before, window), sooner));
        let (counted, unused) = match start.sent {
            1 => (window / self.filled, self.first.min(self.most) - window / self.filled),
            _ => (window, 0.0),
        };
        let next = ended.unwrap_or(counted * (1.0 + self.growth) + unused).min(self.most);
        start.end = if ended.is_some() { End::Now } else { End::No };
        (start.before, start.grew) = (window, next / window - 1.0);
        start.window = next;
    }

    /// The window when so many of its segments have been acknowledged.
    fn grown(&self, window: f64, acknowledged: f64) -> f64 {
        (window + self.growth * acknowledged.max(0.0)).min(self.most)
    }

    /// The first window, or the whole segments of it that the receiver takes if it does not take all.
    fn first_block(&self) -> f64 {
        let fits = self.segments.min(self.most) <= self.unscaled;
        let room = if fits { self.most } else { libm::floor(self.unscaled).max(1.0) };
        self.first.min(room) * self.filled
    }

    /// Segments per second on the connection's part of the line.
    fn line(&self) -> f64 {
        self.pipe / self.round.max(1e-12)
    }

    fn round_at(&self, window: f64) -> f64 {
        self.round * (window / self.pipe.max(1e-12)).max(1.0)
    }

    /// Full windows of the receiver's, which do not fill the path, and the last one.
    fn at_most(&self, left: f64) -> f64 {
        let more = libm::floor((left - 1e-9).max(0.0) / self.most);
        more * self.round_at(self.most) + (left - more * self.most) / self.line().max(1e-12)
    }

    fn after_loss(&self, window: f64, left: f64) -> f64 {
        let Some(law) = self.law else { return 0.0 };
        self.course(Course::after(law, window, window), left)
    }

    /// What an overflow has taken is sent again, when all ACKs of the block have come; meanwhile the line goes on. Of
    /// 1 + g segments that come to a full buffer one finds room; the window has grown by what came before.
    fn after_overflow(&self, window: f64, left: f64, sent: &Round) -> f64 {
        let through = (window - sent.lost).max(0.0);
        if sent.tail {
            return self.after_burst(through, sent.lost, window, left);
        }
        let more = (through / f64::from(self.flows.max(1))).min(left);
        let before = window - sent.lost * (1.0 + self.growth) / self.growth.max(1e-9);
        let window_then = self.grown(window, before);
        self.known_after(sent, window) + self.after_loss(window_then, left + sent.lost - more)
    }

    /// Seconds from the first ACK of a block to the last.
    fn known_after(&self, sent: &Round, window: f64) -> f64 {
        (window - sent.lost).max(0.0) * self.shared().segment
    }

    /// Of a burst the last segments are lost, of which only the ACKs of what is sent after it tell: two segments for
    /// each that got through, for which there may be no room either.
    fn after_burst(&self, through: f64, lost: f64, window: f64, left: f64) -> f64 {
        let Line { buffer, .. } = self.shared();
        let more = ((1.0 + self.growth) * through).min(left);
        let waiting = more * self.growth / (1.0 + self.growth) + self.acked - 1.0;
        let again = (waiting - buffer).clamp(0.0, more);
        let rounds = resending(lost, more).max(1.0) - 1.0 + if again > 0.0 { 1.0 } else { 0.0 };
        let rest = self.after_loss(self.grown(window, through), left + lost + again - more);
        // If the line is busy with the rest for longer, these rounds cost nothing.
        self.round_at(more).max((1.0 + rounds) * self.round) + rest
    }

    /// The cost of losses in the last block: a round trip, two if nothing comes after what was lost, so that a probe
    /// has to ask (RFC 8985 §7.2); without selective acknowledgements a time-out.
    fn mending(&self, block: f64, sent: &Round) -> f64 {
        let overflow = match (sent.hit > 0.0, sent.tail) {
            (false, _) => 0.0,
            (true, false) => 1.5 * self.round,
            (true, true) => self.asked() + self.round * resending(sent.lost - 1.0, 1.0),
        };
        // What all lose is carried after that, half of it before a connection's own in the mean.
        let again =
            sent.lost / self.line().max(1e-12) * (sent.hit + 1.0 / f64::from(self.flows)) / 2.0;
        self.chance_mending(block) + sent.hit * (overflow + again)
    }

    fn chance_mending(&self, block: f64) -> f64 {
        let through = libm::pow(1.0 - self.loss, block.max(1.0));
        let within = (1.0 - through - self.loss).max(0.0);
        let mended = (within * self.round + self.loss * self.asked()) / (1.0 - self.loss).max(1e-3);
        mended + (1.0 - through) * self.timeouts(block)
    }

    /// Seconds of time-outs after a loss at `window` by chance.
    fn timeouts(&self, window: f64) -> f64 {
        let law = self.law.filter(|_| self.loss > 0.0);
        let chance = law.map_or(0.0, |law| self.repair.fails(&law, self.loss, window));
        chance * self.repair.timeout
    }

    /// Until the loss of the last segment is mended.
    fn asked(&self) -> f64 {
        if self.repair.telling == Telling::Selective {
            2.0 * self.round
        } else {
            self.repair.timeout
        }
    }

    /// The course of the window, losses at equal distances, until all is sent or the mean rate is reached; the mean
    /// of the connections' ends.
    fn course(&self, mut course: Course, mut left: f64) -> f64 {
        let distance = if self.loss > 0.0 { 1.0 / self.loss } else { f64::INFINITY };
        let (mut time, mut until, mut losses, mut mending) = (0.0, distance, 0, true);
        for _ in 0..STEPS {
            if losses >= LOSSES || left <= course.window {
                break;
            }
            let round = self.round_at(course.window);
            let strides = course
                .stride(round)
                .min(left / course.window)
                .min((until / course.window).max(1.0));
            let strides = if mending { 1.0 } else { strides };
            let sent = course.window * strides;
            (time, until) = (time + strides * round, until - sent);
            left -= sent * (1.0 - self.loss);
            if until <= 0.0 {
                time += self.timeouts(course.window);
            }
            if until <= 0.0 || course.window > self.pipe + self.buffer {
                course = self.fallen(&course);
                (until, losses, mending) = (distance, losses + 1, true);
            } else if mending {
                mending = false;
            } else {
                course.advance(strides, round, self.most);
            }
        }
        let rate = if left <= course.window { self.line() } else { self.steady };
        let time = time + left.max(0.0) / rate.max(1e-12);
        let share = self.inequality.map_or(1.0, |own| own.mean_end(time, self.flows));
        time * share + self.chance_mending(course.window.min(left.max(0.0)))
    }

    fn fallen(&self, course: &Course) -> Course {
        self.law.map_or(*course, |law| Course::after(law, course.window, course.window))
    }
}

/// Rounds in which `lost` segments are sent again if nothing is in flight and the ACKs of `told` have told of the
/// loss: as many as these, then two for each that arrives (RFC 6937 §3.1).
fn resending(lost: f64, told: f64) -> f64 {
    libm::ceil(libm::log2(lost.max(0.0) / told.max(1.0) + 1.0) - 1e-9)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Segments of 1 ms on the line, 100 ms of round trip, a buffer that takes everything.
    pub fn transfer(segments: f64) -> Transfer {
        Transfer {
            segments,
            first: 10.0,
            growth: 1.0,
            acked: 2.0,
            most: 1e6,
            unscaled: 1e6,
            filled: 1.0,
            sooner: 0.0,
            longer: 0.0,
            round: 0.1,
            flows: 1,
            apart: 0.0,
            in_turn: false,
            parts: 1.0,
            pipe: 100.0,
            buffer: 1e6,
            loss: 0.0,
            law: Some(Law::reno(1)),
            hystart: None,
            repair: Repair {
                telling: Telling::Selective,
                limited: 2.0,
                timeout: 1.0,
                unheard: 0.0,
                acked: 2.0,
            },
            steady: 1_000.0,
            inequality: None,
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

    /// Linux leaves slow start with a window that fills the path: where plain slow start overflows the buffer, HyStart
    /// takes no longer than the line does.
    #[test]
    fn hystart_fills_the_path_and_overflows_no_buffer() {
        let cubic = Transfer { law: Some(Law::cubic(true)), pipe: 1_000.0, ..transfer(50_000.0) };
        let plain = Transfer { buffer: 600.0, steady: 9_000.0, ..cubic };
        let (plain, early) = (
            latency(&plain),
            latency(&Transfer {
                hystart: Some(HyStart { trains: true, held: 1_000.0, rate: 10_000.0 }),
                ..plain
            }),
        );
        assert_eq!((plain.lost, early.lost), (1.0, 0.0));
        // 10 + ... + 640 segments in seven round trips; from then on the line is busy.
        close(early.slow, 0.7);
        assert!(early.rest < 1.02 * (50_000.0 - 1_270.0) / 10_000.0, "{early:?}");
        assert!(plain.slow + plain.rest > early.slow + early.rest);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        /// Never faster than the line; more to send takes longer.
        #[test]
        fn more_takes_longer(
            segments in 1.0f64..1e5, more in 1.0f64..2.0, loss in prop::option::of(1e-5f64..0.05),
            pipe in 1.0f64..1e4, buffer in 3.0f64..1e4, cubic in any::<bool>(), trains in prop::option::of(any::<bool>()),
        ) {
            let law = Some(if cubic { Law::cubic(false) } else { Law::reno(1) });
            let round = 0.1;
            let loss = loss.unwrap_or(0.0);
            let steady = pipe / round * 0.9;
            let hystart = trains.map(|trains| HyStart { trains, held: pipe, rate: pipe / round });
            let own = Transfer { pipe, buffer, law, hystart, loss, steady, ..transfer(segments) };
            let time = |own: &Transfer| { let found = latency(own); found.slow + found.rest };
            prop_assert!(time(&own) >= segments / (pipe / round) * 0.999);
            let longer = Transfer { segments: segments * more, ..own };
            prop_assert!(time(&longer) >= time(&own) * 0.9, "{} {}", time(&longer), time(&own));
        }
    }
}
