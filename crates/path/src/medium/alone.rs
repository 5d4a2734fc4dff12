//! What formulas may assume of a medium: when frames are sent if one conversation, or stations that always have something,
//! have it to themselves. Each kind says so in its own file.

use super::{AccessSpec, MediumSpec, PortLine, StationId};
use crate::{Framer, Framing, Piece};
use trunkline_core::{Channel, Rate, Span, Time};

/// A medium as formulas see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alone {
    /// The rate at which a station sends.
    pub rate: Option<Rate>,
    /// How user bytes become bits.
    pub framing: Framing,
    /// Propagation delay of the medium.
    pub delay: Span,
    /// Its stations.
    pub stations: usize,
    access: AccessSpec,
}

/// A frame that is ready to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Its station.
    pub by: StationId,
    /// Since when.
    pub ready: Time,
    /// Its bytes.
    pub bytes: u32,
    /// Control envelopes among them.
    pub controls: u32,
}

/// A turn that a station has had: a frame that has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Its station.
    pub by: StationId,
    /// When its first bit left.
    pub start: Time,
    /// When its last bit left.
    pub end: Time,
    /// How long its own bits took.
    pub own: Span,
    /// When its station got its turn: on a ring the token, on a channel in frames the frame.
    pub since: Time,
}

/// The rule by which a frame waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// What is waited for.
    pub name: &'static str,
    /// The formula of the wait.
    pub formula: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// What stations get that always have something to send.
#[derive(Debug, Clone, PartialEq)]
pub struct Saturated {
    /// The time of a cycle.
    pub cycle: Span,
    /// Frames of each station in a cycle; a fraction is a mean.
    pub frames: Vec<f64>,
    /// The formula.
    pub formula: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Why it is an estimate. `None` if it is exact.
    pub estimate: Option<String>,
}

/// How stations take turns, by formula: what one kind of medium says of it.
pub(super) trait ByFormula {
    /// The rule by which frames wait.
    fn rule(&self) -> Rule;

    /// By how much the waits of frames differ that come to an idle medium at any instant. No wait depends on the instant if
    /// it is zero.
    fn phase(&self, _: &Alone) -> Span {
        Span::ZERO
    }

    /// When a frame is sent, if nothing is ready but it since `before`; of several without answers in between one after the
    /// other. Without `before` the medium has been idle for long, and the frame comes when the wait is shortest.
    ///
    /// # Errors
    /// Why no formula says so.
    fn turn(&self, alone: &Alone, before: Option<Turn>, ask: Ask) -> Result<Turn, String>;

    /// The distance from one station to another.
    fn way(&self, alone: &Alone, _from: StationId, _to: StationId) -> Span {
        alone.delay
    }

    /// The longest time from one turn of a station to its next one if each of `asks`, of as many stations, is sent once in it.
    ///
    /// # Errors
    /// Why no formula says so.
    fn once(&self, alone: &Alone, asks: &[Ask]) -> Result<Span, String>;

    /// How long the channel rests between the frames of two stations, if those that both have frames alternate and nothing
    /// else keeps a frame that is ready from the free channel. `None` where answers and data meet in another way.
    fn rest(&self, _: &Alone) -> Option<Span> {
        None
    }

    /// What stations get that always have frames like these, one `ask` for each.
    ///
    /// # Errors
    /// Why no formula says so.
    fn saturated(&self, alone: &Alone, asks: &[Ask]) -> Result<Saturated, String>;
}

impl Alone {
    /// A medium with so many stations.
    pub fn new(medium: &MediumSpec, stations: usize) -> Alone {
        let MediumSpec { rate, framing, delay, access, .. } = *medium;
        Alone { rate, framing, delay, stations, access }
    }

    /// The lines that a frame crosses one after the other, if the medium is a fabric of switches. `None` if all stations
    /// share one channel.
    pub fn ports(&self, from: StationId, to: StationId) -> Option<Vec<PortLine>> {
        self.access.ports(self, from, to)
    }

    /// Whether formulas know who sends when.
    pub fn is_known(&self) -> bool {
        self.access.by_formula().is_some() && self.framing.slot_bits().is_none()
    }

    /// The rule by which frames wait for their turn. `None` if no formula knows.
    pub fn rule(&self) -> Option<Rule> {
        self.access.by_formula().map(|it| it.rule())
    }

    /// By how much the waits of frames differ that come to the idle medium at any instant.
    pub fn phase(&self) -> Span {
        self.access.by_formula().map_or(Span::ZERO, |it| it.phase(self))
    }

    /// When a frame is sent if only one conversation uses the medium. Without a frame `before` the medium has been idle for
    /// long, and the frame comes when the wait is shortest.
    ///
    /// # Errors
    /// Why no formula says so.
    pub fn turn(&self, before: Option<Turn>, ask: Ask) -> Result<Turn, String> {
        let known = self.access.by_formula().ok_or("how its stations take turns")?;
        known.turn(self, before, ask)
    }

    /// How long the channel rests between the frames of two stations, if those that both have frames alternate and nothing
    /// else keeps a frame that is ready from the free channel. `None` where answers and data meet in another way.
    pub fn rest(&self) -> Option<Span> {
        self.access.by_formula()?.rest(self)
    }

    /// The distance from one station to another.
    pub fn way(&self, from: StationId, to: StationId) -> Span {
        self.access.by_formula().map_or(self.delay, |it| it.way(self, from, to))
    }

    /// The longest time from one turn of a station to its next one if each of `asks`, of as many stations, is sent once in it.
    /// Whose frames are no closer than that finds none of its own ahead.
    ///
    /// # Errors
    /// Why no formula says so.
    pub fn once(&self, asks: &[Ask]) -> Result<Span, String> {
        let known = self.access.by_formula().ok_or("how its stations take turns")?;
        known.once(self, asks)
    }

    /// What stations get that always have frames like these, one `ask` for each.
    ///
    /// # Errors
    /// Why no formula says so.
    pub fn saturated(&self, asks: &[Ask]) -> Result<Saturated, String> {
        let known = self.access.by_formula().ok_or("how its stations take turns")?;
        known.saturated(self, asks)
    }

    /// How long the bits of a frame take.
    pub(super) fn length(&self, ask: &Ask) -> Span {
        let piece = Piece {
            channel: Channel::default(),
            bytes: ask.bytes,
            controls: ask.controls,
            last: true,
        };
        let bits = Framer::new(self.framing).line_bits(piece, false);
        let (carrying, whole) = self.framing.line_share();
        let bits = u128::from(bits) * u128::from(whole);
        self.time(bits, carrying, false)
    }

    /// How long `bits` take at the rate, rounded up as the media do for what is no frame.
    pub(super) fn time_of(&self, bits: u64) -> Span {
        self.time(bits.into(), 1, true)
    }

    fn time(&self, bits: u128, share: u64, up: bool) -> Span {
        const SECOND: u128 = 1_000_000_000;
        let Some(rate) = self.rate else { return Span::ZERO };
        let per = u128::from(rate.bits_per_second()) * u128::from(share);
        let nanos = if up { (bits * SECOND).div_ceil(per) } else { bits * SECOND / per };
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Turn {
    /// A frame of `ask` that starts at `start`, in a turn since then, and takes `own`.
    pub(super) fn at(start: Time, ask: Ask, own: Span) -> Turn {
        Turn { by: ask.by, start, end: start + own, own, since: start }
    }
}
