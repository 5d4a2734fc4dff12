//! The line: one piece at a time, at the line's rate, exactly.

use crate::framing::{Framer, Piece};
use crate::opportunities::OPPORTUNITY_BYTES;
use crate::{Framing, Service};
use trunkline_core::{Metered, Rate, Span, Time};

/// Nanoseconds of a second.
const SECOND: u128 = 1_000_000_000;

/// A serialiser with a rate and a framing. Back-to-back transmissions carry the remainder below a
/// nanosecond from one to the next, so that the long-run rate is exact.
#[derive(Debug)]
pub struct Line<P> {
    framer: Framer,
    pace: Pace,
    current: Option<(Time, Service<P>)>,
    /// When the last piece ended, and the part of a nanosecond that it ended late, in units of the pace.
    free_at: Time,
    remainder: u128,
}

/// What decides when bits leave.
#[derive(Debug)]
enum Pace {
    Unlimited,
    Constant(Rate),
    Slotted { rate: Rate, origin: Time },
    Trace(Trace),
}

impl<P: Metered> Line<P> {
    /// An idle line that starts its slot clock or trace at `origin`.
    ///
    /// A trace, where there is one, takes the place of the rate.
    pub fn new(
        framing: Framing,
        rate: Option<Rate>,
        trace: Option<&[u64]>,
        origin: Time,
    ) -> Line<P> {
        let pace = match trace {
            Some(milliseconds) => Pace::Trace(Trace::new(milliseconds, origin)),
            None => Pace::constant(framing, rate, origin),
        };
        let framer = Framer::new(framing);
        Line { framer, pace, current: None, free_at: Time::ZERO, remainder: 0 }
    }

    /// When the piece on the line ends.
    pub fn done(&self) -> Option<Time> {
        self.current.as_ref().map(|&(done, _)| done)
    }

    /// The piece on the line.
    pub fn current(&self) -> Option<&Service<P>> {
        self.current.as_ref().map(|(_, service)| service)
    }

    /// Puts a piece on the idle line at `at`.
    pub fn start(&mut self, at: Time, service: Service<P>) {
        debug_assert!(self.current.is_none() && at >= self.free_at);
        let follows = at == self.free_at;
        if !follows {
            self.remainder = 0;
        }
        let piece = Piece {
            channel: service.channel,
            bytes: service.bytes,
            controls: service.controls,
            last: service.packet.is_some(),
        };
        let bits = self.framer.line_bits(piece, follows);
        let done = self.ends(at, bits);
        self.current = Some((done, service));
    }

    /// Takes the piece off the line, with the instant at which it ended.
    pub fn finish(&mut self) -> Option<(Time, Service<P>)> {
        let (done, service) = self.current.take()?;
        self.free_at = done;
        Some((done, service))
    }

    /// The time that a packet's own bits take on an idle line, without waiting for a slot.
    pub fn nominal(&self, size: u32, controls: u32) -> Span {
        let Some(rate) = self.pace.rate() else { return Span::ZERO };
        let piece = Piece { channel: Default::default(), bytes: size, controls, last: true };
        let bits = Framer::new(self.framer.framing()).line_bits(piece, false);
        let (nanos, per) = nanos_per_bit(self.framer.framing(), rate);
        span(u128::from(bits) * nanos / per)
    }

    /// Changes the rate at `at`. The bits of the piece on the line that have not left yet leave at
    /// the new rate: 3 ms left at 1 Mbit/s become 1.5 ms at 2 Mbit/s. A trace is replaced.
    pub fn set_rate(&mut self, at: Time, new: Option<Rate>) {
        let framing = self.framer.framing();
        if let Some((done, _)) = &mut self.current {
            let left = done.since(at);
            let left = match (self.pace.rate(), new) {
                (_, None) => Span::ZERO,
                (Some(old), Some(new)) => left.scaled(old.bits_per_second(), new.bits_per_second()),
                (None, Some(_)) => left,
            };
            *done = at + left;
        }
        self.remainder = 0;
        let origin = self.done().unwrap_or(at);
        self.pace = Pace::constant(framing, new, origin);
    }

