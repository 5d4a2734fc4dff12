//! A TOML text to its tree. The elements of lists of tables are read one after the other: the parser's own tree of a
//! text takes some thirty times the text, ours six times.

use super::error::Wrong;
use super::tree::{Entry, Node, Value, cut};
use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;
use toml::de::{DeTable, DeValue};
use toml_parser::Source;
use toml_parser::lexer::{Token, TokenKind};

/// Longest text that is read, in bytes: 400,000 connections, each with two hosts and links of its own.
pub(super) const LONGEST: usize = 256 << 20;

/// Reads a TOML text.
pub(super) fn parse(text: &str) -> Result<Node, Wrong> {
    if text.len() > LONGEST {
        let problem = format!("it is longer than {LONGEST} bytes: describe less at once");
        return Err(Wrong::new(0, "", problem));
    }
    in_parts(text).map_or_else(|| whole(text), Ok)
}

/// The tree of a text, read at once.
fn whole(text: &str) -> Result<Node, Wrong> {
    let entries = Builder::default().read(text, 0)?;
    Ok(Node { at: 0, value: Value::Table(entries) })
}

/// The tree of a text, read in parts; `None` if the parts alone do not tell what the whole means, or if one is wrong.
fn in_parts(text: &str) -> Option<Node> {
    let parts = elements(text);
    let mut builder = Builder::default();
    let mut root = builder.read(&without(text, &parts), 0).ok()?.into_vec();
    let mut lists: Vec<List> = Vec::new();
    for part in parts {
        let entries = builder.read(&text[part.clone()], part.start).ok()?.into_vec();
        let [entry] = <[Entry; 1]>::try_from(entries).ok()?;
        append(&mut lists, entry)?;
    }
    // What stands elsewhere under the same key belongs to an element, or contradicts it.
    if lists.iter().any(|list| root.iter().any(|entry| entry.key == list.key)) {
        return None;
    }
    root.extend(lists.into_iter().map(List::entry));
    root.sort_by_key(|entry| entry.at);
    Some(Node { at: 0, value: Value::Table(root.into()) })
}

/// A list of tables whose elements come one after the other.
struct List {
    key: Rc<str>,
    at: usize,
    /// Where its value starts.
    start: usize,
    items: Vec<Node>,
}

impl List {
    fn entry(self) -> Entry {
        let value = Value::List(self.items.into());
        Entry { key: self.key, at: self.at, node: Node { at: self.start, value } }
    }
}

/// Appends the element that a part consists of to its list.
fn append(lists: &mut Vec<List>, part: Entry) -> Option<()> {
    let Entry { key, at, node: Node { at: start, value: Value::List(items) } } = part else {
        return None;
    };
    match lists.iter_mut().find(|list| list.key == key) {
        Some(list) => list.items.extend(items),
        None => lists.push(List { key, at, start, items: items.into() }),
    }
    Some(())
}

/// Where the elements `[[key]]` of a text stand, each with the tables `[key.…]` that follow it.
fn elements(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut key = None;
    for at in headers(text) {
        let rest = &text[at..];
        if key.is_some_and(|key| continues(rest, key)) {
            continue;
        }
        if let (Some(_), Some(part)) = (key, found.last_mut()) {
            part.end = at;
        }
        key = element(rest);
        if key.is_some() {
            found.push(at..text.len());
        }
    }
    found
}

/// Whether `text` starts with the header of a table below `key`.
fn continues(text: &str, key: &str) -> bool {
    let path = text.trim_start_matches('[');
    path.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
}

/// The key of the header `[[key]]` that `text` starts with.
fn element(text: &str) -> Option<&str> {
    let (key, _) = text.strip_prefix("[[")?.split_once("]]")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    key.bytes().all(plain).then_some(key)
}

