//! TCP between two ends.

mod handshake;
mod lossy;
mod pair;
mod rack;
mod scripts;
mod theory;
