//! The part that simulated and real hosts have in common, without I/O and without a clock.
//!
//! An application's system write is cut into requests of the interface, the protocol gets these one after the other
//! and sends them in units, and the end of a message is found again in the unit that carries it. The [`SendQueue`] of an
//! end keeps all that; the simulator adds what each step costs, the endpoint a socket.

mod send_queue;
mod settings;

pub use send_queue::{Request, SendQueue, WAITING_BYTES, Write, pieces};
pub use settings::urp_settings;
