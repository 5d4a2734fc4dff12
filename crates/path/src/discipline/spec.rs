//! What can be asked of a discipline's description, whatever its kind.

use super::settings::{Key, Keys, Limited, Settings};
use super::{Assumptions, DisciplineSpec, FifoSettings, KINDS, settings_of};
use crate::Limit;
use crate::spec::SpecError;

/// A kind of discipline: what its file says of it.
#[derive(Debug, Clone, Copy)]
pub struct DisciplineKind {
    /// Its name.
    pub name: &'static str,
    /// Its work, and the document that states it.
    about: &'static str,
    /// Its keys, with defaults for a link of this limit.
    keys: fn(Limit) -> Vec<Key>,
    /// Other names that it goes by elsewhere.
    pub(super) aliases: &'static [&'static str],
    /// Settings under which property tests try it.
    pub trials: &'static [&'static str],
}

impl DisciplineKind {
    /// The kind that `S` describes, under `name`.
    pub(super) const fn of<S: Settings>(name: &'static str) -> DisciplineKind {
        let keys = |limit| limit_last(S::with_limit(limit).described(), |key| key.name);
        DisciplineKind { name, about: S::ABOUT, keys, aliases: S::ALIASES, trials: S::TRIALS }
    }

    /// Its work, and the document that states it, in one line.
    pub fn about(&self) -> &'static str {
        self.about.trim_ascii()
    }

    /// Its keys. A key whose default is that of the link has none here.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = (self.keys)(Limit::Bytes(1));
        for (key, other) in keys.iter_mut().zip((self.keys)(Limit::Bytes(2))) {
            key.default = key.default.take().filter(|it| Some(it) == other.default.as_ref());
        }
        keys
    }

    /// The texts under which property tests try it.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.trials.iter().map(|trial| format!("{}:{trial}", self.name))
    }
}

/// All kinds with their keys, as `--queue help` prints them.
pub fn help() -> String {
    let kinds = KINDS.iter().map(|kind| {
        let keys = kind.keys().iter().map(Key::line).collect::<String>();
        format!("{}\n    {}\n{keys}", kind.name, kind.about())
    });
    let list = kinds.collect::<Vec<_>>().join("\n");
    format!("Queue disciplines, written KIND or KIND:KEY=VALUE,…\n\n{list}")
}

impl Key {
    fn line(&self) -> String {
        let Key { name, help, unit, .. } = self;
        let default = match &self.default {
            Some(default) => format!("={default}"),
            None => String::new(),
        };
        let range = self.range.as_ref().map(|(low, high)| format!(", {low} to {high}"));
        format!("    {name}{default} ({unit}{}): {help}\n", range.unwrap_or_default())
    }
}

/// The order of the text form: as declared, with the limit last.
pub(super) fn limit_last<T>(mut keys: Vec<T>, name: impl Fn(&T) -> &'static str) -> Vec<T> {
    keys.sort_by_key(|key| name(key) == "limit");
    keys
}

impl DisciplineSpec {
    /// First in, first out, of at most `limit`.
    pub const fn fifo(limit: Limit) -> DisciplineSpec {
        DisciplineSpec::Fifo(FifoSettings { limit })
    }

    /// Checks every setting against its range.
    ///
    /// # Errors
    /// The first that is outside, or two at odds with each other.
    pub fn check(&self) -> Result<(), SpecError> {
        settings_of!(self, it => it.check_ranges().and_then(|()| it.check()))
    }

    /// Checks the limit on what waits, when it is settled.
    ///
    /// # Errors
    /// A limit under which the discipline does nothing of its own.
    pub fn check_limit(&self) -> Result<(), SpecError> {
        settings_of!(self, it => it.check_limit())
    }

    /// The limit on what waits.
    pub fn limit(&self) -> Limit {
        settings_of!(self, it => it.limit())
    }

    /// Replaces the limit on what waits.
    ///
    /// # Errors
    /// A limit in another unit than cells for a discipline that counts them.
    pub fn set_limit(&mut self, new: Limit) -> Result<(), SpecError> {
        if settings_of!(&mut *self, it => it.set_limit(new)) {
            return Ok(());
        }
        Err(SpecError::Conflict(format!(
            "the limit of {} is in cells, not {new}: write {}c",
            self.kind(),
            new.most_bytes(1500) / 48
        )))
    }

    /// Whether it is first in, first out, with nothing that drops or holds back before it is full.
    pub fn is_fifo(&self) -> bool {
        self.assumptions() == Assumptions::FIFO
    }

    /// What the formulas assume of it.
    pub fn assumptions(&self) -> Assumptions {
        settings_of!(self, it => it.assumptions())
    }

    /// Every key with its value as text, in the order of the text form.
    pub(super) fn written(&self) -> Vec<(&'static str, Option<String>)> {
        limit_last(settings_of!(self, it => it.written()), |&(name, _)| name)
    }
}
