//! The tutorial, as written: its files are saved and its commands run.

use crate::support::Host;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a block of the tutorial holds.
struct Block<'a> {
    language: &'a str,
    text: &'a str,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let odd = text.split("```").skip(1).step_by(2);
    odd.filter_map(|block| block.split_once('\n'))
        .map(|(language, text)| Block { language, text })
        .collect()
}

/// A command with the lines that it is said to print.
fn commands(text: &str) -> Vec<(&str, Vec<&str>)> {
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

/// Built and set up already, or, like the studies, minutes long and tested elsewhere.
fn is_left_out(command: &str) -> bool {
    ["make ", "export ", "trunkline study run "].iter().any(|first| command.starts_with(first))
}

#[test]
fn every_command_of_the_tutorial_prints_what_it_is_said_to() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let tutorial = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tutorial.md");
    let tutorial = fs::read_to_string(tutorial).unwrap();
    let (mut files, mut run) = (0, 0);
    for block in blocks(&tutorial) {
        if block.language == "toml" {
            let name = block.text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap();
            fs::write(home.path().join(name), block.text).unwrap();
            files += 1;
        }
        if block.language == "console" {
            for (command, printed) in commands(block.text) {
                run += u32::from(!is_left_out(command));
                check(home.path(), command, &printed);
            }
        }
    }
    assert!(files == 2 && run >= 7, "{files} files, {run} commands");
    assert!(home.path().join("windows/measured-1-0.svg").is_file());
}

fn check(home: &Path, command: &str, printed: &[&str]) {
    if is_left_out(command) {
        return;
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_trunkline")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("bash");
    shell.args(["-c", command]).current_dir(home).env("PATH", path);
    let outcome = Host::new().start_command(shell).finish();
    assert!(outcome.status.success(), "{command}: {outcome:#?}");
    let said = format!("{}\n{}", outcome.stdout, outcome.stderr);
    for line in printed {
        let found = said.lines().any(|one| agree(one, line));
        assert!(found, "{command}: no line '{line}' in\n{said}");
    }
}

/// Do two lines say the same, figures to a twentieth? A better simulator may change the last digits of what
/// the tutorial shows; its words may not become untrue.
fn agree(one: &str, other: &str) -> bool {
    let is_figure = |c: char| c.is_ascii_digit() || c == '.';
    let words = |line: &str| line.replace(|c| is_figure(c) || " █+-".contains(c), "");
    let figures = |line: &str| -> Vec<f64> {
        let parts = line.split(|c| !is_figure(c));
        parts.filter_map(|part| part.trim_end_matches('.').parse().ok()).collect()
    };
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 0.05 * b.abs().max(2.0);
    let (left, right) = (figures(one), figures(other));
    words(one) == words(other) && left.len() == right.len() && left.iter().zip(&right).all(near)
}

#[test]
fn lines_agree_by_words_and_nearly_by_figures() {
    assert!(agree("keys 115.2 ± 21 ms  -0.0 %", "keys    115 ± 21.3 ms +0.0 %"));
    assert!(!agree("keys 115.2 ms", "keys 130 ms") && !agree("keys 115.2 ms", "files 115.2 ms"));
    assert!(!agree("1 B 5 ms", "1 B ms"));
}
