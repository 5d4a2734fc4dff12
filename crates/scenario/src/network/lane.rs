//! Lanes: what packets cross in one direction, one after the other.

use crate::{Medium, Node, Wire};
use std::borrow::Cow;
use trunkline_core::Rate;
use trunkline_path::medium::StationId;
use trunkline_path::{DisciplineSpec, Framing, Limit, LinkSpec, MediumSpec, Schedule};

/// A lane of a network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lane<'a> {
    /// One direction of a link.
    Link {
        /// The link.
        wire: &'a Wire,
        /// Its index in [`Scenario::links`](crate::Scenario::links).
        index: usize,
        /// Whether it is crossed from [`Wire::to`] to [`Wire::from`].
        reversed: bool,
    },
    /// What a station of a shared medium sends.
    Station {
        /// The medium.
        medium: &'a Medium,
        /// Its index in [`Scenario::media`](crate::Scenario::media).
        index: usize,
        /// The station.
        station: StationId,
    },
    /// A node's backplane, on which everything that crosses the node takes its turn.
    Backplane {
        /// The node.
        node: &'a Node,
        /// Its index in [`Scenario::nodes`](crate::Scenario::nodes).
        index: usize,
        /// The backplane's rate.
        rate: Rate,
    },
}

impl<'a> Lane<'a> {
    /// The name under which time on it is booked and its packets are counted.
    pub fn name(&self) -> String {
        match *self {
            Lane::Link { .. } => format!("{}>{}", self.begins(), self.ends(None)),
            Lane::Station { medium, station, .. } => medium.lane_name(station.0),
            Lane::Backplane { node, .. } => node.name.clone(),
        }
    }

    /// The name of its stream of randomness. A medium has streams of its own, by the medium's and the stations' names.
    pub fn stream(&self) -> String {
        match *self {
            Lane::Link { wire, .. } => format!("{} {}", wire.name, self.name()),
            Lane::Station { .. } => self.name(),
            Lane::Backplane { node, .. } => format!("{} {}", node.name, node.name),
        }
    }

    /// The host or node at which it begins.
    pub fn begins(&self) -> &'a str {
        match *self {
            Lane::Link { wire, reversed, .. } => {
                if reversed {
                    &wire.to
                } else {
                    &wire.from
                }
            }
            Lane::Station { medium, station, .. } => &medium.stations[station.0],
            Lane::Backplane { node, .. } => &node.name,
        }
    }

    /// The host or node at which it ends; on a medium that is the station that hears it, its own if that is `None`.
    pub fn ends(&self, heard_by: Option<StationId>) -> &'a str {
        match *self {
            Lane::Link { wire, reversed, .. } => {
                if reversed {
                    &wire.from
                } else {
                    &wire.to
                }
            }
            Lane::Station { medium, station, .. } => {
                &medium.stations[heard_by.unwrap_or(station).0]
            }
            Lane::Backplane { node, .. } => &node.name,
        }
    }

    /// The specification of a link's direction; `None` of what is no link.
    pub fn link(&self) -> Option<&'a LinkSpec> {
        match *self {
            Lane::Link { wire, reversed, .. } => {
                Some(if reversed { &*wire.backward } else { &*wire.forward })
            }
            Lane::Station { .. } | Lane::Backplane { .. } => None,
        }
    }

    /// The queue and line that carry it out. Of a station they say how much it can hold, while the medium decides who
    /// sends.
    pub fn spec(&self) -> Cow<'a, LinkSpec> {
        match *self {
            Lane::Link { wire, reversed: false, .. } => Cow::Borrowed(&*wire.forward),
            Lane::Link { wire, reversed: true, .. } => Cow::Borrowed(&*wire.backward),
            Lane::Station { medium, .. } => Cow::Owned(station(&medium.spec)),
            Lane::Backplane { rate, .. } => Cow::Owned(backplane(rate)),
        }
    }

    /// Whether it is counted in reports. A backplane is no link, and shows in the ledger only.
    pub fn is_reported(&self) -> bool {
        !matches!(self, Lane::Backplane { .. })
    }

    /// Whether the time of each packet in its queue is recorded: unless none ever waits there.
    pub fn is_recorded(&self) -> bool {
        match *self {
            Lane::Link { .. } => self.link().is_some_and(may_queue),
            Lane::Station { medium, .. } => medium.spec.rate.is_some(),
            Lane::Backplane { .. } => false,
        }
    }
}

fn may_queue(spec: &LinkSpec) -> bool {
    spec.rate.is_some() || spec.trace.is_some() || spec.schedule != Schedule::default()
}

fn station(medium: &MediumSpec) -> LinkSpec {
    let MediumSpec { rate, framing, delay, ref discipline, .. } = *medium;
    LinkSpec { rate, framing, delay, discipline: discipline.clone(), ..LinkSpec::default() }
}

/// Packets of up to 16 envelopes, 180 bits each (Hawley 1989 §1.3, §2.1), before which nothing is ever lost.
fn backplane(rate: Rate) -> LinkSpec {
    LinkSpec {
        rate: Some(rate),
        framing: Framing::Datakit,
        discipline: DisciplineSpec::fifo(Limit::Bytes(1 << 30)),
        ..LinkSpec::default()
    }
}
