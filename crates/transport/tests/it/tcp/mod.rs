//! TCP between two ends.

mod frto;
mod handshake;
mod linux;
mod lossy;
mod marks;
mod pair;
mod rack;
mod scripts;
mod theory;
