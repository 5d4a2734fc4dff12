//! One node, driven to its end on this thread.

use crate::meeting::{answer, meet};
use crate::{Carrier, NodesError, Outcome};
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trunkline_cluster::{Node, Step};
use trunkline_core::{Probability, Seed, Span, Stream, Time};
use trunkline_transport::cstar::{Frame, NodeId};

/// How a node is run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Which node it is.
    pub me: NodeId,
    /// The share of datagrams that it drops on arrival, to try what becomes of that.
    pub drop: Probability,
    /// Seed of what is drawn.
    pub seed: Seed,
    /// Time for which it looks for datagrams without sleeping before it sleeps. Only of use with a processor for each node.
    pub poll: Duration,
    /// How long it waits for the others at the beginning.
    pub patience: Duration,
    /// Acts of its program that are recorded at most.
    pub record: usize,
}

/// A program that works for longer than this is interrupted to see whether something has come (a choice: some datagrams'
/// time).
const WORKS: Span = Span::from_micros(20);
/// Longest sleep: so soon a stop is noticed.
const NAP: Duration = Duration::from_millis(20);

/// Runs a node to the end of its program, and then answers the others until `stop`.
///
/// `ended` is called with the outcome when the program has ended or cannot go on; the others may still need answers then.
///
/// # Errors
/// If a peer does not come, the system refuses something, or `stop` is set before the end.
pub fn drive(
    plan: &Plan,
    node: Node,
    carrier: Carrier,
    stop: &AtomicBool,
    ended: &mut dyn FnMut(&Outcome),
) -> Result<Outcome, NodesError> {
    let chance = plan.seed.stream(&format!("node {} drops", plan.me.0));
    let mut driver = Driver {
        plan,
        node,
        carrier,
        chance,
        begin: Instant::now(),
        began: 0,
        looked: Time::ZERO,
        dropped: 0,
    };
    let early = meet(&mut driver.carrier, plan.me, plan.patience, stop)?;
    driver.node.record(plan.record);
    driver.begin = Instant::now();
    driver.began = if plan.record > 0 { monotonic() } else { 0 };
    early.iter().try_for_each(|octets| driver.arrives(Time::ZERO, octets))?;
    while !driver.is_over() {
        if stop.load(Ordering::Relaxed) {
            return Err(NodesError::Stopped);
        }
        driver.go_on()?;
    }
    let outcome = driver.outcome();
    ended(&outcome);
    while !stop.load(Ordering::Relaxed) {
        driver.take_in(driver.until_due(driver.now()))?;
    }
    Ok(outcome)
}

/// The host's monotonic clock, which all processes of the host share.
fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

struct Driver<'a> {
    plan: &'a Plan,
    node: Node,
    carrier: Carrier,
    chance: Stream,
    begin: Instant,
    /// The same on the host's monotonic clock, in nanoseconds, if acts are recorded.
    began: u64,
    /// When it was last seen whether something has come.
    looked: Time,
    dropped: u64,
}

impl Driver<'_> {
    fn now(&self) -> Time {
        Time::ZERO + Span::from_nanos(self.begin.elapsed().as_nanos() as u64)
    }

    fn is_over(&self) -> bool {
        self.node.has_ended() || self.node.failure().is_some()
    }

    /// A step of the program, and a datagram if it waits, or has worked for long.
    fn go_on(&mut self) -> Result<(), NodesError> {
        let now = self.now();
        let waits = matches!(self.node.step(now), Step::Waits(..));
        self.flush(now)?;
        match waits {
            true => self.take_in(self.until_due(now)),
            false if now.since(self.looked) > WORKS => self.take_in(Duration::ZERO),
            false => Ok(()),
        }
    }

    /// Time until the message layer has something to do, as far as it is worth sleeping.
    fn until_due(&self, now: Time) -> Duration {
        let due = self.node.deadline().map(|at| at.since(now).as_nanos());
        due.map_or(NAP, |nanos| Duration::from_nanos(nanos).clamp(Duration::from_micros(1), NAP))
    }

    /// Takes in a datagram that has come, or comes within `wait`, and does what is due.
    fn take_in(&mut self, wait: Duration) -> Result<(), NodesError> {
        let found = self.look(wait)?;
        let now = self.now();
        self.looked = now;
        if let Some(octets) = found {
            self.arrives(now, &octets)?;
        }
        if self.node.deadline().is_some_and(|deadline| deadline <= now) {
            self.node.expire(now);
            self.flush(now)?;
        }
        Ok(())
    }

    /// The next datagram, looked for without sleeping at first.
    fn look(&mut self, wait: Duration) -> Result<Option<Bytes>, NodesError> {
        let found = self.carrier.receive(Duration::ZERO)?;
        if found.is_some() || wait.is_zero() {
            return Ok(found);
        }
        let (begin, most) = (Instant::now(), self.plan.poll.min(wait));
        while begin.elapsed() < most {
            let found = self.carrier.receive(Duration::ZERO)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let rest = wait.saturating_sub(most);
        if rest.is_zero() { Ok(None) } else { self.carrier.receive(rest) }
    }

    fn arrives(&mut self, now: Time, octets: &Bytes) -> Result<(), NodesError> {
        if answer(&mut self.carrier, self.plan.me, octets)? {
            return Ok(());
        }
        if self.chance.happens(self.plan.drop) {
            self.dropped += 1;
            return Ok(());
        }
        match Frame::decode(octets) {
            Ok(frame) => {
                self.node.arrive(now, frame);
            }
            Err(_) => self.node.damaged(now),
        }
        self.flush(now)
    }

    fn flush(&mut self, now: Time) -> Result<(), NodesError> {
        while let Some(frame) = self.node.transmit(now) {
            self.carrier.send(&frame)?;
        }
        Ok(())
    }

    fn outcome(&mut self) -> Outcome {
        let (counters, memory) = (self.node.counters(), self.node.memory());
        let failure = self.node.failure().map(ToString::to_string);
        Outcome {
            node: self.plan.me.0,
            laps: self.node.take_laps().map(|lap| (lap.span().as_nanos(), lap.bytes)).collect(),
            wrong: if failure.is_some() { None } else { self.node.verdict().err() },
            failure,
            sent: self.carrier.sent,
            received: self.carrier.received,
            dropped: self.dropped,
            kernel_dropped: self.carrier.dropped(),
            refused: counters.refused,
            requests: counters.requests,
            again: counters.again,
            buffers: memory.receive_most,
            copied: memory.copied_most,
            state: memory.state,
            began: self.began,
            records: self.node.take_records(),
        }
    }
}
