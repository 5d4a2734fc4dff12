//! How many traffics have charts: files and a page of thousands of them serve nobody.

use std::str::FromStr;

/// Traffics that have charts of their own, the first in the order of the results; tables, `run.json` and the CSV files
/// always hold all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charts {
    /// Every one; each takes some five files for each of the first cells.
    All,
    /// At most so many; `none` is 0.
    AtMost(u32),
}

impl Default for Charts {
    /// More than one looks at, and a few hundred files at most.
    fn default() -> Charts {
        Charts::AtMost(20)
    }
}

impl Charts {
    /// How many of `traffics` have charts.
    pub(crate) fn of(self, traffics: usize) -> usize {
        match self {
            Charts::All => traffics,
            Charts::AtMost(most) => traffics.min(most as usize),
        }
    }
}

/// A text that says no number of traffics.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{found}' is no number of traffics; use all, none or a whole number such as 20")]
pub struct ChartsError {
    /// The text that was found.
    pub found: String,
}

impl FromStr for Charts {
    type Err = ChartsError;
    fn from_str(text: &str) -> Result<Charts, ChartsError> {
        match text {
            "all" => Ok(Charts::All),
            "none" => Ok(Charts::AtMost(0)),
            number => number
                .parse()
                .map(Charts::AtMost)
                .map_err(|_| ChartsError { found: text.chars().take(40).collect() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read() {
        for (text, of_fifty) in [("all", 50), ("none", 0), ("7", 7), ("51", 50)] {
            assert_eq!(text.parse::<Charts>().unwrap().of(50), of_fifty, "{text}");
        }
        for wrong in ["", "-1", "1e3", "some", "4294967296"] {
            let error = wrong.parse::<Charts>().unwrap_err().to_string();
            assert!(error.contains("all, none"), "{wrong}: {error}");
        }
    }
}
