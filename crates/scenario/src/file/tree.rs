//! The values of a TOML text with their places, in the order in which they were written.

use super::error::Wrong;
use std::fmt;
use toml::de::{DeTable, DeValue};

/// Longest text that is read, in bytes: 400,000 connections, each with two hosts and links of its own.
pub(super) const LONGEST: usize = 256 << 20;

/// A value with the byte offset at which it starts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub at: usize,
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    /// A number with a fraction, as written.
    Fraction(String),
    Flag(bool),
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its place and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub key: String,
    pub at: usize,
    pub node: Node,
}

/// Reads a TOML text.
pub(super) fn parse(text: &str) -> Result<Node, Wrong> {
    if text.len() > LONGEST {
        let problem = format!("it is longer than {LONGEST} bytes: describe less at once");
        return Err(Wrong::new(0, "", problem));
    }
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Wrong::new(at, "", not_toml(text, at, error.message()))
    })?;
    let root = table.get_ref();
    entries(root).map(|entries| Node { at: 0, value: Value::Table(entries) })
}

/// The line that is not TOML, and what was expected.
fn not_toml(text: &str, at: usize, expected: &str) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = text.lines().nth(before.matches('\n').count()).unwrap_or("the end");
    // The reader of TOML takes a word without quotes for a truth value.
    let quotes = ["boolean", "quoted"].iter().any(|word| expected.contains(word));
    let reason = if quotes { "a text stands in quotes, \"…\"" } else { expected };
    format!("found '{}', which is not TOML: {reason}", cut(line.trim().into()))
}

/// `text`, or its beginning if it is too long to be shown.
fn cut(text: String) -> String {
    match text.chars().nth(SHOWN) {
        None => text,
        Some(_) => text.chars().take(SHOWN).chain(['…']).collect(),
    }
}

fn entries(table: &DeTable<'_>) -> Result<Vec<Entry>, Wrong> {
    let entries = table.iter().map(|(key, value)| {
        let node = node(value.span().start, key.get_ref(), value.get_ref())?;
        Ok(Entry { key: key.get_ref().to_string(), at: key.span().start, node })
    });
    let mut entries = entries.collect::<Result<Vec<Entry>, Wrong>>()?;
    entries.sort_by_key(|entry| entry.at);
    Ok(entries)
}

fn node(at: usize, key: &str, value: &DeValue<'_>) -> Result<Node, Wrong> {
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => {
            let read = i64::from_str_radix(number.as_str(), number.radix());
            Value::Whole(read.map_err(|_| {
                Wrong::new(at, key, format!("found {number}: whole numbers end at {}", i64::MAX))
            })?)
        }
        DeValue::Float(number) => Value::Fraction(number.as_str().to_string()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Array(list) => {
            let items = list.iter().map(|item| node(item.span().start, key, item.get_ref()));
            Value::List(items.collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Value::Table(entries(table)?),
        DeValue::Datetime(date) => {
            let problem =
                format!("found the date {date}: no key takes a date; times are spans, \"5s\"");
            return Err(Wrong::new(at, key, problem));
        }
    };
    Ok(Node { at, value })
}

impl Node {
    /// The entries of a table; none if it is something else.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; `None` if it is something else.
    pub fn items(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The value under `key`.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    /// The text; `None` if it is something else.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Value {
    /// What sort of value it is, with an article.
    pub fn sort(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Whole(_) => "a whole number",
            Value::Fraction(_) => "a number with a fraction",
            Value::Flag(_) => "a truth value",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// Whether it is the same, wherever it was written.
    pub fn like(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::List(one), Value::List(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| one.value.like(&other.value))
            }
            (Value::Table(one), Value::Table(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(one, other)| {
                        one.key == other.key && one.node.value.like(&other.node.value)
                    })
            }
            (one, other) => one == other,
        }
    }

    /// A text, or a number as it was written: what the settings of a path are made of.
    pub fn scalar(&self) -> Option<String> {
        match self {
            Value::Text(text) => Some(text.clone()),
            Value::Whole(number) => Some(number.to_string()),
            Value::Fraction(number) => Some(number.clone()),
            _ => None,
        }
    }
}

/// Longest list or table that is shown whole.
const SHOWN: usize = 60;

impl fmt::Display for Value {
    /// As it would be written, long lists and tables cut short.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => write!(f, "\"{}\"", cut(text.clone())),
            Value::Whole(number) => number.fmt(f),
            Value::Fraction(number) => f.write_str(number),
            Value::Flag(flag) => flag.fmt(f),
            Value::List(items) => {
                let items: Vec<String> =
                    items.iter().take(SHOWN).map(|item| item.value.to_string()).collect();
                write!(f, "[{}]", cut(items.join(", ")))
            }
            Value::Table(entries) => {
                let pair = |entry: &Entry| format!("{} = {}", entry.key, entry.node.value);
                let pairs: Vec<String> = entries.iter().take(SHOWN).map(pair).collect();
                match pairs.is_empty() {
                    true => f.write_str("{}"),
                    false => write!(f, "{{ {} }}", cut(pairs.join(", "))),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_the_files_order_and_their_places() {
        let root = parse("b = 1\na = [0xff, 'x', 1e-7]\n[z]\nq.r = true\n").unwrap();
        let keys: Vec<(&str, usize)> =
            root.entries().iter().map(|entry| (entry.key.as_str(), entry.at)).collect();
        assert_eq!(keys, [("b", 0), ("a", 6), ("z", 29)]);
        assert_eq!(root.get("a").unwrap().value.to_string(), "[255, \"x\", 1e-7]");
        assert_eq!(root.get("z").unwrap().value.to_string(), "{ q = { r = true } }");
    }

    #[test]
    fn what_cannot_be_a_value_is_refused() {
        for (text, at) in [("a = 99999999999999999999", 4), ("\na = 2001-01-01", 5), ("a = ", 4)] {
            assert_eq!(parse(text).unwrap_err().at, at, "{text}");
        }
        assert!(parse(&" ".repeat(LONGEST + 1)).is_err());
        assert!(parse(&format!("a = {}", "[".repeat(100_000))).is_err(), "no end of nesting");
    }
}
