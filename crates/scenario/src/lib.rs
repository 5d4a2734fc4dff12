//! The description of a path, as people write it.
//!
//! A path is described by *settings*, each a name and a text: `delay=80ms`, `loss=1%`. The same
//! settings serve the command line (`--delay 80ms`), presets, and live changes (`trunkline set
//! delay=80ms`). A plain setting holds for both directions; `up-` and `down-` before it mean one.
//!
//! A [`Scenario`] is the description of a whole experiment: hosts, nodes, links and traffic.

mod file;
mod files;
mod path;
mod preset;
mod remark;
mod scenario;
mod setting;
mod topology;
mod ways;

pub use file::ScenarioError;
pub use files::{Files, Folder};
pub use path::{Direction, MTUS, PathSpec, SettingError, Settings};
pub use preset::{PRESETS, Preset};
pub use remark::{About, Remark};
pub use scenario::{
    Cost, Disturbance, Echo, Host, Interface, Listed, Medium, Node, Processor, Program,
    ProtocolPlace, Reply, Returns, Scenario, Split, Start, TcpSettings, Traffic, Transport,
    UDP_HEADER, UrpSettings, Wire, Workload,
};
pub use setting::{SETTINGS, Setting};
pub use topology::{Hop, Over, Route, RouteError};
pub use ways::Ways;
