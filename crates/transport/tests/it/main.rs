//! Protocols between two ends, and congestion controllers.

mod congestion;
mod protocols;
mod tcp;
mod urp;
