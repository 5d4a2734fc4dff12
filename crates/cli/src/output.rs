//! All that the command itself says: results on standard output, everything else on standard error.
//!
//! Nothing here panics if a stream is closed or full. What could not be said is remembered and decides the exit
//! status ([`status`]). Text of others (a server's, a file's, a device's) cannot steer the terminal
//! ([`harmless`](crate::harmless)).

use crate::failure::Failure;
use crate::harmless::{Harmless, harmless};
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Write, stderr, stdout};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status that a shell reports of a program ended by SIGPIPE (13): 128 more than the signal's number.
const NOBODY_READS: u8 = 128 + 13;

/// Somebody stopped reading one of the streams.
static CLOSED: AtomicBool = AtomicBool::new(false);
/// Something on standard error could not be written for another reason.
static UNTOLD: AtomicBool = AtomicBool::new(false);

/// Prints `text` and a line end. A reader that has seen enough (`| head`) is no failure of the work.
pub fn line(text: &str) -> Result<(), Failure> {
    stream(|out| writeln!(out, "{text}"))
}

/// Prints what `fill` writes, with the same leniency.
pub fn stream(fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = Harmless::new(BufWriter::new(stdout().lock()));
    printed(fill(&mut out).and_then(|()| out.flush()))
}

/// Prints `text` from the upper left corner of an empty screen.
pub fn screen(text: &str) -> Result<(), Failure> {
    let text = harmless(text);
    printed(stdout().lock().write_all(format!("\x1b[H\x1b[2J{text}\n").as_bytes()))
}

/// Prints the help or the version, or what is wrong with the command line.
pub fn usage(error: &clap::Error) -> Result<(), Failure> {
    let text = error.render().to_string();
    match text.strip_prefix("error: ") {
        // Help that is ours and not clap's, which calls it an error and adds the usage.
        Some(help) if !error.use_stderr() => {
            let help = help.split("\nUsage: ").next().unwrap_or(help).trim_end();
            line(help)
        }
        _ if error.use_stderr() => {
            told(error.print());
            Ok(())
        }
        _ => printed(error.print()),
    }
}

/// The words of this process's command line. What is no text is replaced in them.
pub fn words() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

fn printed(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            CLOSED.store(true, Ordering::Relaxed);
            Ok(())
        }
        Err(error) => Err(Failure::failed(format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Whether everybody still reads what they have read so far.
pub fn is_heard() -> bool {
    !CLOSED.load(Ordering::Relaxed)
}

/// Says one line on standard error.
pub fn tell(text: impl Display) {
    let text = text.to_string().replace('\n', " ");
    aside(&format!("trunkline: {}\n", harmless(&text)));
}

/// Says on standard error what is no line, as a progress bar. It may hold control sequences of ours, and must hold no
/// others.
pub fn aside(text: &str) {
    told(stderr().lock().write_all(text.as_bytes()));
}

fn told(result: io::Result<()>) {
    let lost = match result {
        Ok(()) => return,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => &CLOSED,
        Err(_) => &UNTOLD,
    };
    lost.store(true, Ordering::Relaxed);
}

/// Standard error for the log. Writing to it never fails.
pub struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The log comes in whole lines.
        aside(&harmless(&String::from_utf8_lossy(bytes)));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The exit status of work that ended with `status`. Work that was done, and of which not all could be said, has not
/// succeeded: a script must not take half of a table for the whole.
pub fn status(status: u8) -> ExitCode {
    let closed = CLOSED.load(Ordering::Relaxed);
    let untold = UNTOLD.load(Ordering::Relaxed);
    ExitCode::from(match status {
        0 if closed => NOBODY_READS,
        0 if untold => 1,
        other => other,
    })
}

/// A number with its noun: "1 cell", "2 cells".
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
