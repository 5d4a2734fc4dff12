//! The truth ladder in its short form, over the examples.

use crate::support::{Host, installed};
use serde_json::Value;
use std::collections::BTreeMap;

/// Files that one run takes, so that it ends within the time that a test may take.
const TOGETHER: usize = 4;

/// The scenario files of a folder of this repository.
fn files(folder: &str) -> Vec<String> {
    let folder = format!("{}/../../{folder}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scenarios = entries.filter(|path| path.extension().is_some_and(|it| it == "toml"));
    let mut names: Vec<String> = scenarios.map(|path| path.to_str().unwrap().to_string()).collect();
    names.sort();
    names
}

/// Their ladders, one cell of each.
fn climbed(host: &Host, files: &[String]) -> Vec<Value> {
    let mut arguments = vec!["ladder", "--short", "--json"];
    arguments.extend(files.iter().map(String::as_str));
    let outcome = host.run(&arguments);
    assert!(outcome.status.success(), "{outcome:#?}");
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert!(document["notes"].is_array());
    let ladders = document["ladders"].as_array().unwrap().clone();
    for row in ladders.iter().flat_map(|ladder| ladder["rows"].as_array().unwrap()) {
        // What phase is said to decide has the range that shows it.
        let decided = row["judgements"]["emu"]["verdict"] == "phase";
        assert!(!decided || row["range"]["runs"].as_u64() >= Some(2), "{row}");
    }
    ladders
}

/// How far each figure of the emulator is from the simulator's, as a share, by the name of its kind. Those of
/// a run that the machine has spoilt are among them: the median does not mind.
fn distances(ladders: &[Value]) -> BTreeMap<String, Vec<f64>> {
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in ladders.iter().flat_map(|ladder| ladder["rows"].as_array().unwrap()) {
        let kind = row["what"]["what"].as_str().unwrap().to_string();
        if let Some(difference) = row["judgements"]["emu"]["difference"].as_f64() {
            found.entry(kind).or_default().push(difference.abs());
        }
    }
    found.values_mut().for_each(|values| values.sort_by(f64::total_cmp));
    found
}

/// Every example in all three engines. Single figures may suffer from the other tests beside them; the middle
/// one of each kind must not.
#[test]
fn the_examples_agree() {
    if !installed(&["iperf3"]) {
        return;
    }
    let host = Host::new();
    let files: Vec<String> = ["examples", "examples/ladder"].map(files).concat();
    let ladders: Vec<Value> =
        files.chunks(TOGETHER).flat_map(|some| climbed(&host, some)).collect();
    assert_eq!(ladders.len(), files.len());
    let emulated = |ladder: &&Value| ladder["accuracy"].is_object();
    let count = ladders.iter().filter(emulated).count();
    if count == 0 {
        return crate::support::skipped(
            "nothing could be emulated: network namespaces are not permitted",
        );
    }
    assert!(count >= 30, "{count} of {} were emulated", ladders.len());
    let distances = distances(&ladders);
    for kind in ["round-trip", "one-way", "goodput"] {
        let values = &distances[kind];
        let median = values[values.len() / 2];
        println!("{kind}: {} figures, median {median:.4}", values.len());
        assert!(values.len() >= 4 && median < 0.03, "{kind}: {values:?}");
    }
}

#[test]
fn notes_come_on_demand_and_once() {
    let host = Host::new();
    let file = files("examples/ladder").into_iter().find(|it| it.ends_with("t1-drr.toml")).unwrap();
    let run = |options: &[&str]| {
        let arguments = [&["ladder", "--engine", "model,sim", &file, &file], options].concat();
        let outcome = host.run(&arguments);
        assert!(outcome.status.success(), "{outcome:#?}");
        outcome.stdout
    };
    let notes = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("note: ")).map(str::to_string).collect()
    };
    let document: Value = serde_json::from_str(&run(&["--json"])).unwrap();
    let noted = document["notes"].as_array().unwrap().len();
    let (short, long) = (run(&[]), run(&["--notes"]));
    assert_eq!((notes(&short).len(), notes(&long).len()), (0, noted));
    assert!(noted == 0 || short.contains(&format!("{noted} notes of the engines")), "{short}");
    let mut once = notes(&long);
    once.sort();
    once.dedup();
    assert_eq!(once.len(), noted);
}

#[test]
fn wrong_use_is_told() {
    let host = Host::new();
    let outcome = host.run(&["ladder", "/nonexistent/place.toml"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
    assert!(outcome.complaint().contains("/nonexistent/place.toml"), "{outcome:#?}");
    let empty = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let outcome = host.run(&["ladder", empty.path().to_str().unwrap()]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
    assert!(outcome.complaint().contains("no scenario file"), "{outcome:#?}");
    let outcome = host.run(&["ladder", "x.toml", "--short", "--cells", "2"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
}
