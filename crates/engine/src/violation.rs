//! The laws that hold of every run whatever the scenario: laws 4 and 6 of the house.

use crate::{Pace, Run};
use trunkline_core::{Span, Time};
use trunkline_measure::{Conservation, LinkRun, Sample, TrafficRun};

/// A law that a run breaks: always a defect of the engine that made it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A sample's steps do not sum to its delay.
    #[error(
        "traffic '{traffic}', flow {flow}, size {size}, sample {index}: the steps sum to {booked}, the delay is {delay}; the engine books some time twice or not at all"
    )]
    Booking {
        /// The traffic's name.
        traffic: String,
        /// The sample's flow.
        flow: u32,
        /// The sample's size.
        size: u64,
        /// The sample's index.
        index: u32,
        /// The sum of its steps.
        booked: Span,
        /// Its delay.
        delay: Span,
    },
    /// A sample starts before it was meant to, ends before it starts, or after the run.
    #[error(
        "traffic '{traffic}', flow {flow}, size {size}, sample {index}: intended {intended}, start {start} and end {end} are not in order, or after the run's end; the engine stamps events wrongly"
    )]
    Order {
        /// The traffic's name.
        traffic: String,
        /// The sample's flow.
        flow: u32,
        /// The sample's size.
        size: u64,
        /// The sample's index.
        index: u32,
        /// When it was meant to start.
        intended: Time,
        /// When it started.
        start: Time,
        /// When it ended.
        end: Time,
    },
    /// A step names a place that the run does not have.
    #[error(
        "traffic '{traffic}': a step is booked at place {place} of {places}; the engine must name every place"
    )]
    Place {
        /// The traffic's name.
        traffic: String,
        /// The index.
        place: u32,
        /// The number of places.
        places: usize,
    },
    /// Packets of a traffic, or on a link, do not add up.
    #[error(
        "{what}: {} sent and {} duplicated are not {} delivered, {} dropped and {} in flight; the engine lost packets in silence",
        packets.sent, packets.duplicated, packets.delivered, packets.dropped, packets.in_flight
    )]
    Conservation {
        /// The traffic or the link.
        what: String,
        /// Its counts.
        packets: Conservation,
    },
    /// The links dropped packets, or still hold some, that no traffic owns.
    #[error(
        "the links have {on_links} packets {fate}, the traffic only {of_traffic}; the engine must book each at the traffic that sent it"
    )]
    Unowned {
        /// `dropped` or `in flight`.
        fate: &'static str,
        /// Sum over the links.
        on_links: u64,
        /// Sum over the traffic.
        of_traffic: u64,
    },
    /// A message's rounds do not carry the message.
    #[error(
        "traffic '{traffic}': the rounds of the message of {size} bytes carry {carried}; the engine must count each byte in one round"
    )]
    Rounds {
        /// The traffic's name.
        traffic: String,
        /// The message's bytes.
        size: u32,
        /// The payload that the rounds carry.
        carried: u64,
    },
}

/// Every law that `run` breaks, in its order; empty if all hold: each sample's steps sum to its
/// delay (samples of real-time runs may have none), times are in order, places are named,
/// the packets of each traffic and of each link add up, rounds carry their message, and in virtual time,
/// if nothing but the scenario's traffic crosses the links, each packet that a link dropped or holds
/// belongs to a traffic.
pub fn check(run: &Run) -> Vec<Violation> {
    let mut found = Vec::new();
    for traffic in &run.traffic {
        let mut highest = traffic.blocks.iter().map(|step| step.place).max();
        for sample in traffic.samples.told() {
            let (booked, farthest) = told(sample);
            highest = highest.max(farthest);
            // Few break a law, and a run has very many.
            if !(is_ordered(run, sample) && is_booked(run, sample, booked)) {
                found.extend(of_sample(run, traffic, sample, booked));
            }
        }
        found.extend(of_places(run, traffic, highest));
        found.extend(conserved(format!("traffic '{}'", traffic.name), traffic.packets));
        found.extend(of_rounds(traffic));
    }
    found.extend(
        run.links
            .iter()
            .filter_map(|link| conserved(format!("link '{}'", link.name), link_packets(link))),
    );
    if run.pace == Pace::Virtual {
        found.extend(unowned(run));
    }
    found
}

/// The sum of a sample's steps, and the highest place that they name.
fn told(sample: &Sample) -> (Span, Option<u32>) {
    sample.steps.iter().fold((Span::ZERO, None), |(booked, farthest), step| {
        (booked + step.span, farthest.max(Some(step.place)))
    })
}

fn is_ordered(run: &Run, sample: &Sample) -> bool {
    let &Sample { intended, start, end, .. } = sample;
    intended <= start && start <= end && end <= run.ended
}

/// In real time nobody may know where the time went.
fn is_booked(run: &Run, sample: &Sample, booked: Span) -> bool {
    booked == sample.delay() || run.pace == Pace::Real && sample.steps.is_empty()
}

fn of_sample(run: &Run, traffic: &TrafficRun, sample: &Sample, booked: Span) -> Vec<Violation> {
    let &Sample { flow, size, index, intended, start, end, .. } = sample;
    let (name, delay) = (|| traffic.name.clone(), sample.delay());
    let order = || Violation::Order { traffic: name(), flow, size, index, intended, start, end };
    let booking = || Violation::Booking { traffic: name(), flow, size, index, booked, delay };
    let broken =
        [(!is_ordered(run, sample)).then(order), (!is_booked(run, sample, booked)).then(booking)];
    broken.into_iter().flatten().collect()
}

