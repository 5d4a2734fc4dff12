//! What simulated and real hosts do alike, without I/O.
//!
//! An application's system writes become requests, which an interface takes and a protocol carries in units. A
//! [`SendQueue`] follows them and finds the message that a unit ends, until it is answered for. Costs and boards are
//! the simulator's, sockets the real end's; on a real wire a protocol goes with its codec, as a [`Wired`](wire::Wired).

mod datagrams;
mod send_queue;
mod settings;
pub mod wire;

pub use datagrams::{Datagram, Datagrams};
pub use send_queue::{Request, SendQueue, Write, pieces};
pub use settings::urp_settings;

use trunkline_measure::Waiting;
use trunkline_transport::Held;

/// What a sender's clock shows while its protocol is held back.
pub fn waiting(held: Held) -> Waiting {
    match held {
        Held::Opening => Waiting::Opening,
        Held::Window => Waiting::Window,
        Held::Congestion => Waiting::Congestion,
        Held::Recovery => Waiting::Recover,
        Held::Pace => Waiting::Paced,
    }
}
