//! Files moved over NETBLT in UDP, from one machine to another.
//!
//! The sender calls ([`send`]); the receiver waits at one UDP port ([`receive`]). They prove to each other who they are
//! (`session`), then speak NETBLT in sealed datagrams: a connection for the manifest if the receiver has not got it, one or
//! more for the chunks that it misses, and short ones that settle the end (`words`). Either end may be killed at any time:
//! the receiver's journal says what is there, and nothing that is there is sent again.

use trunkline_transport::netblt::wire::Dialect;

mod account;
mod chunks;
mod claim;
mod cut;
mod desk;
mod error;
mod filling;
mod flow;
pub mod incoming;
mod link;
mod receive;
mod room;
mod send;
pub mod session;
mod story;
pub mod words;

pub use account::Limit;
pub use cut::Cut;
pub use error::MoverError;
pub use flow::Control;
pub use receive::{ReceiveOptions, keep_receiving, receive};
pub use send::{SendOptions, Sending, Sent, send};
pub use session::Secret;
pub use story::{Got, Receiving};

/// The UDP port at which a receiver waits if nothing else is said (RFC 1986 gave it to NETBLT in UDP).
pub const PORT: u16 = 1818;

/// How what the ends say travels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Manner {
    /// In the clear, if the other end wants that too.
    pub clear: bool,
    /// In packets of IP's protocol 30, which RFC 998 (§1) gives NETBLT, instead of UDP. Ports mean nothing then.
    pub raw: bool,
}

/// Octets of a chunk or a buffer at most: 128 full packets.
pub const CHUNK: u32 = 128 * PACKET as u32;

/// User octets of a packet. It fits Ethernet's 1500 with the headers of NETBLT, the session, UDP and IPv6.
pub const PACKET: u16 = 1368;
/// Octets of NETBLT's header in front of the data.
pub(crate) const HEADER: usize = Dialect::V5.data_header();
/// Octets of all headers of a data packet, those of UDP and IPv6 included.
const HEADERS: usize = HEADER + session::ADDED + 8 + 40;
const _: () = assert!(PACKET as usize + HEADERS <= 1500);

/// User octets of the packets that are tried, for paths of 1500 octets and of fewer: tunnels have 1400 to 1492, IPv6 1280
/// at least (RFC 8200 §5), IPv4 576 in practice (RFC 1122 §3.3.2).
const PACKETS: [u16; 5] = [
    PACKET,
    1400 - HEADERS as u16,
    1280 - HEADERS as u16,
    1000 - HEADERS as u16,
    576 - HEADERS as u16,
];

#[cfg(test)]
mod endings;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod rounds;
#[cfg(test)]
mod strangers;
#[cfg(test)]
mod tests;
