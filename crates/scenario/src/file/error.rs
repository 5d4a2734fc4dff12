//! What is wrong with a scenario file, in one line.

use std::fmt;
use thiserror::Error;

/// Longest problem text that is shown; a file may hold values of any length.
const LONGEST: usize = 600;

/// Why a scenario file cannot be used. The text is one line: file, line, key, what was found, and what
/// is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {cause}; give the path of a scenario file in TOML")]
    Unreadable {
        /// Its path.
        file: String,
        /// What the system said.
        cause: String,
    },
    /// The text is not TOML.
    #[error("{file}:{line}: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What was found, and what the reader of TOML expected.
        problem: String,
    },
    /// A key is wrong, missing, or at odds with another.
    #[error("{file}:{line}: {key}: {problem}")]
    Wrong {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The key with the element that it belongs to: `link.t1.rate`.
        key: String,
        /// What was found, and what is allowed.
        problem: String,
    },
}

/// A problem with a place in the text, whatever the file is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// Byte offset.
    pub at: usize,
    /// The key with its element; empty if the text is not TOML at all.
    pub key: String,
    /// What was found, and what is allowed.
    pub problem: String,
}

impl Wrong {
    pub fn new(at: usize, key: impl Into<String>, problem: impl Into<String>) -> Wrong {
        Wrong { at, key: key.into(), problem: problem.into() }
    }

    /// The same, told of a file.
    pub fn of(self, file: &str, text: &str) -> ScenarioError {
        let (file, problem) = (one_line(file), one_line(&self.problem));
        let before = text.as_bytes().iter().take(self.at);
        let line = 1 + before.filter(|&&byte| byte == b'\n').count();
        if self.key.is_empty() {
            return ScenarioError::Syntax { file, line, problem };
        }
        ScenarioError::Wrong { file, line, key: one_line(&self.key), problem }
    }
}

/// `text` without control characters, and not too long.
pub(super) fn one_line(text: &str) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    match text.chars().nth(LONGEST) {
        None => clean.collect(),
        Some(_) => clean.take(LONGEST).chain(['…']).collect(),
    }
}

/// Words joined by commas, `nothing` if there are none.
pub(super) fn list<W: fmt::Display>(words: impl IntoIterator<Item = W>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    if words.is_empty() { "none".into() } else { words.join(", ") }
}

/// The word of `known` that `found` was probably meant to be.
pub(super) fn nearest<'a>(
    found: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let found = found.to_lowercase();
    if found.len() > 40 {
        return None;
    }
    let scored = known.into_iter().map(|word| (distance(&found, word), word));
    let allowed = |word: &str| (word.len().max(found.len()) / 3).clamp(1, 3);
    scored.filter(|&(far, word)| far <= allowed(word)).min_by_key(|&(far, _)| far).map(|it| it.1)
}

/// How many letters to put in, take out, exchange, or swap with their neighbour (Damerau 1964).
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut table = vec![vec![0; other.len() + 1]; one.len() + 1];
    for row in 0..=one.len() {
        for column in 0..=other.len() {
            table[row][column] = cell(&table, &one[..row], &other[..column]);
        }
    }
    table[one.len()][other.len()]
}

/// The distance of two beginnings, from those of shorter ones.
fn cell(table: &[Vec<usize>], one: &[char], other: &[char]) -> usize {
    let (row, column) = (one.len(), other.len());
    if row == 0 || column == 0 {
        return row + column;
    }
    let exchanged = table[row - 1][column - 1] + usize::from(one[row - 1] != other[column - 1]);
    let moved = table[row - 1][column].min(table[row][column - 1]) + 1;
    let swap = row > 1 && column > 1 && one[row - 2..] == [other[column - 1], other[column - 2]];
    let swapped = if swap { table[row - 2][column - 2] + 1 } else { usize::MAX };
    exchanged.min(moved).min(swapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_or_none() {
        let known = ["delay", "rate", "discipline", "limit"];
        assert_eq!(nearest("dealy", known), Some("delay"));
        assert_eq!(nearest("delays", known), Some("delay"));
        assert_eq!(nearest("Rate", known), Some("rate"));
        assert_eq!(nearest("disciplin", known), Some("discipline"));
        assert_eq!(nearest("bandwidth", known), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn problems_are_one_line_and_not_too_long() {
        let wrong = Wrong::new(3, "a\nb", "x\ty".repeat(1000)).of("f\n", "1\n2\n3");
        let text = wrong.to_string();
        assert!(text.starts_with("f :2: a b: x yx y"), "{text}");
        assert!(text.ends_with('…') && text.chars().count() < LONGEST + 20);
    }
}
