//! The way out: frames that are due, in batches, to the ports.

use super::Plane;
use super::lane::Lane;
use super::transit::Transit;
use crate::clock::Clock;
use trunkline_core::{DropCause, Packet, Span, Time};
use trunkline_path::Delivered;
use trunkline_port::{PortError, SendOutcome};

impl Plane {
    /// Sends what is due on a lane whose frames leave; answers how many packets that were.
    pub(super) fn send_due(&mut self, index: usize, clock: &mut Clock) -> Result<usize, PortError> {
        let now = clock.now();
        let mut sent = 0;
        while let Some(port) = self.lanes[index].collect(now, &self.ways) {
            let mut batch = std::mem::take(&mut self.lanes[index].batch);
            sent += batch.len();
            let result = self.send_batch(index, port, &mut batch, clock);
            self.lanes[index].batch = batch;
            result?;
        }
        Ok(sent)
    }

    /// Sends a batch by a port, books it and frees its frames. Each frame is taken to have left at the
    /// beginning of its share of the time that the whole took, because the rest of the share is the kernel's
    /// work for the receiver.
    fn send_batch(
        &mut self,
        index: usize,
        port: usize,
        batch: &mut Vec<Delivered<Packet<Transit>>>,
        clock: &mut Clock,
    ) -> Result<(), PortError> {
        let Plane { inlets, lanes, ways, pool, .. } = self;
        let Lane { outcomes, .. } = &mut lanes[index];
        let before = clock.now();
        for Delivered { release, packet } in batch.iter() {
            let body = &packet.body;
            body.note_hop(pool, index, &packet.ledger);
            body.finish(pool, ways[body.way()].takes, before.since(*release), packet.ecn);
        }
        outcomes.clear();
        let mut frames = batch.iter().flat_map(|Delivered { packet, .. }| {
            std::iter::repeat_n(pool.bytes(&packet.body.frame), usize::from(packet.copies))
        });
        let result = inlets[port].port.send(&mut frames, &mut |_, outcome| outcomes.push(outcome));
        let took = clock.now().since(before);
        self.book(index, batch, (before, took), clock);
        result
    }

    fn book(
        &mut self,
        index: usize,
        batch: &mut Vec<Delivered<Packet<Transit>>>,
        (before, took): (Time, Span),
        clock: &Clock,
    ) {
        let Plane { lanes, ways, pool, live, tap, .. } = self;
        let lane = &mut lanes[index];
        let count = lane.outcomes.len().max(1) as u64;
        let mut outcomes = std::mem::take(&mut lane.outcomes);
        let mut outcome = outcomes.drain(..).enumerate();
        for Delivered { release, packet } in batch.drain(..) {
            let (number, hop) = (packet.body.way(), packet.body.hop());
            let (way, counts) = (&mut ways[number], live.way(number));
            let bytes = pool.bytes(&packet.body.frame);
            for copy in 0..packet.copies {
                if copy > 0 {
                    counts.duplicate();
                }
                let (place, sent) = outcome.next().unzip();
                let left = before + took.scaled(place.unwrap_or(0) as u64, count);
                if sent != Some(SendOutcome::Sent) {
                    let cause = cause_of(sent);
                    counts.drop_one();
                    tap.dropped(index, clock.realtime(left), bytes, cause);
                    lane.link.undelivered(&packet, cause);
                    continue;
                }
                let lateness = left.since(release);
                lane.tally.left(lateness);
                counts.deliver();
                way.book_lateness(hop, lateness);
                tap.departed(index, clock.realtime(left), bytes);
            }
            lane.crossed(&packet.ledger);
            way.book(hop, &packet.ledger);
            pool.free(packet.body.frame);
        }
        drop(outcome);
        lane.outcomes = outcomes;
    }
}

fn cause_of(outcome: Option<SendOutcome>) -> DropCause {
    match outcome {
        Some(SendOutcome::TooBig) => DropCause::TooBig,
        _ => DropCause::SendFailed,
    }
}
