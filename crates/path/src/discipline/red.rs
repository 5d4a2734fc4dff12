//! Random early detection (Floyd and Jacobson 1993).

use super::pi::Odds;
use super::settings::settings;
use super::waiting::Waiting;
use super::{Assumptions, Backlog, Chance, Discipline, Drops, Service, Settings, Standing};
use crate::Limit;
use crate::spec::SpecError;
use trunkline_core::{DropCause, Metered, Probability, Span, Stream, Time};

settings! {
    /// Random early detection: an arriving packet is dropped or marked with a probability that grows with the average
    /// queue (Floyd and Jacobson 1993; defaults of Floyd 1997).
    pub struct RedSettings {
        /// How much may wait.
        limit: Limit;
        /// The average queue, in packets, bytes or cells, below which nothing is dropped (min_th).
        min: Limit = Limit::Packets(5);
        /// The average queue at which the probability is max_p (max_th); in the unit of min.
        max: Limit = Limit::Packets(15);
        /// The probability at max.
        max_p: Probability = Probability::new(0.1).unwrap_or_default();
        /// The weight of each arrival's queue in the average (w_q).
        weight: Probability = Probability::new(0.002).unwrap_or_default();
        /// Whether the probability goes on from max_p to 1 between max and twice max; if not it is 1 from max on.
        gentle: bool = true;
        /// Whether packets that can be marked are marked instead of dropped while the probability is below 1.
        ecn: bool = false;
    }
}

impl Settings for RedSettings {
    type Queue<P: Metered> = Red<P>;

    const TRIALS: &'static [&'static str] = &[
        "min=1p,max=4p,max_p=50%,weight=20%,limit=9p",
        "min=200B,max=900B,max_p=20%,gentle=false,ecn=true,weight=50%,limit=3kB",
        "min=3c,max=30c,weight=100%,ecn=true,limit=60c",
    ];

    fn build<P: Metered>(self, chance: &Chance<'_>) -> Red<P> {
        Red::new(self, chance.stream())
    }

    fn assumptions(&self) -> Assumptions {
        Assumptions::managed("RED", Standing::Unknown)
    }

    fn check(&self) -> Result<(), SpecError> {
        let (min, max) = (self.min, self.max);
        let problem = if !alike(min, max) {
            format!(
                "max {max} is in another unit than min {min}: give both in packets, bytes or cells"
            )
        } else if min.amount() >= max.amount() {
            format!("max {max} is not above min {min}: give a larger max or a smaller min")
        } else if self.weight.is_never() {
            format!("weight {} never moves the average: give one above 0", self.weight)
        } else {
            return Ok(());
        };
        Err(SpecError::Conflict(problem))
    }

    fn check_limit(&self) -> Result<(), SpecError> {
        let (limit, min) = (self.limit, self.min);
        if alike(limit, min) && limit.amount() <= min.amount() {
            return Err(SpecError::Conflict(format!(
                "limit {limit} of the discipline red is not above its min {min}, so that nothing would be dropped early: give a larger limit or a smaller min"
            )));
        }
        Ok(())
    }
}

/// Whether two amounts are in one unit.
fn alike(one: Limit, other: Limit) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
}

/// One queue under RED (Floyd and Jacobson, IEEE/ACM ToN 1993, figure 2), first in first out.
///
/// The average follows what waits behind the line at each arrival. While the line is idle it falls as though packets had
/// come to an empty queue at the line's rate; the time of one is the mean of those served last, so that neither packet
/// size nor rate need be stated (the paper's s is of a small packet).
///
/// With p_b growing from 0 at min to max_p at max, a packet is dropped with p_b/(1 − count·p_b), count being the packets
/// since the last one dropped: the gaps are uniform from 1 to 1/p_b (§7). Figure 2 counts the packet itself after a drop,
/// §7 does not; here it is §7. Above all thresholds every packet is dropped, also one that could be marked: marks have
/// not helped by then.
#[derive(Debug)]
pub struct Red<P> {
    waiting: Waiting<P>,
    settings: RedSettings,
    average: Average,
    /// Packets since the last one that was dropped or marked, in the range where some are.
    count: u64,
    service: Clock,
    stream: Stream,
}

