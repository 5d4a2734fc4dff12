//! Protocols between two ends and among many, and congestion controllers.

mod congestion;
mod cstar;
mod protocols;
mod tcp;
mod urp;
