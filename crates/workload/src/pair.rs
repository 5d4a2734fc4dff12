//! A small host for tests: two processes joined by a network that takes every write and keeps it for [`LATENCY`].
//! A write returns after [`WRITE`]; everything else takes no time.

use crate::{Action, Application, Draft, Outcome, Stamp};
use std::collections::VecDeque;
use trunkline_core::{Span, Time};
use trunkline_scenario::Workload;

/// The time that a write takes; what is written leaves when it returns.
pub(crate) const WRITE: Span = Span::from_micros(300);
/// The time that it is on its way.
pub(crate) const LATENCY: Span = Span::from_millis(2);

/// Data on their way to a process.
struct Arrival {
    at: Time,
    bytes: u32,
    end: bool,
    stamp: Option<Stamp>,
}

/// A process and what it waits for.
struct Seat {
    process: Application,
    /// The outcome that comes next and when, unless it reads.
    due: Option<(Time, Outcome)>,
    reading: bool,
    inbox: VecDeque<Arrival>,
    written: Vec<(u32, bool)>,
    /// The writes that started a sample.
    fresh: Vec<usize>,
}

impl Seat {
    fn new(process: Application) -> Seat {
        let due = Some((Time::ZERO, Outcome::Start));
        Seat {
            process,
            due,
            reading: false,
            inbox: VecDeque::new(),
            written: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// When it can go on.
    fn next(&self, now: Time) -> Option<Time> {
        let read = self.inbox.front().filter(|_| self.reading).map(|arrival| arrival.at.max(now));
        self.due.map(|(at, _)| at).or(read)
    }

    /// The outcome that it is told then.
    fn outcome(&mut self) -> Outcome {
        if let Some((_, outcome)) = self.due.take() {
            return outcome;
        }
        let arrival = self.inbox.pop_front().expect("it can go on because something arrived");
        if let Some(stamp) = arrival.stamp {
            self.process.stamped(stamp);
        }
        self.reading = false;
        Outcome::Read { bytes: arrival.bytes, end: arrival.end }
    }
}

/// Two processes at work: 0 is the sender, 1 the receiver.
pub(crate) struct Pair {
    seats: [Seat; 2],
    samples: Vec<Draft>,
}

impl Pair {
    pub(crate) fn new(workload: &Workload) -> Pair {
        Pair::of(Application::pair(workload, true))
    }

    /// Over a transport that carries no empty messages.
    pub(crate) fn over_stream(workload: &Workload) -> Pair {
        Pair::of(Application::pair(workload, false))
    }

    fn of((sender, receiver): (Application, Application)) -> Pair {
        Pair { seats: [Seat::new(sender), Seat::new(receiver)], samples: Vec::new() }
    }

    /// Runs until nothing more happens; the samples of both.
    pub(crate) fn run(&mut self) -> Vec<Draft> {
        let mut now = Time::ZERO;
        while let Some((at, who)) = self.next(now) {
            now = at;
            self.step(now, who);
        }
        assert!(self.seats[0].process.ended(), "the sender waits for something that never comes");
        std::mem::take(&mut self.samples)
    }

    /// The bytes of each write and whether it ended a message.
    pub(crate) fn written(&self, who: usize) -> Vec<(u32, bool)> {
        self.seats[who].written.clone()
    }

    pub(crate) fn fresh(&self, who: usize) -> Vec<usize> {
        self.seats[who].fresh.clone()
    }

    fn next(&self, now: Time) -> Option<(Time, usize)> {
        let times = self.seats.iter().enumerate();
        times.filter_map(|(who, seat)| seat.next(now).map(|at| (at, who))).min()
    }

    fn step(&mut self, now: Time, who: usize) {
        let seat = &mut self.seats[who];
        let outcome = seat.outcome();
        let action = seat.process.step(now, outcome);
        self.samples.extend(seat.process.take_sample());
        match action {
            Action::Write { bytes, end, fresh } => self.write(now, who, (bytes, end), fresh),
            Action::Read => self.seats[who].reading = true,
            Action::Work(span) => self.seats[who].due = Some((now + span, Outcome::Woke)),
            Action::Wait(until) => {
                assert!(until > now, "waits for the past");
                self.seats[who].due = Some((until, Outcome::Woke));
            }
            Action::Done => (),
        }
    }

    fn write(&mut self, now: Time, who: usize, (bytes, end): (u32, bool), fresh: bool) {
        let seat = &mut self.seats[who];
        if fresh {
            seat.fresh.push(seat.written.len());
        }
        seat.written.push((bytes, end));
        seat.due = Some((now + WRITE, Outcome::Written));
        let at = now + WRITE + LATENCY;
        let stamp = seat.process.stamp();
        self.seats[1 - who].inbox.push_back(Arrival { at, bytes, end, stamp });
    }
}
