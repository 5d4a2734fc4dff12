//! Why a study cannot be read or run.

use thiserror::Error;

/// Why a study cannot be read or run: one line with cause and remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StudyError {
    /// No such study.
    #[error("there is no study {found}: name one of {known}, or a directory with a study.toml")]
    Unknown {
        /// What was asked for.
        found: String,
        /// The studies there are.
        known: String,
    },
    /// A file of the study is not there or wrong.
    #[error("{file}: {problem}")]
    File {
        /// The file.
        file: String,
        /// What is the matter with it.
        problem: String,
    },
    /// A scenario file is wrong; the text names file and line.
    #[error("{0}")]
    Scenario(String),
    /// `study.toml` contradicts itself or the files it names.
    #[error("study.toml: {place}: {problem}")]
    Wrong {
        /// The table with its name: `experiment throughput`.
        place: String,
        /// What is the matter, and what would be right.
        problem: String,
    },
}

impl StudyError {
    /// A problem of the table `place` of `study.toml`.
    pub(crate) fn wrong(place: impl Into<String>, problem: impl Into<String>) -> StudyError {
        StudyError::Wrong { place: place.into(), problem: one_line(&problem.into()) }
    }

    /// A problem of a file.
    pub(crate) fn file(file: impl Into<String>, problem: impl Into<String>) -> StudyError {
        StudyError::File { file: file.into(), problem: one_line(&problem.into()) }
    }
}

/// `text` without line breaks.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
