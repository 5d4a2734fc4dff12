//! The value that a cell of a scenario's grid has under a path.

use crate::keypath;
use toml::Value;
use trunkline_measure::Key;

/// The value at `path`: the grid's coordinate; or what the coordinate of the table around it says (`link.t1`
/// has `block=256,outstanding=3`); or what the file says, the same in every cell.
pub fn coordinate(cell: &Key, file: &Value, path: &str) -> Option<String> {
    let exact = || cell.get(path).cloned();
    exact().or_else(|| within_table(cell, path)).or_else(|| fixed(file, path))
}

fn within_table(cell: &Key, path: &str) -> Option<String> {
    let (table, key) = path.rsplit_once('.')?;
    let pairs = cell.get(table)?.split(',').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| *name == key).map(|(_, value)| value.to_string()).next()
}

fn fixed(file: &Value, path: &str) -> Option<String> {
    match keypath::get(file, path)? {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinate_is_found_in_grid_table_and_file() {
        let file =
            Value::Table("[[traffic]]\nname = 'bulk'\ncount = 4\nto = ['a', 'b']".parse().unwrap());
        let cell = Key::from([
            ("link.t1.module".into(), "round-robin".into()),
            ("traffic.bulk.transport".into(), "block=256,outstanding=3".into()),
        ]);
        let of = |path| coordinate(&cell, &file, path);
        assert_eq!(of("link.t1.module").as_deref(), Some("round-robin"));
        assert_eq!(of("traffic.bulk.transport.outstanding").as_deref(), Some("3"));
        assert_eq!(of("traffic.bulk.count").as_deref(), Some("4"));
        assert_eq!(of("traffic.bulk.to"), None, "a list is no value");
        assert_eq!(of("traffic.none.count"), None);
    }
}
