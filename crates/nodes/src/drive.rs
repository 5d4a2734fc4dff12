//! One node, driven to its end on this thread.

use crate::meeting::{Heard, answer, ask, meet, part, read};
use crate::{Carrier, NodesError, Outcome};
use bytes::Bytes;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trunkline_cluster::{Node, Step, Work};
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
    /// A node that has not been heard for so long while this one waits is taken for dead.
    pub silence: Duration,
}

/// A program that works is interrupted behind so many of its steps to see whether something has come (a choice: some
/// datagrams' time), and behind each in which it did work of its own.
const STEPS: u32 = 16;
/// A node that waits asks those that it has not heard for so long, and so often (a choice).
const ASKS: Span = Span::from_secs(1);
/// Longest sleep: so soon a stop is noticed.
const NAP: Duration = Duration::from_millis(20);

/// Two clocks are read within so many nanoseconds of each other, or so often (choices: a message takes microseconds).
const APART: u64 = 500;
const MOST_READINGS: usize = 100;

/// What a driver tells while it runs.
#[derive(Debug)]
pub enum Told<'a> {
    /// All nodes are there, and the program begins.
    Begins {
        /// Whether there is a multicast group that not all others hear, so that what is for all is sent to each.
        unheard: bool,
    },
    /// The program has ended or cannot go on.
    Ended(&'a Outcome),
}

/// Runs a node to the end of its program, and then answers the others until `stop`; one that cannot go on tells them and
/// returns.
///
/// `tell` is called when the program begins, and with the outcome when it has ended or cannot go on.
///
/// # Errors
/// If a peer does not come, the system refuses something, or `stop` is set before the end.
pub fn drive(
    plan: &Plan,
    node: Node,
    carrier: Carrier,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<Outcome, NodesError> {
    let chance = plan.seed.stream(&format!("node {} drops", plan.me.0));
    let count = carrier.peers().len();
    let mut driver = Driver {
        plan,
        node,
        carrier,
        chance,
        begin: Instant::now(),
        began: 0,
        now: Time::ZERO,
        steps: 0,
        heard: vec![Time::ZERO; count],
        waits: None,
        asked: Time::ZERO,
        gone: None,
        dropped: 0,
    };
    let early = match meet(&mut driver.carrier, plan.me, plan.patience, stop) {
        Ok(early) => early,
        Err(error) => return driver.parts(error),
    };
    tell(Told::Begins { unheard: driver.carrier.is_unheard() });
    driver.node.record(plan.record);
    // Only records are laid beside those of other processes.
    (driver.begin, driver.began) =
        if plan.record > 0 { both_clocks() } else { (Instant::now(), 0) };
    early.into_iter().try_for_each(|octets| driver.arrives(octets))?;
    while !driver.is_over() {
        if stop.load(Ordering::Relaxed) {
            return driver.parts(NodesError::Stopped);
        }
        driver.go_on()?;
    }
    let outcome = driver.outcome();
    if let Some(reason) = driver.own_failure() {
        part(&mut driver.carrier, plan.me, &reason)?;
    }
    tell(Told::Ended(&outcome));
    let mut parted = false;
    while outcome.failure.is_none() && !stop.load(Ordering::Relaxed) {
        driver.take_in(driver.until_due())?;
        // It may still hand on frames for others, and find that one of them was lost.
        if !parted && let Some(reason) = driver.own_failure() {
            part(&mut driver.carrier, plan.me, &reason)?;
            parted = true;
        }
    }
    Ok(outcome)
}

/// The same instant on this process's clock and, in nanoseconds, on the host's: the two are read again if something came
/// between, since records of several nodes are laid side by side.
fn both_clocks() -> (Instant, u64) {
    let read = || {
        let before = monotonic();
        let begin = Instant::now();
        (monotonic() - before, begin, before)
    };
    let mut best = read();
    for _ in 0..MOST_READINGS {
        if best.0 <= APART {
            break;
        }
        let again = read();
        best = if again.0 < best.0 { again } else { best };
    }
    (best.1, best.2)
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
    /// When its clock was last read: before what the program does next.
    now: Time,
    /// Steps of the program since it was last seen whether something has come.
    steps: u32,
    /// When each node was last heard.
    heard: Vec<Time>,
    /// Since when the program waits.
    waits: Option<Time>,
    /// When silent nodes were last asked whether they are there.
    asked: Time,
    gone: Option<Lost>,
    dropped: u64,
}

/// A peer that is lost to the run.
#[derive(Debug)]
struct Lost {
    node: NodeId,
    reason: String,
    /// Whether it said so itself, to all.
    told: bool,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lost { node, reason, told } = self;
        write!(f, "{node} {}: {reason}", if *told { "has failed" } else { "is gone" })
    }
}

