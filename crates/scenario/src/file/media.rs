//! Shared media: their keys as tables of the file, and reading them.

use super::error::{Wrong, list};
use super::links::{settings, with_key};
use super::reader::{Reader, complaint};
use super::schema::{Form, Key, Kind, Need, Table};
use super::tree::Value;
use crate::setting::Draft;
use crate::{Files, Medium};
use std::sync::LazyLock;
use trunkline_path::discipline::{self, FLAG};
use trunkline_path::medium::{AccessSpec, KINDS, MediumKind, MediumTextError};
use trunkline_path::{LinkSpec, MediumSpec, SpecError};

/// The names of all kinds.
pub(super) const NAMES: &[&str] = &{
    let mut names = [""; KINDS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = KINDS[index].name;
        index += 1;
    }
    names
};

/// The table of each kind, in the order of the list. Made once for the life of the process.
pub(super) fn tables() -> &'static [Table] {
    static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| KINDS.iter().map(table).collect());
    &TABLES
}

fn table(kind: &'static MediumKind) -> Table {
    let only: &'static [&'static str] = Box::leak(Box::new([kind.name]));
    let keys: Vec<Key> = kind.keys().into_iter().map(|key| described(key, only)).collect();
    let groups = Box::leak(Box::new([&*keys.leak()]));
    Table { title: kind.name, help: kind.about(), groups, kinds: None }
}

fn described(key: discipline::Key, only: &'static [&'static str]) -> Key {
    let default = key.default.map(|text| &*text.leak());
    let kind = match key.unit {
        FLAG => Kind::Flag,
        _ => Kind::Setting("medium", default.unwrap_or("1")),
    };
    let need = default.map_or(Need::Optional, Need::Default);
    Key { name: key.name, form: Form::One(kind), need, help: key.help, only }
}

/// A `[[medium]]`. `files` gives those that it names.
pub(super) fn medium(table: &Reader<'_>, files: &dyn Files) -> Result<Medium, Wrong> {
    let spec = spec(table, files)?;
    Ok(Medium { name: table.name("name")?, stations: table.names("stations")?, spec })
}

/// What a table says of a medium. `files` gives those that it names.
pub(super) fn spec(table: &Reader<'_>, files: &dyn Files) -> Result<MediumSpec, Wrong> {
    let kind = table.word("kind")?;
    if let Some(foreign) = table.foreign(kind) {
        let own: Vec<&str> = table.own(kind).collect();
        let problem = format!("{kind} has no such key; its own are {}", list(own.into_iter()));
        return Err(table.found(foreign, &problem));
    }
    let access = access(table, kind)?;
    let mut drafts = [Draft::new(files)];
    settings(table, &mut drafts, &[0])?;
    let [draft] = drafts;
    let line = draft.finish().map_err(|error| blame(table, &error))?;
    let LinkSpec { rate, framing, delay, discipline, .. } = line;
    let spec = MediumSpec { rate, framing, delay, discipline, access };
    spec.check().map_err(|error| blame(table, &error))?;
    Ok(spec)
}

/// How its stations take turns.
fn access(table: &Reader<'_>, kind: &str) -> Result<AccessSpec, Wrong> {
    let mut pairs = Vec::new();
    for key in table.own(kind) {
        let Some(node) = table.node(key) else { continue };
        let text = match &node.value {
            Value::Flag(flag) => Some(flag.to_string()),
            value => value.scalar().filter(|text| !text.contains([',', '='])),
        };
        let text = text.ok_or_else(|| table.found(key, "give a plain value"))?;
        pairs.push(format!("{key}={text}"));
    }
    AccessSpec::read(kind, &pairs.join(",")).map_err(|MediumTextError { key, problem }| {
        let place = key.unwrap_or("kind");
        match table.node(place) {
            Some(node) => table.wrong(place, complaint(&node.value, &problem)),
            None => table.wrong(place, problem),
        }
    })
}

/// Lays a complaint at the key that it names first.
pub(super) fn blame(table: &Reader<'_>, error: &SpecError) -> Wrong {
    let text = with_key(error);
    let keys = table.schema().keys().map(|key| key.name).filter(|key| table.has(key));
    let place = |key: &'static str| {
        let at = text.find(key).or_else(|| text.find(&key.replace('_', " ")))?;
        Some((at, key))
    };
    let (_, key) = keys.filter_map(place).min().unwrap_or((0, "kind"));
    table.found(key, &text)
}
