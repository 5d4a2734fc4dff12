//! One node, driven to its end on this thread.

use crate::line::{Line, Lost};
use crate::meet::Unheard;
use crate::{Carrier, NodesError, Outcome, Progress};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use trunkline_cluster::{Node, Step, Work};
use trunkline_core::{Probability, Seed, Span, Time};
use trunkline_transport::cstar::NodeId;

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
    /// A node that has not been heard for so long while this one waits is taken for dead. An [`Endpoint`](crate::Endpoint)
    /// of which nothing passes for ten times as long, while its layer refuses and repeats, is in a livelock.
    pub silence: Duration,
}

impl Plan {
    /// Of this node: it drops nothing, sleeps while it waits, waits ten seconds for the others at the beginning, and takes one
    /// for dead behind thirty seconds of silence.
    pub fn new(me: NodeId) -> Plan {
        Plan {
            me,
            drop: Probability::NEVER,
            seed: Seed(1),
            poll: Duration::ZERO,
            patience: Duration::from_secs(10),
            silence: Duration::from_secs(30),
        }
    }
}

/// A program that works is interrupted behind so many of its steps to see whether something has come (a choice: some
/// datagrams' time), and behind each in which it did work of its own.
const STEPS: u32 = 16;

/// How often it tells how far it has come (a choice).
const TELLS: Span = Span::from_secs(1);

/// Two clocks are read within so many nanoseconds of each other, or so often (choices: a message takes microseconds).
const APART: u64 = 500;
const MOST_READINGS: usize = 100;

/// What a driver tells while it runs.
#[derive(Debug)]
pub enum Told<'a> {
    /// These nodes were not heard, and nobody new for a second. It goes on waiting for them.
    Misses(&'a Unheard<'a>),
    /// All nodes are there, and the program begins.
    Begins {
        /// Whether there is a multicast group that not all others hear, so that what is for all is sent to each.
        unheard: bool,
    },
    /// How far the program has come, once a second until it has ended.
    Goes(Progress),
    /// The program has ended or cannot go on.
    Ended(&'a Outcome),
}

/// Runs a node to the end of its program, and then answers the others until `stop`; one that cannot go on tells them and
/// returns.
///
/// `tell` is called when the program begins, while it goes on, and with the outcome when it has ended or cannot go on.
///
/// # Errors
/// If a peer does not come, the system refuses something, or `stop` is set before the end.
pub fn drive(
    plan: &Plan,
    mut node: Node,
    carrier: Carrier,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Told<'_>),
) -> Result<Outcome, NodesError> {
    let (records, mut began) = (node.records(), 0);
    // Only records are laid beside those of other processes.
    let begin = || {
        let begin;
        (begin, began) = if records { both_clocks() } else { (Instant::now(), 0) };
        begin
    };
    let missing = &mut |missing: &Unheard<'_>| tell(Told::Misses(missing));
    let line = Line::meet(plan, node.layer_mut(), carrier, stop, begin, missing)?;
    tell(Told::Begins { unheard: line.carrier.is_unheard() });
    let tells = line.now + TELLS;
    let mut driver = Driver { me: plan.me, node, line, began, steps: 0, done: 0, tells };
    while !driver.is_over() {
        match driver.go_on() {
            Err(NodesError::Stopped) => return Err(driver.line.parts(NodesError::Stopped)),
            other => other?,
        }
        if driver.line.now >= driver.tells {
            tell(Told::Goes(driver.progress()));
        }
    }
    let outcome = driver.outcome();
    let mut parted = driver.parts()?;
    tell(Told::Ended(&outcome));
    while outcome.failure.is_none() {
        match driver.line.idle(driver.node.layer_mut()) {
            Err(NodesError::Stopped) => break,
            other => other?,
        }
        // It may still hand on frames for others, and find that one of them was lost.
        parted = parted || driver.parts()?;
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
    me: NodeId,
    node: Node,
    line: Line<'a>,
    /// When its time began on the host's monotonic clock, in nanoseconds, if acts are recorded.
    began: u64,
    /// Steps of the program since it was last seen whether something has come.
    steps: u32,
    /// Fragments that the program has sent and received.
    done: u64,
    /// When it next tells how far it has come.
    tells: Time,
}

impl Driver<'_> {
    fn is_over(&self) -> bool {
        self.node.has_ended() || self.node.failure().is_some() || self.line.gone().is_some()
    }

    /// A step of the program, and a datagram if it waits, or has worked for long.
    fn go_on(&mut self) -> Result<(), NodesError> {
        let spent = match self.node.step(self.line.now) {
            Step::Worked(spent) => spent,
            Step::Waits(..) => {
                self.flush()?;
                self.line.waits();
                return if self.look_up()? {
                    Ok(())
                } else {
                    self.line.idle(self.node.layer_mut())
                };
            }
            Step::Ended => return self.flush(),
        };
        self.line.goes_on();
        self.steps += 1;
        self.done += u64::from(spent.sent + spent.received);
        // To begin or to end a lap takes no time, and makes no frame.
        if spent.sent + spent.received > 0 {
            self.flush()?;
            self.line.read_clock();
        }
        if self.steps >= STEPS || spent.work != Work::default() {
            self.look_up()?;
        }
        Ok(())
    }

    /// Takes in a datagram that has come, and does what is due. Whether one had.
    fn look_up(&mut self) -> Result<bool, NodesError> {
        self.steps = 0;
        let came = self.line.poll(self.node.layer_mut())?;
        self.line.read_clock();
        self.line.sees_to(self.node.layer_mut())?;
        Ok(came)
    }

    fn flush(&mut self) -> Result<(), NodesError> {
        self.line.flush(self.node.layer_mut())
    }

    /// Tells the others if this node cannot go on. Whether it cannot.
    fn parts(&mut self) -> Result<bool, NodesError> {
        let Some(reason) = self.line.own_failure(self.node.layer_mut()) else { return Ok(false) };
        self.line.tells(&reason)?;
        Ok(true)
    }

    /// How far it has come; it next tells that some time later.
    #[cold]
    fn progress(&mut self) -> Progress {
        self.tells = self.line.now + TELLS;
        let counters = self.node.counters();
        Progress {
            node: self.me.0,
            at: self.line.now.as_nanos(),
            laps: self.node.laps() as u64,
            done: self.done,
            refused: counters.refused,
            again: counters.again,
            requests: counters.requests,
            frames: self.line.frames(),
        }
    }

    fn outcome(&mut self) -> Outcome {
        let (counters, memory) = (self.node.counters(), self.node.memory());
        let own = self.node.failure().map(ToString::to_string);
        let told = own.is_none() && self.line.gone().is_some_and(Lost::is_told);
        let failure = own.or_else(|| self.line.gone().map(Lost::to_string));
        let carrier = &mut self.line.carrier;
        Outcome {
            node: self.me.0,
            laps: self.node.take_laps().map(|lap| (lap.span().as_nanos(), lap.bytes)).collect(),
            wrong: if failure.is_some() { None } else { self.node.verdict().err() },
            failure,
            told,
            sent: carrier.sent,
            received: carrier.received,
            dropped: self.line.dropped,
            kernel_dropped: carrier.dropped(),
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
