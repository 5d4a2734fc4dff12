//! What goes over the network: the control connection's frames, the datagrams, the messages of a data
//! connection. Every decoder here takes whatever comes, and answers or refuses.

pub mod datagram;
pub mod envelopes;
pub mod frame;
pub mod message;
pub mod record;

/// The version of the protocol that both ends must speak.
pub const VERSION: u16 = 1;
/// The port of both TCP and UDP where none is given: "tl" as a number.
pub const PORT: u16 = 0x746c;
