//! Scenario files through `run` and `predict`.

use crate::support::{Host, Outcome, files_of, is_forbidden, programs_of, skipped};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The examples of this repository.
fn examples() -> Vec<String> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_scenario = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "toml");
    let mut names: Vec<String> =
        paths.filter(is_scenario).map(|path| path.to_str().unwrap().to_string()).collect();
    names.sort();
    assert!(names.len() >= 10, "{names:?}");
    names
}

/// A place of the test's own.
fn place() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn path(home: &tempfile::TempDir, name: &str) -> String {
    home.path().join(name).to_str().unwrap().to_string()
}

fn succeeds(arguments: &[&str]) -> Outcome {
    succeeds_in(&Host::beside(), arguments)
}

/// The same in a turn that goes on: who gave it up between many short runs would keep those that wait to be among
/// few or alone waiting before each of them.
fn succeeds_in(host: &Host, arguments: &[&str]) -> Outcome {
    let outcome = host.run(arguments);
    assert!(outcome.status.success(), "{arguments:?}: {outcome:#?}");
    outcome
}

/// Refused with one line that holds these words.
fn refused(arguments: &[&str], status: i32, words: &[&str]) {
    let outcome = Host::beside().run(arguments);
    assert_eq!(outcome.status.code(), Some(status), "{arguments:?}: {outcome:#?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{arguments:?}: {outcome:#?}");
    let complaint = outcome.complaint();
    for word in words {
        assert!(complaint.contains(word), "{arguments:?}: no '{word}' in: {complaint}");
    }
}

/// A small scenario with a grid, and with chance in it.
const SMALL: &str = r#"
name = "Small"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
name = "line"
between = ["a", "b"]
rate = "1Mbit/s"
delay = ["1ms", "10ms"]
loss = "1%"
jitter = "500us"
[[traffic]]
name = "file"
kind = "bulk"
from = "a"
to = "b"
bytes = "50kB"
count = 2
[[traffic]]
name = "keys"
kind = "interactive"
from = "a"
to = "b"
sizes = [1, 64]
repeat = 20
"#;

fn small(home: &tempfile::TempDir) -> String {
    let file = path(home, "small.toml");
    fs::write(&file, SMALL).unwrap();
    file
}

