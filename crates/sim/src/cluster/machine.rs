//! A node with its processor.

use super::passing::Passing;
use super::path::{Era, Path};
use crate::hosts::serial::{Promise, Serial};
use trunkline_cluster::{Node, Spent, Waiting};
use trunkline_core::{Cause, Span, Stream, Time};
use trunkline_scenario::NodeCosts;
use trunkline_transport::cstar::{Frame, Tally};

/// A frame under way, with the path by which it came to be sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub frame: Frame,
    pub path: Path,
}

/// A node at work.
#[derive(Debug)]
pub(super) struct Machine {
    pub node: Node,
    pub processor: Serial,
    /// The end of the step under way, and what is to be done behind what it sends.
    pub promise: Option<Promise>,
    pub clean_up: Span,
    pub waits: Option<Waiting>,
    /// When the timer of its layer is set.
    pub deadline: Option<Time>,
    pub path: Path,
    /// How the frame came that arrived last, and whether it had been sent before.
    pub latest: Option<(Path, bool)>,
    /// What it hands on for others, if it does.
    pub passing: Option<Box<Passing>>,
    /// Chance of its losses.
    pub chance: Option<Box<Stream>>,
    pub lost: u64,
}

impl Machine {
    pub fn new(node: Node, chance: Option<Box<Stream>>) -> Machine {
        Machine {
            node,
            processor: Serial::default(),
            promise: None,
            clean_up: Span::ZERO,
            waits: None,
            deadline: None,
            path: Path::new(),
            latest: None,
            passing: None,
            chance,
            lost: 0,
        }
    }

    /// The time that a step takes.
    pub fn cost(&mut self, costs: &NodeCosts, spent: &Spent) -> Span {
        self.clean_up = costs.clean_up.scaled(u64::from(spent.sent), 1);
        costs.send.scaled(u64::from(spent.sent), 1)
            + costs.receive.scaled(u64::from(spent.received), 1)
            + operations(costs, &spent.tally)
            + costs.of(&spent.work)
    }

    /// It goes on: books what it has waited for. `received` if a fragment was there.
    pub fn goes_on(&mut self, era: Era, now: Time, places: &Places, received: bool) {
        let Some(waiting) = self.waits.take() else { return };
        match (waiting, self.latest.take()) {
            (Waiting::Fragment(..), Some((path, false))) if received => self.path = path,
            (Waiting::Fragment(..), _) => self.path.mark(era, now, places.medium, Cause::Recover),
            (Waiting::Window(_) | Waiting::Buffers, _) => {
                self.path.mark(era, now, places.window, Cause::Window);
            }
        }
        self.path.mark(era, now, places.processor, Cause::Host);
    }
}

/// The places under which time is booked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub processor: u32,
    pub window: u32,
    pub medium: u32,
}

/// The time that an interrupt takes; what it hands on it sends.
pub(super) fn interrupt_cost(costs: &NodeCosts, tally: &Tally) -> Span {
    costs.interrupt + costs.send.scaled(u64::from(tally.handed_on), 1) + operations(costs, tally)
}

fn operations(costs: &NodeCosts, tally: &Tally) -> Span {
    costs.cycle.scaled(tally.cycles(), 1)
        + costs.copy_out.scaled(u64::from(tally.copied_out), 1)
        + costs.copy.scaled(tally.copied.div_ceil(4), 1)
}
