//! Texts told once each.

use std::collections::HashMap;

/// Each text once, in the order of their first occurrence, with how often it occurred.
pub fn each_once(texts: impl IntoIterator<Item = String>) -> Vec<(String, usize)> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut found: Vec<(String, usize)> = Vec::new();
    for text in texts {
        match known.get(&text) {
            Some(&place) => found[place].1 += 1,
            None => {
                known.insert(text.clone(), found.len());
                found.push((text, 1));
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
