//! The console blocks of the pages, and of the README: what can be run in seconds is run as written. That all others
//! are commands at all is seen beside the command line itself (`src/documented.rs`).

use crate::support::{Host, Outcome, Running, installed};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A fenced block of a page.
pub struct Block<'a> {
    pub language: &'a str,
    pub text: &'a str,
}

/// The fenced blocks of a page.
pub fn blocks(text: &str) -> Vec<Block<'_>> {
    let odd = text.split("```").skip(1).step_by(2);
    odd.filter_map(|block| block.split_once('\n'))
        .map(|(language, text)| Block { language, text })
        .collect()
}

/// A command with the lines that it is said to print.
pub fn commands(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command, Vec::new())),
            (None, Some((_, printed))) if line != "…" => printed.push(line),
            _ => {}
        }
    }
    found
}

/// Commands of the pages that are not run here, by their beginning, each with the reason.
const LEFT_OUT: [(&str, &str); 18] = [
    ("make ", "builds, or is the demo"),
    ("cargo ", "builds"),
    ("scripts/", "takes minutes"),
    ("export ", "sets the place for what follows"),
    ("trunkline study run ", "takes minutes: studies.rs"),
    ("trunkline ladder ", "takes minutes: ladder.rs"),
    ("trunkline run examples/t1-trunk.toml", "takes long: every example is run in scenarios.rs"),
    ("trunkline explain ", "takes long: crates/explain"),
    ("trunkline verify ", "takes minutes, and fails on a machine at work"),
    ("trunkline calibrate", "takes a minute"),
    ("trunkline demo", "takes a minute: scenarios.rs"),
    ("trunkline serve", "goes on until it is interrupted: probe.rs"),
    ("trunkline probe ", "needs a server: probe.rs"),
    ("trunkline receive ", "waits for a sender: transfers.rs"),
    ("trunkline send ", "needs a receiver: transfers.rs"),
    ("trunkline bridge ", "needs devices: bridge.rs"),
    ("trunkline shell --preset lte", "needs a terminal, or servers of one's own: reach.rs"),
    ("flent ", "reads what a probe that is not run would have written: crates/fit"),
];
/// These fail, and their answers hold what only this machine has: wrong_use.rs.
const REFUSED: &str = "trunkline shell --rate 1000gbit";

fn is_left_out(command: &str) -> bool {
    let to_run = |beginning: &str| command.starts_with(beginning);
    LEFT_OUT.iter().any(|(beginning, _)| to_run(beginning)) || to_run(REFUSED)
}

/// Commands of a running path.
fn is_of_a_run(command: &str) -> bool {
    ["trunkline show", "trunkline set"].iter().any(|verb| command.starts_with(verb))
}

/// Stands for the command: runs that the machine has spoilt are none of the pages' business, and of several
/// runs on the machine the test's own is meant.
const STAND_IN: &str = r#"#!/bin/sh
verb=$1; shift
case $verb in
shell | run) exec "$TRUNKLINE_TEST_BINARY" "$verb" --best-effort "$@" ;;
show | set) exec "$TRUNKLINE_TEST_BINARY" "$verb" --pid "$TRUNKLINE_TEST_PID" "$@" ;;
*) exec "$TRUNKLINE_TEST_BINARY" "$verb" "$@" ;;
esac
"#;

/// The directory in which the pages' commands are run, with the examples in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for name in ["examples", "studies"] {
            symlink(Path::new(ROOT).join(name), home.path().join(name)).unwrap();
        }
        let stand_in = home.path().join("trunkline");
        fs::write(&stand_in, STAND_IN).unwrap();
        fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).unwrap();
        Place(home)
    }

    fn start(&self, host: &Host, command: &str, run: u32) -> Running {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("bash");
        shell.args(["-c", command]).current_dir(self.0.path());
        shell.env("PATH", format!("{}:{path}", self.0.path().display()));
        shell.env("TRUNKLINE_TEST_BINARY", env!("CARGO_BIN_EXE_trunkline"));
        shell.env("TRUNKLINE_TEST_PID", run.to_string());
        shell.env("TRUNKLINE_KEY", "a key for these tests");
        host.start_command(shell)
    }

    fn run(&self, host: &Host, command: &str, run: u32) -> Outcome {
        let outcome = self.start(host, command, run).finish();
        assert!(outcome.status.success(), "{command}: {outcome:#?}");
        outcome
    }
}

/// Every line that the page shows is among those that were printed, nearly.
fn check_printed(command: &str, printed: &[&str], outcome: &Outcome) {
    let said = format!("{}\n{}", outcome.stdout, outcome.stderr);
    // Whether there is a world outside is the machine's.
    for line in printed.iter().filter(|line| !line.contains("the world outside")) {
        let agrees = |one: &str| match command.starts_with("trunkline shell") {
            true => agree_or_more(one, line),
            false => agree(one, line),
        };
        assert!(said.lines().any(agrees), "{command}: no '{line}' in {outcome:#?}");
    }
}

/// The commands of the console blocks of a page, with what they are said to print.
fn shown(page: &str) -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    // A command goes on behind a backslash, and `#` is root's prompt.
    let text = text.replace("\\\n", " ").replace("target/release/trunkline", "trunkline");
    let consoles = blocks(&text).into_iter().filter(|block| block.language == "console");
    let of = |block: Block<'_>| {
        let as_root = block.text.replace("\n# ", "\n$ ");
        let text = as_root.strip_prefix("# ").map_or(as_root.clone(), |rest| format!("$ {rest}"));
        let own = |(command, printed): (&str, Vec<&str>)| {
            (command.to_string(), printed.into_iter().map(str::to_string).collect())
        };
        commands(&text).into_iter().map(own).collect::<Vec<_>>()
    };
    consoles.flat_map(of).collect()
}

