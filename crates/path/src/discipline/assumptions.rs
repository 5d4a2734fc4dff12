//! What a discipline lets others assume of it, in place of its name.

use trunkline_core::{Rate, Span};

/// What the formulas, the remarks on a scenario and the plain link may assume of a discipline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assumptions {
    /// How the channels share a full line.
    pub sharing: Sharing,
    /// Bytes of the pieces in which packets leave, each framed by itself. `None` if they leave whole.
    pub cuts: Option<u32>,
    /// How long the queue gets on a line that greedy senders keep full.
    pub standing: Standing,
    /// What drops or marks before the limit is reached, as a message names it. `None` if nothing does.
    pub early: Option<&'static str>,
    /// The wait above which every packet that can be marked is. `None` if there is none.
    pub marks: Option<Span>,
    /// The rate above which it holds packets back or drops them, whatever the line carries.
    pub cap: Option<Rate>,
    /// Bytes that pass at once after a pause in spite of it.
    pub burst: u32,
    /// Whether packets wait for others although the line is free.
    pub batches: bool,
    /// Whether a packet's priority band counts.
    pub bands: bool,
    /// Bytes of the largest packet that passes. `None` if all do.
    pub largest: Option<u32>,
    /// A key that changes nothing beside the others as they were given, with the remedy. `None` if there is none.
    pub idle: Option<&'static str>,
}

/// How channels that all hold data share a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// By arrival: one queue in which all are treated alike.
    Arrival,
    /// By rounds: this many bytes of each active channel, in a circle that newcomers join at its end.
    Rounds {
        /// Bytes of a turn.
        quantum: u32,
    },
    /// By turns in another order than a circle's, or among hosts or buckets; equally in the long run.
    Turns {
        /// Bytes of a turn.
        quantum: u32,
    },
    /// In a way of its own, which no formula knows.
    Unknown,
}

/// How long a queue gets in front of a full line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Up to its limit.
    Limit,
    /// Up to so many bytes.
    Bytes(u64),
    /// Near this delay.
    Delay(Span),
    /// To a length that no formula knows.
    Unknown,
}

impl Assumptions {
    /// One queue in order of arrival that drops only what it has no room for.
    pub const FIFO: Assumptions = Assumptions {
        sharing: Sharing::Arrival,
        cuts: None,
        standing: Standing::Limit,
        early: None,
        marks: None,
        cap: None,
        burst: 0,
        batches: false,
        bands: false,
        largest: None,
        idle: None,
    };

    /// The same with channels served by turns of `quantum` bytes.
    pub const fn turns(quantum: u32) -> Assumptions {
        Assumptions { sharing: Sharing::Turns { quantum }, ..Assumptions::FIFO }
    }

    /// One queue that `early` keeps short.
    pub const fn managed(early: &'static str, standing: Standing) -> Assumptions {
        Assumptions { early: Some(early), standing, ..Assumptions::FIFO }
    }

    /// What it holds packets back by although the line is free, as a message names it. `None` if it does not.
    pub fn holds_back(&self) -> Option<&'static str> {
        match (self.cap, self.batches) {
            (Some(_), _) => Some("a rate that the discipline holds"),
            (None, true) => Some("batches"),
            (None, false) => None,
        }
    }

    /// Bytes of one channel's turn. `None` if the line is not shared by turns.
    pub fn quantum(&self) -> Option<u32> {
        match self.sharing {
            Sharing::Rounds { quantum } | Sharing::Turns { quantum } => Some(quantum.max(1)),
            Sharing::Arrival | Sharing::Unknown => None,
        }
    }
}
