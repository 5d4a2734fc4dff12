//! The line: one piece at a time, at the line's rate, exactly.

use crate::catch_up::Gap;
use crate::framing::{Framer, Piece};
use crate::pace::{Pace, Trace, add};
use crate::{Framing, Service};
use trunkline_core::{Channel, Metered, Rate, Span, Time};

/// Turns pieces into instants: a framing and a pace, and what they keep from one piece to the next.
/// Back-to-back transmissions carry the remainder below a nanosecond from one to the next, so that the
/// long-run rate is exact.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    framer: Framer,
    pace: Pace,
    /// When the last piece ended, and the part of a nanosecond that it ended late, in units of which a
    /// nanosecond has `per`.
    free_at: Time,
    remainder: u64,
    per: u64,
    /// The times that pieces of two sizes take, if all of one size take as long: most packets are as large as one of
    /// the two sizes seen before.
    known: [Known; 2],
    /// How long the pieces sent so far are on the line, if they share frames.
    sharing: Span,
}

/// The size of a piece, and how long it takes.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// More than any size if there is none.
    size: u64,
    took: (u64, u64),
}

/// Nothing is known yet.
const UNKNOWN: [Known; 2] = [Known { size: u64::MAX, took: (0, 0) }; 2];

/// The state of a wire after the piece sent last, to go on from there.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    framer: Framer,
    remainder: u64,
    sharing: Span,
}

impl Wire {
    /// An idle wire that starts its slot clock or trace at `origin`. A trace, if there is one, takes
    /// the place of the rate.
    pub fn new(framing: Framing, rate: Option<Rate>, trace: Option<&[u64]>, origin: Time) -> Wire {
        let pace = match trace {
            Some(milliseconds) => Pace::Trace(Box::new(Trace::new(milliseconds, origin))),
            None => Pace::constant(framing, rate, origin),
        };
        Wire {
            framer: Framer::new(framing),
            pace,
            free_at: Time::ZERO,
            remainder: 0,
            per: 1,
            known: UNKNOWN,
            sharing: Span::ZERO,
        }
    }

    /// When the last piece ended.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Sends a piece at `at`, when the one before it has ended. Returns when it ends.
    #[inline(always)]
    pub fn send(&mut self, at: Time, piece: Piece) -> Time {
        debug_assert!(at >= self.free_at);
        let follows = at == self.free_at;
        let remainder = if follows { self.remainder } else { 0 };
        if let Some(took) = self.took(piece.bytes) {
            let (nanos, remainder) = add(took, remainder, self.per);
            (self.free_at, self.remainder) = (at + Span::from_nanos(nanos), remainder);
        } else {
            self.work_out(at, piece, follows, remainder);
        }
        self.free_at
    }

    /// The time that a piece of `size` takes, if that is known.
    #[inline(always)]
    fn took(&self, size: u32) -> Option<(u64, u64)> {
        let [one, other] = &self.known;
        let size = u64::from(size);
        if one.size == size {
            return Some(one.took);
        }
        (other.size == size).then_some(other.took)
    }

    #[inline(never)]
    fn work_out(&mut self, at: Time, piece: Piece, follows: bool, remainder: u64) {
        let bits = self.framer.line_bits(piece, follows);
        (self.free_at, self.remainder) = self.pace.ends(at, bits, remainder);
        if self.needs_marks() {
            self.sharing += self.free_at.since(at);
        }
        if let Pace::Constant(speed) = &self.pace
            && !self.needs_marks()
        {
            let size = u64::from(piece.bytes);
            self.per = speed.per();
            self.known = [self.known[1], Known { size, took: speed.split(bits) }];
        }
    }

    /// The time that a packet's own bits take on an idle line, without waiting for a slot.
    #[inline(always)]
    pub fn nominal(&self, size: u32, controls: u32) -> Span {
        match self.took(size) {
            Some((nanos, _)) => Span::from_nanos(nanos),
            None => self.nominal_of(size, controls),
        }
    }

