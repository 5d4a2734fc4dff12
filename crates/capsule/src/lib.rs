//! The wire format of the laboratory's own packets.
//!
//! A capsule is the payload of a UDP datagram over IPv4: a fixed [`Header`], a ledger that the emulator
//! fills in on the way, and a body. The header says how many bytes the emulated path shall count
//! ([`Header::path_size`]), which are others than those that travel: a URP packet of 16 envelopes counts 16
//! bytes on its trunk whatever its capsule takes between two namespaces. The ledger comes back to the
//! receiver with what each link of the path made the packet wait for, so that a measured delay can be
//! booked link by link.
//!
//! All numbers are in network byte order. Offsets in bytes:
//!
//! | at | bytes | field |
//! |---:|---:|---|
//! | 0 | 4 | magic, `tlcp` |
//! | 4 | 1 | version, 1 |
//! | 5 | 1 | direction, 0 forward, 1 backward |
//! | 6 | 1 | ECN code point (RFC 3168), which the path may change to 3 |
//! | 7 | 1 | priority band, 0 the most urgent |
//! | 8 | 4 | path size, bytes |
//! | 12 | 2 | control envelopes among them |
//! | 14 | 2 | traffic |
//! | 16 | 4 | flow |
//! | 20 | 8 | channel |
//! | 28 | 8 | number, counted by the sending end |
//! | 36 | 8 | sent, CLOCK_MONOTONIC nanoseconds |
//! | 44 | 8 | ledger: arrival at the emulator; 0 before |
//! | 52 | 8 | ledger: lateness of the emulator, nanoseconds |
//! | 60 | 2 | ledger: hops crossed |
//! | 62 | 2 | zero |
//! | 64 | 208 | ledger: 8 hops of link (2), queue, transmit, propagate (8 each, nanoseconds) |
//! | 272 | | body |

mod bytes;
mod frame;
mod header;
mod ledger;

pub use frame::{PORT, find, without_checksum};
pub use header::{Direction, HEADER, Header, View};
pub use ledger::{HOPS, Hop, Ledger, MERGED, Record};

/// Reading of capsules.
#[derive(Debug, Clone, Copy)]
pub struct Capsule;

impl Capsule {
    /// The capsule in a UDP payload; `None` if there is none, or one of another version.
    pub fn parse(payload: &[u8]) -> Option<View<'_>> {
        View::of(payload)
    }
}
