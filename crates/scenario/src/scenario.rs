//! A scenario: hosts, nodes, links and traffic, checked and typed. One value is one cell of a grid.

use crate::{Cluster, Transport};
use std::collections::BTreeMap;
use trunkline_core::{Rate, Seed, Shared, Size, Span};
use trunkline_measure::Keep;
use trunkline_path::{LinkSpec, MediumSpec};

/// What is run: one cell of the grid that a scenario file describes.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name: the file's `name`, or the file's stem.
    pub name: String,
    /// One or more sentences for the report.
    pub about: String,
    /// Seed of all randomness.
    pub seed: Seed,
    /// The grid's coordinates of this cell, key path to value as written; empty without a grid.
    pub cell: BTreeMap<String, String>,
    /// End systems.
    pub hosts: Vec<Host>,
    /// Switches.
    pub nodes: Vec<Node>,
    /// What connects two of them.
    pub links: Vec<Wire>,
    /// What connects several.
    pub media: Vec<Medium>,
    /// What is sent.
    pub traffic: Vec<Traffic>,
    /// Nodes that run one program among themselves, each cluster on a medium of its own.
    pub clusters: Vec<Cluster>,
    /// When it ends at the latest, if the traffic has not ended before.
    pub stop_after: Span,
    /// Sample the backlog of every link this often, for a chart of queue depth.
    pub sample_backlog: Option<Span>,
    /// How many measurements of each traffic are kept one by one.
    pub samples: Keep,
    /// Largest network-layer packet of TCP and of outside programs, in bytes.
    pub mtu: u32,
}

/// An amount of time that an operation takes: a fixed part and one for each byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// For each operation.
    pub fixed: Span,
    /// For each byte (or envelope, if the operation deals in envelopes).
    pub per_byte: Span,
}

impl Cost {
    /// The time that the operation takes on `bytes` bytes.
    pub fn of(self, bytes: u64) -> Span {
        self.fixed + self.per_byte.scaled(bytes, 1)
    }
}

/// An end system: one serial processor and one network interface.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// What operations cost its processor.
    pub processor: Shared<Processor>,
    /// The board between processor and network.
    pub interface: Shared<Interface>,
}

/// What each operation costs a host's processor, which does one thing at a time. All zero by default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Processor {
    /// A system write: call, copying, stream blocks; for each user byte.
    pub write: Cost,
    /// A system read: waking the reader, copying; for each user byte.
    pub read: Cost,
    /// Handing one request to the interface.
    pub request: Cost,
    /// Each interrupt: a request is done, or a receive buffer is filled.
    pub interrupt: Cost,
    /// Protocol work for each block sent, if the protocol runs on the host; for each envelope.
    pub send_block: Cost,
    /// Protocol work for each block received, if the protocol runs on the host; for each envelope.
    pub receive_block: Cost,
    /// Protocol work for each ECHO, ACK, REJ received or sent, if the protocol runs on the host.
    pub control: Span,
    /// Each timer of a protocol on the host that runs out: the protocol acts when that is done.
    pub timer: Span,
    /// Other work that gets in the way.
    pub disturbance: Option<Disturbance>,
    /// The packets of each flow leave later by up to so much: most of it drawn once for the flow, a tenth for
    /// each packet; those of one flow in order. So two flows that are ready at once go first by turns that a
    /// real host settles. No key of a file sets it, but who asks how much hangs on such things; formulas pass
    /// it over, and the emulator's hosts are real ones.
    pub unsteady: Span,
}

/// Other work on a host, by chance: each application operation waits for it with a probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disturbance {
    /// How likely an operation is held up, 0 to 1.
    pub probability: f64,
    /// How long on average; the lengths are exponentially distributed.
    pub mean: Span,
}

/// The place at which the transport protocol is processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProtocolPlace {
    /// By the host's processor.
    #[default]
    Host,
    /// By the interface board.
    Board,
}

/// A network interface. The default is an ideal one: no cost, no limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Interface {
    /// The name under which the file defines it (`[interface.NAME]`), or `ideal`.
    pub name: String,
    /// The place at which the protocol is processed.
    pub protocol: ProtocolPlace,
    /// How a system write is cut into requests: the first rule whose `below` exceeds the write's bytes
    /// holds. No rule: one request for each write.
    pub split: Vec<Split>,
    /// Requests of one channel that the interface takes before the first is answered for by the far
    /// end; `None` for no limit.
    pub requests: Option<u32>,
    /// What the board's processor spends on each block to be sent; for each envelope.
    pub send_block: Cost,
    /// What the board's processor spends on each block received; for each envelope.
    pub receive_block: Cost,
    /// What the board's processor spends on each control sent or received.
    pub control: Span,
    /// Whether one processor (or one memory) serves both directions, so that they take turns.
    pub half_duplex: bool,
    /// With one packet buffer for both directions: what comes while the board sends, and for so long behind, is lost.
    /// `None` for an interface that always hears.
    pub deaf: Option<Span>,
    /// With programmed I/O: what each envelope costs the host's processor. `None` for DMA.
    pub programmed: Option<Span>,
    /// Memory for data received and not yet taken by the host, all channels together; what finds it
    /// full is lost. `None` for no limit.
    pub memory: Option<Size>,
    /// Bytes of the receive buffer that the host posts, one at a time for each channel, with an interrupt
    /// for each that is returned. `None`: as many as are wanted.
    pub receive_buffer: Option<u32>,
    /// When a receive buffer that is not full is returned.
    pub returns: Returns,
    /// When the receiver answers with ECHO: on arrival, or when the application has taken the data.
    pub echo: Echo,
}

