//! The emulator's clock: CLOCK_MONOTONIC, with kernel stamps of CLOCK_REALTIME brought over to it.
//!
//! The offset between the two clocks is constant but for steps of the wall clock, because whatever slews
//! one slews the other. A reading of the wall clock between two readings of the other bounds the offset
//! from both sides, however long the three took. Bounds that exclude each other are a step.
//!
//! A step lies between the last comparison that did not show it and the first that does. A stamp read
//! after it was made with the old offset or with the new one. If only one of the two gives an arrival
//! that is possible, that one is true; else the arrival is uncertain by the size of the step.

mod offset;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use source::Source;
pub use source::monotonic;

use offset::Offset;
use source::System;
use trunkline_core::{Span, Time};

/// A frame may lie this long between its stamp and the ring, because the kernel's work was put off.
const LIMBO: Span = Span::from_millis(1);
/// Steps that are remembered until the frames that were stamped before them have been read.
const STEPS: usize = 8;
/// The first offset is narrowed by this many comparisons.
const FIRST: usize = 16;

/// A step of the wall clock.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// The offset until then.
    before: i64,
    /// It came after this instant,
    after: Time,
    /// and by this one.
    by: Time,
}

/// The bounds on the arrivals at one port.
#[derive(Debug, Clone, Copy, Default)]
pub struct Arrivals {
    /// All that came before this instant has been read.
    drained: Time,
}

impl Arrivals {
    /// Notes that a reading begun at `began` left nothing behind.
    pub fn drained(&mut self, began: Time) {
        self.drained = began;
    }
}

/// Counts of the stamps that were no plain matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamps {
    /// Made before a step of the clock and read after it, and brought over by the offset of their time.
    pub corrected: u64,
    /// Made close to a step: before or after it, nobody knows.
    pub uncertain: u64,
    /// By how much the arrival of one of those is uncertain at most.
    pub uncertainty: Span,
    /// Impossible by any offset, and replaced by the time of reading.
    pub replaced: u64,
}

/// Reads the clock and converts stamps.
#[derive(Debug)]
pub struct Clock {
    source: Box<dyn Source>,
    offset: Offset,
    /// The offset by which instants are told. It changes with steps only: captured intervals stay exact while the other
    /// one is narrowed.
    told: i64,
    /// When the clocks were last compared.
    compared: Time,
    now: Time,
    /// Nothing is taken to have come before this.
    start: Time,
    /// The latest steps, the oldest first.
    recent: Vec<Step>,
    steps: u64,
    stamps: Stamps,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::over(Box::new(System))
    }
}

impl Clock {
    /// A clock that reads `source`.
    pub(crate) fn over(source: Box<dyn Source>) -> Clock {
        let (offset, now) = Offset::read(&*source);
        let mut clock = Clock {
            source,
            offset,
            told: 0,
            compared: now,
            now,
            start: Time::ZERO,
            recent: Vec::with_capacity(STEPS),
            steps: 0,
            stamps: Stamps::default(),
        };
        (0..FIRST).for_each(|_| clock.synchronise());
        (clock.steps, clock.recent) = (0, Vec::with_capacity(STEPS));
        clock.told = clock.offset.middle();
        clock
    }

    /// From here on, what was stamped before now is taken to have come now.
    pub fn start(&mut self) {
        self.start = self.now();
    }

    /// The time now. Only the monotonic clock is read.
    pub fn now(&mut self) -> Time {
        self.now = self.source.monotonic();
        self.now
    }

    /// Compares the clocks; to be called before stamps are converted.
    pub fn synchronise(&mut self) {
        let (offset, now) = Offset::read(&*self.source);
        self.now = now;
        match self.offset.narrowed(offset) {
            Some(narrowed) => self.offset = narrowed,
            None => self.step_to(offset, now),
        }
        self.compared = now;
    }

    fn step_to(&mut self, offset: Offset, now: Time) {
        self.steps += 1;
        if self.recent.len() == STEPS {
            self.recent.remove(0);
        }
        let before = self.offset.middle();
        self.recent.push(Step { before, after: self.compared, by: now });
        (self.offset, self.told) = (offset, offset.middle());
    }

