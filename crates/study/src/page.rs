//! The result of a study as a report: page, charts and CSV files.

use crate::result::{ExperimentResult, GoalResult, QuoteResult, StudyResult};
use trunkline_measure::{Agreement, Comparison, Row, key_text};
use trunkline_report::{Charts, Report, Section, terminal_verdict};

/// Failures, and cells outside of a goal, that a terminal is shown.
const SHOWN: usize = 5;

impl StudyResult {
    /// The report of it. `version` is the program's; `facts` is whatever else is worth keeping: command
    /// line, machine.
    pub fn report(&self, version: &str, facts: Vec<(String, String)>) -> Report {
        let own = [
            ("report", self.report.clone()),
            ("cells run", self.runs.to_string()),
            (
                "parameters",
                format!("{}, {} of them inferred", self.parameters.len(), self.inferred()),
            ),
        ];
        let own = own.map(|(name, value)| (name.to_string(), value));
        let judged = self.experiments.iter().filter(|one| one.tolerance.is_some());
        let (judged, shown) =
            (judged, self.experiments.iter().filter(|one| one.tolerance.is_none()));
        let sections = [goals(&self.goals), failures(self), quotes(&self.quotes)];
        let sections =
            sections.into_iter().chain(shown.map(plain)).chain([parameters(self), cells(self)]);
        Report {
            title: self.title.clone(),
            about: self.about.clone(),
            answer: self.answer(),
            version: version.into(),
            facts: own.into_iter().chain(facts).collect(),
            figures: self.figures.clone(),
            comparisons: judged.map(|one| one.comparison.clone()).collect(),
            sections: sections.filter(|section| !section.rows.is_empty()).collect(),
            charts: Charts::All,
            ..Report::default()
        }
    }

    /// What the page begins with: goals, cells, quotations, and what has no value.
    fn answer(&self) -> Vec<String> {
        let judged = self.experiments.iter().filter(|one| one.tolerance.is_some());
        let counts = judged.map(|one| one.comparison.counts);
        let (within, cells) = counts.fold((0, 0), |(w, c), one| (w + one.within, c + one.judged()));
        let mut answer = vec![self.goals_met()];
        if cells > 0 {
            answer.push(format!("{within} of {cells} judged cells are within their tolerance."));
        }
        if !self.quotes.is_empty() {
            answer.push(format!("Q{}.", &quote_counts(&self.quotes)[1..]));
        }
        for (what, all) in [("failed", &self.failures), ("are INVALID", &self.invalid)] {
            if let Some(first) = all.first() {
                answer.push(format!("{} runs {what}; the first: {first}", all.len()));
            }
        }
        answer
    }

    fn goals_met(&self) -> String {
        let missed: Vec<&str> =
            self.goals.iter().filter(|goal| !goal.met).map(|goal| goal.title.as_str()).collect();
        let all = self.goals.len();
        match missed.is_empty() {
            true => format!("All {all} goals are met."),
            false => {
                let met = all - missed.len();
                format!("{met} of {all} goals are met; missed: {}.", missed.join("; "))
            }
        }
    }

    /// The result in a few lines for a terminal: goals, verdicts of the tables, failures.
    pub fn summary(&self) -> String {
        let mut lines = vec![format!("{}: {}", self.name, self.title)];
        lines.extend(self.goals.iter().map(goal_line));
        let judged = self.experiments.iter().filter(|one| one.tolerance.is_some());
        let counted = |one: &ExperimentResult| {
            let Comparison { name, .. } = &one.comparison;
            format!("  {name}: {}", terminal_verdict(&one.comparison))
        };
        lines.extend(judged.map(counted));
        lines.push(format!("  {}", quote_counts(&self.quotes)));
        lines.push(format!(
            "  parameters: {}, {} of them inferred",
            self.parameters.len(),
            self.inferred()
        ));
        lines.extend(some("FAILED", &self.failures));
        lines.extend(some("INVALID", &self.invalid));
        lines.join("\n")
    }
}

/// The first of `all`, each behind its mark, and how many more there are.
fn some(mark: &str, all: &[String]) -> Vec<String> {
    let mut lines: Vec<String> =
        all.iter().take(SHOWN).map(|text| format!("  {mark} {text}")).collect();
    if all.len() > SHOWN {
        lines.push(format!("  {mark} and {} more, in the report", all.len() - SHOWN));
    }
    lines
}

fn goal_line(goal: &GoalResult) -> String {
    let mark = if goal.met { "met   " } else { "MISSED" };
    let mut outside = String::new();
    if !goal.met && !goal.outside.is_empty() {
        let first: Vec<&str> = goal.outside.iter().take(SHOWN).map(String::as_str).collect();
        outside = format!("; outside: {}", first.join("; "));
    }
    if !goal.met && goal.outside.len() > SHOWN {
        outside.push_str(&format!("; and {} more", goal.outside.len() - SHOWN));
    }
    format!("  {mark} {}: {}{outside}", goal.title, goal.found)
}

