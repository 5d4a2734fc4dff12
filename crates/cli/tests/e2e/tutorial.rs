//! The tutorial, as written: its files are saved and its commands run.

use crate::console::{agree, blocks, commands};
use crate::support::Host;
use std::fs;
use std::path::Path;
use std::process::Command;

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
    let outcome = Host::beside().start_command(shell).finish();
    assert!(outcome.status.success(), "{command}: {outcome:#?}");
    let said = format!("{}\n{}", outcome.stdout, outcome.stderr);
    for line in printed {
        let found = said.lines().any(|one| agree(one, line));
        assert!(found, "{command}: no line '{line}' in\n{said}");
    }
}
