//! The values of settings: how each type is read, written and held against a range.

use crate::Limit;
use crate::discipline::Gain;
use crate::spec::{SpecError, within};
use std::fmt::Display;
use std::ops::RangeInclusive;
use trunkline_core::{Probability, Rate, Size, Span, number_and_unit};

/// What help calls a value that is true or false.
pub const FLAG: &str = "true or false";

/// A type of settings.
pub trait Value: Copy {
    /// What its range is stated in.
    type Bound: PartialOrd + Display + Copy;
    /// What help calls it.
    const UNIT: &'static str;
    /// Reads it, or says what is wrong; `example` is its default.
    ///
    /// # Errors
    /// What was found, and what is allowed.
    fn read(text: &str, example: &str) -> Result<Self, String>;
    /// What reads back the same. `None` for one that is not set.
    fn write(&self) -> Option<String>;
    /// The value to be compared with a range.
    fn bound(&self) -> Option<Self::Bound> {
        None
    }
}

/// Implements [`Value`] for types that write themselves: those with a range, and those without.
macro_rules! values {
    ($($Type:ty as $Bound:ty, $unit:expr, $read:expr, $bound:expr;)+) => {
        $(impl Value for $Type {
            type Bound = $Bound;
            const UNIT: &'static str = $unit;
            fn read(text: &str, example: &str) -> Result<$Type, String> {
                let read: fn(&str, &str) -> Result<$Type, String> = $read;
                read(text, example)
            }
            fn write(&self) -> Option<String> {
                Some(self.to_string())
            }
            fn bound(&self) -> Option<$Bound> {
                let bound: fn($Type) -> Option<$Bound> = $bound;
                bound(*self)
            }
        })+
    };
}

values! {
    u8 as u8, "number", |text, example| count(text, "", example), Some;
    u32 as u32, "number", |text, example| count(text, "", example), Some;
    u64 as u64, "number", |text, example| count(text, "", example), Some;
    Span as Span, "time", |text, _| own(text), Some;
    Rate as Rate, "rate", |text, _| own(text), Some;
    Gain as Gain, "gain in Hz", |text, _| own(text), Some;
    Probability as Probability, "share", |text, _| own(text), Some;
    Limit as u8, "bytes, packets or cells", |text, _| own(text), |_| None;
    bool as u8, FLAG, |text, _| {
        text.parse().map_err(|_| format!("'{text}' is neither true nor false"))
    }, |_| None;
}

impl<T: Value> Value for Option<T> {
    type Bound = T::Bound;
    const UNIT: &'static str = T::UNIT;
    fn read(text: &str, example: &str) -> Result<Option<T>, String> {
        T::read(text, example).map(Some)
    }
    fn write(&self) -> Option<String> {
        self.as_ref().and_then(T::write)
    }
    fn bound(&self) -> Option<T::Bound> {
        self.as_ref().and_then(T::bound)
    }
}

/// How a key's value is written.
pub trait Codec<T> {
    /// What help calls it.
    const UNIT: &'static str;
    /// As [`Value::read`].
    ///
    /// # Errors
    /// As there.
    fn read(text: &str, example: &str) -> Result<T, String>;
    /// As [`Value::write`].
    fn write(value: &T) -> Option<String>;
}

/// As the type has it.
#[derive(Debug)]
pub struct Plain;

impl<T: Value> Codec<T> for Plain {
    const UNIT: &'static str = T::UNIT;
    fn read(text: &str, example: &str) -> Result<T, String> {
        T::read(text, example)
    }
    fn write(value: &T) -> Option<String> {
        value.write()
    }
}

/// A number of bytes, read with or without its unit.
#[derive(Debug)]
pub struct Bytes;

impl Codec<u32> for Bytes {
    const UNIT: &'static str = "bytes";
    fn read(text: &str, _example: &str) -> Result<u32, String> {
        let bytes = own::<Size>(text)?.bytes();
        u32::try_from(bytes).map_err(|_| format!("'{text}' is too large: use less than 4GiB"))
    }
    fn write(value: &u32) -> Option<String> {
        Some(value.to_string())
    }
}

