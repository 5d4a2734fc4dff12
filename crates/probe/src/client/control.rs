//! The control connection: requests and answers, sealed, and the end of it noticed.

use crate::limited::{FRAME, Limited};
use crate::wire::frame::{self, REPORT};
use crate::wire::message::{Answer, Request};
use crate::{ProbeError, clock, stamp};
use rustix::event::PollFlags;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use trunkline_core::{Span, Time};
use trunkline_handshake::{Channel, Initiator, Key, Purpose};

/// The time between looks at the stop sign.
const LOOK: Span = Span::from_millis(50);
/// Octets that are read at once.
const CHUNK: usize = 16 * 1024;

/// Shakes hands on a new connection, by a certain time.
///
/// # Errors
/// If the server refuses, does not have the key, or says something else or nothing.
pub fn greet(
    limited: &mut Limited<'_>,
    key: Option<&Key>,
    purpose: Purpose,
    context: &[u8],
) -> Result<Channel, ProbeError> {
    let foreign = |error: io::Error| ProbeError::Protocol(reason(&error));
    let (initiator, words) = Initiator::begin(key, purpose, context)?;
    // Who has closed already may have said why.
    let said = limited.write_all(&words);
    let mut answer = vec![0];
    limited.read_exact(&mut answer).map_err(|error| foreign(said.err().unwrap_or(error)))?;
    answer.resize(Initiator::expected(&answer), 0);
    limited.read_exact(&mut answer[1..]).map_err(foreign)?;
    Ok(initiator.finish(&answer)?)
}

/// A control connection after the handshake.
#[derive(Debug)]
pub struct Control {
    stream: TcpStream,
    channel: Channel,
}

impl Control {
    /// Over this connection.
    pub fn new(stream: TcpStream, mut channel: Channel) -> Control {
        channel.allow(REPORT);
        Control { stream, channel }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// If the connection does not take it in time.
    pub fn send(&mut self, request: &Request, patience: Span) -> io::Result<()> {
        let sealed = self.channel.seal(&frame::encode(request)?);
        Limited::new(&self.stream, patience).write_all(&sealed)
    }

    /// Whether something is there to be read.
    pub fn is_heard(&self) -> bool {
        // If the system cannot wait, the reading will say why.
        stamp::wait(&self.stream, PollFlags::IN, clock::now()).unwrap_or(true)
    }

    /// Receives an answer, of which each piece that begins has to end soon. `until` says, again and again, how
    /// long the whole is waited for.
    ///
    /// # Errors
    /// `TimedOut` if it does not come or stops in the middle, `InvalidData` if it is none of the
    /// server's, else what the connection says.
    pub fn receive(&mut self, until: &mut dyn FnMut() -> Time) -> io::Result<Answer> {
        let (mut buffer, mut begun) = (vec![0; CHUNK], None);
        loop {
            let broken = |error| io::Error::new(ErrorKind::InvalidData, error);
            let pieces = self.channel.pieces();
            if let Some(text) = self.channel.open().map_err(broken)? {
                return frame::decode(&text);
            }
            if self.channel.pieces() > pieces {
                begun = None;
            }
            let now = clock::now();
            let torn = self.channel.is_torn().then(|| *begun.get_or_insert(now) + FRAME);
            let end = until().min(torn.unwrap_or(Time::NEVER));
            if now >= end {
                return Err(ErrorKind::TimedOut.into());
            }
            if stamp::wait(&self.stream, PollFlags::IN, end.min(now + LOOK))? {
                let count = (&self.stream).read(&mut buffer)?;
                if count == 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                self.channel.take(&buffer[..count]);
            }
        }
    }
}

/// The meaning of an error of a connection.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            "it closed the connection".into()
        }
        ErrorKind::TimedOut | ErrorKind::WouldBlock => "it does not answer".into(),
        _ => error.to_string(),
    }
}