impl Default for Interface {
    fn default() -> Interface {
        Interface {
            name: "ideal".into(),
            protocol: ProtocolPlace::Host,
            split: Vec::new(),
            requests: None,
            send_block: Cost::default(),
            receive_block: Cost::default(),
            control: Span::ZERO,
            half_duplex: false,
            deaf: None,
            programmed: None,
            memory: None,
            receive_buffer: None,
            returns: Returns::Block,
            echo: Echo::Arrival,
        }
    }
}

/// A rule by which a system write is cut into requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// It holds for writes of fewer bytes than this; `None` for all.
    pub below: Option<u32>,
    /// Bytes of each request; the last may be shorter.
    pub piece: u32,
}

/// When an interface returns a receive buffer that is not full to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Returns {
    /// When a block is complete: no buffer holds data of two.
    #[default]
    Block,
    /// When a message is complete, or after 50 ms: blocks gather in it.
    Message,
}

/// When a receiver opens the sender's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Echo {
    /// When a block has arrived.
    #[default]
    Arrival,
    /// At once if the host has taken everything before from the interface, so that a receive buffer is
    /// posted; else when the host takes the block (the rule of the KMC's microcode).
    Posted,
    /// When the application has read it.
    Consumption,
}

/// A switch: everything that crosses it takes its turn on the shared backplane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The backplane's rate; a packet of up to 16 envelopes takes 180 bits of it. `None`: no limit.
    pub backplane: Option<Rate>,
}

/// A link between two hosts or nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Wire {
    /// The name under which grids and reports know it; `a-b` if the file gives none.
    pub name: String,
    /// One end.
    pub from: String,
    /// The other.
    pub to: String,
    /// From the one to the other.
    pub forward: Shared<LinkSpec>,
    /// And back.
    pub backward: Shared<LinkSpec>,
}

/// A medium that several hosts or nodes share.
#[derive(Debug, Clone, PartialEq)]
pub struct Medium {
    /// Its name.
    pub name: String,
    /// Its stations, hosts and nodes, in their order: round the ring if it is one.
    pub stations: Vec<String>,
    /// What it is.
    pub spec: MediumSpec,
}

impl Medium {
    /// The name under which reports know what a station sends.
    pub fn lane_name(&self, station: usize) -> String {
        format!("{}>{}", self.stations[station], self.name)
    }
}

/// Something that is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    /// Its name.
    pub name: String,
    /// What the applications do.
    pub workload: Workload,
    /// The host of the sending applications.
    pub from: String,
    /// The host of their peers; may be the same one.
    pub to: String,
    /// The nodes to be crossed, in order, if it is not the shortest way.
    pub via: Vec<String>,
    /// How many at once.
    pub count: u32,
    /// Spread over the hosts of this list instead of all on `from`: flow i starts at host i modulo length.
    pub from_each: Vec<String>,
    /// What the sender's end speaks.
    pub transport: Shared<Transport>,
    /// The transport of the peer's end when it sends, if that differs (its window, its block).
    pub reply_transport: Shared<Transport>,
    /// When the first flow starts.
    pub start: Start,
    /// Between the starts of two flows.
    pub stagger: Span,
    /// All its flows start so much later than `start` says. No key of a file sets it, but who asks how much
    /// hangs on the instant at which things happen to start; formulas know no instants and pass it over.
    pub late: Span,
    /// Ends when the traffic of this name ends; `None`: when its own work is done.
    pub until: Option<String>,
    /// The estimator for its table, by name; `None` for the workload's default.
    pub estimator: Option<String>,
    /// Its priority band, 0 the most urgent, for disciplines that have bands.
    pub band: u8,
    /// In the emulator an outside program makes this traffic. The other engines run `workload` over
    /// `transport`, which are to describe what the program does.
    pub program: Option<Program>,
}

/// An outside program that makes a traffic in the emulator.
///
/// In both commands `{own}` stands for the address of the command's host, `{peer}` for that of the other end,
/// `{port}` for a port that is free for this flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The command on the host `from`.
    pub command: String,
    /// What has to run on the host `to` before, and is ended after it.
    pub server: Option<String>,
}

