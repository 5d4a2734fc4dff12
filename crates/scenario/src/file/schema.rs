//! The tables and keys of a scenario file: what each takes, its range and its default.
//!
//! Everything that has to know the keys starts from here: reading, the complaint about an unknown one,
//! grids (a list in place of one value), the JSON Schema, and the test of the reference page.

use super::tree::Value;
use std::sync::LazyLock;
use trunkline_core::Span;

/// A kind of table.
#[derive(Debug)]
pub(super) struct Table {
    /// How a complaint calls it: `[[link]]`.
    pub title: &'static str,
    /// What it describes.
    pub help: &'static str,
    /// Its keys, in groups that several tables share.
    pub groups: &'static [&'static [Key]],
    /// The tables of kinds that stand elsewhere, each with the keys that this kind has besides.
    pub kinds: Option<fn() -> &'static [Table]>,
}

/// A key of a table.
#[derive(Debug)]
pub(super) struct Key {
    pub name: &'static str,
    pub form: Form,
    pub need: Need,
    pub help: &'static str,
    /// The kinds of traffic, or of transport, that have it; all if empty.
    pub only: &'static [&'static str],
}

/// How many values a key takes.
#[derive(Debug)]
pub(super) enum Form {
    /// One, the same in every cell.
    Fixed(Kind),
    /// One; a list of them is an axis of the grid.
    One(Kind),
    /// A list; a list of lists is an axis.
    List(Kind),
    /// Tables that are written one after the other, `[[key]]`.
    Elements(&'static Table),
    /// Tables with names, `[key.NAME]`.
    Named(&'static Table),
}

/// What happens if a key is left out.
#[derive(Debug)]
pub(super) enum Need {
    /// It must be there.
    Required,
    /// Something is then absent, or taken from elsewhere, as the help text says.
    Optional,
    /// This value holds.
    Default(&'static str),
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// The name of an element.
    Name,
    /// A whole number within limits.
    Whole(u64, u64),
    /// A length of time within limits.
    Span(Span, Span),
    /// A rate in bits per second.
    Rate,
    /// Bytes within limits, as a number or a text with a unit.
    Size(u64, u64),
    /// A time for each byte, in steps of a picosecond.
    ByteTime,
    /// A share from 0 to 1, as a number or a text with `%`.
    Share,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A setting of a path with the value text of the command line: the setting's name, and an example.
    Setting(&'static str, &'static str),
    /// A table.
    Table(&'static Table),
    /// A table that is put together from what other rooms describe.
    Built(&'static LazyLock<Table>),
    /// Either of two.
    Or(&'static Kind, &'static Kind),
}

impl Table {
    /// Every key, those of kinds that stand elsewhere last. Kinds may give one name different meanings.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> {
        let kinds = self.kinds.map_or(&[][..], |kinds| kinds());
        let groups = self.groups.iter().chain(kinds.iter().flat_map(|kind| kind.groups));
        groups.flat_map(|group| group.iter())
    }

    /// The names of all keys, each once.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<&str> = Vec::new();
        for key in self.keys() {
            if !names.contains(&key.name) {
                names.push(key.name);
            }
        }
        names
    }

    /// The key called `name`, also if `-` stands for `_`.
    pub fn find(&self, name: &str) -> Option<&'static Key> {
        let written = |byte| if byte == b'-' { b'_' } else { byte };
        let same = |key: &str| key == name || key.bytes().eq(name.bytes().map(written));
        self.keys().find(|key| key.name.len() == name.len() && same(key.name))
    }
}

impl Kind {
    /// The table that it may be written as.
    pub fn table(&self) -> Option<&'static Table> {
        match self {
            Kind::Table(table) => Some(table),
            Kind::Built(table) => Some(table),
            Kind::Or(one, other) => one.table().or_else(|| other.table()),
            _ => None,
        }
    }

    /// What is allowed, for one value: `a time from 1ns to 3600s, such as "250ms"`.
    pub fn one(&self) -> String {
        match self {
            Kind::Text => "a text".into(),
            Kind::Name => "a name, such as \"t1\"".into(),
            Kind::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Span(least, most) => format!("a time from {least} to {most}, such as \"250ms\""),
            Kind::Rate => "a rate such as \"10Mbit/s\"".into(),
            Kind::Size(least, most) => {
                format!("bytes from {least} to {most}, such as 1024 or \"1KiB\"")
            }
            Kind::ByteTime => "a time for each byte, such as \"1412.5ns\"".into(),
            Kind::Share => "a share from 0 to 1, such as \"0.5%\"".into(),
            Kind::Flag => "true or false".into(),
            Kind::Word(words) => match words {
                [word] => format!("\"{word}\""),
                words => format!("one of \"{}\"", words.join("\", \"")),
            },
            Kind::Setting(_, example) => format!("a value such as \"{example}\""),
            Kind::Table(table) => with_keys(table),
            Kind::Built(table) => with_keys(table),
            Kind::Or(one, other) => format!("{}, or {}", one.one(), other.one()),
        }
    }

    /// What is allowed in a list.
    pub fn many(&self) -> &'static str {
        match self {
            Kind::Size(..) => "sizes in bytes, such as [1, 64, 512]",
            Kind::Name => "names, such as [\"a\", \"b\"]",
            Kind::Table(_) => "tables, such as [{ below = 512, piece = 64 }, { piece = 1024 }]",
            _ => "values",
        }
    }
}

fn with_keys(table: &'static Table) -> String {
    let keys = table.names();
    format!("a table with {}", keys.join(", "))
}

impl Form {
    /// The table that a value of the key may be written as.
    pub fn table(&self) -> Option<&'static Table> {
        match self {
            Form::Fixed(kind) | Form::One(kind) | Form::List(kind) => kind.table(),
            Form::Elements(table) | Form::Named(table) => Some(table),
        }
    }
}

impl Form {
    /// What one value of the key is; of a table of tables, a table.
    pub fn kind(&self) -> &Kind {
        match self {
            Form::Fixed(kind) | Form::One(kind) | Form::List(kind) => kind,
            Form::Elements(_) | Form::Named(_) => &Kind::Text,
        }
    }

    /// What is allowed.
    pub fn allowed(&self) -> String {
        match self {
            Form::Fixed(kind) | Form::One(kind) => kind.one(),
            Form::List(kind) => format!("a list of {}", kind.many()),
            Form::Elements(table) | Form::Named(table) => format!("{} tables", table.title),
        }
    }
}

impl Kind {
    /// The least and the greatest of a number or of bytes.
    pub fn range(&self) -> Option<(u64, u64)> {
        match self {
            Kind::Whole(least, most) | Kind::Size(least, most) => Some((*least, *most)),
            Kind::Or(one, other) => one.range().or_else(|| other.range()),
            _ => None,
        }
    }

    /// The shortest and the longest of a time.
    pub fn range_of_spans(&self) -> Option<(Span, Span)> {
        match self {
            Kind::Span(least, most) => Some((*least, *most)),
            Kind::Or(one, other) => one.range_of_spans().or_else(|| other.range_of_spans()),
            _ => None,
        }
    }

    /// A default's text as a value.
    pub fn value(&self, text: &str) -> Value {
        match (self, text.parse()) {
            (Kind::Whole(..) | Kind::Size(..), Ok(number)) => Value::Whole(number),
            (Kind::Flag, _) => Value::Flag(text == "true"),
            (Kind::Or(one, other), _) => match one.value(text) {
                Value::Text(_) => other.value(text),
                value => value,
            },
            _ => Value::Text(text.into()),
        }
    }
}
