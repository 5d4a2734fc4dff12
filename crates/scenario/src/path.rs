//! From settings to a checked description of both directions.

use crate::preset::Preset;
use crate::setting::{self, Draft};
use crate::{Files, Folder};
use std::fmt;
use thiserror::Error;
use trunkline_core::Seed;
use trunkline_path::{Change, ChannelKey, LinkSpec, SpecError};

/// Largest network-layer packets that a path can have, in bytes: from what every IPv4 module can forward (RFC
/// 791 §3.2, Fragmentation) to the longest IPv4 packet.
pub const MTUS: std::ops::RangeInclusive<u32> = 68..=65_535;

/// A direction of a path. Up is from the near end (where the command runs, or the first interface).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From near to far.
    Up,
    /// From far to near.
    Down,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Up, Direction::Down];

    /// The name in options, tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Both directions of a path, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct PathSpec {
    /// From near to far.
    pub up: LinkSpec,
    /// From far to near.
    pub down: LinkSpec,
    /// What tells channels apart.
    pub key: ChannelKey,
    /// Largest network-layer packet of the virtual interfaces, in bytes.
    pub mtu: u32,
    /// Seed of all randomness.
    pub seed: Seed,
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingError {
    /// No such setting.
    #[error("there is no setting '{name}': the settings are {known}, each also with up- or down-")]
    Unknown {
        /// The name found.
        name: String,
        /// What exists.
        known: String,
    },
    /// A value that cannot be read or is out of range.
    #[error("{name}: {reason}")]
    Value {
        /// The setting.
        name: String,
        /// What is wrong with its value, and what is allowed.
        reason: String,
    },
    /// A setting that cannot change while traffic flows.
    #[error("{name} cannot change while traffic flows: start the path anew with --{name}")]
    NotLive {
        /// The setting.
        name: String,
    },
    /// Not of the form `name=value`.
    #[error("'{text}' is no setting: write name=value, such as delay=80ms")]
    Form {
        /// The text found.
        text: String,
    },
    /// The same setting more than once.
    #[error("{name} is given twice: leave one out")]
    Twice {
        /// The setting.
        name: String,
    },
    /// No such preset.
    #[error("there is no preset '{name}': `trunkline presets` lists {known}")]
    Preset {
        /// The name found.
        name: String,
        /// What exists.
        known: String,
    },
    /// The settings contradict each other.
    #[error("{direction}: {error}")]
    Path {
        /// Of which direction.
        direction: Direction,
        /// The contradiction.
        error: SpecError,
    },
}

/// Settings in the order in which they take effect: later ones override earlier ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// Adds a setting by its full name (`delay`, `up-rate`, `mtu` …).
    pub fn add(&mut self, name: &str, value: &str) {
        self.0.push((name.to_string(), value.to_string()));
    }

    /// Adds `name=value`.
    ///
    /// # Errors
    /// If there is no `=`.
    pub fn add_pair(&mut self, pair: &str) -> Result<(), SettingError> {
        let (name, value) = Settings::pair(pair)?;
        self.add(name, value);
        Ok(())
    }

    /// The settings that one source gives, such as a command's words: one for a direction wins over a plain one,
    /// whichever stands first.
    ///
    /// # Errors
    /// If a setting is given twice.
    pub fn of_one_source<'a>(
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        for (name, value) in given {
            if settings.iter().any(|(known, _)| known == name) {
                return Err(SettingError::Twice { name: name.to_string() });
            }
            settings.add(name, value);
        }
        settings.0.sort_by_key(|(name, _)| split(name).0.len() == 1);
        Ok(settings)
    }

    /// Name and value of `name=value`.
    ///
    /// # Errors
    /// If there is no `=`.
    pub fn pair(pair: &str) -> Result<(&str, &str), SettingError> {
        let parts = pair.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
        parts.ok_or_else(|| SettingError::Form { text: pair.to_string() })
    }

    /// Puts the settings of the preset called `name` before all others.
    ///
    /// # Errors
    /// If there is no such preset.
    pub fn start_from(&mut self, name: &str) -> Result<(), SettingError> {
        let preset = Preset::find(name)?;
        let before = preset.settings.iter().map(|&(name, value)| (name.into(), value.into()));
        self.0.splice(0..0, before);
        Ok(())
    }

    /// Each setting with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The path that these settings describe. A setting for one direction wins over a plain one,
    /// whichever came first, unless the plain one came later from a more specific source.
    ///
    /// # Errors
    /// The first setting that is unknown, unreadable, out of range or in contradiction.
    pub fn resolve(&self) -> Result<PathSpec, SettingError> {
        self.resolve_with(&Folder::working())
    }

    /// As [`Settings::resolve`], with the files that settings name from `files`.
    ///
    /// # Errors
    /// As [`Settings::resolve`].
    pub fn resolve_with(&self, files: &dyn Files) -> Result<PathSpec, SettingError> {
        let mut whole = Whole::default();
        let mut drafts = [Draft::new(files), Draft::new(files)];
        for (name, value) in self.iter() {
            if whole.apply(name, value)? {
                continue;
            }
            let (directions, plain) = split(name);
            for direction in directions {
                apply(&mut drafts[*direction as usize], name, plain, value)?;
            }
        }
        let [up, down] = drafts;
        let finish = |draft: Draft<'_>, direction| {
            draft.finish().map_err(|error| SettingError::Path { direction, error })
        };
        Ok(PathSpec {
            up: finish(up, Direction::Up)?,
            down: finish(down, Direction::Down)?,
            key: whole.key,
            mtu: whole.mtu,
            seed: whole.seed,
        })
    }
}