impl<P: Metered> Red<P> {
    /// An empty queue as `settings` say, whose chances come from `stream`.
    pub fn new(settings: RedSettings, stream: Stream) -> Red<P> {
        Red {
            waiting: Waiting::new(settings.limit),
            average: Average { queue: 0, weight: Odds::from(settings.weight).units() },
            settings,
            count: 0,
            service: Clock::default(),
            stream,
        }
    }

    /// Whether the arriving packet is to be dropped or marked (figure 2), and which probability p_b it met.
    fn strikes(&mut self) -> (bool, Odds) {
        let odds = probability(&self.settings, self.average.queue);
        if odds == Odds::NEVER {
            self.count = 0;
            return (false, odds);
        }
        let hit = spaced(odds, self.count).happens(&mut self.stream);
        self.count = if hit { 0 } else { self.count + 1 };
        (hit, odds)
    }
}

/// The average queue, in parts of the unit of the thresholds.
#[derive(Debug)]
struct Average {
    queue: u64,
    /// Of certainty ([`Odds`]).
    weight: u64,
}

/// Binary digits behind the point of an average.
const FRACTION: u32 = 20;
/// The longest queue that is reckoned with.
const LONGEST: u64 = (1 << (63 - FRACTION)) - 1;

impl Average {
    /// An arrival finds `queue` waiting: avg ← (1 − w)·avg + w·q.
    fn sample(&mut self, queue: u64) {
        let gap = i128::from(queue.min(LONGEST) << FRACTION) - i128::from(self.queue);
        let one = i128::from(Odds::CERTAIN.units());
        let step = (gap * i128::from(self.weight) + one / 2).div_euclid(one);
        self.queue = u64::try_from(i128::from(self.queue) + step).unwrap_or(0);
    }

    /// The line was idle for the time of `packets`: avg ← (1 − w)^m·avg.
    fn age(&mut self, mut packets: u64) {
        let one = u128::from(Odds::CERTAIN.units());
        let (mut queue, mut keeps) = (u128::from(self.queue), one - u128::from(self.weight));
        while packets > 0 && queue > 0 {
            if packets % 2 == 1 {
                queue = queue * keeps / one;
            }
            keeps = keeps * keeps / one;
            packets /= 2;
        }
        self.queue = queue as u64;
    }
}

/// The probability p_b at an average queue.
fn probability(settings: &RedSettings, average: u64) -> Odds {
    let ends =
        [settings.min, settings.max].map(|it| u128::from(it.amount().min(LONGEST)) << FRACTION);
    let ([min, max], average) = (ends, u128::from(average));
    let (most, one) =
        (u128::from(Odds::from(settings.max_p).units()), u128::from(Odds::CERTAIN.units()));
    let units = match average {
        _ if average < min => 0,
        _ if average < max => most * (average - min) / (max - min),
        _ if settings.gentle && average < 2 * max => most + (one - most) * (average - max) / max,
        _ => one,
    };
    Odds::NEVER.plus(units as i128)
}

/// The probability p_b/(1 − count·p_b), which spaces drops uniformly (§7).
fn spaced(odds: Odds, count: u64) -> Odds {
    let (each, one) = (u128::from(odds.units()), u128::from(Odds::CERTAIN.units()));
    match one.checked_sub(each.saturating_mul(u128::from(count))) {
        Some(left) if left > each => Odds::NEVER.plus((each * one / left) as i128),
        _ => Odds::CERTAIN,
    }
}

/// What the line takes for a packet, and since when it has been idle.
#[derive(Debug, Default)]
struct Clock {
    /// When the packet on the line was taken.
    taken: Option<Time>,
    idle: Option<Time>,
    /// The mean time of those served last; zero while none was.
    each: Span,
}

/// Of how many packets the mean time is taken, about.
const MEMORY: u64 = 16;

impl Clock {
    /// The line asks for a packet, and gets one or not.
    fn asked(&mut self, now: Time, gets_one: bool) {
        if let Some(taken) = self.taken {
            let took = now.since(taken);
            let sum = self.each.scaled(MEMORY - 1, 1) + took;
            self.each = if self.each.is_zero() { took } else { sum.scaled(1, MEMORY) };
        }
        self.taken = gets_one.then_some(now);
        if !gets_one && self.idle.is_none() {
            self.idle = Some(now);
        }
    }