impl Driver<'_> {
    fn read_clock(&mut self) {
        self.now = Time::ZERO + Span::from_nanos(self.begin.elapsed().as_nanos() as u64);
    }

    fn is_over(&self) -> bool {
        self.node.has_ended() || self.node.failure().is_some() || self.gone.is_some()
    }

    /// A step of the program, and a datagram if it waits, or has worked for long.
    fn go_on(&mut self) -> Result<(), NodesError> {
        let spent = match self.node.step(self.now) {
            Step::Worked(spent) => spent,
            Step::Waits(..) => {
                self.flush()?;
                self.waits.get_or_insert(self.now);
                return self.take_in(self.until_due());
            }
            Step::Ended => return self.flush(),
        };
        self.waits = None;
        self.steps += 1;
        // To begin or to end a lap takes no time, and makes no frame.
        if spent.sent + spent.received > 0 {
            self.flush()?;
            self.read_clock();
        }
        if self.steps >= STEPS || spent.work != Work::default() {
            return self.take_in(Duration::ZERO);
        }
        Ok(())
    }

    /// Time until the message layer has something to do, as far as it is worth sleeping.
    fn until_due(&self) -> Duration {
        let due = self.node.deadline().map(|at| at.since(self.now).as_nanos());
        due.map_or(NAP, |nanos| Duration::from_nanos(nanos).clamp(Duration::from_micros(1), NAP))
    }

    /// Takes in a datagram that has come, or comes within `wait`, and does what is due.
    fn take_in(&mut self, wait: Duration) -> Result<(), NodesError> {
        let found = self.look(wait)?;
        self.read_clock();
        self.steps = 0;
        if let Some(octets) = found {
            self.arrives(octets)?;
        }
        self.listen()?;
        if self.node.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.node.expire(self.now);
            self.flush()?;
        }
        Ok(())
    }

    /// The next datagram, looked for without sleeping at first.
    fn look(&mut self, wait: Duration) -> Result<Option<Bytes>, NodesError> {
        let found = self.carrier.receive(Duration::ZERO)?;
        if found.is_some() || wait.is_zero() {
            return Ok(found);
        }
        let most = self.plan.poll.min(wait);
        let begin = (!most.is_zero()).then(Instant::now);
        while begin.is_some_and(|begin| begin.elapsed() < most) {
            let found = self.carrier.receive(Duration::ZERO)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        let rest = wait.saturating_sub(most);
        if rest.is_zero() { Ok(None) } else { self.carrier.receive(rest) }
    }

    fn arrives(&mut self, octets: Bytes) -> Result<(), NodesError> {
        match read(&octets) {
            Heard::Frame => {}
            Heard::Group { from } => {
                self.carrier.hears_by_group(from);
                return Ok(());
            }
            Heard::Hello { from, all, .. } => {
                self.hears(from);
                return if all { Ok(()) } else { answer(&mut self.carrier, self.plan.me, from) };
            }
            Heard::Gone { from, reason } => {
                self.gone.get_or_insert(Lost { node: from, reason, told: true });
                return Ok(());
            }
        }
        if self.chance.happens(self.plan.drop) {
            self.dropped += 1;
            return Ok(());
        }
        match Frame::decode(octets) {
            Ok(frame) => {
                self.hears(frame.from);
                self.node.arrive(self.now, frame);
            }
            Err(_) => self.node.damaged(self.now),
        }
        self.flush()
    }

    fn hears(&mut self, NodeId(from): NodeId) {
        if let Some(heard) = self.heard.get_mut(usize::from(from)) {
            *heard = self.now;
        }
    }

    /// A node that waits asks those that it has not heard for long whether they are there.
    fn listen(&mut self) -> Result<(), NodesError> {
        let Some(since) = self.waits else { return Ok(()) };
        let now = self.now;
        if now.since(since.max(self.asked)) < ASKS || self.is_over() {
            return Ok(());
        }
        self.asked = now;
        let silence = Span::from_nanos(self.plan.silence.as_nanos() as u64);
        for peer in (0..self.heard.len()).filter(|&it| it != usize::from(self.plan.me.0)) {
            let silent = now.since(self.heard[peer].max(since));
            let node = NodeId(peer as u16);
            if silent > silence {
                let reason = format!("it has not answered for {silence}");
                self.gone.get_or_insert(Lost { node, reason, told: false });
            } else if silent >= ASKS {
                ask(&mut self.carrier, self.plan.me, node)?;
            }
        }
        Ok(())
    }

    /// Why this node cannot go on, unless another has told all of it already.
    fn own_failure(&self) -> Option<String> {
        let untold = self.gone.as_ref().filter(|it| !it.told);
        self.node.failure().map(ToString::to_string).or_else(|| untold.map(Lost::to_string))
    }

    /// Ends before the end of the program, and tells the others.
    fn parts(&mut self, error: NodesError) -> Result<Outcome, NodesError> {
        let reason = match &error {
            NodesError::Stopped => "it was stopped".into(),
            other => other.to_string(),
        };
        if !matches!(error, NodesError::Gone { .. }) {
            part(&mut self.carrier, self.plan.me, &reason)?;
        }
        Err(error)
    }

    fn flush(&mut self) -> Result<(), NodesError> {
        while let Some(frame) = self.node.transmit(self.now) {
            self.carrier.send(&frame)?;
        }
        Ok(())
    }

    fn outcome(&mut self) -> Outcome {
        let (counters, memory) = (self.node.counters(), self.node.memory());
        let gone = self.gone.as_ref().map(Lost::to_string);
        let failure = self.node.failure().map(ToString::to_string).or(gone);
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
