//! Shared media: several stations, of which each hears what the others send.
//!
//! A [`Medium`] is what its stations have in common (`Stations`: queues, counts, what is under way) and the `Access` by
//! which they take turns. Nothing here reads a clock.

mod alone;
mod bus;
mod csma_cd;
mod fddi;
mod half_duplex;
mod leaf_spine;
mod list;
mod ring;
mod slab;
mod spec;
mod stations;
mod token_ring;
mod transit;
mod wideband;

pub use alone::{Alone, Ask, Rule, Saturated, Turn};
pub use spec::{MediumKind, MediumSpec, MediumTextError};
pub use stations::{Heard, StationId};

use crate::discipline::Keys;
use crate::discipline::settings::Given;
use crate::{Backlog, SpecError};
use alone::ByFormula;
use list::media;
use stations::Stations;
use trunkline_core::{Carried, Channel, Counts, DropCause, Hosts, Rate, Seed, Span, Time};

// A medium is its file, its `mod` above and its line here: its name, and its file's access and settings.
media! {
    "half-duplex" => half_duplex::{HalfDuplex, HalfDuplexSettings},
    "csma-cd" => csma_cd::{CsmaCd, CsmaCdSettings},
    "token-ring" => token_ring::{TokenRing, TokenRingSettings},
    "fddi" => fddi::{Fddi, FddiSettings},
    "bus" => bus::{Bus, BusSettings},
    "wideband" => wideband::{Wideband, WidebandSettings},
    "leaf-spine" => leaf_spine::{LeafSpine, LeafSpineSettings},
}

pub use leaf_spine::{Flow, PortLine};

/// How the stations of a medium take turns: what one kind of medium has of its own.
///
/// It is told the time. It takes frames from their stations, sends them, and delivers them or gives them up.
trait Access {
    /// Hears that `station` has a packet more at `now`.
    fn asks<P: Carried>(&mut self, now: Time, station: StationId, stations: &mut Stations<P>);

    /// When something happens next without anybody asking.
    fn next(&self) -> Option<Time>;

    /// The most bytes that a buffer of its own has held. `None` if it has none.
    fn most_held(&self) -> Option<u64> {
        None
    }

    /// Does what happens at `now`, when that has come.
    fn act<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>);
}

/// The settings of an access, which stand in its file.
trait AccessSettings: Keys + Copy {
    /// The access.
    type Access: Access;

    /// Settings as text, `key=value,…`, under which property tests try it.
    const TRIALS: &'static [&'static str];

    /// Most stations.
    const MOST_STATIONS: usize = 1024;

    /// Whether the place of a station among the others changes nothing, as it does on a ring.
    const STATIONS_ALIKE: bool = true;

    /// The access of an idle medium.
    fn build(self, ground: &Ground<'_>) -> Self::Access;

    /// A key that changes nothing beside the others as they were given, with the remedy. `None` if there is none.
    fn idle(&self, _medium: &MediumSpec) -> Option<&'static str> {
        None
    }

    /// Bytes of the largest frames of which nothing is lost, if larger ones may be.
    fn lossless_up_to(&self, _medium: &MediumSpec) -> Option<u64> {
        None
    }

    /// What formulas know of how its stations take turns. `None` if nothing.
    fn by_formula(&self) -> Option<&dyn ByFormula> {
        None
    }

    /// The lines that a frame crosses from one station to another, if it is a fabric of switches.
    fn ports(&self, _alone: &Alone, _from: StationId, _to: StationId) -> Option<Vec<PortLine>> {
        None
    }

    /// A bus that carries the same frames and on which taking turns costs nothing, with the propagation delay between two of its
    /// stations, in the mean. `None` if stations do not take turns, or for nothing.
    fn without_turns(&self, medium: &MediumSpec) -> Option<(BusSettings, Span)> {
        Some((BusSettings::in_turns(), medium.delay))
    }

    /// These settings for a medium so many times as fast: rates, and what goes in a stated time, grow with it.
    fn faster(self, _times: u32) -> Self {
        self
    }

    /// These settings with buffers of the medium's own that hold whatever comes.
    fn unlimited(self) -> Self {
        self
    }

    /// Checks what ranges alone do not say.
    ///
    /// # Errors
    /// Settings at odds with those of the medium.
    fn check(&self, _medium: &MediumSpec) -> Result<(), SpecError> {
        Ok(())
    }

    /// Checks what depends on the number of stations, which is in range.
    ///
    /// # Errors
    /// Settings at odds with so many stations.
    fn check_stations(&self, _medium: &MediumSpec, _count: usize) -> Result<(), SpecError> {
        Ok(())
    }
}

