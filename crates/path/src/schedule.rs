//! Settings that change by the clock: a list of changes at stated instants, once or over and over.

use crate::impairment::{Setting, SettingError, form, serde_as_text};
use crate::{CatchUp, Change, Limit, SpecError};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use trunkline_core::{Rate, Span, Time};

/// Changes at stated instants after the start, over and over if it says `repeat`.
///
/// Read as `0s rate=10mbit; 5s rate=1mbit delay=80ms; 10s loss=2%; repeat 20s`, or with a line for
/// each step, as a file's content; `#` starts a comment. A setting that no step mentions stays as the
/// path has it, and the steps of a round start from the state at the end of the round before it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schedule {
    /// The changes, in order of time; several at one instant happen in the order of the list.
    pub steps: Vec<(Span, Change)>,
    /// The time that one round takes; the next starts then. `None` for a single round.
    pub repeat: Option<Span>,
}

/// The reason why a schedule could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScheduleError {
    /// A step that makes no sense.
    #[error("line {line} of the schedule, '{step}': {why}")]
    Step {
        /// The line, counted from 1.
        line: usize,
        /// The step.
        step: String,
        /// The fault.
        why: String,
    },
    /// No step at all.
    #[error("the schedule holds nothing: write steps such as '0s rate=10mbit; 5s delay=80ms'")]
    Empty,
}

const STEP_FORM: &str = "a time and settings, such as 5s rate=1mbit delay=80ms, or repeat 20s";
const KEYS: &str = "one of rate=, delay=, catch-up=, limit=, loss=, bit-errors=, duplicate=, reorder= or jitter= \
                    and its value, such as rate=10mbit";

/// Shortest round: a shorter one would keep the engine busy with nothing but changes.
const SHORTEST_ROUND: Span = Span::from_millis(1);

impl Schedule {
    /// Checks what no single step shows: ascending instants, and a round that is longer than its steps.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn check(&self) -> Result<(), SpecError> {
        if let Some(pair) = self.steps.windows(2).find(|pair| pair[1].0 < pair[0].0) {
            return Err(SpecError::Conflict(format!(
                "the schedule's step at {} comes after the one at {}: put the steps in order of time",
                pair[1].0, pair[0].0
            )));
        }
        let Some(repeat) = self.repeat else { return Ok(()) };
        let last = self.steps.last().map_or(Span::ZERO, |&(at, _)| at);
        if repeat <= last || repeat < SHORTEST_ROUND {
            return Err(SpecError::Conflict(format!(
                "the schedule repeats after {repeat}: that must be later than its last step at {last} \
                 and at least {SHORTEST_ROUND}"
            )));
        }
        Ok(())
    }

    fn read(&mut self, step: &str) -> Result<(), String> {
        let mut words = step.split_whitespace();
        let first = words.next().unwrap_or_default();
        let settings: Vec<&str> = words.collect();
        if settings.is_empty() || self.repeat.is_some() {
            return Err(format!("write {STEP_FORM}, and repeat only at the end"));
        }
        if first == "repeat" {
            let [round] = settings[..] else { return Err(format!("write {STEP_FORM}")) };
            self.repeat = Some(round.parse().map_err(|e| format!("{e}"))?);
        } else {
            let at: Span = first.parse().map_err(|e| format!("{e}"))?;
            for setting in settings {
                let change = setting.parse().map_err(|e: SettingError| e.to_string())?;
                self.steps.push((at, change));
            }
        }
        self.check().map_err(|e| e.to_string())
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Schedule, ScheduleError> {
        let mut schedule = Schedule::default();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default();
            for step in content.split(';').map(str::trim).filter(|step| !step.is_empty()) {
                let line = index + 1;
                let wrong = |why| ScheduleError::Step { line, step: step.into(), why };
                schedule.read(step).map_err(wrong)?;
            }
        }
        if schedule.steps.is_empty() {
            return Err(ScheduleError::Empty);
        }
        Ok(schedule)
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (at, change)) in self.steps.iter().enumerate() {
            let comma = if index > 0 { "; " } else { "" };
            write!(f, "{comma}{at} {change}")?;
        }
        self.repeat.map_or(Ok(()), |round| write!(f, "; repeat {round}"))
    }
}

serde_as_text!(Schedule);

impl FromStr for Change {
    type Err = SettingError;

    /// Reads one setting, as `rate=10mbit`; `rate=unlimited` takes the limit off the line, and so does `rate=none`, as with other settings.
    fn from_str(text: &str) -> Result<Change, SettingError> {
        let wrong = || form("setting", text, KEYS);
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        match (key.trim(), value.trim()) {
            ("rate", "unlimited" | "none") => Ok(Change::Rate(None)),
            ("rate", rate) => Ok(Change::Rate(Some(rate.parse::<Rate>()?))),
            ("delay", delay) => Ok(Change::Delay(delay.parse()?)),
            ("catch-up", text) => {
                let wrong = |_| form("way to catch up", text, "catch-up=drain or catch-up=at-once");
                Ok(Change::CatchUp(text.parse::<CatchUp>().map_err(wrong)?))
            }
            ("limit", limit) => Ok(Change::Limit(limit.parse::<Limit>()?)),
            (key, value) => Setting::parse(key, value).ok_or_else(wrong)?.map(Change::Setting),
        }
    }
}

