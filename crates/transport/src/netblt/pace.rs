//! When a sender may send: bursts of RFC 998, or the same rate with its packets evenly apart.

use super::wire::Burst;
use trunkline_core::{Span, Time};

/// How the packets of a burst follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spacing {
    /// At once, as RFC 998 has it: every interval a burst starts.
    #[default]
    Bursts,
    /// Evenly over the interval.
    Even,
}

/// The time that evenly spaced packets may be behind and be sent at once if nothing else is said (a choice): an end that sleeps
/// cannot wake for each packet. Never more than the burst that was agreed on.
const SLACK: Span = Span::from_micros(500);

/// The longest gap that evenly spaced packets come to have while no offer comes (a choice: with that receivers count, as long as
/// nothing is known).
const LONGEST: Span = Span::from_millis(100);

/// How a sender begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// How packets follow each other.
    pub spacing: Spacing,
    /// The burst until there is an offer.
    pub burst: Burst,
    /// Packets that go at once in the beginning, so that the receiver sees at what rate they come through.
    pub train: u16,
}

/// A sender's clock.
#[derive(Debug, Clone)]
pub struct Pace {
    spacing: Spacing,
    burst: Burst,
    /// The start of the burst, and packets left of it.
    start: Option<Time>,
    left: u16,
    /// When the next of evenly spaced packets is due, and when the latest was sent.
    due: Time,
    latest: Time,
    /// Packets left of those that go at once in the beginning.
    train: u16,
    /// Until an offer comes: packets that went at once, and how many have gone.
    unheard: Option<(u32, u32)>,
    /// The time that packets may be behind.
    slack: Span,
}

impl Pace {
    /// A clock that starts so.
    pub fn new(start: &Start) -> Pace {
        let Start { spacing, burst, train } = *start;
        let (due, latest) = (Time::ZERO, Time::ZERO);
        let unheard = (train > 0).then_some((train.into(), 0));
        Pace { spacing, burst, start: None, left: 0, due, latest, train, unheard, slack: SLACK }
    }

    /// An offer has come, or none comes soon: the pace holds from now on.
    pub fn holds(&mut self) {
        let before = self.step();
        self.unheard = None;
        self.hasten(before);
    }

    /// The time to the next packet. Who hears of no offer may send many times what the path carries, and what is lost then is lost for
    /// nothing: behind as many packets as went at once in the beginning, each as many again have gaps twice as long.
    fn step(&self) -> Span {
        let (gap, (train, gone)) = (self.gap(), self.unheard.unwrap_or((1, 0)));
        let doubled = (gone / train).saturating_sub(1).min(16);
        gap.scaled(1 << doubled, 1).min(LONGEST.max(gap))
    }

    /// The burst in force.
    pub fn burst(&self) -> Burst {
        self.burst
    }

    /// Sets another burst. Answers whether it is another. What is under way of a burst is cut to the new size.
    pub fn set(&mut self, burst: Burst) -> bool {
        let (is_other, before) = (burst != self.burst, self.step());
        self.burst = burst;
        self.hasten(before);
        self.left = self.left.min(burst.size);
        is_other
    }

    /// The gap was `before`. If it is shorter now, so many packets are ahead as before. Those that went at once in the beginning do not
    /// make a fast path wait.
    fn hasten(&mut self, before: Span) {
        let gap = self.step();
        if self.spacing == Spacing::Even && gap < before {
            let ahead = u128::from(self.due.since(self.latest).as_nanos());
            let ahead = ahead * u128::from(gap.as_nanos()) / u128::from(before.as_nanos());
            self.due = self.latest + Span::from_nanos(ahead as u64);
            self.train = 0;
        }
    }

    /// Sets the time that evenly spaced packets may be behind and be sent at once.
    pub fn set_slack(&mut self, slack: Span) {
        self.slack = slack;
    }

    fn interval(&self) -> Span {
        Span::from_millis(self.burst.interval.into())
    }

    /// The time from packet to packet on average.
    pub fn gap(&self) -> Span {
        Span::from_nanos(self.interval().as_nanos() / u64::from(self.burst.size.max(1)))
    }

    /// Whether packets are evenly spaced.
    pub fn is_even(&self) -> bool {
        self.spacing == Spacing::Even
    }

    /// When a packet may be sent.
    pub fn next(&self) -> Time {
        match (self.spacing, self.start) {
            _ if self.burst.interval == 0 || self.train > 0 => Time::ZERO,
            (Spacing::Even, _) => self.due,
            (Spacing::Bursts, Some(start)) if self.left == 0 => start + self.interval(),
            (Spacing::Bursts, _) => Time::ZERO,
        }
    }

