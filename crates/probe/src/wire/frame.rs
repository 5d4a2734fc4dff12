//! The messages of the control connection: JSON, each sealed by the session's channel.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;

/// The longest request.
pub const REQUEST: usize = 8 * 1024;
/// The longest answer of a server: a report with what it received and its intervals.
pub const REPORT: usize = 16 << 20;

/// Writes a message.
///
/// # Errors
/// If it cannot be written as JSON.
pub fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(message)?)
}

/// Reads a message.
///
/// # Errors
/// `InvalidData` if it is no such message.
pub fn decode<M: DeserializeOwned>(text: &[u8]) -> io::Result<M> {
    serde_json::from_slice(text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::message::{Answer, Request};

    #[test]
    fn messages_read_back_and_others_are_refused() {
        let text = encode(&Request::Collect { flow: 3 }).unwrap();
        assert_eq!(decode::<Request>(&text).unwrap(), Request::Collect { flow: 3 });
        for text in [&b"{}"[..], b"", b"GET / HTTP/1.1\r\n", b"{\"say\":\"alive\"} x"] {
            let error = decode::<Answer>(text).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
