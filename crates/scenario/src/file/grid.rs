//! Grids: a list in place of one value is an axis, and every combination is a cell.

use super::error::Wrong;
use super::keys::element;
use super::schema::{Form, Table};
use super::tables::FILE;
use super::tree::{Node, Value};
use std::collections::BTreeMap;

/// Most cells of one file.
const MOST_CELLS: u64 = 10_000;

/// The coordinates of a cell: key with its element, and the value as written.
pub(super) type Cell = BTreeMap<String, String>;

/// A key with several values.
#[derive(Debug)]
struct Axis<'a> {
    at: usize,
    path: String,
    values: &'a [Node],
}

/// Hands every cell's tree to `visit`; the first axis in the file changes slowest.
pub(super) fn cells(
    root: &Node,
    visit: &mut impl FnMut(&Node, &Cell) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    let count = count_table(root, &FILE);
    if count > MOST_CELLS {
        let axes = axes(root);
        let keys: Vec<&str> = axes.iter().map(|axis| axis.path.as_str()).collect();
        let first = axes.first().map_or((0, "grid"), |axis| (axis.at, axis.path.as_str()));
        let problem = format!(
            "found a grid of {count} cells by {}: at most {MOST_CELLS} are allowed",
            keys.join(", ")
        );
        return Err(Wrong::new(first.0, first.1, problem));
    }
    expand(root, &Cell::new(), visit)
}

fn expand(
    root: &Node,
    cell: &Cell,
    visit: &mut impl FnMut(&Node, &Cell) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    let axes = axes(root);
    let Some(axis) = axes.first() else { return visit(root, cell) };
    let labels = labels(axis)?;
    for (value, label) in axis.values.iter().zip(labels) {
        let mut cell = cell.clone();
        cell.insert(axis.path.clone(), label);
        expand(&replaced(root, axis.at, value), &cell, visit)?;
    }
    Ok(())
}

/// The tree with `value` in place of the list at `at`.
fn replaced(node: &Node, at: usize, value: &Node) -> Node {
    if node.at == at && node.items().is_some() {
        return value.clone();
    }
    let mut node = node.clone();
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|item| *item = replaced(item, at, value)),
        Value::Table(entries) => {
            entries.iter_mut().for_each(|entry| entry.node = replaced(&entry.node, at, value));
        }
        _ => {}
    }
    node
}

/// All axes in the file's order.
fn axes(root: &Node) -> Vec<Axis<'_>> {
    let mut found = Vec::new();
    table_axes(root, &FILE, &String::new, &mut found);
    found.sort_by_key(|axis| axis.at);
    found
}

/// Adds the axes of a table. Its path is only made for an axis, of which most tables have none.
fn table_axes<'a>(
    node: &'a Node,
    schema: &'static Table,
    path: &dyn Fn() -> String,
    found: &mut Vec<Axis<'a>>,
) {
    for entry in node.entries() {
        let Some(key) = schema.find(&entry.key) else { continue };
        let path = || match path() {
            above if above.is_empty() => key.name.into(),
            above => format!("{above}.{}", key.name),
        };
        let node = &entry.node;
        match &key.form {
            Form::Elements(schema) => {
                for item in node.items().unwrap_or_default() {
                    table_axes(item, schema, &|| element(&path(), item), found);
                }
            }
            Form::Named(schema) => {
                for entry in node.entries() {
                    let path = || format!("{}.{}", path(), entry.key);
                    table_axes(&entry.node, schema, &path, found);
                }
            }
            form => match (alternatives(node, form), form.table()) {
                (Some(values), _) => found.push(Axis { at: node.at, path: path(), values }),
                (None, Some(schema)) => {
                    tables_of(node).for_each(|table| table_axes(table, schema, &path, found))
                }
                (None, None) => {}
            },
        }
    }
}

/// The tables of a value: itself, or the items of a list.
fn tables_of(node: &Node) -> impl Iterator<Item = &Node> {
    node.items().unwrap_or(std::slice::from_ref(node)).iter()
}

/// The values of an axis; `None` if the key is none.
fn alternatives<'a>(node: &'a Node, form: &Form) -> Option<&'a [Node]> {
    let items = node.items()?;
    match form {
        Form::One(_) => Some(items),
        Form::List(_) if items.iter().all(|item| item.items().is_some()) => Some(items),
        _ => None,
    }
}

fn count_table(node: &Node, schema: &'static Table) -> u64 {
    let counts = node.entries().iter().map(|entry| {
        let Some(key) = schema.find(&entry.key) else { return 1 };
        count_key(&entry.node, &key.form)
    });
    counts.fold(1, u64::saturating_mul)
}

fn count_key(node: &Node, form: &'static Form) -> u64 {
    let tables = |nodes: &[Node], schema| {
        nodes.iter().map(|node| count_table(node, schema)).fold(1, u64::saturating_mul)
    };
    match form {
        Form::Elements(schema) => tables(node.items().unwrap_or_default(), schema),
        Form::Named(schema) => {
            let counts = node.entries().iter().map(|entry| count_table(&entry.node, schema));
            counts.fold(1, u64::saturating_mul)
        }
        form => {
            let count = |node: &Node| match (form.table(), node.items()) {
                (None, _) => 1,
                (Some(schema), Some(items)) => tables(items, schema),
                (Some(schema), None) => count_table(node, schema),
            };
            match alternatives(node, form) {
                Some(values) => values.iter().map(count).fold(0, u64::saturating_add),
                None => count(node),
            }
        }
    }
}

/// What tells the values of an axis apart, as written.
fn labels(axis: &Axis<'_>) -> Result<Vec<String>, Wrong> {
    let labels: Vec<String> = axis.values.iter().map(|value| label(value, axis.values)).collect();
    for (index, label) in labels.iter().enumerate() {
        if labels[..index].contains(label) {
            let found = &axis.values[index];
            let problem = format!("found {} twice in the grid's axis: leave one out", found.value);
            return Err(Wrong::new(found.at, axis.path.clone(), problem));
        }
    }
    Ok(labels)
}

/// A value as written; of a table what is not the same in all.
fn label(value: &Node, all: &[Node]) -> String {
    match &value.value {
        Value::Text(text) => text.to_string(),
        Value::Table(entries) => {
            let shared = |key: &str, node: &Node| {
                all.iter().all(|other| other.get(key).is_some_and(|it| it.value.like(&node.value)))
            };
            let own = entries.iter().filter(|entry| !shared(&entry.key, &entry.node));
            let pairs: Vec<String> =
                own.map(|it| format!("{}={}", it.key, plain(&it.node))).collect();
            if pairs.is_empty() { "default".into() } else { pairs.join(",") }
        }
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

fn plain(node: &Node) -> String {
    node.text().map_or_else(|| node.value.to_string(), str::to_string)
}
