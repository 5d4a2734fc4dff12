//! The description of a path, as people write it.
//!
//! A path is described by *settings*, each a name and a text: `delay=80ms`, `loss=1%`. The same
//! settings serve the command line (`--delay 80ms`), presets, and live changes (`trunkline set
//! delay=80ms`). A plain setting holds for both directions; `up-` and `down-` before it mean one.
//!
//! A [`Scenario`] is the description of a whole experiment: hosts, nodes, links and traffic. A [`Network`] is what it
//! comes to: the lanes and ways that every engine builds.

mod cluster;
mod file;
mod files;
mod network;
mod path;
mod preset;
mod remark;
mod scenario;
mod setting;
mod transport;

pub use cluster::{Cluster, MessageProtocol, NodeCosts};
pub use file::ScenarioError;
pub use files::{Files, Folder};
pub use network::{Crossing, HostPlace, Lane, Network, NetworkError, Order, RouteError, Way};
pub use path::{Direction, MTUS, PathSpec, SettingError, Settings};
pub use preset::{PRESETS, Preset};
pub use remark::{About, Remark};
pub use scenario::{
    Cost, Disturbance, Echo, Host, Interface, Medium, Node, Processor, Program, ProtocolPlace,
    Reply, Returns, Scenario, Split, Start, Traffic, Wire, Workload,
};
pub use setting::{SETTINGS, Setting};
pub use transport::{Listed, TcpSettings, Transport, UDP_HEADER, UrpSettings};
