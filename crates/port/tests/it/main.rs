//! Ports on the real kernel.

mod common;
mod forward;
mod packet;
mod segment;
mod xdp;
