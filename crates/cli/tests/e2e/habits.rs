//! What users of other programs type.

use crate::support::Host;
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

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

/// File names are bytes, not text.
#[test]
fn arguments_that_are_no_text_reach_the_program_unchanged() {
    let host = Host::beside();
    let Some(_) = host.run_well(&["shell", "--best-effort", "--no-outside", "true"]) else {
        return;
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(["shell", "--best-effort", "--no-outside", "--quiet", "--", "sh", "-c"]);
    command.args(["printf %s \"$1\" | od -An -tx1; printf %s \"$2\"", "sh"]);
    command.arg(OsStr::from_bytes(b"caf\xe9")).arg(OsStr::from_bytes(b"{peer}"));
    let outcome = host.start_command(command).finish();
    assert!(outcome.status.success(), "{outcome:#?}");
    assert_eq!(outcome.stdout, " 63 61 66 e9\n10.77.0.1", "{outcome:#?}");
    // Nor is there a panic elsewhere.
    for verb in ["run", "explain", "send", "shell"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.arg(verb).arg(OsStr::from_bytes(b"caf\xe9"));
        let outcome = host.start_command(command).finish();
        assert!(matches!(outcome.status.code(), Some(1 | 2)), "{verb}: {outcome:#?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{verb}: {outcome:#?}");
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
fn what_is_no_program_is_told_before_anything_is_built() {
    let host = Host::beside();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("notes");
    std::fs::write(&file, "").unwrap();
    let [file, directory] = [&file, place.path()].map(|it| it.to_str().unwrap());
    for (word, says) in [
        (file, "is not executable (chmod +x)"),
        (directory, "is a directory: name the program in it"),
        ("50ms", "write --delay 50ms"),
    ] {
        let outcome = host.run(&["shell", word]);
        assert_eq!(outcome.status.code(), Some(1));
        assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
    }
}

#[test]
fn an_option_behind_a_program_that_fails_is_named() {
    let host = Host::beside();
    let plain = ["shell", "--best-effort", "--no-outside"];
    let fails = ["sh", "-c", "exit 3", "--delay", "5ms"];
    let outcome = host.run(&[&plain[..], &fails].concat());
    if crate::support::is_forbidden(&outcome.stderr) {
        return crate::support::skipped(&outcome.stderr);
    }
    assert_eq!(outcome.status.code(), Some(1));
    assert!(outcome.stderr.contains("--delay stands behind the program"), "{}", outcome.stderr);
    let outcome = host.run(&[&plain[..], &["--"], &fails].concat());
    assert!(!outcome.stderr.contains("stands behind"), "{}", outcome.stderr);
    let outcome = host.run(&[&plain[..], &["sh", "-c", "true", "--delay", "5ms"]].concat());
    assert!(!outcome.stderr.contains("stands behind"), "{}", outcome.stderr);
}

#[test]
fn words_in_the_wrong_place_are_answered_with_the_right_one() {
    let host = Host::beside();
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().to_str().unwrap();
    for (words, status, says) in [
        (&["--delay", "50ms", "shell"][..], 2, "write trunkline shell --delay … -- PROGRAM"),
        (&["shell", "--rate", "10mbit/2mbit", "true"], 2, "write --down-rate and --up-rate"),
        (&["shell", "--limit", "10pkts", "true"], 2, "takes packets as 10p"),
        (&["shell", "--peer", " ", "true"], 2, "write --peer 'iperf3 -s'"),
        (&["run"], 2, "write trunkline run FILE.toml"),
        (&["bridge", "eth1"], 2, "write trunkline bridge eth1 eth2"),
        (&["mm-delay", "50", "ping"], 2, "write trunkline shell --delay 50ms"),
        (&["shell", "--rtt", "100ms", "true"], 2, "a delay is one way"),
        (&["run", "a.toml", "--format", "csv"], 2, "write --out DIR"),
        (&["run", "a.toml", "b.toml"], 2, "`trunkline ladder DIR` runs those of a directory"),
        (&["run", "a.toml", "--seed", "-1"], 2, "no option takes a number below zero"),
        (&["run", "a.toml", "--seed", "x"], 2, "it is no whole number"),
        (&["stop"], 2, "Ctrl-C where the path runs"),
        (&["a.toml"], 2, "write trunkline run a.toml"),
        (&["probe", "rtt", "example.org:5201"], 2, "write example.org --port 5201"),
        (&["study", "run", directory], 2, "holds no study.toml"),
    ] {
        let outcome = host.run(words);
        assert_eq!(outcome.status.code(), Some(status), "{words:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{words:?}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains(" tip: "), "{}", outcome.stderr);
    }
}

/// A queue without a line does nothing, and says so.
#[test]
fn a_queue_that_nothing_waits_in_is_told() {
    let host = Host::beside();
    let plain = ["shell", "--best-effort", "--no-outside"];
    let told = |more: &[&str]| {
        let outcome = host.run_well(&[&plain[..], more, &["true"]].concat())?;
        Some(outcome.stderr.contains("nothing waits in the queue"))
    };
    let Some(alone) = told(&["--queue", "red"]) else { return };
    assert!(alone);
    for fine in [&[][..], &["--queue", "red", "--rate", "10mbit"]] {
        assert_eq!(told(fine), Some(false), "{fine:?}");
    }
}

#[test]
fn a_report_that_may_not_be_written_is_told_before_the_run() {
    let host = Host::beside();
    if host.separate().is_none() || !crate::support::installed(&["setpriv"]) {
        return;
    }
    let home = tempfile::Builder::new().prefix("tl-user-").tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = home.path().join("trunkline");
    std::fs::copy(env!("CARGO_BIN_EXE_trunkline"), &program).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(program);
    command.args(["shell", "--report"]).arg(home.path().join("report.json")).args(["--", "true"]);
    command.env_remove("XDG_RUNTIME_DIR").current_dir("/");
    let outcome = host.start_command(command).finish();
    assert_eq!(outcome.status.code(), Some(2), "{outcome:#?}");
    assert!(outcome.stderr.contains("Permission denied"), "{outcome:#?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:#?}");
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
