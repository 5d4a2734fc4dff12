//! When traffic starts and ends.

use crate::laboratory::Network;
use crate::plan::Plan;
use crate::{EmuError, Options, Progress};
use std::thread::sleep;
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_dataplane::monotonic;
use trunkline_endpoint::Flow;
use trunkline_scenario::{Scenario, Start, Traffic};

/// How often it is looked what has happened. Starts at a stated time are exact all the same.
const LOOK: Duration = Duration::from_millis(5);
/// How often progress is told, in looks.
const TELL: u32 = 40;

/// The traffic of a scenario, from the first start to the last end.
pub struct Conductor<'a> {
    pub scenario: &'a Scenario,
    pub plan: &'a Plan,
    pub network: &'a Network,
    /// The flows of each traffic.
    pub flows: &'a [Vec<Flow>],
    /// When time begins.
    pub origin: Time,
    states: Vec<State>,
}

/// What has become of a traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State {
    /// It has been told when to start, or need not start any more.
    pub started: bool,
    /// Its own work is done, or what it accompanied is.
    pub ended: bool,
    /// Whether it ended because what it accompanied did.
    pub stopped: bool,
}

impl<'a> Conductor<'a> {
    /// Nothing has started yet.
    pub fn new(
        scenario: &'a Scenario,
        plan: &'a Plan,
        network: &'a Network,
        flows: &'a [Vec<Flow>],
        origin: Time,
    ) -> Conductor<'a> {
        let states = vec![State::default(); scenario.traffic.len()];
        Conductor { scenario, plan, network, flows, origin, states }
    }

    /// Starts, waits and stops, until all traffic has ended or the scenario's time is over. What has not
    /// ended goes on until its flows are joined.
    ///
    /// # Errors
    /// If the emulator ends by itself, or the run is cancelled.
    pub fn run(mut self, options: &Options<'_>, attempt: u32) -> Result<Vec<State>, EmuError> {
        let until = self.origin + self.scenario.stop_after;
        let mut looks = 0;
        loop {
            self.start_due();
            self.end_ended();
            let now = monotonic();
            if self.all_over() || now >= until {
                return Ok(self.states);
            }
            if options.is_cancelled() {
                return Err(EmuError::Cancelled);
            }
            if self.network.has_ended() {
                return Ok(self.states);
            }
            if looks % TELL == 0 {
                let elapsed = now.since(self.origin);
                options.tell(&Progress {
                    attempt,
                    elapsed,
                    most: self.scenario.stop_after,
                    waiting: false,
                });
            }
            looks += 1;
            sleep(LOOK.min(until.since(now).to_duration()));
        }
    }

    fn start_due(&mut self) {
        for index in 0..self.states.len() {
            if !self.states[index].started
                && let Some(at) = self.starts_at(index)
            {
                self.states[index].started = true;
                let Traffic { stagger, late, .. } = self.scenario.traffic[index];
                for (flow, place) in std::iter::zip(&self.flows[index], 0..) {
                    flow.start(at + late + stagger.scaled(place, 1));
                }
            }
        }
    }

    /// When a traffic starts, once that is known.
    fn starts_at(&self, index: usize) -> Option<Time> {
        match &self.scenario.traffic[index].start {
            Start::At(span) => Some(self.origin + *span),
            Start::AfterBytes(other, size) => {
                let flows = &self.flows[self.named(other)?];
                flows.iter().all(|flow| flow.delivered() >= size.bytes()).then(monotonic)
            }
            Start::AfterEnd(other) => self.states[self.named(other)?].ended.then(monotonic),
        }
    }

    fn named(&self, name: &str) -> Option<usize> {
        self.scenario.traffic.iter().position(|traffic| traffic.name == name)
    }

    fn end_ended(&mut self) {
        for index in 0..self.states.len() {
            if self.states[index].started && !self.states[index].ended && self.has_ended(index) {
                self.states[index].ended = true;
                self.stop_company(index);
            }
        }
    }

    /// Whether all flows of a traffic have ended, with nothing of theirs under way.
    fn has_ended(&self, index: usize) -> bool {
        self.flows[index].iter().all(Flow::ended) && self.in_flight(index) == 0
    }

    fn in_flight(&self, index: usize) -> u64 {
        let circuits = self.plan.circuits.iter().enumerate();
        let own = circuits.filter(|(_, circuit)| circuit.way.traffic == index);
        let there = |(number, _)| self.network.live().way(2 * number).conservation().in_flight;
        own.map(there).sum()
    }

    /// Stops the traffic that goes on until another one's end.
    fn stop_company(&mut self, ended: usize) {
        let name = &self.scenario.traffic[ended].name;
        for index in 0..self.states.len() {
            if self.scenario.traffic[index].until.as_ref() == Some(name)
                && !self.states[index].ended
            {
                self.states[index] = State { started: true, ended: true, stopped: true };
                self.flows[index].iter().for_each(Flow::stop);
                self.stop_company(index);
            }
        }
    }

    fn all_over(&self) -> bool {
        self.states.iter().all(|state| state.ended)
    }
}

/// Waits until nothing is under way, `patience` at most: what was sent to make connections.
pub fn settle(network: &Network, patience: Span) {
    let until = monotonic() + patience;
    while network.live().in_flight() > 0 && monotonic() < until && !network.has_ended() {
        sleep(LOOK);
    }
}
