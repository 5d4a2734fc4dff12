//! `docs/reports.md`, the reports section by section, against what the studies run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use trunkline_study::Source;

/// The reports, by their studies, in the order of the page.
const REPORTS: [&str; 5] =
    ["hawley1989", "vandewater1988", "lds2001", "lambert1987", "mosberger1994"];
/// The studies of what they left open.
const BEYOND: [&str; 4] = ["hawley-beyond", "xunet-beyond", "lambert-beyond", "mosberger-beyond"];
/// Parts that every study has beside its tables and figures.
const PARTS: [&str; 2] = ["quotes", "goals"];
const COLUMNS: usize = 6;
/// What each report numbers, in the order of [`REPORTS`].
const NUMBERED: [&[(&str, &str)]; 5] = [
    &[("Figure", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"), ("Table", "1 2")],
    &[("Figure", "1 2 3 4 5 6 7 8 9 10"), ("Table", "I II III IV"), ("eq.", "1 2 3 4 5 6 7 8 9")],
    &[("Figure", "1 2 3 4 5 6"), ("Table", "1")],
    &[("Appendix", "I II III IV")],
    &[("Figure", "1 2 3 4"), ("Table", "1 2 3 4")],
];

struct Row {
    report: &'static str,
    section: String,
    line: String,
    status: String,
    places: Vec<String>,
    reason: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of the page's tables, one table for each report.
fn rows() -> Vec<Row> {
    let page = fs::read_to_string(root().join("docs/reports.md")).unwrap();
    let sections = page.split("\n## ").skip(1);
    let mut rows = Vec::new();
    for (report, section) in REPORTS.into_iter().zip(sections) {
        let lines = section.lines().filter(|line| line.starts_with("| ")).skip(1);
        rows.extend(lines.map(|line| read(report, line)));
    }
    rows
}

fn read(report: &'static str, line: &str) -> Row {
    let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
    assert_eq!(cells.len(), COLUMNS, "{line}");
    let places = cells[4].split('`').skip(1).step_by(2).map(str::to_owned).collect();
    Row {
        report,
        section: cells[0].to_owned(),
        line: line.to_owned(),
        status: cells[3].to_owned(),
        places,
        reason: cells[5].to_owned(),
    }
}

/// `study:name` for all tables and figures of a study.
fn made(study: &str) -> BTreeSet<String> {
    let study = Source::open(study).unwrap().study;
    let tables = study.experiment.iter().map(|it| it.name.as_str());
    let all = tables.chain(study.figure.iter().map(|it| it.name.as_str()));
    all.map(|part| format!("{}:{part}", study.name)).collect()
}

#[test]
fn what_the_page_names_is_there() {
    let mut known = BTreeSet::new();
    for study in REPORTS.iter().chain(&BEYOND) {
        known.extend(made(study));
        known.extend(PARTS.map(|part| format!("{study}:{part}")));
    }
    for Row { report, line, places, .. } in rows() {
        for place in places {
            let is_there = match place.strip_prefix("published/") {
                Some(table) => {
                    root().join("studies").join(report).join("published").join(table).exists()
                }
                None if place.contains(':') => known.contains(&place),
                None => root().join(&place).exists(),
            };
            assert!(is_there, "there is no {place}: {line}");
        }
    }
}

#[test]
fn what_the_studies_make_is_on_the_page() {
    let named: BTreeSet<String> = rows().into_iter().flat_map(|row| row.places).collect();
    for study in REPORTS.iter().chain(&BEYOND) {
        let missing: Vec<String> = made(study).difference(&named).cloned().collect();
        assert_eq!(missing, [""; 0], "not in docs/reports.md");
    }
    for report in REPORTS {
        assert!(
            named.contains(&format!("{report}:goals"))
                && named.contains(&format!("{report}:quotes"))
        );
    }
}

/// The kinds and numbers of a first column such as `3.7, Table 1` or `Figures 5, 6`.
fn numbered(section: &str) -> Vec<(String, String)> {
    let mut kind = None;
    let mut found = Vec::new();
    for word in section.split([',', ' ']).filter(|word| !word.is_empty()) {
        match word {
            "Figure" | "Table" | "Appendix" | "eq." => kind = Some(word.to_owned()),
            "Figures" | "Tables" => kind = Some(word.trim_end_matches('s').to_owned()),
            number => found.extend(kind.clone().map(|kind| (kind, number.to_owned()))),
        }
    }
    found
}

#[test]
fn every_numbered_table_figure_and_equation_has_a_row() {
    let rows = rows();
    for (report, kinds) in REPORTS.into_iter().zip(NUMBERED) {
        let of_report = rows.iter().filter(|row| row.report == report);
        let found: BTreeSet<_> = of_report.flat_map(|row| numbered(&row.section)).collect();
        for (kind, number) in kinds.iter().flat_map(|&(kind, numbers)| {
            numbers.split(' ').map(move |number| (kind.to_owned(), number.to_owned()))
        }) {
            assert!(found.contains(&(kind.clone(), number.clone())), "{report}: {kind} {number}");
        }
    }
}

#[test]
fn published_tables_are_named_by_their_report() {
    let rows = rows();
    for report in REPORTS {
        let folder = root().join("studies").join(report).join("published");
        for entry in fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let place = format!("published/{name}");
            let named = rows.iter().any(|row| row.report == report && row.places.contains(&place));
            assert!(named || !name.ends_with(".csv"), "{report}: {place} is in no row");
        }
    }
}

#[test]
fn what_is_not_complete_says_why() {
    let rows = rows();
    for Row { line, status, places, reason, .. } in &rows {
        match status.as_str() {
            "complete" => assert!(reason.is_empty() && !places.is_empty(), "{line}"),
            "partial" => assert!(!reason.is_empty() && !places.is_empty(), "{line}"),
            "left out" => assert!(!reason.is_empty(), "{line}"),
            _ => panic!("no such status: {line}"),
        }
    }
    for report in REPORTS {
        assert!(rows.iter().filter(|row| row.report == report).count() >= 25, "{report}");
    }
}
