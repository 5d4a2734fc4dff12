//! The control connection's frames: a length in four octets, big-endian, and as many octets of JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Read, Write};

/// The longest frame before the other end has proved who it is.
pub const SHORT: usize = 1024;
/// The longest request.
pub const REQUEST: usize = 8 * 1024;
/// The longest answer of a server: a report with what it received and its intervals.
pub const REPORT: usize = 16 << 20;

/// Sends `message`.
///
/// # Errors
/// Where the connection does not take it.
pub fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).map_err(|_| ErrorKind::InvalidInput)?;
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend(text);
    to.write_all(&frame)
}

/// Receives one message of at most `most` octets.
///
/// # Errors
/// `InvalidData` where it is longer or no such message; else what the connection says.
pub fn receive<M: DeserializeOwned>(from: &mut impl Read, most: usize) -> io::Result<M> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > most {
        return Err(io::Error::new(ErrorKind::InvalidData, "a frame is too long"));
    }
    // Grows with what comes, not with what is announced.
    let mut text = Vec::new();
    from.take(length as u64).read_to_end(&mut text)?;
    if text.len() < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    decode(&text)
}

/// Reads the JSON of one frame.
///
/// # Errors
/// `InvalidData` where it is no such message.
pub fn decode<M: DeserializeOwned>(text: &[u8]) -> io::Result<M> {
    serde_json::from_slice(text).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::message::{Answer, Request};

    #[test]
    fn frames_read_back_one_after_the_other() {
        let mut wire = Vec::new();
        send(&mut wire, &Request::Alive).unwrap();
        send(&mut wire, &Request::Collect { flow: 3 }).unwrap();
        let mut rest = wire.as_slice();
        assert_eq!(receive::<Request>(&mut rest, SHORT).unwrap(), Request::Alive);
        assert_eq!(receive::<Request>(&mut rest, SHORT).unwrap(), Request::Collect { flow: 3 });
        assert_eq!(
            receive::<Request>(&mut rest, SHORT).unwrap_err().kind(),
            ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn long_torn_and_foreign_frames_are_refused() {
        let kind = |wire: &[u8]| receive::<Answer>(&mut &wire[..], 64).unwrap_err().kind();
        assert_eq!(kind(&[0, 0, 1, 0]), ErrorKind::InvalidData);
        assert_eq!(kind(&[0xff; 70]), ErrorKind::InvalidData);
        assert_eq!(kind(&[0, 0, 0, 9, b'{']), ErrorKind::UnexpectedEof);
        assert_eq!(kind(&[0, 0, 0, 2, b'{', b'}']), ErrorKind::InvalidData);
        assert_eq!(kind(b"GET / HTTP/1.1\r\n"), ErrorKind::InvalidData);
    }
}
