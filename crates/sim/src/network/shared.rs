//! Shared media as the network drives them.
//!
//! A packet crosses a medium on a lane, from one station to another. Lanes have numbers as links have, of which the
//! highest bit but one is set, so that a route is a list of both.

use super::parcel::Leg;
use super::routes::Shares;
use super::watch::{Queueing, Samples};
use super::wheel::{Handle, Wheel};
use super::{Due, Event, LinkId, Network, RecordKind};
use trunkline_core::{Channel, Counts, Hosts, Span, Time};
use trunkline_path::medium::StationId;
use trunkline_path::{Medium, MediumSpec};

/// A medium of a [`Network`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MediumId(pub u32);

/// Set in the number of a lane, and in no link's. The bit above it says that a route ends.
const LANE: u32 = 1 << 30;

/// The media of a network, and the lanes over them.
#[derive(Debug, Default)]
pub(super) struct Media {
    list: Vec<Shared>,
    lanes: Vec<Lane>,
}

/// From one station of a medium to another.
#[derive(Debug, Clone, Copy)]
struct Lane {
    medium: u32,
    from: StationId,
    to: StationId,
}

/// A medium with its one event in the event queue.
#[derive(Debug)]
struct Shared {
    medium: Medium<Leg>,
    entry: Handle,
    due: Time,
    stations: Vec<Observed>,
}

/// What is measured of a station.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) queueing: Queueing,
    pub(super) samples: Option<Samples>,
}

impl LinkId {
    /// The number of the lane over a medium that this is, if it is no link: lanes are numbered from 0 in the order in
    /// which they were added.
    pub fn lane(self) -> Option<u32> {
        (self.0 & LANE != 0).then_some(self.0 & !LANE)
    }
}

impl Shared {
    fn sample(&mut self, now: Time) {
        let Shared { medium, stations, .. } = self;
        for (index, observed) in stations.iter_mut().enumerate() {
            // Between two events nothing changes, so that samples can be taken afterwards.
            if let Some(samples) = &mut observed.samples {
                samples.take(now, |_| medium.backlog(StationId(index)).bytes);
            }
        }
    }

    /// Sees to it that its one event is at the instant at which it next needs attention.
    fn arm(&mut self, events: &mut Wheel<Due>) {
        let due = self.medium.next_event().unwrap_or(Time::NEVER);
        if self.due != Time::NEVER {
            events.remove(self.entry);
        }
        self.due = due;
        if due != Time::NEVER {
            events.insert(self.entry, due);
        }
    }
}

impl Media {
    fn lane(&self, link: LinkId) -> Lane {
        self.lanes[(link.0 & !LANE) as usize]
    }

    fn of(&self, link: LinkId) -> (&Shared, StationId) {
        let Lane { medium, from, .. } = self.lane(link);
        (&self.list[medium as usize], from)
    }

    fn of_mut(&mut self, link: LinkId) -> (&mut Shared, StationId) {
        let Lane { medium, from, .. } = self.lane(link);
        (&mut self.list[medium as usize], from)
    }

    pub(super) fn counts(&self, link: LinkId) -> Counts {
        let (shared, station) = self.of(link);
        shared.medium.counts(station)
    }

    pub(super) fn backlog(&self, link: LinkId) -> u64 {
        let (shared, station) = self.of(link);
        shared.medium.backlog(station).bytes
    }

    pub(super) fn busy(&self, link: LinkId) -> Span {
        let (shared, station) = self.of(link);
        shared.medium.busy(station)
    }

    pub(super) fn observed(&self, link: LinkId) -> &Observed {
        let (shared, station) = self.of(link);
        &shared.stations[station.0]
    }

    pub(super) fn observed_mut(&mut self, link: LinkId) -> &mut Observed {
        let (shared, station) = self.of_mut(link);
        &mut shared.stations[station.0]
    }

    pub(super) fn sample(&mut self, link: LinkId, now: Time) {
        self.of_mut(link).0.sample(now);
    }

