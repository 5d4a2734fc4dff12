//! The formats on the network: the control connection's messages, the datagrams, the records of a data
//! connection. Every decoder here takes whatever comes, and answers or refuses.

pub mod datagram;
pub mod frame;
pub mod keys;
pub mod message;
pub mod record;

/// The version in datagrams, that of the first words.
pub const VERSION: u8 = trunkline_handshake::hello::VERSION;
/// The port of both TCP and UDP if none is given: "tl" as a number.
pub const PORT: u16 = 0x746c;