/// Where the headers of a text start: a bracket that begins a line, outside of every value.
fn headers(text: &str) -> impl Iterator<Item = usize> {
    let (mut depth, mut begins) = (0_usize, true);
    let header = move |token: Token| {
        let kind = token.kind();
        let found = kind == TokenKind::LeftSquareBracket && begins && depth == 0;
        match kind {
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => depth += 1,
            TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => {
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        begins = kind == TokenKind::Newline || begins && kind == TokenKind::Whitespace;
        found.then(|| token.span().start())
    };
    Source::new(text).lex().filter_map(header)
}

/// The text with blanks in place of `parts`, so that what is left stands at its place. It ends with what is left: the
/// parser makes room for seven times its text, however empty that is.
fn without(text: &str, parts: &[Range<usize>]) -> String {
    let starts = std::iter::once(0).chain(parts.iter().map(|part| part.end));
    let ends = parts.iter().map(|part| part.start).chain([text.len()]);
    let mut rest = String::new();
    for (start, end) in std::iter::zip(starts, ends).filter(|(start, end)| start < end) {
        rest.extend(std::iter::repeat_n(' ', start - rest.len()));
        rest.push_str(&text[start..end]);
    }
    rest
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

/// Makes our tree of the parser's.
#[derive(Debug, Default)]
struct Builder {
    keys: HashSet<Rc<str>>,
    /// The byte offset of the part that is read.
    start: usize,
}

impl Builder {
    /// The entries of a text that starts at byte `start`.
    fn read(&mut self, text: &str, start: usize) -> Result<Box<[Entry]>, Wrong> {
        self.start = start;
        let table = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            Wrong::new(start + at, "", not_toml(text, at, error.message()))
        })?;
        self.entries(table.get_ref())
    }

    fn entries(&mut self, table: &DeTable<'_>) -> Result<Box<[Entry]>, Wrong> {
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table {
            let node = self.node(value.span().start, key.get_ref(), value.get_ref())?;
            let at = self.start + key.span().start;
            entries.push(Entry { key: self.key(key.get_ref()), at, node });
        }
        entries.sort_by_key(|entry| entry.at);
        Ok(entries.into())
    }

    fn key(&mut self, key: &str) -> Rc<str> {
        if let Some(known) = self.keys.get(key) {
            return known.clone();
        }
        let key: Rc<str> = key.into();
        self.keys.insert(key.clone());
        key
    }

    /// The value under `key` that stands at `at` of the part.
    fn node(&mut self, at: usize, key: &str, value: &DeValue<'_>) -> Result<Node, Wrong> {
        let at = self.start + at;
        let value = match value {
            DeValue::String(text) => Value::Text((**text).into()),
            DeValue::Integer(number) => {
                let read = i64::from_str_radix(number.as_str(), number.radix());
                Value::Whole(read.map_err(|_| {
                    let problem = format!("found {number}: whole numbers end at {}", i64::MAX);
                    Wrong::new(at, key, problem)
                })?)
            }
            DeValue::Float(number) => Value::Fraction(number.as_str().into()),
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Array(list) => {
                let items = list.iter().map(|it| self.node(it.span().start, key, it.get_ref()));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => Value::Table(self.entries(table)?),
            DeValue::Datetime(date) => {
                let problem =
                    format!("found the date {date}: no key takes a date; times are spans, \"5s\"");
                return Err(Wrong::new(at, key, problem));
            }
        };
        Ok(Node { at, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_keep_the_files_order_and_their_places() {
        let root = parse("b = 1\na = [0xff, 'x', 1e-7]\n[z]\nq.r = true\n").unwrap();
        let keys: Vec<(&str, usize)> =
            root.entries().iter().map(|entry| (&*entry.key, entry.at)).collect();
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

    /// Texts whose parts are easily taken for what they are not.
    const TRICKY: &[&str] = &[
        "a = 1\n[[b]]\nc = 2\n[b.d]\ne = 3\n[[b]]\n\n[x.y]\nz = [\n[1],\n[2]]\n[[f]]\ng = 'h'\n",
        "[[b]]\na = \"\"\"\n[[b]]\n\"\"\"\n[[b]]\nc = '''\n[[d]]\n'''\n[[d]]\n",
        "a = [\n[[1]]\n]\n[[b]]\n  [[b.c]]\n  [[b.c]]\nd = { e = [\n[]] }\n[[b]] # [[b]]\n",
        "[[a]]\n[[b]]\n[a.c]\nd = 1\n",
        "[[a]]\n[[ a ]]\nb = 1\n[[\"a\"]]\n[['a']]\n[[a]]\n",
        "[[a]]\n[b]\n[[a]]\n[b]\n",
        "a = []\n[[a]]\n[[a]]\n",
        "a.b = 1\n[[a]]\n[[a]]\n",
        "[[a]]\nb = 1\nb = 2\n[[a]]\n",
        "[[a]]\nb = 99999999999999999999\n[[a]]\n",
        "[[a]]\nb = \"\"\"\n[[a]]\n",
        "[[a]]\nb = [\n[[a]]\nc = 1\n",
        "a = \n[[a]]\n[[]]\n[[a.b]]\n",
        "\u{feff}[[a]]\nb = 1\n[[a]]\r\nb = 2\n[c]\n",
        "[[a]] [[a]]\n[[a]]\n]\n[[b]]\n",
        "[[a]]\n[[a.b]]\n[a.b.c]\n[aa]\n[[a.b]]\n[[aa]]\n",
        "",
    ];

    #[test]
    fn a_text_read_in_parts_is_the_text_read_at_once() {
        for text in TRICKY {
            assert_eq!(parse(text), whole(text), "{text}");
            if let Some(parts) = in_parts(text) {
                assert_eq!(Ok(parts), whole(text), "{text}");
            }
        }
        assert!(in_parts(TRICKY[0]).is_some() && in_parts(TRICKY[1]).is_some());
    }

    #[test]
    fn what_is_left_ends_where_it_ends() {
        let text = "a = 1\n[[b]]\nc = 2\n[d]\n[[b]]\nc = 3\n";
        let blanks = " ".repeat("[[b]]\nc = 2\n".len());
        assert_eq!(without(text, &elements(text)), format!("a = 1\n{blanks}[d]\n"));
        assert_eq!(without("[[b]]\n[[b]]\n", &[0..6, 6..12]), "");
    }

    proptest! {
        #[test]
        fn damaged_texts_read_in_parts_are_those_read_at_once(
            lines in proptest::collection::vec(0..12_usize, 0..12),
            cut in 0..80_usize,
        ) {
            let kinds = [
                "[[a]]", "[[b]]", "[a.c]", "[d]", "[[a.e]]", "f = 1", "g = [", "]", "h = \"\"\"", "\"\"\"",
                "i = { j = 1 }", "[[k.l]]",
            ];
            let text = lines.iter().map(|&line| kinds[line]).collect::<Vec<_>>().join("\n");
            let text = text.get(..cut.min(text.len())).unwrap_or_default();
            prop_assert_eq!(parse(text), whole(text));
        }
    }

    #[test]
    fn an_element_is_read_without_the_others() {
        let element = "[[host]]\nname = \"one\"\n[host.processor]\nread = 1\n";
        let text = element.repeat(3) + "[rest]\n" + element;
        let parts: Vec<&str> = elements(&text).into_iter().map(|part| &text[part]).collect();
        assert_eq!(parts, [element; 4]);
    }
}
