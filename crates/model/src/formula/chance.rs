//! The window of a connection whose packets are lost by chance: its mean and how far it swings.
//!
//! The windows at which losses come are a chain: from one of them the [`Course`] leads to the next, as
//! chance has it. The chain's steady state gives the means. For windows that are large and losses that are rare Reno's
//! mean is 1.31/√p, as Ott, Kemperman and Mathis have it (*The Stationary Behavior of Ideal TCP Congestion
//! Avoidance*, 1996). If losses are many it knows that several in a round count once, that repairs take a round,
//! and time-outs.

use super::course::{Course, Growth, Law};

/// Windows that the chain distinguishes, at equal ratios.
const POINTS: usize = 32;
/// Chances that are left out of a course.
const REST: f64 = 1e-4;
/// Passes by which the chain comes to rest.
const PASSES: usize = 64;

/// How a sender learns what is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Telling {
    /// By selective acknowledgements: a repair fails only if what is sent again is lost too, and what would tell.
    Selective,
    /// By three duplicates, then by each partial acknowledgement (RFC 6582).
    Partial,
    /// By three duplicates, and for each further loss of the window by three more (RFC 5681 §3.2, 4.4BSD).
    Duplicates,
}

/// The repair of a loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repair {
    /// How the sender learns of it.
    pub telling: Telling,
    /// Segments that a sender adds to a window at the first two duplicates: 2 with limited transmit (RFC 3042), or 0.
    pub limited: f64,
    /// A time-out with its doubling, in seconds.
    pub timeout: f64,
    /// The probability that an acknowledgement is lost.
    pub unheard: f64,
    /// Segments that an acknowledgement stands for.
    pub acked: f64,
}

impl Repair {
    /// The chance that the repair of a loss at `window` ends in a time-out.
    pub fn fails(&self, law: &Law, loss: f64, window: f64) -> f64 {
        match self.telling {
            Telling::Selective => self.fails_if_told(law, loss, window),
            Telling::Partial => 1.0 - self.noticed(window, loss) * self.mended(window, loss),
            Telling::Duplicates => {
                1.0 - self.noticed(window, loss) * self.mended_by_duplicates(window, loss)
            }
        }
    }

    fn fails_if_told(&self, law: &Law, loss: f64, window: f64) -> f64 {
        // What is sent again is lost, and all that is sent with it; or the whole window is, and the probe after it.
        // Each is acknowledged at once, and an acknowledgement that is lost tells nothing.
        let untold = untold(loss, self.unheard);
        let others = (law.reduced(window) - 1.0).max(1.0);
        untold * libm::pow(untold, others) + untold * libm::pow(untold, window)
    }

    /// The chance that three duplicates come of what is sent after the first segment that a window lost.
    fn noticed(&self, window: f64, loss: f64) -> f64 {
        let others = (window - 1.0).max(0.0);
        let more = if others > 0.0 { self.limited } else { 0.0 };
        three(others + more, 1.0 - untold(loss, self.unheard))
    }

    /// The chance that what a window lost arrives when it is sent again, one segment for each partial acknowledgement.
    fn mended(&self, window: f64, loss: f64) -> f64 {
        (1.0 - loss) * libm::pow(1.0 - loss * loss, (window - 1.0).max(0.0))
    }

    /// The same without partial acknowledgements. One further loss is noticed by what is sent new meanwhile, about half of
    /// the window; of a third nothing tells, as nothing new may be sent (K. Fall and S. Floyd, *Simulation-based
    /// Comparisons of Tahoe, Reno and SACK TCP*, 1996, §4).
    fn mended_by_duplicates(&self, window: f64, loss: f64) -> f64 {
        let others = (window - 1.0).max(0.0);
        let through = 1.0 - loss;
        let none = libm::pow(through, others);
        let one = others * loss * libm::pow(through, (others - 1.0).max(0.0));
        let again = three((window / 2.0 - 2.0).max(0.0), 1.0 - untold(loss, self.unheard));
        through * (none + one * through * again).min(1.0)
    }

