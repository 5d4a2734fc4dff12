//! A ring with a timed token: what a station may send depends on how early the token comes.

use super::alone::{Alone, Ask, ByFormula, Rule, Saturated, Turn};
use super::ring::{Ring, time_of};
use super::{Access, AccessSettings, BusSettings, Ground, MediumSpec, StationId, Stations};
use crate::SpecError;
use crate::discipline::settings::keys;
use std::ops::RangeInclusive;
use trunkline_core::{Carried, Probability, Span, Time};

keys! {
    /// A ring with a timed token, FDDI (ANSI X3.139 §8): a station sends as long as the token came early.
    pub struct FddiSettings {
        /// Target token rotation time, TTRT: the mean rotation is no longer, and none takes twice as long.
        ttrt: Span = Span::from_millis(8), "ttrt" in TARGETS;
        /// Share of the TTRT in which the stations may send in each rotation however late the token is, each as much.
        synchronous: Probability = Probability::NEVER;
        /// What each station delays what passes it.
        station_latency: Span = Span::from_micros(1), "station_latency" in LATENCIES;
        /// Bits of a token with its preamble.
        token_bits: u32 = 88, "token_bits" in BITS;
    }
}

const TARGETS: RangeInclusive<Span> = Span::from_micros(10)..=Span::from_secs(10);
const LATENCIES: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(1);
const BITS: RangeInclusive<u32> = 0..=1 << 20;

/// The share of a rate from which on a note tells how much more it may be.
const TOLD: f64 = 0.005;

impl AccessSettings for FddiSettings {
    type Access = Fddi;

    const TRIALS: &'static [&'static str] = &[
        "",
        "ttrt=500us",
        "ttrt=2ms,synchronous=50%",
        "ttrt=1ms,synchronous=90%,station_latency=0s,token_bits=0",
    ];

    const STATIONS_ALIKE: bool = false;

    fn check_stations(&self, medium: &MediumSpec, count: usize) -> Result<(), SpecError> {
        let (ttrt, delay, each) = (self.ttrt, medium.delay, self.station_latency);
        if delay + each.scaled(count as u64, 1) >= ttrt {
            return Err(SpecError::Conflict(format!(
                "a ttrt of {ttrt} leaves no time to send: the ring takes {delay} and a station_latency of {each} for each of {count} stations; give a longer ttrt"
            )));
        }
        Ok(())
    }

    fn by_formula(&self) -> Option<&dyn ByFormula> {
        Some(self)
    }

    /// A frame and its answer go once round together.
    fn without_turns(&self, medium: &MediumSpec) -> Option<(BusSettings, Span)> {
        Some((BusSettings::in_turns(), medium.delay.scaled(1, 2)))
    }

    fn build(self, ground: &Ground<'_>) -> Fddi {
        let count = ground.stations.len();
        let share = self.ttrt.as_nanos() as f64 * self.synchronous.as_f64() / count as f64;
        Fddi {
            ttrt: self.ttrt,
            synchronous: Span::from_nanos(share as u64),
            token: time_of(ground, self.token_bits),
            ring: Ring::new(ground, self.station_latency),
            wants: vec![None; count],
            due: vec![Time::ZERO + self.ttrt; count],
            state: State::Free { from: StationId(0), since: Time::ZERO },
        }
    }
}

impl FddiSettings {
    /// A rotation in which so many stations send the token on.
    fn rotation(&self, alone: &Alone, tokens: usize) -> Span {
        let round = Ring::alone(alone, self.station_latency).round;
        round + alone.time_of(self.token_bits.into()).scaled(tokens as u64, 1)
    }

    /// Tokens that stations which always have frames send on in a rotation: each of them one, but no more than have room with
    /// a frame each. A token that is late leaves its station without one, and none sends less than a frame.
    fn tokens(&self, alone: &Alone, asks: &[Ask]) -> f64 {
        let frames: Span = asks.iter().map(|ask| alone.length(ask)).sum();
        let tokens = alone.time_of(self.token_bits.into()).scaled(asks.len() as u64, 1);
        let count = asks.len() as f64;
        let each = (frames + tokens).as_nanos() as f64 / count;
        let room = self.ttrt.saturating_sub(self.rotation(alone, 0)).as_nanos() as f64;
        count.min(room / each.max(1.0))
    }
}

