//! The truth ladder in its short form, over the examples.

use crate::support::{Host, LIMIT, installed};
use serde_json::Value;
use std::collections::BTreeMap;

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
    let mut arguments = vec!["ladder", "--cells", "1", "--time", "1s", "--attempts", "1", "--json"];
    arguments.extend(files.iter().map(String::as_str));
    let limit = LIMIT * files.len() as u32;
    let outcome = host.run_within(limit, &arguments);
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert!(document["notes"].is_array());
    let ladders = document["ladders"].as_array().unwrap().clone();
    let spoilt = ladders.iter().filter(|ladder| is_spoilt(ladder)).count();
    let told = || format!("{spoilt} spoilt: {}", outcome.complaint());
    assert_eq!(outcome.status.code(), Some(i32::from(spoilt > 0)), "{}", told());
    assert!(spoilt == 0 || names_reason(outcome.complaint()), "{}", told());
    for row in ladders.iter().flat_map(|ladder| ladder["rows"].as_array().unwrap()) {
        // What phase is said to decide has the range that shows it.
        let decided = row["judgements"]["emu"]["verdict"] == "phase";
        assert!(!decided || row["range"]["runs"].as_u64() >= Some(2), "{row}");
    }
    ladders
}

/// Whether a complaint that ends with status 1 says which of its two reasons it is.
fn names_reason(complaint: &str) -> bool {
    ["INVALID", "failed: "].iter().any(|word| complaint.contains(word))
}

/// Whether the machine has spoilt the emulation. Then each of its values is marked, and no other.
fn is_spoilt(ladder: &Value) -> bool {
    let doubts = ladder["invalid"].as_array().unwrap();
    let spoilt = !doubts.is_empty();
    // No flow and no program fails on a machine that is sound.
    let failures = doubts.iter().filter(|it| it.as_str().unwrap().contains("failed: ")).count();
    assert!(failures == 0 || failures < doubts.len(), "{doubts:#?}");
    for row in ladder["rows"].as_array().unwrap() {
        for (engine, figure) in row["figures"].as_object().unwrap() {
            assert_eq!(figure["invalid"], spoilt && engine == "emu", "{row}");
        }
    }
    spoilt
}

/// The farthest that a figure of the emulator may be from the simulator's, as a share, if neither phase nor chance
/// accounts for it: kernels do some things otherwise than our TCP. Fixed before the first run.
const FAR: f64 = 0.15;
/// Or so far in milliseconds: what hosts take beside other tests.
const FAR_MILLIS: f64 = 1.0;

/// What the hosts at both ends take of a delay beside other tests, in milliseconds: of a delay below a millisecond it
/// is a tenth and more, whatever the emulator does.
const HOSTS_MILLIS: f64 = 0.2;

/// Whether a row's figures are delays, in milliseconds.
fn is_delay(row: &Value) -> bool {
    ["round-trip", "one-way", "interval"].contains(&row["what"]["what"].as_str().unwrap())
}

/// Figures of the emulator that are farther from the simulator's than anything known accounts for.
fn astray(ladder: &Value) -> Vec<&Value> {
    let far = |row: &&Value| {
        let judgement = &row["judgements"]["emu"];
        let verdict = judgement["verdict"].as_str().unwrap();
        let (share, apart) = (judgement["difference"].as_f64(), judgement["apart"].as_f64());
        let near = share.is_some_and(|share| share.abs() <= FAR)
            || is_delay(row) && apart.is_some_and(|millis| millis.abs() <= FAR_MILLIS);
        // A run that is cut short may leave an engine without a figure; then it has to say why.
        let told =
            |engine: &&str| row["figures"][engine].is_null() && !row["absent"][engine].is_string();
        let untold = ["sim", "emu"].iter().any(told);
        verdict == "missing" && untold || verdict == "differ" && !near
    };
    ladder["rows"].as_array().unwrap().iter().filter(far).collect()
}

/// Whether a scenario file says what operations cost its hosts.
fn describes_hosts(file: &str) -> bool {
    let text = std::fs::read_to_string(file).unwrap();
    ["[processor.", "[interface."].iter().any(|table| text.contains(table))
}

/// The distance of a figure of the emulator from the simulator's, as a share; of a delay without what hosts take.
fn distance(row: &Value) -> Option<f64> {
    let judgement = &row["judgements"]["emu"];
    let share = judgement["difference"].as_f64()?.abs();
    if !is_delay(row) {
        return Some(share);
    }
    let apart = judgement["apart"].as_f64()?.abs();
    if apart <= HOSTS_MILLIS { Some(0.0) } else { Some(share * (1.0 - HOSTS_MILLIS / apart)) }
}

/// These distances in order, by the name of their kind.
fn distances<'a>(ladders: impl Iterator<Item = &'a Value>) -> BTreeMap<String, Vec<f64>> {
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in ladders.flat_map(|ladder| ladder["rows"].as_array().unwrap()) {
        let kind = row["what"]["what"].as_str().unwrap().to_string();
        found.entry(kind).or_default().extend(distance(row));
    }
    found.values_mut().for_each(|values| values.sort_by(f64::total_cmp));
    found
}

