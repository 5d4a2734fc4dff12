//! A ring on which a token goes round: who has it may send.

use super::alone::{Alone, Ask, ByFormula, Rule, Saturated, Turn};
use super::ring::{Ring, time_of};
use super::{Access, AccessSettings, BusSettings, Ground, MediumSpec, StationId, Stations};
use crate::discipline::settings::keys;
use std::ops::RangeInclusive;
use trunkline_core::{Carried, Span, Time};

keys! {
    /// A ring with a token (IEEE 802.5): a station that has it sends until its holding time is over.
    pub struct TokenRingSettings {
        /// What each station delays what passes it.
        station_latency: Span = Span::from_nanos(250), "station_latency" in LATENCIES;
        /// How long a station may hold the token: a frame beyond the first has to end by then.
        hold: Span = Span::from_millis(10), "hold" in HOLDS;
        /// Bits of a token.
        token_bits: u32 = 24, "token_bits" in BITS;
        /// Whether the token leaves right behind the last frame, not only when that has begun to come back.
        early_release: bool = false;
    }
}

const LATENCIES: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(1);
const HOLDS: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(3600);
const BITS: RangeInclusive<u32> = 0..=1 << 20;

impl AccessSettings for TokenRingSettings {
    type Access = TokenRing;

    const TRIALS: &'static [&'static str] =
        &["", "hold=0s,early_release=true", "hold=1ms,station_latency=3us", "station_latency=0s"];

    const STATIONS_ALIKE: bool = false;

    fn by_formula(&self) -> Option<&dyn ByFormula> {
        Some(self)
    }

    /// A frame and its answer go once round together.
    fn without_turns(&self, medium: &MediumSpec) -> Option<(BusSettings, Span)> {
        Some((BusSettings::in_turns(), medium.delay.scaled(1, 2)))
    }

    fn build(self, ground: &Ground<'_>) -> TokenRing {
        TokenRing {
            settings: self,
            token: time_of(ground, self.token_bits),
            ring: Ring::new(ground, self.station_latency),
            wants: vec![None; ground.stations.len()],
            state: State::Free { from: StationId(0), since: Time::ZERO },
        }
    }
}

impl TokenRingSettings {
    /// When a station sends the token on behind a frame.
    fn released(&self, alone: &Alone, ring: &Ring, last: Turn) -> Time {
        let returned = if self.early_release { last.end } else { last.start + ring.round };
        last.end.max(returned) + alone.time_of(self.token_bits.into())
    }

    /// Frames of one length that a turn has room for.
    fn in_turn(&self, length: Span) -> u64 {
        (self.hold.as_nanos() / length.as_nanos().max(1)).max(1)
    }
}

impl ByFormula for TokenRingSettings {
    fn rule(&self) -> Rule {
        Rule {
            name: "for the token",
            formula: "next pass of the token − ready; to an idle ring half a rotation, the mean over all phases",
            source: "IEEE 802.5",
        }
    }

    fn phase(&self, alone: &Alone) -> Span {
        Ring::alone(alone, self.station_latency).round
    }

    fn turn(&self, alone: &Alone, before: Option<Turn>, ask: Ask) -> Result<Turn, String> {
        let (ring, own) = (Ring::alone(alone, self.station_latency), alone.length(&ask));
        let released = |last| self.released(alone, &ring, last);
        let follows = |last: Turn| last.end + own <= last.since + self.hold;
        Ok(ring.turn(before, (ask, own), released, follows))
    }

    fn way(&self, alone: &Alone, from: StationId, to: StationId) -> Span {
        Ring::alone(alone, self.station_latency).way(from, to)
    }

    fn once(&self, alone: &Alone, asks: &[Ask]) -> Result<Span, String> {
        let ring = Ring::alone(alone, self.station_latency);
        let turn = |ask: &Ask| {
            let only = Turn::at(Time::ZERO, *ask, alone.length(ask));
            self.released(alone, &ring, only).since(Time::ZERO)
        };
        Ok(asks.iter().map(turn).sum::<Span>() + ring.round)
    }

