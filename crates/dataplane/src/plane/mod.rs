//! A network of links in one dataplane: a frame comes in at one port, crosses one link after the other, and
//! leaves by another port, with one crossing of the kernel at each end however many links lie between. A path
//! between two devices is the smallest: two ports, a lane and a way for each direction.
//!
//! The links are served in order of time, as in a simulator whose clock is the machine's: a frame that one
//! link releases at an instant arrives at the next at that instant, whenever the loop comes to it. So
//! lateness does not add up along the way. A lane that only one port feeds, and whose frames leave, has nothing
//! to be put in order with: its frames are offered as they are read.

mod counts;
mod lane;
mod media;
mod plan;
mod send;
#[cfg(test)]
mod tests;
mod transit;
mod work;

pub use counts::{HopSums, Live, WayCounts};
pub use lane::LaneResult;
pub use plan::{LanePlan, MediumPlan, PlaneLayout, Takes, WayPlan, way_mac};

use crate::DataplaneError;
use crate::capture::CaptureTap;
use crate::clock::Arrivals;
use crate::dataplane::BUDGET;
use crate::pool::FramePool;
use counts::Way;
use lane::{LAG, Lane, Place};
use media::Shared;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use transit::Transit;
use trunkline_core::{Packet, Span, Time};
use trunkline_measure::Times;
use trunkline_netns::available_memory;
use trunkline_port::Port;

/// Frames of one port that have been read and that the links have not come to.
const WAITING: usize = 4 * BUDGET;

/// Links, the ports at their ends, and the ways of frames through them.
pub struct Plane {
    inlets: Vec<Inlet>,
    lanes: Vec<Lane>,
    media: Vec<Shared>,
    /// The lanes that are not alone: they are served together, in order of time.
    together: Vec<usize>,
    ways: Vec<Way>,
    /// The different sequences of lanes among the ways.
    routes: Vec<Box<[usize]>>,
    pool: FramePool,
    tap: CaptureTap,
    live: Arc<Live>,
    /// The time by which the links' work lags behind the clock; see [`LAG`].
    lag: Span,
    /// All frames that arrived before this instant have been read; the links may work up to it.
    settled: Time,
    /// When backlogs are sampled next, and how often.
    sampling: Option<(Time, Span)>,
    /// Whether some port gives no arrival stamps: a frame counts as having come when it is read.
    unstamped: bool,
    /// Frames that have no way.
    strays: u64,
    /// A bit for each inlet whose device is down. Frames to it are refused and counted, until it is up again.
    down: u64,
    /// The same of all that have been.
    was_down: u64,
}

/// A port, and what has come in by it.
struct Inlet {
    port: Box<dyn Port>,
    arrivals: Arrivals,
    waiting: VecDeque<Packet<Transit>>,
    /// The way of all its frames, if they are not told apart by their addresses.
    whole: Option<usize>,
    /// The lane that answers for what the port lost.
    entry: Option<usize>,
    /// The lanes alone that its frames enter.
    feeds: Box<[usize]>,
    ring_drops: u64,
    refusals: u64,
}

impl Inlet {
    fn new(index: usize, port: Box<dyn Port>, ways: &[WayPlan], lanes: &[Lane]) -> Inlet {
        let all = |way: &WayPlan| way.entry == index && matches!(way.takes, Takes::All(_));
        let first = |way: &WayPlan| (way.entry == index).then_some(way.lanes[0]);
        let alone = |&lane: &usize| lanes[lane].place.alone;
        let feeds: BTreeSet<usize> = ways.iter().filter_map(first).filter(alone).collect();
        Inlet {
            port,
            arrivals: Arrivals::default(),
            waiting: VecDeque::with_capacity(WAITING),
            whole: ways.iter().position(all),
            entry: ways.iter().find_map(first),
            feeds: feeds.into_iter().collect(),
            ring_drops: 0,
            refusals: 0,
        }
    }
}

