//! The carriers of messages there and back.

use std::io;
use trunkline_core::Time;
use trunkline_fit::Far;

/// An answer that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The message's number.
    pub number: u32,
    /// When it came.
    pub at: Time,
    /// The server's part of it.
    pub far: Option<Far>,
    /// User octets of the answer.
    pub size: u32,
}

/// Carries messages to a server that answers each by one of the same size.
pub trait Carrier {
    /// Sends message `number` of `size` user octets, and tells when. Numbers go up by one.
    ///
    /// # Errors
    /// If the system does not take it; of a datagram that is one lost.
    fn send(&mut self, number: u32, size: u32) -> io::Result<Time>;

    /// Waits for an answer until a certain time.
    ///
    /// # Errors
    /// If no more can come.
    fn receive(&mut self, until: Time) -> io::Result<Option<Reply>>;

    /// Whether the carrier itself sends again what is lost.
    fn is_reliable(&self) -> bool;

    /// Octets of an IP packet that carries a whole message, besides the user's; 0 if there is no such
    /// thing.
    fn overhead(&self) -> u32;

    /// Whether the answer is stamped by the kernel, and not when it is read.
    fn is_stamped(&self) -> bool;

    /// The carrier's own counts: URP's blocks, TCP's retransmissions.
    fn reading(&self) -> serde_json::Value;

    /// Whether something came that the server did not send.
    fn is_forged(&self) -> bool {
        false
    }
}
