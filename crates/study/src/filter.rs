//! Choosing rows by the values of their columns.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Column to the values that are allowed there; a column that is not named may hold anything.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Filter(pub BTreeMap<String, Choice>);

/// One allowed value or several.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Choice {
    /// One.
    One(Scalar),
    /// Any of several.
    Many(Vec<Scalar>),
}

/// A value as a study file writes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl Scalar {
    /// The value as a table writes it.
    pub fn text(&self) -> String {
        match self {
            Scalar::Number(number) => number.to_string(),
            Scalar::Text(text) => text.clone(),
        }
    }
}

/// Whether two table entries say the same. Numbers are compared as numbers: `0.50` is `.5`.
pub fn same(one: &str, other: &str) -> bool {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one == other,
    }
}

impl Choice {
    /// Whether `text` is allowed.
    pub fn allows(&self, text: &str) -> bool {
        match self {
            Choice::One(one) => same(&one.text(), text),
            Choice::Many(many) => many.iter().any(|one| same(&one.text(), text)),
        }
    }
}

impl Filter {
    /// Whether all named columns hold an allowed value. A column that is missing holds none.
    pub fn allows(&self, columns: &BTreeMap<String, String>) -> bool {
        let holds = |(column, choice): (&String, &Choice)| {
            columns.get(column).is_some_and(|text| choice.allows(text))
        };
        self.0.iter().all(holds)
    }

    /// The columns for which a single value is allowed.
    pub fn constants(&self) -> BTreeMap<String, String> {
        let single = |(column, choice): (&String, &Choice)| match choice {
            Choice::One(one) => Some((column.clone(), one.text())),
            Choice::Many(_) => None,
        };
        self.0.iter().filter_map(single).collect()
    }

    /// Both filters at once; if both name a column, `other` rules.
    pub fn and(&self, other: &Filter) -> Filter {
        let both = self.0.iter().chain(&other.0);
        Filter(both.map(|(column, choice)| (column.clone(), choice.clone())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    #[test]
    fn a_filter_compares_numbers_as_numbers_and_texts_as_texts() {
        let filter: Filter = toml::from_str("size = [1, 64]\nkind = 'minimum'").unwrap();
        assert!(filter.allows(&row(&[("size", "64.0"), ("kind", "minimum"), ("more", "x")])));
        assert!(!filter.allows(&row(&[("size", "65"), ("kind", "minimum")])));
        assert!(!filter.allows(&row(&[("size", "64"), ("kind", "mean")])));
        assert!(!filter.allows(&row(&[("size", "64")])));
        assert_eq!(filter.constants(), row(&[("kind", "minimum")]));
    }

    #[test]
    fn of_two_filters_the_second_rules_a_column_that_both_name() {
        let one: Filter = toml::from_str("a = 1\nb = 2").unwrap();
        let two: Filter = toml::from_str("b = 3").unwrap();
        assert_eq!(one.and(&two).constants(), row(&[("a", "1"), ("b", "3")]));
    }
}
