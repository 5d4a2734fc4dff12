//! Published studies through `study`.

use crate::support::{Host, Outcome};
use std::fs;

fn succeeds(arguments: &[&str]) -> Outcome {
    let outcome = Host::beside().run(arguments);
    assert!(outcome.status.success(), "{arguments:?}: {outcome:#?}");
    outcome
}

/// A study of one cell with a goal that depends on the tolerance: the published 10 ms are 20.
fn study(tolerance: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let text = STUDY.replace("TOLERANCE", tolerance);
    for (name, text) in [
        ("study.toml", text.as_str()),
        ("echo.toml", SCENARIO),
        ("delays.csv", "size_bytes,delay_ms\n1,10\n"),
    ] {
        fs::write(home.path().join(name), text).unwrap();
    }
    home
}

const STUDY: &str = r#"
name = "one-cell"
title = "One cell"
report = "Nobody 2000"

[[experiment]]
name = "delay"
title = "Delay of an echo"
scenario = "echo.toml"
traffic = "echo"
measure = { kind = "delay", estimator = "minimum" }
unit = "ms"
keys = { size_bytes = "size" }
published = "delays.csv"
value = "delay_ms"
tolerance = TOLERANCE

[[goal]]
title = "The delay agrees"
experiment = "delay"
judge = { kind = "share", at_least = 1.0 }

[[parameter]]
file = "echo.toml"
key = "host"
inferred = "made up"

[[parameter]]
file = "echo.toml"
key = "link"
inferred = "made up"

[[parameter]]
file = "echo.toml"
key = "traffic"
inferred = "made up"
"#;

const SCENARIO: &str = r#"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
name = "line"
between = ["a", "b"]
delay = "10ms"
[[traffic]]
name = "echo"
kind = "interactive"
from = "a"
to = "b"
sizes = [1]
repeat = 3
"#;

#[test]
fn the_studies_are_listed_and_shown() {
    let list = succeeds(&["study", "list"]).stdout;
    for name in ["hawley1989", "vandewater1988"] {
        assert!(list.contains(name), "{list}");
        let shown = succeeds(&["study", "show", name]).stdout;
        assert!(shown.contains("Goals:") && shown.contains("inferred"), "{shown}");
        let json = succeeds(&["study", "show", name, "--json"]).statement_of_all();
        assert!(json["goals"].as_array().is_some_and(|goals| !goals.is_empty()), "{json}");
    }
    let json = succeeds(&["study", "list", "--json"]).statement_of_all();
    assert_eq!(json["studies"].as_array().unwrap().len(), list.lines().count() / 2);
}

/// A study's scenario, printed whole, is a file for the other verbs.
#[test]
fn the_scenario_of_a_study_is_printed_for_other_verbs() {
    let text = succeeds(&["study", "show", "vandewater1988", "--scenario", "transfer.toml"]).stdout;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("transfer.toml");
    std::fs::write(&file, &text).unwrap();
    let predicted = succeeds(&["predict", file.to_str().unwrap()]).stdout;
    assert!(predicted.contains("dkxload"), "{predicted}");
}

#[test]
fn goals_are_judged_and_a_missed_one_is_a_finding() {
    let (near, far) = (study("0.5"), study("1.5"));
    let (near, far) = (near.path().to_str().unwrap(), far.path().to_str().unwrap());
    let met = succeeds(&["study", "run", far, "--strict"]).stdout;
    assert!(met.contains("met    The delay agrees"), "{met}");
    let missed = succeeds(&["study", "run", near, "--tables"]).stdout;
    assert!(missed.contains("MISSED The delay agrees"), "{missed}");
    assert!(missed.contains("published (ms)") && missed.contains("outside"), "{missed}");
    let strict = Host::beside().run(&["study", "run", near, "--strict"]);
    assert_eq!(strict.status.code(), Some(1), "{strict:#?}");
    assert!(strict.complaint().contains("1 of 1 goals"), "{strict:#?}");
    let json = succeeds(&["study", "run", near, "--json"]).statement();
    assert_eq!(json["studies"][0]["goals"][0]["met"], false, "{json}");
    assert_eq!(json["studies"][0]["report"]["comparisons"][0]["counts"]["outside"], 1);
}

#[test]
fn a_study_is_written_below_the_directory_named_the_same_on_any_number_of_threads() {
    let home = study("0.5");
    let name = home.path().to_str().unwrap();
    let pages: Vec<Vec<u8>> = ["1", "4"]
        .iter()
        .map(|threads| {
            let out = home.path().join(threads);
            let out = out.to_str().unwrap();
            let outcome = succeeds(&["study", "run", name, "--out", out, "--threads", threads]);
            assert!(outcome.stderr.contains("one-cell/index.html"), "{outcome:#?}");
            let again = Host::beside().run(&["study", "run", name, "--out", out]);
            assert_eq!(again.status.code(), Some(2), "{again:#?}");
            assert!(again.complaint().contains("--force"), "{again:#?}");
            fs::read(format!("{out}/one-cell/published-and-ours.csv")).unwrap()
        })
        .collect();
    assert!(pages[0] == pages[1] && !pages[0].is_empty());
}

#[test]
fn wrong_studies_are_told_in_one_line() {
    let home = study("0.5 # ok\nsides = 3");
    let name = home.path().to_str().unwrap();
    for (arguments, words) in [
        (&["study", "run", "hawley"][..], &["hawley1989", "study.toml"][..]),
        (&["study", "show", "/nonexistent"], &["/nonexistent", "vandewater1988"]),
        (&["study", "run", name], &["study.toml", "sides"]),
        (&["study", "run"], &["<NAME>"]),
        (&["study", "run", "hawley1989", "--json", "--tables"], &["--tables"]),
        (&["study", "fly"], &["fly"]),
    ] {
        let outcome = Host::beside().run(arguments);
        assert_eq!(outcome.status.code(), Some(2), "{arguments:?}: {outcome:#?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{arguments:?}: {outcome:#?}");
        let complaint = outcome.complaint();
        for word in words {
            assert!(complaint.contains(word), "{arguments:?}: no '{word}' in: {complaint}");
        }
    }
}