    /// Packets that the idle line could have served by `now`, each of which counts once. `None` if it is not idle.
    fn missed(&mut self, now: Time) -> Option<u64> {
        let idle = self.idle.as_mut()?;
        let packets = now.since(*idle).as_nanos().checked_div(self.each.as_nanos()).unwrap_or(0);
        *idle += self.each.scaled(packets, 1);
        Some(packets)
    }
}

impl<P: Metered> Discipline<P> for Red<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        match self.service.missed(now) {
            Some(packets) if self.waiting.is_empty() => self.average.age(packets),
            _ => self.average.sample(self.waiting.held(self.settings.min)),
        }
        let (hit, odds) = self.strikes();
        if !self.waiting.takes(packet.size()) {
            return drops.push(packet, DropCause::QueueLimit);
        }
        let may_mark = self.settings.ecn && odds < Odds::CERTAIN;
        let passed = match hit {
            true => drops.mark_or_drop(packet, may_mark, DropCause::EarlyDiscard),
            false => Some(packet),
        };
        if let Some(packet) = passed {
            self.waiting.push_back(now, packet);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Option<Service<P>> {
        let packet = self.waiting.pop_front();
        self.service.asked(now, packet.is_some());
        let (_, packet) = packet?;
        self.service.idle = None;
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
    use proptest::prelude::*;
    use trunkline_core::{Channel, Ecn, Packet, Seed};

    const ONE: f64 = (1u64 << 60) as f64;

    fn settings() -> RedSettings {
        RedSettings::with_limit(Limit::Packets(1000))
    }

    fn average(queue: f64, weight: f64) -> Average {
        Average { queue: (queue * 2f64.powi(20)) as u64, weight: (weight * ONE) as u64 }
    }

    fn value(average: &Average) -> f64 {
        average.queue as f64 / 2f64.powi(20)
    }

    #[test]
    fn the_average_answers_a_step_as_the_paper_says() {
        // §6.1, equation 2: after n arrivals at a queue that grows by one with each,
        // avg = L + 1 + ((1 − w)^(L+1) − 1)/w; at w = 0.001 and L = 100 that is 4.88.
        let mut ramp = average(0.0, 0.001);
        (1..=100).for_each(|queue| ramp.sample(queue));
        let exact = 101.0 + (0.999f64.powi(101) - 1.0) / 0.001;
        assert!((value(&ramp) - exact).abs() < 1e-3 && (exact - 4.88).abs() < 0.01, "{exact}");
        // Equation 1's filter after a step: 1 − (1 − w)^n of it.
        let mut step = average(0.0, 0.002);
        for n in 1..=2000 {
            step.sample(50);
            let exact = 50.0 * (1.0 - 0.998f64.powi(n));
            assert!((value(&step) - exact).abs() < 0.01, "{n}: {} {exact}", value(&step));
        }
    }

    #[test]
    fn an_idle_line_lets_the_average_fall_as_though_packets_had_come() {
        for packets in [0u64, 1, 2, 3, 100, 1023, 4096] {
            let mut it = average(40.0, 0.002);
            it.age(packets);
            let exact = 40.0 * 0.998f64.powi(packets as i32);
            assert!((value(&it) - exact).abs() < 1e-4, "{packets}: {} {exact}", value(&it));
        }
        let mut it = average(40.0, 0.002);
        it.age(u64::MAX);
        assert_eq!(it.queue, 0);
    }

    #[test]
    fn idle_time_is_counted_in_packets_of_the_line_once() {
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        let mut clock = Clock::default();
        (0..9).for_each(|n| clock.asked(ms(2 * n), n < 8));
        assert_eq!(clock.each, Span::from_millis(2));
        assert_eq!(
            (clock.missed(ms(21)), clock.missed(ms(21)), clock.missed(ms(22))),
            (Some(2), Some(0), Some(1))
        );
        clock.asked(ms(22), true);
        clock.idle = None;
        assert_eq!(clock.missed(ms(23)), None);
    }

    #[test]
    fn the_probability_is_the_curve_of_the_paper_and_of_gentle() {
        let at = |settings: &RedSettings, queue: f64| {
            probability(settings, average(queue, 0.0).queue).units() as f64 / ONE
        };
        let (gentle, sharp) = (settings(), RedSettings { gentle: false, ..settings() });
        for (queue, soft, hard) in [
            (0.0, 0.0, 0.0),
            (4.999, 0.0, 0.0),
            (5.0, 0.0, 0.0),
            (10.0, 0.05, 0.05),
            (14.0, 0.09, 0.09),
            (15.0, 0.1, 1.0),
            (22.5, 0.55, 1.0),
            (30.0, 1.0, 1.0),
            (1e6, 1.0, 1.0),
        ] {
            assert!((at(&gentle, queue) - soft).abs() < 1e-9, "{queue}: {}", at(&gentle, queue));
            assert!((at(&sharp, queue) - hard).abs() < 1e-9, "{queue}: {}", at(&sharp, queue));
        }
    }

    /// §7: with p_b constant the gap between two drops is uniform from 1 to 1/p_b.
    #[test]
    fn drops_are_spaced_uniformly() {
        let (mut stream, odds) = (Seed(3).stream("red"), Odds::one_in(20));
        let (mut gaps, mut count) = ([0u32; 21], 0);
        for _ in 0..210_000 {
            let hit = spaced(odds, count).happens(&mut stream);
            count += 1;
            if hit {
                gaps[count as usize] += 1;
                count = 0;
            }
        }
        let total: u32 = gaps.iter().sum();
        assert!(total.abs_diff(20_000) < 300, "one in (1 + 20)/2: {total}");
        for (gap, &seen) in gaps.iter().enumerate().skip(1) {
            // 1000 of each, within five standard deviations.
            assert!(seen.abs_diff(total / 20) < 160, "{gap}: {seen}");
        }
    }

    /// A standing queue of `waiting` packets that `count` arrivals meet; what became of them.
    fn steady(settings: RedSettings, waiting: u64, ecn: Ecn, count: usize) -> (usize, u64) {
        let mut red = Red::new(settings, Seed(1).stream("red"));
        let (mut drops, mut dropped) = (Drops::default(), 0);
        for number in 0..count + 20_000 {
            let packet = Packet { ecn, ..Packet::new(Channel(1), 1000, Time::ZERO, number) };
            red.enqueue(Time::ZERO, packet, &mut drops);
            let lost = drops.drain().count();
            dropped += if number < 20_000 { 0 } else { lost };
            while red.backlog().packets > waiting {
                red.dequeue(Time::ZERO, &mut drops);
            }
        }
        (dropped, drops.marked())
    }

    #[test]
    fn a_standing_queue_loses_what_the_probability_and_the_spacing_say() {
        // p_b = 5 %: one in (1 + 20)/2 packets.
        let (dropped, _) = steady(settings(), 10, Ecn::NotEct, 105_000);
        assert!(dropped.abs_diff(10_000) < 200, "{dropped}");
        let marking = RedSettings { ecn: true, ..settings() };
        let (dropped, marked) = steady(marking, 10, Ecn::Ect0, 105_000);
        assert!(dropped == 0 && marked > 10_000, "{dropped} {marked}");
        let (dropped, _) = steady(settings(), 3, Ecn::NotEct, 100_000);
        assert_eq!(dropped, 0, "below min");
    }

    proptest! {
        #[test]
        fn the_average_stays_between_what_it_has_seen(queues in prop::collection::vec(0u64..1 << 40, 1..60), weight in 0f64..1.0) {
            let mut it = average(0.0, weight);
            let most = *queues.iter().max().unwrap();
            for queue in queues {
                it.sample(queue);
                prop_assert!(value(&it) <= most as f64);
            }
        }

        #[test]
        fn the_probability_never_falls_as_the_average_grows(one in 0u64..1 << 40, more in 0u64..1 << 30, gentle: bool) {
            let settings = RedSettings { gentle, ..settings() };
            prop_assert!(probability(&settings, one) <= probability(&settings, one + more));
        }
    }
}
