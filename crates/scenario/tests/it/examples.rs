//! The files of `examples/`: each is read, and fits the schema that editors are given.

use serde_json::{Value, json};
use std::path::PathBuf;
use trunkline_scenario::Scenario;

/// Each example with the cells of its grid.
const EXAMPLES: &[(&str, usize)] = &[
    ("asymmetric-access", 2),
    ("bufferbloat", 4),
    ("characters", 2),
    ("cluster", 4),
    ("ethernet", 2),
    ("host-interface", 4),
    ("incast", 8),
    ("incast-careful", 2),
    ("leaf-spine", 6),
    ("long-distance", 5),
    ("looped-path", 1),
    ("lossy-link", 9),
    ("low-latency", 3),
    ("many-queues", 7),
    ("netblt", 4),
    ("paced-datagrams", 6),
    ("satellite", 9),
    ("t1-trunk", 4),
    ("textbook", 10),
    ("token-ring", 4),
    ("two-hops", 3),
    ("windows", 9),
    ("xunet-small-window", 2),
];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|it| it == "toml"));
    let mut names: Vec<String> =
        files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn every_example_is_read() {
    assert_eq!(names(), EXAMPLES.iter().map(|it| it.0.to_string()).collect::<Vec<_>>());
    for (name, count) in EXAMPLES {
        let cells = Scenario::read(folder().join(format!("{name}.toml")));
        let cells = cells.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(cells.len(), *count, "{name}");
        assert!(cells.iter().all(|cell| !cell.about.is_empty() && cell.name != *name), "{name}");
    }
}

#[test]
fn every_example_fits_the_schema() {
    let schema: Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    for name in names() {
        let text = std::fs::read_to_string(folder().join(format!("{name}.toml"))).unwrap();
        let value = serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap();
        fits(&value, &schema, &name).unwrap_or_else(|problem| panic!("{problem}"));
    }
}

/// The reader takes `-` for `_` in keys, and so does the schema.
#[test]
fn every_example_with_dashes_in_its_keys_is_read_and_fits_the_schema() {
    let schema: Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    for name in names() {
        let text = std::fs::read_to_string(folder().join(format!("{name}.toml"))).unwrap();
        let file = dashed(toml::Value::Table(toml::from_str(&text).unwrap()));
        let path = folder().join(format!("{name}.toml"));
        let cells = Scenario::parse(&toml::to_string(&file).unwrap(), path.to_str().unwrap());
        cells.unwrap_or_else(|error| panic!("{error}"));
        let value = serde_json::to_value(file).unwrap();
        fits(&value, &schema, &name).unwrap_or_else(|problem| panic!("{problem}"));
    }
}

/// The same with `-` for `_` in the keys; no example has a name with `_`.
fn dashed(value: toml::Value) -> toml::Value {
    match value {
        toml::Value::Table(table) => {
            let entries =
                table.into_iter().map(|(key, value)| (key.replace('_', "-"), dashed(value)));
            toml::Value::Table(entries.collect())
        }
        toml::Value::Array(list) => list.into_iter().map(dashed).collect::<Vec<_>>().into(),
        other => other,
    }
}

#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let schema: Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    let text = std::fs::read_to_string(folder().join("t1-trunk.toml")).unwrap();
    let good = serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap();
    let wrong: [(&str, Value); 8] = [
        ("/sead", json!(1)),
        ("/stop_after", json!(5)),
        ("/host", json!([])),
        ("/traffic/0/kind", json!("bulky")),
        ("/traffic/0/count", json!(0)),
        ("/traffic/0/transport/0/block", json!(4097)),
        ("/link/2/between", json!("ab")),
        ("/link/2/rate", json!(true)),
    ];
    for (place, value) in wrong {
        let mut file = good.clone();
        let (parent, key) = place.rsplit_once('/').unwrap();
        file.pointer_mut(parent).unwrap()[key] = value;
        assert!(fits(&file, &schema, "t1").is_err(), "{place}");
    }
}

/// Checks a value against the keywords of JSON Schema that ours uses.
fn fits(value: &Value, schema: &Value, path: &str) -> Result<(), String> {
    Check { root: schema }.fits(value, schema, path)
}

/// A whole schema, to whose places its parts refer.
struct Check<'a> {
    root: &'a Value,
}

impl Check<'_> {
    fn fits(&self, value: &Value, schema: &Value, path: &str) -> Result<(), String> {
        let keywords = schema.as_object().unwrap();
        for (keyword, wanted) in keywords {
            match keyword.as_str() {
                "items" => self.items(value, wanted, path)?,
                "properties" => self.members(value, keywords, path)?,
                "additionalProperties" if !keywords.contains_key("properties") => {
                    self.members(value, keywords, path)?;
                }
                "$ref" => {
                    let place = wanted.as_str().unwrap().strip_prefix('#').unwrap();
                    self.fits(value, self.root.pointer(place).unwrap(), path)?;
                }
                keyword if !self.holds(value, keyword, wanted) => {
                    return Err(format!("{path}: {value} does not fit {keyword} {wanted}"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a keyword holds that says something of the value itself.
    fn holds(&self, value: &Value, keyword: &str, wanted: &Value) -> bool {
        let list = || wanted.as_array().unwrap();
        match keyword {
            "type" => is(value, wanted.as_str().unwrap()),
            "enum" => list().contains(value),
            "minimum" => value.as_f64() >= wanted.as_f64(),
            "maximum" => value.as_f64() <= wanted.as_f64(),
            "minItems" => {
                value.as_array().is_none_or(|it| it.len() as u64 >= wanted.as_u64().unwrap())
            }
            "required" => list().iter().all(|key| value.get(key.as_str().unwrap()).is_some()),
            "allOf" => list().iter().all(|one| self.fits(value, one, "").is_ok()),
            "anyOf" => list().iter().any(|one| self.fits(value, one, "").is_ok()),
            "additionalProperties"
            | "patternProperties"
            | "description"
            | "default"
            | "examples"
            | "title"
            | "$schema"
            | "$defs" => true,
            other => panic!("the schema uses {other}, which this test does not know"),
        }
    }

    fn items(&self, value: &Value, schema: &Value, path: &str) -> Result<(), String> {
        let mut items = value.as_array().into_iter().flatten().enumerate();
        items.try_for_each(|(index, item)| self.fits(item, schema, &format!("{path}[{index}]")))
    }

    /// Each member of an object against its property, or against what holds for all others.
    fn members(
        &self,
        value: &Value,
        keywords: &serde_json::Map<String, Value>,
        path: &str,
    ) -> Result<(), String> {
        for (key, value) in value.as_object().into_iter().flatten() {
            let path = format!("{path}.{key}");
            let property = keywords.get("properties").and_then(|it| it.get(key));
            let patterns = keywords.get("patternProperties").and_then(Value::as_object);
            let spelt = || patterns?.iter().find(|(pattern, _)| matches(key, pattern));
            let property = property.or_else(|| Some(spelt()?.1));
            match property.or_else(|| keywords.get("additionalProperties")) {
                Some(Value::Bool(allowed)) if !allowed => {
                    return Err(format!("{path}: no such property"));
                }
                Some(schema @ Value::Object(_)) => self.fits(value, schema, &path)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a key has a pattern's spelling, in which `[-_]` stands for either.
fn matches(key: &str, pattern: &str) -> bool {
    let name = pattern.strip_prefix('^').and_then(|it| it.strip_suffix('$')).unwrap();
    key.replace('-', "_") == name.replace("[-_]", "_")
}

fn is(value: &Value, sort: &str) -> bool {
    match sort {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("{other}"),
    }
}
