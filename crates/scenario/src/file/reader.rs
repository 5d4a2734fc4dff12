//! Typed values from a table, by what the schema says of its keys.

use super::error::{Wrong, list};
use super::schema::{Key, Kind, Need, Table};
use super::tree::{Node, Value};
use crate::Cost;
use std::str::FromStr;
use trunkline_core::{ParseError, Probability, Rate, Size, Span};
use trunkline_path::ByteTime;

/// A table that is being read.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    /// What it describes, in complaints and coordinates: `link.t1`.
    pub path: String,
    node: &'a Node,
    schema: &'static Table,
}

/// What reads a scalar: the value found and what its key takes.
type Read<T> = fn(&Value, &Kind) -> Result<T, String>;

impl<'a> Reader<'a> {
    pub fn new(path: String, node: &'a Node, schema: &'static Table) -> Reader<'a> {
        Reader { path, node, schema }
    }

    /// The same table under another path.
    pub fn renamed(self, path: impl Fn(&Node) -> String) -> Reader<'a> {
        Reader { path: path(self.node), ..self }
    }

    /// The same table, read by another schema.
    pub fn read_as(self, schema: &'static Table) -> Reader<'a> {
        Reader { schema, ..self }
    }

    /// The keys that are given, as they stand in the file.
    pub fn given(&self) -> impl Iterator<Item = &'a str> {
        self.node.entries().iter().map(|entry| &*entry.key)
    }

    /// What the table may hold.
    pub fn schema(&self) -> &'static Table {
        self.schema
    }

    /// The keys that only some kinds of this table have and `kind` is one of them.
    pub fn own(&self, kind: &str) -> impl Iterator<Item = &'static str> {
        self.schema.keys().filter(move |key| key.only.contains(&kind)).map(|key| key.name)
    }

    /// A key that is given and that `kind` does not have.
    pub fn foreign(&self, kind: &str) -> Option<&'static str> {
        let foreign = |key: &Key| !key.only.is_empty() && !key.only.contains(&kind);
        let all = |name: &str| {
            let mut keys = self.schema.keys().filter(|key| key.name == name);
            keys.all(foreign)
        };
        self.schema.keys().map(|key| key.name).find(|name| self.has(name) && all(name))
    }

    /// The tables under a key with their names, `[key.NAME]`.
    pub fn named(&self, key: &str) -> Vec<(String, Reader<'a>)> {
        let Some(schema) = self.key(key).form.table() else { return Vec::new() };
        let entries = self.node(key).map(Node::entries).unwrap_or_default();
        let reader = |node, name: &str| Reader::new(format!("{key}.{name}"), node, schema);
        entries.iter().map(|it| (it.key.to_string(), reader(&it.node, &it.key))).collect()
    }

    /// The value of a key as it stands in the file.
    pub fn node(&self, key: &str) -> Option<&'a Node> {
        self.node.get(key)
    }

    /// Whether the key is given.
    pub fn has(&self, key: &str) -> bool {
        self.node(key).is_some()
    }

    /// The table under a key, if it is one; `schema` is what its key takes.
    pub fn table(&self, key: &str) -> Option<Reader<'a>> {
        let schema = self.key(key).form.table()?;
        let node = self.node(key).filter(|node| matches!(node.value, Value::Table(_)))?;
        Some(Reader::new(self.path_of(key), node, schema))
    }

    /// The items of a list of tables.
    pub fn tables(&self, key: &str) -> Vec<Reader<'a>> {
        let Some(schema) = self.key(key).form.table() else { return Vec::new() };
        let items = self.node(key).and_then(Node::items).unwrap_or_default();
        items.iter().map(|item| Reader::new(self.path_of(key), item, schema)).collect()
    }

    /// A complaint about a key, at its value or, if it is missing, at the table.
    pub fn wrong(&self, key: &str, problem: impl Into<String>) -> Wrong {
        let at = self.node(key).map_or(self.node.at, |node| node.at);
        Wrong::new(at, self.path_of(key), problem)
    }

    /// A complaint that shows the value found.
    pub fn found(&self, key: &str, problem: &str) -> Wrong {
        let found = self.node(key).map(|node| node.value.to_string());
        self.wrong(key, format!("found {}: {problem}", found.as_deref().unwrap_or("nothing")))
    }

    /// That a name means nothing, with those that would.
    pub fn unknown<'n>(
        &self,
        key: &str,
        name: &str,
        what: &str,
        known: impl Iterator<Item = &'n str>,
    ) -> Wrong {
        let names: Vec<&str> = known.collect();
        let use_one = match names.as_slice() {
            [] => "there is none yet".into(),
            [one] => format!("use {one}"),
            names => format!("use one of {}", list(names)),
        };
        self.wrong(key, format!("found \"{name}\", which is no {what}: {use_one}"))
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    fn key(&self, name: &str) -> &'static Key {
        let key = self.schema.find(name);
        key.unwrap_or_else(|| unreachable!("{} has no key {name}", self.schema.title))
    }

    /// The value of a key, its default, or `None` if it may be left out.
    fn optional<T>(&self, name: &str, read: Read<T>) -> Result<Option<T>, Wrong> {
        let key = self.key(name);
        let kind = key.form.kind();
        let read = |value: &Value| read(value, kind).map_err(|problem| self.wrong(name, problem));
        match (self.node(name), &key.need) {
            (Some(node), _) => read(&node.value).map(Some),
            (None, Need::Default(text)) => read(&kind.value(text)).map(Some),
            (None, Need::Required) => Err(self.missing(name)),
            (None, Need::Optional) => Ok(None),
        }
    }

    /// That a key must be there.
    pub fn missing(&self, name: &str) -> Wrong {
        let form = &self.key(name).form;
        self.wrong(name, format!("found nothing: this key must be there; give {}", form.allowed()))
    }

    fn required<T>(&self, name: &str, read: Read<T>) -> Result<T, Wrong> {
        self.optional(name, read)?.ok_or_else(|| self.missing(name))
    }

    pub fn text(&self, name: &str) -> Result<Option<String>, Wrong> {
        self.optional(name, text)
    }

    pub fn name(&self, name: &str) -> Result<String, Wrong> {
        self.required(name, text)
    }

    pub fn span(&self, name: &str) -> Result<Span, Wrong> {
        self.required(name, span)
    }

    pub fn optional_span(&self, name: &str) -> Result<Option<Span>, Wrong> {
        self.optional(name, span)
    }

    pub fn rate(&self, name: &str) -> Result<Rate, Wrong> {
        self.required(name, parsed)
    }

    pub fn size(&self, name: &str) -> Result<u64, Wrong> {
        self.required(name, size)
    }

    pub fn optional_size(&self, name: &str) -> Result<Option<u64>, Wrong> {
        self.optional(name, size)
    }

    pub fn share(&self, name: &str) -> Result<Probability, Wrong> {
        self.required(name, parsed)
    }

    pub fn byte_time(&self, name: &str) -> Result<ByteTime, Wrong> {
        let time: ByteTime = self.required(name, parsed)?;
        if time > ByteTime::MAX {
            return Err(self.found(name, &format!("give at most {}", ByteTime::MAX)));
        }
        Ok(time)
    }

    pub fn flag(&self, name: &str) -> Result<bool, Wrong> {
        self.required(name, flag)
    }

    pub fn word(&self, name: &str) -> Result<&'static str, Wrong> {
        self.required(name, word)
    }

    /// A whole number; the schema's range has to fit `T`.
    pub fn whole<T: TryFrom<u64>>(&self, name: &str) -> Result<T, Wrong> {
        let number = self.required(name, whole)?;
        T::try_from(number)
            .map_err(|_| self.found(name, &format!("give {}", self.key(name).form.allowed())))
    }

    /// Bytes if the schema's range fits `T`.
    pub fn bytes<T: TryFrom<u64>>(&self, name: &str) -> Result<T, Wrong> {
        let number = self.size(name)?;
        T::try_from(number)
            .map_err(|_| self.found(name, &format!("give {}", self.key(name).form.allowed())))
    }

    /// The word that the first kind allows, or `None` for a value of the second kind.
    fn is_word(&self, name: &str) -> bool {
        let key = self.key(name);
        let text = match (self.node(name), &key.need) {
            (Some(node), _) => node.text(),
            (None, Need::Default(text)) => Some(*text),
            (None, _) => None,
        };
        matches!((text, key.form.kind()), (Some(text), Kind::Or(Kind::Word(words), _)) if words.contains(&text))
    }

    /// A word, or else a value that `read` understands.
    pub fn word_or<T>(&self, name: &str, read: Read<T>) -> Result<Option<T>, Wrong> {
        if self.is_word(name) {
            return Ok(None);
        }
        let digit = |text: &str| text.trim_start().starts_with(|c: char| c.is_ascii_digit());
        match self.node(name).and_then(Node::text) {
            Some(text) if !digit(text) => {
                Err(self.found(name, &format!("give {}", self.key(name).form.allowed())))
            }
            _ => self.required(name, read).map(Some),
        }
    }

    /// A cost: a time, or a table of a fixed part and one for each byte.
    pub fn cost(&self, name: &str) -> Result<Cost, Wrong> {
        match self.table(name) {
            Some(cost) => Ok(Cost { fixed: cost.span("fixed")?, per_byte: cost.span("per_byte")? }),
            None => Ok(Cost { fixed: self.span(name)?, per_byte: Span::ZERO }),
        }
    }

    /// A list of names; empty if the key is left out.
    pub fn names(&self, name: &str) -> Result<Vec<String>, Wrong> {
        self.each(name, text)
    }

    /// A list of sizes that fit 32 bits.
    pub fn sizes(&self, name: &str) -> Result<Vec<u32>, Wrong> {
        let sizes = self.each(name, size)?;
        let narrow = sizes.into_iter().map(u32::try_from);
        narrow
            .collect::<Result<_, _>>()
            .map_err(|_| self.found(name, &format!("give {}", self.key(name).form.allowed())))
    }

    fn each<T>(&self, name: &str, read: Read<T>) -> Result<Vec<T>, Wrong> {
        let key = self.key(name);
        let items = match (self.node(name).and_then(Node::items), &key.need) {
            (Some(items), _) => items,
            (None, Need::Required) => return Err(self.missing(name)),
            (None, _) => return Ok(Vec::new()),
        };
        let read = |item: &Node| {
            let wrong = |problem| Wrong::new(item.at, self.path_of(name), problem);
            read(&item.value, key.form.kind()).map_err(wrong)
        };
        items.iter().map(read).collect()
    }
}