impl ByFormula for FddiSettings {
    fn rule(&self) -> Rule {
        Rule {
            name: "for the token",
            formula: "next pass of the token − ready; to an idle ring half a rotation, the mean over all phases",
            source: "ANSI X3.139 §8; Jain 1990",
        }
    }

    fn phase(&self, alone: &Alone) -> Span {
        self.rotation(alone, 0)
    }

    fn turn(&self, alone: &Alone, before: Option<Turn>, ask: Ask) -> Result<Turn, String> {
        let (ring, own) = (Ring::alone(alone, self.station_latency), alone.length(&ask));
        // Each of two stations has a turn between two visits of the token: of an answer of the protocol and a message, or of
        // the packets of one.
        let held = before
            .filter(|last| last.by == ask.by)
            .map_or(Span::ZERO, |last| last.end.since(last.since));
        if self.rotation(alone, 2) + held.scaled(2, 1) + own.scaled(4, 1) >= self.ttrt {
            return Err(format!(
                "tokens that may come late, with frames of {own} and a ttrt of {}",
                self.ttrt
            ));
        }
        let released = |last: Turn| last.end + alone.time_of(self.token_bits.into());
        Ok(ring.turn(before, (ask, own), released, |_| true))
    }

    fn way(&self, alone: &Alone, from: StationId, to: StationId) -> Span {
        Ring::alone(alone, self.station_latency).way(from, to)
    }

    fn once(&self, alone: &Alone, asks: &[Ask]) -> Result<Span, String> {
        let frames: Span = asks.iter().map(|ask| alone.length(ask)).sum();
        let all = frames + self.rotation(alone, asks.len());
        match all < self.ttrt {
            true => Ok(all),
            false => Err(format!(
                "tokens that may come late, rotations of {all} with a ttrt of {}",
                self.ttrt
            )),
        }
    }

    /// n (T − D) / (n T + D), the part of the time in which n stations send.
    fn saturated(&self, alone: &Alone, asks: &[Ask]) -> Result<Saturated, String> {
        if !self.synchronous.is_never() {
            return Err("synchronous time beside asynchronous".into());
        }
        let tokens = self.tokens(alone, asks);
        let token = alone.time_of(self.token_bits.into()).as_nanos() as f64;
        let around = self.rotation(alone, 0) + Span::from_nanos((tokens * token) as u64);
        let holds = self.ttrt.saturating_sub(around).as_nanos() as f64;
        let frames = |ask: &Ask| holds / (alone.length(ask).as_nanos() as f64).max(1.0);
        let longest = asks.iter().map(|ask| alone.length(ask)).max().unwrap_or_default();
        let mut estimate = format!(
            "a frame begun is sent whole, by which a turn of {} is up to {longest} longer",
            Span::from_nanos(holds as u64)
        );
        let fewer = (tokens - 1.0) * token / holds;
        if fewer > TOLD {
            estimate += &format!(
                "; turns become more and shorter until {tokens:.0} stations send in a rotation, and before that they carry up to {:.0} % more",
                fewer * 100.0
            );
        }
        Ok(Saturated {
            cycle: self.ttrt.scaled(asks.len() as u64, 1) + around,
            frames: asks.iter().map(frames).collect(),
            formula: "n + 1 rotations of n TTRT + D in all, in which each of n stations sends for TTRT − D",
            source: "Jain 1990; Dykeman and Bux 1988",
            estimate: Some(estimate),
        })
    }
}

/// Stations in a ring, in the order of their declaration, evenly apart.
///
/// Each expects the token back a TTRT after it came. If it comes before, the station may begin frames for as long as it
/// is early (asynchronous); one that has begun is sent whole. If it comes late, the next is expected so much earlier, and
/// nothing is begun. In either case the station first sends what fits into its synchronous time. Behind its last frame it
/// sends the token on. No rotation takes 2 TTRT if the synchronous times, the ring's latency, a longest frame and a token
/// are together no longer than TTRT (Sevcik and Johnson, "Cycle time properties of the FDDI token ring protocol", 1987).
#[derive(Debug)]
pub(super) struct Fddi {
    ttrt: Span,
    /// Each station's synchronous time of a rotation.
    synchronous: Span,
    /// What it takes to send a token.
    token: Span,
    ring: Ring,
    /// From when on each station has something to send.
    wants: Vec<Option<Time>>,
    /// When each station expects the token at the latest, if that is to be early.
    due: Vec<Time>,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The token left a station and goes round.
    Free { from: StationId, since: Time },
    /// A station has it, and sends until `end` a frame that takes `length`.
    Held { by: StationId, left: Left, end: Time, length: Span },
}

