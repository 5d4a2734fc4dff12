//! Links, routes and timers in virtual time.
//!
//! A [`Network`] owns the links and the event queue. Whoever drives it adds links and routes, injects
//! packets, sets timers and pulls what happens:
//!
//! ```
//! use trunkline_core::{Channel, Ecn, Rate, Seed, Span, Time};
//! use trunkline_path::LinkSpec;
//! use trunkline_sim::{Event, Network, Parcel};
//!
//! let mut network = Network::new(Seed(1));
//! let rate = Some(Rate::from_bits_per_second(1_000_000));
//! let spec = LinkSpec { rate, delay: Span::from_millis(5), ..LinkSpec::default() };
//! let link = network.add_link(&spec, "a>b");
//! let route = network.add_route(Channel(1), &[link]);
//! network.inject(Parcel { route, size: 125, controls: 0, ecn: Ecn::NotEct, tag: 7, trace: None });
//! let Some(Event::Arrived(parcel)) = network.next(Time::NEVER) else { panic!("it arrives") };
//! assert_eq!((parcel.tag, network.now()), (7, Time::from_nanos(6_000_000)));
//! ```
//!
//! Each link and each [medium](MediumId) has one entry in the event queue: when it next needs attention. Packets in
//! flight wait in the links, so the queue holds as many entries as there are links at work and timers.
//!
//! What a packet touches on a hop: its place in the link's ring (40 bytes, its departure included), the link
//! itself (a [`Station`](station), in one piece with its plain link), an entry and a slot of the wheel, and
//! the sums of its hop (32 bytes). The common kind of link, plain and never changing, is told from the others
//! once at an event and goes one straight way; whatever is rare is a call away, so that it takes no registers.

mod parcel;
mod record;
mod routes;
mod shared;
mod station;
mod told;
mod traces;
mod watch;
pub(crate) mod wheel;

pub use parcel::{Event, Parcel};
pub use record::{RECORD_BYTES, RecordKind};
pub use routes::HopSums;
pub use shared::MediumId;
pub use traces::{HopShare, TraceId};

use parcel::{Leg, MOST_CONTROLS};
use record::{Record, Recorder};
use routes::{Onward, Routes, Shares};
use shared::Media;
use station::{Passed, Station};
use std::collections::VecDeque;
use traces::Traces;
use trunkline_core::{Channel, DropCause, Hosts, Seed, Span, Tight, Time};
use trunkline_path::LinkSpec;
use wheel::Wheel;

/// A link of a [`Network`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A sequence of links, resolved once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u32);

/// What waits in the event queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Link(u32),
    Medium(u32),
    Timer(u64),
}

/// Links joined by routes, and timers, driven event by event.
///
/// Events at one instant happen in the order in which they were asked for.
#[derive(Debug)]
pub struct Network {
    seed: Seed,
    now: Time,
    events: Wheel<Due>,
    stations: Vec<Station>,
    media: Media,
    routes: Routes,
    traces: Traces,
    ready: VecDeque<Event>,
    /// Copies made that nobody has asked for yet, if somebody wants to know.
    copies: Option<Vec<(RouteId, u64, u32)>>,
    ledger: bool,
    recorder: Option<Box<Recorder>>,
}

impl Network {
    /// An empty network whose links draw their randomness from `seed`.
    pub fn new(seed: Seed) -> Network {
        Network {
            seed,
            now: Time::ZERO,
            events: Wheel::new(),
            stations: Vec::new(),
            media: Media::default(),
            routes: Routes::default(),
            traces: Traces::default(),
            ready: VecDeque::new(),
            copies: None,
            ledger: true,
            recorder: None,
        }
    }

    /// Makes room for so many links more, so that they need not be moved while they are added.
    pub(crate) fn expect_links(&mut self, count: usize) {
        self.stations.reserve_exact(count);
    }

    /// Adds a link; `name` names its stream of randomness.
    pub fn add_link(&mut self, spec: &LinkSpec, name: &str) -> LinkId {
        let id = self.stations.len() as u32;
        let entry = self.events.enlist(Due::Link(id));
        let mut station = Station::new(spec, self.seed, name, entry);
        station.wait(station.needs().due, &mut self.events);
        self.stations.push_tight(station);
        LinkId(id)
    }

