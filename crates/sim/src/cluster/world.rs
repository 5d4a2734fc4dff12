//! The nodes of a cluster, their medium, and the loop that drives them.

use super::machine::{Interrupt, Machine, Places, Sent, interrupt_cost};
use super::path::{Era, cut};
use super::standstill::Standstill;
use crate::hosts::serial::Done;
use crate::network::wheel::{Handle, Wheel};
use trunkline_cluster::trace::Record;
use trunkline_cluster::{Lap, Node, Spent, Step, Waiting};
use trunkline_core::{Cause, Channel, Packet, Span, Time};
use trunkline_measure::{Sample, Samples};
use trunkline_path::medium::{Heard, Medium, StationId};
use trunkline_scenario::{Cluster as Spec, MessageProtocol, Scenario};
use trunkline_transport::cstar::{CarefulSettings, Destination, Failure, Frame, Grid, NodeId};

/// A cluster in virtual time.
#[derive(Debug)]
pub(crate) struct Cluster<'a> {
    pub(super) spec: &'a Spec,
    /// The nodes' places, if they hand on frames for each other.
    grid: Option<Grid>,
    pub(super) now: Time,
    events: Wheel<Due>,
    pub(super) medium: Medium<Packet<Sent>>,
    /// The medium's entry among the events, and when it is due; [`Time::NEVER`] while it does not wait.
    entry: Handle,
    due: Time,
    pub(super) machines: Vec<Machine>,
    era: Era,
    pub(super) places: Places,
    pub(super) samples: Samples,
    pub(super) laps: u32,
    /// Laps that node 0 has taken.
    taken: u32,
    pub(super) ended: u32,
    pub(super) failed: Option<(NodeId, Failure)>,
    standstill: Standstill,
    /// Whether frames go to and fro and no program comes on.
    pub(super) stood_still: bool,
    /// Whether nothing more can happen.
    pub(super) quiet: bool,
    /// Payload that has come to nodes, repetitions left out.
    pub(super) delivered: u64,
    /// Frames sent again.
    pub(super) again: u64,
    /// What each program did, once that is recorded.
    pub(super) records: Vec<Vec<Record>>,
}

/// What waits among the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Medium,
    /// A node's processor has done a step of the program.
    Step(u32),
    /// A node's processor has done an interrupt.
    Interrupt(u32),
    /// A node's message layer has something due.
    Deadline(u32),
}

/// Acts of a node's program that are recorded at most, of 40 bytes each (a choice).
const MOST_RECORDS: usize = 1 << 20;

