//! What was asked for, on standard output.

use crate::failure::Failure;
use std::io::{ErrorKind, Write, stdout};

/// Prints `text` and a line end. A reader that has seen enough (`| head`) is no failure.
pub fn line(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    match out.write_all(format!("{text}\n").as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}
