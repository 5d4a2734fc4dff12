//! Runs that are kept come back as they were.

use std::fs;
use std::sync::Arc;
use trunkline_batch::{Batch, BatchError, Kept, Outcome, digest_of};
use trunkline_engine::SharedEngine;
use trunkline_model::Formulas;
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

const TEXT: &str = r#"
name = "Kept"
sample_backlog = "1ms"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
name = "line"
between = ["a", "b"]
rate = ["1Mbit/s", "2Mbit/s", "3Mbit/s"]
delay = "5ms"
loss = "1%"
duplicate = "1%"
[[traffic]]
name = "file"
kind = "bulk"
from = "a"
to = "b"
bytes = "60kB"
count = 2
[[traffic]]
name = "old"
kind = "interactive"
from = "a"
to = "b"
sizes = [1, 300]
repeat = 20
transport = "urp"
[[traffic]]
name = "stream"
kind = "paced"
from = "a"
to = "b"
size = 100
rate = "50kbit/s"
duration = "1s"
"#;

fn cells() -> Vec<Scenario> {
    Scenario::parse(TEXT, "kept.toml").unwrap()
}

fn run(cells: &[Scenario], kept: Option<&Arc<Kept>>) -> Outcome {
    let plain: [SharedEngine; 2] = [Arc::new(Simulator), Arc::new(Formulas)];
    let engines = plain.map(|engine| match kept {
        Some(kept) => kept.around(engine),
        None => engine,
    });
    let batch = Batch { cells: cells.to_vec(), engines: engines.into(), threads: 2 };
    batch.run(&|_| ()).unwrap()
}

#[test]
fn what_was_done_before_is_not_run_again_and_is_the_same() {
    let home = tempfile::tempdir().unwrap();
    let kept = |version: &str| {
        Arc::new(Kept::new(home.path().join("kept"), "Kept", digest_of(&cells()), version))
    };
    assert!(matches!(kept("1").resume(), Err(BatchError::NothingKept { .. })));
    // As if it had been interrupted after two of three.
    let first = kept("1");
    run(&cells()[..2], Some(&first));
    assert_eq!(first.kept(), 2, "formulas are not kept");
    let second = kept("1");
    assert_eq!(second.resume(), Ok(2));
    let resumed = run(&cells(), Some(&second));
    assert_eq!(second.kept(), 3, "one was run");
    assert_eq!(resumed, run(&cells(), None));
    assert_eq!(second.discard(), Ok(3));
    assert!(!home.path().join("kept").exists());
}

#[test]
fn what_is_kept_says_of_what_it_is() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("kept");
    let kept = |name: &str, digest: &str, version: &str| {
        Arc::new(Kept::new(place.clone(), name, digest.into(), version))
    };
    run(&cells()[..1], Some(&kept("Kept", "x", "1")));
    for (other, word) in [
        (kept("Kept", "y", "1"), "has changed since"),
        (kept("Other", "x", "1"), "they are of Kept"),
        (kept("Kept", "x", "2"), "version 1 of the program"),
    ] {
        let error = other.resume().unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("--resume"), "{error}");
    }
    let name = |file: &fs::DirEntry| file.file_name().to_string_lossy().into_owned();
    let files = fs::read_dir(&place).unwrap().map(|file| file.unwrap());
    let one =
        files.filter(|file| name(file).starts_with("run-")).map(|file| file.path()).next().unwrap();
    let text = fs::read_to_string(&one).unwrap();
    for word in
        ["\"engine\":\"sim\"", "\"link.line.rate\":\"1Mbit/s\"", "\"seed\":1", "\"version\":\"1\""]
    {
        assert!(text.contains(word), "{word}");
    }
    // One that is damaged, or of another digest, is run again.
    fs::write(&one, &text[..text.len() / 2]).unwrap();
    let again = kept("Kept", "x", "1");
    assert_eq!(again.resume(), Ok(1));
    let found = self::run(&cells()[..1], Some(&again));
    assert_eq!(found, self::run(&cells()[..1], None));
    assert_eq!(fs::read_to_string(&one).unwrap(), text);
}
