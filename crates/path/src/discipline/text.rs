//! Disciplines as people write them on a command line: `round-robin:quantum=64,limit=500KB`.

use super::settings::Given;
use super::{DisciplineSpec, KINDS, NAMES};
use crate::{Limit, SpecError};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Why the text of a discipline could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DisciplineTextError {
    /// No such discipline.
    #[error("'{found}' is no discipline: {}", remedy(*.meant))]
    Kind {
        /// What was found.
        found: String,
        /// What was probably meant.
        meant: Option<&'static str>,
    },
    /// Something that is not `key=value`.
    #[error("'{found}' in discipline {kind} is not key=value: the keys are {allowed}")]
    NotAPair {
        /// The discipline.
        kind: String,
        /// What was found.
        found: String,
        /// The keys of this discipline.
        allowed: String,
    },
    /// A key that this discipline does not have.
    #[error("discipline {kind} has no key '{found}': the keys are {allowed}")]
    Key {
        /// The discipline.
        kind: String,
        /// The key found.
        found: String,
        /// The keys of this discipline.
        allowed: String,
    },
    /// A key that was given before.
    #[error("discipline {kind} has the key '{found}' twice: leave one of them out")]
    Twice {
        /// The discipline.
        kind: String,
        /// The key.
        found: String,
    },
    /// A value that cannot be read.
    #[error("discipline {kind}, key '{key}': {cause}")]
    Value {
        /// The discipline.
        kind: String,
        /// The key.
        key: &'static str,
        /// What was found and what is allowed.
        cause: String,
    },
    /// A value outside its range.
    #[error("discipline {kind}: {cause}")]
    Spec {
        /// The discipline.
        kind: String,
        /// What was found and what is allowed.
        cause: SpecError,
    },
}

fn remedy(meant: Option<&'static str>) -> String {
    match meant {
        Some(name) => format!("did you mean '{name}'?"),
        None => format!("use one of {NAMES}"),
    }
}

impl DisciplineSpec {
    /// Reads `kind[:key=value,…]`, such as `fifo:limit=64KiB`, `round-robin:quantum=64,limit=500KB`,
    /// `fq-codel:target=5ms` or `epd:threshold=1000,limit=1200`. What [`Display`](fmt::Display) prints reads back
    /// the same. [`KINDS`] has the keys with their defaults; `default_limit` is the limit of those without one.
    ///
    /// # Errors
    /// What is not a discipline, with what would be.
    pub fn parse(text: &str, default_limit: Limit) -> Result<DisciplineSpec, DisciplineTextError> {
        let (kind, pairs) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let kind = kind.trim();
        let mut given = Given::new(kind, pairs);
        let unknown = || DisciplineTextError::Kind { found: kind.into(), meant: meant(kind) };
        let spec = DisciplineSpec::read(kind, &mut given, default_limit).ok_or_else(unknown)??;
        let known: Vec<&'static str> = spec.written().into_iter().map(|(name, _)| name).collect();
        given.finish(&known)?;
        spec.check().map_err(|cause| DisciplineTextError::Spec { kind: kind.into(), cause })?;
        Ok(spec)
    }
}

/// The kind that `found` was probably meant to be: with `-` for `_` and in small letters, under another name, or with
/// one letter too many, too few or wrong.
fn meant(found: &str) -> Option<&'static str> {
    let found = found.to_lowercase().replace('_', "-");
    let names = || KINDS.iter().map(|kind| kind.name);
    let other = || KINDS.iter().find(|kind| kind.aliases.contains(&&*found)).map(|kind| kind.name);
    let exact = names().find(|name| *name == found).or_else(other);
    exact.or_else(|| names().find(|name| name.len() > 3 && is_near(name, &found)))
}

/// Whether one letter put in, taken out or exchanged, or two neighbours swapped, makes one word of the other.
fn is_near(one: &str, other: &str) -> bool {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one.as_bytes()[same..], &other.as_bytes()[same..]);
    let rest = |word: &'_ [u8], skip: usize| word.get(skip..).unwrap_or_default().to_vec();
    let skips = [(1, 1), (1, 0), (0, 1)];
    let swapped =
        || one.len() > 1 && other.starts_with(&[one[1], one[0]]) && one[2..] == other[2..];
    skips.into_iter().any(|(a, b)| rest(one, a) == rest(other, b)) || swapped()
}

impl FromStr for DisciplineSpec {
    type Err = DisciplineTextError;

    /// As [`DisciplineSpec::parse`] with a default limit of 1 GiB, that of a default link.
    fn from_str(text: &str) -> Result<DisciplineSpec, DisciplineTextError> {
        DisciplineSpec::parse(text, Limit::Bytes(1 << 30))
    }
}

impl fmt::Display for DisciplineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.written().into_iter();
        let pairs: Vec<String> =
            pairs.filter_map(|(name, value)| Some(format!("{name}={}", value?))).collect();
        write!(f, "{}:{}", self.kind(), pairs.join(","))
    }
}