    #[inline(never)]
    fn nominal_of(&self, size: u32, controls: u32) -> Span {
        let Some(speed) = self.pace.speed() else { return Span::ZERO };
        let piece = Piece { channel: Channel::default(), bytes: size, controls, last: true };
        let bits = Framer::new(self.framer.framing()).line_bits(piece, false);
        Span::from_nanos(speed.split(bits).0)
    }

    /// The rate.
    pub fn rate(&self) -> Option<Rate> {
        self.pace.speed().map(|speed| speed.rate())
    }

    /// The least part of `gap` that has to stay between two packets ([`Pace::spacing`]); nothing if the
    /// line has no rate and the first one `arrived` before the second left.
    pub fn spacing(&self, gap: Gap, arrived: bool) -> Span {
        match self.pace {
            Pace::Unlimited if arrived => Span::ZERO,
            _ => self.pace.spacing(gap),
        }
    }

    /// Changes the rate at `at`; a slot clock starts anew there. The piece being sent, if any, now ends at
    /// `done`.
    fn set_rate(&mut self, at: Time, done: Option<Time>, new: Option<Rate>) {
        let origin = done.unwrap_or(at);
        if let Some(done) = done.filter(|_| self.needs_marks()) {
            let longer = self.sharing + done.since(self.free_at);
            self.sharing = longer.saturating_sub(self.free_at.since(done));
        }
        self.free_at = done.unwrap_or(self.free_at);
        self.remainder = 0;
        self.known = UNKNOWN;
        self.pace = Pace::constant(self.framer.framing(), new, origin);
    }

    /// The state after the piece sent last.
    pub fn mark(&self) -> Mark {
        Mark { framer: self.framer.clone(), remainder: self.remainder, sharing: self.sharing }
    }

    /// Goes back to its state at `mark`, after a piece that ended at `free_at`.
    pub fn go_back(&mut self, mark: &Mark, free_at: Time) {
        (self.framer, self.remainder) = (mark.framer.clone(), mark.remainder);
        self.sharing = mark.sharing;
        self.free_at = free_at;
    }

    /// The time up to `now` in which packets were on the line, if they share frames. [`nominal`](Wire::nominal) counts what
    /// they share for each of them.
    pub fn shared(&self, now: Time) -> Option<Span> {
        let has_rate = self.pace.speed().is_some();
        // What has not been sent by now follows without a gap.
        (self.needs_marks() && has_rate)
            .then(|| self.sharing.saturating_sub(self.free_at.since(now)))
    }

    /// Whether what it remembers depends on more than the pieces that it is to take back.
    #[inline(always)]
    pub fn needs_marks(&self) -> bool {
        matches!(self.framer.framing(), Framing::T1Lapd { .. } | Framing::T1Mixed { .. })
    }

    /// Takes back the piece sent last, which followed one that ended at `free_at`.
    pub fn take_back(&mut self, piece: Piece, free_at: Time) {
        debug_assert!(!self.needs_marks());
        if let Pace::Constant(speed) = &self.pace {
            let bits = self.framer.line_bits(piece, true);
            self.remainder = speed.remainder_before(bits, self.remainder);
        }
        self.free_at = free_at;
    }
}

/// A line at work: a wire, and the piece that is on it.
#[derive(Debug)]
pub struct Line<P> {
    wire: Wire,
    current: Option<(Time, Service<P>)>,
    /// For how long there was nothing on the line since somebody asked.
    idle: Span,
}

impl<P: Metered> Line<P> {
    /// An idle line that starts its slot clock or trace at `origin`.
    ///
    /// A trace, if there is one, takes the place of the rate.
    pub fn new(
        framing: Framing,
        rate: Option<Rate>,
        trace: Option<&[u64]>,
        origin: Time,
    ) -> Line<P> {
        Line::resume(Wire::new(framing, rate, trace, origin), None, Span::ZERO)
    }

    /// A line on which `wire` has sent a piece that ends at the stated time, if any, after it was `idle`.
    pub(crate) fn resume(wire: Wire, current: Option<(Time, Service<P>)>, idle: Span) -> Line<P> {
        Line { wire, current, idle }
    }

    /// When the piece on the line ends.
    #[inline]
    pub fn done(&self) -> Option<Time> {
        self.current.as_ref().map(|&(done, _)| done)
    }

