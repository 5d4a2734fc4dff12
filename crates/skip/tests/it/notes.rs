//! A skip is noted in the file of notes, or fails if it is forbidden. Each test runs this program again, as
//! what skips.

use std::process::{Command, Output};
use trunkline_skip::{FORBID, LOG, installed, skipped};

const CHILD: &str = "TRUNKLINE_TEST_SKIPS";

/// Skips, if it is started to do so.
#[test]
fn the_child() {
    if std::env::var_os(CHILD).is_some() {
        assert!(installed(&["sh"]));
        assert!(!installed(&["sh", "no-such-program"]));
        skipped("several\n  lines");
    }
}

fn child(log: &str, forbid: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "notes::the_child", "--nocapture", "--test-threads=2"]);
    command.env(CHILD, "1").env(LOG, log).env(FORBID, forbid).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn each_skip_is_a_line_of_reason_and_test() {
    let log = tempfile::NamedTempFile::new().unwrap();
    for forbid in ["", "0"] {
        let output = child(log.path().to_str().unwrap(), forbid);
        assert!(output.status.success(), "{}", text(&output));
    }
    let lines = "no-such-program is not installed: scripts/needs.sh test\tit::notes::the_child\n\
                 several lines\tit::notes::the_child\n";
    assert_eq!(std::fs::read_to_string(log.path()).unwrap(), lines.repeat(2));
}

#[test]
fn a_forbidden_skip_fails_with_its_reason() {
    let output = child("", "1");
    assert!(!output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("no-such-program is not installed"), "{}", text(&output));
}

#[test]
fn a_note_that_cannot_be_written_fails() {
    let output = child("/nowhere/notes", "");
    assert!(!output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("cannot note in /nowhere/notes"), "{}", text(&output));
}

#[test]
fn without_a_file_of_notes_a_skip_is_told_on_standard_error() {
    let output = child("", "");
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("SKIPPED: several lines"), "{}", text(&output));
}
