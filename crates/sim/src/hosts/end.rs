//! One end of a flow: application, requests, protocol, and what has arrived.

use super::early::EarlyRecords;
use super::endings::Endings;
use super::flying::{Carried, Flying, InFlight};
use super::intervals::Intervals;
use super::protocol::{ProtocolEnd, ProtocolKind};
use super::receive::Filled;
use super::unsteady::Unsteady;
use crate::network::RouteId;
use std::collections::VecDeque;
use trunkline_core::{Ecn, Seldom, Time, Untouched};
use trunkline_host::{Request, SendQueue};
use trunkline_measure::{SenderClock, Spent, Trail};
use trunkline_scenario::{Interface, Processor};
use trunkline_transport::Extent;
use trunkline_transport::urp::Part;
use trunkline_workload::Application;

/// What has come off the path and is not yet at the protocol: data that adjoin, or what ends them.
#[derive(Debug)]
pub(crate) struct Received {
    /// A datagram is data whose place is its number.
    pub part: Part<Extent>,
    /// With TCP and listed protocols: the place of the segment, and its congestion bits as they came. The part is empty
    /// then.
    pub segment: Option<(u32, Ecn)>,
    /// Whether it is worked on at once, as it only controls.
    pub is_control: bool,
    pub envelopes: u32,
    /// The records of the block that it ends.
    pub flying: Option<Box<Flying>>,
}

/// Data that the application may read.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub bytes: u32,
    pub end: bool,
    /// Whether there was an octet of TCP for an empty message.
    pub empty: bool,
    /// Envelopes of the interface's memory that they hold until the host has taken them.
    pub held: u64,
    /// Whether the sender has been told that they are passed on.
    pub echoed: bool,
    pub carried: Option<Carried>,
}

/// The present activity of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It has not started.
    Nothing,
    /// It waits for its connection to be set up.
    Opening,
    /// A job of its own is under way.
    Busy,
    /// It sleeps.
    Asleep,
    /// It waits for the end of a write, since an instant at which the sender's clock showed this.
    Writing,
    /// It waits for data.
    Reading,
    /// It has ended.
    Ended,
}

/// The description of an end's host. Hosts that are described alike share it, so that it stays at hand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Described<'a> {
    pub processor: &'a Processor,
    pub interface: &'a Interface,
    /// Whether neither takes time or sets a limit, nor does an application work on the processor.
    pub ideal: bool,
}

/// What comes to an end, from its board to its application. A datagram that an ideal host reads at once, or sends, leaves
/// it as it is.
#[derive(Debug, Default)]
pub(crate) struct Inward {
    /// What the board is taking in or the processor has to work through.
    pub received: VecDeque<Received>,
    /// How many of these no job is to take yet: those behind the last that ended something.
    pub incomplete: u32,
    /// How many of them, from the first, the processor has been asked to work through.
    pub claimed: u32,
    /// The records of segments that have come and whose data are not accepted: with TCP each at the place of its
    /// first octet, with listed protocols at the number of its unit.
    pub early: EarlyRecords,
    /// The records of blocks that are complete at the protocol, until their data are taken.
    pub completing: Option<Box<Flying>>,
    /// Place in the stream up to which data have been accepted.
    pub accepted: u64,
    /// Blocks accepted that were not the next in the stream.
    pub wrong_data: u64,
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
}

impl Untouched for Inward {
    const UNTOUCHED: &'static Inward = &Inward {
        received: VecDeque::new(),
        incomplete: 0,
        claimed: 0,
        early: EarlyRecords::NONE,
        completing: None,
        accepted: 0,
        wrong_data: 0,
        waiting: VecDeque::new(),
        buffer: None,
        front_taken: 0,
        buffer_since: None,
        held: 0,
        inbox: VecDeque::new(),
    };
}

/// What an end writes, from its application to its protocol, the same way.
#[derive(Debug, Default)]
pub(crate) struct Outward {
    /// The state of the sender's clock when the process began to wait for its write.
    pub waiting_since: Spent,
    /// Octets of its last write that TCP's send buffer has not taken yet.
    pub untaken: u32,
    /// Whether that was found full, and its writer sleeps until a third of it is free.
    pub sleeps: bool,
    /// The request on its way from processor to interface.
    pub starting: Option<Request<Carried>>,
    /// Blocks sent at least once.
    pub blocks_sent: u64,
    /// With TCP, the messages that the peer has not got.
    pub endings: Endings,
}

