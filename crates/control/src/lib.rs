//! Talking to a running path.
//!
//! A run starts a [`Server`] over a [`Controller`], which for an emulated path is a
//! [`SessionController`]; it speaks HTTP on a Unix socket that only its
//! owner can open. `trunkline show` and `trunkline set` look for it with [`find`] and talk to it
//! through a [`Client`]; so can `curl --unix-socket`. The routes are described in
//! `docs/control-api.md`.

mod client;
mod discovery;
mod error;
mod request;
mod routes;
mod server;
mod session;
mod socket;

pub use client::Client;
pub use discovery::{Running, find, find_in, runtime_dir, socket_path, sockets, sockets_in};
pub use error::ControlError;
pub use request::SetRequest;
pub use server::{Controller, Server, exchange};
pub use session::{Pending, SessionController, description};
