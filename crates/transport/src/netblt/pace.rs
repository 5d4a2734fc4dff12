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

/// For how long lateness is watched, and of which part of that an end has to be late to be taken for one that is late again and
/// again (choices).
const WATCH: Span = Span::from_millis(500);
const OFTEN: u64 = 8;
/// The most that such an end sends at once of what it is behind (a choice).
const MOST_BEHIND: Span = Span::from_millis(50);

/// How late an end comes to send what is due, since its processor serves others too. The rate that it was offered counts for the
/// receiver: what is not sent is taken for what the path does not carry, and less is offered, of which again a part is sent. So an
/// end that is late again and again catches up.
#[derive(Debug, Clone, Copy, Default)]
struct Lateness {
    /// When this watch began, how late packets were in all, and at most.
    since: Time,
    all: Span,
    longest: Span,
    /// What may be caught up.
    behind: Span,
}

impl Lateness {
    fn take(&mut self, now: Time, late: Span) {
        self.all += late;
        self.longest = self.longest.max(late);
        let lasts = now.since(self.since);
        if lasts >= WATCH {
            let is_often = self.all.scaled(OFTEN, 1) > lasts;
            self.behind = if is_often { self.longest.min(MOST_BEHIND) } else { Span::ZERO };
            (self.since, self.all, self.longest) = (now, Span::ZERO, Span::ZERO);
        }
    }
}

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
    /// The time that packets may be behind.
    slack: Span,
    /// When the next packet was to be sent that was there and not yet due, and how late such packets were.
    awaited: Option<Time>,
    lateness: Lateness,
}

impl Pace {
    /// A clock that starts so.
    pub fn new(start: &Start) -> Pace {
        let Start { spacing, burst, train } = *start;
        let (due, latest) = (Time::ZERO, Time::ZERO);
        let (awaited, lateness) = (None, Lateness::default());
        let (start, left, slack) = (None, 0, SLACK);
        Pace { spacing, burst, start, left, due, latest, train, slack, awaited, lateness }
    }

    /// The burst in force.
    pub fn burst(&self) -> Burst {
        self.burst
    }

    /// Sets another burst. Answers whether it is another. What is under way of a burst is cut to the new size.
    pub fn set(&mut self, burst: Burst) -> bool {
        let (is_other, before) = (burst != self.burst, self.gap());
        self.burst = burst;
        let gap = self.gap();
        if self.spacing == Spacing::Even && gap < before {
            // So many packets are ahead as before. Those that went at once in the beginning do not make a fast path wait.
            let ahead = u128::from(self.due.since(self.latest).as_nanos());
            let ahead = ahead * u128::from(gap.as_nanos()) / u128::from(before.as_nanos());
            self.due = self.latest + Span::from_nanos(ahead as u64);
            self.train = 0;
        }
        self.left = self.left.min(burst.size);
        is_other
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

    /// Whether there is a packet that is to be sent as soon as it is due.
    pub fn waits(&mut self, is_there: bool) {
        self.awaited = is_there.then(|| self.next());
    }

    /// A packet is sent.
    pub fn sent(&mut self, now: Time) {
        self.train = self.train.saturating_sub(1);
        let late = self.awaited.take().map_or(Span::ZERO, |due| now.since(due));
        self.lateness.take(now, late.saturating_sub(self.slack));
        match self.spacing {
            Spacing::Even => {
                let slack = self.slack.max(self.lateness.behind);
                let most = slack.min(self.gap().scaled(u64::from(self.burst.size) - 1, 1));
                self.due = self.due.max(now.before(most)) + self.gap();
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

    /// Packets of two seconds that a sender with a packet in each millisecond sends if it looks at these times.
    fn sent(looks: impl Iterator<Item = u64>) -> usize {
        let mut pace = start(Spacing::Even, Burst { size: 100, interval: 100 });
        let mut count = 0;
        for now in looks.map(|millis| Time::ZERO + Span::from_millis(millis)) {
            while pace.next() <= now {
                pace.sent(now);
                count += 1;
            }
            pace.waits(true);
        }
        count
    }

    /// Who is late again and again catches up; who was late once does not, and sends no burst for it.
    #[test]
    fn an_end_that_is_often_late_catches_up() {
        assert!((1980..2002).contains(&sent(0..2000)));
        let often = sent((0..2000).step_by(20));
        // Of the first half second it has its slack.
        assert!((1500..1600).contains(&often), "{often}");
        let once = sent((0..2000).filter(|millis| !(1000..1055).contains(millis)));
        assert!((1930..1950).contains(&once), "{once}");
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
