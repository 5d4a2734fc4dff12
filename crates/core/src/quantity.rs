//! [`Rate`] in bits per second and [`Size`] in bytes.

use crate::parse::{ParseError, Reading, number_and_unit, print_exact};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A rate in bits per second, at least 1.
///
/// Written and read as `1.544Mbit/s`, `10mbit`, `125kB/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// An amount of data in bytes.
///
/// Written and read as `1500B`, `32KiB`, `1MB` (10^6) or a bare number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Size(u64);

impl Rate {
    /// A rate of `bits` per second; zero is taken as one.
    pub const fn from_bits_per_second(bits: u64) -> Rate {
        Rate(if bits == 0 { 1 } else { bits })
    }
    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
    /// The bytes that this rate carries in `span`, rounded up.
    pub fn bytes_in(self, span: crate::Span) -> u64 {
        let bits = u128::from(self.0) * u128::from(span.as_nanos());
        u64::try_from(bits.div_ceil(8_000_000_000)).unwrap_or(u64::MAX)
    }
}

impl Size {
    /// An amount of whole bytes.
    pub const fn from_bytes(bytes: u64) -> Size {
        Size(bytes)
    }
    /// Bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units =
            [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s"), (1, "bit/s")];
        f.pad(&print_exact(self.0, &units))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match whole.iter().find(|&&(factor, _)| self.0 >= factor && self.0.is_multiple_of(factor)) {
            Some(&(factor, unit)) => f.pad(&format!("{}{unit}", self.0 / factor)),
            None => f.pad(&format!("{}B", self.0)),
        }
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    /// Reads `10mbit`, `1.544Mbit/s`, `125kB/s`. Prefixes are powers of 1000. The words `kbps` and
    /// `mbps` are refused, because some tools mean bytes by them and others bits.
    fn from_str(text: &str) -> Result<Rate, ParseError> {
        let reading = Reading {
            what: "rate",
            allowed: "bit/s, kbit/s, Mbit/s, Gbit/s (or kB/s, MB/s in bytes)",
            example: "10Mbit/s",
            finest: "1 bit/s",
        };
        ambiguous_rate(text)?;
        let outside = || ParseError::Range {
            what: "rate",
            found: text.trim().to_string(),
            lowest: Rate(1).to_string(),
            highest: Rate(RATE_MAX).to_string(),
        };
        match reading.exact(text, rate_unit) {
            Ok(bits) if (1..=RATE_MAX).contains(&bits) => Ok(Rate(bits)),
            Ok(_) | Err(ParseError::Range { .. }) => Err(outside()),
            Err(other) => Err(other),
        }
    }
}

/// 10 Tbit/s: beyond any line that this program could hold.
const RATE_MAX: u64 = 10_000_000_000_000;

/// Refuses `10M` and `10Mbps`, which are bits to some programs and bytes to others.
fn ambiguous_rate(text: &str) -> Result<(), ParseError> {
    let (number, unit) = number_and_unit(text);
    let lower = unit.to_ascii_lowercase();
    let prefix = lower.strip_suffix("bps").unwrap_or(&lower);
    let letter = match prefix {
        "k" => "k",
        "m" => "M",
        "g" => "G",
        _ => return Ok(()),
    };
    Err(ParseError::Ambiguous {
        found: text.trim().into(),
        why: "is bits to some programs and bytes to others",
        better: format!("{number}{letter}bit/s, or {number}{letter}B/s if bytes are meant"),
    })
}

fn rate_unit(unit: &str) -> Option<u64> {
    let per_second = unit.strip_suffix("/s");
    let word = per_second.unwrap_or(unit);
    if let Some(prefix) = word.strip_suffix('B').filter(|_| per_second.is_some()) {
        return prefix_factor(prefix).map(|factor| factor * 8);
    }
    let lower = word.to_ascii_lowercase();
    let prefix = lower.strip_suffix("bit").or_else(|| {
        // "Mb/s" is bits by its small b; a bare "10M" or "mbps" could be either and is refused.
        per_second.and_then(|_| word.strip_suffix('b')).map(|_| &lower[..lower.len() - 1])
    })?;
    prefix_factor(prefix)
}

fn prefix_factor(prefix: &str) -> Option<u64> {
    match prefix.to_ascii_lowercase().as_str() {
        "" => Some(1),
        "k" => Some(1_000),
        "m" => Some(1_000_000),
        "g" => Some(1_000_000_000),
        "t" => Some(1_000_000_000_000),
        _ => None,
    }
}

impl FromStr for Size {
    type Err = ParseError;

