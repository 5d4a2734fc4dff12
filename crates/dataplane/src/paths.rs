//! How the paths of a session are set, now and as far as changes are asked for.

use crate::in_force::{in_force, to_come};
use crate::{DataplaneError, store};
use trunkline_core::Time;
use trunkline_path::Change;
use trunkline_scenario::{Direction, PathSpec, SettingError, Settings};

/// Settings that were changed while frames passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// When they take hold, in the time of [`monotonic`](crate::monotonic).
    pub at: Time,
    /// The path's name; empty if the only path has none.
    pub path: String,
    /// The settings as they were given, with blanks between them.
    pub settings: String,
}

/// Paths by name, and what is to become of them.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    /// As they are when no change of the plan has taken hold.
    paths: Vec<(String, PathSpec)>,
    /// Changes in the order of time, and of asking if that is the same.
    plan: Vec<Planned>,
    /// The paths as they began.
    first: Vec<(String, PathSpec)>,
    /// What has become of each change that was asked for: when, on which path, and how.
    asked: Vec<(Time, usize, (Direction, Change))>,
    /// When schedules began.
    origin: Time,
}

/// A change that takes hold at a time.
#[derive(Debug, Clone)]
struct Planned {
    at: Time,
    index: usize,
    settings: Settings,
}

/// A change that can be made.
#[derive(Debug)]
pub(crate) struct Possible {
    /// The path, by its place.
    pub index: usize,
    /// As it is when the change has been made.
    pub path: PathSpec,
    pub changes: Vec<(Direction, Change)>,
    /// The memory that the paths need at most, from now on, in bytes.
    pub needed: u64,
    pub noted: Changed,
}

impl Paths {
    pub fn new(paths: Vec<(String, PathSpec)>, origin: Time) -> Paths {
        Paths { first: paths.clone(), paths, plan: Vec::new(), asked: Vec::new(), origin }
    }

    /// Schedules begin at `origin`.
    pub fn begin(&mut self, origin: Time) {
        self.origin = origin;
    }

    /// The paths as they are at a time, which never comes before one that was asked for earlier.
    pub fn at(&mut self, now: Time) -> Vec<(String, PathSpec)> {
        self.fold(now);
        let names = self.paths.iter().map(|(name, _)| name.clone());
        let at = |index: usize| self.in_force(&self.paths[index].1, index, now);
        names.enumerate().map(|(index, name)| (name, at(index))).collect()
    }

    /// A path at a time: `path`, which has all that was asked for, and its schedule's changes in between.
    fn in_force(&self, path: &PathSpec, index: usize, now: Time) -> PathSpec {
        let mut path = path.clone();
        for direction in Direction::BOTH {
            let first = self.first[index].1.link(direction);
            if first.schedule.steps.is_empty() {
                continue;
            }
            let own =
                self.asked.iter().filter(|(_, of, (way, _))| (*of, *way) == (index, direction));
            let asked = own.map(|(at, _, (_, change))| (*at, change.clone()));
            let link = in_force(first, self.origin, asked, now);
            match direction {
                Direction::Up => path.up = link,
                Direction::Down => path.down = link,
            }
        }
        path
    }

    /// Checks that after each change of the plan its path's settings go together, and at the steps of a schedule from then on.
    fn check(&self) -> Result<(), SettingError> {
        let mut paths = self.paths.clone();
        self.plan.iter().try_for_each(|Planned { at, index, settings }| {
            let asked = &mut paths[*index].1;
            asked.alter(settings)?;
            let mut path = self.in_force(asked, *index, *at);
            for link in [&mut path.up, &mut path.down] {
                link.schedule = to_come(&link.schedule, self.origin, *at);
            }
            path.check()
        })
    }

    /// Makes the changes of the plan that are due.
    fn fold(&mut self, now: Time) {
        let due = self.plan.partition_point(|planned| planned.at <= now);
        for Planned { index, settings, .. } in self.plan.drain(..due) {
            // It could be made when it was planned.
            let _ = self.paths[index].1.alter(&settings);
        }
    }

