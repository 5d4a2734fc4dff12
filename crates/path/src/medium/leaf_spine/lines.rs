//! What formulas see of a fabric: the lines of a frame's way, each of which sends one frame at a time.

use super::plan::{Cable, Plan};
use super::{Flow, LeafSpineSettings};
use crate::medium::transit::Destination;
use crate::medium::{Alone, StationId};
use trunkline_core::{Rate, Span};

/// A line of a fabric: a port that sends, and what is behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortLine {
    /// The number of its port in the fabric.
    pub port: usize,
    /// The rate at which it sends.
    pub rate: Option<Rate>,
    /// From the last bit of a frame until it may leave the next switch, or has come to its station.
    pub behind: Span,
    /// Bytes that may wait to leave by it before something is lost. `None` of a station's, whose discipline says so, and
    /// where nothing is lost.
    pub keeps: Option<u64>,
    /// Bytes that wait to leave by it from which on it marks frames. `None` if it does not.
    pub marks: Option<u64>,
    /// Bytes that it may have sent before the next switch has passed them on. `None` if it is not held back.
    pub ahead: Option<u64>,
}

impl LeafSpineSettings {
    /// The lines from one station to another.
    pub(super) fn lines(&self, alone: &Alone, from: StationId, to: StationId) -> Vec<PortLine> {
        let plan = Plan::new(alone.stations, self.hosts_per_leaf, self.spines);
        let (mut lines, mut port) = (Vec::with_capacity(4), from.0);
        loop {
            let down = matches!(plan.cable(port), Cable::Down { .. });
            let trunk = self.trunk_rate.filter(|_| plan.is_trunk(port));
            let switch = port != from.0;
            lines.push(PortLine {
                port,
                rate: trunk.or(alone.rate),
                behind: alone.delay + if down { Span::ZERO } else { self.switch_latency },
                keeps: (switch && self.flow == Flow::Drop).then_some(self.buffer.into()),
                marks: self.ecn_threshold.filter(|_| switch).map(u64::from),
                ahead: self.ahead(alone).filter(|_| !down),
            });
            let mut next = Vec::new();
            plan.outputs(port, from, Destination::One(to), &mut next);
            match next.first() {
                Some(&next) => port = next,
                None => return lines,
            }
        }
    }

    /// Bytes that a switch takes from a port before it has passed any on.
    fn ahead(&self, alone: &Alone) -> Option<u64> {
        match self.flow {
            Flow::Credit => Some(self.buffer.into()),
            Flow::Pause => {
                Some(u64::from(self.buffer).saturating_sub(self.headroom(alone.rate, alone.delay)))
            }
            Flow::Drop => None,
        }
    }
}
