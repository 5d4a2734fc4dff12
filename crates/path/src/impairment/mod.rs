//! The impairments of a line: loss, bit errors, duplication, reordering, jitter.
//!
//! Each impairment draws from a random stream of its own and is asked about every packet, lost or
//! not, so that switching one on or changing it leaves the decisions of the others as they were.

mod achieved;
mod bits;
mod jitter;
mod loss;
mod parse;
mod smooth;

pub use achieved::{Achieved, BitErrorsAchieved, JitterAchieved, LossAchieved, Share};
pub use bits::{CHECK_SEQUENCE_BYTES, bits_at_risk, damage_probability};
pub use jitter::{Jitter, JitterKind, Shape};
pub use loss::{GilbertElliott, LossModel, LossTrace};
pub use parse::SettingError;
pub(crate) use parse::{form, serde_as_text};

use crate::{LinkSpec, SpecError};
use achieved::{BitTally, Tally};
use bits::BitErrors;
use jitter::Jitters;
use loss::Losses;
use serde::{Deserialize, Serialize};
use trunkline_core::{DropCause, Metered, Probability, Seed, Span, Stream, Time};

/// The impairments of one direction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImpairmentSpec {
    /// The rule for which packets are lost.
    pub loss: LossModel,
    /// The probability that a bit is wrong. A packet with a wrong bit among its user bytes or its
    /// check sequence ([`bits_at_risk`]) is dropped, because the receiver's check sequence (LAPD or
    /// AAL5 CRC, Ethernet FCS) refuses it.
    pub bit_errors: Probability,
    /// The probability that a packet is delivered twice.
    pub duplicate: Probability,
    /// Packets held back so that others overtake them.
    pub reorder: Option<Reorder>,
    /// Delay that varies from packet to packet.
    pub jitter: Option<Jitter>,
}

/// Reordering: a packet is held back for a while, and those behind it may overtake it.
///
/// Read as `1%:5ms`. A packet held back for less than the gap to the next one stays in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// The probability for each packet.
    pub probability: Probability,
    /// For how long, in addition to its delay and jitter.
    pub extra: Span,
}

/// One impairment with its value, as `loss=1%`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// The rule for which packets are lost.
    Loss(LossModel),
    /// The probability that a bit is wrong.
    BitErrors(Probability),
    /// The probability that a packet is delivered twice.
    Duplicate(Probability),
    /// Packets held back.
    Reorder(Option<Reorder>),
    /// Delay that varies.
    Jitter(Option<Jitter>),
}

impl ImpairmentSpec {
    /// Checks every parameter against its range, on a path of the given delay.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    pub fn check(&self, delay: Span) -> Result<(), SpecError> {
        self.loss.check()?;
        if let Some(reorder) = self.reorder
            && !(Span::from_nanos(1)..=LinkSpec::DELAY_MAX).contains(&reorder.extra)
        {
            return Err(SpecError::Range {
                what: "the time for which reorder holds a packet back".into(),
                found: reorder.extra.to_string(),
                lowest: Span::from_nanos(1).to_string(),
                highest: LinkSpec::DELAY_MAX.to_string(),
            });
        }
        self.jitter.map_or(Ok(()), |jitter| jitter.check(delay))
    }

    /// The most that a packet can be held beyond the delay.
    pub fn most_extra_delay(&self) -> Span {
        let held = self.reorder.map_or(Span::ZERO, |reorder| reorder.extra);
        held + self.jitter.map_or(Span::ZERO, |jitter| jitter.shape.most())
    }

    /// Whether packets may overtake each other.
    pub fn reorders(&self) -> bool {
        self.reorder.is_some_and(|reorder| !reorder.probability.is_never())
            || self.jitter.is_some_and(|jitter| jitter.reorders())
    }

    /// Replaces one setting.
    pub fn set(&mut self, setting: Setting) {
        match setting {
            Setting::Loss(loss) => self.loss = loss,
            Setting::BitErrors(rate) => self.bit_errors = rate,
            Setting::Duplicate(probability) => self.duplicate = probability,
            Setting::Reorder(reorder) => self.reorder = reorder,
            Setting::Jitter(jitter) => self.jitter = jitter,
        }
    }

    /// Every setting with its value.
    pub fn settings(&self) -> [Setting; 5] {
        [
            Setting::Loss(self.loss.clone()),
            Setting::BitErrors(self.bit_errors),
            Setting::Duplicate(self.duplicate),
            Setting::Reorder(self.reorder),
            Setting::Jitter(self.jitter),
        ]
    }
}

/// The fate of a packet that has left the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is lost.
    Lost(DropCause),
    /// It arrives.
    Arrives {
        /// When, never before it left the line.
        release: Time,
        /// Whether it may leave the order of the others.
        unordered: bool,
        /// The number of copies, 1 or more.
        copies: u8,
    },
}

/// The impairments at work: their state, their randomness, and what they have done so far.
#[derive(Debug)]
pub struct Impairments {
    spec: ImpairmentSpec,
    /// Whether none of them is switched on.
    quiet: bool,
    packets: u64,
    losses: Losses,
    bits: BitErrors,
    bit_tally: BitTally,
    duplicates: Chance,
    held_back: Chance,
    jitters: Jitters,
    order: Order,
}

