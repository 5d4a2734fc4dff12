//! Carrier sense with collision detection: the Ethernet of one cable.

use super::alone::{Alone, Ask, ByFormula, Rule, Saturated, Turn};
use super::{Access, AccessSettings, Ground, MediumSpec, StationId, Stations};
use crate::discipline::settings::keys;
use crate::{Framing, SpecError};
use std::ops::RangeInclusive;
use trunkline_core::{Carried, DropCause, Span, Stream, Time};

keys! {
    /// Carrier sense with collision detection and truncated binary exponential back-off (IEEE 802.3 §4).
    pub struct CsmaCdSettings {
        /// Bits of a slot: a frame lasts one at least, and back-off is counted in them.
        slot_bits: u32 = 512, "slot_bits" in SLOTS;
        /// Bits that a station still sends when it has found a collision.
        jam_bits: u32 = 32, "jam_bits" in BITS;
        /// Bits that a station sends in front of the jam in any case.
        preamble_bits: u32 = 64, "preamble_bits" in BITS;
        /// Bits of silence before a frame that follows a collision; other frames have it in their framing.
        gap_bits: u32 = 96, "gap_bits" in BITS;
        /// Collisions of one frame after which it is given up.
        attempts: u32 = 16, "attempts" in ATTEMPTS;
        /// Collisions of one frame up to which the range of its back-off doubles.
        backoff_limit: u32 = 10, "backoff_limit" in DOUBLINGS;
    }
}

const BITS: RangeInclusive<u32> = 0..=1 << 20;
const SLOTS: RangeInclusive<u32> = 1..=1 << 20;
const ATTEMPTS: RangeInclusive<u32> = 1..=1 << 16;
const DOUBLINGS: RangeInclusive<u32> = 0..=32;

impl CsmaCdSettings {
    /// Silence behind a frame, if its framing has none.
    fn gap_of(&self, alone: &Alone) -> Span {
        if alone.framing == Framing::Ethernet {
            Span::ZERO
        } else {
            alone.time_of(self.gap_bits.into())
        }
    }

    /// How long a frame takes, which lasts a slot at least.
    fn lasts(&self, alone: &Alone, ask: &Ask) -> Span {
        alone.length(ask).max(alone.time_of(self.slot_bits.into()))
    }

    /// How long `bits` take on the channel.
    fn time(medium: &MediumSpec, bits: u32) -> Span {
        const SECOND: u64 = 1_000_000_000;
        let rate = medium.rate.map_or(u64::MAX, |rate| rate.bits_per_second());
        Span::from_nanos((u128::from(bits) * u128::from(SECOND)).div_ceil(u128::from(rate)) as u64)
    }
}

impl AccessSettings for CsmaCdSettings {
    type Access = CsmaCd;

    const TRIALS: &'static [&'static str] = &[
        "slot_bits=1024",
        "slot_bits=2048,attempts=3",
        "slot_bits=900,backoff_limit=2,gap_bits=0",
    ];

    fn check(&self, medium: &MediumSpec) -> Result<(), SpecError> {
        let Some(rate) = medium.rate else {
            let problem = "csma-cd counts its slots in bits: give a rate, such as 10Mbit/s";
            return Err(SpecError::Conflict(problem.into()));
        };
        let (slot, way) = (CsmaCdSettings::time(medium, self.slot_bits), medium.delay);
        if slot < way + way {
            return Err(SpecError::Conflict(format!(
                "a delay of {way} to and fro is longer than the slot of {} bits at {rate}, {slot}: collisions would be missed; give a shorter delay or more slot_bits",
                self.slot_bits
            )));
        }
        Ok(())
    }

    fn by_formula(&self) -> Option<&dyn ByFormula> {
        Some(self)
    }

    fn build(self, ground: &Ground<'_>) -> CsmaCd {
        let medium = ground.medium;
        let [slot, jam, preamble, gap] =
            [self.slot_bits, self.jam_bits, self.preamble_bits, self.gap_bits]
                .map(|bits| CsmaCdSettings::time(medium, bits));
        let contender = |name: &&str| Contender {
            wants: None,
            tries: 0,
            is_sending: false,
            chance: ground.seed.stream(&format!("{} {name}/back-off", ground.name)),
        };
        CsmaCd {
            settings: self,
            delay: medium.delay,
            slot,
            jam,
            preamble,
            after_collision: gap,
            after_frame: if medium.framing == Framing::Ethernet { Span::ZERO } else { gap },
            contenders: ground.stations.iter().map(contender).collect(),
            heard: Vec::new(),
            next_start: None,
        }
    }
}

