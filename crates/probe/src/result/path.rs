//! The conclusions from round trips about the path, in figures.

use crate::client::fitting::Found;
use serde::Serialize;
use std::collections::BTreeMap;
use trunkline_fit::{Boundary, CannotTell, Fitted, Line, Over, Waits};

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
    /// Octets that a sender may have outstanding; over TCP with the head of each message.
    pub window_octets: Option<u32>,
    /// On which ways the sender waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_waits: Option<Waits>,
    /// Octets that a fresh TCP connection sends before it waits, with the head of each message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window_octets: Option<u32>,
    /// The same in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window_segments: Option<u32>,
    /// The octets of a full segment of TCP, or of the largest message that goes in one datagram uncut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<SegmentFigures>,
    /// Octets of each message's head that the sizes here contain besides the user's.
    pub head_octets: u32,
    /// Bits a second of the line.
    pub rate_bit_per_s: Option<Known>,
    /// One-way propagation.
    pub delay_ms: Option<Known>,
    /// The time that both hosts spend on a message and its answer.
    pub per_message_ms: Option<Known>,
    /// The cost of a packet besides its octets, one way.
    pub per_packet_ms: Option<Known>,
    /// The distance of the worst of the levels measured from the curve.
    pub worst_ms: Option<f64>,
    /// The conclusions from datagrams alone, if they were sent.
    pub datagrams: Option<LineFigures>,
    /// The reason why a figure is missing, by its name.
    pub cannot_tell: BTreeMap<&'static str, String>,
}

/// The source of the size of a full packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToldBy {
    /// Delay jumps there, to the octet.
    Measurement,
    /// The kernel says so of the socket (`TCP_INFO`, `IP_MTU`); the jump is lost in noise.
    Socket,
}

/// The size of a full packet.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SegmentFigures {
    /// The most octets in one packet.
    pub octets: u32,
    /// The source of that knowledge.
    pub told_by: ToldBy,
    /// The jump of delay with one octet more, both ways together; `None` if it was not measured.
    pub jump_ms: Option<f64>,
    /// The standard error of that.
    pub jump_error_ms: Option<f64>,
}

impl SegmentFigures {
    /// Of what carried the messages; `None` of URP, whose blocks are known to both ends.
    fn of(found: &Found) -> Option<SegmentFigures> {
        let octets = match &found.over {
            Over::Urp => return None,
            Over::Tcp(tcp) => tcp.segment,
            Over::Udp(udp) => udp.room(),
        };
        let comb = found.fit.curve.as_ref().and_then(|curve| curve.combs.first());
        let comb = comb.filter(|_| found.fit.known.waits == Waits::Never);
        let told = |boundary: Boundary| SegmentFigures {
            octets,
            told_by: if boundary.seen { ToldBy::Measurement } else { ToldBy::Socket },
            jump_ms: Some(boundary.jump),
            jump_error_ms: Some(boundary.error),
        };
        let silent =
            SegmentFigures { octets, told_by: ToldBy::Socket, jump_ms: None, jump_error_ms: None };
        let own = found.boundary.map_or(silent, told);
        // A jump elsewhere than the socket says is what the path does, and counts.
        let elsewhere =
            comb.filter(|comb| comb.teeth.first != octets && own.told_by != ToldBy::Measurement);
        Some(elsewhere.map_or(own, |comb| SegmentFigures {
            octets: comb.teeth.first,
            told_by: ToldBy::Measurement,
            jump_ms: Some(comb.height),
            jump_error_ms: None,
        }))
    }
}

/// The conclusions from datagrams about the line.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LineFigures {
    /// Bits a second.
    pub rate_bit_per_s: Known,
    /// The same up, if the ways are not alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_rate_bit_per_s: Option<Known>,
    /// The same down, if the ways are not alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_rate_bit_per_s: Option<Known>,
    /// Both propagations.
    pub trip_ms: Known,
}

impl From<Line> for LineFigures {
    fn from(line: Line) -> LineFigures {
        let way = |at: usize| line.rates().map(|rates| rates[at].into());
        LineFigures {
            rate_bit_per_s: line.rate().into(),
            up_rate_bit_per_s: way(0),
            down_rate_bit_per_s: way(1),
            trip_ms: line.trip.into(),
        }
    }
}

impl PathFigures {
    /// Of what was found.
    pub fn of(found: &Found) -> PathFigures {
        let mut cannot_tell = BTreeMap::new();
        let mut known = |name: &'static str, figure: &Result<Fitted, CannotTell>| match figure {
            Ok(it) => Some(Known::from(*it)),
            Err(why) => {
                cannot_tell.insert(name, why.to_string());
                None
            }
        };
        let fit = &found.fit;
        let rate_bit_per_s = known("rate_bit_per_s", &fit.rate);
        let delay_ms = known("delay_ms", &fit.delay);
        let per_message_ms = known("per_message_ms", &fit.per_message);
        let per_packet_ms = known("per_packet_ms", &fit.per_packet);
        let mut octets = |name: &'static str, found: &Result<u32, CannotTell>| match found {
            Ok(octets) => Some(*octets),
            Err(why) => {
                cannot_tell.insert(name, why.to_string());
                None
            }
        };
        let window_octets = octets("window_octets", &fit.window);
        let initial = found.initial.as_ref();
        let initial_window_octets =
            initial.and_then(|initial| octets("initial_window_octets", initial));
        PathFigures {
            window_octets,
            window_waits: window_octets.map(|_| fit.known.waits),
            initial_window_octets,
            initial_window_segments: match &found.over {
                Over::Tcp(tcp) => tcp.initial,
                _ => None,
            },
            segment: SegmentFigures::of(found),
            head_octets: found.head,
            rate_bit_per_s,
            delay_ms,
            per_message_ms,
            per_packet_ms,
            worst_ms: fit.worst.is_finite().then_some(fit.worst),
            datagrams: fit.known.line.map(LineFigures::from),
            cannot_tell,
        }
    }
}
