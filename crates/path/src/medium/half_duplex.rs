//! Half duplex: one channel for all, without collisions.

use super::alone::{Alone, Ask, ByFormula, Rule, Saturated, Turn};
use super::{Access, AccessSettings, BusSettings, Ground, MediumSpec, StationId, Stations};
use crate::discipline::settings::keys;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use trunkline_core::{Carried, Span, Time};

keys! {
    /// One channel for all directions. The stations send in the order of asking, one frame a turn, without collisions.
    pub struct HalfDuplexSettings {
        /// Rest of the channel between the frames of two stations, when all have heard the first.
        turnaround: Span = Span::ZERO, "turnaround" in TURNAROUNDS;
    }
}

const TURNAROUNDS: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(10);

impl AccessSettings for HalfDuplexSettings {
    type Access = HalfDuplex;

    const TRIALS: &'static [&'static str] = &["", "turnaround=17us"];

    fn by_formula(&self) -> Option<&dyn ByFormula> {
        Some(self)
    }

    fn without_turns(&self, medium: &MediumSpec) -> Option<(BusSettings, Span)> {
        let costs = !(self.turnaround + medium.delay).is_zero();
        costs.then_some((BusSettings::in_turns(), medium.delay))
    }

    fn build(self, ground: &Ground<'_>) -> HalfDuplex {
        HalfDuplex {
            delay: ground.medium.delay,
            turnaround: self.turnaround,
            asking: BTreeSet::new(),
            asks: vec![None; ground.stations.len()],
            sending: None,
            last: None,
            free: Time::ZERO,
        }
    }
}

impl ByFormula for HalfDuplexSettings {
    fn rule(&self) -> Rule {
        Rule {
            name: "until the channel has turned round",
            formula: "last bit sent + delay + turnaround − ready, behind another station",
            source: "path.md, half-duplex",
        }
    }

    fn turn(&self, alone: &Alone, before: Option<Turn>, ask: Ask) -> Result<Turn, String> {
        let free = match before {
            None => ask.ready,
            Some(last) if last.by == ask.by => last.end,
            Some(last) => last.end + alone.delay + self.turnaround,
        };
        Ok(Turn::at(ask.ready.max(free), ask, alone.length(&ask)))
    }

    fn rest(&self, alone: &Alone) -> Option<Span> {
        Some(alone.delay + self.turnaround)
    }

    fn once(&self, alone: &Alone, asks: &[Ask]) -> Result<Span, String> {
        self.saturated(alone, asks).map(|all| all.cycle)
    }

    fn saturated(&self, alone: &Alone, asks: &[Ask]) -> Result<Saturated, String> {
        let rest = if asks.len() > 1 { alone.delay + self.turnaround } else { Span::ZERO };
        Ok(Saturated {
            cycle: asks.iter().map(|ask| alone.length(ask) + rest).sum(),
            frames: vec![1.0; asks.len()],
            formula: "Σ (frame + delay + turnaround), without the latter two for one station",
            source: "path.md, half-duplex",
            estimate: None,
        })
    }
}

/// One channel, on which one station sends at a time.
///
/// A station asks for the channel if it has something to send, once for each frame. The channel serves in the order of
/// asking, at one instant in the order of the stations' names; a station that has more asks anew behind those that wait.
/// The station that sent last may go on at once. Any other begins when the last bit has gone the whole way and the
/// turnaround time has passed. So nothing collides, and no station sends while it should listen.
#[derive(Debug)]
pub(super) struct HalfDuplex {
    delay: Span,
    turnaround: Span,
    /// Who asks, in the order of asking.
    asking: BTreeSet<(Time, usize, StationId)>,
    /// From when on each station asks; of the one that sends, from when on it asked.
    asks: Vec<Option<Time>>,
    /// Who sends, until when, and how long its frame is.
    sending: Option<(Time, StationId, Span)>,
    /// Who sent last, and until when.
    last: Option<StationId>,
    free: Time,
}

impl HalfDuplex {
    fn ask<P: Carried>(&mut self, at: Time, station: StationId, stations: &Stations<P>) {
        let rank = stations.rank(station);
        if let Some(before) = self.asks[station.0].replace(at) {
            self.asking.remove(&(before, rank, station));
        }
        self.asking.insert((at, rank, station));
    }

    fn begin<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>) {
        let Some((_, _, station)) = self.asking.pop_first() else { return };
        if stations.fetch(now, station) {
            let length = stations.length(station);
            self.sending = Some((stations.send(now, station), station, length));
            return;
        }
        self.asks[station.0] = None;
        if let Some(ready) = stations.wants_later(station, now) {
            self.ask(ready, station, stations);
        }
    }
}

impl Access for HalfDuplex {
    fn asks<P: Carried>(&mut self, now: Time, station: StationId, stations: &mut Stations<P>) {
        let asked = self.asks[station.0];
        let from = stations.asks_from(station, now, asked);
        if asked != Some(from) {
            self.ask(from, station, stations);
        }
    }

    fn next(&self) -> Option<Time> {
        if let Some((end, ..)) = self.sending {
            return Some(end);
        }
        let &(at, _, station) = self.asking.first()?;
        Some(match self.last {
            Some(last) if last != station => at.max(self.free + self.delay + self.turnaround),
            _ => at.max(self.free),
        })
    }

    fn act<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>) {
        let Some((end, station, length)) = self.sending.take() else {
            return self.begin(now, stations);
        };
        stations.deliver(station, end, length, |_| self.delay);
        (self.last, self.free) = (Some(station), end);
        self.asks[station.0] = None;
        if let Some(at) = stations.wants(station, end) {
            self.ask(at, station, stations);
        }
    }
}
