//! A switched fabric of two levels: leaf switches with the stations, and spine switches between the leaves.

mod lines;
mod plan;
mod port;

pub use lines::PortLine;

use super::alone::Alone;
use super::slab::Slab;
use super::transit::Destination;
use super::{Access, AccessSettings, BusSettings, Ground, MediumSpec, StationId, Stations};
use crate::SpecError;
use crate::discipline::settings::{choice, keys};
use crate::framing::Piece;
use crate::line::Wire;
use plan::{Cable, Plan, PortId};
use port::{FrameCopy, Port};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;
use trunkline_core::{Carried, DropCause, Rate, Span, Time};

choice! {
    /// What a switch does when frames come faster than they leave.
    pub enum Flow {
        /// A port sends only what the buffer at the far end of its cable has granted room for.
        Credit = "credit",
        /// A buffer that fills tells the port at the other end of its cable to stop, and to go on (IEEE 802.1Qbb).
        Pause = "pause",
        /// A frame that finds no room is lost.
        Drop = "drop",
    }
}

keys! {
    /// A switched fabric of leaf and spine switches (a folded Clos network), lossless or not.
    pub struct LeafSpineSettings {
        /// Stations of a leaf switch; they fill the leaves in their order.
        hosts_per_leaf: u32 = 32, "hosts_per_leaf" in 1..=1 << 14;
        /// Spine switches. All that a station sends to a leaf goes by one, by a hash.
        spines: u32 = 4, "spines" in 1..=1 << 10;
        /// Rate of the ports between switches; that of the medium if not given.
        trunk_rate: Option<Rate> = None, "trunk_rate" in RATES;
        /// From the last bit of a frame that has come to a switch until it may leave.
        switch_latency: Span = Span::from_nanos(500), "switch_latency" in LATENCIES;
        /// What holds a port back that sends into a full switch: credits, stop and go, or nothing, so that frames are lost.
        flow: Flow = Flow::Credit;
        /// Bytes of each port of a switch: of what came in by it, or with drop of what waits to leave by it.
        buffer: u32 as Bytes = 256 << 10, "buffer" in SIZES;
        /// Part of the buffer for what still comes after a stop. If not given, what a cable to and fro, the switch_latency and two frames of 9216 bytes need.
        headroom: Option<u32> as Bytes = None, "headroom" in SIZES;
        /// Bytes that wait to leave by a port from which on it marks frames whose sender can take that (RFC 8257 §3.1).
        ecn_threshold: Option<u32> as Bytes = None, "ecn_threshold" in SIZES;
    }
}

const RATES: RangeInclusive<Rate> =
    Rate::from_bits_per_second(1)..=Rate::from_bits_per_second(10_000_000_000_000);
const LATENCIES: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(1);
const SIZES: RangeInclusive<u32> = 1..=1 << 30;

/// Bytes of the largest frame that the headroom allows for: the jumbo frame that data centre switches carry.
const LARGEST_FRAME: u64 = 9216;

impl LeafSpineSettings {
    /// Bytes that may still come to a buffer that has told the port at the other end of a cable to stop: what the port sends
    /// while that is under way, its frame begun last, what is on the cable and in front of the buffer, and the frame that
    /// made the buffer tell.
    fn headroom(&self, rate: Option<Rate>, delay: Span) -> u64 {
        let worked_out = self.under_way(rate, delay).saturating_add(2 * LARGEST_FRAME);
        self.headroom.map_or(worked_out, u64::from)
    }

    /// The part of that beside the two frames.
    fn under_way(&self, rate: Option<Rate>, delay: Span) -> u64 {
        let fastest = rate.max(self.trunk_rate).map_or(0, Rate::bits_per_second);
        let way = delay.as_nanos() * 2 + self.switch_latency.as_nanos();
        u64::try_from(u128::from(fastest) * u128::from(way) / 8_000_000_000).unwrap_or(u64::MAX)
    }
}

impl AccessSettings for LeafSpineSettings {
    type Access = LeafSpine;

