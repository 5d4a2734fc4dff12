//! The protocols that are chosen by name: their keys as tables of the file, and reading them.

use super::error::{Wrong, list};
use super::reader::Reader;
use super::schema::{Form, Key, Kind, Need, Table};
use crate::{Listed, Transport};
use std::sync::LazyLock;
use trunkline_transport::protocol::{PROTOCOLS, ProtocolEntry, ProtocolKey, Takes, Value, Values};

/// How many there are.
const COUNT: usize = PROTOCOLS.len();
/// How many have keys in the schema's own tables.
const BUILT_IN: usize = 4;

/// The names of all protocols: `built_in`, then the listed ones.
pub(super) const fn names(built_in: [&'static str; BUILT_IN]) -> [&'static str; BUILT_IN + COUNT] {
    let mut names = [""; BUILT_IN + COUNT];
    let mut index = 0;
    while index < names.len() {
        names[index] = match index.checked_sub(BUILT_IN) {
            Some(place) => PROTOCOLS[place].name,
            None => built_in[index],
        };
        index += 1;
    }
    names
}

/// The table of each protocol, in the order of the list.
pub(super) fn tables() -> &'static [Table] {
    static TABLES: LazyLock<Vec<Table>> =
        LazyLock::new(|| PROTOCOLS.iter().map(|entry| table(entry)).collect());
    &TABLES
}

/// Made once for the life of the process, as the schema's other tables are.
fn table(entry: &'static ProtocolEntry) -> Table {
    let only: &'static [&'static str] = Box::leak(Box::new([entry.name]));
    let keys: Vec<Key> = entry.keys.iter().map(|key| described(key, only)).collect();
    let groups = Box::leak(Box::new([&*keys.leak()]));
    Table { title: entry.name, help: entry.help, groups, kinds: None }
}

/// A key of the file as its protocol describes it, which kinds `only` have.
pub(super) fn described(key: &'static ProtocolKey, only: &'static [&'static str]) -> Key {
    let kind = match key.takes {
        Takes::Bytes(least, most) => Kind::Size(least, most),
        Takes::Count(least, most) => Kind::Whole(least, most),
        Takes::Time(least, most) => Kind::Span(least, most),
        Takes::Rate => Kind::Rate,
        Takes::Flag => Kind::Flag,
    };
    let need = key.default.map_or(Need::Optional, Need::Default);
    Key { name: key.name, form: Form::One(kind), need, help: key.help, only }
}

/// `entry` with the values of `default` if that is the same protocol.
pub(super) fn plain(entry: &'static ProtocolEntry, default: &Transport) -> Listed {
    match default {
        Transport::Listed(same) if same.entry == entry => same.clone(),
        _ => Listed { entry, values: entry.defaults() },
    }
}

/// The protocol `entry` with the keys of `table`; what it leaves out is as in `default`.
pub(super) fn read(
    table: Reader<'_>,
    entry: &'static ProtocolEntry,
    default: &Transport,
) -> Result<Transport, Wrong> {
    let own = |name: &&str| *name == "kind" || entry.keys.iter().any(|key| key.name == *name);
    if let Some(foreign) = table.given().find(|name| !own(name)) {
        let keys = list(entry.keys.iter().map(|key| key.name));
        let problem = format!("{} has no such key; its own are {keys}", entry.name);
        return Err(table.found(foreign, &problem));
    }
    let mut listed = plain(entry, default);
    let schema = tables().iter().find(|table| table.title == entry.name);
    let Some(schema) = schema else { return Ok(Transport::Listed(listed)) };
    let table = table.read_as(schema);
    given(&table, entry.keys, &mut listed.values)?;
    (entry.build)(&listed.values).map_err(|unfit| match table.has(unfit.key) {
        true => table.found(unfit.key, &unfit.why),
        false => table.wrong("kind", unfit.to_string()),
    })?;
    Ok(Transport::Listed(listed))
}

/// Sets those of `values` that the table gives.
pub(super) fn given(
    table: &Reader<'_>,
    keys: &'static [ProtocolKey],
    values: &mut Values,
) -> Result<(), Wrong> {
    for key in keys.iter().filter(|key| table.has(key.name)) {
        let value = match key.takes {
            Takes::Bytes(..) => Value::Number(table.size(key.name)?),
            Takes::Count(..) => Value::Number(table.whole(key.name)?),
            Takes::Time(..) => Value::Time(table.span(key.name)?),
            Takes::Rate => Value::Rate(table.rate(key.name)?),
            Takes::Flag => Value::Flag(table.flag(key.name)?),
        };
        values.set(key.name, value);
    }
    Ok(())
}
