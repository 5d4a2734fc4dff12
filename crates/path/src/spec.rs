//! The description of one direction of a path, checked before anything is built from it.

use crate::impairment::{ImpairmentSpec, LossModel, Setting};
use crate::{
    CatchUp, Change, DeliveryTrace, DisciplineSpec, Framing, Limit, Schedule, TrunkProcessor,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use trunkline_core::{Rate, Size, Span};

/// One direction of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSpec {
    /// The line's rate, or `None` for a line so fast that nothing ever waits for it.
    pub rate: Option<Rate>,
    /// The conversion of user bytes to line bits.
    pub framing: Framing,
    /// Propagation delay, one way.
    pub delay: Span,
    /// The way in which packets catch up with those under way after the delay has been made shorter.
    #[serde(skip_serializing_if = "is_default")]
    pub catch_up: CatchUp,
    /// The queue discipline in front of the line.
    pub discipline: DisciplineSpec,
    /// The amount that the line takes out of the discipline ahead of time (Hawley's output fifo).
    pub output_buffer: Size,
    /// The trunk board's processor, which moves everything into the discipline and out of it into the output
    /// buffer. `None` if that takes no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<TrunkProcessor>,
    /// Loss, errors, duplication, reordering, jitter.
    pub impairments: ImpairmentSpec,
    /// Delivery opportunities of a mahimahi trace, in place of `rate`: milliseconds, ascending.
    #[serde(skip)]
    pub trace: Option<Vec<u64>>,
    /// Changes at stated instants after the start.
    #[serde(skip_serializing_if = "never_changes")]
    pub schedule: Schedule,
}

impl Default for LinkSpec {
    fn default() -> LinkSpec {
        LinkSpec {
            rate: None,
            framing: Framing::None,
            delay: Span::ZERO,
            catch_up: CatchUp::default(),
            discipline: DisciplineSpec::fifo(Limit::Bytes(1 << 30)),
            output_buffer: Size::default(),
            processor: None,
            impairments: ImpairmentSpec::default(),
            trace: None,
            schedule: Schedule::default(),
        }
    }
}

/// The reason why a path cannot be built as described.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecError {
    /// A value outside its range.
    #[error("{what} is {found}: it must lie between {lowest} and {highest}")]
    Range {
        /// The setting.
        what: String,
        /// The value found.
        found: String,
        /// Lowest allowed.
        lowest: String,
        /// Highest allowed.
        highest: String,
    },
    /// Two settings that exclude each other, or one that needs another.
    #[error("{0}")]
    Conflict(String),
}

/// Refuses a value outside its range.
pub(crate) fn within<T: PartialOrd + std::fmt::Display + Copy>(
    what: &'static str,
    value: T,
    lowest: T,
    highest: T,
) -> Result<(), SpecError> {
    if lowest <= value && value <= highest {
        return Ok(());
    }
    Err(SpecError::Range {
        what: what.into(),
        found: value.to_string(),
        lowest: lowest.to_string(),
        highest: highest.to_string(),
    })
}

impl LinkSpec {
    /// Longest delay that is accepted: one hour, the light time to Mars and back.
    pub const DELAY_MAX: Span = Span::from_secs(3600);

    /// Checks that a link can be built from this description, and that every state into which its
    /// schedule brings it is one.
    ///
    /// # Errors
    /// The first setting that is out of its range or at odds with another.
    pub fn check(&self) -> Result<(), SpecError> {
        self.discipline.check()?;
        self.processor.map_or(Ok(()), |processor| processor.check(self.output_buffer))?;
        self.schedule.check()?;
        let changes_rate = |(_, change): &(Span, Change)| matches!(change, Change::Rate(_));
        let sets_rate = self.rate.is_some() || self.schedule.steps.iter().any(changes_rate);
        if self.trace.is_some() && sets_rate {
            return Err(SpecError::Conflict(
                "a rate and a delivery trace were both given: leave one of them out".into(),
            ));
        }
        let at_step =
            |error: SpecError| SpecError::Conflict(format!("at a step of the schedule: {error}"));
        let checked = self.states().iter().try_for_each(|state| state.check(self.framing));
        checked.map_err(|error| match self.first_state().check(self.framing) {
            Err(own) if own == error => error,
            _ => at_step(error),
        })?;
        self.limits().try_for_each(|limit| self.check_limit(limit)).map_err(at_step)
    }

