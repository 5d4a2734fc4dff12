//! Proportional integral controller enhanced (RFC 8033).

use super::pi::{CONTROLLED, GAINS, Gain, Odds, Ticker, UPDATES, change};
use super::settings::settings;
use super::waiting::Waiting;
use super::{
    Assumptions, Backlog, Chance, Discipline, Drops, MTU, Service, Settings, Standing, TARGETS,
};
use crate::Limit;
use trunkline_core::{DropCause, Metered, Probability, Span, Stream, Time};

settings! {
    /// Random drops at a probability that holds the delay at its target (RFC 8033).
    pub struct PieSettings {
        /// How much may wait.
        limit: Limit;
        /// The delay aimed at (QDELAY_REF, §4.2).
        target: Span = Span::from_millis(15), "the target" in TARGETS;
        /// How often the drop probability is worked out anew (T_UPDATE, §4.2).
        update: Span = Span::from_millis(15), "the time between updates" in UPDATES;
        /// What each second of delay above the target adds to the probability at an update (appendix A).
        alpha: Gain = Gain::from_micros(125_000), "the gain alpha" in GAINS;
        /// What each second by which the delay has grown adds to it (appendix A).
        beta: Gain = Gain::from_micros(1_250_000), "the gain beta" in GAINS;
        /// How long nothing is dropped once a queue has been quiet (MAX_BURST, §4.4).
        burst: Span = Span::from_millis(150), "the burst" in Span::ZERO..=Span::from_secs(100);
        /// User bytes of one maximal packet: while no more than two of them wait, nothing is dropped (as in Linux;
        /// §4.1 has two of mean size).
        mtu: u32 as Bytes = MTU;
        /// Whether packets that can be marked are marked instead of dropped (§5.1).
        ecn: bool = true;
        /// The drop probability above which they are dropped all the same (mark_ecnth, §5.1).
        mark_below: Probability = Probability::new(0.1).unwrap_or_default();
    }
}

impl Settings for PieSettings {
    type Queue<P: Metered> = Pie<P>;

    const ALIASES: &'static [&'static str] = &["fq-pie"];

    const TRIALS: &'static [&'static str] = &[
        "target=1ms,update=1ms,alpha=1,beta=10,burst=0s,mtu=100,mark_below=1%,limit=3kB",
        "target=5ms,ecn=false,alpha=100,burst=5ms,mtu=1,limit=12p",
    ];

    fn build<P: Metered>(self, chance: &Chance<'_>) -> Pie<P> {
        Pie::new(self, chance.stream())
    }

    fn assumptions(&self) -> Assumptions {
        let idle = (!self.ecn
            && self.mark_below != <PieSettings as super::Keys>::with_limit(self.limit).mark_below)
            .then_some(
                "mark_below has no effect with ecn = false; give ecn = true, or leave it out",
            );
        let managed = Assumptions::managed(CONTROLLED, Standing::Delay(self.target));
        Assumptions { idle, ..managed }
    }
}

/// One queue under PIE (RFC 8033), first in first out. An arriving packet is dropped, or marked, with a
/// probability that a controller sets so that the delay is the target.
///
/// The choices that the RFC leaves:
/// * Delay is that of the packet served last, none once nothing waits (§4.3: timestamps instead of an
///   estimate of the departure rate, §5.2).
/// * Drops are spread out (§5.4): none before the probabilities of the packets since the last one sum to
///   0.85, one for certain when they sum to 8.5.
/// * Large steps are capped (§5.5): at most 2 points at an update, once the probability is 10 % or more.
/// * A burst's allowance is renewed at updates (as in Linux), not at each arrival (§4.4).
/// * The probability decays only while both delays are zero (§4.2; appendix B has half the target).
/// * Updates are at multiples of their period, whatever else happens, and the controller is always on
///   (§5.3 turns it off at times).
#[derive(Debug)]
pub struct Pie<P> {
    waiting: Waiting<P>,
    settings: PieSettings,
    mark_below: Odds,
    control: Control,
    ticker: Ticker,
    stream: Stream,
}

/// PIE's variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Control {
    odds: Odds,
    /// The sum of the probabilities since the last drop, in units of [`Odds`].
    accumulated: u64,
    delay: Span,
    /// What the delay was at the last update.
    before: Span,
    /// How long nothing is dropped yet.
    burst: Span,
}

