//! `docs/parameters.md`, each parameter of the reports' studies against its report, against the studies themselves.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use toml::Value;
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

/// The value at a path such as `link.t1.rate`; elements of lists are found by their names.
fn value(file: &str, path: &str) -> Value {
    let file: toml::Table = page(&format!("studies/{file}")).parse().unwrap();
    let called = |item: &&Value, name: &str| item.get("name").and_then(Value::as_str) == Some(name);
    let found = path.split('.').try_fold(Value::Table(file), |value, step| match value {
        Value::Array(list) => list.iter().find(|item| called(item, step)).cloned(),
        other => other.get(step).cloned(),
    });
    found.unwrap_or_else(|| panic!("there is no {path}"))
}

/// The number in front of a value's unit.
fn number(file: &str, path: &str, unit: &str) -> f64 {
    let value = value(file, path);
    let text = value.as_str().unwrap_or_else(|| panic!("{path} is {value}"));
    text.strip_suffix(unit)
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("{path}: {text}"))
}

/// What the page calls derived and is a number follows from what the reports state, by the arithmetic that stands there.
#[test]
fn derived_values_follow_from_stated_ones() {
    const BOARDS: &str = "datakit/boards.toml";
    // Hawley 1989 section 1.3: 16 MHz; 1.4: cycles for an envelope; 2.3: two bytes for an envelope in 1 MB.
    let cycle = 1e9 / 16e6;
    for (module, input, output) in [("software-fifo", 18.0, 18.0), ("round-robin", 22.6, 19.7)] {
        let of =
            |key: &str| number(BOARDS, &format!("module.{module}.processor.{key}_per_byte"), "ns");
        assert_eq!((of("input"), of("output")), (input * cycle, output * cycle), "{module}");
        assert_eq!(number(BOARDS, &format!("module.{module}.limit"), "kB"), 1e6 / 2.0 / 1e3);
    }
    // Vande Water 1988 sections 2.4 and 2.5.1, in microseconds one way: 24.15 ms to New Jersey; Illinois is nearer by half of
    // what the round trips of two VAX 750s, 54.64 and 43 ms, differ.
    let line =
        |name: &str| number("vandewater1988/network.toml", &format!("link.{name}.delay"), "us");
    let illinois = 24_150.0 - (54_640.0 - 43_000.0) / 2.0;
    assert_eq!(line("oakland-chicago").round(), illinois);
    assert_eq!(line("oakland-chicago") + line("chicago-murray-hill"), 24_150.0);
    // LDS 2001 section 3.7: 32 bits at 33 MHz, 16 accesses of 32 bits for each buffer of 354 cells; 3.8: 50 us of cells.
    let of = |path: &str, unit: &str| number("lds2001/box.toml", path, unit);
    let cell = 53.0 * 8.0 / of("link.fibre-in.rate", "Mbit/s");
    assert_eq!(of("medium.pci.rate", "Mbit/s"), 32.0 * 33.0);
    assert_eq!(of("medium.pci.limit", "p"), (50.0 / cell).floor());
    let accesses = 16.0 * 32.0 / (354.0 * cell) * 1e3;
    assert_eq!(of("traffic.programmed.rate", "kbit/s"), accesses.round());
}