impl Untouched for Outward {
    const UNTOUCHED: &'static Outward = &Outward {
        waiting_since: Spent::NONE,
        untaken: 0,
        sleeps: false,
        starting: None,
        blocks_sent: 0,
        endings: Endings::NONE,
    };
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct End<'a> {
    /// The index of the host on which it runs.
    pub host: usize,
    /// That host as the scenario has it.
    pub described: Described<'a>,
    /// Its traffic.
    pub traffic: usize,
    /// The number of the flow among its traffic's.
    pub flow: u32,
    /// Its packets' way to the peer.
    pub route: RouteId,
    pub app: Application,
    pub doing: Doing,
    pub protocol: ProtocolEnd,
    /// The language of its peer.
    pub hears: ProtocolKind,
    /// Envelopes of a network packet; 0 for whole blocks.
    pub packet: u32,
    /// The process's record since its sample began.
    pub trail: Trail,
    pub clock: SenderClock,
    /// Whether its clock is to be brought to what it waits for.
    pub unsettled: bool,
    /// Of a receiver that measures by intervals.
    pub intervals: Option<Box<Intervals>>,
    /// The writes of its application that the peer has not answered for.
    pub send_queue: SendQueue<Carried>,
    /// Whether the processor is being told that a request is done.
    pub releasing: bool,
    /// Segments between processor, board and path.
    pub in_hand: u32,
    /// How much later its packets leave, if the host is unsteady.
    pub unsteady: Option<Box<Unsteady>>,
    pub deadline_set: Option<Time>,
    pub deadline_number: u32,
    /// Whether the processor is being told that its protocol's timer has run out.
    pub expiring: bool,
    /// With URP, the records of what its peer has not got yet.
    pub in_flight: Option<Box<InFlight>>,
    /// What has come to it.
    pub inward: Seldom<Inward>,
    /// What it has written.
    pub outward: Seldom<Outward>,
    /// Arrivals that the read under way takes.
    pub reading: usize,
    pub started: Option<Time>,
    pub ended: Option<Time>,
    /// Whether it sends nothing more, though something is left to be sent.
    pub cut_off: bool,
}

impl<'a> End<'a> {
    /// An end of flow number `flow` of traffic number `traffic`, at rest.
    pub fn new(
        (host, described): (usize, Described<'a>),
        (traffic, flow): (usize, u32),
        route: RouteId,
        app: Application,
        (protocol, packet): (ProtocolEnd, u32),
        hears: ProtocolKind,
    ) -> End<'a> {
        End {
            host,
            described,
            traffic,
            flow,
            route,
            app,
            doing: Doing::Nothing,
            protocol,
            hears,
            packet,
            trail: Trail::new(Time::ZERO),
            clock: SenderClock::new(Time::ZERO),
            unsettled: false,
            intervals: None,
            send_queue: SendQueue::default(),
            releasing: false,
            in_hand: 0,
            unsteady: None,
            deadline_set: None,
            deadline_number: 0,
            expiring: false,
            in_flight: None,
            inward: Seldom::default(),
            outward: Seldom::default(),
            reading: 0,
            started: None,
            ended: None,
            cut_off: false,
        }
    }

    /// Requests that the interface counts.
    pub fn outstanding(&self) -> usize {
        self.send_queue.outstanding() + usize::from(self.outward.starting.is_some())
    }

    /// Whether nothing of its can move: it has no connection, writes nothing, and has nothing to send.
    pub fn is_silent(&self) -> bool {
        !self.protocol.is_connected()
            && self.doing != Doing::Writing
            && self.outstanding() == 0
            && self.send_queue.queued() == 0
            && self.protocol.unsent() == 0
    }

    /// Whether nothing of what it has written is still on this host.
    pub fn has_sent_all(&self) -> bool {
        self.send_queue.queued() == 0
            && self.outward.starting.is_none()
            && self.in_hand == 0
            && self.protocol.unsent() == 0
    }

    /// Whether its application has read everything that has come.
    pub fn has_read_all(&self) -> bool {
        let Inward { received, waiting, inbox, .. } = &*self.inward;
        received.is_empty() && waiting.is_empty() && inbox.is_empty() && self.reading == 0
    }
}
