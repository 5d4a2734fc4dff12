//! Streams that nobody reads, or that are full: the work is done, its files are written, and the exit status tells.

use crate::support::Host;
use crate::turn;
use std::fs::OpenOptions;
use std::io::pipe;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The exit status that a shell reports of a program ended by SIGPIPE.
const NOBODY_READS: i32 = 141;

/// A standard stream and what becomes of it.
#[derive(Debug, Clone, Copy)]
enum Stream {
    Read,
    Closed,
    Full,
}

fn stdio(stream: Stream) -> Stdio {
    match stream {
        Stream::Read => Stdio::piped(),
        // The reader's end goes at once.
        Stream::Closed => pipe().unwrap().1.into(),
        Stream::Full => OpenOptions::new().write(true).open("/dev/full").unwrap().into(),
    }
}

/// Runs the command with these streams.
fn run(arguments: &[&str], stdout: Stream, stderr: Stream) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(arguments).stdin(Stdio::null()).stdout(stdio(stdout)).stderr(stdio(stderr));
    command.spawn().unwrap().wait_with_output().unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_stream_that_nobody_reads_or_that_is_full_is_no_panic() {
    let _turn = turn::beside();
    let home = scratch("pipes");
    let scenario = example("satellite.toml");
    for (index, stdout, stderr, status) in [
        (0, Stream::Closed, Stream::Closed, NOBODY_READS),
        (1, Stream::Closed, Stream::Read, NOBODY_READS),
        (2, Stream::Read, Stream::Closed, NOBODY_READS),
        (3, Stream::Read, Stream::Full, 1),
        (4, Stream::Full, Stream::Full, 1),
        (5, Stream::Closed, Stream::Full, NOBODY_READS),
    ] {
        let out = home.join(format!("results{index}"));
        let arguments = ["run", &scenario, "--engine", "model", "--out", out.to_str().unwrap()];
        let output = run(&arguments, stdout, stderr);
        assert_eq!(output.status.code(), Some(status), "{stdout:?} {stderr:?}: {output:?}");
        assert!(out.join("index.html").is_file(), "{stdout:?} {stderr:?}: no results");
    }
}

#[test]
fn help_that_cannot_be_written_is_told() {
    let _turn = turn::beside();
    for arguments in
        [&["--help"][..], &["--version"], &["shell", "--help"], &["shell", "--queue", "help"]]
    {
        let output = run(arguments, Stream::Full, Stream::Read);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("cannot write to standard output: No space left"), "{told}");
        let output = run(arguments, Stream::Closed, Stream::Read);
        assert_eq!((output.status.code(), output.stderr.len()), (Some(NOBODY_READS), 0));
    }
}

#[test]
fn what_cannot_be_said_leaves_the_status_of_a_failure() {
    let _turn = turn::beside();
    for (arguments, status) in [
        (&["run", "/nonexistent.toml"][..], 2),
        (&["show", "--pid", "/nonexistent/socket"], 1),
        (&["shell", "--delay", "never"], 2),
        (&["no-such-verb"], 2),
    ] {
        for stderr in [Stream::Closed, Stream::Full] {
            let output = run(arguments, Stream::Read, stderr);
            assert_eq!(output.status.code(), Some(status), "{arguments:?} {stderr:?}: {output:?}");
        }
    }
    for arguments in [&["presets"][..], &["--help"], &["shell", "--help"]] {
        let output = run(arguments, Stream::Closed, Stream::Read);
        assert_eq!(output.status.code(), Some(NOBODY_READS), "{arguments:?}: {output:?}");
        let output = run(arguments, Stream::Full, Stream::Read);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
    }
}

/// The log is written by a library of others.
#[test]
fn the_log_cannot_be_written_either() {
    let _turn = turn::beside();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    let arguments = ["run", &example("satellite.toml"), "--engine", "model,sim"];
    command.args(arguments).env("TRUNKLINE_LOG", "trace").stdout(Stdio::null());
    let status = command.stderr(stdio(Stream::Full)).status().unwrap();
    assert!(matches!(status.code(), Some(0 | 1)), "{status}");
}

#[test]
fn a_laboratory_ends_in_order_when_nobody_reads() {
    let host = Host::beside();
    if host.run_well(&["shell", "--best-effort", "--", "true"]).is_none() {
        return;
    }
    for stderr in [Stream::Closed, Stream::Full] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.args([
            "shell",
            "--best-effort",
            "--json",
            "--",
            "sh",
            "-c",
            "echo done > /dev/null",
        ]);
        command.stdin(Stdio::null()).stdout(stdio(Stream::Closed)).stderr(stdio(stderr));
        let mut child = host.spawn(command);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(NOBODY_READS), "{stderr:?}: {status}");
        host.assert_nothing_left(child.id());
    }
}

/// A server of this machine's, for a probe.
struct Server {
    child: std::process::Child,
    port: String,
}

impl Server {
    fn start() -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.args(["serve", "--bind", "127.0.0.1", "--port", "0"]);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
        std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().to_string();
        Server { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn files_are_written_when_standard_output_is_full() {
    let _turn = turn::beside();
    let home = scratch("pipes-probe");
    let server = Server::start();
    let csv = home.join("full.csv");
    let fixed = ["probe", "rtt", "127.0.0.1", "--port", &server.port, "--count", "5"];
    let files = ["--sizes", "64", "--csv", csv.to_str().unwrap()];
    let output = run(&[&fixed[..], &files].concat(), Stream::Full, Stream::Read);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(csv.is_file(), "what is asked for in a file is lost with standard output");
}
