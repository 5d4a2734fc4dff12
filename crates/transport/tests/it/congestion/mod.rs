//! Congestion controllers against the laws that are published for them, on a path with constant loss and
//! on a bottleneck with a queue; and what holds for all of them whatever happens.

mod bottleneck;
mod laws;
mod pipe;
mod properties;
mod windows;

use trunkline_transport::tcp::congestion::{Algorithm, Controller, Settings};

/// Segments of the tests, in bytes.
const MSS: u32 = 1_000;

fn controller(kind: Algorithm) -> Controller {
    Controller::new(&Settings::new(kind, MSS))
}
