//! Values quoted in running text, held against ours.

use crate::format::{Measure, Quote, Study};
use crate::result::QuoteResult;
use crate::source::Source;
use crate::term::{Side, Tables, Term, value};
use trunkline_measure::Key;

/// A quoted value beside ours.
pub(crate) fn result(source: &Source, quote: &Quote, tables: &Tables) -> QuoteResult {
    let table = source.published(&quote.file);
    let row = table.and_then(|table| table.rows.iter().find(|row| quote.row.allows(row)));
    let row = row.cloned().unwrap_or_default();
    let empty = QuoteResult {
        file: quote.file.clone(),
        row: quote.row.constants(),
        title: title(quote, &row),
        section: row.get("section").cloned().unwrap_or_default(),
        published: row.get(&quote.value).cloned().unwrap_or_default(),
        unit: quote.unit,
        ours: None,
        error: None,
        measured: quote.ours.as_ref().is_some_and(|term| rests_on_run(&source.study, term)),
        agrees: None,
        allowed: allowed(quote),
        remark: quote.none.clone().unwrap_or_default(),
    };
    let Some(term) = &quote.ours else { return empty };
    match value(term, &quote.row.constants(), tables) {
        Err(problem) => QuoteResult { agrees: Some(false), remark: problem.to_string(), ..empty },
        Ok(found) => judged(quote, empty, found / quote.unit.scale()),
    }
}

/// Whether a term's value is of a run, and not of numbers, published values and formulas alone.
fn rests_on_run(study: &Study, term: &Term) -> bool {
    match term {
        Term::Number(_) | Term::Column(_) => false,
        Term::Formula(formula) => formula.arguments.values().any(|it| rests_on_run(study, it)),
        Term::Experiment(term) if term.side == Side::Published => false,
        Term::Experiment(term) => {
            let found = study.experiment.iter().find(|it| it.name == term.experiment);
            found.is_some_and(|experiment| match &experiment.measure {
                Measure::Formula { arguments, .. } => {
                    arguments.values().any(|it| rests_on_run(study, it))
                }
                _ => true,
            })
        }
    }
}

fn title(quote: &Quote, row: &Key) -> String {
    let words = ["quantity", "condition", "name", "parameter"];
    match quote.title.is_empty() {
        false => quote.title.clone(),
        true => {
            let found = words.iter().filter_map(|word| row.get(*word));
            found.filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(", ")
        }
    }
}

/// The values of ours that agree, in words; empty if it is not judged.
fn allowed(quote: &Quote) -> String {
    let slack = quote.tolerance.map(|share| format!("±{} %", (share * 1000.0).round() / 10.0));
    match (quote.between, slack) {
        (Some([low, high]), None) => format!("{low} to {high}"),
        (Some([low, high]), Some(slack)) => format!("{low} to {high} {slack}"),
        (None, slack) => slack.unwrap_or_default(),
    }
}

fn judged(quote: &Quote, empty: QuoteResult, ours: f64) -> QuoteResult {
    let published: Option<f64> = empty.published.parse().ok();
    let relative = |it: f64| if ours == it { 0.0 } else { (ours - it) / it.abs() };
    let error = published.map(relative);
    let slack = quote.tolerance.unwrap_or(0.0);
    let within = |[low, high]: [f64; 2]| {
        (low - slack * low.abs()..=high + slack * high.abs()).contains(&ours)
    };
    let close = |error: f64| quote.tolerance.map(|tolerance| error.abs() <= tolerance + 1e-12);
    let agrees = quote.between.map(within).or_else(|| error.and_then(close));
    // A figure within its range is not so far from one value of it.
    let error = error.filter(|_| quote.between.is_none());
    QuoteResult { ours: Some(ours), error, agrees, ..empty }
}
