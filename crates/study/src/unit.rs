//! The units in which reports print their values.

use serde::Deserialize;
use std::fmt;

/// A unit with its name; values are computed in seconds, bytes, and bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Unit {
    /// A pure number.
    #[default]
    #[serde(rename = "1")]
    One,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Thousands of bytes.
    #[serde(rename = "kB")]
    Kilobytes,
    /// Bytes a second.
    #[serde(rename = "B/s")]
    BytesPerSecond,
    /// Thousands of bytes a second.
    #[serde(rename = "kB/s")]
    KilobytesPerSecond,
    /// Millions of bits a second.
    #[serde(rename = "Mbit/s")]
    MegabitsPerSecond,
    /// So many a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Hundredths.
    #[serde(rename = "%")]
    Percent,
}

impl Unit {
    /// How many base units (seconds, bytes, bytes a second, one) it is.
    pub fn scale(self) -> f64 {
        match self {
            Unit::One | Unit::Seconds | Unit::Bytes | Unit::BytesPerSecond | Unit::PerSecond => 1.0,
            Unit::Milliseconds => 1e-3,
            Unit::Microseconds => 1e-6,
            Unit::Kilobytes | Unit::KilobytesPerSecond => 1e3,
            Unit::MegabitsPerSecond => 125e3,
            Unit::Percent => 1e-2,
        }
    }

    /// Its sign as printed; empty for a pure number.
    pub fn sign(self) -> &'static str {
        match self {
            Unit::One => "",
            Unit::Seconds => "s",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
            Unit::Bytes => "B",
            Unit::Kilobytes => "kB",
            Unit::BytesPerSecond => "B/s",
            Unit::KilobytesPerSecond => "kB/s",
            Unit::MegabitsPerSecond => "Mbit/s",
            Unit::PerSecond => "1/s",
            Unit::Percent => "%",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sign())
    }
}
