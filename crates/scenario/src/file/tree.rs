//! The values of a TOML text with their places, in the order in which they were written.

use std::fmt;
use std::rc::Rc;

/// A value with the byte offset at which it starts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub at: usize,
    pub value: Value,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(Box<str>),
    Whole(i64),
    /// A number with a fraction, as written.
    Fraction(Box<str>),
    Flag(bool),
    List(Box<[Node]>),
    Table(Box<[Entry]>),
}

/// A key with its place and its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// Shared by all entries with this key.
    pub key: Rc<str>,
    pub at: usize,
    pub node: Node,
}

/// `text`, or its beginning if it is too long to be shown.
pub(super) fn cut(text: String) -> String {
    match text.chars().nth(SHOWN) {
        None => text,
        Some(_) => text.chars().take(SHOWN).chain(['…']).collect(),
    }
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
        self.entries().iter().find(|entry| *entry.key == *key).map(|entry| &entry.node)
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
            Value::Text(text) => Some(text.to_string()),
            Value::Whole(number) => Some(number.to_string()),
            Value::Fraction(number) => Some(number.to_string()),
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
            Value::Text(text) => write!(f, "\"{}\"", cut(text.to_string())),
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
