//! Work under way on processors and boards, and the timers' numbers.

use super::protocol::Outgoing;
use super::serial::Promise;

/// A flow's end: the sending application's at an even index, its peer's behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndId(pub u32);

impl EndId {
    /// The other end of the flow.
    pub fn peer(self) -> EndId {
        EndId(self.0 ^ 1)
    }
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
    /// Whether it is the end that starts each measurement.
    pub fn is_sender(self) -> bool {
        self.0 & 1 == 0
    }
}

/// What is done when a processor or a board has finished.
#[derive(Debug)]
pub(crate) enum Job {
    /// The processor has copied a system write.
    Wrote { bytes: u32, end: bool },
    /// The processor has handed a request to the interface.
    Requested,
    /// The processor has seen that a request is done.
    Released,
    /// The processor has prepared a segment.
    Prepared(Outgoing),
    /// The board has sent a segment.
    Sent(Outgoing),
    /// The board has taken in the packets of a block, a control, or a datagram: so many pieces.
    TakenIn(u32),
    /// The processor has worked through so many pieces.
    Digested(u32),
    /// The processor has taken a receive buffer's data from the interface.
    Interrupted,
    /// The processor has done a system read.
    ReadDone,
    /// The processor has done an application's work.
    Worked,
    /// The processor has seen that a timer of the protocol has run out.
    Expired,
}

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A job is done.
    Job(u32),
    /// An end point's deadline, with the number of its setting.
    Deadline(EndId, u32),
    /// An application wakes.
    Wake(EndId),
    /// A flow starts.
    Start(u32),
    /// A receive buffer has waited long enough.
    Buffer(EndId),
    /// A receiver's interval ends.
    Interval(EndId),
    /// A sender's congestion window is to be sampled.
    Sample(EndId),
}

const INDEX_BITS: u32 = 28;
const KIND_SHIFT: u32 = 60;

impl Timer {
    /// As a number: kind, then 28 bits of index, then 32 of generation.
    pub fn number(self) -> u64 {
        let (kind, index, generation) = match self {
            Timer::Job(job) => (0u64, job, 0),
            Timer::Deadline(end, generation) => (1, end.0, generation),
            Timer::Wake(end) => (2, end.0, 0),
            Timer::Start(flow) => (3, flow, 0),
            Timer::Buffer(end) => (4, end.0, 0),
            Timer::Interval(end) => (5, end.0, 0),
            Timer::Sample(end) => (6, end.0, 0),
        };
        kind << KIND_SHIFT | u64::from(index) << 32 | u64::from(generation)
    }

    /// Back from [`number`](Timer::number).
    pub fn from_number(number: u64) -> Timer {
        let index = (number >> 32) as u32 & ((1 << INDEX_BITS) - 1);
        match number >> KIND_SHIFT {
            0 => Timer::Job(index),
            1 => Timer::Deadline(EndId(index), number as u32),
            2 => Timer::Wake(EndId(index)),
            3 => Timer::Start(index),
            4 => Timer::Buffer(EndId(index)),
            5 => Timer::Interval(EndId(index)),
            _ => Timer::Sample(EndId(index)),
        }
    }
}

/// Jobs under way, each with the end that it belongs to. Slots are used again.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    slots: Vec<Option<(EndId, Job, Option<Promise>)>>,
    free: Vec<u32>,
}

impl Jobs {
    /// Keeps a job, with its host's promise if interrupts may move that; returns its number.
    pub fn put(&mut self, end: EndId, job: Job, promise: Option<Promise>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Some((end, job, promise));
        slot
    }

    /// Takes a job out.
    pub fn take(&mut self, slot: u32) -> Option<(EndId, Job)> {
        self.free.push(slot);
        self.slots[slot as usize].take().map(|(end, job, _)| (end, job))
    }

    /// The promise under which a job is kept, with its end.
    pub fn promise(&mut self, slot: u32) -> Option<(EndId, &mut Promise)> {
        let (end, _, promise) = self.slots[slot as usize].as_mut()?;
        promise.as_mut().map(|promise| (*end, promise))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_numbers_come_back() {
        let last = (1 << INDEX_BITS) - 1;
        for timer in [
            Timer::Job(0),
            Timer::Job(last),
            Timer::Deadline(EndId(last), u32::MAX),
            Timer::Deadline(EndId(0), 0),
            Timer::Wake(EndId(7)),
            Timer::Start(9),
            Timer::Buffer(EndId(5)),
            Timer::Interval(EndId(6)),
            Timer::Sample(EndId(8)),
        ] {
            assert_eq!(Timer::from_number(timer.number()), timer);
        }
    }
}