    /// Compares the clocks after a reading that brought `frames`: what was stamped after a step during the
    /// reading was brought over by the old offset.
    pub fn read(&mut self, frames: usize) {
        if frames == 0 {
            return;
        }
        let steps = self.steps;
        self.synchronise();
        if let Some(step) = self.recent.last().filter(|_| self.steps > steps) {
            let apart = Span::from_nanos(step.before.abs_diff(self.offset.middle()));
            self.uncertain(frames as u64, apart);
        }
    }

    /// The instant of a kernel stamp (CLOCK_REALTIME in nanoseconds) at a port. No stamp counts as now, and
    /// so does one that no offset explains.
    pub fn stamp(&mut self, realtime: Option<u64>, port: &Arrivals) -> Time {
        let Some(realtime) = realtime else { return self.now };
        let realtime = i64::try_from(realtime).unwrap_or(i64::MAX);
        if let Some(at) = self.bring_over(realtime, port) {
            return at;
        }
        // It may have come, and the clock have been stepped, since they were read last.
        self.synchronise();
        self.bring_over(realtime, port).unwrap_or_else(|| {
            self.stamps.replaced += 1;
            self.now
        })
    }

    /// The arrival by the only offset that gives a possible one. Of several the present one is taken.
    fn bring_over(&mut self, realtime: i64, port: &Arrivals) -> Option<Time> {
        let present = self.possible(realtime, self.offset.middle(), port, self.last_step(port));
        if self.recent.is_empty() {
            return present;
        }
        let mut old: Option<Time> = None;
        for (index, step) in self.recent.iter().enumerate() {
            if step.by + LIMBO < port.drained {
                continue;
            }
            let since = index.checked_sub(1).map(|earlier| self.recent[earlier].after);
            let at = self.possible(realtime, step.before, port, Some(since.unwrap_or_default()));
            old = at.filter(|&at| at <= step.by).or(old);
        }
        match (present, old) {
            (Some(present), Some(old)) => {
                self.uncertain(1, present.max(old).since(present.min(old)));
                Some(present)
            }
            (None, Some(old)) => {
                self.stamps.corrected += 1;
                Some(old)
            }
            (present, None) => present,
        }
    }

    /// The instant after which the present offset holds, if frames of before may still come from `port`.
    fn last_step(&self, port: &Arrivals) -> Option<Time> {
        let last = self.recent.last().filter(|step| step.by + LIMBO >= port.drained);
        last.map(|step| step.after)
    }

    /// The arrival by `offset`, which was true from `after` on, if a frame that is read now can have come
    /// then.
    fn possible(
        &self,
        realtime: i64,
        offset: i64,
        port: &Arrivals,
        after: Option<Time>,
    ) -> Option<Time> {
        let nanos = u64::try_from(realtime.saturating_sub(offset)).unwrap_or(0);
        let at = Time::from_nanos(nanos);
        let ahead = at.since(self.now);
        if ahead > self.offset.width() {
            return None;
        }
        let floor = port.drained.before(LIMBO);
        let too_old = after.is_some_and(|after| at + self.offset.width() < after.max(floor));
        // What lay in the ring at the start may be of any age.
        let from_before = at < self.start && floor > self.start;
        (!too_old && !from_before).then(|| at.min(self.now).max(self.start))
    }

    fn uncertain(&mut self, frames: u64, apart: Span) {
        self.stamps.uncertain += frames;
        self.stamps.uncertainty = self.stamps.uncertainty.max(apart);
    }

    /// The number of times that CLOCK_REALTIME was stepped.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Counts of the stamps that were no plain matter.
    pub fn stamps(&self) -> Stamps {
        self.stamps
    }

    /// The CLOCK_REALTIME instant, in nanoseconds, of an instant of this clock.
    pub fn realtime(&self, at: Time) -> u64 {
        (at.as_nanos() as i64).saturating_add(self.told) as u64
    }
}