    const TRIALS: &'static [&'static str] = &[
        "",
        "hosts_per_leaf=2,spines=2,buffer=700",
        "hosts_per_leaf=1,spines=3,trunk_rate=3mbit,flow=drop,buffer=900,switch_latency=3us,ecn_threshold=300",
        "hosts_per_leaf=3,spines=1,trunk_rate=90mbit,flow=pause,buffer=3000,headroom=1200",
    ];

    const STATIONS_ALIKE: bool = false;

    const MOST_STATIONS: usize = 1 << 14;

    fn idle(&self, _: &MediumSpec) -> Option<&'static str> {
        if self.headroom.is_some() && self.flow != Flow::Pause {
            return Some("headroom has no effect without flow = pause; give that, or leave it out");
        }
        let marks = self.ecn_threshold.is_none_or(|threshold| threshold <= self.buffer);
        (self.flow == Flow::Drop && !marks).then_some(
            "ecn_threshold is above buffer, so that nothing is marked; give a lower one, or leave it out",
        )
    }

    fn lossless_up_to(&self, medium: &MediumSpec) -> Option<u64> {
        let for_frames = self
            .headroom(medium.rate, medium.delay)
            .saturating_sub(self.under_way(medium.rate, medium.delay));
        (self.flow == Flow::Pause).then_some(for_frames / 2)
    }

    fn check(&self, medium: &MediumSpec) -> Result<(), SpecError> {
        if medium.rate.is_none() {
            return Err(SpecError::Conflict(
                "ports of a leaf-spine fabric need a rate: give the medium one".into(),
            ));
        }
        let headroom = self.headroom(medium.rate, medium.delay);
        if self.flow == Flow::Pause && headroom >= u64::from(self.buffer) {
            return Err(SpecError::Conflict(format!(
                "a headroom of {headroom} bytes leaves nothing of a buffer of {}: give a larger buffer or a shorter delay",
                self.buffer
            )));
        }
        Ok(())
    }

    fn ports(&self, alone: &Alone, from: StationId, to: StationId) -> Option<Vec<PortLine>> {
        Some(self.lines(alone, from, to))
    }

    /// Nobody waits for a turn: each station has a cable of its own.
    fn without_turns(&self, _medium: &MediumSpec) -> Option<(BusSettings, Span)> {
        None
    }

    fn unlimited(self) -> LeafSpineSettings {
        LeafSpineSettings { buffer: *SIZES.end(), headroom: None, ..self }
    }

    fn faster(self, times: u32) -> LeafSpineSettings {
        let faster = |rate: Rate| rate.bits_per_second().saturating_mul(times.into());
        let trunk_rate = self.trunk_rate.map(|rate| Rate::from_bits_per_second(faster(rate)));
        LeafSpineSettings { trunk_rate, ..self }
    }

    fn build(self, ground: &Ground<'_>) -> LeafSpine {
        let medium = ground.medium;
        let plan = Plan::new(ground.stations.len(), self.hosts_per_leaf, self.spines);
        let port = |port: PortId| {
            let trunk = self.trunk_rate.filter(|_| plan.is_trunk(port));
            let wire = Wire::new(medium.framing, trunk.or(medium.rate), None, Time::ZERO);
            Port::new(wire, self.buffer)
        };
        LeafSpine {
            settings: self,
            delay: medium.delay,
            stop_above: u64::from(self.buffer)
                .saturating_sub(self.headroom(medium.rate, medium.delay)),
            ports: (0..plan.ports()).map(port).collect(),
            plan,
            lodgings: Slab::default(),
            copies: Slab::default(),
            events: BinaryHeap::new(),
            numbered: 0,
            most_held: 0,
            outputs: Vec::new(),
        }
    }
}

/// Stations on leaf switches, and spine switches that join every leaf with every other.
///
/// A switch takes a frame in whole before it sends it on (store and forward): a port that is busy, stopped or faster than
/// that at which the frame comes cannot send it sooner, and a frame has its buffer to itself. Frames wait at the port by which they leave. With
/// credits and pauses a port serves the inputs in turn, frame by frame, and a frame keeps its room in the buffer of its input
/// until its last bit has left; with drop a port serves in the order of arrival. A frame goes up at most once and then
/// down, so that buffers wait for each other in no circle and nothing deadlocks. What cannot go on waits at its station in the end.
/// Credits, stops and goes take the delay of the cable and no bandwidth.
#[derive(Debug)]
pub(super) struct LeafSpine {
    settings: LeafSpineSettings,
    delay: Span,
    /// Bytes of an input buffer above which it tells its port to stop.
    stop_above: u64,
    plan: Plan,
    ports: Vec<Port>,
    lodgings: Slab<Lodging>,
    /// The copies on cables.
    copies: Slab<FrameCopy>,
    /// What happens, by its time and then in the order in which it was found out, but frames come last: a buffer has the
    /// room of one that leaves at the same instant.
    events: BinaryHeap<Reverse<(Time, bool, u64, Event)>>,
    numbered: u64,
    most_held: u64,
    /// The ports by which the frame that has just come leaves.
    outputs: Vec<PortId>,
}