/// As it is read; several settings are separated by spaces.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Delay(delay) => write!(f, "delay={delay}"),
            Change::Rate(Some(rate)) => write!(f, "rate={rate}"),
            Change::Rate(None) => write!(f, "rate=unlimited"),
            Change::CatchUp(catch_up) => write!(f, "catch-up={catch_up}"),
            Change::Limit(limit) => write!(f, "limit={limit}"),
            Change::Setting(setting) => setting.fmt(f),
            Change::Impairments(spec) => {
                f.write_str(&spec.settings().map(|setting| setting.to_string()).join(" "))
            }
        }
    }
}

/// A schedule at work: it knows the next change only, so that it can go on for ever.
#[derive(Debug)]
pub(crate) struct Plan {
    schedule: Schedule,
    round: Time,
    next: usize,
}

impl Plan {
    /// A plan whose first round starts at `origin`.
    pub(crate) fn new(schedule: &Schedule, origin: Time) -> Plan {
        Plan { schedule: schedule.clone(), round: origin, next: 0 }
    }

    /// When the next change is due.
    pub(crate) fn due(&self) -> Option<Time> {
        self.schedule.steps.get(self.next).map(|&(after, _)| self.round + after)
    }

    /// Takes the next change.
    pub(crate) fn take(&mut self) -> Option<Change> {
        let (_, change) = self.schedule.steps.get(self.next)?;
        let change = change.clone();
        self.next += 1;
        if let Some(round) = self.schedule.repeat
            && self.next == self.schedule.steps.len()
        {
            self.next = 0;
            // A round without length, which no checked schedule has, must not hold up time.
            self.round += round.max(SHORTEST_ROUND);
        }
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_steps_on_one_line_or_many() {
        let text = "0s rate=10mbit; 5s rate=1mbit delay=80ms; 10s loss=2%; repeat 20s";
        let schedule: Schedule = text.parse().unwrap();
        assert_eq!(schedule.steps.len(), 4);
        assert_eq!(schedule.steps[2], (Span::from_secs(5), Change::Delay(Span::from_millis(80))));
        assert_eq!(schedule.repeat, Some(Span::from_secs(20)));
        let lines = text.replace("; ", " # so it goes; really\n");
        assert_eq!(lines.parse::<Schedule>().unwrap(), schedule);
        assert_eq!(schedule.to_string().parse::<Schedule>().unwrap(), schedule);
        let json = serde_json::to_string(&schedule).unwrap();
        assert_eq!(serde_json::from_str::<Schedule>(&json).unwrap(), schedule);
    }

    /// `set` takes the limit off a path and the cap off a transfer by the same words.
    #[test]
    fn no_rate_has_two_words() {
        let read = |text: &str| text.parse::<Change>().unwrap();
        assert_eq!(read("rate=none"), read("rate=unlimited"));
    }

    #[test]
    fn every_change_reads_back() {
        for text in [
            "rate=10Mbit/s",
            "rate=unlimited",
            "delay=80ms",
            "catch-up=at-once",
            "limit=1000p",
            "loss=ge:p=1%,r=20%,good=0%,bad=100%",
            "bit-errors=0.0001%",
            "duplicate=1%",
            "reorder=1%:5ms",
            "reorder=none",
            "jitter=correlated:normal:3ms:rho=0.9",
            "jitter=none",
        ] {
            assert_eq!(text.parse::<Change>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn complaints_name_the_line_and_the_remedy() {
        for (text, part) in [
            ("", "holds nothing"),
            ("repeat 3s", "holds nothing"),
            ("0s rate=1mbit\n5s rate=fast", "line 2"),
            ("0s speed=3", "delay="),
            ("5s delay=1ms; 4s delay=2ms", "order of time"),
            ("5s delay=1ms; repeat 5s", "later than its last step"),
            ("0s delay=1ms; repeat 5us", "at least 1ms"),
            ("0s delay=1ms; repeat 5s; 6s delay=1ms", "only at the end"),
            ("delay=1ms", "such as 5s"),
            ("0s", "such as 5s"),
        ] {
            let complaint = text.parse::<Schedule>().unwrap_err().to_string();
            assert!(complaint.contains(part) && !complaint.contains('\n'), "{text}: {complaint}");
        }
    }

    #[test]
    fn a_plan_goes_round_for_ever() {
        let schedule = "1s delay=1ms; 2s delay=2ms; repeat 10s".parse().unwrap();
        let mut plan = Plan::new(&schedule, Time::from_nanos(5));
        for round in 0..1000u64 {
            for step in 1..=2 {
                let due = 5 + (round * 10 + step) * 1_000_000_000;
                assert_eq!(plan.due(), Some(Time::from_nanos(due)));
                assert_eq!(plan.take(), Some(Change::Delay(Span::from_millis(step))));
            }
        }
        let mut once = Plan::new(&"1s delay=1ms".parse().unwrap(), Time::ZERO);
        assert!(once.take().is_some() && once.take().is_none() && once.due().is_none());
    }
}
