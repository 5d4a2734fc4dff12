//! The measurements of a run: of each traffic, and of each direction of a link.

use crate::{Course, Samples, Steps, Times};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trunkline_core::{Cause, Counts, Span, Time};

/// The measurements of one traffic of the scenario, over all its flows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TrafficRun {
    /// The traffic's name.
    pub name: String,
    /// The protocol of its ends, in a few words; empty if it is not known.
    pub transport: String,
    /// The measurements, flow by flow in order of time; of very many a selection, and sums over all.
    pub samples: Samples,
    /// Whether the samples' sizes are what was measured, as with a greedy connection's bytes in each interval, not what
    /// was asked for. Then all samples are one group, under size 0.
    pub amounts: bool,
    /// Whether the samples are writes of an application: when one is over, its bytes are in a buffer, and need not have arrived.
    pub writes: bool,
    /// Counts of this traffic's packets on the whole path, both directions together.
    pub packets: Conservation,
    /// Bytes handed to the receiving applications in all, warm-up and unfinished transfers included.
    pub delivered_bytes: u64,
    /// The amounts that each flow that has begun has moved, and when; empty if that is not known of all of them.
    pub courses: Vec<Course>,
    /// For each flow the time its sender spent in each state; the spans of one flow sum exactly to the
    /// time from its first action to its last.
    pub sender: Vec<BTreeMap<SenderState, Span>>,
    /// The time of all data blocks, summed over blocks by place and cause.
    pub blocks: Vec<Step>,
    /// The number of data blocks that [`blocks`](TrafficRun::blocks) sums over.
    pub block_count: u64,
    /// Blocks, or packets, sent again.
    pub retransmissions: u64,
    /// Time-outs of the transport.
    pub timeouts: u64,
    /// For the first message of each size: the bytes of each round, that is of what the sender could send
    /// before it had to wait for an answer: `1024 -> [756, 268]`.
    pub rounds: BTreeMap<u32, Vec<u32>>,
    /// The congestion windows of connections that move much, in order of time, if the scenario asks for
    /// samples and the transport has one.
    pub windows: Vec<WindowSample>,
}

/// The state of a connection's congestion control at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSample {
    /// The traffic's flow, from 0.
    pub flow: u32,
    /// When.
    pub at: Time,
    /// The congestion window, in bytes.
    pub window: u64,
    /// The slow start threshold, in bytes; `None` before the first congestion.
    pub threshold: Option<u64>,
    /// The smoothed round trip; zero before it has been measured.
    pub round_trip: Span,
}

/// One measurement: a message and its answer, or a transfer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The traffic's flow, from 0.
    pub flow: u32,
    /// The repetition within the flow and size, from 0.
    pub index: u32,
    /// User bytes: of the message, or of the transfer.
    pub size: u64,
    /// When it was meant to start. Later than planned starts are part of the delay.
    pub intended: Time,
    /// When it did start.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// The parts of the time from `start` to `end`, in order of time. The spans sum exactly to it.
    pub steps: Steps,
}

impl Sample {
    /// From the start to the end.
    pub fn delay(&self) -> Span {
        self.end.since(self.start)
    }

    /// User bytes for each second of the delay.
    pub fn rate(&self) -> f64 {
        self.size as f64 / self.delay().as_secs_f64()
    }

    /// Whether it says no more of its time than that it went by at a host. So do engines that cannot look into the
    /// kernel.
    pub fn is_untold(&self) -> bool {
        let mut steps = self.steps.iter();
        match (steps.next(), steps.next()) {
            (Some(step), None) => step.cause == Cause::Host,
            (first, _) => first.is_none(),
        }
    }

    /// The time booked under `cause`.
    pub fn booked(&self, cause: Cause) -> Span {
        self.steps.iter().filter(|step| step.cause == cause).map(|step| step.span).sum()
    }
}

/// A stretch of time with the place and the cause to which it is booked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Index into the run's list of places.
    pub place: u32,
    /// The cause.
    pub cause: Cause,
    /// The time that it took.
    pub span: Span,
}

/// The reason why a sender waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SenderState {
    /// The connection is being set up.
    Opening,
    /// The application has nothing to send, or waits for an answer.
    Application,
    /// The host's processor or the interface's works or is wanted by others.
    Host,
    /// The interface takes no further request before the last one is answered.
    Request,
    /// The transport's window is closed.
    Window,
    /// Something lost is waited for or sent again.
    Recover,
}

/// Packets in = delivered + dropped + in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Conservation {
    /// Packets handed to the path.
    pub sent: u64,
    /// Copies added by duplication.
    pub duplicated: u64,
    /// Packets that came out at the far end.
    pub delivered: u64,
    /// Packets lost, whatever the cause; [`LinkRun::counts`] names the causes.
    pub dropped: u64,
    /// Packets under way when the run ended.
    pub in_flight: u64,
}

impl Conservation {
    /// The lost share of all packets that were handed to the path, copies included; `None` if there were none.
    /// The one definition of loss: every engine counts from the traffic's start to its end, or to the run's.
    pub fn lost(&self) -> Option<f64> {
        let all = self.sent.saturating_add(self.duplicated);
        (all > 0).then(|| self.dropped as f64 / all as f64)
    }

    /// Whether the counts add up, to a number of 64 bits.
    pub fn holds(&self) -> bool {
        let sum = |counts: &[u64]| counts.iter().try_fold(0u64, |sum, &it| sum.checked_add(it));
        let came = sum(&[self.sent, self.duplicated]);
        came.is_some() && came == sum(&[self.delivered, self.dropped, self.in_flight])
    }
}

/// The record of one direction of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkRun {
    /// Its name, `a>b`.
    pub name: String,
    /// Counts of the packets.
    pub counts: Counts,
    /// Packets in it when the run ended.
    pub in_flight: u64,
    /// The time for which its line was busy.
    pub busy: Span,
    /// Delay in queue of each packet, if the engine records it.
    pub queueing: Option<Times>,
    /// Bytes waiting at sampled instants, if the scenario asks for them.
    pub backlog: Vec<(Time, u64)>,
}