/// Runs the commands of a page, of which there are `least` and more to run, and looks whether they print what it says.
fn commands_do_what_is_said(page: &str, least: usize) {
    let host = Host::beside();
    let path = ["shell", "--best-effort", "--", "true"];
    if !installed(&["ping", "curl", "python3", "iperf3"]) || host.run_well(&path).is_none() {
        return;
    }
    let place = Place::new();
    let to_run = |command: &String| !is_left_out(command) && !is_of_a_run(command);
    let commands: Vec<_> = shown(page).into_iter().filter(|(command, _)| to_run(command)).collect();
    assert!(commands.len() >= least, "{page}: {} commands", commands.len());
    for (command, printed) in commands {
        let printed: Vec<&str> = printed.iter().map(String::as_str).collect();
        check_printed(&command, &printed, &place.run(&host, &command, 0));
    }
}

#[test]
fn the_commands_of_the_readme_do_what_it_says() {
    commands_do_what_is_said("README.md", 10);
}

#[test]
fn the_commands_of_the_page_of_paths_do_what_it_says() {
    commands_do_what_is_said("docs/path.md", 5);
}

#[test]
fn the_commands_of_the_page_of_probes_do_what_it_says() {
    commands_do_what_is_said("docs/probe.md", 1);
}

#[test]
fn the_commands_of_the_recipes_do_what_they_say() {
    commands_do_what_is_said("docs/recipes.md", 6);
}

#[test]
fn the_commands_of_the_first_steps_do_what_they_say() {
    commands_do_what_is_said("docs/start.md", 3);
}

#[test]
fn the_commands_of_the_page_of_traps_do_what_it_says() {
    commands_do_what_is_said("docs/traps.md", 3);
}

#[test]
fn a_running_path_is_shown_and_set_as_the_readme_says() {
    let host = Host::beside();
    if host.run_well(&["shell", "--best-effort", "--", "true"]).is_none() {
        return;
    }
    let place = Place::new();
    let mut path = host.start(&[
        "shell",
        "--best-effort",
        "--no-outside",
        "--delay",
        "5ms",
        "--",
        "sh",
        "-c",
        "echo ready >&2; exec sleep 40",
    ]);
    path.await_line("ready");
    let pid = path.pid();
    let mut run = 0;
    for (command, _) in shown("README.md").iter().filter(|(command, _)| is_of_a_run(command)) {
        // One that goes on is seen to begin.
        let command = command.replace("--watch", "--watch | head -n 3");
        place.run(&host, &command, pid);
        run += 1;
    }
    assert!(run >= 4, "{run} commands");
    let settings = place.run(&host, "trunkline show --json", pid).statement_of_all();
    assert!(settings.to_string().contains("80ms"), "{settings:#}");
    sleep(Duration::from_millis(100));
    path.signal(rustix::process::Signal::INT);
    assert_eq!(path.finish().status.code(), Some(130));
    host.assert_nothing_left(pid);
}

/// Whether two lines say the same, figures to a twentieth. A better simulator may change the last digits of what
/// the tutorial shows; its words may not become untrue.
pub fn agree(one: &str, other: &str) -> bool {
    agree_if(one, other, |a, b| (a - b).abs() <= slack(b))
}

/// The same of a line of a program behind a path, if `one` was said on a machine at work: programs wait there.
fn agree_or_more(one: &str, shown: &str) -> bool {
    agree_if(one, shown, |a, b| a >= b - slack(b))
}

fn slack(figure: f64) -> f64 {
    0.05 * figure.abs().max(2.0)
}

fn agree_if(one: &str, other: &str, near: impl Fn(f64, f64) -> bool) -> bool {
    let is_figure = |c: char| c.is_ascii_digit() || c == '.';
    let words = |line: &str| line.replace(|c| is_figure(c) || " █+-".contains(c), "");
    let figures = |line: &str| -> Vec<f64> {
        let parts = line.split(|c| !is_figure(c));
        parts.filter_map(|part| part.trim_end_matches('.').parse().ok()).collect()
    };
    let (left, right) = (figures(one), figures(other));
    words(one) == words(other)
        && left.len() == right.len()
        && left.iter().zip(&right).all(|(a, b)| near(*a, *b))
}

#[test]
fn lines_agree_by_words_and_nearly_by_figures() {
    assert!(agree("keys 115.2 ± 21 ms  -0.0 %", "keys    115 ± 21.3 ms +0.0 %"));
    assert!(!agree("keys 115.2 ms", "keys 130 ms") && !agree("keys 115.2 ms", "files 115.2 ms"));
    assert!(!agree("1 B 5 ms", "1 B ms"));
    assert!(
        agree_or_more("time=140 ms", "time=100 ms") && agree_or_more("time=96 ms", "time=100 ms")
    );
    assert!(
        !agree_or_more("time=90 ms", "time=100 ms") && !agree_or_more("rtt=140 ms", "time=100 ms")
    );
}

#[test]
fn the_picture_of_the_readme_is_the_one_that_its_example_makes() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (example, out) = (format!("{ROOT}/examples/bufferbloat.toml"), home.path().join("out"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    let made = command.args(["run", &example, "--out"]).arg(&out).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let chart = fs::read_to_string(out.join("measured-1-0.svg")).unwrap();
    let shown = fs::read_to_string(format!("{ROOT}/docs/pictures/bufferbloat.svg")).unwrap();
    assert!(
        chart == shown,
        "copy measured-1-0.svg of its results to docs/pictures/bufferbloat.svg"
    );
}