    /// The limits that its schedule sets.
    fn limits(&self) -> impl Iterator<Item = Limit> {
        self.schedule.steps.iter().filter_map(|(_, change)| match change {
            Change::Limit(limit) => Some(*limit),
            _ => None,
        })
    }

    /// Checks the discipline with another limit.
    fn check_limit(&self, limit: Limit) -> Result<(), SpecError> {
        let mut discipline = self.discipline.clone();
        discipline.set_limit(limit)?;
        discipline.check_limit()
    }

    /// User bytes that can be under way at once beyond the queue: what the line can send within the
    /// longest delay, the output buffer, and a trunk board's input fifo. `None` if the rate is unlimited and the delay
    /// is not zero. A schedule counts with its highest rate and its longest delay.
    pub fn in_flight_bytes(&self) -> Option<u64> {
        let states = self.states();
        let held = |state: &State| state.delay + state.impairments.most_extra_delay();
        let held = states.iter().map(held).max().unwrap_or(Span::ZERO);
        let sent = match &self.trace {
            _ if held.is_zero() => 0,
            Some(trace) => DeliveryTrace::most_bytes(trace, held + TRACE_STEP),
            None => fastest(&states)?.bytes_in(held),
        };
        let input = self.processor.map_or(0, |processor| processor.input_fifo.bytes());
        Some(sent + self.output_buffer.bytes() + input)
    }

    /// Every loss model in the description, the schedule's included, for whoever has to read the files
    /// of loss traces ([`LossModel::unread_file`]).
    pub fn loss_models_mut(&mut self) -> impl Iterator<Item = &mut LossModel> {
        let scheduled = self.schedule.steps.iter_mut().filter_map(|(_, change)| match change {
            Change::Setting(Setting::Loss(loss)) => Some(loss),
            Change::Impairments(spec) => Some(&mut spec.loss),
            _ => None,
        });
        std::iter::once(&mut self.impairments.loss).chain(scheduled)
    }

    fn first_state(&self) -> State {
        State { rate: self.rate, delay: self.delay, impairments: self.impairments.clone() }
    }

    /// The states that the schedule goes through. In a second round a step may meet settings that the
    /// first round left behind.
    fn states(&self) -> Vec<State> {
        let rounds = if self.schedule.repeat.is_some() { 2 } else { 1 };
        let mut state = self.first_state();
        let mut states = Vec::new();
        let mut since = Span::ZERO;
        for (at, change) in (0..rounds).flat_map(|_| &self.schedule.steps) {
            // Changes at one instant count together.
            if *at != since {
                states.push(state.clone());
            }
            since = *at;
            state.apply(change);
        }
        states.push(state);
        states
    }
}

/// A delivery trace counts in milliseconds; its opportunities at both ends of a stretch count.
const TRACE_STEP: Span = Span::from_millis(1);

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn never_changes(schedule: &Schedule) -> bool {
    schedule.steps.is_empty()
}

/// The highest rate of `states`; `None` if one of them has no limit.
fn fastest(states: &[State]) -> Option<Rate> {
    let rates: Option<Vec<Rate>> = states.iter().map(|state| state.rate).collect();
    rates?.into_iter().max()
}

/// The settings that a schedule can change, at one of its steps.
#[derive(Debug, Clone)]
struct State {
    rate: Option<Rate>,
    delay: Span,
    impairments: ImpairmentSpec,
}

