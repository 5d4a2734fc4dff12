//! The text forms of impairments: reading, printing, and serde by way of both.

use super::{Jitter, JitterKind, Reorder, Setting, Shape};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use trunkline_core::{ParseError, Probability, Span};

/// The reason why the text of a setting could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingError {
    /// A number or a unit in it.
    #[error(transparent)]
    Quantity(#[from] ParseError),
    /// Its form.
    #[error("'{found}' is no {what}: write {write}")]
    Form {
        /// The setting being read.
        what: &'static str,
        /// The text found.
        found: String,
        /// The form that is allowed.
        write: &'static str,
    },
    /// A line of a file.
    #[error("line {line} of the {what}: '{found}' is not allowed there: {write}")]
    Line {
        /// The kind of file.
        what: &'static str,
        /// The line, counted from 1.
        line: usize,
        /// The text found.
        found: String,
        /// The form that is allowed.
        write: &'static str,
    },
    /// A file without content.
    #[error("the {what} holds nothing: {write}")]
    Empty {
        /// The kind of file.
        what: &'static str,
        /// The form that is allowed.
        write: &'static str,
    },
}

/// The error for `found` if a `what` in the form `write` was expected.
pub(crate) fn form(what: &'static str, found: &str, write: &'static str) -> SettingError {
    SettingError::Form { what, found: found.trim().into(), write }
}

/// Writes and reads a type through its `Display` and `FromStr`.
macro_rules! serde_as_text {
    ($($name:ty),*) => {$(
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
pub(crate) use serde_as_text;

serde_as_text!(Jitter, Reorder);

const JITTER_FORM: &str = "5ms, independent:normal:3ms or correlated:exponential:2ms:rho=0.9 \
                           (kinds ordered, independent, correlated; shapes uniform, normal, exponential)";

impl FromStr for Jitter {
    type Err = SettingError;

    /// Reads `[KIND:][SHAPE:]TIME[:rho=R]`. Left out, the kind is `ordered` and the shape `uniform`,
    /// so that `5ms` spreads packets evenly over ±5 ms and keeps their order.
    fn from_str(text: &str) -> Result<Jitter, SettingError> {
        let wrong = || form("jitter", text, JITTER_FORM);
        let mut words: Vec<&str> = text.trim().split(':').collect();
        let rho = match words.last().and_then(|word| word.strip_prefix("rho=")) {
            Some(rho) => {
                words.pop();
                Some(rho.parse::<Probability>()?)
            }
            None => None,
        };
        let size: Span = words.pop().ok_or_else(wrong)?.parse()?;
        let mut words = words.into_iter().peekable();
        let kind = words.next_if(|word| ["ordered", "independent", "correlated"].contains(word));
        let shape = words.next().unwrap_or("uniform");
        if words.next().is_some() {
            return Err(wrong());
        }
        let kind = match (kind, rho) {
            (None | Some("ordered"), None) => JitterKind::Ordered,
            (Some("independent"), None) => JitterKind::Independent,
            (Some("correlated"), Some(rho)) => JitterKind::Correlated { rho },
            (Some("correlated"), None) => {
                return Err(form("correlated jitter", text, "correlated:normal:3ms:rho=0.9"));
            }
            _ => return Err(wrong()),
        };
        let shape = match shape {
            "uniform" => Shape::Uniform { half: size },
            "normal" => Shape::Normal { deviation: size },
            "exponential" => Shape::Exponential { mean: size },
            _ => return Err(wrong()),
        };
        Ok(Jitter { kind, shape })
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            JitterKind::Ordered => "ordered",
            JitterKind::Independent => "independent",
            JitterKind::Correlated { .. } => "correlated",
        };
        match self.shape {
            Shape::Uniform { half } => write!(f, "{kind}:uniform:{half}")?,
            Shape::Normal { deviation } => write!(f, "{kind}:normal:{deviation}")?,
            Shape::Exponential { mean } => write!(f, "{kind}:exponential:{mean}")?,
        }
        match self.kind {
            JitterKind::Correlated { rho } => write!(f, ":rho={}", rho.as_f64()),
            _ => Ok(()),
        }
    }
}

impl FromStr for Reorder {
    type Err = SettingError;

    /// Reads `1%:5ms`.
    fn from_str(text: &str) -> Result<Reorder, SettingError> {
        let wrong = || form("reordering", text, "a probability and a time, such as 1%:5ms");
        let (probability, extra) = text.split_once(':').ok_or_else(wrong)?;
        Ok(Reorder { probability: probability.parse()?, extra: extra.parse()? })
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.probability, self.extra)
    }
}

/// Reads `none` (or `0`) as nothing, anything else as a `T`.
fn optional<T: FromStr<Err = SettingError>>(text: &str) -> Result<Option<T>, SettingError> {
    match text.trim() {
        "none" | "0" => Ok(None),
        text => text.parse().map(Some),
    }
}

impl Setting {
    /// Reads the value of the setting called `key`; `None` if no impairment has that name.
    pub fn parse(key: &str, value: &str) -> Option<Result<Setting, SettingError>> {
        Some(match key {
            "loss" => value.parse().map(Setting::Loss),
            "bit-errors" | "ber" => value.parse().map(Setting::BitErrors).map_err(Into::into),
            "duplicate" => value.parse().map(Setting::Duplicate).map_err(Into::into),
            "reorder" => optional(value).map(Setting::Reorder),
            "jitter" => optional(value).map(Setting::Jitter),
            _ => return None,
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Loss(loss) => write!(f, "loss={loss}"),
            Setting::BitErrors(rate) => write!(f, "bit-errors={rate}"),
            Setting::Duplicate(probability) => write!(f, "duplicate={probability}"),
            Setting::Reorder(Some(reorder)) => write!(f, "reorder={reorder}"),
            Setting::Reorder(None) => write!(f, "reorder=none"),
            Setting::Jitter(Some(jitter)) => write!(f, "jitter={jitter}"),
            Setting::Jitter(None) => write!(f, "jitter=none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_reads_and_prints() {
        let ms = Span::from_millis;
        let plain: Jitter = "5ms".parse().unwrap();
        assert_eq!(plain.kind, JitterKind::Ordered);
        assert_eq!(plain.shape, Shape::Uniform { half: ms(5) });
        for (text, printed) in [
            ("5ms", "ordered:uniform:5ms"),
            ("exponential:2ms", "ordered:exponential:2ms"),
            ("independent:normal:3ms", "independent:normal:3ms"),
            ("correlated:normal:3ms:rho=0.9", "correlated:normal:3ms:rho=0.9"),
            ("independent:1.5ms", "independent:uniform:1.5ms"),
        ] {
            let jitter: Jitter = text.parse().unwrap();
            assert_eq!(jitter.to_string(), printed);
            assert_eq!(printed.parse::<Jitter>().unwrap(), jitter);
        }
    }

    #[test]
    fn refuses_in_one_line_with_a_remedy() {
        for text in
            ["", "5", "pareto:5ms", "correlated:5ms", "ordered:5ms:rho=0.5", "normal:ordered:5ms"]
        {
            let complaint = text.parse::<Jitter>().unwrap_err().to_string();
            assert!(complaint.contains("ms") && !complaint.contains('\n'), "{complaint}");
        }
        for text in ["1%", "5ms", "1%:", "x:5ms"] {
            assert!(text.parse::<Reorder>().is_err(), "{text}");
        }
        assert!(Setting::parse("speed", "1").is_none());
        assert_eq!(Setting::parse("jitter", "none").unwrap().unwrap(), Setting::Jitter(None));
    }
}
