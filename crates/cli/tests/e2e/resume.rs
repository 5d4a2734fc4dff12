//! Runs that are interrupted, and go on.

use crate::support::{Host, LIMIT, Outcome};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Three cells that take no time and one that does, with chance in them.
const GRID: &str = r#"
name = "Grid"
sample_backlog = "10ms"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
name = "line"
between = ["a", "b"]
rate = "100Mbit/s"
delay = "1ms"
jitter = "100us"
loss = "0.01%"
[[traffic]]
name = "file"
kind = "bulk"
from = "a"
to = "b"
bytes = ["50kB", "60kB", "70kB", "1GB"]
"#;

/// The results but for the name of the machine's processors, which no run decides.
fn results(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

fn started(file: &str, out: &Path, more: &[&str]) -> crate::support::Running {
    let out = out.to_str().unwrap();
    let arguments = ["run", file, "--threads", "2", "--out", out];
    Host::beside().start(&[&arguments[..], more].concat())
}

fn run(file: &str, out: &Path, more: &[&str]) -> Outcome {
    started(file, out, more).finish()
}

/// Waits until the three short cells are kept.
fn await_kept(kept: &Path) {
    let until = Instant::now() + LIMIT;
    let whole = |name: String| name.starts_with("run-") && name.ends_with(".json");
    loop {
        let entries = fs::read_dir(kept).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        if names.filter(|name| whole(name.clone())).count() >= 3 {
            return;
        }
        assert!(Instant::now() < until, "no cell was kept");
        sleep(Duration::from_millis(2));
    }
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = home.path().join("grid.toml");
    fs::write(&file, GRID).unwrap();
    let file = file.to_str().unwrap();
    let out = home.path().join("results");
    let kept = home.path().join(".trunkline-kept-results");
    // In one go, in the same place, for run.json holds the command.
    assert!(run(file, &out, &[]).status.success());
    let whole = results(&out);
    assert!(!kept.exists(), "a run that has ended keeps nothing");
    for signal in [Signal::INT, Signal::KILL] {
        fs::remove_dir_all(&out).unwrap();
        let running = started(file, &out, &[]);
        await_kept(&kept);
        running.signal(signal);
        let outcome = running.finish();
        assert!(!outcome.status.success() && !out.exists(), "{outcome:#?}");
        if signal == Signal::INT {
            assert_eq!(outcome.status.code(), Some(130), "{outcome:#?}");
            assert!(outcome.stderr.contains("3 runs done and kept"), "{outcome:#?}");
            assert!(outcome.stderr.contains("--resume goes on"), "{outcome:#?}");
        }
        let outcome = run(file, &out, &["--resume"]);
        assert!(outcome.status.success(), "{outcome:#?}");
        assert!(outcome.stderr.contains("going on: 3 runs done before"), "{outcome:#?}");
        let resumed = results(&out);
        assert_eq!(resumed.keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
        for (name, bytes) in &whole {
            assert!(resumed[name] == *bytes, "{name} differs from that of a run in one go");
        }
        assert!(!kept.exists());
    }
}

#[test]
fn what_is_kept_is_of_this_file_alone() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = home.path().join("grid.toml");
    fs::write(&path, GRID).unwrap();
    let file = path.to_str().unwrap();
    let out = home.path().join("results");
    let kept = home.path().join(".trunkline-kept-results");
    let refused = |more: &[&str], word: &str| {
        let outcome = run(file, &out, more);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
        assert!(
            outcome.stderr.contains(word) && outcome.stderr.contains("--resume"),
            "{outcome:#?}"
        );
    };
    refused(&["--resume"], "no interrupted run is kept");
    let running = started(file, &out, &[]);
    await_kept(&kept);
    running.signal(Signal::TERM);
    running.finish();
    // Another seed, another file: both would give other figures.
    refused(&["--resume", "--seed", "7"], "has changed since");
    fs::write(&path, GRID.replace("0.01%", "0.02%")).unwrap();
    refused(&["--resume"], "has changed since");
    assert!(kept.exists(), "what is refused is not thrown away");
    // Started anew it says what it throws away.
    fs::write(&path, GRID.replace(", \"1GB\"", "")).unwrap();
    let outcome = run(file, &out, &[]);
    assert!(outcome.status.success() && outcome.stderr.contains("removed"), "{outcome:#?}");
    assert!(!kept.exists());
}
