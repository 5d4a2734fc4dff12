//! The description of a medium, checked before anything is built from it.

use super::{AccessSettings, AccessSpec, KINDS};
use crate::discipline::Key;
use crate::discipline::settings::Given;
use crate::{
    AnyDiscipline, Discipline, DisciplineSpec, DisciplineTextError, Framing, Limit, LinkSpec,
    SpecError,
};
use std::fmt;
use thiserror::Error;
use trunkline_core::{Packet, Rate, Seed, Span};

/// Media have no limit of their own: their stations' disciplines have.
pub(super) const NO_LIMIT: Limit = Limit::Bytes(u64::MAX);

/// A medium.
#[derive(Debug, Clone, PartialEq)]
pub struct MediumSpec {
    /// The rate at which a station sends. Sending takes no time without one.
    pub rate: Option<Rate>,
    /// How user bytes become bits.
    pub framing: Framing,
    /// Propagation delay: one way between any two stations; of a ring, once round.
    pub delay: Span,
    /// The queue of each station.
    pub discipline: DisciplineSpec,
    /// How the stations take turns.
    pub access: AccessSpec,
}

impl MediumSpec {
    /// Checks that a medium can be built from this description.
    ///
    /// # Errors
    /// The first setting that is out of its range or at odds with another.
    pub fn check(&self) -> Result<(), SpecError> {
        let MediumSpec { rate, framing, delay, ref discipline, ref access } = *self;
        let line = LinkSpec {
            rate,
            framing,
            delay,
            discipline: discipline.clone(),
            ..LinkSpec::default()
        };
        line.check()?;
        let queue: AnyDiscipline<Packet<()>> = AnyDiscipline::new(discipline, Seed(0), "");
        if queue.quantum().is_some() {
            return Err(SpecError::Conflict(format!(
                "the discipline {} serves parts of packets, and the stations of a medium send whole frames: give another, such as drr",
                discipline.kind()
            )));
        }
        access.check(self)
    }
}

/// A kind of medium: what its file says of it.
#[derive(Debug, Clone, Copy)]
pub struct MediumKind {
    /// Its name.
    pub name: &'static str,
    /// Its work, and the document that states it.
    about: &'static str,
    /// Its own keys.
    keys: fn() -> Vec<Key>,
    /// Settings under which property tests try it.
    pub trials: &'static [&'static str],
    /// Whether a run is the same in whatever order its stations are declared.
    pub stations_alike: bool,
}

impl MediumKind {
    /// The kind that `S` describes, under `name`.
    pub(super) const fn of<S: AccessSettings>(name: &'static str) -> MediumKind {
        let keys = || S::with_limit(NO_LIMIT).described();
        let (trials, stations_alike) = (S::TRIALS, S::STATIONS_ALIKE);
        MediumKind { name, about: S::ABOUT, keys, trials, stations_alike }
    }

    /// Its work, and the document that states it, in one line.
    pub fn about(&self) -> &'static str {
        self.about.trim_ascii()
    }

    /// Its own keys.
    pub fn keys(&self) -> Vec<Key> {
        (self.keys)()
    }
}

/// Why the text of an access could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct MediumTextError {
    /// The key that it is about, if it is about one.
    pub key: Option<&'static str>,
    /// What was found and what is allowed.
    pub problem: String,
}

impl fmt::Display for MediumTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key {
            Some(key) => write!(f, "key '{key}': {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl AccessSpec {
    /// Reads `kind` with its keys, `key=value,…`. [`KINDS`] has the keys with their defaults.
    ///
    /// # Errors
    /// A kind, key or value that there is not, with what there is. Ranges are checked with the medium.
    pub fn read(kind: &str, pairs: &str) -> Result<AccessSpec, MediumTextError> {
        let problem = |problem: String| MediumTextError { key: None, problem };
        let mut given = Given::new(kind, pairs);
        let entry = KINDS.iter().find(|entry| entry.name == kind);
        let (Some(entry), Some(read)) = (entry, AccessSpec::read_kind(kind, &mut given)) else {
            let names: Vec<&str> = KINDS.iter().map(|entry| entry.name).collect();
            return Err(problem(format!("'{kind}' is no medium: use one of {}", names.join(", "))));
        };
        let known: Vec<&'static str> = entry.keys().iter().map(|key| key.name).collect();
        read.and_then(|access| given.finish(&known).map(|()| access)).map_err(|error| match error {
            DisciplineTextError::Value { key, cause, .. } => {
                MediumTextError { key: Some(key), problem: cause }
            }
            DisciplineTextError::NotAPair { found, allowed, .. } => {
                problem(format!("'{found}' in {kind} is not key=value: the keys are {allowed}"))
            }
            DisciplineTextError::Key { found, allowed, .. } => {
                problem(format!("{kind} has no key '{found}': its own are {allowed}"))
            }
            DisciplineTextError::Twice { found, .. } => {
                problem(format!("{kind} has the key '{found}' twice: leave one of them out"))
            }
            other => problem(other.to_string()),
        })
    }
}