fn files(directory: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

#[test]
fn every_example_runs_in_both_engines() {
    let host = Host::beside();
    for file in examples() {
        let outcome = succeeds_in(&host, &["run", &file]);
        assert!(outcome.stdout.contains("sim (against model)"), "{file}: {}", outcome.stdout);
        // How far it is, a slow machine is told: that is no complaint.
        let mut complaints = outcome.stderr.lines().filter(|it| !it.starts_with("trunkline: ["));
        assert_eq!(complaints.next(), None, "{file}");
    }
}

#[test]
fn every_example_is_predicted_or_says_why_not() {
    let host = Host::beside();
    for file in examples() {
        let text = succeeds_in(&host, &["predict", &file]).stdout;
        let json = succeeds_in(&host, &["predict", &file, "--json"]).statement_of_all();
        for cell in json["cells"].as_array().unwrap() {
            let (found, notes) = (&cell["predictions"], &cell["notes"]);
            assert!(found.as_array().unwrap().len() + notes.as_array().unwrap().len() > 0);
            for note in notes.as_array().unwrap() {
                assert!(text.contains(note["text"].as_str().unwrap()), "{file}");
            }
            for term in
                found.as_array().unwrap().iter().flat_map(|one| one["terms"].as_array().unwrap())
            {
                assert!(text.contains(term["numbers"].as_str().unwrap()), "{file}: {term}");
            }
        }
    }
}

#[test]
fn a_directory_of_results_holds_what_its_manual_names() {
    let home = place();
    let out = path(&home, "results");
    let outcome = succeeds(&["run", &small(&home), "--out", &out]);
    assert!(outcome.stderr.contains("index.html"), "{outcome:#?}");
    let written = files(&out);
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
    let manual = fs::read_to_string(manual).unwrap();
    for name in [
        "index.html",
        "run.json",
        "samples.csv",
        "cells.csv",
        "links.csv",
        "steps.csv",
        "senders.csv",
        "backlog.csv",
    ] {
        assert!(manual.contains(&format!("`{name}`")), "{name}");
        assert!(!written[name].is_empty(), "{name}");
    }
    assert!(written.keys().any(|name| name.ends_with(".svg")));
    let json: serde_json::Value = serde_json::from_slice(&written["run.json"]).unwrap();
    assert_eq!((json["format"].as_u64(), json["runs"].as_array().unwrap().len()), (Some(2), 4));
    assert_eq!(json["scenario"], SMALL);
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn the_json_on_standard_output_is_that_of_the_directory() {
    let home = place();
    let out = path(&home, "results");
    let printed = succeeds(&["run", &small(&home), "--json", "--out", &out]).stdout;
    assert_eq!(printed.trim_end().as_bytes(), files(&out)["run.json"].trim_ascii_end());
}

#[test]
fn the_same_run_gives_the_same_bytes_on_any_number_of_threads() {
    let home = place();
    let file = small(&home);
    let outs = ["first", "again", "one", "four", "seed"].map(|name| path(&home, name));
    succeeds(&["run", &file, "--out", &outs[0]]);
    succeeds(&["run", &file, "--out", &outs[1]]);
    succeeds(&["run", &file, "--out", &outs[2], "--threads", "1"]);
    succeeds(&["run", &file, "--out", &outs[3], "--threads", "4"]);
    succeeds(&["run", &file, "--out", &outs[4], "--seed", "2"]);
    let [first, again, one, four, seed] = outs.map(|out| {
        let mut files = files(&out);
        // The command line stands on the page and in run.json.
        files.retain(|name, _| name.ends_with(".csv") || name.ends_with(".svg"));
        files
    });
    assert!(first == again && again == one && one == four);
    assert_ne!(first["samples.csv"], seed["samples.csv"], "another seed, other losses");
}

#[test]
fn results_are_not_overwritten_unasked() {
    let home = place();
    let (file, out) = (small(&home), path(&home, "results"));
    succeeds(&["run", &file, "--out", &out]);
    let before = files(&out);
    refused(&["run", &file, "--seed", "5", "--out", &out], 2, &[&out, "--force"]);
    assert!(files(&out) == before, "they are as they were");
    succeeds(&["run", &file, "--seed", "5", "--out", &out, "--force"]);
    assert!(files(&out) != before, "now they are others");
    let foreign = home.path().to_str().unwrap();
    refused(&["run", &file, "--out", foreign, "--force"], 2, &[foreign, "another directory"]);
    refused(&["run", &file, "--out", &file], 2, &[&file, "no directory"]);
    let below = format!("{file}/results");
    refused(&["run", &file, "--out", &below], 1, &["cannot write", &file]);
    refused(&["run", &file, "--out", "/proc/results"], 1, &["cannot write", "/proc"]);
    refused(&["run", &file, "--force"], 2, &["--out"]);
}

#[test]
fn an_engine_that_cannot_run_a_cell_says_so() {
    let home = place();
    let tcp = |name: &str, sack: bool| {
        format!(
            "[[traffic]]\nname = '{name}'\nkind = 'bulk'\nfrom = 'a'\nto = 'b'\nbytes = '1kB'\n\
             transport = {{ kind = 'tcp', sack = {sack} }}\ncommand = 'true'\n"
        )
    };
    let text = format!("{SMALL}{}{}", tcp("one", true), tcp("two", false));
    let file = path(&home, "two-minds.toml");
    fs::write(&file, text).unwrap();
    let beside = succeeds(&["run", &file, "--engine", "model,emu"]).stdout;
    assert!(
        beside.contains("unavailable") && beside.contains("note: emu: unavailable: "),
        "{beside}"
    );
    let alone = Host::beside().run(&["run", &file, "--engine", "emu"]);
    assert_eq!(alone.status.code(), Some(1), "{alone:#?}");
    assert!(alone.stdout.contains("emu: unavailable"), "{alone:#?}");
    assert!(alone.complaint().contains("no engine could run"), "{alone:#?}");
    let one = succeeds(&["run", &small(&home), "--engine", "sim"]).stdout;
    assert!(!one.contains("model"), "{one}");
}

/// A cell of a second.
const SECOND: &str = r#"
stop_after = "10s"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
between = ["a", "b"]
rate = "10Mbit/s"
delay = "20ms"
[[traffic]]
name = "ticks"
kind = "paced"
from = "a"
to = "b"
size = 972
rate = "777600bit/s"
duration = "DURATION"
transport = "udp"
"#;

#[test]
fn three_engines_stand_side_by_side() {
    let home = place();
    let file = path(&home, "second.toml");
    fs::write(&file, SECOND.replace("DURATION", "1s")).unwrap();
    // Other tests keep the machine busy.
    let once = ["--attempts", "1", "--best-effort", "--json"];
    let arguments = [&["run", &file, "--engine", "sim,emu"], &once[..]].concat();
    let Some(outcome) = Host::beside().run_well(&arguments) else { return };
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let runs = json["runs"].as_array().unwrap();
    let unavailable = json["unavailable"].as_array().unwrap();
    if let Some(reason) = unavailable.iter().find(|it| is_forbidden(&it.to_string())) {
        return skipped(reason);
    }
    assert_eq!(unavailable.len(), 0, "{unavailable:?}");
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!(run["traffic"][0]["packets"]["sent"], 100, "{run}");
    }
    assert_eq!(runs[1]["accuracy"]["frames_out"], 100);
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
    let manual = fs::read_to_string(manual).unwrap();
    let told = |name: &&String| manual.contains(&format!("`{name}`"));
    assert!(runs[1]["accuracy"].as_object().unwrap().keys().all(|name| told(&name)));
    assert!(runs[1]["invalid"].is_array() && runs[0]["accuracy"].is_null());
}

#[test]
fn a_program_that_fails_makes_the_run_fail() {
    let home = place();
    let file = path(&home, "fails.toml");
    let text =
        SECOND.replace("DURATION", "1s").replace("transport = \"udp\"", "command = 'exit 3'");
    fs::write(&file, text).unwrap();
    let outcome = Host::beside().run(&["run", &file, "--engine", "emu", "--best-effort"]);
    if is_forbidden(&outcome.stdout) {
        return skipped(&outcome.stdout);
    }
    assert!(!outcome.stdout.contains("unavailable"), "{outcome:#?}");
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    let complaint = outcome.complaint();
    assert!(complaint.contains("'ticks' failed: 'exit 3': exit status: 3"), "{complaint}");
    // It would fail again.
    assert!(outcome.stdout.contains("no frame was sent"), "{outcome:#?}");
    assert!(!outcome.stdout.contains("measured again"), "{outcome:#?}");
    assert!(!outcome.stdout.contains("99 in 100"), "{outcome:#?}");
}

/// Breaks a run of `text` off once there is what `begun` looks for, and sees that nothing is left of it. `None`
/// if runs in real time are not permitted.
fn broken_off(name: &str, text: &str, begun: impl Fn(u32) -> bool) -> Option<Outcome> {
    let home = place();
    let file = path(&home, name);
    fs::write(&file, text).unwrap();
    let host = Host::beside();
    let running = host.start(&["run", &file, "--engine", "emu"]);
    let pid = running.pid();
    // Other tests may have the testbed, one after another, and it is waited for.
    let until = Instant::now() + Duration::from_secs(120);
    while !begun(pid) && Instant::now() < until {
        sleep(Duration::from_millis(20));
    }
    let begun = begun(pid);
    sleep(Duration::from_secs(1));
    running.signal(Signal::INT);
    let outcome = running.finish();
    if is_forbidden(&outcome.stdout) {
        skipped(&outcome.stdout);
        return None;
    }
    assert!(!outcome.stdout.contains("unavailable"), "{outcome:#?}");
    assert!(begun, "nothing had begun after two minutes: {outcome:#?}");
    host.assert_nothing_left(pid);
    Some(outcome)
}

#[test]
fn programs_that_heed_no_signal_end_with_a_run_that_is_broken_off() {
    let stubborn =
        "count = 4\ncommand = \"trap '' TERM; setsid sleep 600 & while :; do sleep 601; done\"";
    let text = SECOND.replace("DURATION", "1s").replace("10s", "10min");
    let text = text.replace("transport = \"udp\"", stubborn);
    broken_off("stubborn.toml", &text, |pid| !programs_of(pid).is_empty());
}

#[test]
fn a_signal_ends_an_emulated_run_and_nothing_is_left() {
    let text = SECOND.replace("10s", "10min").replace("DURATION", "5min");
    let outcome = broken_off("minutes.toml", &text, |pid| !files_of(pid).is_empty());
    assert!(outcome.is_none_or(|it| !it.status.success()));
}

#[test]
fn wrong_files_and_words_are_told_in_one_line() {
    let home = place();
    let file = small(&home);
    let wrong = path(&home, "wrong.toml");
    fs::write(&wrong, SMALL.replace("jitter", "jiter")).unwrap();
    let syntax = path(&home, "syntax.toml");
    fs::write(&syntax, "name = \n").unwrap();
    let binary = path(&home, "binary.toml");
    fs::write(&binary, [0xff, 0xfe, 0]).unwrap();
    let directory = home.path().to_str().unwrap();
    let seeds = path(&home, "seeds.toml");
    fs::write(&seeds, format!("seed = [1, 2]\n{SMALL}")).unwrap();
    for verb in ["run", "predict"] {
        refused(&[verb, &wrong], 2, &["wrong.toml:13:", "jiter", "jitter"]);
        refused(&[verb, &syntax], 2, &["syntax.toml:1:"]);
        refused(&[verb, &binary], 2, &["binary.toml", "cannot be read"]);
        refused(&[verb, directory], 2, &[directory, "cannot be read"]);
        refused(&[verb, "/nonexistent.toml"], 2, &["/nonexistent.toml", "cannot be read"]);
        refused(&[verb], 2, &["SCENARIO.TOML"]);
    }
    refused(&["run", &seeds, "--seed", "3"], 2, &["seeds.toml", "axis"]);
    refused(&["run", &file, "--seed", "-1"], 2, &["-1"]);
    refused(&["run", &file, "--threads", "0"], 2, &["--threads", "1..=1024"]);
    refused(&["run", &file, "--engine", "ns3"], 2, &["ns3", "model, sim, emu"]);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let home = place();
    let file = small(&home);
    for verb in ["run $1", "run $1 --json", "predict $1", "study list", "study show hawley1989"] {
        let mut command = std::process::Command::new("bash");
        let script = format!("set -o pipefail; $0 {verb} | true");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_trunkline"), &file]);
        let outcome = Host::beside().start_command(command).finish();
        // Which of both ends first is chance: 141 tells that something was left unread.
        let told = matches!(outcome.status.code(), Some(0 | 141));
        assert!(told && outcome.stderr.is_empty(), "{verb}: {outcome:#?}");
    }
}

/// More than anybody waits for.
const LONG: &str = r#"
stop_after = "60min"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
between = ["a", "b"]
rate = "1Gbit/s"
[[traffic]]
name = "file"
kind = "bulk"
from = "a"
to = "b"
bytes = "100GB"
"#;

#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    let home = place();
    let (file, out) = (path(&home, "long.toml"), home.path().join("results"));
    fs::write(&file, LONG).unwrap();
    for (signal, name) in [(Signal::INT, "SIGINT"), (Signal::TERM, "SIGTERM")] {
        let running = Host::beside().start(&["run", &file, "--out", out.to_str().unwrap()]);
        await_partial(home.path());
        running.signal(signal);
        let outcome = running.finish();
        assert_eq!(outcome.status.code(), Some(128 + signal.as_raw()), "{outcome:#?}");
        assert_eq!(outcome.complaint(), format!("trunkline: interrupted by {name}"));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "only the scenario is left");
    }
}

