//! The keys of a session: one for each use and direction, all from the secret that the server drew for it.

use trunkline_handshake::{CodeKey, Key, Purpose, SECRET};

/// A connection that opens a session.
pub const CONTROL: Purpose = Purpose(1);
/// A connection of a flow.
pub const DATA: Purpose = Purpose(2);

/// The way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the server.
    Up,
    /// To the client.
    Down,
}

/// A data connection: which session's, which flow's, and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The session's cookie.
    pub cookie: u64,
    /// The flow.
    pub flow: u16,
    /// The stream in it, from 0.
    pub stream: u16,
}

/// Octets of a place.
const PLACE: usize = 12;

impl Place {
    /// As the first words name it.
    pub fn write(&self) -> [u8; PLACE] {
        let mut octets = [0; PLACE];
        octets[..8].copy_from_slice(&self.cookie.to_be_bytes());
        octets[8..10].copy_from_slice(&self.flow.to_be_bytes());
        octets[10..].copy_from_slice(&self.stream.to_be_bytes());
        octets
    }

    /// From the first words.
    pub fn read(octets: &[u8]) -> Option<Place> {
        let octets: &[u8; PLACE] = octets.try_into().ok()?;
        let (cookie, rest) = octets.split_first_chunk::<8>()?;
        Some(Place {
            cookie: u64::from_be_bytes(*cookie),
            flow: u16::from_be_bytes([rest[0], rest[1]]),
            stream: u16::from_be_bytes([rest[2], rest[3]]),
        })
    }
}

/// The secret of a session.
#[derive(Clone)]
pub struct SessionKeys([u8; SECRET]);

impl std::fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionKeys(…)")
    }
}

impl SessionKeys {
    /// Keys from this secret.
    pub fn new(secret: [u8; SECRET]) -> SessionKeys {
        SessionKeys(secret)
    }

    /// The secret, for the client.
    pub fn secret(&self) -> [u8; SECRET] {
        self.0
    }

    /// The key of datagrams that go one way.
    pub fn datagrams(&self, way: Way) -> CodeKey {
        let purpose = match way {
            Way::Up => "trunkline probe 2 datagrams up",
            Way::Down => "trunkline probe 2 datagrams down",
        };
        CodeKey::derive(&self.0, purpose, &[])
    }

    /// The key of a data connection's handshake: its join code.
    pub fn join(&self, place: Place) -> Key {
        CodeKey::derive(&self.0, "trunkline probe 2 join", &[&place.write()]).into_key()
    }

    /// The key of what goes one way on the data connection with this handshake.
    pub fn stream(&self, way: Way, place: Place, transcript: &[u8; SECRET]) -> CodeKey {
        let purpose = match way {
            Way::Up => "trunkline probe 2 stream up",
            Way::Down => "trunkline probe 2 stream down",
        };
        CodeKey::derive(&self.0, purpose, &[&place.write(), transcript])
    }
}
