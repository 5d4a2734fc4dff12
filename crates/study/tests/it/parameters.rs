//! `docs/parameters.md`, each parameter of the reports' studies against its report, against the studies themselves.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use trunkline_study::{Parameter, Provenance, Source};

/// The studies that the page has, in its order.
const STUDIES: [&str; 3] = ["hawley1989", "vandewater1988", "lds2001"];

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
}

/// File, key and label.
type Row = (String, String, String);

fn label(parameter: &Parameter) -> &'static str {
    match parameter.provenance().unwrap().0 {
        Provenance::Stated => "section",
        Provenance::Inferred => "inferred",
        Provenance::Like => "like",
        Provenance::Choice => "choice",
    }
}

/// What the study has.
fn told(study: &str) -> BTreeSet<Row> {
    let study = Source::open(study).unwrap().study;
    let row = |one: &Parameter| {
        (one.file.trim_start_matches("../").into(), one.key.clone(), label(one).into())
    };
    study.parameter.iter().map(row).collect()
}

/// What the page's table has: a line with a file's name stands before the parameters of that file.
fn shown(page: &str, study: &str) -> BTreeSet<Row> {
    let section =
        page.split("\n## ").find(|it| it.starts_with(&format!("Every parameter of {study}\n")));
    let mut file = "";
    let mut rows = BTreeSet::new();
    for line in section.unwrap().lines() {
        if let Some(name) = line.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
            file = name;
        } else if let Some(rest) = line.strip_prefix("| `") {
            let (key, rest) = rest.split_once("` | ").unwrap();
            let label = rest.split(" | ").nth(1).unwrap();
            let is_new = rows.insert((file.into(), key.into(), label.into()));
            assert!(is_new, "twice: {line}");
        }
    }
    rows
}

#[test]
fn the_page_has_every_parameter_with_its_label() {
    let page = page("docs/parameters.md");
    for study in STUDIES {
        let (told, shown) = (told(study), shown(&page, study));
        let missing: Vec<_> = told.difference(&shown).collect();
        let gone: Vec<_> = shown.difference(&told).collect();
        assert!(missing.is_empty() && gone.is_empty(), "{study} lacks {missing:?}, has {gone:?}");
    }
}

#[test]
fn the_counts_of_page_and_readme_are_those_of_the_studies() {
    let (page, readme) = (page("docs/parameters.md"), page("README.md"));
    let inferred = STUDIES.map(|study| {
        let rows = told(study);
        let count = |label: &str| rows.iter().filter(|row| row.2 == label).count();
        let line = page.lines().find(|line| line.starts_with(&format!("| `{study}` |"))).unwrap();
        let numbers: Vec<usize> =
            line.split('|').filter_map(|cell| cell.trim().trim_matches('*').parse().ok()).collect();
        let (stated, derived) = (numbers[2], numbers[3]);
        assert_eq!(stated + derived, count("section"), "{line}");
        let counts = [
            rows.len(),
            count("section"),
            stated,
            derived,
            count("like"),
            count("choice"),
            count("inferred"),
        ];
        assert_eq!(numbers[..counts.len()], counts, "{line}");
        count("inferred")
    });
    let [hawley, vandewater, lds] = inferred;
    for words in [
        format!("{hawley} parameters of Hawley's study and {vandewater} of Vande Water's"),
        format!("{lds} of `lds2001`"),
    ] {
        assert!(readme.replace('\n', " ").contains(&words), "README does not say: {words}");
    }
}
