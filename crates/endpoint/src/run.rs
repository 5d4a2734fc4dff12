//! The measurements of a flow.

use std::collections::BTreeMap;
use trunkline_core::{Span, Time};
use trunkline_engine::Note;
use trunkline_measure::{Course, Samples, SenderState, Step};
use trunkline_netns::TcpInfo;

/// The measurements of a flow. All instants are of CLOCK_MONOTONIC until [`rebase`](FlowRun::rebase).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FlowRun {
    /// One entry for each measurement, in order of time.
    pub samples: Samples,
    /// Bytes handed to the receiving applications, both directions together.
    pub delivered_bytes: u64,
    /// The amounts that it has moved from source to destination, and when; not known of outside programs.
    pub course: Option<Course>,
    /// The time that the sender spent in each state, from its first action to its last.
    pub sender: BTreeMap<SenderState, Span>,
    /// The time of all data blocks by place and cause, summed over blocks.
    pub blocks: Vec<Step>,
    /// The number of data blocks.
    pub block_count: u64,
    /// Blocks, or segments, sent again, by both ends.
    pub retransmissions: u64,
    /// Time-outs of the transport, at both ends.
    pub timeouts: u64,
    /// For the first message of each size: the bytes of each round. Known of URP.
    pub rounds: BTreeMap<u32, Vec<u32>>,
    /// Capsules that both ends handed to the network.
    pub packets_sent: u64,
    /// Capsules that came, copies included.
    pub packets_received: u64,
    /// With TCP, what the kernel told of the connection at the end: at the source, at the destination.
    pub tcp: Option<[TcpInfo; 2]>,
    /// With TCP and a window asked for: the largest that the destination was seen to advertise after the
    /// first four windows, in bytes. Before, the kernel may advertise up to double.
    pub peak_window: Option<u64>,
    /// When the sender ended, if it did before it was stopped.
    pub ended: Option<Time>,
    /// Notes for the reader; the flow is the whole that they are of.
    pub notes: Vec<Note>,
}

impl FlowRun {
    /// Counts all instants from `origin` on.
    pub fn rebase(&mut self, origin: Time) {
        let moved = |at: Time| Time::ZERO + at.since(origin);
        self.samples.rebase(moved);
        self.ended = self.ended.map(moved);
        self.course = self.course.map(|course| Course {
            from: moved(course.from),
            to: moved(course.to),
            ..course
        });
    }

    /// Of the reports of source and destination.
    pub(crate) fn of([source, destination]: [EndReport; 2]) -> FlowRun {
        let mut run = FlowRun {
            delivered_bytes: source.delivered + destination.delivered,
            course: course(&source, &destination),
            sender: source.sender,
            rounds: source.protocol.rounds.clone(),
            ended: source.ended,
            tcp: source.protocol.tcp.zip(destination.protocol.tcp).map(Into::into),
            peak_window: destination.protocol.peak_window,
            ..FlowRun::default()
        };
        run.samples = source.samples;
        run.samples.absorb(destination.samples);
        run.samples.finish();
        let mut blocks = BTreeMap::new();
        for protocol in [source.protocol, destination.protocol] {
            run.retransmissions += protocol.retransmissions;
            run.timeouts += protocol.timeouts;
            run.packets_sent += protocol.packets_sent;
            run.packets_received += protocol.packets_received;
            run.block_count += protocol.block_count;
            for step in protocol.blocks {
                let none = Step { span: Span::ZERO, ..step };
                blocks.entry((step.place, step.cause as u8)).or_insert(none).span += step.span;
            }
            run.notes.extend(protocol.notes);
        }
        run.blocks = blocks.into_values().collect();
        run.notes.extend([source.note, destination.note].into_iter().flatten());
        run.notes.sort();
        run.notes.dedup();
        run
    }
}

/// A sender that has not ended was at work until it was stopped; a receiver waits, whatever it does.
fn course(source: &EndReport, destination: &EndReport) -> Option<Course> {
    let delivered = destination.last_read;
    let to = source.ended.unwrap_or(source.stopped).max(delivered);
    Some(Course { flow: source.flow, from: source.started?, to, bytes: destination.delivered })
}

/// The measurements of one end.
#[derive(Debug, Default)]
pub(crate) struct EndReport {
    /// Index of its flow in the traffic.
    pub flow: u32,
    pub samples: Samples,
    pub delivered: u64,
    pub sender: BTreeMap<SenderState, Span>,
    pub started: Option<Time>,
    /// Its last read.
    pub last_read: Time,
    /// When it was stopped.
    pub stopped: Time,
    pub ended: Option<Time>,
    pub protocol: ProtocolReport,
    pub note: Option<Note>,
}

/// The counts of an end's protocol.
#[derive(Debug, Default)]
pub(crate) struct ProtocolReport {
    pub retransmissions: u64,
    pub timeouts: u64,
    pub packets_sent: u64,
    pub packets_received: u64,
    /// Steps of all blocks that came, by place and cause.
    pub blocks: Vec<Step>,
    pub block_count: u64,
    pub rounds: BTreeMap<u32, Vec<u32>>,
    pub tcp: Option<TcpInfo>,
    pub peak_window: Option<u64>,
    pub notes: Vec<Note>,
}
