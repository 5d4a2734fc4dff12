//! One end of a flow: application, requests, protocol, and what has arrived.

use super::clock::SenderClock;
use super::jobs::{Carried, Flying};
use super::receive::Filled;
use super::send::Message;
use super::speaker::Speaker;
use super::trail::Trail;
use std::collections::{BTreeMap, VecDeque};
use trunkline_core::Time;
use trunkline_transport::Extent;
use trunkline_transport::urp::Part;
use trunkline_workload::{Application, Stamp};

use super::clock::Spent;
use crate::network::{RouteId, TraceId};

/// A piece of a system write, as the interface takes it.
#[derive(Debug)]
pub(crate) struct Request {
    pub bytes: u32,
    /// Does it end a message?
    pub end: bool,
    /// The message's record, with its last request.
    pub trail: Option<Trail>,
    /// A datagram's stamp.
    pub stamp: Option<Stamp>,
}

/// Data that the application may read.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub bytes: u32,
    pub end: bool,
    /// Envelopes of the interface's memory that they hold until the host has taken them.
    pub held: u64,
    /// Has the sender been told that they are passed on?
    pub echoed: bool,
    pub trail: Option<Box<Carried>>,
}

/// What an application is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It has not started.
    Nothing,
    /// A job of its own is under way, or it sleeps.
    Busy,
    /// It waits for the end of a write, since an instant at which the sender's clock showed this.
    Writing,
    /// It waits for data.
    Reading,
    /// It has ended.
    Ended,
}

/// Where the bytes of a message that are sent before an answer has to be waited for are counted.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// Where the round began in the stream.
    pub from: u64,
    /// The first message of each size: bytes of each round.
    pub of: BTreeMap<u32, Vec<u32>>,
    /// The message being counted: its size and where it began; `None` where its size has been seen.
    pub counting: Option<(u32, u64)>,
}

impl Rounds {
    /// The messages that have been counted to their end.
    pub fn complete(&self) -> impl Iterator<Item = (u32, Vec<u32>)> + '_ {
        let whole = |(size, rounds): &(&u32, &Vec<u32>)| rounds.iter().sum::<u32>() == **size;
        self.of.iter().filter(whole).map(|(&size, rounds)| (size, rounds.clone()))
    }
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct End {
    /// Where it runs: index of the host.
    pub host: usize,
    /// Its traffic.
    pub traffic: usize,
    /// Its packets' way to the peer.
    pub route: RouteId,
    pub app: Application,
    pub doing: Doing,
    pub speaker: Speaker,
    /// The process's record since its sample began.
    pub trail: Trail,
    /// What the sender's clock showed when the process began to wait for its write.
    pub waiting_since: Spent,
    pub clock: SenderClock,
    /// Requests that the interface has not taken.
    pub queue: VecDeque<Request>,
    pub queued: u64,
    /// The request on its way from processor to interface.
    pub starting: Option<Request>,
    /// Requests taken and not answered for.
    pub outstanding: u32,
    /// Is the processor being told that a request is done?
    pub releasing: bool,
    /// Which of its traffic's flows it belongs to.
    pub flow_in_traffic: u32,
    /// Envelopes of a network packet; 0 for whole blocks.
    pub packet: u32,
    /// Place in the stream: written by the application.
    pub written: u64,
    /// Place in the stream: handed to the protocol.
    pub offered: u64,
    /// Place in the stream: sent at least once.
    pub sent: u64,
    /// Messages under way: the place at which each ends, with its record.
    pub messages: VecDeque<Message>,
    pub rounds: Rounds,
    /// Segments between processor, board and path.
    pub in_hand: u32,
    pub deadline_set: Option<Time>,
    pub deadline_number: u32,
    /// Packets of a block that the processor still has to work through.
    pub raw: VecDeque<(Part<Extent>, Option<Box<Flying>>)>,
    /// How many of them it has been asked to.
    pub claimed: u32,
    /// Envelopes of those that it has not been asked to.
    pub raw_envelopes: u32,
    /// The records of blocks that are complete at the protocol, until their data are taken.
    pub completing: Option<Box<Flying>>,
    /// Place in the stream up to which data have been accepted.
    pub accepted: u64,
    /// Accepted blocks that the host has not taken from the interface.
    pub waiting: VecDeque<Arrival>,
    /// What the host's receive buffer holds of them.
    pub buffer: Option<Filled>,
    /// Bytes of the first of them that the host has taken.
    pub front_taken: u32,
    /// Since when its receive buffer waits for more.
    pub buffer_since: Option<Time>,
    /// Envelopes of the interface's memory that its data hold.
    pub held: u64,
    pub inbox: VecDeque<Arrival>,
    /// Arrivals that the read under way takes.
    pub reading: usize,
    /// Traces of packets under way with the records of their blocks.
    pub flying: BTreeMap<TraceId, Box<Flying>>,
    pub started: Option<Time>,
    pub ended: Option<Time>,
}
