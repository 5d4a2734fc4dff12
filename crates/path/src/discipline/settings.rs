//! The settings of a discipline, described once: fields, defaults, ranges, text form and help.

mod value;

pub use value::{Amount, Bytes, Cells, Codec, FLAG, Percent, Plain, Value};
pub(crate) use value::{bounds, inside};

use super::{Assumptions, Discipline, DisciplineTextError, Standing};
use crate::Limit;
use crate::spec::SpecError;
use trunkline_core::{Metered, Seed, Stream};

/// What a discipline is made from. `settings!` writes [`Keys`]; the rest stands in its file.
pub trait Settings: Keys + Limited + Copy {
    /// The discipline.
    type Queue<P: Metered>: Discipline<P>;

    /// Settings as text, `key=value,…`, under which property tests try it: small limits, short times.
    const TRIALS: &'static [&'static str] = &["limit=3kB"];

    /// Other names that it goes by elsewhere, for "did you mean".
    const ALIASES: &'static [&'static str] = &[];

    /// An empty queue. What it leaves to chance comes from `chance`.
    fn build<P: Metered>(self, chance: &Chance<'_>) -> Self::Queue<P>;

    /// What the formulas assume of it. Unless it says otherwise, that it drops by a rule which they do not know.
    fn assumptions(&self) -> Assumptions {
        Assumptions::managed("a rule of the queue discipline", Standing::Unknown)
    }

    /// Checks what ranges alone do not say.
    ///
    /// # Errors
    /// Two settings at odds with each other.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }

    /// Checks the limit on what waits, which may come from the link.
    ///
    /// # Errors
    /// A limit under which the discipline does nothing of its own.
    fn check_limit(&self) -> Result<(), SpecError> {
        Ok(())
    }
}

/// The source of a discipline's random draws.
#[derive(Debug, Clone, Copy)]
pub struct Chance<'a> {
    /// The seed of the run.
    pub seed: Seed,
    /// The name of the link.
    pub link: &'a str,
}

impl Chance<'_> {
    /// The stream of the link's queue.
    pub fn stream(&self) -> Stream {
        self.seed.stream(&format!("{}/queue", self.link))
    }
}

/// The keys of a discipline or a medium, as `keys!` writes them.
pub trait Keys: Sized {
    /// Its work, and the document that states it.
    const ABOUT: &'static str;

    /// The defaults. `limit` is how much may wait, unless the discipline has a default of its own.
    fn with_limit(limit: Limit) -> Self;

