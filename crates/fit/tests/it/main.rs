//! Paths found again from measurements: simulated, drawn by chance, measured, published.

mod clock;
mod flent;
mod measured;
mod paths;
mod vandewater;
