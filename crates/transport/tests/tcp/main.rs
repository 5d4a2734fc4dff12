//! TCP between two ends.

mod handshake;
mod lossy;
mod pair;
mod scripts;
mod theory;
