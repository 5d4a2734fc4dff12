//! Network laboratories on one Linux machine: namespaces, virtual Ethernet pairs, addresses, routes,
//! offloads, processes and a way to the outside, over netlink and ioctl, with no outside program.
//!
//! Nothing of a laboratory outlives it. Namespaces have no name: they are held by file descriptors, so
//! the kernel removes them, and with them their devices, when the process ends, however it ends. What
//! must touch the host (one virtual Ethernet end, tables of nf_tables, forwarding of devices, the offloads
//! of a real interface) is written down in a [`RunState`] before it is done, undone at drop, and
//! undone by the next run's [`sweep`] if the process was killed.
//!
//! ```no_run
//! use trunkline_netns::{End, Namespace, create_veth, enter_user_namespace_if_needed};
//! # fn main() -> Result<(), trunkline_netns::LabError> {
//! enter_user_namespace_if_needed()?; // before any thread starts
//! let (near, far) = (Namespace::create()?, Namespace::create()?);
//! create_veth(&End::new(&near, "tl0"), &End::new(&far, "tl0"), 1500)?;
//! near.add_address("tl0", "10.77.0.1/24".parse()?)?;
//! far.add_address("tl0", "10.77.0.2/24".parse()?)?;
//! # Ok(()) }
//! ```

mod address;
mod claim;
mod datagram;
pub mod decode;
mod deliver;
mod directory;
mod error;
mod files;
mod firewall;
mod forwarding;
mod laboratory;
mod link;
mod memory;
mod message;
mod metrics;
mod namespace;
mod netlink;
mod nft;
mod offload;
mod open_files;
mod outside;
mod priority;
mod privilege;
mod process;
mod receive;
mod redirect;
mod resolvers;
mod routes;
mod server;
mod socket;
mod state;
mod sweep;
mod sys;
mod threads;

pub use address::{IpNet, Mac};
pub use datagram::{Taken, receive_taken, set_transparent, tell_destinations};
pub use directory::{runtime_dir, runtime_dirs, runtime_dirs_in_use};
pub use error::LabError;
pub use files::Replacements;
pub use firewall::ForwardDrop;
pub use forwarding::SavedForwarding;
pub use laboratory::Laboratory;
pub use link::{End, LinkInfo, create_veth};
pub use memory::available_memory;
pub use metrics::RouteMetrics;
pub use namespace::{Namespace, NamespaceId};
pub use offload::SavedOffloads;
pub use open_files::raise_open_files;
pub use outside::{Outside, Unreachable};
pub use priority::prefer_thread;
pub use privilege::{Privilege, enter_user_namespace_if_needed};
pub use process::{SpawnOptions, group_lives, kill_processes_in, processes_in, spawn};
pub use redirect::{Destination, Redirection, Redirections, TakenIn, Transport};
pub use resolvers::{RESOLVERS, name_servers};
pub use server::{Patience, listening};
pub use socket::{
    SocketOption, TcpInfo, original_destination, set_socket_option, socket_option, tcp_info,
};
pub use state::{Ending, Record, RunState, StateFile};
pub use sweep::{sweep, sweep_all};
pub use threads::thread;
