//! The far host of a laboratory as a gateway, without any change to the machine.
//!
//! A laboratory has a network of its own, so what the machine has on its loopback device (a developer's server, the
//! resolver 127.0.0.53) is not there. The far host takes in what is for such places, as a NAT gateway would, and this
//! process, which stays in the machine's network, makes the connection that was asked for and passes the bytes on. The
//! emulated path lies in front of it: the program pays for every round trip. It needs no right over the machine, so it
//! works for an ordinary user too.
//!
//! - [`Gateway`]: TCP and UDP to the machine's loopback and, where asked for, to the world outside; questions to the
//!   machine's name servers.
//! - [`Publication`] and [`Published`]: a port of the machine that leads to a server inside.
//! - [`ProgramFiles`]: the names of all these in the programs' `/etc/hosts`, and the gateway in their `/etc/resolv.conf`.
//!
//! What ends here is TCP: the machine's kernel speaks to the other server, and the far host's to the program. A refused
//! connection is told to the program as a reset after it was accepted. Of UDP the datagrams are passed on, by a flow for
//! each client and destination; flows are bounded in number and end after some minutes of silence.

mod files;
mod flows;
mod gateway;
mod names;
mod own;
mod publish;
mod relay;

pub use files::{Entry, ProgramFiles};
pub use gateway::{Beyond, Gateway, GatewayError, Settings};
pub use own::answer as own_answer;
pub use publish::{Publication, Published};

use std::sync::Arc;

/// Tells the person at the terminal a line.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;