impl Traffic {
    /// The protocol of its ends, in a few words; both ends if they differ.
    pub fn spoken(&self) -> String {
        match self.transport == self.reply_transport {
            true => self.transport.to_string(),
            false => format!("{}; back {}", self.transport, self.reply_transport),
        }
    }
}

/// When a traffic starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// At this time.
    At(Span),
    /// When each flow of another traffic has delivered so many bytes.
    AfterBytes(String, Size),
    /// When another traffic has ended.
    AfterEnd(String),
}

/// What applications do.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// A message out, an answer back, one outstanding (Hawley's `ipuke` and `ieat`, Vande Water's
    /// `dkbench`). One size after the other; the simulator keeps one channel for all of them.
    Interactive {
        /// User bytes of the messages.
        sizes: Vec<u32>,
        /// Messages of each size.
        repeat: u32,
        /// What comes back.
        reply: Reply,
        /// From one message's start to the next's intended start; zero: as soon as the answer is there.
        every: Span,
    },
    /// So many bytes as fast as the transport takes them, again and again (Hawley's `mpuke` and `meat`,
    /// Vande Water's `trafgen`).
    Bulk {
        /// User bytes of a transfer.
        bytes: Size,
        /// Transfers.
        repeat: u32,
        /// User bytes of each system write.
        write: u32,
        /// Whether a transfer ends with an empty message and the receiver's answer, so that it is timed to
        /// the last byte delivered (`mpuke`), or with the last write's return (`trafgen`).
        confirm: bool,
    },
    /// Messages echoed one after the other for a stated time for each size (`dkxload`, RTT test).
    TimedEcho {
        /// User bytes of the messages.
        sizes: Vec<u32>,
        /// For each size.
        duration: Span,
    },
    /// Writes of one size one after the other for a stated time for each size (`dkxload`, transfer test).
    TimedTransfer {
        /// User bytes of the writes.
        sizes: Vec<u32>,
        /// For each size.
        duration: Span,
    },
    /// A file: read, written to the network in system writes of one size, stored at the far end; timed
    /// to the receiver's confirmation (`push`).
    Push {
        /// User bytes of the file.
        bytes: Size,
        /// Transfers.
        repeat: u32,
        /// User bytes of each system write.
        write: u32,
        /// What the receiving application spends on each `write` bytes (storing them).
        store: Span,
    },
    /// As much as the transport takes for a stated time (the greedy connections of the LDS report, section
    /// 3.10.1). The receiver makes the samples: the bytes that its reads got in each interval.
    Greedy {
        /// For how long the sender writes.
        duration: Span,
        /// How long a flow has run when its first interval begins.
        warm_up: Span,
        /// Length of an interval.
        interval: Span,
        /// User bytes of each system write.
        write: u32,
    },
    /// Datagrams of one size at a constant rate.
    Paced {
        /// User bytes of each.
        size: u32,
        /// User bytes, as a rate.
        rate: Rate,
        /// For how long.
        duration: Span,
    },
}

impl Workload {
    /// Whether it is a connection that always has more to send, whose measurements are the bytes of each interval.
    pub fn is_greedy(&self) -> bool {
        matches!(self, Workload::Greedy { .. })
    }

    /// Whether its measurements are the times of writes, not of what has arrived.
    pub fn times_writes(&self) -> bool {
        matches!(self, Workload::TimedTransfer { .. })
    }

    /// User bytes that a flow sends to its peer and no more; `None` if it sends what it can for a time.
    pub fn most_bytes(&self) -> Option<u64> {
        let times = |bytes: u64, count: u32| bytes.saturating_mul(u64::from(count));
        match self {
            Workload::Bulk { bytes, repeat, .. } | Workload::Push { bytes, repeat, .. } => {
                Some(times(bytes.bytes(), *repeat))
            }
            Workload::Interactive { sizes, repeat, .. } => {
                Some(times(sizes.iter().copied().map(u64::from).sum(), *repeat))
            }
            Workload::Paced { size, rate, duration } => {
                Some(paced_datagrams(*size, *rate, *duration).saturating_mul(u64::from(*size)))
            }
            Workload::TimedEcho { .. }
            | Workload::TimedTransfer { .. }
            | Workload::Greedy { .. } => None,
        }
    }
}

/// How many datagrams of `size` bytes begin within `duration`, the first at once.
fn paced_datagrams(size: u32, rate: Rate, duration: Span) -> u64 {
    let nanobits = u128::from(duration.as_nanos()) * u128::from(rate.bits_per_second());
    let each = u128::from(size) * 8_000_000_000;
    u64::try_from(nanobits.div_ceil(each.max(1))).unwrap_or(u64::MAX)
}

/// What the peer of an interactive workload sends back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// The whole message.
    Echo,
    /// So many bytes (`ieat` answers with the length of what it got).
    Bytes(u32),
}