impl State {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Delay(delay) => self.delay = *delay,
            Change::Rate(rate) => self.rate = *rate,
            Change::Limit(_) | Change::CatchUp(_) => {}
            Change::Impairments(spec) => self.impairments = spec.clone(),
            Change::Setting(setting) => self.impairments.set(setting.clone()),
        }
    }

    fn check(&self, framing: Framing) -> Result<(), SpecError> {
        within("the delay", self.delay, Span::ZERO, LinkSpec::DELAY_MAX)?;
        self.impairments.check(self.delay)?;
        if framing == Framing::AtmAal5 && self.rate.is_none() {
            return Err(SpecError::Conflict(
                "framing atm-aal5 needs a rate, whose slot clock it follows: add --rate 155.52Mbit/s"
                    .into(),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(schedule: &str) -> LinkSpec {
        LinkSpec {
            rate: Some("8mbit".parse().unwrap()),
            delay: Span::from_millis(10),
            schedule: schedule.parse().unwrap(),
            ..LinkSpec::default()
        }
    }

    #[test]
    fn a_schedule_is_checked_state_by_state() {
        spec("0s delay=1ms; 1s delay=20ms jitter=15ms; 2s jitter=none delay=5ms").check().unwrap();
        spec("1s jitter=15ms delay=20ms").check().unwrap();
        let complaint = |schedule: &str| spec(schedule).check().unwrap_err().to_string();
        assert!(complaint("1s jitter=15ms").contains("15ms"));
        assert!(complaint("1s jitter=10ms; 2s delay=9ms").contains("9ms"));
        assert!(complaint("1s delay=61min").contains("3600s"));
        // Only the second round meets the jitter that the first one left behind.
        assert!(complaint("1s delay=1ms; 2s delay=9ms jitter=9ms; repeat 3s").contains("9ms"));
        assert!(complaint("1s loss=trace:x").contains("'x'"));
    }

    #[test]
    fn the_longest_delay_and_the_highest_rate_count() {
        let bytes = |schedule: &str| spec(schedule).in_flight_bytes();
        assert_eq!(bytes("0s delay=1ms"), Some(1_000), "the delay before the start does not count");
        assert_eq!(bytes("1s delay=20ms; 2s rate=80mbit delay=5ms"), Some(10_000_000 / 50));
        assert_eq!(bytes("1s jitter=10ms; 2s reorder=1%:5ms"), Some(25_000));
        assert_eq!(bytes("1s rate=unlimited"), None);
        let mut traced =
            LinkSpec { trace: Some(vec![1, 1, 9]), rate: None, ..spec("1s delay=9ms") };
        assert_eq!(traced.in_flight_bytes(), Some(1500 * 6), "at 9 10 10 18 19 19");
        traced.check().unwrap();
        traced.schedule = "1s rate=1mbit".parse().unwrap();
        assert!(traced.check().unwrap_err().to_string().contains("trace"));
    }

    #[test]
    fn loss_files_are_found_wherever_they_are() {
        let mut spec = spec("1s loss=trace:b; 2s delay=1ms");
        spec.impairments.loss = "trace:a".parse().unwrap();
        for model in spec.loss_models_mut() {
            let file = model.unread_file().unwrap().to_string();
            model.load(if file == "a" { "01" } else { "1" }).unwrap();
        }
        let rates: Vec<f64> = spec.loss_models_mut().map(|model| model.rate()).collect();
        assert_eq!(rates, [0.5, 1.0]);
        spec.check().unwrap();
    }

    #[test]
    fn a_description_survives_json() {
        let mut spec = spec("1s rate=1mbit; repeat 2s");
        spec.impairments.jitter = Some("correlated:normal:3ms:rho=0.9".parse().unwrap());
        spec.impairments.loss = "ge:p=0.1234567%,r=20%".parse().unwrap();
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<LinkSpec>(&json).unwrap(), spec);
        let plain = LinkSpec::default();
        let json = serde_json::to_string(&plain).unwrap();
        assert_eq!(serde_json::from_str::<LinkSpec>(&json).unwrap(), plain);
    }
}