    /// The chance that a round of `window` segments which all arrive ends in a time-out, as every acknowledgement of it
    /// is lost, and with selective acknowledgements what the probe after it would tell (RFC 8985 §7).
    fn silent(&self, loss: f64, window: f64) -> f64 {
        let probe =
            if self.telling == Telling::Selective { untold(loss, self.unheard) } else { 1.0 };
        libm::pow(self.unheard, (window / self.acked).max(1.0)) * probe
    }
}

/// The probability that of `count` events of probability `chance` three or more happen.
fn three(count: f64, chance: f64) -> f64 {
    let fewer: f64 = [1.0, count, count * (count - 1.0).max(0.0) / 2.0]
        .iter()
        .zip([0.0, 1.0, 2.0])
        .map(|(ways, k)| {
            ways * libm::pow(chance, k) * libm::pow(1.0 - chance, (count - k).max(0.0))
        })
        .sum();
    if count < 3.0 { 0.0 } else { (1.0 - fewer).clamp(0.0, 1.0) }
}

/// The probability that a segment or the acknowledgement of it is lost.
pub fn untold(loss: f64, unheard: f64) -> f64 {
    // Exactly the loss if no acknowledgement is lost.
    loss + unheard * (1.0 - loss)
}

/// The inputs of the chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance {
    /// The window's law.
    pub law: Law,
    /// The probability that a packet is lost.
    pub loss: f64,
    /// Seconds of a round trip, queueing included.
    pub round: f64,
    /// The largest window that may be outstanding.
    pub most: f64,
    /// The repair of a loss.
    pub repair: Repair,
}

/// A window that losses move.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sway {
    /// Segments sent in a round trip in the mean, the time of repairs and time-outs included.
    pub mean: f64,
    /// The standard deviation of the window over its mean.
    pub swing: f64,
}

/// Sums over rounds.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    rounds: f64,
    sent: f64,
    squares: f64,
    /// Rounds in which nothing is sent.
    idle: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, window: f64) {
        self.rounds += weight;
        self.sent += weight * window;
        self.squares += weight * window * window;
    }

    fn plus(&mut self, other: &Sums, weight: f64) {
        self.rounds += weight * other.rounds;
        self.sent += weight * other.sent;
        self.squares += weight * other.squares;
        self.idle += weight * other.idle;
    }
}

/// The steady state of the window; all of `most` without loss.
pub fn sway(chance: &Chance) -> Sway {
    let loss = chance.loss;
    if loss <= 0.0 {
        return Sway { mean: chance.most, swing: 0.0 };
    }
    if loss >= 1.0 {
        return Sway { mean: 0.0, swing: 0.0 };
    }
    let chain = Chain::new(chance);
    let mut all = Sums::default();
    for (sums, share) in chain.sums.iter().zip(chain.steady()) {
        all.plus(sums, share);
    }
    let mean = all.sent / all.rounds;
    let variance = (all.squares / all.rounds - mean * mean).max(0.0);
    Sway { mean: all.sent / (all.rounds + all.idle), swing: libm::sqrt(variance) / mean }
}

/// The targets of courses: a state is a window at a loss, and for CUBIC whether the one before had been larger.
struct Chain {
    points: Vec<f64>,
    /// For each state the chances of the next.
    next: Vec<Vec<f64>>,
    /// For each state what its course sums up to.
    sums: Vec<Sums>,
}

impl Chain {
    fn new(chance: &Chance) -> Chain {
        let top = top(chance);
        let ratio = libm::pow(top, 1.0 / (POINTS - 1) as f64);
        let points: Vec<f64> = (0..POINTS).map(|i| libm::pow(ratio, i as f64).min(top)).collect();
        let kinds = if matches!(chance.law.growth, Growth::Cubic { .. }) { 2 } else { 1 };
        let mut chain = Chain { points, next: Vec::new(), sums: Vec::new() };
        for state in 0..POINTS * kinds {
            let (next, sums) = chain.course(chance, state, kinds, top);
            chain.next.push(next);
            chain.sums.push(sums);
        }
        chain
    }