    /// The changes that are still to come at a time.
    pub fn pending(&mut self, now: Time) -> Vec<Changed> {
        self.fold(now);
        self.plan.iter().map(|planned| self.noted(planned)).collect()
    }

    fn noted(&self, planned: &Planned) -> Changed {
        let words = planned.settings.iter().map(|(name, value)| format!("{name}={value}"));
        let settings = words.collect::<Vec<_>>().join(" ");
        Changed { at: planned.at, path: self.paths[planned.index].0.clone(), settings }
    }

    /// The memory that the paths need at most, as far as is planned, in bytes.
    pub fn needed(&self) -> u64 {
        let mut paths = self.paths.clone();
        let now = store::required(paths.iter().map(|(_, path)| path));
        let later = self.plan.iter().map(|Planned { index, settings, .. }| {
            let _ = paths[*index].1.alter(settings);
            store::required(paths.iter().map(|(_, path)| path))
        });
        later.fold(now, u64::max)
    }

    /// What becomes of a change at a time, and the paths with it in their plan.
    ///
    /// # Errors
    /// If there is no such path, or a setting cannot be changed so, then or in what is planned for later.
    pub fn planned(
        &self,
        name: Option<&str>,
        settings: &Settings,
        at: Time,
    ) -> Result<(Possible, Paths), ChangeError> {
        let index = self.find(name)?;
        let mut planned = self.clone();
        let place = self.plan.partition_point(|earlier| earlier.at <= at);
        planned.plan.insert(place, Planned { at, index, settings: settings.clone() });
        let mut paths = self.paths.clone();
        let mut made = (Vec::new(), paths[index].1.clone());
        for (number, Planned { index, settings, .. }) in planned.plan.iter().enumerate() {
            let changes = paths[*index].1.alter(settings)?;
            if number == place {
                made = (changes, paths[*index].1.clone());
            }
        }
        let noted = planned.noted(&planned.plan[place]);
        let (changes, path) = made;
        // Without a schedule the path itself has all that was asked for.
        let is_scheduled = |way: Direction| !path.link(way).schedule.steps.is_empty();
        let asked = changes.iter().filter(|(way, _)| is_scheduled(*way));
        planned.asked.extend(asked.map(|change| (at, index, change.clone())));
        planned.check()?;
        let path = planned.in_force(&path, index, at);
        let needed = planned.needed();
        Ok((Possible { index, path, changes, needed, noted }, planned))
    }

    fn find(&self, name: Option<&str>) -> Result<usize, ChangeError> {
        let names = || self.paths.iter().map(|(name, _)| name.as_str());
        match name {
            Some(name) => names()
                .position(|other| other == name)
                .ok_or_else(|| ChangeError::NoPath { name: name.into(), remedy: self.remedy() }),
            None if self.paths.len() == 1 => Ok(0),
            None => Err(ChangeError::Several(self.names())),
        }
    }

