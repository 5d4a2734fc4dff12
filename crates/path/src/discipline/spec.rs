//! The description of a discipline, checked before anything is built from it.

use super::dualpi2::DualPi2Settings;
use super::pie::PieSettings;
use super::sfq::SfqSettings;
use crate::Limit;
use crate::spec::{SpecError, within};
use serde::{Deserialize, Serialize};
use trunkline_core::Span;

/// Which discipline, with its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DisciplineSpec {
    /// First in, first out.
    Fifo {
        /// How much may wait.
        limit: Limit,
    },
    /// Datakit's per-channel queueing (Hawley 1989 §1.2): a quantum from each active channel in turn.
    RoundRobin {
        /// How much may wait in all; the longest channel gives way.
        limit: Limit,
        /// Bytes from one channel before the next has its turn.
        quantum: u32,
    },
    /// Fraser's two lists of channels (US patent 4,583,219): newly active ones first.
    TwoLists {
        /// How much may wait in all; the longest channel gives way.
        limit: Limit,
        /// Bytes from one channel before the next has its turn.
        quantum: u32,
        /// Bytes of one frame, which new channels fill before an old one opens the next.
        frame: u32,
        /// Whether an emptied channel still takes its turn in the low list.
        sparse: Sparse,
    },
    /// Deficit round robin (Shreedhar and Varghese 1995): whole packets, fair in bytes.
    Drr {
        /// How much may wait in all; the longest channel gives way.
        limit: Limit,
        /// Bytes of credit for each turn.
        quantum: u32,
    },
    /// Strict priority by band, first in first out within one.
    Priority {
        /// How much may wait in all; the least urgent band gives way.
        limit: Limit,
        /// How many bands.
        bands: u8,
    },
    /// Controlled delay (RFC 8289).
    Codel {
        /// How much may wait.
        limit: Limit,
        /// The standing delay that is acceptable.
        target: Span,
        /// How long it may be exceeded before the first drop.
        interval: Span,
        /// User bytes below which CoDel never drops: one maximal packet.
        mtu: u32,
        /// Are packets marked, that can be, instead of dropped?
        #[serde(default)]
        ecn: bool,
        /// The delay above which every packet is marked that can be, whatever CoDel says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ce_threshold: Option<Span>,
    },
    /// Flow queueing with CoDel (RFC 8290).
    FqCodel {
        /// How much may wait in all; the fattest flow gives way.
        limit: Limit,
        /// How many queues the flows are hashed into.
        flows: u32,
        /// Bytes of credit for each turn.
        quantum: u32,
        /// The standing delay that is acceptable.
        target: Span,
        /// How long it may be exceeded before the first drop.
        interval: Span,
        /// User bytes in a queue up to which CoDel never drops from it: one maximal packet.
        #[serde(default = "default_mtu")]
        mtu: u32,
        /// Are packets marked, that can be, instead of dropped (RFC 8290 §5.2.6)?
        #[serde(default = "marks")]
        ecn: bool,
        /// The delay above which every packet is marked that can be, whatever CoDel says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ce_threshold: Option<Span>,
    },
    /// ATM early packet discard (Romanow and Floyd 1995): whole packets refused above a threshold.
    Epd {
        /// Cells in the queue above which an arriving packet is refused whole.
        threshold: u64,
        /// Cells that the buffer holds; what does not fit in the middle of a packet is lost.
        limit: u64,
    },
    /// Proportional integral controller enhanced (RFC 8033).
    Pie(PieSettings),
    /// Two coupled queues, low-latency and classic (RFC 9332).
    #[serde(rename = "dualpi2")]
    DualPi2(DualPi2Settings),
    /// Stochastic fair queueing (McKenney 1990).
    Sfq(SfqSettings),
}

/// The largest IP packet on Ethernet.
fn default_mtu() -> u32 {
    1500
}

/// RFC 8290 §5.2.6: ECN is on unless it is turned off.
fn marks() -> bool {
    true
}

/// What the two-lists discipline does with a channel that has been emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sparse {
    /// It leaves the lists at once.
    Leave,
    /// It takes one more turn in the low list (the rule of FQ-CoDel against starvation).
    ViaLow,
}