    /// Follows the course from a state and notes the windows at which losses end it.
    fn course(&self, chance: &Chance, state: usize, kinds: usize, top: f64) -> (Vec<f64>, Sums) {
        let Chance { law, loss, round, .. } = *chance;
        let prior = self.points[state % POINTS];
        // Fast convergence (RFC 9438 §4.7).
        let plateau = if state < POINTS { prior } else { prior * (1.0 + law.beta) / 2.0 };
        let mut course = Course::after(law, prior, plateau);
        let mut next = vec![0.0; POINTS * kinds];
        let mut sums = Sums::default();
        let (mut alive, mut repairing) = (1.0, true);
        sums.idle += chance.repair.fails(&law, loss, prior) * chance.repair.timeout / round;
        while alive > REST {
            let stride = if repairing { 1.0 } else { stride(&course, loss, round, top) };
            let silent = chance.repair.silent(loss, course.window);
            let heard = libm::pow(1.0 - silent, stride);
            let kept = libm::pow(1.0 - loss, course.window * stride) * heard;
            sums.idle += alive * (1.0 - heard) * chance.repair.timeout / round;
            // A round of repair lasts longer if what is sent again is lost again.
            let rounds = if repairing {
                1.0 / (1.0 - loss)
            } else {
                (1.0 - kept) / (1.0 - libm::pow(1.0 - loss, course.window))
            };
            sums.add(alive * rounds, course.window);
            let short = kinds > 1 && course.window < plateau;
            let offset = if short { POINTS } else { 0 };
            self.spread(&mut next[offset..], course.window, alive * (1.0 - kept));
            alive *= kept;
            if !repairing {
                course.advance(stride, round, top);
            }
            repairing = false;
        }
        self.spread(&mut next, course.window, alive);
        (next, sums)
    }

    /// Gives a chance to the two points about a window, so that their mean is the window.
    fn spread(&self, next: &mut [f64], window: f64, chance: f64) {
        let above = self.points.partition_point(|&point| point < window).clamp(1, POINTS - 1);
        let (low, high) = (self.points[above - 1], self.points[above]);
        let upper = ((window - low) / (high - low)).clamp(0.0, 1.0);
        next[above - 1] += chance * (1.0 - upper);
        next[above] += chance * upper;
    }

    /// The shares of the states in the long run.
    fn steady(&self) -> Vec<f64> {
        let states = self.next.len();
        let mut shares = vec![1.0 / states as f64; states];
        for _ in 0..PASSES {
            let mut after = vec![0.0; states];
            for (share, next) in shares.iter().zip(&self.next) {
                after.iter_mut().zip(next).for_each(|(after, chance)| *after += share * chance);
            }
            shares = after;
        }
        shares
    }
}

/// A window that chance lets nobody pass.
fn top(chance: &Chance) -> f64 {
    let linear = 9.0 / libm::sqrt(chance.loss);
    let bound = match chance.law.growth {
        Growth::Linear { share, .. } if share > 0.0 => chance.most,
        Growth::Linear { gain, .. } => linear * libm::sqrt(gain),
        Growth::Cubic { .. } => linear.max(6.0 * super::tcp::cubic_mean(chance.round, chance.loss)),
    };
    bound.max(8.0).min(chance.most.max(1.0)).max(1.5)
}

/// Rounds reckoned at once: few enough that a loss among them is rare.
fn stride(course: &Course, loss: f64, round: f64, top: f64) -> f64 {
    let rare = 0.1 / (loss * course.window);
    let steady = course.window >= top;
    if steady { rare.max(1.0) } else { course.stride(round).min(rare).max(1.0) }
}

#[cfg(test)]
mod tests {
    use super::super::tcp::doublings;
    use super::*;
    use proptest::prelude::*;

    fn repair(telling: Telling) -> Repair {
        Repair { telling, limited: 2.0, timeout: 1.0, unheard: 0.0, acked: 2.0 }
    }

    fn of(law: Law, loss: f64, round: f64) -> Sway {
        let repair = repair(Telling::Selective);
        sway(&Chance { law, loss, round, most: 1e9, repair })
    }

