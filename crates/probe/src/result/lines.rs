//! JSON lines: one object for each sample, interval or event, the result in the last.

use serde::Serialize;
use trunkline_fit::Exchange;

/// A line.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Line<'a> {
    /// A message and its answer.
    Answer {
        /// Of which part of the measurement.
        phase: &'a str,
        /// The message's number.
        sequence: u64,
        /// User octets.
        size_octets: u32,
        /// This host's clock at the sending.
        sent_ns: i64,
        /// From the intended sending to the answer.
        response_ms: f64,
        /// From the sending to the answer.
        round_trip_ms: f64,
        /// The time that the server took.
        server_ms: Option<f64>,
    },
    /// The data that came in an interval.
    Interval {
        /// Of which part of the measurement.
        phase: &'a str,
        /// `up` or `down`.
        direction: &'a str,
        /// When it began, after the transfer's beginning.
        start_s: f64,
        /// The length of the interval.
        length_s: f64,
        /// User octets received.
        octets: u64,
        /// Bits of them per second.
        goodput_bit_per_s: f64,
    },
    /// All that came of it.
    Result {
        /// The document that `--json` prints.
        result: &'a serde_json::Value,
    },
}

impl<'a> Line<'a> {
    /// Of an exchange.
    pub fn answer(phase: &'a str, exchange: &Exchange) -> Line<'a> {
        let millis = |nanos: i64| nanos as f64 / 1e6;
        Line::Answer {
            phase,
            sequence: exchange.sequence,
            size_octets: exchange.size,
            sent_ns: exchange.sent,
            response_ms: millis(exchange.response()),
            round_trip_ms: millis(exchange.round_trip()),
            server_ms: exchange.turnaround().map(millis),
        }
    }

    /// As text without a line end.
    ///
    /// # Errors
    /// If it has no JSON form, which no line lacks.
    pub fn text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }
}