    /// Adds a route; disciplines see its packets as `channel`.
    ///
    /// # Panics
    /// If the channel's number is 2^32 or more, or the hops of all routes together are 2^24 or more:
    /// packets have room for no larger numbers.
    pub fn add_route(&mut self, channel: Channel, links: &[LinkId]) -> RouteId {
        self.routes.add(channel, links)
    }

    /// Tells `links` which hosts the packets of `channel` go between.
    pub fn introduce(&mut self, channel: Channel, hosts: Hosts, links: &[LinkId]) {
        for link in links {
            match self.stations.get_mut(link.0 as usize) {
                Some(station) => station.introduce(channel, hosts),
                None => self.media.introduce(*link, channel, hosts),
            }
        }
    }

    /// Gives the packets of `route` a priority band, 0 the most urgent, to 7, which they have from the start.
    pub fn set_band(&mut self, route: RouteId, band: u8) {
        self.routes.set_band(route, band);
    }

    /// The present instant.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Sends a packet off on its route, now.
    ///
    /// # Panics
    /// If it has 2^11 control envelopes or more: packets have room for no larger number.
    pub fn inject(&mut self, parcel: Parcel) {
        assert!(parcel.controls < MOST_CONTROLS, "a packet has fewer than 2^11 control envelopes");
        let (class, hop, onward) = self.routes.set_off(parcel.route);
        let link = match onward {
            Onward::Link(link) => Some(link),
            Onward::End(_) => None,
        };
        self.note(link, parcel.route, parcel.size, RecordKind::Sent, None);
        match link {
            Some(link) => self.enter(link, Leg::new(&parcel, hop, class, self.now)),
            None => self.ready.push_back(Event::Arrived(parcel)),
        }
    }

    /// Asks for [`Event::Timer`] with `number` at `at`, or now if that has passed.
    pub fn set_timer(&mut self, at: Time, number: u64) {
        let entry = self.events.enlist(Due::Timer(number));
        self.events.insert(entry, at.max(self.now));
    }

    /// From now on keeps for [`take_copies`](Network::take_copies) which packets links have copied.
    pub fn note_copies(&mut self) {
        self.copies.get_or_insert_default();
    }

    /// The packets of which links have made copies since this was asked last: route, tag and how many copies
    /// more there are. To be asked after each event by whoever keeps something for a packet until its last
    /// copy has come or is lost.
    #[inline]
    pub fn take_copies(&mut self) -> Vec<(RouteId, u64, u32)> {
        match &mut self.copies {
            Some(made) if !made.is_empty() => std::mem::take(made),
            _ => Vec::new(),
        }
    }

    /// What happens next, at the latest at `until`; `None` when nothing happens until then. Moves
    /// [`now`](Network::now) to it.
    ///
    /// A link whose schedule repeats keeps the network busy for ever: with one, `until` has to be an
    /// instant that the run can reach.
    #[inline]
    pub fn next(&mut self, until: Time) -> Option<Event> {
        loop {
            if !self.ready.is_empty() {
                return self.ready.pop_front();
            }
            let (at, due, entry) = self.events.pop(until)?;
            self.now = at;
            match due {
                Due::Timer(number) => {
                    self.events.give_back(entry);
                    return Some(Event::Timer(number));
                }
                Due::Link(id) => {
                    let event = self.serve(id);
                    if event.is_some() {
                        return event;
                    }
                }
                Due::Medium(id) => {
                    let event = self.serve_medium(id);
                    if event.is_some() {
                        return event;
                    }
                }
            }
        }
    }

    /// Lets a link do what is due, and moves one packet that comes out of it on; if more are due, the
    /// link's next event is now. Returns what happens first; all else is ready behind it.
    #[inline(always)]
    fn serve(&mut self, id: u32) -> Option<Event> {
        let station = &mut self.stations[id as usize];
        if station.is_sampled() {
            station.sample(self.now);
        }
        let Some((passed, needs)) = station.serve_whole(self.now) else {
            return self.serve_laden(id);
        };
        station.wait(needs.due, &mut self.events);
        if needs.lost {
            self.lose(id);
        }
        let (leg, shares) = passed?;
        if let Some(trace) = leg.trace() {
            self.share(id, trace, shares);
        }
        self.forward(id, leg, shares)
    }

