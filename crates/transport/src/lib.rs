//! The protocols of end points.
//!
//! Every protocol here is a machine without I/O: it never reads a clock, draws no randomness and starts
//! no thread, so that the same code runs in the simulator and on real wires. A driver calls it in one
//! order, stated at [`Endpoint`].
//!
//! [`urp`] is the Universal Receiver Protocol of Datakit, [`envelope`] its form on the wire; [`tcp`] holds
//! the congestion controllers of TCP.

mod arq;
pub mod envelope;
mod payload;
pub mod protocol;
mod rounds;
pub mod tcp;
pub mod urp;

pub use payload::{Extent, Payload};
pub use protocol::Protocol;
pub use rounds::Rounds;

use trunkline_core::Time;

/// One end of a conversation, driven from outside.
///
/// The driver feeds whatever has come ([`receive`](Endpoint::receive), or a call of the application's
/// side of the protocol), then polls [`transmit`](Endpoint::transmit) until it answers `None`, then asks
/// for the [`deadline`](Endpoint::deadline) and sees to it that [`expire`](Endpoint::expire) is called at
/// that instant, unless something else comes first. After `expire` it polls `transmit` again. Instants
/// never go back from one call to the next.
pub trait Endpoint {
    /// The segment that the two ends exchange.
    type Segment;

    /// Takes in what has come from the other end.
    fn receive(&mut self, now: Time, segment: Self::Segment);
    /// The next segment to send, or `None` when there is nothing for now. What is returned counts as sent
    /// at `now`.
    fn transmit(&mut self, now: Time) -> Option<Self::Segment>;
    /// When [`expire`](Endpoint::expire) is to be called, if nothing else happens; may lie in the past.
    fn deadline(&self) -> Option<Time>;
    /// Does what is due at `now`. A call before the deadline does nothing.
    fn expire(&mut self, now: Time);
}