    /// The piece on the line.
    pub fn current(&self) -> Option<&Service<P>> {
        self.current.as_ref().map(|(_, service)| service)
    }

    /// Puts a piece on the idle line at `at`.
    #[inline]
    pub fn start(&mut self, at: Time, service: Service<P>) {
        debug_assert!(self.current.is_none());
        self.idle += at.since(self.wire.free_at());
        let done = self.wire.send(at, service.piece());
        self.current = Some((done, service));
    }

    /// Takes the piece off the line, with the instant at which it ended.
    #[inline]
    pub fn finish(&mut self) -> Option<(Time, Service<P>)> {
        self.current.take()
    }

    /// For how long there was nothing on the line since this was asked last.
    #[inline]
    pub(crate) fn take_idle(&mut self) -> Span {
        std::mem::take(&mut self.idle)
    }

    /// The wire.
    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// The time that a packet's own bits take on an idle line, without waiting for a slot.
    #[inline]
    pub fn nominal(&self, size: u32, controls: u32) -> Span {
        self.wire.nominal(size, controls)
    }

    /// Changes the rate at `at`. The bits of the piece on the line that have not left yet leave at
    /// the new rate: 3 ms left at 1 Mbit/s become 1.5 ms at 2 Mbit/s. A trace is replaced.
    pub fn set_rate(&mut self, at: Time, new: Option<Rate>) {
        if let Some((done, _)) = &mut self.current {
            let left = done.since(at);
            let left = match (self.wire.rate(), new) {
                (_, None) => Span::ZERO,
                (Some(old), Some(new)) => left.scaled(old.bits_per_second(), new.bits_per_second()),
                (None, Some(_)) => left,
            };
            *done = at + left;
        }
        self.wire.set_rate(at, self.done(), new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opportunities::OPPORTUNITY_BYTES;
    use proptest::prelude::*;
    use trunkline_core::Packet;

    const SECOND: u128 = 1_000_000_000;

    type P = Packet<()>;

    fn line(framing: Framing, rate: u64) -> Line<P> {
        Line::new(framing, Some(Rate::from_bits_per_second(rate)), None, Time::ZERO)
    }

    fn send(line: &mut Line<P>, at: Time, size: u32) -> Time {
        line.start(at, Service::whole(Packet::new(Channel(1), size, at, ())));
        line.finish().unwrap().0
    }

    #[test]
    fn back_to_back_keeps_the_remainder() {
        // 1500 bytes at 7 Mbit/s take 1714285.714… ns: seven of them exactly 12 ms.
        let mut line = line(Framing::None, 7_000_000);
        let end = (0..7).fold(Time::ZERO, |at, _| send(&mut line, at, 1500));
        assert_eq!(end, Time::from_nanos(12_000_000));
    }

    #[test]
    fn t1_carries_192_kilobytes_a_second() {
        let mut line = line(Framing::T1_LAPD, 1_544_000);
        // 31 times a full frame of 256 + 8 bytes, and one byte: (31 × 264 + 9) / 192 ms.
        let mut at = Time::ZERO;
        for _ in 0..31 {
            at = send(&mut line, at, 256);
        }
        at = send(&mut line, at, 1);
        assert_eq!(at.as_nanos(), (31 * 264 + 9) * 1_000_000 / 192);
    }

    #[test]
    fn cells_leave_on_the_slot_clock_of_oc3() {
        let mut line = line(Framing::AtmAal5, 155_520_000);
        let slot = |k: u64| k * 331_250 / 117;
        assert_eq!(send(&mut line, Time::from_nanos(1), 40).as_nanos(), slot(3));
        assert_eq!(send(&mut line, Time::from_nanos(slot(3)), 40).as_nanos(), slot(5));
        assert_eq!(send(&mut line, Time::from_nanos(slot(5) + 1), 32).as_nanos(), slot(7));
        assert_eq!(send(&mut line, Time::from_nanos(1_000_000), 9180).as_nanos(), slot(354 + 192));
    }

    #[test]
    fn a_rate_change_rescales_what_is_on_the_line() {
        let mut line = line(Framing::None, 1_000_000);
        line.start(Time::ZERO, Service::whole(Packet::new(Channel(1), 500, Time::ZERO, ())));
        assert_eq!(line.done(), Some(Time::from_nanos(4_000_000)));
        line.set_rate(Time::from_nanos(1_000_000), Some(Rate::from_bits_per_second(2_000_000)));
        assert_eq!(line.done(), Some(Time::from_nanos(2_500_000)));
        line.set_rate(Time::from_nanos(2_000_000), None);
        assert_eq!(line.done(), Some(Time::from_nanos(2_000_000)));
    }

    #[test]
    fn a_trace_gives_its_opportunities_and_repeats() {
        let mut line = Line::<P>::new(Framing::None, None, Some(&[1, 1, 4]), Time::ZERO);
        let ms = |n: u64| Time::from_nanos(n * 1_000_000);
        assert_eq!(send(&mut line, Time::ZERO, 1500), ms(1));
        assert_eq!(send(&mut line, ms(1), 700), ms(1), "the second line of the same millisecond");
        assert_eq!(send(&mut line, ms(1), 700), ms(1), "shares the opportunity");
        assert_eq!(send(&mut line, ms(1), 1500), ms(4), "100 bytes at 1 ms, 1400 at 4 ms");
        assert_eq!(send(&mut line, ms(4), 100), ms(4), "the rest of that opportunity");
        assert_eq!(send(&mut line, ms(4), 1), ms(5), "the trace starts over");
        assert_eq!(send(&mut line, ms(6), 1500), ms(8), "what was not used is gone");
        assert_eq!(send(&mut line, ms(4_000_001), 1500), ms(4_000_001));
    }

    proptest! {
        #[test]
        fn the_long_run_rate_is_exact(
            rate in 1_000u64..10_000_000_000, sizes in prop::collection::vec(1u32..9000, 1..60),
        ) {
            let mut line = line(Framing::None, rate);
            let end = sizes.iter().fold(Time::ZERO, |at, &size| send(&mut line, at, size));
            let bits = 8 * sizes.iter().map(|&s| u128::from(s)).sum::<u128>();
            prop_assert_eq!(u128::from(end.as_nanos()), bits * SECOND / u128::from(rate));
        }

        #[test]
        fn slots_are_never_missed_or_shared(
            arrivals in prop::collection::vec((0u64..20_000, 1u32..9000), 1..60),
        ) {
            let mut line = line(Framing::AtmAal5, 155_520_000);
            let (mut at, mut free) = (0, 0);
            for (gap, size) in arrivals {
                at += gap;
                let start = at.max(free);
                let end = send(&mut line, Time::from_nanos(start), size).as_nanos();
                let cells = crate::aal5_cells(size);
                let first = (u128::from(start) * 117).div_ceil(331_250) as u64;
                prop_assert_eq!(end, (first + cells) * 331_250 / 117);
                free = end;
            }
        }

        #[test]
        fn a_trace_never_gives_more_than_its_opportunities(
            times in prop::collection::vec(0u64..50, 1..20),
            arrivals in prop::collection::vec((0u64..30_000_000, 1u32..3000), 1..60),
        ) {
            let mut times = times; times.sort_unstable();
            if times[times.len() - 1] == 0 { times.push(1); }
            let mut line = Line::<P>::new(Framing::None, None, Some(&times), Time::ZERO);
            let (mut at, mut sent, mut free) = (0u64, 0u64, 0u64);
            for (gap, size) in arrivals {
                at += gap;
                let end = send(&mut line, Time::from_nanos(at.max(free)), size).as_nanos();
                prop_assert!(end >= at);
                free = end;
                sent += u64::from(size);
                let last = times[times.len() - 1] * 1_000_000;
                let offered: u64 = times.iter()
                    .map(|ms| ms * 1_000_000)
                    .map(|t| if t > end { 0 } else { (end - t) / last + 1 })
                    .sum::<u64>() * OPPORTUNITY_BYTES;
                prop_assert!(sent <= offered, "{} sent by {} of {}", sent, end, offered);
            }
        }
    }
}