/// Settings that belong to the path as a whole.
struct Whole {
    key: ChannelKey,
    mtu: u32,
    seed: Seed,
}

impl Default for Whole {
    fn default() -> Whole {
        Whole { key: ChannelKey::default(), mtu: 1500, seed: Seed(1) }
    }
}

impl Whole {
    /// Applies the setting if it is one of the whole path.
    fn apply(&mut self, name: &str, value: &str) -> Result<bool, SettingError> {
        let wrong = |reason: String| SettingError::Value { name: name.to_string(), reason };
        match name {
            "key" => self.key = value.parse().map_err(wrong)?,
            "seed" => {
                let seed = value.parse();
                self.seed = Seed(seed.map_err(|_| wrong(format!("'{value}' is no whole number")))?);
            }
            "mtu" => {
                let mtu = value.parse().ok().filter(|mtu| MTUS.contains(mtu));
                self.mtu = mtu.ok_or_else(|| {
                    let (least, most) = MTUS.into_inner();
                    wrong(format!("'{value}' is no MTU: it lies between {least} and {most} bytes"))
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The directions that a full setting name means, and its plain name.
pub(crate) fn split(name: &str) -> (&'static [Direction], &str) {
    if let Some(plain) = name.strip_prefix("up-") {
        (&[Direction::Up], plain)
    } else if let Some(plain) = name.strip_prefix("down-") {
        (&[Direction::Down], plain)
    } else {
        (&Direction::BOTH, name)
    }
}

fn apply(draft: &mut Draft<'_>, name: &str, plain: &str, value: &str) -> Result<(), SettingError> {
    let setting = setting::find(plain).ok_or_else(|| SettingError::Unknown {
        name: name.to_string(),
        known: setting::names().join(", "),
    })?;
    (setting.apply)(draft, value)
        .map_err(|reason| SettingError::Value { name: name.to_string(), reason })
}

impl PathSpec {
    /// The description of one direction.
    pub fn link(&self, direction: Direction) -> &LinkSpec {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// Changes settings of a running path: the changes to make, in order. The description is updated
    /// only if all of them can be made.
    ///
    /// # Errors
    /// The first setting that is unknown, wrong, or cannot change while traffic flows.
    pub fn change(
        &mut self,
        settings: &Settings,
    ) -> Result<Vec<(Direction, Change)>, SettingError> {
        self.change_with(settings, &Folder::working())
    }

    /// As [`PathSpec::change`], with the files that settings name from `files`.
    ///
    /// # Errors
    /// As [`PathSpec::change`].
    pub fn change_with(
        &mut self,
        settings: &Settings,
        files: &dyn Files,
    ) -> Result<Vec<(Direction, Change)>, SettingError> {
        let mut new = self.clone();
        let changes = new.alter_with(settings, files)?;
        new.check()?;
        *self = new;
        Ok(changes)
    }

    /// As [`PathSpec::change`], but whether the settings go together is left to the caller, who knows what a schedule has
    /// made of them meanwhile.
    ///
    /// # Errors
    /// The first setting that is unknown, wrong by itself, or cannot change while traffic flows.
    pub fn alter(&mut self, settings: &Settings) -> Result<Vec<(Direction, Change)>, SettingError> {
        self.alter_with(settings, &Folder::working())
    }

    /// Checks that the settings of each direction go together.
    ///
    /// # Errors
    /// The first that do not.
    pub fn check(&self) -> Result<(), SettingError> {
        Direction::BOTH.into_iter().try_for_each(|direction| {
            let checked = self.link(direction).check();
            checked.map_err(|error| SettingError::Path { direction, error })
        })
    }

    fn alter_with(
        &mut self,
        settings: &Settings,
        files: &dyn Files,
    ) -> Result<Vec<(Direction, Change)>, SettingError> {
        let mut new = self.clone();
        let mut changes = Vec::new();
        for (name, value) in settings.iter() {
            let (directions, plain) = split(name);
            for &direction in directions {
                let link = match direction {
                    Direction::Up => &mut new.up,
                    Direction::Down => &mut new.down,
                };
                changes.push((direction, change_link(link, files, (name, plain, value))?));
            }
        }
        *self = new;
        Ok(changes)
    }
}

fn change_link(
    link: &mut LinkSpec,
    files: &dyn Files,
    (name, plain, value): (&str, &str, &str),
) -> Result<Change, SettingError> {
    let not_live = || SettingError::NotLive { name: name.to_string() };
    // A value that cannot be used anyway is not looked at, nor a file read.
    if setting::find(plain).is_some_and(|setting| setting.live.is_none()) {
        return Err(not_live());
    }
    let mut draft = Draft::of(link.clone(), files);
    if !["key", "seed", "mtu"].contains(&name) {
        apply(&mut draft, name, plain, value)?;
    }
    let change = setting::find(plain).and_then(|setting| setting.live).ok_or_else(not_live)?;
    *link = draft.into_changed().map_err(|error| SettingError::Value {
        name: name.to_string(),
        reason: error.to_string(),
    })?;
    Ok(change(link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::{Rate, Span};
    use trunkline_path::{DisciplineSpec, Framing, Limit};

    fn resolve(pairs: &[&str]) -> Result<PathSpec, SettingError> {
        let mut settings = Settings::default();
        pairs.iter().try_for_each(|pair| settings.add_pair(pair))?;
        settings.resolve()
    }

    fn split(pairs: &str) -> Result<PathSpec, SettingError> {
        resolve(&pairs.split(';').collect::<Vec<_>>())
    }

    #[test]
    fn every_impairment_can_be_none() {
        let some = resolve(&[
            "loss=1%",
            "bit-errors=1e-6",
            "duplicate=1%",
            "reorder=1%:5ms",
            "jitter=1ms",
            "delay=9ms",
        ]);
        let mut path = some.unwrap();
        let mut none = Settings::default();
        for name in ["loss", "bit-errors", "duplicate", "reorder", "jitter"] {
            none.add(name, "none");
        }
        assert_eq!(path.change(&none).unwrap().len(), 10);
        assert_eq!(path, resolve(&["delay=9ms"]).unwrap());
    }

    #[test]
    fn of_one_source_the_direction_wins_wherever_it_stands() {
        for given in
            [[("up-delay", "5ms"), ("delay", "9ms")], [("delay", "9ms"), ("up-delay", "5ms")]]
        {
            let path = Settings::of_one_source(given).unwrap().resolve().unwrap();
            let delays = (path.up.delay, path.down.delay);
            assert_eq!(delays, (Span::from_millis(5), Span::from_millis(9)));
        }
        let twice = Settings::of_one_source([("delay", "5ms"), ("delay", "9ms")]);
        assert_eq!(twice, Err(SettingError::Twice { name: "delay".into() }));
    }

    #[test]
    fn plain_settings_hold_for_both_and_prefixed_for_one() {
        let path =
            resolve(&["rate=10mbit", "delay=50ms", "up-rate=1mbit", "down-delay=20ms"]).unwrap();
        assert_eq!(path.up.rate.unwrap(), Rate::from_bits_per_second(1_000_000));
        assert_eq!(path.down.rate.unwrap(), Rate::from_bits_per_second(10_000_000));
        assert_eq!(
            (path.up.delay, path.down.delay),
            (Span::from_millis(50), Span::from_millis(20))
        );
    }

    #[test]
    fn the_default_queue_holds_250_ms_of_the_rate() {
        let path = resolve(&["rate=100mbit", "down-rate=64kbit"]).unwrap();
        assert_eq!(path.up.discipline, DisciplineSpec::fifo(Limit::Bytes(3_125_000)));
        assert_eq!(path.down.discipline, DisciplineSpec::fifo(Limit::Bytes(64 * 1024)));
    }

    #[test]
    fn presets_come_first_and_can_be_overridden() {
        let mut settings = Settings::default();
        settings.add("delay", "7ms");
        settings.start_from("t1-1989").unwrap();
        let path = settings.resolve().unwrap();
        assert_eq!((path.up.framing, path.up.delay), (Framing::T1_LAPD, Span::from_millis(7)));
    }

    #[test]
    fn wrong_settings_say_what_is_allowed() {
        let complaint = |pairs: &[&str]| resolve(pairs).unwrap_err().to_string();
        for (pairs, parts) in [
            (&["dealy=3ms"][..], &["dealy", "delay"][..]),
            (&["delay=3"], &["delay", "no unit", "ms"]),
            (&["up-rate=-3mbit"], &["up-rate", "negative"]),
            (&["rate"], &["name=value"]),
            (&["delay=2000min"], &["delay", "3600s"]),
            (&["mtu=67"], &["mtu", "68", "65535"]),
            (&["mtu=65536"], &["68"]),
            (&["framing=atm-aal5"], &["--rate"]),
            (&["key=mood"], &["five-tuple"]),
            (&["queue=lifo"], &["lifo", "fifo"]),
            (&["trace=/nonexistent/file", "rate=1mbit"], &["/nonexistent/file"]),
        ] {
            let text = complaint(pairs);
            assert!(parts.iter().all(|part| text.contains(part)), "{pairs:?}: {text}");
            assert!(!text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn live_changes_touch_only_what_they_name() {
        let mut path = resolve(&["rate=10mbit", "delay=50ms", "loss=1%"]).unwrap();
        let before = path.clone();
        let change = |path: &mut PathSpec, pairs: &[&str]| {
            let mut settings = Settings::default();
            pairs.iter().for_each(|pair| settings.add_pair(pair).unwrap());
            path.change(&settings)
        };
        let changes = change(&mut path, &["delay=80ms", "up-limit=9000B"]).unwrap();
        assert_eq!(changes.len(), 3);
        assert_eq!(changes[2], (Direction::Up, Change::Limit(Limit::Bytes(9000))));
        assert_eq!(path.down.delay, Span::from_millis(80));
        assert_eq!(path.up.discipline.limit(), Limit::Bytes(9000));
        assert_eq!(path.down.discipline, before.down.discipline);
        assert_eq!(path.up.impairments, before.up.impairments);
        for bad in
            [&["queue=drr"][..], &["framing=ethernet"], &["mtu=1400"], &["delay=x"], &["nope=1"]]
        {
            let unchanged = path.clone();
            assert!(change(&mut path, bad).is_err(), "{bad:?}");
            assert_eq!(path, unchanged);
        }
        // Whatever is asked for: another value would not help.
        for bad in ["queue=nonsense", "schedule=none", "trace=/nowhere", "up-framing=", "seed=x"] {
            let told = change(&mut path, &[bad]).unwrap_err().to_string();
            assert!(told.contains("cannot change while traffic flows"), "{bad}: {told}");
        }
    }

    #[test]
    fn every_preset_resolves() {
        for preset in crate::PRESETS {
            let mut settings = Settings::default();
            settings.start_from(preset.name).unwrap();
            settings.resolve().unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        }
        assert!(Settings::default().start_from("x25").unwrap_err().to_string().contains("lds"));
    }

    /// A queue behind a token bucket drains at the bucket's rate, so the time that it may hold is reckoned by that.
    #[test]
    fn the_default_limit_goes_by_the_rate_at_which_the_queue_drains() {
        let limit = |text: &str| split(text).unwrap().down.discipline.limit();
        let held = |rate: &str| format!("rate=100mbit;queue=token-bucket:rate={rate}");
        assert_eq!(limit("rate=100mbit"), Limit::Bytes(3_125_000));
        assert_eq!(limit(&held("4mbit")), Limit::Bytes(125_000));
        assert_eq!(limit(&held("200mbit")), Limit::Bytes(3_125_000));
        assert_eq!(limit(&held("1mbit")), Limit::Bytes(64 * 1024));
        assert_eq!(limit("queue=token-bucket:rate=4mbit"), Limit::Bytes(125_000));
        assert_eq!(
            limit("rate=100mbit;queue=token-bucket:rate=4mbit,limit=9kB"),
            Limit::Bytes(9_000)
        );
    }

    /// RED whose queue is full before its average reaches min drops nothing early.
    #[test]
    fn red_needs_a_limit_above_its_min() {
        for text in [
            "queue=red:min=5p,max=15p,limit=5p",
            "queue=red:limit=4p",
            "rate=1mbit;queue=red:min=100kB,max=300kB",
            "queue=red;limit=5p",
        ] {
            let complaint = split(text).unwrap_err().to_string();
            assert!(complaint.contains("min") && complaint.contains("larger limit"), "{complaint}");
        }
        for text in [
            "queue=red:min=5p,max=15p,limit=6p",
            "rate=1mbit;queue=red:min=100kB,max=300kB;limit=1MB",
            "queue=red:min=5p,max=15p,limit=3kB",
        ] {
            split(text).unwrap();
        }
    }
}
