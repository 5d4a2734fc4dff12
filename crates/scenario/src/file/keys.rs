//! Every key is one that its table has, and every value of the shape that its key takes.

use super::error::{Wrong, list, nearest};
use super::schema::{Form, Key, Kind, Table};
use super::tables::FILE;
use super::tree::{Entry, Node, Value};

/// Words that people bring along from elsewhere, with ours.
const FOREIGN: &[(&str, &str)] = &[
    ("queue", "discipline"),
    ("qdisc", "discipline"),
    ("bandwidth", "rate"),
    ("latency", "delay"),
    ("window", "outstanding"),
    ("ber", "bit_errors"),
    ("nodes", "between"),
    ("ends", "between"),
    ("source", "from"),
    ("destination", "to"),
    ("flows", "count"),
    ("type", "kind"),
    ("wait", "start"),
    ("delayed", "start"),
];

/// Checks the tree of a file, and writes its keys as the schema does (`_` for `-`).
pub(super) fn check(root: &mut Node) -> Result<(), Wrong> {
    table(root, &FILE, "")
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.into() } else { format!("{path}.{key}") }
}

fn table(node: &mut Node, schema: &'static Table, path: &str) -> Result<(), Wrong> {
    let Value::Table(entries) = &mut node.value else { return Ok(()) };
    for index in 0..entries.len() {
        let key = known(&entries[index], schema, path)?;
        let twice = entries[..index].iter().any(|before| *before.key == *key.name);
        let entry = &mut entries[index];
        if twice {
            let problem = format!("found {} again as '{}': leave one out", key.name, entry.key);
            return Err(Wrong::new(entry.at, join(path, key.name), problem));
        }
        if *entry.key != *key.name {
            entry.key = key.name.into();
        }
        form(&mut entry.node, key, &join(path, key.name))?;
    }
    Ok(())
}

fn known(entry: &Entry, schema: &'static Table, path: &str) -> Result<&'static Key, Wrong> {
    let unknown = || {
        let names = || schema.names().into_iter();
        let ours = FOREIGN.iter().find(|(foreign, _)| *foreign == &*entry.key).map(|it| it.1);
        let ours = ours.filter(|ours| names().any(|name| name == *ours));
        let problem = match ours.or_else(|| nearest(&entry.key, names())) {
            Some(near) => format!("found no such key: did you mean '{near}'?"),
            None => format!("found no such key: {} takes {}", schema.title, list(names())),
        };
        Wrong::new(entry.at, join(path, &entry.key), problem)
    };
    schema.find(&entry.key).ok_or_else(unknown)
}

fn form(node: &mut Node, key: &'static Key, path: &str) -> Result<(), Wrong> {
    let wrong = |node: &Node, allowed: String| {
        let problem = format!("found {}, {}: {allowed}", node.value, node.value.sort());
        Err(Wrong::new(node.at, path, problem))
    };
    match &key.form {
        Form::Elements(schema) => match &mut node.value {
            Value::List(items) if items.iter().all(is_table) => elements(items, schema, path),
            _ => wrong(node, format!("write [[{path}]] with two brackets, once for each")),
        },
        Form::Named(schema) => match &mut node.value {
            Value::Table(entries) if entries.iter().all(|entry| is_table(&entry.node)) => entries
                .iter_mut()
                .try_for_each(|entry| table(&mut entry.node, schema, &join(path, &entry.key))),
            _ => wrong(node, format!("write [{path}.NAME] above the keys of one")),
        },
        Form::Fixed(_) if node.items().is_some() => {
            wrong(node, "this key cannot be an axis of the grid; give one value".into())
        }
        Form::Fixed(kind) => value(node, kind, path),
        Form::One(kind) => one(node, kind, path),
        Form::List(kind) => many(node, kind, path),
    }
}

fn is_table(node: &Node) -> bool {
    matches!(node.value, Value::Table(_))
}

fn elements(items: &mut [Node], schema: &'static Table, path: &str) -> Result<(), Wrong> {
    for item in items {
        let path = element(path, item);
        table(item, schema, &path)?;
    }
    Ok(())
}

/// The path of an element: with its name, for a link without one with its ends.
pub(super) fn element(path: &str, item: &Node) -> String {
    let text = |node: &Node| node.text().map(str::to_string);
    let ends = || {
        let ends: Option<Vec<String>> = item.get("between")?.items()?.iter().map(text).collect();
        ends.filter(|ends| ends.len() == 2).map(|ends| ends.join("-"))
    };
    match item.get("name").map_or_else(ends, text) {
        Some(name) => join(path, &name),
        None => path.into(),
    }
}

/// One value, or a list of them as an axis.
fn one(node: &mut Node, kind: &'static Kind, path: &str) -> Result<(), Wrong> {
    let Value::List(items) = &mut node.value else { return value(node, kind, path) };
    if items.is_empty() {
        return Err(empty(node, "one value, or a list of the values of the grid's axis", path));
    }
    items.iter_mut().try_for_each(|item| value(item, kind, path))
}

/// A list of values, or a list of lists as an axis.
fn many(node: &mut Node, kind: &'static Kind, path: &str) -> Result<(), Wrong> {
    let allowed = format!("a list of {}", kind.many());
    let Value::List(items) = &mut node.value else {
        let found = format!("found {}, {}: give {allowed}", node.value, node.value.sort());
        return Err(Wrong::new(node.at, path, found));
    };
    if items.is_empty() {
        return Err(empty(node, &allowed, path));
    }
    if items.iter().all(|item| item.items().is_some()) {
        return items.iter_mut().try_for_each(|item| match &mut item.value {
            Value::List(inner) if !inner.is_empty() => {
                inner.iter_mut().try_for_each(|item| value(item, kind, path))
            }
            _ => Err(empty(item, &allowed, path)),
        });
    }
    items.iter_mut().try_for_each(|item| value(item, kind, path))
}

fn empty(node: &Node, allowed: &str, path: &str) -> Wrong {
    Wrong::new(node.at, path, format!("found an empty list: give {allowed}"))
}

/// A value's shape: a table only if one is taken; what a scalar says is for its reader.
fn value(node: &mut Node, kind: &'static Kind, path: &str) -> Result<(), Wrong> {
    // A table is asked for only if there is one: that of all disciplines is put together when it is first asked for.
    let problem = match node.value {
        Value::Table(_) => match kind.table() {
            Some(schema) => return table(node, schema, path),
            None => true,
        },
        Value::List(_) => true,
        _ => false,
    };
    if problem {
        let found = format!("found {}, {}: give {}", node.value, node.value.sort(), kind.one());
        return Err(Wrong::new(node.at, path, found));
    }
    Ok(())
}
