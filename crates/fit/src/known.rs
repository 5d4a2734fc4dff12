//! The knowledge of a path before it is fitted, and what cannot be told.

use crate::curve::Packets;
use crate::line::Line;
use crate::path::FEWEST;
use crate::steps::Looking;
use serde::Serialize;
use trunkline_measure::Interval;

/// The kind of answer that came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// The whole message: everything happens twice, once each way, and both ways are taken as alike.
    Echo,
    /// A few bytes, whatever the message: what depends on size is of the way out alone.
    Short,
}

impl Pattern {
    /// Ways on which the size matters.
    pub(crate) fn ways(self) -> f64 {
        match self {
            Pattern::Echo => 2.0,
            Pattern::Short => 1.0,
        }
    }
}

/// The way in which the sender's window opens again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Opens {
    /// By a block, for each block that is answered: a sliding window.
    ByBlock,
    /// As a whole, when all that was sent is answered (the KMC board, Vande Water 1988 §2.5.2).
    AsWhole,
}

/// On which ways the sender waits for its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waits {
    /// On all ways on which the size matters.
    AllWays,
    /// On the way out alone: only there the window is so small.
    Out,
    /// On the way back alone.
    Back,
    /// Nowhere: datagrams wait for no window, and a jump is what one more packet costs.
    Never,
}

/// The knowledge beforehand. All of it may be left out; the figures that then cannot be told are named.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Known {
    /// The kind of answer that comes back.
    pub pattern: Pattern,
    /// User bytes of a block or segment. It is otherwise known only if packets show as small steps.
    pub block: Option<u32>,
    /// Bytes on the line for each block in addition to its user bytes: headers and trailers.
    pub overhead: Option<u32>,
    /// Bytes on the line of an acknowledgement.
    pub answer: Option<u32>,
    /// The way in which the window opens.
    pub opens: Option<Opens>,
    /// The time that both hosts together spend on a message and its answer, in milliseconds, if it was measured
    /// apart (between two programs of one host, for instance).
    pub per_message: Option<Interval>,
    /// The line, if datagrams measured it.
    pub line: Option<Line>,
    /// The ways on which the sender waits.
    pub waits: Waits,
    /// The kind of jumps that count.
    pub looking: Looking,
}

impl Known {
    /// Nothing but what comes back.
    pub fn only(pattern: Pattern) -> Known {
        Known {
            pattern,
            block: None,
            overhead: None,
            answer: None,
            opens: None,
            per_message: None,
            line: None,
            waits: Waits::AllWays,
            looking: Looking::default(),
        }
    }

    /// The number of times that a message of one byte more than the window waits.
    pub(crate) fn jumps(&self) -> f64 {
        if self.waits == Waits::AllWays { self.pattern.ways() } else { 1.0 }
    }

    /// The conversion of user bytes to bytes on the line.
    pub fn packets(&self) -> Packets {
        let block = self.block.filter(|&block| block > 0).zip(self.overhead);
        block.map_or(Packets::UNKNOWN, |(block, overhead)| Packets { block, overhead })
    }
}

/// A figure that was fitted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fitted {
    /// The figure.
    pub value: f64,
    /// The interval at 95 % confidence: what noise leaves open (bootstrap), and what is not known of
    /// the transport at its worst.
    pub interval: Interval,
}

impl Fitted {
    /// Half the interval's width for each unit of the figure.
    pub fn relative(&self) -> f64 {
        (self.interval.high - self.interval.low) / 2.0 / self.value.abs()
    }
}

/// The reason why a figure cannot be told from the measurements. All sizes in bytes, times in milliseconds.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize)]
pub enum CannotTell {
    /// Too little was measured for any curve.
    #[error(
        "cannot tell: {sizes} different message sizes do not do; measure at least {fewest}, small and large",
        fewest = FEWEST
    )]
    TooLittle {
        /// Sizes measured.
        sizes: usize,
    },
    /// No jump.
    #[error(
        "cannot tell: no jump above {height:.3} ms up to {largest} bytes, so the window is at least that, or so large that the line is never idle"
    )]
    NoJump {
        /// The largest size measured.
        largest: u32,
        /// The least jump that would have been seen.
        height: f64,
    },
    /// Datagrams.
    #[error("cannot tell: datagrams wait for no window; measure with urp or tcp")]
    NoWindow,
    /// A jump has not been narrowed to the byte.
    #[error(
        "cannot tell: delay jumps between {before} and {behind} bytes; measure the sizes between them"
    )]
    Open {
        /// Largest size before the jump.
        before: u32,
        /// Smallest size behind it.
        behind: u32,
    },
    /// The jumps are not those of a window.
    #[error(
        "cannot tell: at {size} bytes the delay does not follow from the jumps before it, so they do not come at multiples of one window; was the path busy, or does the window grow?"
    )]
    NotPeriodic {
        /// The first size that does not fit.
        size: u32,
    },
    /// A jump that may be a packet's cost or a window.
    #[error(
        "cannot tell: the jumps of {height:.3} ms at multiples of {period} bytes may be the cost of a packet or a window; say how long a block is"
    )]
    PacketOrWindow {
        /// Bytes between jumps.
        period: u32,
        /// Milliseconds.
        height: f64,
    },
    /// The figure is known too badly.
    #[error("cannot tell: between {low:.6} and {high:.6} {unit}, because {why}")]
    TooWide {
        /// Lower end of its interval.
        low: f64,
        /// Upper end.
        high: f64,
        /// In which unit.
        unit: &'static str,
        /// The knowledge or the action that is missing.
        why: &'static str,
    },
}
