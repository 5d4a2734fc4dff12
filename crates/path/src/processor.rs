//! The description of a trunk board's processor.

use crate::SpecError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use trunkline_core::{ParseError, Size, number_and_unit};

/// The one processor of a trunk board, which moves every byte twice: from the input fifo into memory, in which
/// the discipline keeps it, and from memory into the output fifo (Hawley 1989 §1.3).
///
/// It does one thing at a time and finishes it: a packet in, or a quantum out. The fifos hold channel
/// numbers too: two envelopes for each 16 user bytes that come from the backplane, and two for each quantum
/// (or, if the discipline serves whole packets, for each 16 user bytes) that goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrunkProcessor {
    /// The envelopes that the input fifo holds. What comes while it has no room is lost.
    pub input_fifo: Size,
    /// The time to move an envelope from the input fifo into memory, channel numbers included: at 22.6 cycles
    /// of 62.5 ns a burst of 35.6 kE overflows 4 kE (§1.4).
    pub input_per_byte: ByteTime,
    /// The time to move a user byte from memory into the output fifo, its share of the channel number
    /// included: 19.7 cycles of 62.5 ns (§1.4, §2.2).
    pub output_per_byte: ByteTime,
    /// Whether filling the output fifo goes before emptying the input fifo, as in the fifo program. The round
    /// robin program empties the input fifo first (§2.2).
    pub output_first: bool,
}

/// The time that a processor takes for a byte, in picoseconds: a cycle is not a whole number of nanoseconds.
///
/// Read as `1412.5ns` or `2us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ByteTime(u64);

/// Units with their picoseconds.
const UNITS: [(&str, u64); 4] =
    [("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000)];

impl ByteTime {
    /// The longest that is accepted: 1 ms, or 1 kB/s.
    pub const MAX: ByteTime = ByteTime(1_000_000_000);

    /// A time of whole picoseconds.
    pub const fn from_picos(picos: u64) -> ByteTime {
        ByteTime(picos)
    }

    /// Picoseconds.
    pub const fn as_picos(self) -> u64 {
        self.0
    }
}

impl TrunkProcessor {
    /// A packet of the backplane in envelopes: the least that an input fifo must hold.
    pub const LEAST_FIFO: Size = Size::from_bytes(18);

    /// Checks every parameter against its range, on a board with an output fifo of `output`.
    ///
    /// # Errors
    /// The first parameter that is out of its range, and an output fifo that holds nothing.
    pub fn check(&self, output: Size) -> Result<(), SpecError> {
        if output.bytes() == 0 {
            let text =
                "a trunk processor has no output fifo to fill: set output_buffer, such as 1kB";
            return Err(SpecError::Conflict(text.into()));
        }
        crate::spec::within(
            "the input fifo in bytes",
            self.input_fifo.bytes(),
            TrunkProcessor::LEAST_FIFO.bytes(),
            1 << 40,
        )?;
        let least = ByteTime::default();
        crate::spec::within("input_per_byte", self.input_per_byte, least, ByteTime::MAX)?;
        crate::spec::within("output_per_byte", self.output_per_byte, least, ByteTime::MAX)
    }
}

impl FromStr for ByteTime {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<ByteTime, ParseError> {
        const WHAT: &str = "time per byte";
        const EXAMPLE: &str = "1412.5ns";
        let (number, unit) = number_and_unit(text);
        let Some(&(_, picos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(ParseError::Unit {
                what: WHAT,
                found: text.trim().into(),
                unit: unit.into(),
                allowed: "ps, ns, us, ms",
                example: EXAMPLE,
            });
        };
        decimal(number, picos).map(ByteTime).ok_or_else(|| ParseError::NotANumber {
            what: WHAT,
            found: text.trim().into(),
            example: EXAMPLE,
        })
    }
}

/// `number` times `unit`, if that is whole and fits.
fn decimal(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let scale = 10u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let parts: u64 = fraction.parse::<u64>().ok()?.checked_mul(unit)?;
    let whole = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    parts.is_multiple_of(scale).then(|| whole.checked_add(parts / scale))?
}

impl fmt::Display for ByteTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nanos, picos) = (self.0 / 1000, self.0 % 1000);
        let text = match picos {
            0 => format!("{nanos}ns"),
            _ => format!("{nanos}.{}ns", format!("{picos:03}").trim_end_matches('0')),
        };
        f.pad(&text)
    }
}

impl Serialize for ByteTime {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for ByteTime {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_times_read_and_print() {
        for (text, picos, printed) in [
            ("1412.5ns", 1_412_500, "1412.5ns"),
            ("1231.25ns", 1_231_250, "1231.25ns"),
            ("2us", 2_000_000, "2000ns"),
            ("7ps", 7, "0.007ns"),
            ("0ns", 0, "0ns"),
        ] {
            let read: ByteTime = text.parse().unwrap();
            assert_eq!((read.as_picos(), read.to_string().as_str()), (picos, printed));
            assert_eq!(read.to_string().parse(), Ok(read));
        }
        for bad in ["", "12", "ns", "1.2.3ns", "-1ns", "0.5ps", "1h", "99999999999999999999ns"] {
            let complaint = bad.parse::<ByteTime>().unwrap_err().to_string();
            assert!(complaint.contains("1412.5ns") && !complaint.contains('\n'), "{complaint}");
        }
    }

    #[test]
    fn a_processor_is_checked_and_survives_json() {
        let json = r#"{"input_fifo":"4kB","input_per_byte":"1412.5ns",
            "output_per_byte":"1231.25ns","output_first":false}"#;
        let board: TrunkProcessor = serde_json::from_str(json).unwrap();
        let text = serde_json::to_string(&board).unwrap();
        assert_eq!(serde_json::from_str::<TrunkProcessor>(&text).unwrap(), board);
        assert!(serde_json::from_str::<TrunkProcessor>(&text.replace("first", "last")).is_err());
        let (size, none) = (Size::from_bytes(1000), Size::default());
        board.check(size).unwrap();
        let complaint =
            |board: TrunkProcessor, output| board.check(output).unwrap_err().to_string();
        assert!(complaint(board, none).contains("output_buffer"));
        assert!(complaint(TrunkProcessor { input_fifo: none, ..board }, size).contains("18"));
        let slow = TrunkProcessor { output_per_byte: ByteTime(1_000_000_001), ..board };
        assert!(complaint(slow, size).contains("1000000ns"));
    }
}