    /// Reads `1500`, `1500B`, `32KiB`, `1MB`. `KB`, `MB`, `GB`, `TB` are powers of 1000, `KiB` … of 1024.
    fn from_str(text: &str) -> Result<Size, ParseError> {
        let reading = Reading {
            what: "size",
            allowed: "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB",
            example: "32KiB",
            finest: "1 byte",
        };
        reading
            .exact(text, |unit| match unit.to_ascii_lowercase().as_str() {
                "" | "b" | "byte" | "bytes" => Some(1),
                "kb" => Some(1_000),
                "mb" => Some(1_000_000),
                "gb" => Some(1_000_000_000),
                "tb" => Some(1_000_000_000_000),
                "kib" => Some(1 << 10),
                "mib" => Some(1 << 20),
                "gib" => Some(1 << 30),
                "tib" => Some(1 << 40),
                _ => None,
            })
            .map(Size)
    }
}

/// Deserialises any type that is read from text.
pub(crate) fn deserialize_text<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: FromStr,
    T::Err: fmt::Display,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

macro_rules! serde_as_text {
    ($($name:ty),*) => {$(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserialize_text(deserializer)
            }
        }
    )*};
}
serde_as_text!(Rate, Size);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates() {
        for (text, bits) in [
            ("1.544Mbit/s", 1_544_000),
            ("10mbit", 10_000_000),
            ("56kbit", 56_000),
            ("1gbit", 1_000_000_000),
            ("155.52Mb/s", 155_520_000),
            ("125kB/s", 1_000_000),
            ("9600bit/s", 9_600),
        ] {
            assert_eq!(text.parse::<Rate>().unwrap().bits_per_second(), bits, "{text}");
        }
        for text in
            ["10mbps", "10", "10M", "fast", "-1mbit", "0mbit", "1e9bit", "99999tbit", "10MB"]
        {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
        for text in ["0bit", "99999tbit", "999999999999999999999999gbit"] {
            let told = text.parse::<Rate>().unwrap_err().to_string();
            assert!(told.ends_with("a rate lies between 1bit/s and 10000Gbit/s"), "{told}");
        }
        assert_eq!("1544kbit".parse::<Rate>().unwrap().to_string(), "1.544Mbit/s");
    }

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("32KiB", 32_768), ("1500", 1_500), ("1MB", 1_000_000), ("0", 0), ("1.5KiB", 1_536)]
        {
            assert_eq!(text.parse::<Size>().unwrap().bytes(), bytes, "{text}");
        }
        let units = ["B", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB"];
        let bytes = units.map(|unit| format!("3{unit}").parse::<Size>().unwrap().bytes() / 3);
        let decimal = [1, 1000, 1_000_000, 1_000_000_000, 1_000_000_000_000];
        assert_eq!(
            (&bytes[..5], &bytes[5..]),
            (&decimal[..], &[10, 20, 30, 40].map(|it| 1 << it)[..])
        );
        for text in ["", "12 parsecs", "-1", "0.5B"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        assert_eq!(Size::from_bytes(32_768).to_string(), "32KiB");
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(bits in 1..=RATE_MAX, bytes in 0..i64::MAX as u64) {
            prop_assert_eq!(Rate(bits).to_string().parse::<Rate>().unwrap(), Rate(bits));
            prop_assert_eq!(Size(bytes).to_string().parse::<Size>().unwrap(), Size(bytes));
        }
    }
}