    fn names(&self) -> String {
        self.paths.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// What to write instead of a name that no path has.
    fn remedy(&self) -> String {
        match &self.paths[..] {
            [(name, _)] if name.is_empty() => {
                "it has one, so leave --link out; up- or down- before a setting chooses a direction"
                    .into()
            }
            _ => format!("name one of {}, which alone can be changed", self.names()),
        }
    }
}

/// The reason why settings of a running path could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// A setting cannot be used.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The change does not fit.
    #[error(transparent)]
    Emulator(#[from] DataplaneError),
    /// No path of this name.
    #[error("there is no path '{name}' in this run: {remedy}")]
    NoPath {
        /// The name asked for.
        name: String,
        /// What to write instead.
        remedy: String,
    },
    /// Nothing is carried any more.
    #[error("this run is ending: nothing was changed")]
    Ending,
    /// Several paths, and none named.
    #[error("this run has several paths: name one of {0} with --link")]
    Several(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Span;

    fn settings(pairs: &[&str]) -> Settings {
        let mut settings = Settings::default();
        pairs.iter().for_each(|pair| settings.add_pair(pair).unwrap());
        settings
    }

    fn one(pairs: &[&str]) -> Paths {
        Paths::new(vec![(String::new(), settings(pairs).resolve().unwrap())], Time::ZERO)
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    fn delay(paths: &mut Paths, seconds: u64) -> Span {
        paths.at(at(seconds))[0].1.up.delay
    }

    /// What is asked for later holds from then on, also behind what is asked for meanwhile.
    #[test]
    fn a_change_is_seen_from_its_time_on() {
        let mut paths = one(&["delay=10ms"]);
        for (pair, seconds, then) in [("delay=80ms", 10, 80), ("delay=50ms", 2, 50)] {
            let (possible, planned) = paths.planned(None, &settings(&[pair]), at(seconds)).unwrap();
            assert_eq!(possible.path.up.delay, Span::from_millis(then));
            assert_eq!(possible.changes.len(), 2);
            paths = planned;
        }
        let told: Vec<_> = paths.pending(at(1)).into_iter().map(|it| it.settings).collect();
        assert_eq!(told, ["delay=50ms", "delay=80ms"]);
        let seen = [1, 2, 9, 10].map(|seconds| delay(&mut paths, seconds));
        assert_eq!(seen, [10, 50, 50, 80].map(Span::from_millis));
        assert_eq!(paths.pending(at(10)), []);
    }

    /// Memory is needed for the largest of all that is planned.
    #[test]
    fn what_is_planned_needs_its_memory_from_now_on() {
        let paths = one(&["delay=10ms", "rate=100mbit"]);
        let before = paths.needed();
        let large = settings(&["delay=1s"]);
        let (possible, planned) = paths.planned(None, &large, at(10)).unwrap();
        assert!(possible.needed > before && planned.needed() == possible.needed);
        let (small, _) = planned.planned(None, &settings(&["delay=1ms"]), at(1)).unwrap();
        assert_eq!(small.needed, possible.needed);
    }

    #[test]
    fn what_cannot_be_changed_is_not_planned() {
        let paths = one(&["delay=10ms"]);
        let told = paths.planned(None, &settings(&["framing=t1-lapd"]), at(1)).unwrap_err();
        assert!(matches!(told, ChangeError::Setting(_)), "{told}");
    }

    /// A schedule changes what is in force, as who asks does, and the later change wins.
    #[test]
    fn what_is_in_force_follows_the_schedule() {
        let schedule =
            "schedule=2s delay=50ms rate=8mbit; 2s loss=1%; 4s delay=30ms limit=9p; repeat 10s";
        let mut paths = one(&["delay=10ms", schedule, "down-schedule=3s delay=70ms"]);
        paths.begin(at(1));
        let mut seen = |now| {
            let [(_, path)] = &paths.at(at(now))[..] else { unreachable!() };
            let loss = path.up.impairments.loss.to_string();
            let limit = path.up.discipline.limit().to_string();
            let rate = path.up.rate.map_or("unlimited".into(), |rate| rate.to_string());
            (path.up.delay.to_string(), rate, loss, limit, path.down.delay.to_string())
        };
        let told = |it: (&str, &str, &str, &str, &str)| {
            (it.0.into(), it.1.into(), it.2.into(), it.3.into(), it.4.into())
        };
        assert_eq!(seen(2), told(("10ms", "unlimited", "0%", "64MiB", "10ms")));
        assert_eq!(seen(3), told(("50ms", "8Mbit/s", "1%", "64MiB", "10ms")));
        assert_eq!(seen(5), told(("30ms", "8Mbit/s", "1%", "9p", "70ms")));
        let change = settings(&["delay=1ms", "up-loss=none"]);
        let (possible, planned) = paths.planned(None, &change, at(7)).unwrap();
        let (up, down) = (&possible.path.up, &possible.path.down);
        assert_eq!((up.delay, down.delay), (Span::from_millis(1), Span::from_millis(1)));
        assert_eq!(up.rate.map(|rate| rate.to_string()).as_deref(), Some("8Mbit/s"));
        paths = planned;
        let mut delays = |now| {
            let [(_, path)] = &paths.at(at(now))[..] else { unreachable!() };
            (path.up.delay.to_string(), path.down.delay.to_string())
        };
        assert_eq!(delays(12), ("1ms".into(), "1ms".into()));
        assert_eq!(delays(13), ("50ms".into(), "1ms".into()));
        assert_eq!(delays(1000), ("30ms".into(), "1ms".into()));
    }

    /// Settings are checked beside what the schedule has made of the path and will, not beside what it was.
    #[test]
    fn a_change_is_checked_beside_what_the_schedule_has_made() {
        let asked = |path: &[&str], seconds: u64, change: &[&str]| {
            let mut paths = one(path);
            paths.begin(at(100));
            let told = paths.planned(None, &settings(change), at(100 + seconds));
            told.map(drop).map_err(|error| error.to_string())
        };
        let longer = ["delay=10ms", "schedule=5s delay=50ms"];
        asked(&longer, 6, &["jitter=40ms"]).unwrap();
        assert!(asked(&longer, 2, &["jitter=40ms"]).unwrap_err().contains("40ms"));
        let shorter = ["delay=50ms", "schedule=3s delay=5ms; 3s jitter=none"];
        assert!(asked(&shorter, 4, &["jitter=30ms"]).unwrap_err().contains("30ms"));
        asked(&shorter, 1, &["jitter=30ms"]).unwrap();
        let over = ["delay=50ms", "schedule=1s jitter=40ms; 5s jitter=none"];
        asked(&over, 6, &["delay=10ms"]).unwrap();
        assert!(asked(&over, 0, &["delay=10ms"]).unwrap_err().contains("step of the schedule"));
        let again = ["delay=50ms", "schedule=1s jitter=40ms; 5s jitter=none; repeat 9s"];
        assert!(asked(&again, 6, &["delay=10ms"]).unwrap_err().contains("step of the schedule"));
        asked(&again, 6, &["delay=45ms"]).unwrap();
        // A direction without a schedule is checked as ever.
        let one_way = ["delay=5ms", "up-schedule=1s delay=9ms"];
        assert!(asked(&one_way, 2, &["jitter=7ms"]).unwrap_err().contains("7ms"));
        asked(&one_way, 2, &["up-jitter=7ms"]).unwrap();
    }

    /// Changes on their way count, in the order of time.
    #[test]
    fn a_change_is_checked_beside_those_to_come() {
        let paths = one(&["delay=10ms", "schedule=5s delay=50ms"]);
        let (_, planned) = paths.planned(None, &settings(&["jitter=40ms"]), at(8)).unwrap();
        assert!(planned.planned(None, &settings(&["delay=20ms"]), at(7)).is_err());
        let (_, mut planned) = planned.planned(None, &settings(&["delay=40ms"]), at(7)).unwrap();
        let (possible, _) = one(&["delay=5ms", "up-schedule=1s loss=1%"])
            .planned(None, &settings(&["down-delay=8ms"]), at(2))
            .unwrap();
        assert_eq!(possible.path.down.delay, Span::from_millis(8), "told as it will be");
        let seen = planned.at(at(9))[0].1.clone();
        assert_eq!(seen.up.delay, Span::from_millis(40));
        assert!(seen.up.impairments.jitter.is_some());
    }

    /// The directions of a path without a name, and media, are shown with names of their own.
    #[test]
    fn a_name_that_no_path_has_is_answered_with_those_there_are() {
        let told = |paths: &Paths, name| {
            let change = settings(&["delay=1ms"]);
            paths.planned(Some(name), &change, at(1)).unwrap_err().to_string()
        };
        let single = one(&["delay=10ms"]);
        assert!(told(&single, "up").contains("no path 'up'"), "{}", told(&single, "up"));
        assert!(told(&single, "up").contains("leave --link out"), "{}", told(&single, "up"));
        let mut several = single;
        several.paths[0].0 = "first".into();
        several.paths.push(("second".into(), several.paths[0].1.clone()));
        assert!(
            told(&several, "lan").contains("one of first, second"),
            "{}",
            told(&several, "lan")
        );
    }
}