/// Room that a frame takes of an input buffer, until its last copy has left.
#[derive(Debug)]
struct Lodging {
    input: PortId,
    bytes: u32,
    copies: usize,
}

/// What happens at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The last bit of a frame leaves a port.
    Sent(PortId),
    /// A copy may leave the switch at the end of a port's cable.
    Comes(PortId, u32),
    /// A port hears that it may send as many bytes more.
    Granted(PortId, u32),
    /// A port hears that it has to stop, or may go on.
    Told(PortId, bool),
    /// A station's queue has held a packet back until now.
    Ready(PortId),
}

impl LeafSpine {
    fn at(&mut self, at: Time, event: Event) {
        let comes = matches!(event, Event::Comes(..));
        self.events.push(Reverse((at, comes, self.numbered, event)));
        self.numbered += 1;
    }

    /// Whether a port may send a piece. A buffer that is empty takes any one frame.
    fn may_send(&self, port: PortId, piece: Piece) -> bool {
        let Port { credit, stopped, .. } = self.ports[port];
        match (self.plan.cable(port), self.settings.flow) {
            (Cable::Down { .. }, _) | (_, Flow::Drop) => true,
            (_, Flow::Pause) => !stopped,
            (_, Flow::Credit) => {
                credit >= i64::from(piece.bytes) || credit == i64::from(self.settings.buffer)
            }
        }
    }

    /// The next piece of a port. None if nothing is ready.
    fn next_piece<P: Carried>(
        &mut self,
        now: Time,
        port: PortId,
        stations: &mut Stations<P>,
    ) -> Option<Piece> {
        if !matches!(self.plan.cable(port), Cable::Host { .. }) {
            return self.ports[port].waiting.first().map(|copy| copy.piece);
        }
        let station = StationId(port);
        if !stations.fetch(now, station)
            && let Some(ready) = stations.wants_later(station, now)
            && ready < self.ports[port].ready
        {
            self.ports[port].ready = ready;
            self.at(ready, Event::Ready(port));
        }
        stations.piece(station)
    }

    /// Lets a port send its next frame, if it is idle and may.
    fn send<P: Carried>(&mut self, now: Time, port: PortId, stations: &mut Stations<P>) {
        if self.ports[port].busy {
            return;
        }
        let Some(piece) = self.next_piece(now, port, stations) else { return };
        if !self.may_send(port, piece) {
            return;
        }
        let it = &mut self.ports[port];
        it.credit -= i64::from(piece.bytes);
        it.sending = it.waiting.pop();
        let end = it.begin(now, piece);
        self.at(end, Event::Sent(port));
    }

    /// The last bit of a frame leaves a port.
    fn sent<P: Carried>(&mut self, now: Time, port: PortId, stations: &mut Stations<P>) {
        self.ports[port].busy = false;
        let copy = match self.ports[port].sending.take() {
            Some(copy) => {
                self.ports[port].waiting.sent(copy.piece.bytes);
                Some(copy)
            }
            None => lifted(StationId(port), stations),
        };
        if let Some(copy) = copy {
            self.leave(now, copy.lodging);
            self.set_out(now, port, copy, stations);
        }
        self.send(now, port, stations);
    }

    /// A copy goes over a port's cable.
    fn set_out<P: Carried>(
        &mut self,
        now: Time,
        port: PortId,
        mut copy: FrameCopy,
        stations: &mut Stations<P>,
    ) {
        copy.own += self.ports[port].length(copy.piece);
        copy.way += self.delay;
        if let Cable::Down { station } = self.plan.cable(port) {
            let (own, way) = (copy.own, copy.way);
            return stations.land(copy.frame, StationId(station), now + self.delay, own, way);
        }
        copy.way += self.settings.switch_latency;
        let number = self.copies.insert(copy);
        self.at(now + self.delay + self.settings.switch_latency, Event::Comes(port, number));
    }

    /// A copy has left the switch.
    fn leave(&mut self, now: Time, number: Option<u32>) {
        let Some(lodging) = number.and_then(|number| self.lodgings.get_mut(number)) else { return };
        lodging.copies -= 1;
        if lodging.copies > 0 {
            return;
        }
        let Some(Lodging { input, bytes, .. }) = number.and_then(|it| self.lodgings.remove(it))
        else {
            return;
        };
        let far = &mut self.ports[input].far;
        far.bytes -= u64::from(bytes);
        let goes_on = far.stops && far.bytes <= self.stop_above;
        match self.settings.flow {
            Flow::Credit => self.at(now + self.delay, Event::Granted(input, bytes)),
            Flow::Pause if goes_on => {
                self.ports[input].far.stops = false;
                self.at(now + self.delay, Event::Told(input, false));
            }
            Flow::Pause | Flow::Drop => {}
        }
    }