/// A complaint that starts with the value found: `found "1.5Mbps", which has the unknown unit …`.
pub(super) fn complaint(value: &Value, reason: &str) -> String {
    let text = value.scalar().unwrap_or_default();
    match reason.strip_prefix(&format!("'{}' ", text.trim())) {
        Some(rest) => format!("found {value}, which {rest}"),
        None => format!("found {value}: {reason}"),
    }
}

fn mistaken<T>(value: &Value, kind: &Kind) -> Result<T, String> {
    Err(format!("found {value}: give {}", kind.one()))
}

fn text(value: &Value, kind: &Kind) -> Result<String, String> {
    match value {
        Value::Text(text) => Ok(text.to_string()),
        _ => mistaken(value, kind),
    }
}

/// By the type's own rules.
pub(super) fn parsed<T>(value: &Value, kind: &Kind) -> Result<T, String>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    let Some(text) = value.scalar() else { return mistaken(value, kind) };
    text.parse().map_err(|error: T::Err| complaint(value, &error.to_string()))
}

/// The same of a quantity. What no such quantity can hold is outside the range of the key.
fn quantity<T: FromStr<Err = ParseError>>(value: &Value, kind: &Kind) -> Result<T, String> {
    let Some(text) = value.scalar() else { return mistaken(value, kind) };
    match text.parse() {
        Err(ParseError::Range { .. }) => mistaken(value, kind),
        read => read.map_err(|error| complaint(value, &error.to_string())),
    }
}