    /// A packet is sent.
    pub fn sent(&mut self, now: Time) {
        self.train = self.train.saturating_sub(1);
        match self.spacing {
            Spacing::Even => {
                let most = self.slack.min(self.gap().scaled(u64::from(self.burst.size) - 1, 1));
                self.unheard = self.unheard.map(|(train, gone)| (train, gone + 1));
                self.due = self.due.max(now.before(most)) + self.step();
                self.latest = now;
            }
            Spacing::Bursts => {
                let over = self.start.is_none_or(|start| now >= start + self.interval());
                if over {
                    (self.start, self.left) = (Some(now), self.burst.size);
                }
                self.left = self.left.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn start(spacing: Spacing, burst: Burst) -> Pace {
        Pace::new(&Start { spacing, burst, train: 0 })
    }

    /// The instants at which a sender that always has something sends, looking every `step` microseconds.
    fn times(spacing: Spacing, burst: Burst, step: u64, count: usize) -> Vec<Time> {
        let (mut pace, mut now, mut times) = (start(spacing, burst), Time::ZERO, Vec::new());
        while times.len() < count {
            while pace.next() <= now && times.len() < count {
                pace.sent(now);
                times.push(now);
            }
            now += Span::from_micros(step);
        }
        times
    }

    #[test]
    fn bursts_start_an_interval_apart() {
        let burst = Burst { size: 3, interval: 10 };
        let millis = times(Spacing::Bursts, burst, 1000, 9);
        let millis: Vec<u64> = millis.iter().map(|at| at.as_nanos() / 1_000_000).collect();
        assert_eq!(millis, [0, 0, 0, 10, 10, 10, 20, 20, 20]);
    }

    /// Packets that went at once in the beginning count at the pace that is offered then, and not at the first.
    #[test]
    fn a_faster_pace_holds_at_once() {
        let slow = Burst { size: 16, interval: 600 };
        let mut pace = Pace::new(&Start { spacing: Spacing::Even, burst: slow, train: 16 });
        (0..16).for_each(|_| pace.sent(Time::ZERO));
        assert_eq!(pace.next(), Time::ZERO + Span::from_millis(600));
        pace.set(Burst { size: 100, interval: 100 });
        assert_eq!(pace.next(), Time::ZERO + Span::from_millis(16));
    }

    /// As many packets as went at once go in the first interval behind them, and again as many in each twice as long, until an offer
    /// comes, whose pace holds at once.
    #[test]
    fn a_pace_that_nobody_offered_slows_down() {
        let first = Burst { size: 16, interval: 10 };
        let mut pace = Pace::new(&Start { spacing: Spacing::Even, burst: first, train: 16 });
        let mut now = Time::ZERO;
        let mut gone = |pace: &mut Pace, until: u64| {
            let mut count = 0;
            while pace.next() <= Time::ZERO + Span::from_millis(until) {
                now = now.max(pace.next());
                pace.sent(now);
                count += 1;
            }
            count
        };
        let counts = [0, 20, 40, 80].map(|until| gone(&mut pace, until));
        assert_eq!(counts[0], 16);
        assert!(counts[1..].iter().all(|count| (14..=18).contains(count)), "{counts:?}");
        let slow = gone(&mut pace, 60_000);
        assert!((600..=720).contains(&slow), "{slow} in a minute");
        pace.holds();
        pace.set(Burst { size: 10, interval: 10 });
        // The latest may have gone a slow gap before.
        let held = gone(&mut pace, 61_000);
        assert!((1000..=1101).contains(&held), "{held} in a second");
    }

    proptest! {
        #[test]
        fn no_more_than_a_burst_at_once_and_no_less_than_the_rate(
            size in 1u16..40, interval in 1u16..60, step in 1u64..800, even: bool,
        ) {
            let spacing = if even { Spacing::Even } else { Spacing::Bursts };
            let burst = Burst { size, interval };
            let times = times(spacing, burst, step, 400);
            let gap = u64::from(interval) * 1_000_000 / u64::from(size);
            for (index, at) in times.iter().enumerate() {
                let together = times[index..].iter().take_while(|it| *it == at).count();
                prop_assert!(together <= usize::from(size));
            }
            let span = times[399].as_nanos();
            let late = u64::from(interval) * 1_000_000 + step * 1000;
            prop_assert!(span + late >= 399 * gap, "faster than the rate");
            // An end that looks often enough keeps up.
            let slack = SLACK.as_nanos().min(gap * (u64::from(size) - 1));
            if even && step * 2000 < slack {
                prop_assert!(span <= 400 * gap + late, "slower than the rate");
            }
        }
    }
}