/// `highest` is the highest place that anything of the traffic names.
fn of_places(run: &Run, traffic: &TrafficRun, highest: Option<u32>) -> Option<Violation> {
    let (name, places, highest) = (&traffic.name, run.places.len(), highest?);
    let missing = highest as usize >= places;
    missing.then(|| Violation::Place { traffic: name.clone(), place: highest, places })
}

fn conserved(what: String, packets: Conservation) -> Option<Violation> {
    (!packets.holds()).then_some(Violation::Conservation { what, packets })
}

fn link_packets(link: &LinkRun) -> Conservation {
    Conservation {
        sent: link.counts.entered,
        duplicated: link.counts.duplicated,
        delivered: link.counts.delivered,
        dropped: link.counts.dropped(),
        in_flight: link.in_flight,
    }
}

fn of_rounds(traffic: &TrafficRun) -> Vec<Violation> {
    let carried = |rounds: &[u32]| rounds.iter().map(|&bytes| u64::from(bytes)).sum::<u64>();
    let sums = traffic.rounds.iter().map(|(&size, rounds)| (size, carried(rounds)));
    sums.filter(|&(size, carried)| carried != u64::from(size))
        .map(|(size, carried)| Violation::Rounds { traffic: traffic.name.clone(), size, carried })
        .collect()
}

/// Hosts lose packets too, so that the traffic may own more than the links tell of, never less.
fn unowned(run: &Run) -> Vec<Violation> {
    let sum = u64::saturating_add;
    let on_links = |of: fn(&LinkRun) -> u64| run.links.iter().map(of).fold(0, sum);
    let of_traffic =
        |of: fn(&Conservation) -> u64| run.traffic.iter().map(|one| of(&one.packets)).fold(0, sum);
    let fates = [
        ("dropped", on_links(|link| link.counts.dropped()), of_traffic(|own| own.dropped)),
        ("in flight", on_links(|link| link.in_flight), of_traffic(|own| own.in_flight)),
    ];
    fates
        .into_iter()
        .filter(|&(_, on_links, of_traffic)| on_links > of_traffic)
        .map(|(fate, on_links, of_traffic)| Violation::Unowned { fate, on_links, of_traffic })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EngineName;
    use std::collections::BTreeMap;
    use trunkline_core::{Cause, Counts, DropCause};
    use trunkline_measure::Step;

    fn sound() -> Run {
        let step = |cause, nanos| Step { place: 0, cause, span: Span::from_nanos(nanos) };
        let sample = Sample {
            flow: 0,
            index: 0,
            size: 1024,
            intended: Time::from_nanos(5),
            start: Time::from_nanos(10),
            end: Time::from_nanos(110),
            steps: vec![step(Cause::Transmit, 30), step(Cause::Propagate, 70)].into(),
        };
        let mut counts = Counts::default();
        (counts.entered, counts.delivered) = (9, 7);
        counts.drop(DropCause::Loss);
        Run {
            engine: EngineName::SIM,
            pace: Pace::Virtual,
            scenario: "test".into(),
            cell: BTreeMap::new(),
            seed: 1,
            traffic: vec![TrafficRun {
                name: "keys".into(),
                samples: vec![sample].into(),
                packets: Conservation {
                    sent: 9,
                    delivered: 6,
                    dropped: 2,
                    in_flight: 1,
                    duplicated: 0,
                },
                rounds: BTreeMap::from([(1024, vec![756, 268])]),
                ..TrafficRun::default()
            }],
            links: vec![LinkRun {
                name: "a>b".into(),
                counts,
                in_flight: 1,
                busy: Span::ZERO,
                queueing: None,
                backlog: Vec::new(),
            }],
            places: vec!["a>b".into()],
            ended: Time::from_nanos(200),
            notes: Vec::new(),
            accuracy: None,
            pictures: Vec::new(),
        }
    }

    /// The complaints about a sound run after `spoil`.
    fn complaints(spoil: impl Fn(&mut Run)) -> Vec<String> {
        let mut run = sound();
        spoil(&mut run);
        check(&run).iter().map(Violation::to_string).collect()
    }

    #[test]
    fn a_sound_run_breaks_nothing() {
        assert_eq!(check(&sound()), []);
    }

    #[test]
    fn every_law_is_looked_after() {
        let one = |spoil: fn(&mut Run), text: &str| {
            let found = complaints(spoil);
            assert!(found.len() == 1 && found[0].contains(text), "{text}: {found:?}");
            assert!(!found[0].contains('\n'));
        };
        one(|run| run.traffic[0].samples[0].end += Span::from_nanos(1), "sum to 100ns");
        one(|run| run.traffic[0].samples[0].intended = Time::from_nanos(11), "not in order");
        one(|run| run.ended = Time::from_nanos(109), "after the run's end");
        one(|run| run.places.clear(), "place 0 of 0");
        one(|run| run.traffic[0].packets.sent = 10, "traffic 'keys': 10 sent");
        one(|run| run.links[0].counts.entered = 10, "link 'a>b': 10 sent");
        one(|run| drop(run.traffic[0].rounds.insert(1024, vec![756])), "carry 756");
        let unowned = |run: &mut Run| {
            run.traffic[0].packets =
                Conservation { sent: 7, delivered: 6, in_flight: 1, ..Default::default() };
        };
        one(unowned, "the links have 1 packets dropped, the traffic only 0");
    }

    #[test]
    fn only_what_cannot_be_known_is_excused() {
        let unbooked = |run: &mut Run| run.traffic[0].samples[0].steps = Default::default();
        assert_eq!(complaints(unbooked).len(), 1);
        assert!(complaints(|run| (unbooked(run), run.pace = Pace::Real).1).is_empty());
    }
}