/// What an access is built on.
#[derive(Debug, Clone, Copy)]
struct Ground<'a> {
    /// The medium.
    medium: &'a MediumSpec,
    /// The seed of the run.
    seed: Seed,
    /// The name of the medium.
    name: &'a str,
    /// The names of its stations, in their order.
    stations: &'a [&'a str],
}

/// A medium at work, and the packets `P` that it carries.
///
/// The engine calls [`offer`](Medium::offer) for each packet in order of time, [`advance`](Medium::advance) so that the
/// medium works up to an instant, [`take`](Medium::take) until it answers `None`, and [`dropped`](Medium::dropped) to get
/// back what was given up. A packet's ledger has its own bits as transmission, the way to the station that it is for as
/// propagation, and all else (its queue, others' turns, collisions) as queue.
#[derive(Debug)]
pub struct Medium<P> {
    stations: Stations<P>,
    access: AnyAccess,
    clock: Time,
}

impl<P: Carried> Medium<P> {
    /// An idle medium with a station for each of `stations`, by their names. Randomness comes from the streams of `seed`
    /// under the name of the medium and that of the station.
    pub fn new(spec: &MediumSpec, seed: Seed, name: &str, stations: &[&str]) -> Medium<P> {
        let ground = Ground { medium: spec, seed, name, stations };
        Medium {
            stations: Stations::new(&ground),
            access: AnyAccess::new(&spec.access, &ground),
            clock: Time::ZERO,
        }
    }

    /// Tells the queue of `from` which hosts the packets of `channel` go between.
    pub fn introduce(&mut self, from: StationId, channel: Channel, hosts: Hosts) {
        self.stations.introduce(from, channel, hosts);
    }

    /// Takes a packet of `from` for `to` at `at`, or with the last thing that has happened if that was later.
    pub fn offer(&mut self, at: Time, from: StationId, to: StationId, packet: P) {
        self.advance(at);
        self.clock = self.clock.max(at);
        self.stations.enqueue(self.clock, from, to, packet);
        self.access.asks(self.clock, from, &mut self.stations);
        self.advance(self.clock);
    }

    /// Takes a packet of `from` for all other stations, as [`offer`](Medium::offer). Each hears it when it comes by, and all
    /// but one count as duplicated. A station alone is heard by nobody: then nothing happens.
    pub fn offer_to_all(&mut self, at: Time, from: StationId, packet: P)
    where
        P: Clone,
    {
        if self.stations.count() < 2 {
            return;
        }
        self.advance(at);
        self.clock = self.clock.max(at);
        self.stations.enqueue_for_all(self.clock, from, packet);
        self.access.asks(self.clock, from, &mut self.stations);
        self.advance(self.clock);
    }

    /// Lets the stations work up to `to`.
    pub fn advance(&mut self, to: Time) {
        while let Some(at) = self.access.next()
            && at <= to
        {
            self.clock = self.clock.max(at);
            self.access.act(self.clock, &mut self.stations);
        }
    }

    /// Takes the next packet that has come to its station by `now`.
    pub fn take(&mut self, now: Time) -> Option<Heard<P>> {
        self.stations.take(now)
    }

    /// Takes out what was given up since the last call: its station, the packet and the cause.
    pub fn dropped(&mut self) -> impl Iterator<Item = (StationId, P, DropCause)> + '_ {
        self.stations.dropped()
    }

    /// Whether anything has been given up since the last call of [`dropped`](Medium::dropped).
    pub fn has_dropped(&self) -> bool {
        self.stations.has_dropped()
    }

    /// When the medium next needs anything at all: [`advance`](Medium::advance), or [`take`](Medium::take) for what has
    /// come to its station.
    pub fn next_event(&self) -> Option<Time> {
        self.access.next().into_iter().chain(self.stations.next_release()).min()
    }

    /// What became of the packets that a station was given. They count as delivered when [`take`](Medium::take) hands
    /// them out.
    pub fn counts(&self, station: StationId) -> Counts {
        self.stations.counts(station)
    }

    /// How long a station has been sending what has come to its stations, or was lost on its way there: a frame for all
    /// counts once. What collided does not count.
    pub fn busy(&self, station: StationId) -> Span {
        self.stations.busy(station)
    }

    /// The most bytes that one buffer of a switch has held at once, of a medium with switches: by `leaf-spine` of what came
    /// in at a port, or with `flow = "drop"` of what waited to leave by one.
    pub fn most_held(&self) -> Option<u64> {
        self.access.most_held()
    }

    /// What waits at a station, with what it is sending.
    pub fn backlog(&self, station: StationId) -> Backlog {
        self.stations.backlog(station)
    }
}
