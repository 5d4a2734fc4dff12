//! The processor of a trunk board at work, with its input fifo.

use crate::framing::channel_envelopes;
use crate::outlet::Outlet;
use crate::{AnyDiscipline, Discipline, Drops, Service, TrunkProcessor};
use std::collections::VecDeque;
use trunkline_core::{DropCause, Metered, Span, Time};

/// One processor between an input fifo, the memory in which a discipline keeps what waits, and an output
/// fifo (Hawley 1989 §1.3).
///
/// A packet is in memory, and a piece in the output fifo, once the whole of it has been moved. Until then it
/// takes its room in the fifo that it comes from or goes to.
#[derive(Debug)]
pub(crate) struct Board<P> {
    spec: TrunkProcessor,
    input: VecDeque<P>,
    /// Envelopes in the input fifo.
    held: u64,
    /// The present work of the processor, and the time of its end.
    job: Option<(Time, Job<P>)>,
    /// When it did its last job, and the picoseconds by which it was late with it.
    free_at: Time,
    remainder: u64,
    /// The most that goes to the output fifo at once, for disciplines that serve whole packets: the
    /// largest so far.
    largest: u64,
}

#[derive(Debug)]
enum Job<P> {
    /// From the input fifo into memory.
    In(P),
    /// From memory into the output fifo, in which it takes so many envelopes.
    Out(Service<P>, u64),
}

/// Envelopes of the channel number that goes before each quantum in the output fifo.
const MARK: u64 = 2;

/// Envelopes of a packet with the channel numbers that it has on the backplane.
fn envelopes(size: u32) -> u64 {
    u64::from(size) + channel_envelopes(size)
}

impl<P: Metered> Board<P> {
    /// An idle board.
    pub fn new(spec: TrunkProcessor) -> Board<P> {
        Board {
            spec,
            input: VecDeque::new(),
            held: 0,
            job: None,
            free_at: Time::ZERO,
            remainder: 0,
            largest: 0,
        }
    }

    /// A packet comes from the backplane.
    pub fn arrive(&mut self, packet: P, drops: &mut Drops<P>) {
        let size = envelopes(packet.size());
        if self.held + size > self.spec.input_fifo.bytes() {
            return drops.push(packet, DropCause::QueueLimit);
        }
        self.held += size;
        self.largest = self.largest.max(size);
        self.input.push_back(packet);
    }

    /// When the processor will have done what it does.
    pub fn done(&self) -> Option<Time> {
        self.job.as_ref().map(|&(done, _)| done)
    }

    /// The job is done at `now`.
    pub fn finish(
        &mut self,
        now: Time,
        memory: &mut AnyDiscipline<P>,
        outlet: &mut Outlet<P>,
        drops: &mut Drops<P>,
    ) {
        match self.job.take() {
            Some((_, Job::In(packet))) => {
                self.held -= envelopes(packet.size());
                memory.enqueue(now, packet, drops);
            }
            Some((_, Job::Out(service, weight))) => outlet.fill_reserved(service, weight),
            None => {}
        }
    }

    /// Gives the processor its next job if it is idle: what is left of the quantum that it has begun to move,
    /// else as the program says.
    pub fn start(
        &mut self,
        now: Time,
        memory: &mut AnyDiscipline<P>,
        outlet: &mut Outlet<P>,
        drops: &mut Drops<P>,
    ) {
        if self.job.is_some() {
            return;
        }
        let output_first = self.spec.output_first || memory.mid_turn();
        let first = if output_first { None } else { self.take_in() };
        let job =
            first.or_else(|| self.move_out(now, memory, outlet, drops)).or_else(|| self.take_in());
        let Some(job) = job else { return };
        self.job = Some((self.ends(now, &job), job));
    }

    fn take_in(&mut self) -> Option<Job<P>> {
        self.input.pop_front().map(Job::In)
    }

    /// What goes out next, if the output fifo has room for all of a turn.
    fn move_out(
        &mut self,
        now: Time,
        memory: &mut AnyDiscipline<P>,
        outlet: &mut Outlet<P>,
        drops: &mut Drops<P>,
    ) -> Option<Job<P>> {
        let (quantum, goes_on) = (memory.quantum(), memory.mid_turn());
        let most = quantum.map_or(self.largest, |quantum| u64::from(quantum) + MARK);
        if !goes_on && !outlet.has_room(most) {
            return None;
        }
        let service = memory.dequeue(now, drops)?;
        let marks = match quantum {
            Some(_) if goes_on => 0,
            Some(_) => MARK,
            None => channel_envelopes(service.bytes),
        };
        let weight = u64::from(service.bytes) + marks;
        outlet.reserve(weight);
        Some(Job::Out(service, weight))
    }

    /// When a job that starts at `now` will be done, to the picosecond over jobs back to back.
    fn ends(&mut self, now: Time, job: &Job<P>) -> Time {
        let (bytes, each) = match job {
            Job::In(packet) => (envelopes(packet.size()), self.spec.input_per_byte),
            Job::Out(service, _) => (u64::from(service.bytes), self.spec.output_per_byte),
        };
        let late = if now == self.free_at { self.remainder } else { 0 };
        let picos = bytes.saturating_mul(each.as_picos()).saturating_add(late);
        self.free_at = now + Span::from_nanos(picos / 1000);
        self.remainder = picos % 1000;
        self.free_at
    }

    /// The contents of the input fifo and of the processor's hands: packets and user bytes.
    pub fn backlog(&self) -> (u64, u64) {
        let hand = match &self.job {
            Some((_, Job::In(packet))) => (1, u64::from(packet.size())),
            Some((_, Job::Out(service, _))) => {
                (u64::from(service.packet.is_some()), u64::from(service.bytes))
            }
            None => (0, 0),
        };
        let waiting: u64 = self.input.iter().map(|packet| u64::from(packet.size())).sum();
        (self.input.len() as u64 + hand.0, waiting + hand.1)
    }
}
