//! The applications and transports of a scenario on real sockets.
//!
//! A [`FlowPlan`] says what a flow does and between which hosts, each a network namespace. [`Flow::prepare`]
//! opens its sockets, [`Flow::start`] sets its two applications going, [`Flow::join`] gives what they have
//! measured. The applications are those of the simulator (`trunkline-workload`), URP is the simulator's
//! machine (`trunkline-transport`); datagrams and URP's network packets travel as capsules
//! (`trunkline-capsule`), into which the emulator writes what it did to them; TCP is the kernel's.
//!
//! One clock counts: CLOCK_MONOTONIC, as [`clock::now`] reads it.

pub mod clock;
mod context;
mod end;
mod error;
mod flow;
mod plan;
mod program;
mod protocol;
mod run;
mod shared;
mod threads;
mod tuning;
mod wire;

pub use error::EndpointError;
pub use flow::Flow;
pub use plan::{EndPlaces, EndPlan, FlowPlan, Places};
pub use program::{Printed, read_printed};
pub use run::FlowRun;
pub use threads::HostThreads;
