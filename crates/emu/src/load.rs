//! How busy the machine was: proc_stat(5).

use std::fs;
use std::time::{Duration, Instant};

/// How the processors have spent their time, in clock ticks since boot, all states by their place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ticks {
    /// Of each processor.
    processors: Vec<[u64; STATES]>,
}

/// User, nice, system, idle, waiting for devices, interrupts, soft interrupts, stolen.
const STATES: usize = 8;
const IDLE: usize = 3;
const WAITING: usize = 4;
const STOLEN: usize = 7;

impl Ticks {
    /// The ticks as of now; nothing if the system does not tell.
    pub fn now() -> Ticks {
        Ticks::read(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    fn read(text: &str) -> Ticks {
        let of_one = |line: &str| -> Option<[u64; STATES]> {
            let mut words = line.split_ascii_whitespace();
            let name = words.next()?.strip_prefix("cpu")?;
            name.parse::<u32>().ok()?;
            let mut states = [0; STATES];
            for state in &mut states {
                *state = words.next()?.parse().ok()?;
            }
            Some(states)
        };
        Ticks { processors: text.lines().filter_map(of_one).collect() }
    }

    /// What part of the time since `before` each processor was busy, 0 to 1.
    pub fn busy_since(&self, before: &Ticks) -> Vec<f64> {
        self.parts(before, |spent| {
            let idle = spent[IDLE] + spent[WAITING];
            spent.iter().sum::<u64>() - idle
        })
    }

    /// What part of the time since `before` somebody else had the processors, 0 to 1, over all of them.
    pub fn stolen_since(&self, before: &Ticks) -> f64 {
        let parts = self.parts(before, |spent| spent[STOLEN]);
        parts.iter().sum::<f64>() / parts.len().max(1) as f64
    }

    fn parts(&self, before: &Ticks, of: impl Fn(&[u64; STATES]) -> u64) -> Vec<f64> {
        let part = |(now, then): (&[u64; STATES], &[u64; STATES])| {
            let mut spent = [0; STATES];
            for (place, state) in spent.iter_mut().enumerate() {
                *state = now[place].saturating_sub(then[place]);
            }
            let all = spent.iter().sum::<u64>().max(1);
            of(&spent) as f64 / all as f64
        };
        std::iter::zip(&self.processors, &before.processors).map(part).collect()
    }
}

/// What part of all processors' time others take now, over a moment in which this process only waits.
pub fn foreign(moment: Duration) -> f64 {
    let (before, begun) = (Ticks::now(), Instant::now());
    std::thread::sleep(moment.saturating_sub(begun.elapsed()));
    let busy = Ticks::now().busy_since(&before);
    busy.iter().sum::<f64>() / busy.len().max(1) as f64
}

/// The first of at most `looks` values that is no more than `most`, or else the last: a machine that is about to be
/// quiet is waited for, since a run that begins before is INVALID whatever comes.
pub fn calm(looks: u32, most: f64, mut look: impl FnMut() -> f64) -> f64 {
    let mut share = look();
    for _ in 1..looks {
        if share <= most {
            break;
        }
        share = look();
    }
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_comes_to_rest_is_waited_for() {
        let after = |shares: &[f64]| {
            let mut left = shares.iter().copied();
            let found = calm(3, 0.25, || left.next().expect("no more looks than three"));
            (found, left.count())
        };
        assert_eq!(after(&[0.1, 0.0, 0.0]), (0.1, 2), "a quiet one is not waited for");
        assert_eq!(after(&[0.9, 0.2, 0.0]), (0.2, 1));
        assert_eq!(after(&[0.9, 0.8, 0.7, 0.0]), (0.7, 1), "not for ever");
    }

    #[test]
    fn shares_are_of_the_time_between() {
        let text = |user: u64, idle: u64, stolen: u64| {
            let line = format!("{user} 0 0 {idle} 0 0 0 {stolen} 0 0");
            Ticks::read(&format!("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 {line}\ncpu1 {line}\nintr 5\n"))
        };
        let (before, after) = (text(100, 100, 0), text(175, 120, 5));
        assert_eq!(after.busy_since(&before), [0.8, 0.8]);
        assert_eq!(after.stolen_since(&before), 0.05);
        assert!(Ticks::read("garbage").busy_since(&before).is_empty());
    }
}
