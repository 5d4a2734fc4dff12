//! NETBLT, the network block transfer protocol (RFC 998), with what RFC 1030 changed, and a law that finds its rate.
//!
//! A transfer goes one way. It is cut into buffers of equal size, these into packets. The receiver lets the sender send a
//! buffer (GO), asks again for what is missing of it (RESEND) and says that it has it (OK); the sender keeps to a rate and to
//! nothing else. All recovery starts at the receiver. The parts:
//!
//! - [`wire`]: packets and their octets, in three layouts;
//! - [`Sender`] and [`Receiver`]: the halves of a [`Connection`], which opens, keeps alive and closes. Neither holds data: the
//!   driver reads a packet's data from its client's buffer when it leaves, and writes them there when it comes;
//! - [`law`]: how the receiver chooses the rate;
//! - [`parity`]: packets behind the last ones, which give back what was lost of them, if both ends agreed to that;
//! - [`NETBLT`]: the protocol between two hosts of a laboratory, a connection for each message.

mod connection;
mod credit;
mod entry;
mod habits;
mod host;
mod incoming;
pub mod law;
mod log;
mod pace;
pub mod parity;
mod receiver;
mod restraints;
mod sender;
mod serial;
mod terms;
mod timers;
pub mod wire;

pub use connection::{Connection, Ending, Half, Out};
pub use entry::NETBLT;
pub use habits::{Habits, RateLaw};
pub use pace::{Spacing, Start};
pub use receiver::{Holes, Placed, Received, Receiver, Whole};
pub use sender::{Held, Sender, Sending, Sent};
pub use terms::Limits;

#[cfg(test)]
mod tests;