/// Parts of certainty in the RFC's tables.
const MILLION: u64 = 1_000_000;

impl Control {
    /// An update (§4.2, `calculate_drop_prob`). Returns whether anything changed.
    fn update(&mut self, settings: &PieSettings) -> bool {
        let PieSettings { target, alpha, beta, .. } = *settings;
        let Control { delay, before, .. } = *self;
        let old = *self;
        let mut step = change(alpha, beta, target, delay, before) / scale(self.odds);
        if self.odds >= Odds::one_in(10) {
            step = step.min(i128::from(Odds::one_in(50).units()));
        }
        self.odds = self.odds.plus(step);
        if delay.is_zero() && before.is_zero() {
            // §4.2: times 0.98 if there is no congestion.
            self.odds = self.odds.plus(-i128::from(self.odds.units() / 50));
        }
        self.burst = self.burst.saturating_sub(settings.update);
        let half = target.scaled(1, 2);
        if self.odds == Odds::NEVER && delay < half && before < half {
            self.burst = settings.burst;
        }
        self.before = delay;
        *self != old
    }

    /// Whether an arriving packet is to be dropped, or marked (§4.1 and §5.4, `drop_early`).
    fn strikes(&mut self, settings: &PieSettings, bytes: u64, stream: &mut Stream) -> bool {
        let calm = self.before < settings.target.scaled(1, 2) && self.odds < Odds::one_in(5);
        if !self.burst.is_zero() || calm || bytes <= 2 * u64::from(settings.mtu) {
            return false;
        }
        if self.odds == Odds::NEVER {
            self.accumulated = 0;
        }
        self.accumulated += self.odds.units();
        let certain = Odds::CERTAIN.units();
        if self.accumulated < certain / 100 * 85 {
            return false;
        }
        let strikes = self.accumulated >= certain / 2 * 17 || self.odds.happens(stream);
        if strikes {
            self.accumulated = 0;
        }
        strikes
    }
}

/// The smaller the probability, the smaller its steps (§4.2).
fn scale(odds: Odds) -> i128 {
    const TABLE: [(u64, i128); 6] = [
        (MILLION, 2048),
        (MILLION / 10, 512),
        (MILLION / 100, 128),
        (MILLION / 1000, 32),
        (100, 8),
        (10, 2),
    ];
    let row = TABLE.into_iter().find(|&(many, _)| odds < Odds::one_in(many));
    row.map_or(1, |(_, scale)| scale)
}

impl<P: Metered> Pie<P> {
    /// An empty queue as `settings` say, whose chances come from `stream`.
    pub fn new(settings: PieSettings, stream: Stream) -> Pie<P> {
        Pie {
            waiting: Waiting::new(settings.limit),
            settings,
            mark_below: Odds::from(settings.mark_below),
            control: Control { burst: settings.burst, ..Control::default() },
            ticker: Ticker::new(settings.update),
            stream,
        }
    }

    /// Makes up for the updates until `now`. Once one changes nothing the others will not either.
    fn catch_up(&mut self, now: Time) {
        while self.ticker.pass(now).is_some() {
            if !self.control.update(&self.settings) {
                self.ticker.skip(now);
            }
        }
    }
}