pub(super) fn span(value: &Value, kind: &Kind) -> Result<Span, String> {
    let span = quantity(value, kind)?;
    match kind.range_of_spans() {
        Some((least, most)) if !(least..=most).contains(&span) => mistaken(value, kind),
        _ => Ok(span),
    }
}

pub(super) fn size(value: &Value, kind: &Kind) -> Result<u64, String> {
    let size = quantity::<Size>(value, kind)?.bytes();
    match kind.range() {
        Some((least, most)) if !(least..=most).contains(&size) => mistaken(value, kind),
        _ => Ok(size),
    }
}

pub(super) fn whole(value: &Value, kind: &Kind) -> Result<u64, String> {
    let number = match value {
        Value::Whole(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let range = kind.range();
    let allowed = |number: &u64| range.is_none_or(|(least, most)| (least..=most).contains(number));
    number.filter(allowed).map_or_else(|| mistaken(value, kind), Ok)
}

fn flag(value: &Value, kind: &Kind) -> Result<bool, String> {
    match value {
        Value::Flag(flag) => Ok(*flag),
        _ => mistaken(value, kind),
    }
}

fn word(value: &Value, kind: &Kind) -> Result<&'static str, String> {
    let words = match kind {
        Kind::Word(words) | Kind::Or(Kind::Word(words), _) => words,
        _ => return mistaken(value, kind),
    };
    let found = words.iter().find(|&&word| matches!(value, Value::Text(text) if **text == *word));
    found.copied().map_or_else(|| mistaken(value, kind), Ok)
}
