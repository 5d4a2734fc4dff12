//! Terms: a number, a column of the row at hand, a value of another experiment, or a formula of terms.

use crate::filter::Filter;
use crate::formula::{FormulaError, evaluate};
use crate::table::{agree, side};
use crate::unit::Unit;
use serde::Deserialize;
use std::collections::BTreeMap;
use thiserror::Error;
use trunkline_measure::{Key, Row};

/// Something that has a value, in base units.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Term {
    /// A number, in base units.
    Number(f64),
    /// The entry of the row at hand.
    Column(ColumnTerm),
    /// A value of another experiment.
    Experiment(ExperimentTerm),
    /// A formula.
    Formula(FormulaTerm),
}

/// The entry of the row at hand in one column.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnTerm {
    /// The column.
    pub column: String,
    /// Its unit.
    #[serde(default)]
    pub unit: Unit,
}

/// A value of another experiment: of the rows that a filter chooses, and that agree with the row at hand in
/// the other columns that both have.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentTerm {
    /// The experiment.
    pub experiment: String,
    /// Which of its rows.
    #[serde(default, rename = "where")]
    pub filter: Filter,
    /// What of them.
    #[serde(default)]
    pub reduce: Reduce,
    /// Ours, or the published value.
    #[serde(default)]
    pub side: Side,
}

/// A formula with what its parameters stand for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormulaTerm {
    /// Its name.
    pub formula: String,
    /// Parameter to term.
    #[serde(default)]
    pub arguments: BTreeMap<String, Term>,
}

/// What is taken of several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduce {
    /// There must be exactly one.
    #[default]
    Only,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// The arithmetic mean.
    Mean,
    /// The median.
    Median,
}

/// Whose value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Ours.
    #[default]
    Ours,
    /// The report's.
    Published,
}

/// Why a term has no value.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TermError {
    /// No such column.
    #[error("the row has no column {0}: name one of the table's")]
    Column(String),
    /// Not a number.
    #[error("column {0} holds {1:?}, which is not a number: choose rows where it is one")]
    NotANumber(String, String),
    /// An experiment that is not there, or comes later.
    #[error("experiment {0} has no values here: place it before, and check its name")]
    Experiment(String),
    /// None or several rows, although one is wanted.
    #[error(
        "{found} rows of {experiment} are chosen and one is wanted: say more under where, or reduce"
    )]
    Rows {
        /// The experiment.
        experiment: String,
        /// How many.
        found: usize,
    },
    /// The formula.
    #[error(transparent)]
    Formula(#[from] FormulaError),
}

/// The tables that terms may look into.
pub type Tables = BTreeMap<String, (Unit, Vec<Row>)>;

/// The value of `term` for the row whose columns are `columns`, in base units.
///
/// # Errors
/// If a column, a row, or a parameter is missing.
pub fn value(term: &Term, columns: &Key, tables: &Tables) -> Result<f64, TermError> {
    match term {
        Term::Number(number) => Ok(*number),
        Term::Column(column) => from_column(column, columns),
        Term::Experiment(other) => from_experiment(other, columns, tables),
        Term::Formula(FormulaTerm { formula, arguments }) => {
            let of =
                |(name, term): (&String, &Term)| Ok((name.clone(), value(term, columns, tables)?));
            let arguments = arguments.iter().map(of).collect::<Result<_, TermError>>()?;
            Ok(evaluate(formula, &arguments)?)
        }
    }
}

fn from_column(term: &ColumnTerm, columns: &Key) -> Result<f64, TermError> {
    let text = columns.get(&term.column).ok_or_else(|| TermError::Column(term.column.clone()))?;
    let number: f64 = text
        .trim()
        .parse()
        .map_err(|_| TermError::NotANumber(term.column.clone(), text.clone()))?;
    Ok(number * term.unit.scale())
}

fn from_experiment(
    term: &ExperimentTerm,
    columns: &Key,
    tables: &Tables,
) -> Result<f64, TermError> {
    let (unit, rows) = tables
        .get(&term.experiment)
        .ok_or_else(|| TermError::Experiment(term.experiment.clone()))?;
    let others: Key = (columns.iter())
        .filter(|(column, _)| !term.filter.0.contains_key(*column))
        .map(|(column, text)| (column.clone(), text.clone()))
        .collect();
    let chosen = rows
        .iter()
        .filter(|row| term.filter.allows(&row.key) && agree(&row.key, &others).unwrap_or(true));
    let values: Vec<f64> = chosen.filter_map(|row| side(row, term.side)).collect();
    reduced(values, term.reduce)
        .map(|value| value * unit.scale())
        .map_err(|found| TermError::Rows { experiment: term.experiment.clone(), found })
}

/// One value for several, or how many there are if that does not work.
fn reduced(mut values: Vec<f64>, reduce: Reduce) -> Result<f64, usize> {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let (Some(&least), Some(&greatest)) = (values.first(), values.last()) else { return Err(0) };
    match reduce {
        Reduce::Only if count == 1 => Ok(least),
        Reduce::Only => Err(count),
        Reduce::Min => Ok(least),
        Reduce::Max => Ok(greatest),
        Reduce::Mean => Ok(values.iter().sum::<f64>() / count as f64),
        Reduce::Median => Ok(median(&values)),
    }
}

/// The median of values in ascending order.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[half],
        _ => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_measure::Agreement;

    fn term(text: &str) -> Term {
        #[derive(Deserialize)]
        struct Holder {
            term: Term,
        }
        toml::from_str::<Holder>(&format!("term = {text}")).expect("a term").term
    }

    fn keys(pairs: &[(&str, &str)]) -> Key {
        pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect()
    }

    fn tables() -> Tables {
        let row = |size: &str, ours: f64, published: f64| Row {
            key: keys(&[("size", size)]),
            published: Some(published),
            ours: Some(ours),
            error: None,
            verdict: Agreement::Outside,
        };
        let rows = vec![row("1", 4.0, 5.0), row("64", 6.0, 5.0), row("65", 9.0, 7.0)];
        Tables::from([("delay".into(), (Unit::Milliseconds, rows))])
    }

    fn of(text: &str, columns: &[(&str, &str)]) -> Result<f64, TermError> {
        value(&term(text), &keys(columns), &tables())
    }

    #[test]
    fn terms_have_values_in_base_units() {
        assert_eq!(of("2.5", &[]).unwrap(), 2.5);
        assert_eq!(of("{ column = 'w', unit = 'kB' }", &[("w", "1.5")]).unwrap(), 1500.0);
        assert_eq!(of("{ experiment = 'delay' }", &[("size", "64")]).unwrap(), 6e-3);
        let greatest = "{ experiment = 'delay', where = { size = [1, 65] }, reduce = 'max', side = 'published' }";
        assert_eq!(of(greatest, &[]).unwrap(), 7e-3);
        let ratio = "{ formula = 'ratio', arguments = { a = { experiment = 'delay', where = { size = 65 } }, b = 3e-3 } }";
        assert!((of(ratio, &[]).unwrap() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn what_has_no_value_says_why() {
        let problem = |text, columns: &[(&str, &str)]| of(text, columns).unwrap_err().to_string();
        assert!(problem("{ column = 'w' }", &[]).contains("no column w"));
        assert!(problem("{ column = 'w' }", &[("w", "yes")]).contains("not a number"));
        assert!(problem("{ experiment = 'none' }", &[]).contains("experiment none"));
        assert!(
            problem("{ experiment = 'delay', where = { size = [1, 64] } }", &[]).contains("2 rows")
        );
        assert!(problem("{ formula = 'nought' }", &[]).contains("nought"));
    }
}