impl ByFormula for CsmaCdSettings {
    fn rule(&self) -> Rule {
        Rule {
            name: "until the channel is silent",
            formula: "last bit heard + gap − ready",
            source: "IEEE 802.3 §4.2.3.2",
        }
    }

    fn turn(&self, alone: &Alone, before: Option<Turn>, ask: Ask) -> Result<Turn, String> {
        let free = before.map_or(ask.ready, |last| {
            let way = if last.by == ask.by { Span::ZERO } else { alone.delay };
            last.end + way + self.gap_of(alone)
        });
        Ok(Turn::at(ask.ready.max(free), ask, self.lasts(alone, &ask)))
    }

    fn once(&self, alone: &Alone, asks: &[Ask]) -> Result<Span, String> {
        match asks {
            [ask] => Ok(self.lasts(alone, ask) + self.gap_of(alone)),
            _ => Err("waits for collisions, which chance decides".into()),
        }
    }

    /// E = P / (P + W T), W = (1 − A) / A, A = (1 − 1/Q)^(Q − 1), for Q stations that each try with probability 1/Q in slots
    /// of T that a collision fills.
    fn saturated(&self, alone: &Alone, asks: &[Ask]) -> Result<Saturated, String> {
        let stations = asks.len() as f64;
        let each = |ask: &Ask| self.lasts(alone, ask) + self.gap_of(alone);
        let frames: Span = asks.iter().map(each).sum();
        let success = (1.0 - 1.0 / stations).powf(stations - 1.0);
        let slot = alone.time_of(self.slot_bits.into()).as_nanos() as f64;
        let lost = stations * (1.0 - success) / success * slot;
        let estimate = (asks.len() > 1).then(|| {
            "stations of the formula know their number; with back-off one that has sent goes on winning, by which short frames get more and many stations on a long cable less, and shares are equal in the long run only".into()
        });
        Ok(Saturated {
            cycle: frames + Span::from_nanos(lost as u64),
            frames: vec![1.0; asks.len()],
            formula: "Σ frame + Q × (1 − A) / A × slot, A = (1 − 1/Q)^(Q − 1)",
            source: "Metcalfe and Boggs 1976 §6",
            estimate,
        })
    }
}

/// A channel that every station listens to.
///
/// A station with a frame sends as soon as it hears nobody (1-persistent), and hears another station `delay` after that
/// began. Who sends meanwhile collides with it: each of the two finds out when it hears the other, completes its preamble,
/// jams, and waits for a number of slots that it draws anew from a range which doubles with each collision of the frame
/// (IEEE 802.3 §4.2.3.2). Stations that begin at one instant collide even if there is no distance between them.
///
/// A frame shorter than a slot is filled up to one, so that no collision is missed. A station that has sent a frame
/// begins the next with no collisions counted, while those that wait have theirs: it tends to go on winning, which is
/// known as the capture effect.
#[derive(Debug)]
pub(super) struct CsmaCd {
    settings: CsmaCdSettings,
    delay: Span,
    slot: Span,
    jam: Span,
    preamble: Span,
    after_collision: Span,
    after_frame: Span,
    contenders: Vec<Contender>,
    /// What is on the channel or can still be heard somewhere.
    heard: Vec<Sending>,
    /// When the next station begins, if nothing else happens before.
    next_start: Option<Time>,
}

/// A station.
#[derive(Debug)]
struct Contender {
    /// It has a frame to send from then on, if nobody else is heard.
    wants: Option<Time>,
    /// Collisions of the frame in hand.
    tries: u32,
    is_sending: bool,
    chance: Stream,
}

/// A frame on the channel, or what a collision left of it.
#[derive(Debug)]
struct Sending {
    station: StationId,
    start: Time,
    end: Time,
    length: Span,
    has_collided: bool,
    is_over: bool,
}

impl CsmaCd {
    /// Silence that everybody keeps behind what was sent.
    fn gap(&self, sending: &Sending) -> Span {
        if sending.has_collided { self.after_collision } else { self.after_frame }
    }

    /// The first instant from `from` on at which `station` hears nobody.
    fn silence(&self, station: Option<StationId>, from: Time) -> Time {
        let mut at = from;
        loop {
            let busy = self.heard.iter().filter_map(|other| {
                let own = station == Some(other.station);
                let way = if own { Span::ZERO } else { self.delay };
                let until = other.end + way + self.gap(other);
                let hears = if own { other.start <= at } else { other.start + way < at };
                (hears && at < until).then_some(until)
            });
            match busy.max() {
                Some(until) => at = until,
                None => return at,
            }
        }
    }

