//! Links: presets, modules, what holds for both directions and what for one.

use super::Alike;
use super::error::Wrong;
use super::hosts::Named;
use super::reader::{Reader, complaint};
use super::schema::{Key, Kind};
use super::tree::{Entry, Value};
use crate::path::split;
use crate::preset::Preset;
use crate::setting::{self, Draft};
use crate::{Direction, Files, Wire};
use trunkline_core::Size;
use trunkline_path::{LinkSpec, SpecError, TrunkProcessor};

/// A link in the making: forward and backward.
pub(super) type Drafts<'a> = [Draft<'a>];

/// The name of no module, for grids, unless the file defines one under this name.
const NO_MODULE: &str = "none";

/// Both directions, by their place in [`Drafts`].
const BOTH: &[usize] = &[0, 1];

/// A `[[link]]`. `files` gives those that it names.
pub(super) fn link(
    table: &Reader<'_>,
    modules: &Named<Reader<'_>>,
    files: &dyn Files,
    alike: &mut Alike,
) -> Result<Wire, Wrong> {
    let ends = table.names("between")?;
    let [from, to] = ends.as_slice() else {
        return Err(table.found("between", "give two names, such as [\"a\", \"b\"]"));
    };
    let mut drafts = [Draft::new(files), Draft::new(files)];
    preset(table, &mut drafts)?;
    side(table, modules, &mut drafts, BOTH)?;
    for (index, key) in ["forward", "backward"].into_iter().enumerate() {
        match table.table(key) {
            Some(direction) => side(&direction, modules, &mut drafts, &[index])?,
            None if table.has(key) => return Err(table.found(key, "give a table { … }")),
            None => {}
        }
    }
    let [forward, backward] = drafts;
    Ok(Wire {
        name: table.text("name")?.unwrap_or_else(|| format!("{from}-{to}")),
        from: from.clone(),
        to: to.clone(),
        forward: alike.links.share(finish(table, "forward", forward)?),
        backward: alike.links.share(finish(table, "backward", backward)?),
    })
}

/// A `[module.NAME]` that no link may use: its keys are checked all the same.
pub(super) fn module(table: &Reader<'_>, files: &dyn Files) -> Result<(), Wrong> {
    let mut drafts = [Draft::new(files), Draft::new(files)];
    ends(table, &mut drafts, BOTH)
}

/// The settings of a preset; what it says of a whole path (MTU) means nothing to a link.
fn preset(table: &Reader<'_>, drafts: &mut Drafts<'_>) -> Result<(), Wrong> {
    let Some(name) = table.text("preset")? else { return Ok(()) };
    let known = crate::PRESETS.iter().map(|preset| preset.name);
    let unknown = |_| table.unknown("preset", &name, "preset", known);
    for &(setting, value) in Preset::find(&name).map_err(unknown)?.settings {
        let (directions, plain) = split(setting);
        let Some(setting) = setting::find(plain) else { continue };
        for &direction in directions {
            let draft = &mut drafts[usize::from(direction == Direction::Down)];
            (setting.apply)(draft, value).map_err(|reason| table.found("preset", &reason))?;
        }
    }
    Ok(())
}

/// What a table says of the directions at `which`: first its module, then its own keys.
fn side(
    table: &Reader<'_>,
    modules: &Named<Reader<'_>>,
    drafts: &mut Drafts<'_>,
    which: &[usize],
) -> Result<(), Wrong> {
    if let Some(name) = table.text("module")? {
        match modules.iter().find(|(known, _)| *known == name) {
            Some((_, module)) => ends(module, drafts, which)?,
            None if name == NO_MODULE => {}
            None => {
                let names = modules.iter().map(|(name, _)| name.as_str()).chain([NO_MODULE]);
                return Err(table.unknown("module", &name, "[module.NAME]", names));
            }
        }
    }
    ends(table, drafts, which)
}

/// The settings of one table, and its trunk board's processor.
fn ends(table: &Reader<'_>, drafts: &mut Drafts<'_>, which: &[usize]) -> Result<(), Wrong> {
    settings(table, drafts, which)?;
    if let Some(processor) = processor(table)? {
        which.iter().for_each(|&index| drafts[index].set_processor(processor));
    }
    Ok(())
}

/// The settings of one table, in the order of the schema.
pub(super) fn settings(
    table: &Reader<'_>,
    drafts: &mut Drafts<'_>,
    which: &[usize],
) -> Result<(), Wrong> {
    if table.has("rate") && table.has("trace") {
        return Err(table.found("trace", "a rate is given as well: leave one of them out"));
    }
    for key in table.schema().keys() {
        let (Some(node), Some(name)) = (table.node(key.name), setting_of(key.form.kind())) else {
            continue;
        };
        let apply = setting::find(name).map(|setting| setting.apply);
        let text = match &node.value {
            Value::Table(entries) => discipline(table, entries)?,
            value => value
                .scalar()
                .ok_or_else(|| table.found(key.name, &format!("give {}", key.form.allowed())))?,
        };
        for &index in which {
            if name == "queue" && limits(&text) {
                drafts[index].forget_limit();
            }
            let applied = apply.map_or(Ok(()), |apply| apply(&mut drafts[index], text.trim()));
            let wrong = |reason: String| table.wrong(key.name, complaint(&node.value, &reason));
            applied.map_err(wrong)?;
        }
    }
    one_limit(table)
}