    /// Reads the keys that are given.
    ///
    /// # Errors
    /// A value that cannot be read.
    fn read(given: &mut Given<'_>, limit: Limit) -> Result<Self, DisciplineTextError>;

    /// Every key with its value as text, `None` for one that is not set.
    fn written(&self) -> Vec<(&'static str, Option<String>)>;

    /// The description of every key, with the defaults and ranges of these settings.
    fn described(&self) -> Vec<Key>;

    /// Checks every value against its range.
    ///
    /// # Errors
    /// The first that is outside.
    fn check_ranges(&self) -> Result<(), SpecError>;
}

/// Settings with a limit on what waits, which every discipline has.
pub trait Limited {
    /// The limit on what waits.
    fn limit(&self) -> Limit;

    /// Replaces the limit, unless it is of another unit than this discipline counts in.
    fn set_limit(&mut self, limit: Limit) -> bool;
}

/// The description of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// What its value is: `time`, `bytes`, `true or false`, …
    pub unit: &'static str,
    /// Its default as text. `None` if it is not set unless given.
    pub default: Option<String>,
    /// The lowest and the highest value.
    pub range: Option<(String, String)>,
}

/// Declares the settings of a discipline. Each key is stated once:
///
/// ```text
/// settings! {
///     /// What the discipline does, and where that is stated. Help and docs show this line.
///     pub struct NameSettings {
///         /// What the key means. Help and docs show this line.
///         key: Type = DEFAULT, "what a complaint calls it" in LOWEST..=HIGHEST;
///         /// One without a default takes the limit of the link.
///         limit: Limit;
///     }
/// }
/// ```
///
/// `Type as Bytes` reads a number of bytes with its unit, `as Percent` and `as Cells` likewise. A range may name the
/// keys before it. The text form has the keys in this order, the limit last.
macro_rules! settings {
    (
        $(#[doc = $about:literal])+
        pub struct $Name:ident { $($keys:tt)+ }
    ) => {
        $crate::discipline::settings::keys! {
            $(#[doc = $about])+
            pub struct $Name { $($keys)+ }
        }

        impl $crate::discipline::Limited for $Name {
            fn limit(&self) -> $crate::Limit {
                $crate::discipline::settings::Amount::limit(&self.limit)
            }

            fn set_limit(&mut self, limit: $crate::Limit) -> bool {
                $crate::discipline::settings::Amount::set(&mut self.limit, limit)
            }
        }
    };
}
pub(crate) use settings;

/// Declares settings as `settings!` does, with a limit or without.
macro_rules! keys {
    (
        $(#[doc = $about:literal])+
        pub struct $Name:ident {
            $(
                $(#[doc = $help:literal])+
                $(#[serde($($serde:tt)*)])?
                $key:ident : $type:ty $(as $codec:ident)? $(= $default:expr)?
                    $(, $what:literal in $range:expr)? ;
            )+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $Name {
            $(
                $(#[doc = $help])+
                $(#[serde($($serde)*)])?
                pub $key: $type,
            )+
        }

        impl $crate::discipline::Keys for $Name {
            const ABOUT: &'static str = concat!($($about),+);

            #[allow(unused_variables, reason = "some have a limit of their own")]
            fn with_limit(limit: $crate::Limit) -> $Name {
                $Name { $($key: $crate::discipline::settings::keys!(@default limit $($default)?),)+ }
            }

            fn read(
                given: &mut $crate::discipline::settings::Given<'_>,
                limit: $crate::Limit,
            ) -> Result<$Name, $crate::discipline::DisciplineTextError> {
                let usual = <$Name as $crate::discipline::Keys>::with_limit(limit);
                Ok($Name {
                    $($key: given.take::<$crate::discipline::settings::keys!(@codec $($codec)?), _>(
                        stringify!($key), usual.$key,
                    )?,)+
                })
            }

            fn written(&self) -> Vec<(&'static str, Option<String>)> {
                use $crate::discipline::settings::Codec as _;
                vec![$((
                    stringify!($key),
                    <$crate::discipline::settings::keys!(@codec $($codec)?)>::write(&self.$key),
                ),)+]
            }

            #[allow(unused_variables, reason = "few ranges name other keys")]
            fn described(&self) -> Vec<$crate::discipline::Key> {
                use $crate::discipline::settings::Codec;
                let $Name { $($key,)+ } = *self;
                vec![$($crate::discipline::Key {
                    name: stringify!($key),
                    help: concat!($($help),+).trim_ascii(),
                    unit: <$crate::discipline::settings::keys!(@codec $($codec)?) as Codec<$type>>::UNIT,
                    default: <$crate::discipline::settings::keys!(@codec $($codec)?)>::write(&$key),
                    range: $crate::discipline::settings::keys!(@range $type $(, $range)?),
                },)+]
            }

            #[allow(unused_variables, reason = "few ranges name other keys")]
            fn check_ranges(&self) -> Result<(), $crate::SpecError> {
                let $Name { $($key,)+ } = *self;
                $($(
                    let place = (stringify!($key), stringify!($range));
                    $crate::discipline::settings::inside::<$type>($what, $key, $range, place)?;
                )?)+
                Ok(())
            }
        }
    };
    (@default $limit:ident) => { $limit };
    (@default $limit:ident $default:expr) => { $default };
    (@range $type:ty) => { None };
    (@range $type:ty, $range:expr) => {
        Some($crate::discipline::settings::bounds::<$type>($range))
    };
    (@codec) => { $crate::discipline::settings::Plain };
    (@codec $codec:ident) => { $crate::discipline::settings::$codec };
}
pub(crate) use keys;

/// Declares a setting that is one of a few words, each with its name.
macro_rules! choice {
    (
        $(#[$about:meta])+
        pub enum $Name:ident { $($(#[$help:meta])+ $Variant:ident = $name:literal,)+ }
    ) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $Name { $($(#[$help])+ #[serde(rename = $name)] $Variant,)+ }

        impl $crate::discipline::settings::Value for $Name {
            type Bound = u8;
            const UNIT: &'static str = $crate::discipline::settings::choice!(@join $($name)+);
            fn read(text: &str, _example: &str) -> Result<$Name, String> {
                match text {
                    $($name => Ok($Name::$Variant),)+
                    _ => Err(format!("'{text}' is not one of {}", [$($name),+].join(", "))),
                }
            }
            fn write(&self) -> Option<String> {
                Some(match self { $($Name::$Variant => $name,)+ }.into())
            }
        }
    };
    (@join $first:literal $($name:literal)*) => { concat!($first, $(" or ", $name),*) };
}
pub(crate) use choice;

/// The keys that are given to one discipline, as they are asked for.
#[derive(Debug)]
pub struct Given<'a> {
    kind: &'a str,
    pairs: Vec<&'a str>,
}

impl<'a> Given<'a> {
    /// The `key=value` pairs given to `kind`.
    pub(crate) fn new(kind: &'a str, pairs: &'a str) -> Given<'a> {
        let pairs = pairs.split(',').map(str::trim).filter(|pair| !pair.is_empty()).collect();
        Given { kind, pairs }
    }

    /// The value of `key`, or `usual` if it is not given.
    pub(crate) fn take<C: Codec<T>, T>(
        &mut self,
        key: &'static str,
        usual: T,
    ) -> Result<T, DisciplineTextError> {
        let is_ours =
            |pair: &&str| pair.split_once('=').is_some_and(|(name, _)| name.trim() == key);
        let Some(at) = self.pairs.iter().position(is_ours) else { return Ok(usual) };
        let value = self.pairs.remove(at).split_once('=').map_or("", |(_, value)| value.trim());
        let example = C::write(&usual).unwrap_or_default();
        C::read(value, &example).map_err(|cause| DisciplineTextError::Value {
            kind: self.kind.into(),
            key,
            cause,
        })
    }

    /// Complains of what nobody has asked for.
    pub(crate) fn finish(&self, known: &[&'static str]) -> Result<(), DisciplineTextError> {
        let Some(&pair) = self.pairs.first() else { return Ok(()) };
        let (kind, allowed) = (self.kind.to_string(), known.join(", "));
        Err(match pair.split_once('=') {
            None => DisciplineTextError::NotAPair { kind, found: pair.into(), allowed },
            Some((key, _)) if known.contains(&key.trim()) => {
                DisciplineTextError::Twice { kind, found: key.trim().into() }
            }
            Some((key, _)) => DisciplineTextError::Key { kind, found: key.trim().into(), allowed },
        })
    }
}
