//! The times that the modelled path prescribes for each probe: the same `Link` as in the emulator, run again on
//! the instants at which the probes were sent.

use trunkline_core::{Cause, Packet, Seed, Span, Time};
use trunkline_path::{Change, Class, Delivered, Link, LinkSpec};

/// One direction of the path under test, as the emulator started it.
#[derive(Debug, Clone)]
pub struct Reference<'a> {
    /// Its description.
    pub spec: &'a LinkSpec,
    /// The seed of its randomness.
    pub seed: Seed,
    /// The name of its random streams.
    pub name: &'a str,
    /// The beginning of its slot clock.
    pub origin: Time,
    /// The path's class of a probe's frame.
    pub class: Class,
    /// Changes of the delay, with their instants, ascending.
    pub changes: &'a [(Time, Span)],
}

/// The times that the path prescribes for a probe that it does not drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prescribed {
    /// When its last bit leaves the line; the delay in force then is its delay.
    pub off_line: Time,
    /// When it is due at the far end.
    pub release: Time,
}

impl Reference<'_> {
    /// The times that the path prescribes for probes that enter at the given instants (ascending); `None` for
    /// those that it drops.
    pub fn prescribe(&self, entries: &[Time]) -> Vec<Option<Prescribed>> {
        let mut prescribed = self.carry(self.spec, self.changes, entries);
        if !self.changes.is_empty() {
            // A packet that catches up waits behind the line too. No delay moves what leaves the line.
            let calm = self.carry(&of_one_delay(self.spec), &[], entries);
            for (ours, calm) in prescribed.iter_mut().zip(calm) {
                if let (Some(ours), Some(calm)) = (ours, calm) {
                    ours.off_line = calm.off_line;
                }
            }
        }
        prescribed
    }

    fn carry(
        &self,
        spec: &LinkSpec,
        changes: &[(Time, Span)],
        entries: &[Time],
    ) -> Vec<Option<Prescribed>> {
        let mut link = Link::new(spec, self.seed, self.name, self.origin);
        for &(at, delay) in changes {
            link.schedule(at, Change::Delay(delay));
        }
        let mut prescribed = vec![None; entries.len()];
        for (number, &at) in entries.iter().enumerate() {
            let mut packet = Packet::new(self.class.channel, self.class.size, at, number);
            packet.band = self.class.band;
            link.offer(at, packet);
            collect(&mut link, at, &mut prescribed);
        }
        finish(&mut link);
        collect(&mut link, Time::NEVER, &mut prescribed);
        prescribed
    }
}

/// The same line with the delay that it has at the start.
fn of_one_delay(spec: &LinkSpec) -> LinkSpec {
    let mut spec = spec.clone();
    spec.schedule.steps.retain(|(_, change)| !matches!(change, Change::Delay(_)));
    spec
}

/// Lets the line work until nothing waits for it. Not simply to the end of time: a repeating schedule
/// has none.
fn finish(link: &mut Link<Packet<usize>>) {
    while link.backlog().packets > 0
        && let Some(next) = link.next_work()
    {
        link.advance(next);
    }
}

fn collect(link: &mut Link<Packet<usize>>, now: Time, prescribed: &mut [Option<Prescribed>]) {
    while let Some(Delivered { release, packet }) = link.take(now) {
        let sojourn = packet.ledger.get(Cause::Queue) + packet.ledger.get(Cause::Transmit);
        let off_line = packet.entered + sojourn;
        prescribed[packet.body] = Some(Prescribed { off_line, release });
    }
    link.dropped().for_each(drop);
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Rate;
    use trunkline_path::{ChannelKey, DisciplineSpec, Framing, Limit, classify};

    fn class(size: usize) -> Class {
        classify(&vec![0; 14 + size], ChannelKey::One)
    }

    fn reference<'a>(
        spec: &'a LinkSpec,
        size: usize,
        changes: &'a [(Time, Span)],
    ) -> Reference<'a> {
        let origin = Time::from_nanos(1000);
        Reference { spec, seed: Seed(1), name: "up", origin, class: class(size), changes }
    }

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn cells_leave_on_the_slots_of_the_stated_origin() {
        let spec = LinkSpec {
            rate: Some(Rate::from_bits_per_second(155_520_000)),
            framing: Framing::AtmAal5,
            delay: Span::from_millis(10),
            ..LinkSpec::default()
        };
        let got = reference(&spec, 40, &[]).prescribe(&[at(1001)]);
        // A slot is 331250 / 117 ns: the first boundary is slot 1, and two cells follow.
        let off_line = at(1000 + 3 * 331_250 / 117);
        let release = off_line + Span::from_millis(10);
        assert_eq!(got, [Some(Prescribed { off_line, release })]);
    }

    #[test]
    fn changes_hold_for_what_leaves_the_line_from_then_on() {
        let spec = LinkSpec { delay: Span::from_millis(10), ..LinkSpec::default() };
        let changes =
            [(at(3_000_000), Span::from_millis(12)), (at(6_000_000), Span::from_millis(1))];
        let entries: Vec<Time> = (1..8).map(|ms| at(ms * 1_000_000)).collect();
        let got = reference(&spec, 40, &changes).prescribe(&entries);
        let releases: Vec<u64> = got.iter().map(|p| p.unwrap().release.as_nanos() / 1000).collect();
        let off_line = got.iter().map(|p| p.unwrap().off_line);
        assert!(off_line.eq(entries), "a line without a rate holds nothing");
        let caught_up_by_quarters = [11_000, 12_000, 15_000, 16_000, 17_000, 17_750, 18_500];
        assert_eq!(releases, caught_up_by_quarters, "order is kept after the shortening");
    }

    #[test]
    fn what_the_queue_drops_has_no_prescription() {
        let spec = LinkSpec {
            rate: Some(Rate::from_bits_per_second(8_000)),
            discipline: DisciplineSpec::fifo(Limit::Packets(1)),
            ..LinkSpec::default()
        };
        let got = reference(&spec, 100, &[]).prescribe(&[at(2000), at(2001), at(2002)]);
        assert!(got[0].is_some() && got[1].is_some() && got[2].is_none());
        assert_eq!(got[1].unwrap().release, at(2000 + 200_000_000));
    }
}