    /// Finds out who begins next.
    fn look_ahead(&mut self, now: Time) {
        let common = self.silence(None, now);
        let begins = |(index, contender): (usize, &Contender)| {
            let wants = contender.wants?;
            let station = StationId(index);
            let speaks = self.heard.iter().any(|sending| sending.station == station);
            let alone = speaks || wants > now;
            Some(if alone { self.silence(Some(station), wants.max(now)) } else { common })
        };
        self.next_start = self.contenders.iter().enumerate().filter_map(begins).min();
    }

    /// Those that begin at `now`.
    fn starters(&self, now: Time) -> Vec<StationId> {
        let stations = (0..self.contenders.len()).map(StationId);
        let begins = |station: &StationId| {
            let wants = self.contenders[station.0].wants;
            wants.is_some_and(|wants| wants <= now) && self.silence(Some(*station), now) == now
        };
        stations.filter(begins).collect()
    }

    /// Ends what ends at `now`.
    fn finish<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>) {
        for index in 0..self.heard.len() {
            let Sending { station, end, length, has_collided, is_over, .. } = self.heard[index];
            if is_over || end > now {
                continue;
            }
            self.heard[index].is_over = true;
            self.contenders[station.0].is_sending = false;
            match has_collided {
                true => self.back_off(end, station, stations),
                false => {
                    stations.deliver(station, end, length, |_| self.delay);
                    self.goes_on(end, station, stations);
                }
            }
        }
        let mut heard = std::mem::take(&mut self.heard);
        heard.retain(|it| !it.is_over || it.end + self.delay + self.gap(it) > now);
        self.heard = heard;
    }

    /// The frame in hand is done with: the next one begins with no collisions counted.
    fn goes_on<P: Carried>(&mut self, now: Time, station: StationId, stations: &Stations<P>) {
        let contender = &mut self.contenders[station.0];
        contender.tries = 0;
        contender.wants = stations.wants(station, now);
    }

    fn back_off<P: Carried>(&mut self, now: Time, station: StationId, stations: &mut Stations<P>) {
        let CsmaCdSettings { attempts, backoff_limit, .. } = self.settings;
        let contender = &mut self.contenders[station.0];
        contender.tries += 1;
        if contender.tries >= attempts {
            stations.give_up(station, DropCause::Collision);
            return self.goes_on(now, station, stations);
        }
        let slots = contender.chance.below(1 << contender.tries.min(backoff_limit));
        contender.wants = Some(now + self.slot.scaled(slots, 1));
    }

    fn begin<P: Carried>(&mut self, now: Time, station: StationId, stations: &mut Stations<P>) {
        self.contenders[station.0].wants = None;
        if !stations.fetch(now, station) {
            self.contenders[station.0].wants = stations.wants_later(station, now);
            return;
        }
        let length = stations.length(station).max(self.slot);
        self.contenders[station.0].is_sending = true;
        let (start, end) = (now, now + length);
        let (has_collided, is_over) = (false, false);
        self.collide(now, station);
        let first = self.heard.iter().map(|other| other.start + self.delay).filter(|&at| at >= now);
        let mut sending = Sending { station, start, end, length, has_collided, is_over };
        if let Some(at) = first.min() {
            self.cut_off(&mut sending, at);
        }
        self.heard.push(sending);
    }

    /// Everybody who sends, and whom `station` does not hear yet as it begins, will hear it.
    fn collide(&mut self, now: Time, station: StationId) {
        let mut heard = std::mem::take(&mut self.heard);
        let others = heard.iter_mut().filter(|it| it.station != station && !it.is_over);
        others.filter(|it| !it.has_collided).for_each(|it| self.cut_off(it, now + self.delay));
        self.heard = heard;
    }

    /// A station that sends hears another at `at`.
    fn cut_off(&self, sending: &mut Sending, at: Time) {
        sending.has_collided = true;
        sending.end = at.max(sending.start + self.preamble) + self.jam;
    }
}

impl Access for CsmaCd {
    fn asks<P: Carried>(&mut self, now: Time, station: StationId, stations: &mut Stations<P>) {
        let Contender { wants, is_sending, .. } = &mut self.contenders[station.0];
        let from = Some(stations.asks_from(station, now, *wants));
        if !*is_sending && *wants != from {
            *wants = from;
            self.look_ahead(now);
        }
    }

    fn next(&self) -> Option<Time> {
        let ends = self.heard.iter().filter(|it| !it.is_over).map(|it| it.end);
        ends.chain(self.next_start).min()
    }

    fn act<P: Carried>(&mut self, now: Time, stations: &mut Stations<P>) {
        self.finish(now, stations);
        for station in self.starters(now) {
            self.begin(now, station, stations);
        }
        self.look_ahead(now);
    }
}
