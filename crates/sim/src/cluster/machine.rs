//! A node with its processor.

use super::passing::Passing;
use super::path::{Era, Path};
use crate::hosts::serial::{Promise, Serial};
use std::collections::VecDeque;
use trunkline_cluster::{Node, Spent, Waiting};
use trunkline_core::{Cause, Span, Stream, Time};
use trunkline_scenario::NodeCosts;
use trunkline_transport::cstar::{Delivery, Destination, Frame, Grid, NodeId, Source, Tally};

/// A frame under way, with the path by which it came to be sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub frame: Frame,
    pub path: Path,
}

/// What wants a node's processor at once.
#[derive(Debug)]
pub(super) enum Interrupt {
    /// A frame has come.
    Frame(Sent),
    /// Something is due in its message layer.
    Timer,
}

/// A fragment that has come for a program that waits for it, with its path, and whether it had been sent before.
#[derive(Debug)]
struct Come {
    from: NodeId,
    fragment: u32,
    path: Path,
    again: bool,
}

/// A node at work.
#[derive(Debug)]
pub(super) struct Machine {
    me: NodeId,
    pub node: Node,
    pub processor: Serial,
    /// The end of the step under way, and what is to be done behind what it sends.
    pub promise: Option<Promise>,
    pub clean_up: Span,
    /// Whether that step sends.
    pub sends: bool,
    pub waits: Option<Waiting>,
    /// When the timer of its layer is set.
    pub deadline: Option<Time>,
    pub path: Path,
    /// Interrupts that wait for the one under way.
    pub interrupts: VecDeque<Interrupt>,
    /// Whether one is under way, and the fragment that it brings, if its program waits for that.
    interrupted: bool,
    brings: Option<Come>,
    /// Whether a step of the program ended at the instant at which it began.
    pub stepped: bool,
    /// What interrupts have brought since its program last looked.
    come: Vec<Come>,
    /// What it hands on for others, if it does.
    pub passing: Option<Box<Passing>>,
    /// Chance of its losses.
    pub chance: Option<Box<Stream>>,
    pub lost: u64,
}

impl Machine {
    pub fn new(me: NodeId, node: Node, chance: Option<Box<Stream>>) -> Machine {
        Machine {
            me,
            node,
            processor: Serial::default(),
            promise: None,
            clean_up: Span::ZERO,
            sends: false,
            waits: None,
            deadline: None,
            path: Path::new(),
            interrupts: VecDeque::new(),
            interrupted: false,
            brings: None,
            stepped: false,
            come: Vec::new(),
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

    /// The next frame that goes. While its program is sending none does: what comes up meanwhile has its number behind that
    /// of the fragment, and must not overtake it.
    pub fn transmit(&mut self, now: Time) -> Option<Frame> {
        if self.sends { None } else { self.node.transmit(now) }
    }

    /// Whether an interrupt is under way.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// Whether the timer of its layer has run out and waits for other interrupts.
    pub fn has_timer(&self) -> bool {
        self.interrupts.iter().any(|it| matches!(it, Interrupt::Timer))
    }

    /// Begins the interrupt that is first. Returns what the message layer does for it.
    pub fn serve(&mut self, grid: Option<Grid>, now: Time) -> Option<Tally> {
        let interrupt = self.interrupts.pop_front()?;
        self.interrupted = true;
        let Interrupt::Frame(Sent { frame, path }) = interrupt else {
            self.deadline = None;
            return Some(self.node.expire(now));
        };
        if let (Some(grid), Some(passing)) = (grid, &mut self.passing) {
            passing.comes(grid, self.me, &frame, &path);
        }
        self.brings = self.is_awaited(&frame).then(|| {
            let (from, fragment, again) = (frame.origin(), frame.fragment, frame.again);
            Come { from, fragment, path, again }
        });
        Some(self.node.arrive(now, frame))
    }

    /// Whether a frame has a fragment that the program waits for.
    fn is_awaited(&self, frame: &Frame) -> bool {
        let Some(Waiting::Fragment(from, event)) = self.waits else { return false };
        let is_mine =
            matches!(frame.target(), Destination::All) || frame.target() == self.me.into();
        let is_its = from == Source::Any || from == Source::Node(frame.origin());
        is_mine && is_its && !frame.kind.is_control() && frame.event == event
    }

    /// The interrupt under way is done.
    pub fn served(&mut self, era: Era, now: Time, places: &Places) {
        self.interrupted = false;
        if let Some(passing) = &mut self.passing {
            passing.interrupted(era, now, places);
        }
        if let Some(mut come) = self.brings.take() {
            come.path.mark(era, now, places.processor, Cause::Host);
            self.come.push(come);
        }
    }

    /// It waits; what has come meanwhile was in vain.
    pub fn waits_for(&mut self, waiting: Waiting) {
        self.waits.get_or_insert(waiting);
        self.come.clear();
    }

    /// It goes on: books what it has waited for.
    pub fn goes_on(&mut self, era: Era, now: Time, places: &Places) {
        let Some(waiting) = self.waits.take() else { return };
        match (waiting, self.received()) {
            (Waiting::Fragment(..), Some(Come { path, again: false, .. })) => self.path = path,
            (Waiting::Fragment(..), _) => self.path.mark(era, now, places.medium, Cause::Recover),
            (Waiting::Window(_) | Waiting::Buffers, _) => {
                self.path.mark(era, now, places.window, Cause::Window);
            }
        }
        self.path.mark(era, now, places.processor, Cause::Host);
    }

    /// How the fragment came that the program has now received.
    fn received(&mut self) -> Option<Come> {
        let &Delivery { from, fragment, .. } = self.node.received()?;
        self.come.drain(..).find(|it| (it.from, it.fragment) == (from, fragment))
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