impl Plane {
    /// A network as `plan` says, whose frames are shown to `tap`.
    ///
    /// # Errors
    /// [`DataplaneError::Memory`] if the system does not give what the plan needs.
    pub fn new(plan: PlaneLayout, tap: CaptureTap) -> Result<Plane, DataplaneError> {
        let PlaneLayout { ports, lanes, media, ways, origin, bound, arena, sample } = plan;
        let pool = FramePool::try_new(arena).ok_or_else(|| DataplaneError::Memory {
            needed: arena,
            available: available_memory(),
        })?;
        let at_work = |(index, plan): (usize, LanePlan)| {
            let most = sample.map_or(0, |(_, most)| if plan.observed { most } else { 0 });
            let place = place(index, &ways, most > 0 || plan.station.is_some());
            Lane::new(plan, place, origin, bound, most)
        };
        let media = media.into_iter().enumerate();
        let media = media.map(|(index, medium)| Shared::new(medium, index, &lanes)).collect();
        let lanes: Vec<Lane> = lanes.into_iter().enumerate().map(at_work).collect();
        let inlet = |(index, port)| Inlet::new(index, port, &ways, &lanes);
        let inlets = ports.into_iter().enumerate().map(inlet).collect();
        let ways: Vec<Way> = ways.into_iter().map(Way::new).collect();
        let mut plane = Plane {
            inlets,
            together: (0..lanes.len()).filter(|&lane| !lanes[lane].place.alone).collect(),
            lanes,
            media,
            routes: routes(&ways),
            live: Arc::new(Live::new(ways.len())),
            ways,
            pool,
            tap,
            lag: Span::ZERO,
            settled: Time::ZERO,
            sampling: sample.map(|(every, _)| (origin, every.max(Span::from_nanos(1)))),
            unstamped: false,
            strays: 0,
            down: 0,
            was_down: 0,
        };
        plane.measure_lag();
        Ok(plane)
    }

    /// Counts of the frames of each way, to be read while the network is at work.
    pub fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }

    /// The results of each lane by `now`, in the plan's order.
    pub fn results(&self, now: Time) -> Vec<LaneResult> {
        self.lanes.iter().map(|lane| lane.result(now, self.on_medium(lane).0)).collect()
    }

    /// The waits of the addressed frames of way `index` on each of its lanes, in the order of crossing, summed
    /// over those that have passed it.
    pub fn hops(&self, index: usize) -> &[HopSums] {
        &self.ways[index].hops
    }

    /// Lateness of all frames that left, and errors of their spacing.
    pub fn punctuality(&self) -> (Times, Times) {
        let (mut lateness, mut spacing) = (Times::default(), Times::default());
        for lane in &self.lanes {
            lateness.add(lane.tally.lateness());
            spacing.add(lane.tally.spacing());
        }
        (lateness, spacing)
    }

    /// Frames that came and had no way: what a host says of its own accord. They are not carried.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// The devices that were found down at some time.
    pub fn devices_that_were_down(&self) -> impl Iterator<Item = &str> {
        let all = self.inlets.iter().enumerate();
        let down = all.filter(|(index, _)| self.was_down & bit(*index) != 0);
        down.map(|(_, inlet)| inlet.port.device())
    }

    /// Forgets everything and begins anew at `origin`.
    fn restart(&mut self, origin: Time) {
        self.ways.iter_mut().for_each(|way| way.hops.fill(HopSums::default()));
        self.inlets.iter_mut().for_each(|inlet| inlet.waiting.clear());
        self.pool.clear();
        self.strays = 0;
        self.sampling = self.sampling.map(|(_, every)| (origin, every));
        self.account();
        self.lanes.iter_mut().for_each(|lane| lane.restart(origin));
        self.media.iter_mut().for_each(Shared::restart);
        self.measure_lag();
        self.live.restarted();
    }

    /// Finds out anew by how much the work of lanes together may lag.
    fn measure_lag(&mut self) {
        let exits =
            self.together.iter().map(|&lane| &self.lanes[lane]).filter(|lane| lane.place.exit);
        self.lag = exits.map(|lane| lane.slack).min().unwrap_or_default().min(LAG);
    }
}

/// The place of lane `index` among the ways. One that is served `in_order` of time is not alone: a station of a medium, or
/// one whose backlog is sampled.
fn place(index: usize, ways: &[WayPlan], in_order: bool) -> Place {
    let own = || ways.iter().filter(|way| way.lanes.contains(&index));
    let exit = own().any(|way| way.lanes.last() == Some(&index));
    let entry = own().next().map(|way| way.entry);
    let only = |way: &WayPlan| way.lanes == [index] && Some(way.entry) == entry;
    Place { exit, alone: exit && !in_order && own().all(only) }
}

fn routes(ways: &[Way]) -> Vec<Box<[usize]>> {
    let mut routes: Vec<Box<[usize]>> = ways.iter().map(|way| way.lanes.clone()).collect();
    routes.sort_unstable();
    routes.dedup();
    routes
}

/// The bit of an inlet. There are never more than 64 whose devices somebody could switch off.
fn bit(inlet: usize) -> u64 {
    1u64.checked_shl(inlet as u32).unwrap_or(0)
}

/// A packet like `packet`, with a frame of its own.
fn like(packet: &Packet<Transit>, body: Transit) -> Packet<Transit> {
    let Packet { channel, hosts, size, entered, band, ecn, controls, .. } = *packet;
    Packet { hosts, band, ecn, controls, ..Packet::new(channel, size, entered, body) }
}
