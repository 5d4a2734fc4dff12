//! What was asked for, on standard output.

use crate::failure::Failure;
use std::io::{self, BufWriter, ErrorKind, Write, stdout};

/// Prints `text` and a line end. A reader that has seen enough (`| head`) is no failure.
pub fn line(text: &str) -> Result<(), Failure> {
    stream(|out| writeln!(out, "{text}"))
}

/// Prints what `fill` writes, with the same leniency.
pub fn stream(fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(stdout().lock());
    match fill(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// A number with its noun: "1 cell", "2 cells".
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
