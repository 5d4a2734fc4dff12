//! What round trips say of the path, in figures.

use serde::Serialize;
use std::collections::BTreeMap;
use trunkline_fit::{CannotTell, Fitted, Line, PathFit};

/// A figure and the interval in which it lies with 95 % confidence.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Known {
    /// The figure.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl From<Fitted> for Known {
    fn from(found: Fitted) -> Known {
        Known { value: found.value, low: found.interval.low, high: found.interval.high }
    }
}

/// A path that was fitted. What could not be told is missing, and the reason is in `cannot_tell`.
#[derive(Debug, Clone, Serialize)]
pub struct PathFigures {
    /// Octets that a sender may have outstanding.
    pub window_octets: Option<u32>,
    /// Bits a second of the line.
    pub rate_bit_per_s: Option<Known>,
    /// One-way propagation.
    pub delay_ms: Option<Known>,
    /// What both hosts spend on a message and its answer.
    pub per_message_ms: Option<Known>,
    /// What a packet costs besides its octets, one way.
    pub per_packet_ms: Option<Known>,
    /// How far the worst of the levels measured lies from the curve.
    pub worst_ms: Option<f64>,
    /// What datagrams alone say, where they were sent.
    pub datagrams: Option<LineFigures>,
    /// Why a figure is missing, by its name.
    pub cannot_tell: BTreeMap<&'static str, String>,
}

/// What datagrams say of the line.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LineFigures {
    /// Bits a second.
    pub rate_bit_per_s: Known,
    /// Both propagations.
    pub trip_ms: Known,
}

impl From<Line> for LineFigures {
    fn from(line: Line) -> LineFigures {
        LineFigures { rate_bit_per_s: line.rate().into(), trip_ms: line.trip.into() }
    }
}

impl PathFigures {
    /// Of a fit.
    pub fn of(found: &PathFit) -> PathFigures {
        let mut cannot_tell = BTreeMap::new();
        let mut known = |name: &'static str, figure: &Result<Fitted, CannotTell>| match figure {
            Ok(it) => Some(Known::from(*it)),
            Err(why) => {
                cannot_tell.insert(name, why.to_string());
                None
            }
        };
        let rate_bit_per_s = known("rate_bit_per_s", &found.rate);
        let delay_ms = known("delay_ms", &found.delay);
        let per_message_ms = known("per_message_ms", &found.per_message);
        let per_packet_ms = known("per_packet_ms", &found.per_packet);
        if let Err(why) = &found.window {
            cannot_tell.insert("window_octets", why.to_string());
        }
        PathFigures {
            window_octets: found.window.as_ref().ok().copied(),
            rate_bit_per_s,
            delay_ms,
            per_message_ms,
            per_packet_ms,
            worst_ms: found.worst.is_finite().then_some(found.worst),
            datagrams: found.known.line.map(LineFigures::from),
            cannot_tell,
        }
    }
}
