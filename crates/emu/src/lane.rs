//! One direction of an emulated path: frames from one port through a link to another.

use crate::capture::{CaptureTap, Side};
use crate::clock::Clock;
use crate::pool::{Frame, FramePool};
use crate::snapshot::LaneSnapshot;
use crate::tally::Tally;
use trunkline_core::{DropCause, Ecn, Packet, Seed, Span, Time};
use trunkline_path::{Change, ChannelKey, Delivered, Link, LinkSpec, classify, mark_frame};
use trunkline_port::{Port, PortError, SendOutcome};

/// Frames handed to the kernel at once.
pub(crate) const BATCH: usize = 32;
/// How long the line's work may wait for stamps that come late: a frame that arrived before an
/// instant may be seen only after it, and the order of service must not depend on that.
pub(crate) const LAG: Span = Span::from_micros(100);

/// One direction at work.
#[derive(Debug)]
pub struct Lane {
    name: String,
    link: Link<Packet<Frame>>,
    key: ChannelKey,
    lag: Span,
    /// All frames that arrived before this instant have been taken in; the line may work up to it.
    settled: Time,
    due: Vec<Delivered<Packet<Frame>>>,
    outcomes: Vec<SendOutcome>,
    tally: Tally,
    /// What the port had dropped and refused when this lane last looked.
    ring_drops: u64,
    refusals: u64,
    entry: Side,
    bound: Span,
}

impl Lane {
    /// A lane that begins at `origin`; `entry` is the side at which its frames come in, and frames
    /// later than `bound` count as late.
    pub fn new(
        name: &str,
        entry: Side,
        spec: &LinkSpec,
        key: ChannelKey,
        seed: Seed,
        origin: Time,
        bound: Span,
    ) -> Lane {
        Lane {
            name: name.to_string(),
            link: Link::new(spec, seed, name, origin),
            key,
            lag: lag(spec),
            settled: origin,
            due: Vec::with_capacity(BATCH),
            outcomes: Vec::with_capacity(2 * BATCH),
            tally: Tally::default(),
            ring_drops: 0,
            refusals: 0,
            entry,
            bound,
        }
    }

    /// Takes in one frame that arrived at `at`.
    pub fn accept(
        &mut self,
        at: Time,
        bytes: &[u8],
        pool: &mut FramePool,
        clock: &Clock,
        tap: &mut CaptureTap,
    ) {
        tap.arrived(self.entry, clock.realtime(at), bytes);
        let class = classify(bytes, self.key);
        let Some(frame) = pool.store(bytes) else {
            tap.dropped(self.entry, clock.realtime(at), bytes, DropCause::NoBuffer);
            return self.link.turned_away(1, DropCause::NoBuffer);
        };
        let mut packet = Packet::new(class.channel, class.size, at, frame);
        (packet.band, packet.ecn, packet.hosts) = (class.band, class.ecn, Some(class.hosts));
        self.link.offer(at, packet);
    }

    /// Notes that reading began at `began` and took in all that waited, or, where more frames may wait,
    /// all up to the one that arrived at `latest`. The line must not work beyond that instant, however
    /// late it is when it comes to work: what was not read yet arrived soon after it, and would be taken
    /// for having arrived later than it did.
    pub fn was_read(&mut self, began: Time, latest: Option<Time>) {
        let settled = began.before(self.lag);
        self.settled = latest.map_or(settled, |latest| latest.min(settled));
    }

    /// Counts what the port lost before this lane could see it.
    pub fn account(&mut self, port: &mut dyn Port) {
        let (drops, refusals) = (port.kernel_drops(), port.refusals().total());
        self.link.turned_away(drops - self.ring_drops, DropCause::RingFull);
        self.link.turned_away(refusals - self.refusals, DropCause::Unsegmentable);
        (self.ring_drops, self.refusals) = (drops, refusals);
    }