fn quote_counts(quotes: &[QuoteResult]) -> String {
    let count = |measured: bool| {
        let judged = quotes.iter().filter(|it| it.measured == measured && it.agrees.is_some());
        let agreeing = judged.clone().filter(|it| it.agrees == Some(true)).count();
        format!("{agreeing} of {}", judged.count())
    };
    let others = quotes.iter().filter(|it| it.agrees.is_none()).count();
    format!(
        "quoted in the text: {} that rest on runs agree, {} by arithmetic alone, {others} not judged",
        count(true),
        count(false)
    )
}

fn section(
    name: &str,
    heading: &str,
    about: &str,
    columns: &[&str],
    rows: Vec<Vec<String>>,
) -> Section {
    Section {
        name: name.into(),
        heading: heading.into(),
        about: about.into(),
        columns: columns.iter().map(|&column| column.into()).collect(),
        rows,
    }
}

fn goals(goals: &[GoalResult]) -> Section {
    let row = |goal: &GoalResult| {
        let verdict = if goal.met { "met" } else { "missed" };
        vec![goal.title.clone(), verdict.into(), goal.found.clone(), goal.outside.join("; ")]
    };
    let rows = goals.iter().map(row).collect();
    section("goals", "Goals", "", &["goal", "verdict", "found", "cells outside"], rows)
}

fn failures(result: &StudyResult) -> Section {
    let own = result.failures.iter().map(|text| vec!["run".to_string(), text.clone()]);
    let spoilt = result.invalid.iter().map(|text| vec!["INVALID".to_string(), text.clone()]);
    let missing = result
        .experiments
        .iter()
        .flat_map(|one| one.problems.iter().map(|text| vec![one.name.clone(), text.clone()]));
    let notes = result.notes.iter().map(|text| vec!["note".to_string(), text.clone()]);
    let rows = own.chain(spoilt).chain(missing).chain(notes).collect();
    section("remarks", "Failures and remarks", "", &["where", "what"], rows)
}

fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| format!("{value:.4}"))
}

fn percent(error: Option<f64>) -> String {
    error.map_or(String::new(), trunkline_report::share)
}

fn quotes(quotes: &[QuoteResult]) -> Section {
    let row = |quote: &QuoteResult| {
        let verdict = match (quote.agrees, quote.measured) {
            (Some(true), true) => "agrees",
            (Some(true), false) => "agrees, by arithmetic",
            (Some(false), true) => "does not agree",
            (Some(false), false) => "does not agree, by arithmetic",
            (None, _) => "not judged",
        };
        let ours = format!("{} {}", number(quote.ours), quote.unit);
        vec![
            quote.section.clone(),
            quote.title.clone(),
            quote.published.clone(),
            ours.trim().to_string(),
            percent(quote.error),
            quote.allowed.clone(),
            verdict.into(),
            quote.remark.clone(),
        ]
    };
    let columns =
        ["section", "what", "published", "ours", "error", "agrees at", "verdict", "remark"];
    section("quotes", "Quoted in the text", "", &columns, quotes.iter().map(row).collect())
}

fn parameters(result: &StudyResult) -> Section {
    let row = |one: &crate::ParameterNote| {
        let kind = one.provenance.to_string();
        vec![one.key.clone(), one.value.clone(), kind, one.source.clone(), one.file.clone()]
    };
    let about = format!(
        "{} of {} are inferred: no section states them, and each is set once, for all cells. Others are stated, \
         take over the value of another, or only say how the test is run.",
        result.inferred(),
        result.parameters.len()
    );
    let columns = ["parameter", "value", "kind", "section, or why", "file"];
    section(
        "parameters",
        "Parameters",
        &about,
        &columns,
        result.parameters.iter().map(row).collect(),
    )
}

/// A table that is shown and not judged.
fn plain(one: &ExperimentResult) -> Section {
    let row = |row: &Row| {
        vec![key_text(&row.key), number(row.published), number(row.ours), percent(row.error)]
    };
    let unit = one.unit.sign();
    let heading = match unit {
        "" => one.title.clone(),
        unit => format!("{} ({unit})", one.title),
    };
    let columns = ["cell", "published", "ours", "error"];
    section(&one.name, &heading, &one.note, &columns, one.comparison.rows.iter().map(row).collect())
}

/// Every cell of every experiment in one table.
fn cells(result: &StudyResult) -> Section {
    let row = |one: &ExperimentResult, row: &Row| {
        let verdict = match (one.tolerance, row.verdict) {
            (None, _) => "not judged",
            (_, Agreement::Within) => "within",
            (_, Agreement::Outside) => "outside",
            (_, Agreement::Suspect) => "suspect",
            (_, Agreement::Missing) => "missing",
            (_, Agreement::Unpublished) => "unpublished",
        };
        let value = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        vec![
            one.name.clone(),
            key_text(&row.key),
            one.unit.to_string(),
            value(row.published),
            value(row.ours),
            value(row.error),
            verdict.to_string(),
        ]
    };
    let rows = result
        .experiments
        .iter()
        .flat_map(|one| one.comparison.rows.iter().map(move |cell| row(one, cell)));
    let columns = ["experiment", "cell", "unit", "published", "ours", "error", "verdict"];
    section("published-and-ours", "Every cell", "", &columns, rows.collect())
}
