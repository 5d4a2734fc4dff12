//! A bus: one device at a time sends a burst, and the first in order that waits is next.

use super::alone::{Alone, Ask, ByFormula, Rule, Saturated, Turn};
use super::{Access, AccessSettings, Ground, MediumSpec, StationId, Stations};
use crate::discipline::Keys;
use crate::discipline::settings::{choice, keys};
use std::ops::RangeInclusive;
use trunkline_core::{Carried, Span, Time};

keys! {
    /// A computer's bus, such as PCI: one device at a time sends a burst behind an overhead, by priority or in turn (LDS 2001 §3.7, §3.8).
    pub struct BusSettings {
        /// Time of each burst beside that of its bytes: arbitration, address, first access.
        overhead: Span = Span::ZERO, "overhead" in OVERHEADS;
        /// Most bytes of a burst. A larger frame takes several, and others may come between them.
        burst: u32 as Bytes = 1 << 20, "burst" in BURSTS;
        /// Who is next of those that wait: with listed the first in the list of stations, with turns the next one behind the last.
        order: Order = Order::Listed;
    }
}

choice! {
    /// Who is next of those that wait.
    pub enum Order {
        /// The first in the list of stations: a priority.
        Listed = "listed",
        /// The next in the list behind the one that sent last.
        Turns = "turns",
    }
}

const OVERHEADS: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(1);
const BURSTS: RangeInclusive<u32> = 1..=1 << 20;

impl AccessSettings for BusSettings {
    type Access = Bus;

    const TRIALS: &'static [&'static str] =
        &["", "overhead=240ns,burst=64", "overhead=1us,burst=300,order=turns"];

    const STATIONS_ALIKE: bool = false;

    fn by_formula(&self) -> Option<&dyn ByFormula> {
        Some(self)
    }

    fn without_turns(&self, medium: &MediumSpec) -> Option<(BusSettings, Span)> {
        let free = BusSettings { overhead: Span::ZERO, ..*self };
        (free != *self).then_some((free, medium.delay))
    }

    fn build(self, ground: &Ground<'_>) -> Bus {
        Bus {
            settings: self,
            delay: ground.medium.delay,
            asks: vec![None; ground.stations.len()],
            sent: vec![0; ground.stations.len()],
            sending: None,
            last: None,
            free: Time::ZERO,
        }
    }
}

impl BusSettings {
    /// One without overheads whose stations send a frame in turn.
    pub(super) fn in_turns() -> BusSettings {
        let bus = BusSettings::with_limit(super::spec::NO_LIMIT);
        BusSettings { order: Order::Turns, ..bus }
    }

    /// How long a frame keeps the bus, overheads included.
    fn keeps(&self, alone: &Alone, ask: &Ask) -> Span {
        self.overhead.scaled(ask.bytes.div_ceil(self.burst).max(1).into(), 1) + alone.length(ask)
    }
}

impl ByFormula for BusSettings {
    fn rule(&self) -> Rule {
        Rule {
            name: "overheads of its bursts",
            formula: "⌈bytes / burst⌉ × overhead",
            source: "LDS 2001 §3.7",
        }
    }

    fn turn(&self, alone: &Alone, before: Option<Turn>, ask: Ask) -> Result<Turn, String> {
        let start = before.map_or(ask.ready, |last| ask.ready.max(last.end));
        let end = start + self.keeps(alone, &ask);
        Ok(Turn { end, ..Turn::at(start, ask, alone.length(&ask)) })
    }

    fn once(&self, alone: &Alone, asks: &[Ask]) -> Result<Span, String> {
        Ok(asks.iter().map(|ask| self.keeps(alone, ask)).sum())
    }

    fn saturated(&self, alone: &Alone, asks: &[Ask]) -> Result<Saturated, String> {
        let cut = asks.iter().any(|ask| ask.bytes > self.burst);
        if asks.len() > 1 && cut && self.order == Order::Turns {
            return Err("frames of several bursts in turns".into());
        }
        let first = asks.iter().map(|ask| ask.by).min();
        let served = |ask: &Ask| self.order == Order::Turns || Some(ask.by) == first;
        Ok(Saturated {
            cycle: asks.iter().filter(|ask| served(ask)).map(|ask| self.keeps(alone, ask)).sum(),
            frames: asks.iter().map(|ask| f64::from(u8::from(served(ask)))).collect(),
            formula: "Σ (⌈bytes / burst⌉ × overhead + frame), of the first in the list alone if that is the order",
            source: "LDS 2001 §3.7",
            estimate: None,
        })
    }
}

/// A bus that carries a burst at a time.
///
/// A station asks for the bus from when it has something to send until that has gone. Between two bursts the bus goes to
/// the first in order of those that ask; nothing breaks into a burst. So a station behind others in the list waits for as
/// long as those have something.
#[derive(Debug)]
pub(super) struct Bus {
    settings: BusSettings,
    delay: Span,
    /// From when on each station asks.
    asks: Vec<Option<Time>>,
    /// Bytes that have gone of the frame that each station has in hand.
    sent: Vec<u32>,
    /// When the burst under way ends, whose it is, and how many bytes it has.
    sending: Option<(Time, StationId, u32)>,
    /// Who sent last, and until when.
    last: Option<StationId>,
    free: Time,
}

