//! The number of measurements of a traffic that are kept.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The number of measurements of each traffic that are kept one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Every one, whatever memory that takes: some 160 bytes each.
    All,
    /// At most so many; `none` is 0.
    AtMost(u32),
}

impl Default for Keep {
    /// Enough for every figure to be exact in all but the longest runs; some 16 MB for each traffic.
    fn default() -> Keep {
        Keep::AtMost(100_000)
    }
}

impl Keep {
    pub(crate) fn most(self) -> usize {
        match self {
            Keep::All => usize::MAX,
            Keep::AtMost(most) => most as usize,
        }
    }
}

/// A text that says no number of samples.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is no number of samples; use all, none or a whole number such as 100000")]
pub struct KeepError {
    /// The text that was found.
    pub found: String,
}

impl FromStr for Keep {
    type Err = KeepError;
    fn from_str(text: &str) -> Result<Keep, KeepError> {
        match text {
            "all" => Ok(Keep::All),
            "none" => Ok(Keep::AtMost(0)),
            number => number
                .parse()
                .map(Keep::AtMost)
                .map_err(|_| KeepError { found: text.chars().take(40).collect() }),
        }
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::All => f.pad("all"),
            Keep::AtMost(0) => f.pad("none"),
            Keep::AtMost(most) => f.pad(&most.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_and_printed() {
        for text in ["all", "none", "1", "100000"] {
            assert_eq!(text.parse::<Keep>().unwrap().to_string(), text);
        }
        for wrong in ["", "-1", "1e5", "some", "4294967296"] {
            assert!(
                wrong.parse::<Keep>().unwrap_err().to_string().contains("all, none"),
                "{wrong}"
            );
        }
    }
}
