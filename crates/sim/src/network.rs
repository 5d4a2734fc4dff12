//! Links, routes and timers in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use trunkline_core::{Cause, Channel, Counts, DropCause, Packet, Seed, Span, Time};
use trunkline_path::{Link, LinkSpec};

/// A link of a [`Network`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// A sequence of links, resolved once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u32);

/// A packet's record of its hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub u32);

/// A packet on its way along a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parcel {
    /// Its route.
    pub route: RouteId,
    /// User bytes.
    pub size: u32,
    /// Control envelopes among them.
    pub controls: u16,
    /// The sender's own: what the packet means.
    pub tag: u64,
    /// Its record of hops, if one is kept.
    pub trace: Option<TraceId>,
}

/// What a packet waited for on one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopShare {
    /// The link.
    pub link: LinkId,
    /// In queues.
    pub queue: Span,
    /// Its own bits.
    pub transmit: Span,
    /// Distance.
    pub propagate: Span,
}

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A packet has come to the end of its route.
    Arrived(Parcel),
    /// A packet was lost on a link.
    Lost(Parcel, LinkId, DropCause),
    /// A timer has run out, with the number given to it.
    Timer(u64),
}

/// What waits in the event queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Link(u32),
    Timer(u64),
}

/// A packet's place on its route.
#[derive(Debug)]
struct Leg {
    parcel: Parcel,
    hop: u32,
}

/// Links joined by routes, and timers, driven event by event.
///
/// Events at one instant happen in the order in which they were asked for.
#[derive(Debug)]
pub struct Network {
    seed: Seed,
    now: Time,
    order: u64,
    events: BinaryHeap<Reverse<(Time, u64, Due)>>,
    links: Vec<Link<Packet<Leg>>>,
    routes: Vec<(Channel, Vec<LinkId>)>,
    traces: Vec<Vec<HopShare>>,
    free_traces: Vec<TraceId>,
    ready: std::collections::VecDeque<Event>,
}

impl Network {
    /// An empty network whose links draw their randomness from `seed`.
    pub fn new(seed: Seed) -> Network {
        Network {
            seed,
            now: Time::ZERO,
            order: 0,
            events: BinaryHeap::new(),
            links: Vec::new(),
            routes: Vec::new(),
            traces: Vec::new(),
            free_traces: Vec::new(),
            ready: std::collections::VecDeque::new(),
        }
    }

    /// Adds a link; `name` names its stream of randomness.
    pub fn add_link(&mut self, spec: &LinkSpec, name: &str) -> LinkId {
        self.links.push(Link::new(spec, self.seed, name, Time::ZERO));
        LinkId((self.links.len() - 1) as u32)
    }

    /// Adds a route; disciplines see its packets as `channel`.
    pub fn add_route(&mut self, channel: Channel, links: &[LinkId]) -> RouteId {
        self.routes.push((channel, links.to_vec()));
        RouteId((self.routes.len() - 1) as u32)
    }

    /// The present instant.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Starts a record of hops for a packet to be injected.
    pub fn trace(&mut self) -> TraceId {
        self.free_traces.pop().unwrap_or_else(|| {
            self.traces.push(Vec::new());
            TraceId((self.traces.len() - 1) as u32)
        })
    }

    /// The hops of a packet so far, in order. Their spans sum to the time since it was injected.
    pub fn hops(&self, trace: TraceId) -> &[HopShare] {
        &self.traces[trace.0 as usize]
    }

    /// Gives a record back.
    pub fn release(&mut self, trace: TraceId) {
        self.traces[trace.0 as usize].clear();
        self.free_traces.push(trace);
    }

    /// Sends a packet off on its route, now.
    pub fn inject(&mut self, parcel: Parcel) {
        self.forward(Leg { parcel, hop: 0 });
    }

    /// Asks for [`Event::Timer`] with `number` at `at`, or now where that has passed.
    pub fn set_timer(&mut self, at: Time, number: u64) {
        self.push(at.max(self.now), Due::Timer(number));
    }

    /// What happens next, at the latest at `until`; `None` when nothing happens until then. Moves
    /// [`now`](Network::now) to it.
    pub fn next(&mut self, until: Time) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let &Reverse((at, _, due)) = self.events.peek()?;
            if at > until {
                return None;
            }
            self.events.pop();
            self.now = at;
            match due {
                Due::Timer(number) => return Some(Event::Timer(number)),
                Due::Link(id) => self.serve(id),
            }
        }
    }

    /// What became of the packets of a link.
    pub fn counts(&self, link: LinkId) -> Counts {
        self.links[link.0 as usize].counts()
    }

    /// Bytes that wait at a link.
    pub fn backlog(&self, link: LinkId) -> u64 {
        self.links[link.0 as usize].backlog().bytes
    }

    fn push(&mut self, at: Time, due: Due) {
        self.order += 1;
        self.events.push(Reverse((at, self.order, due)));
    }

    fn forward(&mut self, leg: Leg) {
        let (channel, links) = &self.routes[leg.parcel.route.0 as usize];
        let Some(&id) = links.get(leg.hop as usize) else {
            self.ready.push_back(Event::Arrived(leg.parcel));
            return;
        };
        let (size, controls) = (leg.parcel.size, u32::from(leg.parcel.controls));
        let mut packet = Packet::new(*channel, size, self.now, leg);
        packet.controls = controls;
        self.links[id.0 as usize].offer(self.now, packet);
        self.after(id.0);
    }

    fn serve(&mut self, id: u32) {
        let link = &mut self.links[id as usize];
        link.advance(self.now);
        while let Some(delivered) = self.links[id as usize].take(self.now) {
            let mut leg = delivered.packet.body;
            if let Some(trace) = leg.parcel.trace {
                let ledger = delivered.packet.ledger;
                self.traces[trace.0 as usize].push(HopShare {
                    link: LinkId(id),
                    queue: ledger.get(Cause::Queue),
                    transmit: ledger.get(Cause::Transmit),
                    propagate: ledger.get(Cause::Propagate),
                });
            }
            leg.hop += 1;
            self.forward(leg);
        }
        self.after(id);
    }

    /// Collects what a link gave up, and asks for its next event.
    fn after(&mut self, id: u32) {
        let link = &mut self.links[id as usize];
        self.ready
            .extend(link.dropped().map(|(packet, cause)| Event::Lost(packet.body.parcel, LinkId(id), cause)));
        if let Some(at) = link.next_event() {
            self.push(at.max(self.now), Due::Link(id));
        }
    }
}
