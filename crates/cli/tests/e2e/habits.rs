//! What users of other programs type.

use crate::support::Host;
use serde_json::Value;

/// The program stands behind the options without `--`, and options of its own are its own.
#[test]
fn a_program_needs_no_dashes_before_it() {
    let host = Host::beside();
    let plain = ["shell", "--best-effort", "--latency", "1ms", "--bw", "10mbit"];
    for command in
        [&["echo", "-n", "--delay", "here"][..], &["--", "echo", "-n", "--delay", "here"]]
    {
        let Some(outcome) = host.run_well(&[&plain, command].concat()) else { return };
        assert_eq!(outcome.stdout, "--delay here");
        assert!(outcome.stderr.contains("both ways 10Mbit/s, 1ms one way"), "{}", outcome.stderr);
    }
    // A word that is no option of ours is told, and not taken for a program.
    let outcome = host.run(&["shell", "--dealy", "1ms", "true"]);
    assert_eq!(outcome.status.code(), Some(2));
    assert!(outcome.stderr.contains("'--delay'"), "{}", outcome.stderr);
}

#[test]
fn a_program_that_is_not_there_is_told_before_anything_is_built() {
    let host = Host::beside();
    for name in ["no-such-program", "./no-such-program"] {
        let outcome = host.run(&["shell", name]);
        assert_eq!(outcome.status.code(), Some(1));
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(&format!("'{name}' not found")), "{}", outcome.stderr);
    }
}

/// With `--quiet` and `--report` streams are the program's, and with `--pass-status` the exit status.
#[test]
fn a_script_sees_its_program_alone() {
    let host = Host::beside();
    let place = tempfile::tempdir().unwrap();
    let report = place.path().join("report.json");
    let words = ["shell", "--best-effort", "--quiet", "--report", report.to_str().unwrap()];
    let Some(outcome) =
        host.run_well(&[&words[..], &["sh", "-c", "echo out; echo err >&2"]].concat())
    else {
        return;
    };
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("out\n", "err"));
    let told: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    assert!(told["verdict"].is_string() && told["state"].is_object(), "{told}");
    for (script, status, without) in [("exit 0", 0, 0), ("exit 7", 7, 1), ("kill -9 $$", 137, 1)] {
        let command = ["--quiet", "--best-effort", "sh", "-c", script];
        let passed = host.run(&[&["shell", "--pass-status"], &command[..]].concat());
        assert_eq!(passed.status.code(), Some(status), "{script}");
        let outcome = host.run(&[&["shell"], &command[..]].concat());
        assert_eq!(outcome.status.code(), Some(without), "{script}");
    }
    let outcome = host.run(&["shell", "--report", "/nonexistent/report.json", "true"]);
    assert_eq!(outcome.status.code(), Some(2));
    assert!(outcome.stderr.contains("no directory /nonexistent"), "{}", outcome.stderr);
}

#[test]
fn a_directory_is_no_scenario_and_is_told_what_it_holds() {
    let host = Host::beside();
    let place = tempfile::tempdir().unwrap();
    let run = || host.run(&["run", place.path().to_str().unwrap()]);
    assert!(run().stderr.contains("holds no file that ends in .toml"));
    std::fs::write(place.path().join("path.toml"), "").unwrap();
    let outcome = run();
    assert_eq!(outcome.status.code(), Some(2));
    assert!(outcome.stderr.contains("path.toml"), "{}", outcome.stderr);
}

/// What is installed beside the command can be made from it.
#[test]
fn completions_pages_and_schema_are_printed() {
    let host = Host::beside();
    for (shell, says) in [
        ("bash", "complete -F _trunkline"),
        ("zsh", "#compdef trunkline"),
        ("fish", "complete -c trunkline"),
    ] {
        let outcome = host.run(&["completions", shell]);
        assert!(outcome.status.success() && outcome.stdout.contains(says), "{shell}");
    }
    assert!(host.run(&["man"]).stdout.contains(".TH trunkline 1"));
    let place = tempfile::tempdir().unwrap();
    let pages = place.path().join("man1");
    assert!(host.run(&["man", "--out", pages.to_str().unwrap()]).status.success());
    for page in ["trunkline.1", "trunkline-shell.1", "trunkline-study-run.1"] {
        assert!(pages.join(page).is_file(), "{page}");
    }
    let schema: Value = serde_json::from_str(&host.run(&["schema"]).stdout).unwrap();
    assert!(schema["properties"]["link"].is_object());
}