impl DisciplineSpec {
    /// Checks every parameter against its range.
    pub fn check(&self) -> Result<(), SpecError> {
        match *self {
            DisciplineSpec::Fifo { .. } => Ok(()),
            DisciplineSpec::RoundRobin { quantum, .. } | DisciplineSpec::Drr { quantum, .. } => {
                quantum_range(quantum)
            }
            DisciplineSpec::TwoLists { quantum, frame, .. } => {
                quantum_range(quantum)?;
                within("the frame in bytes", frame, 1, 1 << 20)
            }
            DisciplineSpec::Priority { bands, .. } => within("the number of bands", bands, 1, 64),
            DisciplineSpec::Codel { target, interval, ce_threshold, .. } => {
                codel_range(target, interval, ce_threshold)
            }
            DisciplineSpec::FqCodel { flows, quantum, target, interval, ce_threshold, .. } => {
                within("the number of flow queues", flows, 1u32, 1 << 20)?;
                quantum_range(quantum)?;
                codel_range(target, interval, ce_threshold)
            }
            DisciplineSpec::Epd { threshold, limit } => {
                within("the cell limit", limit, 1, 1 << 40)?;
                within("the discard threshold in cells", threshold, 0, limit)
            }
            DisciplineSpec::Pie(ref settings) => settings.check(),
            DisciplineSpec::DualPi2(ref settings) => settings.check(),
            DisciplineSpec::Sfq(ref settings) => settings.check(),
        }
    }

    /// The limit on what waits.
    pub fn limit(&self) -> Limit {
        match *self {
            DisciplineSpec::Fifo { limit }
            | DisciplineSpec::RoundRobin { limit, .. }
            | DisciplineSpec::TwoLists { limit, .. }
            | DisciplineSpec::Drr { limit, .. }
            | DisciplineSpec::Priority { limit, .. }
            | DisciplineSpec::Codel { limit, .. }
            | DisciplineSpec::FqCodel { limit, .. }
            | DisciplineSpec::Pie(PieSettings { limit, .. })
            | DisciplineSpec::DualPi2(DualPi2Settings { limit, .. })
            | DisciplineSpec::Sfq(SfqSettings { limit, .. }) => limit,
            DisciplineSpec::Epd { limit, .. } => Limit::Cells(limit),
        }
    }

    /// Replaces the limit on what waits.
    ///
    /// # Errors
    /// Where early packet discard is given a limit in another unit than cells.
    pub fn set_limit(&mut self, new: Limit) -> Result<(), SpecError> {
        match self {
            DisciplineSpec::Fifo { limit }
            | DisciplineSpec::RoundRobin { limit, .. }
            | DisciplineSpec::TwoLists { limit, .. }
            | DisciplineSpec::Drr { limit, .. }
            | DisciplineSpec::Priority { limit, .. }
            | DisciplineSpec::Codel { limit, .. }
            | DisciplineSpec::FqCodel { limit, .. }
            | DisciplineSpec::Pie(PieSettings { limit, .. })
            | DisciplineSpec::DualPi2(DualPi2Settings { limit, .. })
            | DisciplineSpec::Sfq(SfqSettings { limit, .. }) => *limit = new,
            DisciplineSpec::Epd { limit, .. } => match new {
                Limit::Cells(cells) => *limit = cells,
                other => {
                    return Err(SpecError::Conflict(format!(
                        "the limit of epd is in cells, not {other}: write {}c",
                        other.most_bytes(1500) / 48
                    )));
                }
            },
        }
        Ok(())
    }
}

/// Bytes of one turn.
pub(super) fn quantum_range(quantum: u32) -> Result<(), SpecError> {
    within("the quantum in bytes", quantum, 1, 1 << 20)
}

/// A delay that a controller aims at.
pub(super) fn target_range(target: Span) -> Result<(), SpecError> {
    within("the target", target, Span::from_nanos(1), Span::from_secs(10))
}

fn codel_range(target: Span, interval: Span, threshold: Option<Span>) -> Result<(), SpecError> {
    target_range(target)?;
    within("the interval", interval, target, Span::from_secs(100))?;
    let most = Span::from_secs(10);
    threshold
        .map_or(Ok(()), |it| within("the marking threshold ce_threshold", it, Span::ZERO, most))
}
