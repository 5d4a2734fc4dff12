//! From what was measured to a [`Run`].

use crate::conduct::State;
use crate::plan::{Circuit, Plan};
use crate::validity::{Between, Exit, Machine, complaints, mean_path, nothing_left};
use crate::{notes, places};
use std::collections::BTreeMap;
use trunkline_core::{Cause, Span, Time};
use trunkline_dataplane::{Ended, HopSums, LaneResult, Session, Snapshot};
use trunkline_endpoint::FlowRun;
use trunkline_engine::{About, EngineName, Note, NoteKind, Pace, Run};
use trunkline_measure::{Accuracy, Conservation, LinkRun, Samples, Step, TrafficRun};
use trunkline_scenario::{Network, Scenario, Transport};

/// All that was measured.
pub struct Measured<'a> {
    pub lowered: &'a Network<'a>,
    pub scenario: &'a Scenario,
    pub plan: &'a Plan,
    /// When time began.
    pub origin: Time,
    /// And when it ended.
    pub ended: Time,
    /// Of each traffic, of each flow.
    pub flows: Vec<Vec<FlowRun>>,
    pub states: Vec<State>,
    pub before: Snapshot,
    pub network: &'a Ended,
    pub session: &'a Session,
    pub machine: Machine,
}

impl Measured<'_> {
    /// The run.
    pub fn into_run(mut self) -> Run {
        self.flows.iter_mut().flatten().for_each(|flow| flow.rebase(self.origin));
        let lanes = self.network.plane.results(self.ended);
        let accuracy = self.accuracy(&lanes);
        let mut notes = self.complaints(&lanes, &accuracy);
        notes.extend(self.notes());
        let flows = std::mem::take(&mut self.flows);
        let traffic: Vec<TrafficRun> = flows
            .into_iter()
            .enumerate()
            .map(|(index, flows)| self.traffic(index, flows))
            .collect();
        notes.extend(traffic.iter().filter_map(|run| {
            let text = run.samples.selection()?;
            Some(Note::of_traffic(&run.name, NoteKind::LeftOut, text))
        }));
        Run {
            engine: EngineName::EMU,
            pace: Pace::Real,
            scenario: self.scenario.name.clone(),
            cell: self.scenario.cell.clone(),
            seed: self.scenario.seed.0,
            traffic,
            links: self.links(lanes),
            places: places::names(self.scenario, self.plan),
            ended: self.since_origin(self.ended),
            notes,
            accuracy: Some(accuracy),
            pictures: Vec::new(),
        }
    }

    fn since_origin(&self, at: Time) -> Time {
        Time::ZERO + at.since(self.origin)
    }

    fn circuits_of(&self, traffic: usize) -> impl Iterator<Item = usize> + '_ {
        let own = move |(_, circuit): &(usize, &Circuit)| circuit.way.traffic == traffic;
        self.plan.circuits.iter().enumerate().filter(own).map(|(number, _)| number)
    }

    fn traffic(&self, index: usize, flows: Vec<FlowRun>) -> TrafficRun {
        let traffic = &self.scenario.traffic[index];
        let mut run = TrafficRun {
            name: traffic.name.clone(),
            transport: traffic.spoken(),
            amounts: traffic.workload.is_greedy(),
            writes: traffic.workload.times_writes(),
            samples: Samples::new(
                self.scenario.samples,
                self.scenario.seed,
                traffic.workload.is_greedy(),
            ),
            packets: self.conservation(index),
            ..TrafficRun::default()
        };
        let mut blocks = BTreeMap::new();
        run.courses =
            flows.iter().map(|flow| flow.course).collect::<Option<_>>().unwrap_or_default();
        for flow in flows {
            run.delivered_bytes += flow.delivered_bytes;
            run.block_count += flow.block_count;
            run.retransmissions += flow.retransmissions;
            run.timeouts += flow.timeouts;
            run.samples.absorb(flow.samples);
            run.sender.push(flow.sender);
            run.rounds.extend(flow.rounds);
            flow.blocks.into_iter().for_each(|step| add(&mut blocks, step));
        }
        let of_kernel =
            traffic.program.is_some() || matches!(*traffic.transport, Transport::Tcp(_));
        if of_kernel {
            blocks.clear();
            run.block_count = self.book_frames(index, &mut blocks);
        }
        run.samples.finish();
        run.blocks = blocks.into_values().collect();
        run
    }

    /// What the frames of a traffic's senders waited for on the path, for protocols that only the kernel
    /// sees into. Answers how many frames that were.
    fn book_frames(&self, traffic: usize, blocks: &mut Blocks) -> u64 {
        let between = places::between(self.scenario, self.plan);
        let mut frames = 0;
        for number in self.circuits_of(traffic) {
            let hops = self.network.plane.hops(2 * number);
            for (hop, crossed) in std::iter::zip(hops, &self.plan.circuits[number].way.there) {
                let place = between.links[crossed.lane];
                let HopSums { queue, transmit, propagate, late, .. } = *hop;
                for (place, cause, nanos) in [
                    (place, Cause::Queue, queue),
                    (place, Cause::Transmit, transmit),
                    (place, Cause::Propagate, propagate),
                    (between.emulator, Cause::Emulator, late),
                ] {
                    if nanos > 0 {
                        add(blocks, Step { place, cause, span: Span::from_nanos(nanos as u64) });
                    }
                }
            }
            frames += hops.last().map_or(0, |hop| hop.frames);
        }
        frames
    }

    /// The emulator's counts of a traffic's frames, both ways.
    fn conservation(&self, traffic: usize) -> Conservation {
        self.sum_of(self.circuits_of(traffic))
    }

    /// The same of all frames.
    fn frames(&self) -> Conservation {
        self.sum_of(0..self.plan.circuits.len())
    }

    fn sum_of(&self, circuits: impl Iterator<Item = usize>) -> Conservation {
        let mut sum = Conservation::default();
        for way in circuits.flat_map(|number| [2 * number, 2 * number + 1]) {
            let counts = self.session.live().way(way).conservation();
            sum.sent += counts.sent;
            sum.duplicated += counts.duplicated;
            sum.delivered += counts.delivered;
            sum.dropped += counts.dropped;
            sum.in_flight += counts.in_flight;
        }
        sum
    }

    fn links(&self, lanes: Vec<LaneResult>) -> Vec<LinkRun> {
        let link = |(plan, lane): (&trunkline_dataplane::LanePlan, LaneResult)| LinkRun {
            name: plan.name.clone(),
            counts: lane.counts,
            in_flight: lane.counts.in_flight(),
            busy: lane.busy,
            queueing: lane.queueing,
            backlog: (lane.backlog.into_iter())
                .filter(|(at, _)| *at <= self.ended)
                .map(|(at, bytes)| (self.since_origin(at), bytes))
                .collect(),
        };
        let lanes = std::iter::zip(&self.plan.lanes, lanes);
        let reported = std::iter::zip(self.lowered.lanes(), lanes);
        let reported = reported.filter(|(lane, _)| lane.is_reported());
        reported.map(|(_, result)| link(result)).collect()
    }

    fn accuracy(&self, lanes: &[LaneResult]) -> Accuracy {
        let (lateness, spacing) = self.network.plane.punctuality();
        let between = Between { before: &self.before, after: &self.network.snapshot };
        let frames = self.frames();
        Accuracy {
            frames_in: frames.sent,
            frames_out: frames.delivered,
            dropped_by_emulator: lanes.iter().map(|lane| lane.counts.dropped_by_emulator()).sum(),
            lateness: lateness.percentiles(),
            spacing_error: spacing.percentiles(),
            stalls: between.stalls(),
            longest_stall: between.longest_stall(),
            ends: self.network.snapshot.ends,
            clock_steps: between.clock_steps(),
        }
    }

    fn complaints(&self, lanes: &[LaneResult], accuracy: &Accuracy) -> Vec<Note> {
        let mut exits: BTreeMap<usize, Exit<'_>> = BTreeMap::new();
        for (number, circuit) in self.plan.circuits.iter().enumerate() {
            for (way, crossed) in
                [(2 * number, &circuit.way.there), (2 * number + 1, &circuit.way.back)]
            {
                let Some(last) = crossed.last().map(|crossed| crossed.lane) else { continue };
                let path = mean_path(self.network.plane.hops(way));
                let name = &self.plan.lanes[last].name;
                let exit = exits.entry(last).or_insert(Exit { name, lane: &lanes[last], path });
                exit.path = exit.path.min(path);
            }
        }
        let exits: Vec<Exit<'_>> = exits.into_values().collect();
        let between = Between { before: &self.before, after: &self.network.snapshot };
        let mut found = complaints(accuracy, &exits, between, &self.machine);
        found.extend(nothing_left(&self.frames()));
        let down = self.network.plane.devices_that_were_down();
        found.extend(down.map(|device| {
            Note::new(NoteKind::Invalid, format!("device {device} of the laboratory was down"))
        }));
        found
    }

    fn notes(&self) -> Vec<Note> {
        let mut notes = notes::of_hosts(self.scenario);
        notes.extend(notes::of_strays(self.network.plane.strays()));
        let mut changes = self.session.changes();
        changes.retain(|change| change.at <= self.ended);
        notes.extend(notes::of_changes(&changes, self.origin));
        notes.extend(notes::of_capture(self.network.capture.as_ref()));
        for (index, traffic) in self.scenario.traffic.iter().enumerate() {
            let about = About::Traffic(traffic.name.clone());
            let own = self.flows[index].iter().flat_map(|flow| &flow.notes);
            let mut own: Vec<Note> = own.map(|note| note.clone().about(about.clone())).collect();
            own.sort();
            own.dedup();
            notes.extend(own);
            if !self.states[index].ended && traffic.until.is_none() {
                let ended = self.scenario.stop_after;
                let text = format!("not finished: the run ended at {ended}");
                notes.push(Note::of_traffic(&traffic.name, NoteKind::Unfinished, text));
            }
        }
        notes
    }
}

type Blocks = BTreeMap<(u32, u8), Step>;

fn add(blocks: &mut Blocks, step: Step) {
    let none = Step { span: Span::ZERO, ..step };
    blocks.entry((step.place, step.cause as u8)).or_insert(none).span += step.span;
}