impl Impairments {
    /// Impairments as `spec` says, drawing from streams of `seed` named after the link called `name`.
    pub fn new(spec: &ImpairmentSpec, seed: Seed, name: &str) -> Impairments {
        let stream = |impairment: &str| seed.stream(&format!("{name}/{impairment}"));
        Impairments {
            quiet: *spec == ImpairmentSpec::default(),
            packets: 0,
            losses: Losses::new(&spec.loss, stream("loss")),
            bits: BitErrors::new(stream("bit-errors")),
            bit_tally: BitTally::default(),
            duplicates: Chance::new(stream("duplicate")),
            held_back: Chance::new(stream("reorder")),
            jitters: Jitters::new(stream("jitter")),
            order: Order::default(),
            spec: spec.clone(),
        }
    }

    /// Goes on after `packets`, of which the last is released at `release`, that were judged elsewhere and
    /// met no impairment.
    pub(crate) fn resume(&mut self, packets: u64, release: Time) {
        self.packets = packets;
        self.order.ordered = release;
    }

    /// Decides the fate of `packet`, which left the line at `departed` and would arrive `delay` later, or
    /// later by `behind`, if it has to wait for those in front of it.
    pub fn judge(
        &mut self,
        departed: Time,
        delay: Span,
        behind: Span,
        packet: &impl Metered,
    ) -> Fate {
        self.packets += 1;
        let due = departed + delay + behind;
        if self.quiet {
            let release = self.order.settle(due, false);
            return Fate::Arrives { release, unordered: false, copies: 1 };
        }
        let lost = self.losses.strike(&self.spec.loss);
        let damage = self.bits.strike(self.spec.bit_errors, packet.size());
        let duplicate = self.duplicates.draw(self.spec.duplicate);
        let held = self.spec.reorder.map(|it| (it, self.held_back.draw(it.probability)));
        let drawn =
            self.spec.jitter.map(|jitter| (jitter, self.jitters.draw(&jitter, departed, delay)));
        if lost {
            return Fate::Lost(DropCause::Loss);
        }
        bits::book(&mut self.bit_tally, self.spec.bit_errors, damage);
        if damage.0 {
            return Fate::Lost(DropCause::BitError);
        }
        let mut release = due;
        let mut unordered = false;
        if let Some((jitter, drawn)) = drawn {
            release = shifted(release, self.jitters.place(&jitter, drawn, departed, delay));
            unordered = jitter.reorders();
        }
        if let Some((reorder, held)) = held {
            self.held_back.book(reorder.probability, held);
            release = if held { release + reorder.extra } else { release };
            unordered |= held;
        }
        self.duplicates.book(self.spec.duplicate, duplicate);
        let release = self.order.settle(release, unordered);
        Fate::Arrives { release, unordered, copies: 1 + u8::from(duplicate) }
    }

    /// Changes the impairments; the random streams and counts go on.
    pub fn set_spec(&mut self, spec: &ImpairmentSpec) {
        self.losses.change(&self.spec.loss, &spec.loss);
        if self.spec.jitter != spec.jitter {
            self.jitters.change();
        }
        self.quiet = *spec == ImpairmentSpec::default();
        self.spec = spec.clone();
    }

    /// Changes one impairment and leaves the others alone.
    pub fn set(&mut self, setting: Setting) {
        let mut spec = self.spec.clone();
        spec.set(setting);
        self.set_spec(&spec);
    }

    /// When the last packet that keeps order is released.
    pub(crate) fn last_release(&self) -> Time {
        self.order.ordered
    }

    /// The impairments in force.
    pub fn spec(&self) -> &ImpairmentSpec {
        &self.spec
    }

    /// The achievements so far.
    pub fn achieved(&self) -> Achieved {
        Achieved {
            packets: self.packets,
            loss: self.losses.tally.loss(self.losses.bursts),
            bit_errors: self.bit_tally.achieved(),
            duplicated: self.duplicates.tally.share(),
            held_back: self.held_back.tally.share(),
            overtakes: self.order.overtakes,
            jitter: self.jitters.spread.achieved(),
        }
    }
}

/// `time` moved by `nanos`, which may be negative.
fn shifted(time: Time, nanos: i64) -> Time {
    let span = Span::from_nanos(nanos.unsigned_abs());
    if nanos < 0 { time.before(span) } else { time + span }
}

/// Something that happens to a packet or does not, and how often it has.
#[derive(Debug)]
struct Chance {
    stream: Stream,
    tally: Tally,
}

impl Chance {
    fn new(stream: Stream) -> Chance {
        Chance { stream, tally: Tally::default() }
    }

    fn draw(&mut self, probability: Probability) -> bool {
        self.stream.happens(probability)
    }

    fn book(&mut self, probability: Probability, happened: bool) {
        if !probability.is_never() {
            self.tally.count(probability.as_f64(), happened);
        }
    }
}

/// Keeps the order of those packets that have one, as the delay line does, and counts who overtakes.
#[derive(Debug, Default)]
struct Order {
    /// The latest release of a packet that keeps order, and of one that does not.
    ordered: Time,
    stray: Time,
    overtakes: u64,
}

impl Order {
    fn settle(&mut self, release: Time, unordered: bool) -> Time {
        let release = if unordered { release } else { release.max(self.ordered) };
        self.overtakes += u64::from(release < self.stray.max(self.ordered));
        let latest = if unordered { &mut self.stray } else { &mut self.ordered };
        *latest = release.max(*latest);
        release
    }
}
