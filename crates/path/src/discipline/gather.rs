//! Packets handed on in batches, by a processor that is interrupted for each.

use super::settings::settings;
use super::waiting::Waiting;
use super::{Assumptions, Backlog, Chance, Discipline, Drops, Service, Settings};
use crate::Limit;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use trunkline_core::{DropCause, Metered, Span, Time};

settings! {
    /// Batches, as receive buffers and interrupt moderation make them: packets wait until a batch is full or old, and then for the processor's routine (LDS 2001 §3.3, §3.5, §3.7; ethtool's rx-frames and rx-usecs).
    pub struct GatherSettings {
        /// How much may wait.
        limit: Limit;
        /// Packets that fill a batch.
        count: u32 = 64, "the count of a batch" in COUNTS;
        /// How long after its first packet a batch is closed that is not full.
        every: Span = Span::from_millis(1), "every" in AGES;
        /// Time from the interrupt until the routine runs. A routine that still runs looks for further batches, which need none.
        latency: Span = Span::ZERO, "the interrupt latency" in TIMES;
        /// Time of the routine for each batch.
        cost: Span = Span::ZERO, "the cost of a batch" in TIMES;
        /// How long the very first batch is held besides: the queue that then stands in front of the line.
        lead: Span = Span::ZERO, "lead" in TIMES;
    }
}

const COUNTS: RangeInclusive<u32> = 1..=1 << 20;
const AGES: RangeInclusive<Span> = Span::from_nanos(1)..=Span::from_secs(10);
const TIMES: RangeInclusive<Span> = Span::ZERO..=Span::from_secs(10);

impl Settings for GatherSettings {
    type Queue<P: Metered> = Gather<P>;

    const ALIASES: &'static [&'static str] = &["coalesce", "interrupt", "moderation", "batch"];

    const TRIALS: &'static [&'static str] = &[
        "count=3,every=5ms,limit=9p",
        "count=1,cost=700us,limit=4kB",
        "count=4,every=2ms,latency=300us,cost=1ms,lead=7ms,limit=80c",
    ];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> Gather<P> {
        Gather::new(self)
    }

    fn assumptions(&self) -> Assumptions {
        let idle = matches!(self.limit, Limit::Packets(most) if most < u64::from(self.count))
            .then_some("count is above limit, so that no batch is full; give a larger limit or a smaller count");
        Assumptions { batches: true, idle, ..Assumptions::FIFO }
    }
}

/// A queue, first in first out, of which the line gets a batch at a time.
///
/// A batch is closed when it has `count` packets, or `every` after its first. Then the processor is interrupted: after
/// `latency` its routine takes `cost`, and the line may have the batch. The processor does one batch after the other. One
/// that is closed while the routine runs is found by the routine, without an interrupt.
#[derive(Debug)]
pub struct Gather<P> {
    waiting: Waiting<P>,
    settings: GatherSettings,
    /// Batches that are closed: when the line may have each, and its packets that still wait.
    closed: VecDeque<(Time, u32)>,
    /// The batch that is filled: when its first packet came, and how many there are.
    open: Option<(Time, u32)>,
    /// When the processor's routine ends.
    free: Option<Time>,
    /// Before this the line gets nothing; set by the first batch.
    lead: Option<Time>,
}

impl<P: Metered> Gather<P> {
    /// An empty queue and an idle processor.
    pub fn new(settings: GatherSettings) -> Gather<P> {
        Gather {
            waiting: Waiting::new(settings.limit),
            settings,
            closed: VecDeque::new(),
            open: None,
            free: None,
            lead: None,
        }
    }

    /// When the line may have a batch that is closed `at`.
    fn done(&self, at: Time) -> Time {
        let begins = match self.free {
            Some(free) if free > at => free,
            _ => at + self.settings.latency,
        };
        begins + self.settings.cost
    }

    /// Closes the batch that is filled.
    fn close(&mut self, at: Time) {
        let Some((_, packets)) = self.open.take() else { return };
        let done = self.done(at);
        self.free = Some(done);
        let lead = *self.lead.get_or_insert(done + self.settings.lead);
        self.closed.push_back((done.max(lead), packets));
    }

    /// Closes it if it is old.
    fn settle(&mut self, now: Time) {
        if let Some(due) = self.due()
            && due <= now
        {
            self.close(due);
        }
    }

    fn due(&self) -> Option<Time> {
        self.open.map(|(first, _)| first + self.settings.every)
    }
}

impl<P: Metered> Discipline<P> for Gather<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        self.settle(now);
        if !self.waiting.takes(packet.size()) {
            return drops.push(packet, DropCause::QueueLimit);
        }
        self.waiting.push_back(now, packet);
        let (_, packets) = self.open.get_or_insert((now, 0));
        *packets += 1;
        if *packets == self.settings.count {
            self.close(now);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Option<Service<P>> {
        self.settle(now);
        let (ready, packets) = self.closed.front_mut()?;
        if *ready > now {
            return None;
        }
        *packets -= 1;
        if *packets == 0 {
            self.closed.pop_front();
        }
        let (_, packet) = self.waiting.pop_front()?;
        Some(Service::whole(packet))
    }

    fn holds(&self) -> bool {
        true
    }

    fn next_ready(&self) -> Option<Time> {
        let lead = self.lead.unwrap_or(Time::ZERO);
        let of_open = || self.due().map(|due| self.done(due).max(lead));
        self.closed.front().map(|&(ready, _)| ready).or_else(of_open)
    }

    fn backlog(&self) -> Backlog {
        self.waiting.backlog()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.waiting.set_limit(limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::{Channel, Packet};

    fn micros(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// When packets that come at these microseconds leave a line that takes no time.
    fn leave(settings: &str, come: &[u64]) -> Vec<u64> {
        let spec: crate::DisciplineSpec = format!("gather:{settings}").parse().unwrap();
        let crate::DisciplineSpec::Gather(settings) = spec else { panic!("{settings}") };
        let (mut queue, mut drops) = (Gather::new(settings), Drops::default());
        let (mut left, mut come) = (Vec::new(), come.iter().map(|&at| micros(at)).peekable());
        loop {
            let next = come.peek().copied().into_iter().chain(queue.next_ready()).min();
            let Some(now) = next else { return left };
            if come.next_if_eq(&now).is_some() {
                queue.enqueue(now, Packet::new(Channel(1), 53, now, ()), &mut drops);
            }
            while queue.dequeue(now, &mut drops).is_some() {
                left.push(now.as_nanos() / 1000);
            }
        }
    }

    #[test]
    fn a_batch_goes_when_it_is_full_or_old() {
        let come = [0, 10, 20, 30, 40];
        assert_eq!(leave("count=3,every=1ms", &come), [20, 20, 20, 1030, 1030]);
        assert_eq!(leave("count=3,every=15us", &come), [15, 15, 35, 35, 55]);
    }

    #[test]
    fn a_routine_that_runs_needs_no_interrupt() {
        // Closed at 10, 20, 30 and 100. The first interrupt runs from 10 + 5; its routine finds the next two.
        let come = [10, 20, 30, 100];
        assert_eq!(leave("count=1,latency=5us,cost=12us", &come), [27, 39, 51, 117]);
    }

    #[test]
    fn the_first_batch_is_held_and_all_behind_it_wait() {
        assert_eq!(leave("count=1,lead=25us", &[0, 10, 20, 30, 40]), [25, 25, 25, 30, 40]);
    }
}