/// The processor of a trunk board: `Some(None)` if the table says that there is none.
fn processor(table: &Reader<'_>) -> Result<Option<Option<TrunkProcessor>>, Wrong> {
    let Some(board) = table.table("processor") else {
        return Ok(table
            .has("processor")
            .then(|| table.word("processor"))
            .transpose()?
            .map(|_| None));
    };
    Ok(Some(Some(TrunkProcessor {
        input_fifo: Size::from_bytes(board.size("input_fifo")?),
        input_per_byte: board.byte_time("input_per_byte")?,
        output_per_byte: board.byte_time("output_per_byte")?,
        output_first: board.flag("output_first")?,
    })))
}

/// The setting of the command line that a key stands for.
fn setting_of(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::Setting(name, _) => Some(name),
        Kind::Or(one, _) => setting_of(one),
        _ => None,
    }
}

/// Whether a key says something of a direction.
fn settable(key: &Key) -> bool {
    key.name == "processor" || setting_of(key.form.kind()).is_some()
}

/// Whether the text of a discipline says how much may wait.
fn limits(discipline: &str) -> bool {
    let pairs = discipline.split_once(':').map_or("", |it| it.1);
    pairs.split(',').any(|pair| pair.split('=').next().is_some_and(|key| key.trim() == "limit"))
}

/// A table's discipline has the limit, or the table has, not both.
fn one_limit(table: &Reader<'_>) -> Result<(), Wrong> {
    let Some(discipline) = table.node("discipline") else { return Ok(()) };
    let inside = discipline.get("limit").is_some() || discipline.text().is_some_and(limits);
    match inside && table.has("limit") {
        true => Err(table.found("limit", "the discipline has a limit as well: leave one out")),
        false => Ok(()),
    }
}

/// The text form of a discipline that is written as a table.
fn discipline(table: &Reader<'_>, entries: &[Entry]) -> Result<String, Wrong> {
    let mut kind = None;
    let mut pairs = Vec::new();
    for entry in entries {
        let text = match entry.node.value {
            Value::Flag(flag) => Some(flag.to_string()),
            ref value => value.scalar().filter(|text| !text.contains([',', ':', '='])),
        };
        let text = text.ok_or_else(|| {
            let problem = format!("found {}: give a plain value", entry.node.value);
            Wrong::new(entry.at, format!("{}.discipline.{}", table.path, entry.key), problem)
        })?;
        match &*entry.key {
            "kind" => kind = Some(text),
            key => pairs.push(format!("{key}={text}")),
        }
    }
    let inner = || table.table("discipline").map(|discipline| discipline.missing("kind"));
    let kind = kind.ok_or_else(|| inner().unwrap_or_else(|| table.missing("discipline")))?;
    Ok(format!("{kind}:{}", pairs.join(",")))
}

fn finish(table: &Reader<'_>, direction: &str, draft: Draft<'_>) -> Result<LinkSpec, Wrong> {
    draft.finish().map_err(|error| blame(table, direction, &error))
}

/// A contradiction in the words of files, not of the command line.
pub(super) fn with_key(error: &SpecError) -> String {
    error.to_string().replace("add --rate 155.52Mbit/s", "give rate = \"155.52Mbit/s\"")
}

/// Lays a contradiction at the key that it is about, if the table has it.
fn blame(table: &Reader<'_>, direction: &str, error: &SpecError) -> Wrong {
    let text = with_key(error);
    let own = table.table(direction);
    let about = |reader: &Reader<'_>| {
        let keys = reader.schema().keys().filter(|key| settable(key));
        let place = |name: &'static str| Some((text.find(&name.replace('_', " "))?, name));
        keys.map(|key| key.name).filter(|key| reader.has(key)).filter_map(place).min()
    };
    let readers = own.iter().chain([table]);
    for reader in readers {
        if let Some((_, key)) = about(reader) {
            return reader.found(key, &text);
        }
    }
    // What is not said here comes from the module or the preset.
    let origin = ["module", "preset", "between"].into_iter().find(|key| table.has(key));
    table.found(origin.unwrap_or("name"), &text)
}

#[cfg(test)]
mod tests {
    use super::super::tables;
    use super::*;

    #[test]
    fn every_setting_of_a_direction_has_a_key() {
        let keys = || tables::DIRECTION.keys();
        for setting in crate::SETTINGS {
            let has = keys().any(|key| setting_of(key.form.kind()) == Some(setting.name));
            assert!(has, "{} has no key", setting.name);
        }
        for key in keys().filter_map(|key| setting_of(key.form.kind())) {
            assert!(setting::find(key).is_some(), "{key}");
        }
    }

    #[test]
    fn a_limit_is_seen_in_a_disciplines_text() {
        assert!(limits("fifo:limit=3p") && limits("drr:quantum=9, limit = 3p"));
        assert!(!limits("fifo") && !limits("limit") && !limits("epd:threshold=limit"));
    }
}