    /// The same for a link that can change or impair. What comes out may have copies.
    #[inline(never)]
    fn serve_laden(&mut self, id: u32) -> Option<Event> {
        let station = &mut self.stations[id as usize];
        let (passed, needs) = station.serve_laden(self.now);
        station.wait(needs.due, &mut self.events);
        if needs.lost {
            self.lose(id);
        }
        let Passed { leg, shares, copies } = passed?;
        if let Some(trace) = leg.trace() {
            self.share(id, trace, shares);
        }
        if copies > 1 {
            return self.duplicate(id, leg, shares, copies);
        }
        self.forward(id, leg, shares)
    }

    /// Adds what a packet waited for to its own record.
    #[cold]
    #[inline(never)]
    fn share(&mut self, id: u32, trace: TraceId, shares: Shares) {
        let [queue, transmit, propagate] =
            [shares.queue, shares.transmit, shares.propagate].map(Span::from_nanos);
        self.traces.push(trace, HopShare { link: LinkId(id), queue, transmit, propagate });
    }

    /// Books what a packet waited for on link `id` to its route, and sends it to the next link or to whom it
    /// is for. Returns what happens, unless something else is ready before it.
    #[inline(always)]
    fn forward(&mut self, id: u32, leg: Leg, shares: Shares) -> Option<Event> {
        let hop = leg.hop();
        let onward =
            if self.ledger { self.routes.book(hop, &shares) } else { self.routes.after(hop) };
        match onward {
            Onward::Link(next) => {
                if self.recorder.is_some() {
                    self.note(Some(id), self.routes.owner(hop), leg.size, RecordKind::Passed, None);
                }
                self.enter(next, leg.onward(self.now));
                None
            }
            Onward::End(route) => {
                self.note(Some(id), route, leg.size, RecordKind::Arrived, None);
                let arrived = Event::Arrived(leg.parcel(route));
                if self.ready.is_empty() {
                    return Some(arrived);
                }
                self.ready.push_back(arrived);
                None
            }
        }
    }

    /// Sends a packet on with its further copies behind it. A copy of a packet with a record has one of its
    /// own: the first has gone no further yet than into the next link, so the hops so far are the same.
    #[cold]
    #[inline(never)]
    fn duplicate(&mut self, id: u32, leg: Leg, shares: Shares, copies: u8) -> Option<Event> {
        let first = self.forward(id, leg, shares);
        self.ready.extend(first);
        self.routes.duplicated(leg.hop(), u64::from(copies - 1));
        if let Some(made) = &mut self.copies {
            made.push((self.routes.owner(leg.hop()), leg.tag, u32::from(copies - 1)));
        }
        for _ in 1..copies {
            let trace = leg.trace().map(|trace| self.traces.copy(trace));
            let copy = self.forward(id, leg.with_trace(trace), shares);
            self.ready.extend(copy);
        }
        None
    }

    /// Puts a packet onto a link, sees to its event, and tells of what it gave up. What is no link is a lane over a
    /// medium.
    #[inline(always)]
    fn enter(&mut self, id: u32, leg: Leg) {
        let Some(station) = self.stations.get_mut(id as usize) else {
            return self.enter_medium(id, leg);
        };
        let needs = station.offer(self.now, leg);
        if needs.due != station.due {
            station.arm(needs.due, &mut self.events);
        }
        if needs.lost {
            self.lose(id);
        }
    }

    #[cold]
    #[inline(never)]
    fn lose(&mut self, id: u32) {
        let Network { stations, routes, ready, .. } = self;
        let first = ready.len();
        stations[id as usize].dropped(|leg, cause| {
            let route = routes.dropped(leg.hop());
            ready.push_back(Event::Lost(leg.parcel(route), LinkId(id), cause));
        });
        for index in first..self.ready.len() {
            if let Event::Lost(parcel, _, cause) = self.ready[index] {
                self.note(Some(id), parcel.route, parcel.size, RecordKind::Lost, Some(cause));
            }
        }
    }

    #[inline]
    fn note(
        &mut self,
        link: Option<u32>,
        route: RouteId,
        size: u32,
        kind: RecordKind,
        cause: Option<DropCause>,
    ) {
        if let Some(recorder) = &mut self.recorder {
            recorder.note(Record { at: self.now, link, route: route.0, size, kind, cause });
        }
    }
}