    /// When `bits` that start at `at` have left.
    fn ends(&mut self, at: Time, bits: u64) -> Time {
        match &mut self.pace {
            Pace::Unlimited => at,
            Pace::Constant(rate) => {
                let (nanos, per) = nanos_per_bit(self.framer.framing(), *rate);
                let exact = u128::from(bits) * nanos + self.remainder;
                self.remainder = exact % per;
                at + span(exact / per)
            }
            Pace::Slotted { rate, origin } => {
                let cell = self.framer.framing().slot_bits().unwrap_or(1);
                let (nanos, per) = nanos_per_bit(self.framer.framing(), *rate);
                let slot = nanos * u128::from(cell);
                let elapsed = u128::from(at.since(*origin).as_nanos());
                let first = (elapsed * per).div_ceil(slot);
                let last = first + u128::from(bits.div_ceil(cell));
                *origin + span(last * slot / per)
            }
            Pace::Trace(trace) => trace.ends(at, bits.div_ceil(8)),
        }
    }
}

impl Pace {
    fn constant(framing: Framing, rate: Option<Rate>, origin: Time) -> Pace {
        match rate {
            None => Pace::Unlimited,
            Some(rate) if framing.slot_bits().is_some() => Pace::Slotted { rate, origin },
            Some(rate) => Pace::Constant(rate),
        }
    }

    fn rate(&self) -> Option<Rate> {
        match self {
            Pace::Constant(rate) | Pace::Slotted { rate, .. } => Some(*rate),
            Pace::Unlimited | Pace::Trace(_) => None,
        }
    }
}

/// The exact time of one line bit, as a fraction of nanoseconds.
fn nanos_per_bit(framing: Framing, rate: Rate) -> (u128, u128) {
    let (carrying, whole) = framing.line_share();
    (SECOND * u128::from(whole), u128::from(rate.bits_per_second()) * u128::from(carrying))
}

fn span(nanos: u128) -> Span {
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Delivery opportunities after mahimahi: at each stated millisecond 1500 bytes may leave; what is
/// not used is gone; after the last line the trace starts over.
#[derive(Debug)]
struct Trace {
    nanos: Vec<u64>,
    period: u64,
    origin: Time,
    /// The opportunity in use and the bytes left in it.
    index: u64,
    left: u64,
}

impl Trace {
    fn new(milliseconds: &[u64], origin: Time) -> Trace {
        let nanos: Vec<u64> = milliseconds.iter().map(|ms| ms * 1_000_000).collect();
        let period = nanos.last().copied().unwrap_or(0).max(1);
        Trace { nanos, period, origin, index: 0, left: OPPORTUNITY_BYTES }
    }

    /// The instant of opportunity `index`, counted through all repetitions.
    fn instant(&self, index: u64) -> Time {
        let count = self.nanos.len() as u64;
        let within = self.nanos[(index % count) as usize];
        self.origin + Span::from_nanos((index / count) * self.period + within)
    }

    /// The first opportunity at or after `at`.
    fn seek(&self, at: Time) -> u64 {
        let elapsed = at.since(self.origin).as_nanos();
        // An instant on the boundary belongs to the last line of the round before it.
        let round = elapsed.saturating_sub(1) / self.period;
        let within = elapsed - round * self.period;
        let skipped = self.nanos.partition_point(|&nanos| nanos < within) as u64;
        round * self.nanos.len() as u64 + skipped
    }

    fn ends(&mut self, at: Time, bytes: u64) -> Time {
        let first = self.seek(at);
        if first > self.index || self.instant(self.index) < at {
            self.index = first.max(self.index + u64::from(self.instant(self.index) < at));
            self.left = OPPORTUNITY_BYTES;
        }
        let mut bytes = bytes;
        while bytes > self.left {
            bytes -= self.left;
            self.index += 1;
            self.left = OPPORTUNITY_BYTES;
        }
        self.left -= bytes;
        self.instant(self.index).max(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trunkline_core::{Channel, Packet};

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
        let mut line = line(Framing::T1Lapd, 1_544_000);
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