impl Bus {
    /// The station whose burst begins at `now`.
    fn chosen(&self, now: Time) -> Option<StationId> {
        let first = match (self.settings.order, self.last) {
            (Order::Turns, Some(last)) => last.0 + 1,
            _ => 0,
        };
        let count = self.asks.len();
        let waits = |&station: &usize| self.asks[station].is_some_and(|at| at <= now);
        (first..first + count).map(|place| place % count).find(waits).map(StationId)
    }

    fn begin<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>) {
        let Some(station) = self.chosen(now) else { return };
        if !stations.fetch(now, station) {
            self.asks[station.0] = stations.wants_later(station, now);
            return;
        }
        let (size, length) = (stations.size(station), stations.length(station));
        let before = self.sent[station.0];
        let bytes = self.settings.burst.min(size - before);
        let time = after(length, before + bytes, size) - after(length, before, size);
        self.sending = Some((now + self.settings.overhead + time, station, bytes));
    }

    fn end<P: Carried>(
        &mut self,
        (end, station, bytes): (Time, StationId, u32),
        stations: &mut Stations<P>,
    ) {
        (self.last, self.free) = (Some(station), end);
        self.sent[station.0] += bytes;
        if self.sent[station.0] < stations.size(station) {
            return;
        }
        self.sent[station.0] = 0;
        let length = stations.length(station);
        stations.deliver(station, end, length, |_| self.delay);
        self.asks[station.0] = stations.wants(station, end);
    }
}

/// How long the first `bytes` take of a frame of `size` that takes `length`.
fn after(length: Span, bytes: u32, size: u32) -> Span {
    if size == 0 { length } else { length.scaled(bytes.into(), size.into()) }
}

impl Access for Bus {
    fn asks<P: Carried>(&mut self, now: Time, station: StationId, stations: &mut Stations<P>) {
        let asks = &mut self.asks[station.0];
        *asks = Some(stations.asks_from(station, now, *asks));
    }

    fn next(&self) -> Option<Time> {
        if let Some((end, ..)) = self.sending {
            return Some(end);
        }
        self.asks.iter().flatten().min().map(|&at| at.max(self.free))
    }

    fn act<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>) {
        match self.sending.take() {
            Some(burst) => self.end(burst, stations),
            None => self.begin(now, stations),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Framing;
    use crate::medium::{AccessSpec, Medium, MediumSpec, StationId};
    use trunkline_core::{Channel, Packet, Rate, Seed, Span, Time};

    /// What comes over a bus of 8 Mbit/s, a byte a microsecond, as (station, time in microseconds), of frames offered as
    /// (microsecond, station, bytes) for the last station.
    fn come(settings: &str, offered: &[(u64, usize, u32)]) -> Vec<(usize, u64)> {
        let spec = MediumSpec {
            rate: Some(Rate::from_bits_per_second(8_000_000)),
            framing: Framing::None,
            delay: Span::ZERO,
            discipline: "fifo".parse().unwrap(),
            access: AccessSpec::read("bus", settings).unwrap(),
        };
        let mut bus =
            Medium::new(&spec, Seed(1), "pci", &["receive", "transmit", "disk", "memory"]);
        for &(at, from, size) in offered {
            let at = Time::ZERO + Span::from_micros(at);
            let packet = Packet::new(Channel(from as u64), size, at, ());
            bus.offer(at, StationId(from), StationId(3), packet);
        }
        let mut come = Vec::new();
        while let Some(at) = bus.next_event() {
            bus.advance(at);
            while let Some(heard) = bus.take(at) {
                come.push((heard.from.0, heard.release.as_nanos() / 1000));
            }
        }
        come
    }

    #[test]
    fn the_first_in_the_list_goes_first_between_bursts() {
        // The disk's 30 bytes are three bursts of 10 behind 2 us each. Receive comes during the first and waits for its
        // end, transmit behind it.
        let offered = [(0, 2, 30), (5, 1, 10), (6, 0, 10)];
        assert_eq!(come("overhead=2us,burst=10", &offered), [(0, 24), (1, 36), (2, 60)]);
        let whole = come("overhead=2us", &offered);
        assert_eq!(whole, [(2, 32), (0, 44), (1, 56)], "nothing breaks into a burst");
    }

    #[test]
    fn in_turns_nobody_waits_for_long() {
        let offered = [(0, 0, 10), (0, 0, 10), (0, 0, 10), (1, 1, 10)];
        assert_eq!(come("overhead=0ns", &offered), [(0, 10), (0, 20), (0, 30), (1, 40)]);
        assert_eq!(come("order=turns", &offered), [(0, 10), (1, 20), (0, 30), (0, 40)]);
    }
}