    /// Lets the line work, gives back what was dropped, and sends what is due.
    ///
    /// # Errors
    /// Where the port's device is down or gone.
    pub fn serve(
        &mut self,
        pool: &mut FramePool,
        port: &mut dyn Port,
        clock: &mut Clock,
        tap: &mut CaptureTap,
    ) -> Result<usize, PortError> {
        let now = clock.now();
        self.link.advance(self.settled);
        if self.link.has_dropped() {
            for (packet, cause) in self.link.dropped() {
                tap.dropped(self.entry, clock.realtime(now), pool.bytes(&packet.body), cause);
                pool.free(packet.body);
            }
        }
        let mut sent = 0;
        while self.collect(now, pool) {
            sent += self.due.len();
            self.send(pool, port, clock, tap)?;
        }
        Ok(sent)
    }

    /// Takes the next batch that is due by `now`. What the path has marked is marked in the frame too.
    fn collect(&mut self, now: Time, pool: &mut FramePool) -> bool {
        while self.due.len() < BATCH
            && let Some(delivered) = self.link.take(now)
        {
            if delivered.packet.ecn == Ecn::Ce {
                mark_frame(pool.bytes_mut(&delivered.packet.body));
            }
            self.due.push(delivered);
        }
        !self.due.is_empty()
    }

    fn send(
        &mut self,
        pool: &mut FramePool,
        port: &mut dyn Port,
        clock: &mut Clock,
        tap: &mut CaptureTap,
    ) -> Result<(), PortError> {
        let before = clock.now();
        let Lane { due, outcomes, .. } = self;
        outcomes.clear();
        let result = {
            let bytes = |delivered: &Delivered<Packet<Frame>>| pool.bytes(&delivered.packet.body);
            let mut frames = due.iter().flat_map(|delivered| {
                std::iter::repeat_n(bytes(delivered), usize::from(delivered.packet.copies))
            });
            port.send(&mut frames, &mut |_, outcome| outcomes.push(outcome))
        };
        let after = clock.now();
        self.book(before, after, pool, clock, tap);
        result
    }

    /// Books lateness, spacing and losses of the batch just sent, and frees its frames. The batch took
    /// from `before` to `after`; each frame is taken to have left at the beginning of its share of
    /// that, because the rest of the share is the kernel's work for the receiver.
    fn book(
        &mut self,
        before: Time,
        after: Time,
        pool: &mut FramePool,
        clock: &Clock,
        tap: &mut CaptureTap,
    ) {
        let took = after.since(before);
        let count = self.outcomes.len().max(1) as u64;
        let mut outcomes = std::mem::take(&mut self.outcomes);
        let mut due = std::mem::take(&mut self.due);
        let mut outcome = outcomes.drain(..);
        let mut index = 0;
        for Delivered { release, packet } in due.drain(..) {
            for _ in 0..packet.copies {
                let left = before + took.scaled(index, count);
                index += 1;
                match outcome.next() {
                    Some(SendOutcome::Sent) => {
                        self.tally.left(left.since(release));
                        self.tally.book(&packet.ledger);
                        let bytes = pool.bytes(&packet.body);
                        tap.departed(self.entry, clock.realtime(left), bytes);
                    }
                    failed => {
                        let cause = cause_of(failed);
                        let bytes = pool.bytes(&packet.body);
                        tap.dropped(self.entry, clock.realtime(left), bytes, cause);
                        self.link.undelivered(&packet, cause);
                    }
                }
            }
            pool.free(packet.body);
        }
        drop(outcome);
        (self.outcomes, self.due) = (outcomes, due);
    }

    /// When this lane next has something to do.
    pub fn next_wake(&self) -> Option<Time> {
        let event = self.link.next_work().map(|at| at + self.lag);
        event.into_iter().chain(self.link.next_release()).min()
    }

    /// The least time from a frame's arrival to its departure, as set now.
    pub fn least_delay(&self) -> Span {
        self.link.delay()
    }

