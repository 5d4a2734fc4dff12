//! A connection that has to be done with something by a certain time, however slowly it sends.

use crate::clock;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use trunkline_core::{Span, Time};

/// The time that a piece of a message may take from its first octet to its last: longer than the slowest path needs
/// for one, and shorter than anybody waits for an end that has stopped in the middle.
pub const FRAME: Span = Span::from_secs(15);

/// Reads and writes until a certain time.
pub struct Limited<'a> {
    stream: &'a TcpStream,
    until: Time,
}

impl<'a> Limited<'a> {
    /// `span` from now on.
    pub fn new(stream: &'a TcpStream, span: Span) -> Limited<'a> {
        Limited { stream, until: clock::now() + span }
    }

    fn left(&self) -> io::Result<Option<std::time::Duration>> {
        match self.until.since(clock::now()) {
            Span::ZERO => Err(ErrorKind::TimedOut.into()),
            left => Ok(Some(left.to_duration())),
        }
    }
}

impl Read for Limited<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        (&mut &*self.stream).read(buffer)
    }
}

impl Write for Limited<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        (&mut &*self.stream).write(buffer)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether it is an error of somebody who says nothing.
pub fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock)
}
