//! Delivery traces in mahimahi's format: reading them, and what rate they come to.

use crate::impairment::SettingError;
use trunkline_core::{Rate, Span};

/// Bytes that one line of a delivery trace lets pass: one packet of the Ethernet MTU.
pub(crate) const OPPORTUNITY_BYTES: u64 = 1500;

/// Latest instant of a trace in milliseconds, about 31 years.
const LATEST: u64 = 1_000_000_000_000;

const WHAT: &str = "delivery trace";
const FORM: &str =
    "write one whole number of milliseconds on each line, none lower than the one before";
const EMPTY: &str = "write at least one whole number of milliseconds above 0";

/// Delivery traces: milliseconds, ascending, at each of which 1500 bytes may leave; after the last
/// the trace starts over (mahimahi, mm-link).
#[derive(Debug)]
pub enum DeliveryTrace {}

impl DeliveryTrace {
    /// Reads a trace file's content: a whole number of milliseconds on each line, ascending, several
    /// times the same if more than 1500 bytes may leave; `#` starts a comment.
    ///
    /// # Errors
    /// The first line that holds anything else or goes back in time, and a trace that ends at 0 ms,
    /// for it would never end.
    pub fn parse(text: &str) -> Result<Vec<u64>, SettingError> {
        let mut instants: Vec<u64> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            let least = instants.last().copied().unwrap_or(0);
            let instant = content.parse().ok().filter(|ms| (least..=LATEST).contains(ms));
            instants.push(instant.ok_or_else(|| SettingError::Line {
                what: WHAT,
                line: index + 1,
                found: content.into(),
                write: FORM,
            })?);
        }
        if instants.last().is_none_or(|&last| last == 0) {
            return Err(SettingError::Empty { what: WHAT, write: EMPTY });
        }
        Ok(instants)
    }

    /// The mean rate of a trace, in user bits of full opportunities, rounded down.
    pub fn mean_rate(trace: &[u64]) -> Rate {
        let period = Span::from_millis(trace.last().copied().unwrap_or(0).max(1));
        rate(trace.len() as u64 * OPPORTUNITY_BYTES, period)
    }

    /// The highest rate of a trace over any stretch as long as `window`, rounded down.
    pub fn peak_rate(trace: &[u64], window: Span) -> Rate {
        rate(DeliveryTrace::most_bytes(trace, window), window)
    }

    /// The most bytes that may leave in any stretch of time as long as `window`, the instant at one of
    /// its ends included: what has to be stored for a delay of that length.
    pub fn most_bytes(trace: &[u64], window: Span) -> u64 {
        let (Some(&period), count) = (trace.last(), trace.len() as u64) else { return 0 };
        let (period, window) = (period.max(1), window.as_nanos().div_ceil(1_000_000));
        // A stretch of whole rounds holds as many opportunities wherever it starts.
        let busiest = busiest(trace, period, window % period);
        (window / period * count + busiest).saturating_mul(OPPORTUNITY_BYTES)
    }
}

/// The most opportunities at `t ≤ instant < t + window`, milliseconds, for a window shorter than the period.
fn busiest(trace: &[u64], period: u64, window: u64) -> u64 {
    let count = trace.len();
    let instant = |index: usize| trace[index % count] + (index / count) as u64 * period;
    let mut end = 0;
    (0..count)
        .map(|start| {
            end = end.max(start);
            while instant(end) < instant(start) + window {
                end += 1;
            }
            (end - start) as u64
        })
        .max()
        .unwrap_or(0)
}

fn rate(bytes: u64, span: Span) -> Rate {
    let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(span.as_nanos().max(1));
    Rate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_a_trace_and_names_the_bad_line() {
        assert_eq!(DeliveryTrace::parse("# up\n0\n5\n5 # twice\n\n9\n").unwrap(), [0, 5, 5, 9]);
        for (text, part) in [
            ("1\n2x", "line 2"),
            ("3\n2", "line 2"),
            ("-1", "line 1"),
            ("1.5", "line 1"),
            ("1 2", "line 1"),
            ("0\n0", "holds nothing"),
            ("", "holds nothing"),
            ("1000000000001", "line 1"),
        ] {
            let complaint = DeliveryTrace::parse(text).unwrap_err().to_string();
            assert!(complaint.contains(part) && !complaint.contains('\n'), "{text}: {complaint}");
        }
    }

    #[test]
    fn rates_by_hand() {
        let trace = [1, 2, 3, 4, 500];
        assert_eq!(DeliveryTrace::mean_rate(&trace).bits_per_second(), 5 * 12_000 * 2);
        let window = Span::from_millis(100);
        // The opportunity at 500 ms is followed by the first four of the next round.
        assert_eq!(DeliveryTrace::peak_rate(&trace, window).bits_per_second(), 5 * 12_000 * 10);
        assert_eq!(DeliveryTrace::most_bytes(&trace, Span::from_millis(500)), 5 * 1500);
        assert_eq!(DeliveryTrace::most_bytes(&trace, Span::from_millis(502)), 7 * 1500);
        assert_eq!(DeliveryTrace::most_bytes(&trace, Span::ZERO), 0);
    }

    proptest! {
        #[test]
        fn no_stretch_holds_more(
            times in prop::collection::vec(0u64..60, 1..20), window in 1u64..200, from in 0u64..200,
        ) {
            let mut trace = times;
            trace.sort_unstable();
            if trace[trace.len() - 1] == 0 { trace.push(1); }
            let period = trace[trace.len() - 1];
            let inside = (0..500 * trace.len())
                .map(|index| trace[index % trace.len()] + (index / trace.len()) as u64 * period)
                .filter(|&instant| (from..from + window).contains(&instant))
                .count() as u64;
            let most = DeliveryTrace::most_bytes(&trace, Span::from_millis(window));
            prop_assert!(inside * OPPORTUNITY_BYTES <= most);
        }
    }
}