    fn saturated(&self, alone: &Alone, asks: &[Ask]) -> Result<Saturated, String> {
        let ring = Ring::alone(alone, self.station_latency);
        let turn = |ask: &Ask| {
            let length = alone.length(ask);
            let before = length.scaled(self.in_turn(length) - 1, 1);
            let last = Turn::at(Time::ZERO, *ask, length);
            before + self.released(alone, &ring, last).since(Time::ZERO)
        };
        Ok(Saturated {
            cycle: asks.iter().map(turn).sum::<Span>() + ring.round,
            frames: asks.iter().map(|ask| self.in_turn(alone.length(ask)) as f64).collect(),
            formula: "Σ (frames of a turn, the last at least a rotation without early release, + token) + rotation",
            source: "path.md, token-ring; the cycle of Takagi 1988",
            estimate: None,
        })
    }
}

/// Stations in a ring, in the order of their declaration, evenly apart.
///
/// A token that nobody takes goes round in the time of the ring: its propagation delay and the latency of each station.
/// A station takes it as it passes, sends its frames, and sends a new token behind them: without early release not before
/// the last frame has begun to come back to it. A frame is heard by the station that it is for on its way round.
#[derive(Debug)]
pub(super) struct TokenRing {
    settings: TokenRingSettings,
    /// What it takes to send a token.
    token: Span,
    ring: Ring,
    /// From when on each station has something to send.
    wants: Vec<Option<Time>>,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The token left a station and goes round.
    Free { from: StationId, since: Time },
    /// A station has it since `taken`, and sends.
    Held { by: StationId, taken: Time, frame: Frame },
}

/// A frame that is being sent.
#[derive(Debug, Clone, Copy)]
struct Frame {
    start: Time,
    end: Time,
    length: Span,
}

impl TokenRing {
    fn send<P: Carried>(
        &mut self,
        now: Time,
        by: StationId,
        taken: Time,
        stations: &mut Stations<P>,
    ) {
        let length = stations.length(by);
        let frame = Frame { start: now, end: stations.send(now, by), length };
        self.state = State::Held { by, taken, frame };
    }

    /// A station that wants to send takes the token.
    fn take<P: Carried>(&mut self, now: Time, by: StationId, stations: &mut Stations<P>) {
        self.wants[by.0] = None;
        match stations.fetch(now, by) {
            true => self.send(now, by, now, stations),
            false => self.wants[by.0] = stations.wants_later(by, now),
        }
    }

    /// A frame ends: another follows, or the token goes on.
    fn finish<P: Carried>(
        &mut self,
        (by, taken): (StationId, Time),
        Frame { start, end, length }: Frame,
        stations: &mut Stations<P>,
    ) {
        stations.deliver(by, end, length, |to| self.ring.way(by, to));
        if stations.fetch(end, by) && end + stations.length(by) <= taken + self.settings.hold {
            return self.send(end, by, taken, stations);
        }
        self.wants[by.0] = stations.wants(by, end);
        let returned = if self.settings.early_release { end } else { start + self.ring.round };
        self.state = State::Free { from: by, since: end.max(returned) + self.token };
    }
}

impl Access for TokenRing {
    fn asks<P: Carried>(&mut self, now: Time, station: StationId, stations: &mut Stations<P>) {
        let holds = matches!(self.state, State::Held { by, .. } if by == station);
        if !holds {
            let wants = &mut self.wants[station.0];
            *wants = Some(stations.asks_from(station, now, *wants));
        }
    }

    fn next(&self) -> Option<Time> {
        match self.state {
            State::Free { from, since } => {
                self.ring.taker(from, since, &self.wants).map(|(at, _)| at)
            }
            State::Held { frame, .. } => Some(frame.end),
        }
    }

    fn act<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>) {
        match self.state {
            State::Free { from, since } => {
                if let Some((_, by)) = self.ring.taker(from, since, &self.wants) {
                    self.take(now, by, stations);
                }
            }
            State::Held { by, taken, frame } => self.finish((by, taken), frame, stations),
        }
    }
}
