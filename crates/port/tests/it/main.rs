//! Ports on the real kernel.

mod common;
mod forward;
mod own;
mod packet;
mod segment;
mod xdp;