/// Waits until a run has made its hidden directory.
fn await_partial(home: &Path) {
    let until = std::time::Instant::now() + crate::support::LIMIT;
    while fs::read_dir(home).unwrap().count() < 2 {
        assert!(std::time::Instant::now() < until, "the run did not begin");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// The median delay in milliseconds of the demo's call behind `queue`, as the emulator has it.
fn call_behind(queue: &str, json: &serde_json::Value) -> f64 {
    let run = json["runs"].as_array().unwrap().iter().find(|run| {
        run["engine"] == "emu" && run["cell"]["link.access.forward.discipline"] == queue
    });
    let run = run.unwrap_or_else(|| panic!("no {queue} in {json}"));
    let call = run["traffic"].as_array().unwrap().iter().find(|it| it["name"] == "call").unwrap();
    call["summary"][0]["median_ns"].as_f64().unwrap() / 1e6
}

#[test]
fn the_demo_shows_what_a_queue_does() {
    let home = place();
    let results = path(&home, "demo");
    // Other tests keep the machine busy.
    let arguments = ["demo", "-o", &results, "--best-effort"];
    let Some(outcome) = Host::among_few().run_well(&arguments) else { return };
    if is_forbidden(&outcome.stdout) {
        assert!(outcome.stdout.contains("by sim."), "without rights it is simulated: {outcome:#?}");
        return skipped(&outcome.stdout);
    }
    let text = fs::read_to_string(home.path().join("demo/run.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (fifo, fair) = (call_behind("fifo", &json), call_behind("fq-codel", &json));
    // 20 ms are the path's; a fifo of 512 KiB holds 210 ms.
    assert!((20.0..40.0).contains(&fair) && fifo > 4.0 * fair, "{fifo} and {fair} ms");
    // Of two queues, or of one if the machine was too busy for the other.
    for part in ["fq-codel", "call: median delay "] {
        assert!(outcome.stdout.contains(part), "no '{part}' in {outcome:#?}");
    }
}

#[test]
fn a_rate_for_which_no_samples_are_kept_says_so() {
    let home = place();
    let outcome = succeeds(&["run", &small(&home), "--engine", "sim", "--samples", "none"]);
    let table = &outcome.stdout;
    assert!(table.contains("– sim, file: no samples are kept"), "{table}");
    assert!(table.contains("50000 B: total"), "{table}");
}

#[test]
fn the_demo_is_a_scenario_file_to_start_from() {
    let home = place();
    let file = path(&home, "path.toml");
    let printed = succeeds(&["demo", "--print"]);
    fs::write(&file, &printed.stdout).unwrap();
    let outcome = succeeds(&["run", &file, "--engine", "sim", "--samples", "none"]);
    assert!(outcome.stdout.contains("fq-codel"), "{outcome:#?}");
    refused(&["demo", "--print", "--out", "x"], 2, &["--print", "--out"]);
}
