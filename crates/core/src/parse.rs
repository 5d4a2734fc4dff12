//! Reading quantities as people write them: an exact decimal number and a unit.

use thiserror::Error;

/// The reason why a quantity could not be read. The text names what was found and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseError {
    /// No digits at the start.
    #[error("'{found}' is not a {what}: expected a number and a unit, such as {example}")]
    NotANumber {
        /// The quantity being read ("delay", "rate" …).
        what: &'static str,
        /// The offending text.
        found: String,
        /// A good value.
        example: &'static str,
    },
    /// The unit is missing or unknown.
    #[error("'{found}' has {}: a {what} takes one of {allowed}, such as {example}", unit_words(.unit))]
    Unit {
        /// The quantity being read.
        what: &'static str,
        /// The offending text.
        found: String,
        /// The unit found, perhaps empty.
        unit: String,
        /// The allowed units.
        allowed: &'static str,
        /// A good value.
        example: &'static str,
    },
    /// Negative.
    #[error("'{found}' is negative: a {what} is zero or more")]
    Negative {
        /// The quantity being read.
        what: &'static str,
        /// The offending text.
        found: String,
    },
    /// Larger or smaller than the stated range.
    #[error("'{found}' is out of range: a {what} lies between {lowest} and {highest}")]
    Range {
        /// The quantity being read.
        what: &'static str,
        /// The offending text.
        found: String,
        /// Lowest allowed value.
        lowest: String,
        /// Highest allowed value.
        highest: String,
    },
    /// It means one thing to one program and another to the next.
    #[error("'{found}' {why}: write {better}")]
    Ambiguous {
        /// The offending text.
        found: String,
        /// What it leaves open.
        why: &'static str,
        /// What may have been meant, without doubt.
        better: String,
    },
    /// More digits than the base unit can hold.
    #[error("'{found}' is finer than {finest}, the smallest step of a {what}")]
    TooFine {
        /// The quantity being read.
        what: &'static str,
        /// The offending text.
        found: String,
        /// The smallest step.
        finest: &'static str,
    },
}

fn unit_words(unit: &str) -> String {
    if unit.is_empty() { "no unit".into() } else { format!("the unknown unit '{unit}'") }
}

/// The quantity being read, for the error texts.
pub(crate) struct Reading {
    pub what: &'static str,
    pub allowed: &'static str,
    pub example: &'static str,
    pub finest: &'static str,
}

/// Splits `"1.5 ms"` into the number's text and the unit's text, both trimmed. A sign stays with the number.
pub fn number_and_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(at, c)| {
            !(c.is_ascii_digit() || c == '.' || c == '_' || (at == 0 && (c == '-' || c == '+')))
        })
        .map_or(text.len(), |(at, _)| at);
    (text[..end].trim(), text[end..].trim())
}

impl Reading {
    /// Reads `text` exactly as `number × multiplier(unit)`, refusing fractions of the base unit.
    pub fn exact(
        &self,
        text: &str,
        multiplier: impl Fn(&str) -> Option<u64>,
    ) -> Result<u64, ParseError> {
        let (number, unit) = number_and_unit(text);
        let found = || text.trim().to_string();
        let not_a_number =
            || ParseError::NotANumber { what: self.what, found: found(), example: self.example };
        if let Some(rest) = number.strip_prefix('-') {
            return Err(if rest.is_empty() {
                not_a_number()
            } else {
                ParseError::Negative { what: self.what, found: found() }
            });
        }
        let number = number.strip_prefix('+').unwrap_or(number).replace('_', "");
        let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(not_a_number());
        }
        let zero = whole.bytes().chain(fraction.bytes()).all(|digit| digit == b'0');
        let factor = match multiplier(unit) {
            Some(factor) => factor,
            None if unit.is_empty() && zero => 1,
            None => {
                return Err(ParseError::Unit {
                    what: self.what,
                    found: found(),
                    unit: unit.to_string(),
                    allowed: self.allowed,
                    example: self.example,
                });
            }
        };
        let too_big = || ParseError::Range {
            what: self.what,
            found: found(),
            lowest: "0".into(),
            highest: format!("2^63 of {}", self.finest),
        };
        let fraction = fraction.trim_end_matches('0');
        if whole.trim_start_matches('0').len() > 19 {
            return Err(too_big());
        }
        let too_fine =
            || ParseError::TooFine { what: self.what, found: found(), finest: self.finest };
        if fraction.len() > 18 {
            return Err(too_fine());
        }
        let digits: u128 = format!("{whole}{fraction}").parse().unwrap_or(0);
        let scale = 10u128.pow(fraction.len() as u32);
        let scaled = digits.checked_mul(u128::from(factor)).ok_or_else(too_big)?;
        if !scaled.is_multiple_of(scale) {
            return Err(too_fine());
        }
        u64::try_from(scaled / scale).ok().filter(|&v| v <= i64::MAX as u64).ok_or_else(too_big)
    }
}

/// Prints `value` in the largest unit that shows it exactly in at most three decimals, else in the base unit.
pub(crate) fn print_exact(value: u64, units: &[(u64, &str)]) -> String {
    for &(factor, unit) in units {
        if value >= factor && (u128::from(value) * 1000) % u128::from(factor) == 0 {
            let thousandths = u128::from(value) * 1000 / u128::from(factor);
            let mut text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
            while text.ends_with('0') {
                text.pop();
            }
            return format!("{}{unit}", text.trim_end_matches('.'));
        }
    }
    let unit = units.last().map_or("", |&(_, unit)| unit);
    format!("{value}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const READING: Reading =
        Reading { what: "thing", allowed: "u, G", example: "1u", finest: "1 u" };

    fn read(text: &str) -> Result<u64, ParseError> {
        READING.exact(text, |unit| match unit {
            "u" => Some(1),
            "G" => Some(1_000_000_000_000_000_000),
            _ => None,
        })
    }

    #[test]
    fn the_ends_of_what_can_be_held() {
        assert_eq!(read("9223372036854775807u"), Ok(i64::MAX as u64));
        assert_eq!(read("9.223372036854775807G"), Ok(i64::MAX as u64));
        assert_eq!(read("0.000000000000000001G"), Ok(1));
        for text in ["9223372036854775808u", "10G", "99999999999999999999u"] {
            assert!(matches!(read(text), Err(ParseError::Range { .. })), "{text}");
        }
        for text in ["0.1u", "0.0000000000000000001G"] {
            assert!(matches!(read(text), Err(ParseError::TooFine { .. })), "{text}");
        }
    }

    #[test]
    fn many_digits_on_both_sides_of_the_point_are_too_many() {
        // 37 digits times the unit are beyond 128 bits.
        for text in
            ["2000000000000001639.0000000000000004G", "9999999999999999999.999999999999999999G"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
