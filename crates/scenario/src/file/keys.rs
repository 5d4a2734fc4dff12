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
///
/// A complaint gets its path on the way out, key by key: most files give no cause for one.
pub(super) fn check(root: &mut Node) -> Result<(), Wrong> {
    table(root, &FILE)
}

fn join(path: &str, key: &str) -> String {
    match (path, key) {
        ("", one) | (one, "") => one.into(),
        _ => format!("{path}.{key}"),
    }
}

/// The same complaint, of what stands under `key`.
fn under(key: &str) -> impl Fn(Wrong) -> Wrong {
    move |wrong| Wrong { key: join(key, &wrong.key), ..wrong }
}

fn table(node: &mut Node, schema: &'static Table) -> Result<(), Wrong> {
    let Value::Table(entries) = &mut node.value else { return Ok(()) };
    for index in 0..entries.len() {
        let key = known(&entries[index], schema)?;
        let twice = entries[..index].iter().any(|before| *before.key == *key.name);
        let entry = &mut entries[index];
        if twice {
            let problem = format!("found {} again as '{}': leave one out", key.name, entry.key);
            return Err(Wrong::new(entry.at, key.name, problem));
        }
        if *entry.key != *key.name {
            entry.key = key.name.into();
        }
        form(&mut entry.node, key).map_err(under(key.name))?;
    }
    Ok(())
}

fn known(entry: &Entry, schema: &'static Table) -> Result<&'static Key, Wrong> {
    let unknown = || {
        let names = || schema.names().into_iter();
        let ours = FOREIGN.iter().find(|(foreign, _)| *foreign == &*entry.key).map(|it| it.1);
        let ours = ours.filter(|ours| names().any(|name| name == *ours));
        let problem = match ours.or_else(|| nearest(&entry.key, names())) {
            Some(near) => format!("found no such key: did you mean '{near}'?"),
            None => format!("found no such key: {} takes {}", schema.title, list(names())),
        };
        Wrong::new(entry.at, &*entry.key, problem)
    };
    schema.find(&entry.key).ok_or_else(unknown)
}

fn form(node: &mut Node, key: &'static Key) -> Result<(), Wrong> {
    let wrong = |node: &Node, allowed: String| {
        let problem = format!("found {}, {}: {allowed}", node.value, node.value.sort());
        Err(Wrong::new(node.at, "", problem))
    };
    // Elements and named tables stand at the top of a file, so that the key is the whole path.
    match &key.form {
        Form::Elements(schema) => match &mut node.value {
            Value::List(items) if items.iter().all(is_table) => elements(items, schema),
            _ => wrong(node, format!("write [[{}]] with two brackets, once for each", key.name)),
        },
        Form::Named(schema) => match &mut node.value {
            Value::Table(entries) if entries.iter().all(|entry| is_table(&entry.node)) => entries
                .iter_mut()
                .try_for_each(|it| table(&mut it.node, schema).map_err(under(&it.key))),
            _ => wrong(node, format!("write [{}.NAME] above the keys of one", key.name)),
        },
        Form::Fixed(_) if node.items().is_some() => {
            wrong(node, "this key cannot be an axis of the grid; give one value".into())
        }
        Form::Fixed(kind) => value(node, kind),
        Form::One(kind) => one(node, kind),
        Form::List(kind) => many(node, kind),
    }
}

fn is_table(node: &Node) -> bool {
    matches!(node.value, Value::Table(_))
}

fn elements(items: &mut [Node], schema: &'static Table) -> Result<(), Wrong> {
    for item in items {
        table(item, schema).map_err(|wrong| under(&element("", item))(wrong))?;
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
    join(path, &item.get("name").map_or_else(ends, text).unwrap_or_default())
}

/// One value, or a list of them as an axis.
fn one(node: &mut Node, kind: &'static Kind) -> Result<(), Wrong> {
    let Value::List(items) = &mut node.value else { return value(node, kind) };
    if items.is_empty() {
        return Err(empty(node, "one value, or a list of the values of the grid's axis"));
    }
    items.iter_mut().try_for_each(|item| value(item, kind))
}

/// A list of values, or a list of lists as an axis.
fn many(node: &mut Node, kind: &'static Kind) -> Result<(), Wrong> {
    let allowed = || format!("a list of {}", kind.many());
    let Value::List(items) = &mut node.value else {
        let found = format!("found {}, {}: give {}", node.value, node.value.sort(), allowed());
        return Err(Wrong::new(node.at, "", found));
    };
    if items.is_empty() {
        return Err(empty(node, &allowed()));
    }
    if items.iter().all(|item| item.items().is_some()) {
        return items.iter_mut().try_for_each(|item| match &mut item.value {
            Value::List(inner) if !inner.is_empty() => {
                inner.iter_mut().try_for_each(|item| value(item, kind))
            }
            _ => Err(empty(item, &allowed())),
        });
    }
    items.iter_mut().try_for_each(|item| value(item, kind))
}

fn empty(node: &Node, allowed: &str) -> Wrong {
    Wrong::new(node.at, "", format!("found an empty list: give {allowed}"))
}

/// A value's shape: a table only if one is taken; what a scalar says is for its reader.
fn value(node: &mut Node, kind: &'static Kind) -> Result<(), Wrong> {
    // A table is asked for only if there is one: that of all disciplines is put together when it is first asked for.
    let problem = match node.value {
        Value::Table(_) => match kind.table() {
            Some(schema) => return table(node, schema),
            None => true,
        },
        Value::List(_) => true,
        _ => false,
    };
    if problem {
        let found = format!("found {}, {}: give {}", node.value, node.value.sort(), kind.one());
        return Err(Wrong::new(node.at, "", found));
    }
    Ok(())
}