impl Codec<Option<u32>> for Bytes {
    const UNIT: &'static str = <Bytes as Codec<u32>>::UNIT;
    fn read(text: &str, example: &str) -> Result<Option<u32>, String> {
        <Bytes as Codec<u32>>::read(text, example).map(Some)
    }
    fn write(value: &Option<u32>) -> Option<String> {
        value.as_ref().and_then(<Bytes as Codec<u32>>::write)
    }
}

/// A whole number of percent, read with or without `%`.
#[derive(Debug)]
pub struct Percent;

impl Codec<u8> for Percent {
    const UNIT: &'static str = "percent";
    fn read(text: &str, example: &str) -> Result<u8, String> {
        count(text, "%", example)
    }
    fn write(value: &u8) -> Option<String> {
        Some(format!("{value}%"))
    }
}

/// A number of ATM cells, read with or without `c`.
#[derive(Debug)]
pub struct Cells;

impl Codec<u64> for Cells {
    const UNIT: &'static str = "cells";
    fn read(text: &str, example: &str) -> Result<u64, String> {
        count(text, "c", &format!("{example} (cells)"))
    }
    fn write(value: &u64) -> Option<String> {
        Some(value.to_string())
    }
}

/// What the key `limit` holds.
pub trait Amount {
    /// The limit that it stands for.
    fn limit(&self) -> Limit;
    /// Takes a new limit, unless it is of another unit.
    fn set(&mut self, limit: Limit) -> bool;
}

impl Amount for Limit {
    fn limit(&self) -> Limit {
        *self
    }
    fn set(&mut self, limit: Limit) -> bool {
        *self = limit;
        true
    }
}

/// Cells.
impl Amount for u64 {
    fn limit(&self) -> Limit {
        Limit::Cells(*self)
    }
    fn set(&mut self, limit: Limit) -> bool {
        if let Limit::Cells(cells) = limit {
            *self = cells;
        }
        matches!(limit, Limit::Cells(_))
    }
}

/// Reads what has a reader of its own.
fn own<T: std::str::FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|cause: T::Err| cause.to_string())
}

/// Reads a whole number, with or without `unit`.
fn count<T: std::str::FromStr>(text: &str, unit: &str, example: &str) -> Result<T, String> {
    let (number, found) = number_and_unit(text);
    let complaint = || format!("'{text}' is not a whole number in range, such as {example}");
    if !found.is_empty() && found != unit {
        return Err(complaint());
    }
    number.parse().map_err(|_| complaint())
}

/// Refuses a value of `key` outside `range`. If another key is an end of the range, as its source `text` tells, the
/// complaint names that too.
pub(crate) fn inside<T: Value>(
    what: &'static str,
    value: T,
    range: RangeInclusive<T::Bound>,
    (key, text): (&str, &str),
) -> Result<(), SpecError> {
    let Some(value) = value.bound() else { return Ok(()) };
    within(what, value, *range.start(), *range.end()).map_err(|error| match error {
        SpecError::Range { what, found, lowest, highest } => {
            let (low, high) = text.split_once("..=").unwrap_or_default();
            let what = if what.contains(key) { what } else { format!("{what} ({key})") };
            let (lowest, highest) = (named(low, lowest), named(high, highest));
            SpecError::Range { what, found, lowest, highest }
        }
        other => other,
    })
}

/// The end of a range, with its name if it is another key.
fn named(source: &str, end: String) -> String {
    let source = source.trim();
    let is_key = !source.is_empty() && source.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if is_key { format!("its {source} {end}") } else { end }
}

/// The ends of a range as text.
pub(crate) fn bounds<T: Value>(range: RangeInclusive<T::Bound>) -> (String, String) {
    (range.start().to_string(), range.end().to_string())
}