    pub(super) fn introduce(&mut self, link: LinkId, channel: Channel, hosts: Hosts) {
        let (shared, station) = self.of_mut(link);
        shared.medium.introduce(station, channel, hosts);
    }
}

impl Network {
    /// Adds a medium that joins `stations`; `name` and theirs name its streams of randomness.
    pub fn add_medium(&mut self, spec: &MediumSpec, name: &str, stations: &[&str]) -> MediumId {
        let id = self.media.list.len() as u32;
        let entry = self.events.enlist(Due::Medium(id));
        let medium = Medium::new(spec, self.seed, name, stations);
        let stations = stations.iter().map(|_| Observed::default()).collect();
        let mut shared = Shared { medium, entry, due: Time::NEVER, stations };
        shared.arm(&mut self.events);
        self.media.list.push(shared);
        MediumId(id)
    }

    /// Adds a lane over a medium, which routes cross as they cross a link. What is asked of a lane, its counts or what
    /// waits, is that of its sending station, on whatever lane.
    pub fn add_lane(&mut self, medium: MediumId, from: usize, to: usize) -> LinkId {
        let id = LANE | self.media.lanes.len() as u32;
        let (from, to) = (StationId(from), StationId(to));
        self.media.lanes.push(Lane { medium: medium.0, from, to });
        LinkId(id)
    }

    /// The most bytes that one buffer inside a medium has held. `None` if the medium has no buffers but its stations'.
    pub fn most_held(&self, medium: MediumId) -> Option<u64> {
        self.media.list[medium.0 as usize].medium.most_held()
    }

    /// Puts a packet onto a medium.
    #[cold]
    #[inline(never)]
    pub(super) fn enter_medium(&mut self, lane: u32, leg: Leg) {
        let Lane { medium: id, from, to } = self.media.lane(LinkId(lane));
        let shared = &mut self.media.list[id as usize];
        shared.sample(self.now);
        shared.medium.offer(self.now, from, to, leg);
        shared.arm(&mut self.events);
        self.lose_on_medium(id);
    }

    /// Lets a medium do what is due, and moves one packet that comes out of it on; if more are due, its next event
    /// is now. Returns what happens first; all else is ready behind it.
    #[inline(never)]
    pub(super) fn serve_medium(&mut self, id: u32) -> Option<Event> {
        let shared = &mut self.media.list[id as usize];
        // Its entry has just been taken out of the event queue.
        shared.due = Time::NEVER;
        shared.sample(self.now);
        shared.medium.advance(self.now);
        let heard = shared.medium.take(self.now);
        shared.arm(&mut self.events);
        self.lose_on_medium(id);
        let heard = heard?;
        let (leg, transmit, propagate) = (heard.packet, heard.nominal, heard.way);
        let queue = heard.release.since(leg.entered).saturating_sub(transmit + propagate);
        let shares = Shares {
            queue: queue.as_nanos(),
            transmit: transmit.as_nanos(),
            propagate: propagate.as_nanos(),
        };
        let observed = &mut self.media.list[id as usize].stations[heard.from.0];
        if observed.queueing.is_recorded() {
            observed.queueing.record(shares.queue);
        }
        let lane = self.routes.link(leg.hop());
        if let Some(trace) = leg.trace() {
            self.share(lane.0, trace, shares);
        }
        self.forward(lane.0, leg, shares)
    }

    fn lose_on_medium(&mut self, id: u32) {
        if !self.media.list[id as usize].medium.has_dropped() {
            return;
        }
        let lost: Vec<_> = self.media.list[id as usize].medium.dropped().collect();
        for (_, leg, cause) in lost {
            let (lane, route) = (self.routes.link(leg.hop()), self.routes.dropped(leg.hop()));
            self.note(Some(lane.0), route, leg.size, RecordKind::Lost, Some(cause));
            self.ready.push_back(Event::Lost(leg.parcel(route), lane, cause));
        }
    }
}
