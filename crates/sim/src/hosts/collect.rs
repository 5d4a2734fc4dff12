//! From a world that has come to its end to a [`Run`].

use super::end::End;
use super::world::{Measured, World};
use trunkline_measure::{Conservation, Engine, LinkRun, Run, TrafficRun};

impl World<'_> {
    /// What has been measured.
    pub fn into_run(mut self) -> Run {
        let ended = self.net.now();
        let notes = self.notes();
        let links = self.link_runs();
        let traffic = (0..self.traffic.len()).map(|index| self.traffic_run(index)).collect();
        Run {
            engine: Engine::Sim,
            scenario: self.scenario.name.clone(),
            cell: self.scenario.cell.clone(),
            seed: self.scenario.seed.0,
            traffic,
            links,
            places: self.places,
            ended,
            notes,
        }
    }

    fn traffic_run(&self, index: usize) -> TrafficRun {
        let measured = &self.traffic[index];
        let ends: Vec<&End> = self.ends.iter().filter(|end| end.traffic == index).collect();
        let senders = ends.iter().step_by(2);
        let counters = ends.iter().map(|end| end.speaker.counters());
        let (retransmissions, timeouts) =
            counters.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
        TrafficRun {
            name: self.scenario.traffic[index].name.clone(),
            samples: samples(measured),
            packets: self.conservation(&ends, measured),
            delivered_bytes: measured.delivered,
            sender: senders.clone().map(|end| self.states(end)).collect(),
            blocks: measured.blocks.values().copied().collect(),
            block_count: measured.block_count,
            retransmissions,
            timeouts,
            rounds: senders.flat_map(|end| end.rounds.of.clone()).collect(),
        }
    }

    fn states(
        &self,
        end: &End,
    ) -> std::collections::BTreeMap<trunkline_measure::SenderState, trunkline_core::Span> {
        let until = end.ended.unwrap_or(self.net.now());
        match end.started {
            Some(_) => end.clock.spent_by(until).to_map(),
            None => Default::default(),
        }
    }

    /// The path's counts of a traffic's packets; those that found an interface's memory full count as
    /// dropped.
    fn conservation(&self, ends: &[&End], measured: &Measured) -> Conservation {
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

    fn link_runs(&mut self) -> Vec<LinkRun> {
        let mut runs = Vec::new();
        for (wire, ids) in std::iter::zip(&self.scenario.links, &self.wires) {
            let names = [(&wire.from, &wire.to), (&wire.to, &wire.from)];
            for ((from, to), &id) in std::iter::zip(names, ids) {
                runs.push(LinkRun {
                    name: format!("{from}>{to}"),
                    counts: self.net.counts(id),
                    in_flight: self.net.in_flight(id),
                    busy: self.net.busy(id),
                    queueing: self.net.queueing(id).cloned(),
                    backlog: self.net.backlog_samples(id).to_vec(),
                });
            }
        }
        runs
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = std::iter::zip(&self.scenario.hosts, &self.hosts)
            .filter(|(_, state)| state.overruns > 0)
            .map(|(host, state)| {
                let lost = state.overruns;
                format!(
                    "{}: {lost} packets lost because the interface's memory was full",
                    host.name
                )
            })
            .collect();
        let unfinished = std::iter::zip(&self.scenario.traffic, &self.traffic)
            .filter(|(traffic, state)| !state.ended && traffic.until.is_none());
        notes.extend(unfinished.map(|(traffic, _)| {
            format!(
                "{}: not finished when the run ended at {}",
                traffic.name, self.scenario.stop_after
            )
        }));
        notes
    }
}

/// Flow by flow, in order of time.
fn samples(measured: &Measured) -> Vec<trunkline_measure::Sample> {
    let mut samples = measured.samples.clone();
    samples.sort_by_key(|sample| (sample.flow, sample.end));
    samples
}
