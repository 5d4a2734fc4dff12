//! The plan of a network of links.

use trunkline_core::{Seed, Span, Time};
use trunkline_netns::Mac;
use trunkline_path::medium::StationId;
use trunkline_path::{ChannelKey, LinkSpec, MediumSpec};
use trunkline_port::Port;

/// The plan of a network of links.
#[derive(Default)]
pub struct PlaneLayout {
    /// The ports towards the hosts.
    pub ports: Vec<Box<dyn Port>>,
    /// The links' directions.
    pub lanes: Vec<LanePlan>,
    /// The media that lanes are stations of.
    pub media: Vec<MediumPlan>,
    /// The ways through them.
    pub ways: Vec<WayPlan>,
    /// When slot clocks, traces and schedules begin.
    pub origin: Time,
    /// The lateness from which a frame counts as late.
    pub bound: Span,
    /// Bytes of memory for frames.
    pub arena: u64,
    /// The time between samples of the backlogs of observed lanes, and the most samples kept of each.
    pub sample: Option<(Span, usize)>,
}

/// One direction of a link, a node's backplane, or a station of a shared medium.
#[derive(Debug, Clone, PartialEq)]
pub struct LanePlan {
    /// Its name in reports.
    pub name: String,
    /// The name of its stream of randomness.
    pub stream: String,
    /// The seed of that stream.
    pub seed: Seed,
    /// The link that frames cross.
    pub spec: LinkSpec,
    /// Whether times in queue are recorded, and backlogs if they are sampled.
    pub observed: bool,
    /// The medium whose station it is, and the number of the station there; frames then wait for their turn on the
    /// medium, whatever `spec` says.
    pub station: Option<(usize, StationId)>,
}

/// A shared medium.
#[derive(Debug, Clone, PartialEq)]
pub struct MediumPlan {
    /// Its name, which with those of its stations names its streams of randomness.
    pub name: String,
    /// The names of its stations.
    pub stations: Vec<String>,
    /// The seed of those streams.
    pub seed: Seed,
    /// What it is.
    pub spec: MediumSpec,
}

/// A way from a port to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayPlan {
    /// The port by which its frames come in.
    pub entry: usize,
    /// The lanes that they cross, in order; at least one. A lane at which one way ends has none go on from it.
    pub lanes: Vec<usize>,
    /// For each lane that is a station of a medium, the station that hears what goes this way.
    pub heard_by: Vec<Option<StationId>>,
    /// The port by which they leave.
    pub exit: usize,
    /// The frames that go it.
    pub takes: Takes,
}

/// The frames of a port that go a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// All that come in by the port. They leave as they came; the key tells their channels apart.
    All(ChannelKey),
    /// Those addressed to [`way_mac`]. They leave addressed to this device.
    Addressed(Mac),
}

/// The Ethernet address to which a host sends what is to go the way with number `index`, 0 to 65535.
pub fn way_mac(index: usize) -> Mac {
    let [a, b, c, d] = super::transit::PREFIX;
    let [high, low] = (index as u16).to_be_bytes();
    Mac([a, b, c, d, high, low])
}