    /// A copy has come to the switch at the end of a port's cable, and may leave it.
    fn comes<P: Carried>(
        &mut self,
        now: Time,
        input: PortId,
        mut copy: FrameCopy,
        stations: &mut Stations<P>,
    ) {
        let mut outputs = std::mem::take(&mut self.outputs);
        outputs.clear();
        self.plan.outputs(input, copy.from, copy.to, &mut outputs);
        outputs.retain(|&output| self.has_room(input, output, copy, stations));
        if !outputs.is_empty() {
            copy.lodging = Some(self.lodge(now, input, copy.piece.bytes, outputs.len()));
        }
        for &output in &outputs {
            self.wait(input, output, copy, stations);
            self.send(now, output, stations);
        }
        self.outputs = outputs;
    }

    /// Whether there is room for a copy that came in at `input` to leave by `output`. If not, it is lost.
    fn has_room<P: Carried>(
        &self,
        input: PortId,
        output: PortId,
        copy: FrameCopy,
        stations: &mut Stations<P>,
    ) -> bool {
        let held = match self.settings.flow {
            Flow::Drop => self.ports[output].waiting.bytes,
            Flow::Pause => self.ports[input].far.bytes,
            Flow::Credit => return true,
        };
        let room = u64::from(self.settings.buffer).saturating_sub(held);
        let fits = held == 0 || u64::from(copy.piece.bytes) <= room;
        if !fits {
            let copies = self.plan.hearers(output, copy.from, copy.to);
            stations.lose(copy.frame, copies, DropCause::QueueLimit);
        }
        fits
    }

    /// Gives a frame room in the buffer of its input.
    fn lodge(&mut self, now: Time, input: PortId, bytes: u32, copies: usize) -> u32 {
        let far = &mut self.ports[input].far;
        far.bytes += u64::from(bytes);
        if self.settings.flow != Flow::Drop {
            self.most_held = self.most_held.max(far.bytes);
        }
        if self.settings.flow == Flow::Pause && !far.stops && far.bytes > self.stop_above {
            far.stops = true;
            self.at(now + self.delay, Event::Told(input, true));
        }
        self.lodgings.insert(Lodging { input, bytes, copies })
    }

    /// Lets a copy wait for a port.
    fn wait<P: Carried>(
        &mut self,
        input: PortId,
        output: PortId,
        copy: FrameCopy,
        stations: &mut Stations<P>,
    ) {
        let LeafSpineSettings { flow, ecn_threshold, .. } = self.settings;
        let waiting = &mut self.ports[output].waiting;
        if ecn_threshold.is_some_and(|threshold| waiting.bytes >= u64::from(threshold)) {
            stations.mark(copy.frame);
        }
        // With one queue for all inputs a port serves in the order of arrival.
        waiting.push(if flow == Flow::Drop { output } else { input }, copy);
        if flow == Flow::Drop {
            self.most_held = self.most_held.max(waiting.bytes);
        }
    }
}

/// The frame that a station has sent.
fn lifted<P: Carried>(station: StationId, stations: &mut Stations<P>) -> Option<FrameCopy> {
    let piece = stations.piece(station)?;
    let (frame, to): (_, Destination) = stations.lift(station)?;
    let (own, way) = (Span::ZERO, Span::ZERO);
    Some(FrameCopy { frame, from: station, to, piece, own, way, lodging: None })
}

impl Access for LeafSpine {
    fn asks<P: Carried>(&mut self, now: Time, station: StationId, stations: &mut Stations<P>) {
        self.send(now, station.0, stations);
    }

    fn next(&self) -> Option<Time> {
        self.events.peek().map(|&Reverse((at, ..))| at)
    }

    fn most_held(&self) -> Option<u64> {
        Some(self.most_held)
    }

    fn act<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>) {
        let Some(Reverse((.., event))) = self.events.pop() else { return };
        match event {
            Event::Sent(port) => self.sent(now, port, stations),
            Event::Comes(port, number) => {
                if let Some(copy) = self.copies.remove(number) {
                    self.comes(now, port, copy, stations);
                }
            }
            Event::Granted(port, bytes) => {
                self.ports[port].credit += i64::from(bytes);
                self.send(now, port, stations);
            }
            Event::Told(port, stopped) => {
                self.ports[port].stopped = stopped;
                self.send(now, port, stations);
            }
            Event::Ready(port) => {
                if self.ports[port].ready <= now {
                    self.ports[port].ready = Time::NEVER;
                }
                self.send(now, port, stations);
            }
        }
    }
}