/// Every example in all three engines: each figure of an emulation that the machine has not spoilt is near the
/// simulator's, and the middle one of each kind is equal to it.
#[test]
fn the_examples_agree() {
    if !installed(&["iperf3"]) {
        return;
    }
    let host = Host::alone();
    let files: Vec<String> = ["examples", "examples/ladder"].map(files).concat();
    let mut ladders = climbed(&host, &files);
    assert_eq!(ladders.len(), files.len());
    // If the machine has spoilt most of them, they have another chance; else the others tell enough.
    let spoilt = ladders.iter().filter(|ladder| is_spoilt(ladder)).count();
    let again = ladders.iter_mut().zip(&files).filter(|(ladder, _)| is_spoilt(ladder));
    for (ladder, file) in again.filter(|_| 3 * spoilt > 2 * files.len()) {
        *ladder = climbed(&host, std::slice::from_ref(file)).remove(0);
    }
    // So has what chance has spoilt, such as a program that tells nonsense once in a hundred runs: what is wrong is wrong twice.
    let is_astray =
        |ladder: &Value, file: &str| !describes_hosts(file) && !astray(ladder).is_empty();
    for (ladder, file) in ladders.iter_mut().zip(&files).filter(|(it, file)| is_astray(it, file)) {
        println!("{file} is run once more: {:#?}", astray(ladder));
        *ladder = climbed(&host, std::slice::from_ref(file)).remove(0);
    }
    let emulated = |ladder: &&Value| ladder["accuracy"].is_object();
    let count = ladders.iter().filter(emulated).count();
    if count == 0 {
        return crate::support::skipped(
            "nothing could be emulated: network namespaces are not permitted",
        );
    }
    assert!(count >= 30, "{count} of {} were emulated", ladders.len());
    let sound =
        || ladders.iter().filter(|ladder| ladder["accuracy"].is_object() && !is_spoilt(ladder));
    if sound().count() == 0 {
        return crate::support::skipped(format!("the machine has spoilt all {count} emulations"));
    }
    // What processors and interfaces cost is simulated; the emulator's hosts are this machine's.
    let of_lines = std::iter::zip(&ladders, &files).filter(|(_, file)| !describes_hosts(file));
    let of_lines = of_lines.map(|(ladder, _)| ladder);
    let of_lines: Vec<&Value> =
        of_lines.filter(|it| it["accuracy"].is_object() && !is_spoilt(it)).collect();
    let astray: Vec<&Value> = of_lines.iter().copied().flat_map(astray).collect();
    assert!(astray.is_empty(), "{} figures are astray: {astray:#?}", astray.len());
    let distances = distances(of_lines.into_iter());
    for kind in ["round-trip", "one-way", "goodput"] {
        // The middle one of few is no more than one of them.
        let Some(values) = distances.get(kind).filter(|values| values.len() >= 4) else { continue };
        let median = values[values.len() / 2];
        println!("{kind}: {} figures, median {median:.4}", values.len());
        assert!(median < 0.03, "{kind}: {values:?}");
    }
}

#[test]
fn notes_come_on_demand_and_once() {
    let host = Host::beside();
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

/// Losses, copies and disorder together deceive URP, which knows a block by three bits of its number.
const DECEIVED: &str = r#"
    [[host]]
    name = "a"
    [[host]]
    name = "b"
    [[link]]
    between = ["a", "b"]
    rate = "1Mbit/s"
    delay = "40ms"
    jitter = "independent:uniform:30ms"
    duplicate = "20%"
    loss = "10%"
    [[traffic]]
    name = "file"
    kind = "bulk"
    from = "a"
    to = "b"
    bytes = "50kB"
    transport = { kind = "urp", block = 256, outstanding = 7, packet = 0 }
"#;

#[test]
fn wrong_data_fail_everywhere() {
    let host = Host::beside();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = home.path().join("deceived.toml");
    std::fs::write(&file, DECEIVED).unwrap();
    let file = file.to_str().unwrap();
    for arguments in [
        &["run", file, "--engine", "sim"][..],
        &["ladder", file, "--engine", "model,sim", "--best-effort"],
    ] {
        let outcome = host.run(arguments);
        assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
        assert!(outcome.complaint().contains("wrong data"), "{outcome:#?}");
        let values =
            outcome.stdout.lines().filter(|line| line.contains("file ") && line.contains(" %"));
        let values: Vec<&str> =
            values.chain(outcome.stdout.lines().filter(|it| it.contains("bit/s"))).collect();
        assert!(
            !values.is_empty() && values.iter().all(|it| it.contains("INVALID")),
            "{outcome:#?}"
        );
    }
}

#[test]
fn wrong_use_is_told() {
    let host = Host::beside();
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
