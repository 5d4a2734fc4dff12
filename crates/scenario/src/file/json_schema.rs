//! The tables and keys as a JSON Schema, by which editors complete and check scenario files.

use super::schema::{Form, Key, Kind, Need, Table};
use super::tables::FILE;
use crate::Scenario;
use serde_json::{Map, Value, json};

impl Scenario {
    /// A JSON Schema (draft 2020-12) of the scenario file, made from the same tables by which files are
    /// read. What it cannot say (that names exist, that units are right) is left to the reader.
    pub fn json_schema() -> String {
        let mut schema = table(&FILE, "#");
        let mut tables = Vec::new();
        inner_tables(&FILE, &mut tables);
        let definitions = tables.iter().map(|inner| (slug(inner), table(inner, &place(inner))));
        schema["$defs"] = Value::Object(definitions.collect());
        schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
        schema["title"] = json!("Trunkline scenario");
        format!("{schema:#}\n")
    }
}

/// The tables that a table leads to.
fn inner_tables(table: &Table, found: &mut Vec<&'static Table>) {
    for inner in table.keys().filter_map(|key| key.form.table()) {
        if !found.iter().any(|known| known.title == inner.title) {
            found.push(inner);
            inner_tables(inner, found);
        }
    }
}

/// A table's title as a name among the definitions: `link`, `a-cost`.
fn slug(table: &Table) -> String {
    let words = table.title.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// The place of a table among the definitions.
fn place(table: &Table) -> String {
    format!("#/$defs/{}", slug(table))
}

fn reference(table: &Table) -> Value {
    json!({ "$ref": place(table) })
}

/// A table whose schema is at `place`.
fn table(table: &Table, place: &str) -> Value {
    let entry = |key: &'static Key| (key.name.to_string(), property(table, key));
    let properties: Map<String, Value> = table.keys().map(entry).collect();
    // What some kinds of traffic must have, others may not.
    let required = |key: &&Key| matches!(key.need, Need::Required) && key.only.is_empty();
    let (spelt, required): (Vec<&str>, Vec<&str>) =
        table.keys().filter(required).map(|key| key.name).partition(|name| name.contains('_'));
    let mut schema = json!({
        "type": "object",
        "description": table.help,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let spellings: Map<String, Value> =
        table.names().into_iter().filter_map(|name| spelling(name, place)).collect();
    if !spellings.is_empty() {
        schema["patternProperties"] = Value::Object(spellings);
    }
    if !spelt.is_empty() {
        schema["allOf"] = spelt.into_iter().map(either).collect();
    }
    schema
}

/// A pattern for the spellings of a key with `-` for `_`, and what it stands for. Editors complete the properties alone.
fn spelling(name: &str, place: &str) -> Option<(String, Value)> {
    let pattern = format!("^{}$", name.replace('_', "[-_]"));
    name.contains('_').then(|| (pattern, json!({ "$ref": format!("{place}/properties/{name}") })))
}

/// A key that must be there, in one spelling or the other.
fn either(name: &str) -> Value {
    json!({ "anyOf": [{ "required": [name] }, { "required": [name.replace('_', "-")] }] })
}

/// A key, with all that kinds take under its name.
fn property(table: &Table, key: &'static Key) -> Value {
    let all: Vec<Value> =
        table.keys().filter(|other| other.name == key.name).map(described).collect();
    match all.as_slice() {
        [one] => one.clone(),
        _ => json!({ "anyOf": all }),
    }
}

fn described(key: &Key) -> Value {
    let mut schema = form(&key.form);
    let only = match key.only {
        [] => String::new(),
        kinds => format!(" (traffic of kind {})", kinds.join(", ")),
    };
    schema["description"] = json!(format!("{}{only}", key.help));
    if let Need::Default(text) = key.need {
        schema["default"] = default(key.form.kind(), text);
    }
    schema
}

fn default(kind: &Kind, text: &str) -> Value {
    match (kind, text.parse::<u64>()) {
        (Kind::Whole(..) | Kind::Size(..), Ok(number)) => json!(number),
        (Kind::Flag, _) => json!(text == "true"),
        _ => json!(text),
    }
}

fn form(form: &Form) -> Value {
    let list = |items: Value| json!({ "type": "array", "items": items, "minItems": 1 });
    match form {
        Form::Fixed(kind) => value(kind),
        Form::One(kind) => json!({ "anyOf": [value(kind), list(value(kind))] }),
        Form::List(kind) => json!({ "anyOf": [list(value(kind)), list(list(value(kind)))] }),
        Form::Elements(elements) => list(reference(elements)),
        Form::Named(named) => json!({ "type": "object", "additionalProperties": reference(named) }),
    }
}

fn value(kind: &Kind) -> Value {
    match kind {
        Kind::Text | Kind::Name => json!({ "type": "string" }),
        Kind::Whole(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Span(..) => json!({ "anyOf": [
            { "type": "string", "examples": ["250ms", "1.5us", "2s"] },
            { "type": "integer", "enum": [0] },
        ] }),
        Kind::Rate => json!({ "type": "string", "examples": ["1.544Mbit/s", "64kbit/s"] }),
        Kind::Size(least, most) => json!({ "anyOf": [
            { "type": "integer", "minimum": least, "maximum": most },
            { "type": "string", "examples": ["1KiB", "1MB"] },
        ] }),
        Kind::Share => json!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "examples": ["0.5%"] },
        ] }),
        Kind::ByteTime => json!({ "type": "string", "examples": ["1412.5ns"] }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Setting(_, example) => json!({ "anyOf": [
            { "type": "string", "examples": [example] },
            { "type": "number" },
        ] }),
        Kind::Table(inner) => reference(inner),
        Kind::Built(inner) => reference(inner),
        Kind::Or(one, other) => json!({ "anyOf": [value(one), value(other)] }),
    }
}
