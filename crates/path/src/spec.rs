//! The description of one direction of a path, checked before anything is built from it.

use crate::impairment::ImpairmentSpec;
use crate::{Change, Framing, Limit};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use trunkline_core::{Rate, Size, Span, Time};

/// One direction of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSpec {
    /// The line's rate, or `None` for a line so fast that nothing ever waits for it.
    pub rate: Option<Rate>,
    /// How user bytes become line bits.
    pub framing: Framing,
    /// Propagation delay, one way.
    pub delay: Span,
    /// The queue discipline in front of the line.
    pub discipline: DisciplineSpec,
    /// How much the line takes out of the discipline ahead of time (Hawley's output fifo).
    pub output_buffer: Size,
    /// Loss, errors, duplication, reordering, jitter.
    pub impairments: ImpairmentSpec,
    /// Delivery opportunities of a mahimahi trace, in place of `rate`: milliseconds, ascending.
    #[serde(skip)]
    pub trace: Option<Vec<u64>>,
    /// Changes at stated instants after the start.
    #[serde(skip)]
    pub schedule: Vec<(Time, Change)>,
}

impl Default for LinkSpec {
    fn default() -> LinkSpec {
        LinkSpec {
            rate: None,
            framing: Framing::None,
            delay: Span::ZERO,
            discipline: DisciplineSpec::Fifo { limit: Limit::Bytes(1 << 30) },
            output_buffer: Size::default(),
            impairments: ImpairmentSpec::default(),
            trace: None,
            schedule: Vec::new(),
        }
    }
}

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
    },
    /// ATM early packet discard (Romanow and Floyd 1995): whole packets refused above a threshold.
    Epd {
        /// Cells in the queue above which an arriving packet is refused whole.
        threshold: u64,
        /// Cells that the buffer holds; what does not fit in the middle of a packet is lost.
        limit: u64,
    },
}

/// The largest IP packet on Ethernet.
fn default_mtu() -> u32 {
    1500
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

/// Why a path cannot be built as described.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SpecError {
    /// A value outside its range.
    #[error("{what} is {found}: it must lie between {lowest} and {highest}")]
    Range {
        /// The setting.
        what: &'static str,
        /// The value found.
        found: String,
        /// Lowest allowed.
        lowest: String,
        /// Highest allowed.
        highest: String,
    },
    /// Two settings that exclude each other, or one that needs another.
    #[error("{0}")]
    Conflict(String),
}

fn within<T: PartialOrd + std::fmt::Display + Copy>(
    what: &'static str,
    value: T,
    lowest: T,
    highest: T,
) -> Result<(), SpecError> {
    if lowest <= value && value <= highest {
        return Ok(());
    }
    Err(SpecError::Range {
        what,
        found: value.to_string(),
        lowest: lowest.to_string(),
        highest: highest.to_string(),
    })
}

impl DisciplineSpec {
    /// Checks every parameter against its range.
    pub fn check(&self) -> Result<(), SpecError> {
        let quantum_range = |quantum| within("the quantum in bytes", quantum, 1u32, 1 << 20);
        let codel_range = |target, interval| {
            within("the target", target, Span::from_nanos(1), Span::from_secs(10))?;
            within("the interval", interval, target, Span::from_secs(100))
        };
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
            DisciplineSpec::Codel { target, interval, .. } => codel_range(target, interval),
            DisciplineSpec::FqCodel { flows, quantum, target, interval, .. } => {
                within("the number of flow queues", flows, 1u32, 1 << 20)?;
                quantum_range(quantum)?;
                codel_range(target, interval)
            }
            DisciplineSpec::Epd { threshold, limit } => {
                within("the cell limit", limit, 1, 1 << 40)?;
                within("the discard threshold in cells", threshold, 0, limit)
            }
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
            | DisciplineSpec::FqCodel { limit, .. } => limit,
            DisciplineSpec::Epd { limit, .. } => Limit::Cells(limit),
        }
    }

    /// Replaces the limit on what waits.
    pub fn set_limit(&mut self, new: Limit) {
        match self {
            DisciplineSpec::Fifo { limit }
            | DisciplineSpec::RoundRobin { limit, .. }
            | DisciplineSpec::TwoLists { limit, .. }
            | DisciplineSpec::Drr { limit, .. }
            | DisciplineSpec::Priority { limit, .. }
            | DisciplineSpec::Codel { limit, .. }
            | DisciplineSpec::FqCodel { limit, .. } => *limit = new,
            DisciplineSpec::Epd { limit, .. } => *limit = new.amount(),
        }
    }
}

impl LinkSpec {
    /// Longest delay that is accepted: one hour, the light time to Mars and back.
    pub const DELAY_MAX: Span = Span::from_secs(3600);

    /// Checks that a link can be built from this description.
    pub fn check(&self) -> Result<(), SpecError> {
        within("the delay", self.delay, Span::ZERO, LinkSpec::DELAY_MAX)?;
        self.discipline.check()?;
        self.impairments.check()?;
        if self.trace.is_some() && self.rate.is_some() {
            return Err(SpecError::Conflict(
                "a rate and a delivery trace were both given: leave one of them out".into(),
            ));
        }
        if self.framing == Framing::AtmAal5 && self.rate.is_none() {
            return Err(SpecError::Conflict(
                "framing atm-aal5 needs a rate, whose slot clock it follows: add --rate 155.52Mbit/s"
                    .into(),
            ));
        }
        Ok(())
    }

    /// User bytes that can be under way at once beyond the queue: the bandwidth-delay product and
    /// the output buffer. `None` where the rate is unlimited and the delay is not zero.
    pub fn in_flight_bytes(&self) -> Option<u64> {
        let held = self.delay + self.impairments.most_extra_delay();
        match self.rate {
            Some(rate) => Some(rate.bytes_in(held) + self.output_buffer.bytes()),
            None if held.is_zero() => Some(0),
            None => None,
        }
    }
}
