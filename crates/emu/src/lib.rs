//! The real-time engine: real frames through emulated links.
//!
//! A [`Dataplane`] is one thread that reads frames with their arrival stamps from ports, offers them
//! to [`Lane`]s (one per direction, each a `trunkline_path::Link`), and writes them when they are due:
//! departure = arrival stamp + path time. It sleeps until shortly before the next release and spins
//! the rest. Frames wait in a [`FramePool`] of fixed size; nothing is allocated after the start.
//!
//! A [`Web`] is the same for a whole network: any number of links, several of which a frame crosses between
//! the two ports of its way.

pub mod accuracy;
mod awake;
pub mod capture;
mod clock;
mod dataplane;
mod error;
pub mod hosts;
mod lane;
mod machine;
mod pairs;
mod pool;
mod scheduling;
mod session;
mod sharing;
mod snapshot;
mod store;
mod tally;
#[cfg(test)]
mod testing;
mod wait;
mod web;
mod witness;
mod work;

pub use awake::Awake;
pub use clock::monotonic;
pub use dataplane::{Dataplane, Inlet, Options, Remote};
pub use error::EmuError;
pub use lane::Lane;
pub use pool::{Frame, FramePool};
pub use scheduling::{keep_off, processors};
pub use session::{ChangeError, Plan, Session, SessionOptions, SessionThread};
pub use snapshot::{LaneSnapshot, Snapshot};
pub use web::{HopSums, LanePlan, LegResult, Live, WayCounts, WayPlan, Web, WebPlan, way_mac};
