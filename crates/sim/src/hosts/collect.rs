//! From a world that has come to its end to a [`Run`].

use super::end::End;
use super::jobs::EndId;
use super::measured::Measured;
use super::world::{HostPlaces, World};
use crate::network::{MediumId, Network};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use trunkline_core::Span;
use trunkline_engine::{About, EngineName, Note, NoteKind, Pace, Run, wrong_blocks};
use trunkline_measure::{Conservation, Course, LinkRun, SenderState, TrafficRun};
use trunkline_scenario::{Lane, Traffic};

impl World<'_> {
    /// What has been measured.
    pub fn into_run(mut self) -> Run {
        let ended = self.net.now();
        (0..self.ends.len() as u32).for_each(|end| self.flush(EndId(end)));
        let notes = self.notes();
        self.forget_what_is_under_way();
        let copies = self.early_copies();
        let traffic = self.traffic_runs();
        let links = self.link_runs(copies);
        // So does the network for the names.
        self.net = Network::new(self.scenario.seed);
        Run {
            engine: EngineName::SIM,
            pace: Pace::Virtual,
            scenario: self.scenario.name.clone(),
            cell: self.scenario.cell.clone(),
            seed: self.scenario.seed.0,
            traffic,
            links,
            places: self.place_names(),
            ended,
            notes,
            accuracy: None,
            pictures: Vec::new(),
        }
    }

    /// What is under way makes room for what is told of the traffic.
    fn forget_what_is_under_way(&mut self) {
        self.net.forget_hops();
        (self.segments, self.jobs, self.spare) = Default::default();
        for end in &mut self.ends {
            (end.inward, end.outward, end.in_flight) = Default::default();
        }
    }

    /// The names of the places: the lanes, then those of each host.
    fn place_names(&self) -> Vec<String> {
        let lanes = self.lowered.lanes().iter().map(Lane::name);
        let hosts = self.scenario.hosts.iter();
        lanes.chain(hosts.flat_map(|host| HostPlaces::names(&host.name))).collect()
    }

    /// What is told of each traffic. Its ends make room for it, the last first.
    fn traffic_runs(&mut self) -> Vec<TrafficRun> {
        let mut order: Vec<usize> = (0..self.traffic.len()).collect();
        order.sort_unstable_by_key(|&index| Reverse(self.course.ends(index).start));
        let mut told: Vec<Option<TrafficRun>> = order.iter().map(|_| None).collect();
        for index in order {
            told[index] = Some(self.traffic_run(index));
            self.traffic[index] = Measured::default();
            self.ends.truncate(self.course.ends(index).start);
            if self.ends.len() + self.ends.len() / 8 < self.ends.capacity() {
                self.ends.shrink_to_fit();
            }
        }
        told.into_iter().flatten().collect()
    }

    fn traffic_run(&mut self, index: usize) -> TrafficRun {
        let mut samples = std::mem::take(&mut self.traffic[index].samples);
        samples.finish();
        let windows = std::mem::take(&mut self.traffic[index].windows);
        let measured = &self.traffic[index];
        let ends: Vec<&End<'_>> = self.ends[self.course.ends(index)].iter().collect();
        let senders = ends.iter().step_by(2);
        let counters = ends.iter().map(|end| end.protocol.counters());
        let (retransmissions, timeouts) =
            counters.fold((0, 0), |sum, next| (sum.0 + next.resent, sum.1 + next.timeouts));
        TrafficRun {
            name: self.scenario.traffic[index].name.clone(),
            transport: self.scenario.traffic[index].spoken(),
            samples,
            amounts: self.scenario.traffic[index].workload.is_greedy(),
            writes: self.scenario.traffic[index].workload.times_writes(),
            packets: self.conservation(&ends, measured),
            delivered_bytes: measured.delivered,
            courses: courses(ends.chunks_exact(2).map(|flow| self.course(flow, measured))),
            sender: senders.clone().map(|end| self.states(end)).collect(),
            blocks: measured.blocks.steps().collect(),
            block_count: measured.blocks.count,
            retransmissions,
            timeouts,
            rounds: senders.flat_map(|end| end.send_queue.rounds()).collect(),
            windows,
        }
    }

    /// What a flow has moved, and when; `None` where its applications did not begin. The receiver's begins with the
    /// sender's, when their connection is there; the sender's clock has run since its connection was asked for.
    fn course(&self, flow: &[&End<'_>], measured: &Measured) -> Option<Course> {
        let [sender, receiver] = flow else { return None };
        let ended = sender.ended.unwrap_or(self.net.now());
        let (bytes, until) = measured.delivered_by[sender.flow as usize];
        let (flow, to) = (sender.flow, ended.max(until));
        Some(Course { flow, from: receiver.started?, to, bytes })
    }

    /// What a sender's time went into, from its first action to its last.
    fn states(&self, end: &End<'_>) -> BTreeMap<SenderState, Span> {
        let until = end.ended.unwrap_or(self.net.now());
        match end.started {
            Some(_) => end.clock.spent_by(until).to_map(),
            None => Default::default(),
        }
    }

    /// The path's counts of a traffic's packets; those that found an interface's memory full count as
    /// dropped.
    fn conservation(&self, ends: &[&End<'_>], measured: &Measured) -> Conservation {
        let mut sum = Conservation::default();
        for end in ends {
            let counts = self.net.route_counts(end.route);
            sum.sent += counts.sent;
            sum.duplicated += counts.duplicated;
            sum.delivered += counts.delivered;
            sum.dropped += counts.dropped;
            sum.in_flight += counts.in_flight;
        }
        sum.delivered -= measured.overruns;
        sum.dropped += measured.overruns;
        sum
    }

    fn link_runs(&mut self, mut early: u64) -> Vec<LinkRun> {
        let mut runs = Vec::with_capacity(self.lanes.len());
        for (lane, &id) in std::iter::zip(self.lowered.lanes(), &self.lanes) {
            if !lane.is_reported() {
                continue;
            }
            let (mut counts, in_flight) = (self.net.counts(id), self.net.in_flight(id));
            let copies = early.min(in_flight).min(counts.duplicated);
            early -= copies;
            counts.duplicated -= copies;
            runs.push(LinkRun {
                name: lane.name(),
                counts,
                in_flight: in_flight - copies,
                busy: self.net.busy(id),
                queueing: self.net.take_queueing(id),
                backlog: self.net.backlog_samples(id).to_vec(),
            });
        }
        runs
    }

    /// Copies that links have made and that have not come out of them: those are no traffic's yet, so that
    /// the links' counts are to leave them out too.
    fn early_copies(&self) -> u64 {
        let made: u64 = self.lanes.iter().map(|&it| self.net.counts(it).duplicated).sum();
        let out = self.ends.iter().map(|end| self.net.route_counts(end.route).duplicated);
        made.saturating_sub(out.sum())
    }

    fn notes(&self) -> Vec<Note> {
        let mut notes: Vec<Note> = std::iter::zip(&self.scenario.hosts, &self.hosts)
            .filter(|(_, state)| state.overruns > 0)
            .map(|(host, state)| {
                let lost = state.overruns;
                let why = match (host.interface.memory, host.interface.deaf) {
                    (None, _) => "was deaf while it sent",
                    (Some(_), None) => "had its memory full",
                    (Some(_), Some(_)) => "was deaf while it sent, or had its memory full",
                };
                let text = format!("{lost} packets lost because the interface {why}");
                Note::new(NoteKind::Lost, text).about(About::Host(host.name.clone()))
            })
            .collect();
        for (index, (traffic, state)) in
            std::iter::zip(&self.scenario.traffic, &self.traffic).enumerate()
        {
            notes.extend(gave_up(traffic, state));
            notes.extend(self.wrong_data(index, traffic));
            notes.extend(self.unfinished(traffic, state));
            let selection = state.samples.selection();
            notes.extend(
                selection.map(|text| Note::of_traffic(&traffic.name, NoteKind::LeftOut, text)),
            );
        }
        notes.extend(self.held());
        notes
    }

    /// What the fullest buffer of each switched fabric held, by which buffers are to be chosen.
    fn held(&self) -> impl Iterator<Item = Note> {
        (0..).zip(&self.scenario.media).filter_map(|(index, medium)| {
            let most = self.net.most_held(MediumId(index))?;
            let text = format!("the fullest buffer of a switch held {most} bytes");
            Some(Note::new(NoteKind::Held, text).about(About::Link(medium.name.clone())))
        })
    }

    /// Blocks that were not the next of their stream: losses and copies together can deceive URP.
    fn wrong_data(&self, index: usize, traffic: &Traffic) -> Option<Note> {
        let blocks: u64 =
            self.ends[self.course.ends(index)].iter().map(|end| end.inward.wrong_data).sum();
        (blocks > 0).then(|| wrong_blocks(blocks).about(About::Traffic(traffic.name.clone())))
    }

    fn unfinished(&self, traffic: &Traffic, state: &Measured) -> Option<Note> {
        if state.ended || traffic.until.is_some() {
            return None;
        }
        let why = if self.stood_still() {
            "no time passes on its path".to_string()
        } else {
            format!("the run ended at {}", self.scenario.stop_after)
        };
        let text = format!("not finished: {why}");
        Some(Note::of_traffic(&traffic.name, NoteKind::Unfinished, text))
    }
}

/// The courses there are, with no room for more.
fn courses(each: impl ExactSizeIterator<Item = Option<Course>>) -> Vec<Course> {
    let mut courses = Vec::with_capacity(each.len());
    courses.extend(each.flatten());
    courses
}

fn gave_up(traffic: &Traffic, state: &Measured) -> Option<Note> {
    let (name, flows, count) = (&traffic.name, state.gave_up, traffic.count);
    let text = format!("{flows} of {count} flows gave up: no answer to any enquiry");
    (flows > 0).then(|| Note::of_traffic(name, NoteKind::GaveUp, text))
}
