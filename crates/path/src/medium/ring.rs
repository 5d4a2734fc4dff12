//! What rings with a token have in common: where their stations lie, and who meets the token when.

use super::alone::{Alone, Ask, Turn};
use super::{Ground, StationId};
use trunkline_core::{Span, Time};

/// Stations in a ring, in the order of their declaration, evenly apart.
#[derive(Debug)]
pub(super) struct Ring {
    /// From the first station to each.
    places: Vec<Span>,
    /// Once round.
    pub round: Span,
}

impl Ring {
    /// A ring of as many stations as `ground` has, each of which delays what passes it by `latency`.
    pub fn new(ground: &Ground<'_>, latency: Span) -> Ring {
        Ring::of(ground.medium.delay, ground.stations.len(), latency)
    }

    /// The same as formulas see it.
    pub fn alone(alone: &Alone, latency: Span) -> Ring {
        Ring::of(alone.delay, alone.stations, latency)
    }

    fn of(delay: Span, count: usize, latency: Span) -> Ring {
        let count = count as u64;
        let place = |station: u64| delay.scaled(station, count) + latency.scaled(station, 1);
        Ring { places: (0..count).map(place).collect(), round: place(count) }
    }

    /// How long bits take from one station to another: once round from a station to itself.
    pub fn way(&self, from: StationId, to: StationId) -> Span {
        let (one, other) = (self.places[from.0], self.places[to.0]);
        if to > from { other.saturating_sub(one) } else { (other + self.round).saturating_sub(one) }
    }

    /// When a token that left `from` at `since` first passes `to` at `wants` or later.
    pub fn passes(&self, from: StationId, since: Time, to: StationId, wants: Time) -> Time {
        let first = since + self.way(from, to);
        let (late, round) = (wants.since(first).as_nanos(), self.round.as_nanos());
        match round {
            0 => first.max(wants),
            _ => first + self.round.scaled(late.div_ceil(round), 1),
        }
    }

    /// When a frame is sent if nobody else wants the token, which the station of the frame `before` sent on at `released`
    /// unless the next one `follows` in the same turn. Without a frame before, the token is just there.
    pub fn turn(
        &self,
        before: Option<Turn>,
        (ask, own): (Ask, Span),
        released: impl Fn(Turn) -> Time,
        follows: impl Fn(Turn) -> bool,
    ) -> Turn {
        match before {
            None => Turn::at(ask.ready, ask, own),
            Some(last) if last.by == ask.by && ask.ready <= last.end && follows(last) => {
                Turn { since: last.since, ..Turn::at(last.end, ask, own) }
            }
            Some(last) => {
                Turn::at(self.passes(last.by, released(last), ask.by, ask.ready), ask, own)
            }
        }
    }

    /// Who takes a token next that left `from` at `since`, and when; each wants it from an instant on. At one instant it
    /// comes to the nearest station first.
    pub fn taker(
        &self,
        from: StationId,
        since: Time,
        wants: &[Option<Time>],
    ) -> Option<(Time, StationId)> {
        let taken = wants.iter().enumerate().filter_map(|(index, wants)| {
            let station = StationId(index);
            Some((self.passes(from, since, station, (*wants)?), self.steps(from, station), station))
        });
        taken.min().map(|(at, _, station)| (at, station))
    }

    /// Stations between one and another, on the way round.
    pub fn steps(&self, from: StationId, to: StationId) -> usize {
        let count = self.places.len();
        (to.0 + count - from.0 - 1) % count
    }
}

/// How long `bits` take to send on the medium; no time without a rate.
pub(super) fn time_of(ground: &Ground<'_>, bits: u32) -> Span {
    const SECOND: u128 = 1_000_000_000;
    let Some(rate) = ground.medium.rate else { return Span::ZERO };
    Span::from_nanos((u128::from(bits) * SECOND).div_ceil(rate.bits_per_second().into()) as u64)
}
