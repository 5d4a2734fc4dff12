//! Text of others that would steer the terminal it is shown on.

use crate::turn;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::process::{Command, Output};
use std::thread;

/// Renames the window, clears the screen, and moves what follows about: by C0, C1, DEL and a mark of direction.
const HOSTILE: &str = "\\u001b]0;owned\\u0007\\u001b[2J\\u009b31m\\u007f\\r\\u202e";

/// Runs `trunkline show` against something that is no run and answers each request with `answer`.
fn show(name: &str, status: &str, answer: &str, more: &[&str]) -> Output {
    let path = format!("{}/{name}.sock", env!("CARGO_TARGET_TMPDIR"));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{answer}",
        answer.len()
    );
    // It ends with the test's process.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(reply.as_bytes());
        }
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(["show", "--pid", &path]).args(more).output().unwrap()
}

/// Nothing of what was printed is obeyed by a terminal, and what was sent is seen.
fn assert_harmless(output: &Output) {
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(steers), "{text:?}");
    assert!(text.contains("\\u001b]0;owned\\u0007"), "what was sent is not seen: {text:?}");
}

#[test]
fn what_another_program_says_does_not_steer_the_terminal() {
    let _turn = turn::beside();
    let refusal = format!(r#"{{"error":"{HOSTILE}"}}"#);
    assert_harmless(&show("refusal", "400 Bad Request", &refusal, &[]));
    let description = format!(r#"{{"pid":1,"command":"{HOSTILE}","paths":[]}}"#);
    let output = show("json", "200 OK", &description, &["--json"]);
    assert_harmless(&output);
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        read["path"]["command"],
        serde_json::from_str::<String>(&format!("\"{HOSTILE}\"")).unwrap()
    );
}

/// Names on the own command line may have been pasted.
#[test]
fn what_the_command_line_holds_does_not_steer_the_terminal() {
    let _turn = turn::beside();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(["shell", "--delay", "\x1b]0;owned\x07"]);
    assert_harmless(&command.output().unwrap());
}
