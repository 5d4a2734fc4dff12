//! The limit of a queue.

use crate::framing::aal5_cells;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use trunkline_core::{ParseError, Size, number_and_unit};

/// The limit of a queue, in the unit in which its owner counts.
///
/// Read as `64KiB`, `1000p` (packets) or `1200c` (ATM cells).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// User bytes.
    Bytes(u64),
    /// Packets.
    Packets(u64),
    /// ATM cells, each packet counted with its AAL5 trailer and padding.
    Cells(u64),
}

impl Limit {
    /// The amount for which one packet of `size` user bytes counts towards this limit.
    pub fn weight(self, size: u32) -> u64 {
        match self {
            Limit::Bytes(_) => u64::from(size),
            Limit::Packets(_) => 1,
            Limit::Cells(_) => aal5_cells(size),
        }
    }

    /// The bare number.
    pub fn amount(self) -> u64 {
        match self {
            Limit::Bytes(amount) | Limit::Packets(amount) | Limit::Cells(amount) => amount,
        }
    }

    /// The most user bytes that a queue at this limit can hold, with packets of at most `mtu` bytes.
    pub fn most_bytes(self, mtu: u32) -> u64 {
        match self {
            Limit::Bytes(bytes) => bytes,
            Limit::Packets(packets) => packets.saturating_mul(u64::from(mtu)),
            Limit::Cells(cells) => cells.saturating_mul(48),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Bytes(bytes) => Size::from_bytes(*bytes).fmt(f),
            Limit::Packets(packets) => write!(f, "{packets}p"),
            Limit::Cells(cells) => write!(f, "{cells}c"),
        }
    }
}

impl FromStr for Limit {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Limit, ParseError> {
        let (number, unit) = number_and_unit(text);
        let count = || {
            number.parse::<u64>().map_err(|_| ParseError::NotANumber {
                what: "limit",
                found: text.trim().into(),
                example: "64KiB, 1000p (packets) or 1200c (cells)",
            })
        };
        let limit = match unit {
            "p" | "packet" | "packets" => Limit::Packets(count()?),
            "c" | "cell" | "cells" => Limit::Cells(count()?),
            _ => Limit::Bytes(text.parse::<Size>()?.bytes()),
        };
        if limit.amount() == 0 {
            return Err(ParseError::Range {
                what: "limit",
                found: text.trim().into(),
                lowest: "1B, 1p or 1c".into(),
                highest: "2^63".into(),
            });
        }
        Ok(limit)
    }
}

impl Serialize for Limit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
