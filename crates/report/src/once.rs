//! What is told once each.

use std::collections::HashMap;
use std::hash::Hash;

/// Each item once, in the order of their first occurrence, with how often it occurred.
pub fn each_once<T: Clone + Eq + Hash>(items: impl IntoIterator<Item = T>) -> Vec<(T, usize)> {
    let mut known: HashMap<T, usize> = HashMap::new();
    let mut found: Vec<(T, usize)> = Vec::new();
    for item in items {
        match known.get(&item) {
            Some(&place) => found[place].1 += 1,
            None => {
                known.insert(item.clone(), found.len());
                found.push((item, 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once_where_it_came_first() {
        let texts = ["b", "a", "b", "c", "a", "b"].map(String::from);
        let expected = [("b", 3), ("a", 2), ("c", 1)].map(|(text, count)| (text.into(), count));
        assert_eq!(each_once(texts), expected);
    }
}
