//! [`Throughput`]: user bytes per second, to a thousandth of a byte.

use std::fmt;
use trunkline_core::{Rate, Span};

/// Nanoseconds of a second.
pub(crate) const SECOND: u128 = 1_000_000_000;

/// User bytes per second, kept in thousandths of a byte per second so that a window of 84 bytes in
/// 40.64 ms and a gigabit line are both exact enough without floating point. Rounded down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Throughput(u64);

impl Throughput {
    /// No limit.
    pub const UNLIMITED: Throughput = Throughput(u64::MAX);

    /// Whole bytes per second.
    pub const fn from_bytes_per_second(bytes: u64) -> Throughput {
        Throughput(bytes.saturating_mul(1_000))
    }

    /// Thousandths of a byte per second.
    pub const fn from_millibytes_per_second(millibytes: u64) -> Throughput {
        Throughput(millibytes)
    }

    /// `bytes` in each `span`; unlimited if the span is zero.
    pub fn over(bytes: u64, span: Span) -> Throughput {
        let scaled = u128::from(bytes) * 1_000 * SECOND;
        match u128::from(span.as_nanos()) {
            0 => Throughput::UNLIMITED,
            nanos => Throughput(u64::try_from(scaled / nanos).unwrap_or(u64::MAX)),
        }
    }

    /// Thousandths of a byte per second.
    pub const fn millibytes_per_second(self) -> u64 {
        self.0
    }

    /// Bytes per second, rounded down.
    pub const fn bytes_per_second(self) -> u64 {
        self.0 / 1_000
    }

    /// The bytes that pass in `span`, rounded down.
    pub fn bytes_in(self, span: Span) -> u64 {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / (1_000 * SECOND);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// The time in which `bytes` pass, rounded down; the longest span if nothing passes.
    pub fn time_for(self, bytes: u64) -> Span {
        let scaled = u128::from(bytes) * 1_000 * SECOND;
        match u128::from(self.0) {
            0 => Span::MAX,
            rate => Span::from_nanos(u64::try_from(scaled / rate).unwrap_or(u64::MAX)),
        }
    }
}

impl From<Rate> for Throughput {
    fn from(rate: Rate) -> Throughput {
        Throughput(rate.bits_per_second().saturating_mul(125))
    }
}

impl fmt::Display for Throughput {
    /// `13830.955 B/s`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match *self {
            Throughput::UNLIMITED => "no limit".to_string(),
            Throughput(rate) if rate.is_multiple_of(1_000) => format!("{} B/s", rate / 1_000),
            Throughput(rate) => format!("{}.{:03} B/s", rate / 1_000, rate % 1_000),
        })
    }
}