    /// Changes a setting at `at`, or now where that has passed.
    pub fn change(&mut self, at: Time, change: Change) {
        self.lag = match &change {
            Change::Delay(delay) => self.lag.min(*delay),
            Change::Rate(_) | Change::Limit(_) | Change::CatchUp(_) => self.lag,
            _ => Span::ZERO,
        };
        self.link.schedule(at, change);
    }

    /// What this lane has done so far.
    pub fn snapshot(&self) -> LaneSnapshot {
        self.tally.snapshot(&self.name, &self.link, self.bound)
    }
}

/// How far the line's work may lag behind, so that nothing is due before the line has sent it.
fn lag(spec: &LinkSpec) -> Span {
    if spec.schedule.steps.is_empty() {
        LAG.min(spec.delay.saturating_sub(spec.impairments.most_extra_delay()))
    } else {
        Span::ZERO
    }
}

pub(crate) fn cause_of(outcome: Option<SendOutcome>) -> DropCause {
    match outcome {
        Some(SendOutcome::TooBig) => DropCause::TooBig,
        _ => DropCause::SendFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic;
    use crate::testing::Memory;
    use trunkline_port::Refusals;

    /// A UDP packet of 20 + 8 + 92 bytes with ECT(0) behind a VLAN tag, its header's checksum right.
    fn ect0_frame() -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x81, 0, 0, 7, 8, 0]);
        frame.extend([0x45, 2, 0, 120, 0, 0, 0x40, 0, 0x40, 17, 0xb8, 0x5a]);
        frame.extend([0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7]);
        frame.extend([0; 100]);
        frame
    }

    #[test]
    fn a_mark_of_the_path_is_written_into_the_frame() {
        let discipline = "codel:ce_threshold=0s".parse().unwrap();
        let rate = Some("10mbit".parse().unwrap());
        let spec = LinkSpec { rate, discipline, ..LinkSpec::default() };
        let origin = monotonic().before(Span::from_secs(1));
        let key = ChannelKey::default();
        let mut lane = Lane::new("up", Side::Near, &spec, key, Seed(1), origin, Span::ZERO);
        let (mut pool, mut clock) = (FramePool::new(1 << 20), Clock::default());
        let (mut tap, mut port) = (CaptureTap::default(), Memory::default());
        let plain = ect0_frame();
        let mut not_capable = plain.clone();
        (not_capable[19], not_capable[29]) = (0, 0x5c);
        // The first goes onto the line at once; the others wait for it.
        for frame in [&plain, &plain, &not_capable] {
            lane.accept(origin, frame, &mut pool, &clock, &mut tap);
        }
        lane.was_read(monotonic(), None);
        assert_eq!(lane.serve(&mut pool, &mut port, &mut clock, &mut tap).unwrap(), 3);
        let mut marked = plain.clone();
        (marked[19], marked[29]) = (3, 0x59);
        assert_eq!(*port.outward.lock().unwrap(), [plain, marked, not_capable]);
        assert_eq!((lane.snapshot().marked, lane.snapshot().delivered, pool.held()), (1, 3, 0));
    }

    #[test]
    fn frames_without_memory_are_counted_and_the_others_go_on() {
        const OFFERED: u64 = 20_000;
        let (delay, origin) = (Span::from_millis(1), monotonic().before(Span::from_secs(1)));
        let spec = LinkSpec { delay, ..LinkSpec::default() };
        let key = ChannelKey::default();
        let mut lane = Lane::new("up", Side::Near, &spec, key, Seed(1), origin, Span::ZERO);
        let (mut pool, mut clock) = (FramePool::new(0), Clock::default());
        let (mut tap, mut port) = (CaptureTap::default(), Memory::default());
        let frame = ect0_frame();
        (0..OFFERED).for_each(|_| lane.accept(origin, &frame, &mut pool, &clock, &mut tap));
        let full = lane.snapshot();
        let room = full.in_flight;
        assert!((1..OFFERED).contains(&room) && pool.held() == room, "room for {room}");
        assert_eq!((full.entered, full.dropped["no-buffer"]), (OFFERED, OFFERED - room));
        assert_eq!(full.dropped_by_emulator, OFFERED - room);
        // What has left makes room.
        lane.was_read(monotonic(), None);
        let sent = lane.serve(&mut pool, &mut port, &mut clock, &mut tap).unwrap();
        assert_eq!((sent as u64, pool.held()), (room, 0));
        lane.accept(monotonic(), &frame, &mut pool, &clock, &mut tap);
        let end = lane.snapshot();
        assert_eq!((end.entered, end.delivered, end.in_flight), (OFFERED + 1, room, 1));
        assert_eq!(end.dropped["no-buffer"], OFFERED - room);
    }

    #[test]
    fn frames_left_in_the_ring_keep_their_arrival() {
        let (delay, origin) = (Span::from_secs(600), monotonic().before(Span::from_secs(1)));
        let spec = LinkSpec { delay, ..LinkSpec::default() };
        let key = ChannelKey::default();
        let mut lane = Lane::new("up", Side::Near, &spec, key, Seed(1), origin, Span::ZERO);
        let (mut pool, mut clock) = (FramePool::new(1 << 20), Clock::default());
        let (mut tap, mut port) = (CaptureTap::default(), Memory::default());
        // The batch read last ended with a frame of 500 ms ago, and there are more behind it.
        let latest = origin + Span::from_millis(500);
        lane.was_read(monotonic(), Some(latest));
        lane.serve(&mut pool, &mut port, &mut clock, &mut tap).unwrap();
        let next = latest + Span::from_micros(1);
        lane.accept(next, &[0; 60], &mut pool, &clock, &mut tap);
        assert_eq!(lane.next_wake(), Some(next + delay));
        // All was read at that instant; that the lane is served only now changes nothing.
        let mut lane = Lane::new("up", Side::Near, &spec, key, Seed(1), origin, Span::ZERO);
        lane.was_read(latest, None);
        lane.serve(&mut pool, &mut port, &mut clock, &mut tap).unwrap();
        lane.accept(next, &[0; 60], &mut pool, &clock, &mut tap);
        assert_eq!(lane.next_wake(), Some(next + delay));
        assert!(port.outward.lock().unwrap().is_empty(), "nothing was due");
    }
    #[test]
    fn what_the_port_loses_is_counted_once_and_by_its_cause() {
        let origin = monotonic().before(Span::from_secs(1));
        let (spec, key) = (LinkSpec::default(), ChannelKey::default());
        let mut lane = Lane::new("up", Side::Near, &spec, key, Seed(1), origin, Span::ZERO);
        let (mut pool, mut clock) = (FramePool::new(1 << 20), Clock::default());
        let (mut tap, mut port) = (CaptureTap::default(), Memory::default());
        for (drops, unsegmentable) in [(3, 0), (3, 2), (7, 3)] {
            port.drops = drops;
            port.refusals = Refusals { unsegmentable, ..Refusals::default() };
            lane.account(&mut port);
        }
        let counted = lane.snapshot();
        assert_eq!((counted.dropped["ring-full"], counted.dropped["unsegmentable"]), (7, 3));
        assert_eq!((counted.entered, counted.dropped_by_emulator), (10, 10));
        // What the port does not take has no lateness, and is given back all the same.
        for (fate, cause) in
            [(SendOutcome::TooBig, "too-big"), (SendOutcome::Refused(105), "send-failed")]
        {
            port.fails = Some((100, fate));
            for length in [60, 100] {
                lane.accept(origin, &vec![0; length], &mut pool, &clock, &mut tap);
            }
            lane.was_read(monotonic(), None);
            lane.serve(&mut pool, &mut port, &mut clock, &mut tap).unwrap();
            assert_eq!(lane.snapshot().dropped[cause], 1);
        }
        let end = lane.snapshot();
        assert_eq!((end.delivered, end.lateness.count, end.in_flight, pool.held()), (2, 2, 0, 0));
        assert_eq!(end.dropped_by_emulator, 12);
    }
}
