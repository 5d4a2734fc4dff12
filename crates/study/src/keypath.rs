//! Paths into a scenario file: `interface.kmc.requests`, `link.t1.rate`, `traffic.bulk.transport.block`.
//!
//! In a list of tables the element is named by its `name`, as in [[link]] and [[traffic]].

use toml::Value;

/// The value at `path`, if there is one.
pub fn get<'a>(root: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(root, |value, step| match value {
        Value::Table(table) => table.get(step),
        Value::Array(list) => list.iter().find(|item| called(item, step)),
        _ => None,
    })
}

/// Puts `new` at `path`; says whether the place is there. Only the last step may be missing before.
pub fn set(root: &mut Value, path: &str, new: &Value) -> bool {
    let (parent, last) = path.rsplit_once('.').unwrap_or(("", path));
    let steps = parent.split('.').filter(|step| !step.is_empty());
    let mut place = root;
    for step in steps {
        let next = match place {
            Value::Table(table) => table.get_mut(step),
            Value::Array(list) => list.iter_mut().find(|item| called(item, step)),
            _ => None,
        };
        let Some(next) = next else { return false };
        place = next;
    }
    let Value::Table(table) = place else { return false };
    table.insert(last.into(), new.clone());
    true
}

fn called(item: &Value, name: &str) -> bool {
    item.get("name").and_then(Value::as_str) == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Value {
        let text = "[interface.kmc]\nrequests = 1\n[[link]]\nname = 't1'\nrate = '1Mbit/s'\n\
                    [[traffic]]\nname = 'bulk'\ntransport = { kind = 'urp', block = 256 }";
        Value::Table(text.parse().unwrap())
    }

    #[test]
    fn paths_lead_through_tables_and_named_elements() {
        let file = file();
        assert_eq!(get(&file, "interface.kmc.requests"), Some(&Value::Integer(1)));
        assert_eq!(get(&file, "link.t1.rate").and_then(Value::as_str), Some("1Mbit/s"));
        assert_eq!(get(&file, "traffic.bulk.transport.block"), Some(&Value::Integer(256)));
        assert!(get(&file, "link.t2.rate").is_none());
        assert!(get(&file, "link.t1.rate.more").is_none());
    }

    #[test]
    fn a_value_is_put_where_its_table_is_there() {
        let mut file = file();
        assert!(set(&mut file, "link.t1.delay", &Value::String("24ms".into())));
        assert_eq!(get(&file, "link.t1.delay").and_then(Value::as_str), Some("24ms"));
        assert!(!set(&mut file, "link.t9.delay", &Value::Integer(1)));
        assert!(set(&mut file, "seed", &Value::Integer(3)));
        assert_eq!(get(&file, "seed"), Some(&Value::Integer(3)));
    }
}