/// What a station may still send with the token that it has.
#[derive(Debug, Clone, Copy)]
struct Left {
    synchronous: Span,
    asynchronous: Span,
}

impl Left {
    /// Takes a frame of `length` off. Whether it may be sent.
    fn take(&mut self, length: Span) -> bool {
        if length <= self.synchronous {
            self.synchronous = self.synchronous.saturating_sub(length);
            return true;
        }
        let may = !self.asynchronous.is_zero();
        self.asynchronous = self.asynchronous.saturating_sub(length);
        may
    }
}

impl Fddi {
    /// The token comes to a station. Answers how early it is.
    fn comes(&mut self, at: Time, station: StationId) -> Span {
        let due = &mut self.due[station.0];
        let early = due.since(at);
        // A late token has used up a part of the next rotation.
        *due = if at < *due { at + self.ttrt } else { (*due + self.ttrt).max(at) };
        early
    }

    /// The token passes all stations on its way from `from`, which it left at `since`, until `by` takes it at `at`.
    fn goes_round(&mut self, from: StationId, since: Time, (at, by): (Time, StationId)) {
        for station in (0..self.due.len()).map(StationId) {
            let nearer = self.ring.steps(from, station) < self.ring.steps(from, by);
            let until = if nearer { at } else { at.before(Span::from_nanos(1)) };
            let first = self.ring.passes(from, since, station, Time::ZERO);
            if first <= until {
                self.passes(station, first, until);
            }
        }
    }

    /// The token passes a station at `first`, and again after each round until `until`.
    fn passes(&mut self, station: StationId, first: Time, until: Time) {
        let round = self.ring.round.max(Span::from_nanos(1));
        let rounds = until.since(first).as_nanos() / round.as_nanos();
        // Behind a late token the next may be late too, but no more: an idle round is shorter than the TTRT.
        for number in 0..=rounds.min(2) {
            self.comes(first + round.scaled(number, 1), station);
        }
        if rounds > 2 {
            self.due[station.0] = first + round.scaled(rounds, 1) + self.ttrt;
        }
    }

    /// A token comes to a station that wants to send.
    fn take<P: Carried>(&mut self, now: Time, by: StationId, stations: &mut Stations<P>) {
        let asynchronous = self.comes(now, by);
        let mut left = Left { synchronous: self.synchronous, asynchronous };
        self.wants[by.0] = None;
        if !stations.fetch(now, by) {
            self.wants[by.0] = stations.wants_later(by, now);
        } else if left.take(stations.length(by)) {
            return self.send(now, by, left, stations);
        } else {
            self.wants[by.0] = Some(now);
        }
        self.state = State::Free { from: by, since: now };
    }

    fn send<P: Carried>(
        &mut self,
        now: Time,
        by: StationId,
        left: Left,
        stations: &mut Stations<P>,
    ) {
        let length = stations.length(by);
        self.state = State::Held { by, left, end: stations.send(now, by), length };
    }

    /// A frame ends: another follows, or the token goes on.
    fn finish<P: Carried>(
        &mut self,
        by: StationId,
        (mut left, end, length): (Left, Time, Span),
        stations: &mut Stations<P>,
    ) {
        stations.deliver(by, end, length, |to| self.ring.way(by, to));
        if stations.fetch(end, by) && left.take(stations.length(by)) {
            return self.send(end, by, left, stations);
        }
        self.wants[by.0] = stations.wants(by, end);
        self.state = State::Free { from: by, since: end + self.token };
    }
}

impl Access for Fddi {
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
            State::Held { end, .. } => Some(end),
        }
    }

    fn act<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>) {
        match self.state {
            State::Free { from, since } => {
                if let Some((at, by)) = self.ring.taker(from, since, &self.wants) {
                    self.goes_round(from, since, (at, by));
                    self.take(now, by, stations);
                }
            }
            State::Held { by, left, end, length } => self.finish(by, (left, end, length), stations),
        }
    }
}