impl<P: Metered> Discipline<P> for Pie<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        self.catch_up(now);
        if !self.waiting.takes(packet.size()) {
            self.control.accumulated = 0;
            return drops.push(packet, DropCause::QueueLimit);
        }
        let bytes = self.waiting.backlog().bytes;
        let mut taken = Some(packet);
        if self.control.strikes(&self.settings, bytes, &mut self.stream) {
            let may_mark = self.settings.ecn && self.control.odds <= self.mark_below;
            taken = taken.and_then(|it| drops.mark_or_drop(it, may_mark, DropCause::Pie));
        }
        if let Some(packet) = taken {
            self.waiting.push_back(now, packet);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Option<Service<P>> {
        self.catch_up(now);
        let (came, packet) = self.waiting.pop_front()?;
        self.control.delay = if self.waiting.is_empty() { Span::ZERO } else { now.since(came) };
        Some(Service::whole(packet))
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
    use crate::discipline::Keys;
    use trunkline_core::Seed;

    fn settings() -> PieSettings {
        PieSettings::with_limit(Limit::Packets(1000))
    }

    fn odds(percent: f64) -> Odds {
        Odds::from(Probability::new(percent / 100.0).unwrap())
    }

    fn near(found: Odds, percent: f64) -> bool {
        (found.units() as f64 / Odds::CERTAIN.units() as f64 * 100.0 - percent).abs() < 1e-9
    }

    /// The probability, in percent, after an update at a delay of `delay` ms that was `before`.
    fn after(percent: f64, delay: u64, before: u64) -> Odds {
        let [delay, before] = [delay, before].map(Span::from_millis);
        let mut control = Control { odds: odds(percent), delay, before, ..Control::default() };
        control.update(&settings());
        control.odds
    }

    #[test]
    fn updates_worked_by_hand() {
        // A delay of 25 ms after 20: 0.125 · 0.010 + 1.25 · 0.005 = 0.75 %, less by the table of §4.2.
        assert!(near(after(0.0, 25, 20), 0.75 / 2048.0));
        assert!(near(after(0.0005, 25, 20), 0.0005 + 0.75 / 512.0));
        assert!(near(after(0.005, 25, 20), 0.005 + 0.75 / 128.0));
        assert!(near(after(0.05, 25, 20), 0.05 + 0.75 / 32.0));
        assert!(near(after(0.5, 25, 20), 0.5 + 0.75 / 8.0));
        assert!(near(after(5.0, 25, 20), 5.0 + 0.75 / 2.0));
        assert!(near(after(50.0, 25, 20), 50.75));
        // 200 ms after none: 0.125 · 0.185 + 1.25 · 0.2 = 27.3 %, of which §5.5 leaves two.
        assert!(near(after(50.0, 200, 0), 52.0));
        assert!(near(after(5.0, 200, 0), 5.0 + 27.3125 / 2.0));
        // No queue: −0.125 · 0.015 = −0.1875 %, and 0.98 times what is left.
        assert!(near(after(50.0, 0, 0), (50.0 - 0.1875) * 0.98));
        assert_eq!(after(0.01, 0, 100), Odds::NEVER, "never below zero");
        assert_eq!(after(100.0, 200, 0), Odds::CERTAIN, "never above one");
    }

    #[test]
    fn the_burst_passes_and_comes_back_with_the_calm() {
        let mut control = Control { burst: settings().burst, ..Control::default() };
        control.delay = Span::from_millis(8);
        for _ in 0..10 {
            assert!(!control.burst.is_zero());
            control.update(&settings());
        }
        assert!(control.burst.is_zero(), "150 ms are ten updates");
        (control.odds, control.delay) = (Odds::NEVER, Span::from_millis(7));
        control.update(&settings());
        assert!(control.burst.is_zero(), "8 ms at the update before is more than half of 15");
        control.update(&settings());
        assert_eq!(control.burst, settings().burst);
    }

    #[test]
    fn strikes_are_spread_out() {
        let mut stream = Seed(7).stream("strikes");
        let before = Span::from_millis(15);
        let mut control = Control { odds: odds(5.0), before, ..Control::default() };
        let mut gaps = Vec::new();
        let mut gap = 0;
        for _ in 0..200_000 {
            gap += 1;
            if control.strikes(&settings(), 1_000_000, &mut stream) {
                gaps.push(std::mem::take(&mut gap));
            }
        }
        // 0.85 / 0.05 is 17 packets, 8.5 / 0.05 is 170; between them one in twenty strikes: on average the
        // 16 that cannot and 20 more, less the one in 2500 that gets as far as 170.
        assert!(gaps.iter().all(|gap| (17..=170).contains(gap)));
        let mean = 200_000.0 / gaps.len() as f64;
        assert!((mean - 36.0).abs() < 1.0, "{mean}");
        let mut spared = |control: &mut Control, bytes| {
            !(0..500).any(|_| control.strikes(&settings(), bytes, &mut stream))
        };
        assert!(spared(&mut control, 3000), "two packets are left alone");
        control.burst = Span::from_millis(1);
        assert!(spared(&mut control, 1_000_000), "so is a burst");
        (control.burst, control.before) = (Span::ZERO, Span::from_millis(7));
        assert!(spared(&mut control, 1_000_000), "and a queue half as long as it may be");
    }
}