impl<'a> Cluster<'a> {
    /// The cluster before its start; `nodes` are as many as it has. Its places are numbered from `place` on.
    pub fn new(
        scenario: &'a Scenario,
        spec: &'a Spec,
        nodes: Vec<Node>,
        place: u32,
    ) -> Cluster<'a> {
        let names: Vec<String> = (0..nodes.len()).map(|it| format!("{} {it}", spec.name)).collect();
        let stations: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut events = Wheel::new();
        let entry = events.enlist(Due::Medium);
        let grid = grid(spec);
        let machine = |((me, mut node), name): ((u16, Node), &String)| {
            node.record(if spec.record > 0 { MOST_RECORDS } else { 0 });
            let chance = spec.loss.as_f64() > 0.0;
            let stream = || Box::new(scenario.seed.stream(&format!("{name} loss")));
            let mut machine = Machine::new(NodeId(me), node, chance.then(stream));
            machine.passing = grid.map(|_| Box::default());
            machine
        };
        Cluster {
            spec,
            grid,
            now: Time::ZERO,
            medium: Medium::new(&spec.medium, scenario.seed, &spec.name, &stations),
            events,
            entry,
            due: Time::NEVER,
            machines: (0..).zip(nodes).zip(&names).map(machine).collect(),
            era: Era::FIRST,
            places: Places { processor: place, window: place + 1, medium: place + 2 },
            samples: Samples::new(scenario.samples, scenario.seed, false),
            laps: 0,
            taken: 0,
            ended: 0,
            failed: None,
            standstill: Standstill::new(names.len(), spec.protocol.longest_timer()),
            stood_still: false,
            quiet: false,
            delivered: 0,
            again: 0,
            records: Vec::new(),
        }
    }

    /// The names of its places.
    pub fn place_names(spec: &Spec) -> [String; 3] {
        ["processors", "windows", "medium"].map(|it| format!("{} {it}", spec.name))
    }

    /// Runs until all programs have ended, something fails, nothing more happens, or `until`. `told` hears now and then
    /// how far it is.
    pub fn run(&mut self, until: Time, told: &(dyn Fn(&str) + Sync)) {
        (0..self.machines.len()).for_each(|node| self.step(node));
        while self.goes_on(until) {
            told(&crate::so_far(self.now));
        }
    }

    /// Runs for a while; whether there is more to do.
    fn goes_on(&mut self, until: Time) -> bool {
        for _ in 0..crate::EVENTS {
            if self.is_over() {
                return false;
            }
            let Some((at, due, entry)) = self.events.pop(until) else {
                self.quiet = self.events.len() == 0;
                return false;
            };
            self.now = at;
            self.standstill.event();
            match due {
                Due::Medium => self.heard(),
                Due::Step(node) => self.step_done(node as usize, entry),
                Due::Interrupt(node) => {
                    self.events.give_back(entry);
                    self.interrupted(node as usize);
                }
                Due::Deadline(node) => {
                    self.events.give_back(entry);
                    self.deadline(node as usize);
                }
            }
            self.stood_still = self.standstill.is_reached(self.now);
        }
        true
    }

    /// Whether no program has come on for so long that none will.
    pub(super) fn has_stood_long(&self) -> bool {
        self.standstill.is_long(self.now)
    }

    fn is_over(&self) -> bool {
        self.failed.is_some() || self.stood_still || self.ended as usize == self.machines.len()
    }

    /// Lets a node's program go on until it works, waits or has ended.
    fn step(&mut self, index: usize) {
        loop {
            let machine = &mut self.machines[index];
            let (now, ended) = (self.now, machine.node.has_ended());
            match machine.node.step(now) {
                Step::Worked(spent) => {
                    machine.goes_on(self.era, now, &self.places);
                    self.standstill.goes_on(now);
                    self.take_laps(index);
                    if self.works(index, &spent) {
                        return;
                    }
                }
                Step::Waits(waiting, spent) => return self.waits(index, waiting, &spent),
                Step::Ended => {
                    self.ended += u32::from(!ended);
                    return self.flush(index);
                }
            }
            if self.failed.is_some() {
                return;
            }
        }
    }

    /// Gives a node's processor the work of a step. Whether that takes time.
    fn works(&mut self, index: usize, spent: &Spent) -> bool {
        let machine = &mut self.machines[index];
        let cost = machine.cost(&self.spec.costs, spent);
        match machine.processor.submit(self.now, cost) {
            Done::Now => {
                machine.processor.occupy(self.now, std::mem::take(&mut machine.clean_up));
                self.flush(index);
                false
            }
            Done::At(at) => {
                self.standstill.begins();
                self.at(at, Due::Step(index as u32));
                true
            }
            Done::Promised(promise) => {
                machine.promise = Some(promise);
                machine.sends = spent.sent > 0;
                self.standstill.begins();
                self.at(promise.at, Due::Step(index as u32));
                true
            }
        }
    }

    /// A node waits. What it found out meanwhile may have to be sent.
    fn waits(&mut self, index: usize, waiting: Waiting, spent: &Spent) {
        let machine = &mut self.machines[index];
        machine.waits_for(waiting);
        let cost = machine.cost(&self.spec.costs, spent);
        machine.processor.occupy(self.now, cost);
        self.flush(index);
    }

    /// A step of a node's program is done, unless interrupts have taken the processor meanwhile.
    fn step_done(&mut self, index: usize, entry: Handle) {
        let machine = &mut self.machines[index];
        let renewed = machine.promise.and_then(|promise| machine.processor.renewed(promise));
        if let Some(renewed) = renewed {
            machine.promise = Some(renewed);
            return self.events.insert(entry, renewed.at);
        }
        self.events.give_back(entry);
        self.standstill.ends(self.now);
        machine.promise = None;
        machine.sends = false;
        machine.path.mark(self.era, self.now, self.places.processor, Cause::Host);
        machine.processor.occupy(self.now, std::mem::take(&mut machine.clean_up));
        // An interrupt at this very instant comes first: what it has to send is not due yet.
        machine.stepped = machine.is_interrupted();
        if !machine.stepped {
            self.flush(index);
            self.step(index);
        }
    }

    /// Something wants a node's processor. Nothing of it is known until those are done that did before.
    fn wants(&mut self, index: usize, interrupt: Interrupt) {
        let machine = &mut self.machines[index];
        machine.interrupts.push_back(interrupt);
        if !machine.is_interrupted() {
            self.serve(index);
        }
    }

    /// Begins the next interrupt. Whether there is one.
    fn serve(&mut self, index: usize) -> bool {
        let machine = &mut self.machines[index];
        let Some(tally) = machine.serve(self.grid, self.now) else { return false };
        let cost = interrupt_cost(&self.spec.costs, &tally);
        match machine.processor.interrupt(self.now, cost) {
            Done::Now => self.interrupted(index),
            Done::At(at) => self.at(at, Due::Interrupt(index as u32)),
            Done::Promised(promise) => self.at(promise.at, Due::Interrupt(index as u32)),
        }
        true
    }

    /// An interrupt is done: what came with it is sent for. Behind the last the program goes on if it waited.
    fn interrupted(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        machine.served(self.era, self.now, &self.places);
        self.flush(index);
        if self.serve(index) {
            return;
        }
        let machine = &mut self.machines[index];
        let stepped = std::mem::take(&mut machine.stepped);
        if stepped || machine.waits.is_some() && machine.promise.is_none() {
            self.step(index);
        }
    }

    fn deadline(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if machine.node.deadline().is_some_and(|deadline| deadline <= self.now) {
            if !machine.has_timer() {
                self.wants(index, Interrupt::Timer);
            }
            return;
        }
        machine.deadline = None;
        if !machine.is_interrupted() {
            self.flush(index);
        }
    }

    fn at(&mut self, at: Time, due: Due) {
        let entry = self.events.enlist(due);
        self.events.insert(entry, at);
    }

    /// Sends what a node's layer has to send, sets its timer, and sees whether it has failed.
    fn flush(&mut self, index: usize) {
        while let Some(frame) = self.machines[index].transmit(self.now) {
            self.send(index, frame);
        }
        let machine = &mut self.machines[index];
        let deadline = machine.node.deadline();
        if let Some(at) = deadline
            && machine.deadline.is_none_or(|set| at < set)
        {
            machine.deadline = Some(at);
            self.at(at.max(self.now), Due::Deadline(index as u32));
        }
        if let Some(failure) = self.machines[index].node.failure() {
            self.failed.get_or_insert((NodeId(index as u16), failure.clone()));
        }
        self.arm();
    }

    fn send(&mut self, index: usize, frame: Frame) {
        let size = frame.size() + self.spec.overhead;
        let (to, machine) = (frame.to, &mut self.machines[index]);
        let handed_on = machine
            .passing
            .as_mut()
            .and_then(|it| it.goes(self.era, self.now, &self.places, &frame));
        let mut path = handed_on.unwrap_or_else(|| machine.path.clone());
        path.mark(self.era, self.now, self.places.processor, Cause::Host);
        let packet = Packet::new(Channel(index as u64), size, self.now, Sent { frame, path });
        let from = StationId(index);
        match to {
            Destination::Node(NodeId(node)) => {
                self.medium.offer(self.now, from, StationId(usize::from(node)), packet);
            }
            Destination::All => self.medium.offer_to_all(self.now, from, packet),
        }
    }

    /// Frames have come to their stations.
    fn heard(&mut self) {
        self.due = Time::NEVER;
        self.medium.advance(self.now);
        while let Some(heard) = self.medium.take(self.now) {
            self.arrives(heard);
        }
        self.arm();
    }

    fn arrives(&mut self, heard: Heard<Packet<Sent>>) {
        let StationId(index) = heard.to;
        let machine = &mut self.machines[index];
        if let Some(chance) = &mut machine.chance
            && chance.happens(self.spec.loss)
        {
            machine.lost += 1;
            return;
        }
        let Packet { body: Sent { frame, mut path }, ledger, .. } = heard.packet;
        // Answers to audits are marked as well, and repeat nothing.
        let again = frame.again && !frame.kind.is_control();
        match again {
            true => self.again += 1,
            false if !is_for(&frame, index) => {}
            false => self.delivered += frame.data.len() as u64,
        }
        path.crossed(self.era, self.now, self.places.medium, &ledger);
        self.wants(index, Interrupt::Frame(Sent { frame, path }));
    }

    /// Sees to it that the medium's one event is at the instant at which it next needs attention, and that it does not keep
    /// what it has given up: that is counted.
    fn arm(&mut self) {
        if self.medium.has_dropped() {
            self.medium.dropped().for_each(drop);
        }
        let due = self.medium.next_event().unwrap_or(Time::NEVER);
        if due == self.due {
            return;
        }
        if self.due != Time::NEVER {
            self.events.remove(self.entry);
        }
        self.due = due;
        if due != Time::NEVER {
            self.events.insert(self.entry, due);
        }
    }

    /// Laps that a node has taken; those of the first node count.
    fn take_laps(&mut self, index: usize) {
        let laps: Vec<Lap> = self.machines[index].node.take_laps().collect();
        if index != 0 {
            return;
        }
        for lap in laps {
            self.lap(&lap);
        }
        if let Some(start) = self.machines[0].node.lap_began()
            && (start > self.era.start || self.era.number == 0)
        {
            self.era = Era { number: self.era.number + 1, start };
        }
    }

    /// Keeps a lap as so many samples as it has parts, which follow one another.
    fn lap(&mut self, lap: &Lap) {
        self.taken += 1;
        let parts = self.spec.test.parts(self.spec.layout.nodes);
        // Of a lap in which no time has passed the path is still that of an earlier one.
        let (era, now, place) = (self.era, self.now, self.places.processor);
        self.machines[0].path.mark(era, now, place, Cause::Host);
        let mut start = lap.start;
        for steps in cut(self.machines[0].path.steps(), parts) {
            let end = start + steps.iter().map(|it| it.span).sum::<Span>();
            let (flow, index, size) = (0, self.laps, lap.bytes);
            let steps = steps.into();
            self.samples.push(Sample { flow, index, size, intended: start, start, end, steps });
            self.laps += 1;
            start = end;
        }
        debug_assert_eq!(start, lap.end, "the path of a lap adds up to it");
        if self.taken == self.spec.record {
            self.stop_recording();
        }
    }

    /// Takes what has been recorded. Nothing is recorded from now on.
    pub(super) fn stop_recording(&mut self) {
        let take = |machine: &mut Machine| {
            let records = machine.node.take_records();
            machine.node.record(0);
            records
        };
        self.records = self.machines.iter_mut().map(take).collect();
    }
}

/// The places of a cluster's nodes, if they hand on frames for each other.
fn grid(spec: &Spec) -> Option<Grid> {
    match &spec.protocol {
        MessageProtocol::Careful(CarefulSettings { grid: Some(columns), .. }) => {
            Grid::new(spec.layout.nodes, *columns)
        }
        _ => None,
    }
}

/// Whether a frame that has come to a node is for its program.
fn is_for(frame: &Frame, index: usize) -> bool {
    match frame.target() {
        Destination::Node(node) => usize::from(node.0) == index,
        Destination::All => true,
    }
}