    /// 1.31/√p (Ott, Kemperman and Mathis 1996) if losses are rare, less if they are many.
    #[test]
    fn reno_follows_the_square_root_law() {
        for (loss, constant) in [(1e-6, 1.31), (1e-4, 1.31), (2e-3, 1.25), (0.02, 1.14)] {
            let found = of(Law::reno(1), loss, 0.05).mean * libm::sqrt(loss);
            assert!((found / constant - 1.0).abs() < 0.03, "{loss}: {found}");
        }
    }

    /// RFC 9438 §5.1 has 1.054 (RTT/p)^¾ for losses at equal distances; independent ones let it have more.
    #[test]
    fn cubic_follows_its_law_and_reno_where_that_has_more() {
        let own = of(Law::cubic(false), 1e-5, 0.2).mean / super::super::tcp::cubic_mean(0.2, 1e-5);
        assert!((1.0..1.25).contains(&own), "{own}");
        let friendly = of(Law::cubic(true), 1e-3, 0.001).mean / of(Law::reno(1), 1e-3, 0.001).mean;
        assert!((0.85..1.05).contains(&friendly), "{friendly}");
    }

    /// What no duplicates can tell of times out; in a wide window with rare losses only a repair that is lost does. Of
    /// many losses partial acknowledgements tell more than duplicates.
    #[test]
    fn repairs_without_selective_acknowledgements() {
        let law = Law::reno(1);
        let fails = |telling, limited, loss, window| {
            let repair = Repair { telling, limited, timeout: 1.0, unheard: 0.0, acked: 2.0 };
            repair.fails(&law, loss, window)
        };
        for telling in [Telling::Partial, Telling::Duplicates] {
            assert_eq!(fails(telling, 0.0, 0.01, 3.5), 1.0);
            assert!(fails(telling, 2.0, 0.01, 3.5) < 0.1);
            let rare = fails(telling, 0.0, 1e-4, 40.0) / 1e-4;
            assert!((1.0..1.2).contains(&rare), "{rare}");
        }
        for window in [5.0, 10.0, 40.0, 200.0] {
            let (partial, duplicates) = (Telling::Partial, Telling::Duplicates);
            let more = fails(duplicates, 2.0, 0.02, window) - fails(partial, 2.0, 0.02, window);
            assert!(more > 0.01, "{window}: {more}");
        }
        assert_eq!((three(2.9, 1.0), three(3.0, 1.0), three(3.0, 0.5)), (0.0, 1.0, 0.125));
    }

    #[test]
    fn no_loss_leaves_the_window_whole() {
        let repair = repair(Telling::Selective);
        let chance = Chance { law: Law::reno(1), loss: 0.0, round: 0.1, most: 44.0, repair };
        assert_eq!(sway(&chance), Sway { mean: 44.0, swing: 0.0 });
        let rare = sway(&Chance { loss: 1e-9, ..chance });
        assert!((rare.mean / 44.0 - 1.0).abs() < 0.01, "{rare:?}");
        assert_eq!(sway(&Chance { loss: 1.0, ..chance }).mean, 0.0);
    }

    fn any_telling() -> impl Strategy<Value = Telling> {
        prop_oneof![Just(Telling::Selective), Just(Telling::Partial), Just(Telling::Duplicates)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn more_loss_is_never_more(
            loss in 1e-6f64..0.2, more in 1.2f64..4.0, round in 0.001f64..1.0, cubic in any::<bool>(),
            whole in any::<bool>(), most in 2.0f64..1e5, telling in any_telling(),
        ) {
            let law = if cubic { Law::cubic(whole) } else { Law::reno(1) };
            // The more is lost, the more often a time-out doubles, as in every prediction.
            let at = |loss| {
                let repair = Repair { timeout: doublings(loss), ..repair(telling) };
                sway(&Chance { law, loss, round, most, repair })
            };
            let (less, worse) = (at(loss), at(loss * more));
            prop_assert!(worse.mean <= less.mean * 1.001, "{less:?} {worse:?}");
            prop_assert!(less.mean <= most && less.swing >= 0.0);
        }
    }
}
