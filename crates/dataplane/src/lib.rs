//! The real-time engine: real frames through emulated links.
//!
//! A [`Dataplane`] is one thread that reads frames with their arrival stamps from ports, offers them
//! to the lanes of a [`Plane`] (each a `trunkline_path::Link`), and writes them when they are due:
//! departure = arrival stamp + path time. It sleeps until shortly before the next release and spins
//! the rest. Frames wait in a [`FramePool`] of fixed size; nothing is allocated after the start.
//!
//! A [`Session`] is a dataplane at work: the paths of `shell`, `bridge` and `verify`, two lanes each between two
//! devices, or the whole network of a scenario. Through a [`Console`], `show`, `set` and captures find it.

pub mod accuracy;
mod awake;
pub mod capture;
mod clock;
mod console;
mod dataplane;
mod error;
pub mod hosts;
mod in_force;
mod machine;
mod paths;
mod plane;
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
mod witness;

pub use awake::Awake;
pub use clock::monotonic;
pub use console::{CaptureRequest, Console, Presence};
pub use dataplane::{Dataplane, Options, Remote};
pub use error::DataplaneError;
pub use paths::{ChangeError, Changed};
pub use plane::{
    HopSums, LanePlan, LaneResult, Live, MediumPlan, Plane, PlaneLayout, Takes, WayCounts, WayPlan,
    way_mac,
};
pub use pool::{Frame, FramePool};
pub use scheduling::{keep_off, processors};
pub use session::{Ended, Plan, Session, SessionOptions, SessionThread, Setup};
pub use snapshot::{LaneSnapshot, Snapshot};
