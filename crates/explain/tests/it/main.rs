//! What is said of scenarios, against the changes themselves in the simulator.

mod advice;
mod advised;
mod bound;
mod clusters;
mod media;
mod nothing;
mod plain;
mod relaxations;
mod reports;
mod transports;
