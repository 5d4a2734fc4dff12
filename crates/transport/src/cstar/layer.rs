//! The interface of a message layer, which both protocols have in common.

use super::{
    BufferId, Cluster, Delivery, EventId, Fragment, Frame, FrameError, NodeId, Source, Tally,
};
use bytes::Bytes;
use std::fmt;
use thiserror::Error;
use trunkline_core::{Span, Time};

/// One node's end of a message layer.
///
/// The driver hands over what has come ([`arrive`](Layer::arrive)) and what the application asks for, then polls
/// [`transmit`](Layer::transmit) until it answers `None`, then asks for the [`deadline`](Layer::deadline) and sees to it
/// that [`expire`](Layer::expire) is called then, unless something else comes first. After any call it asks for a
/// [`failure`](Layer::failure). Instants never go back from one call to the next.
pub trait Layer: fmt::Debug + Send {
    /// Which node's end it is.
    fn node(&self) -> NodeId;

    /// What it takes the cluster for.
    fn cluster(&self) -> &Cluster;

    /// What the layers of all nodes must have alike, by name: else they would wait for each other, or take each other's frames
    /// for what they are not.
    fn terms(&self) -> Vec<(&'static str, String)>;

    /// Takes a fragment to be sent.
    ///
    /// # Errors
    /// Returns it with the reason if a resource is short; nothing has changed then but what `transmit` may have to send
    /// for it. To be asked again after anything has arrived, was released or expired.
    fn send(&mut self, now: Time, fragment: Fragment) -> Result<(), Blocked>;

    /// Takes a fragment that can go at once, as one frame and before anything else: the driver sends the header that this
    /// returns and behind it the fragment's octets, then asks [`transmit`](Layer::transmit) as ever. What goes is what
    /// [`send`](Layer::send) and `transmit` would give. `None` if it cannot, and then nothing has changed.
    fn post(&mut self, fragment: &Fragment) -> Option<[u8; Frame::HEADER as usize]>;

    /// The next fragment of an event from `from`; `None` if there is none yet.
    ///
    /// Events are to be received in their order, each to its end: behind the end of one a traditional layer takes what still
    /// comes of earlier ones for copies.
    fn take(&mut self, from: Source, event: EventId) -> Option<Delivery>;

    /// Whether [`take`](Layer::take) may have something; it has nothing if not.
    fn has_fragments(&self) -> bool;

    /// The application waits for a fragment that cannot be [taken](Layer::take) yet. To be called again after anything has
    /// arrived or expired: a traditional layer asks for what is missing only while it is waited for.
    fn wait(&mut self, now: Time, from: Source, event: EventId);

    /// Takes a fragment, or waits for it.
    fn receive(&mut self, now: Time, from: Source, event: EventId) -> Option<Delivery> {
        let taken = self.take(from, event);
        if taken.is_none() {
            self.wait(now, from, event);
        }
        taken
    }

    /// The application has done with a delivery's buffer. It says so before it waits and when it ends: the buffer is a peer's
    /// window, and what others hand on may wait for it.
    fn release(&mut self, now: Time, buffer: BufferId);

    /// Takes in a frame whose octets have come whole. Frames for other nodes are none of its business.
    fn arrive(&mut self, now: Time, frame: Frame);

    /// Reads a frame and [takes it in](Layer::arrive). Returns the node that sent it.
    ///
    /// # Errors
    /// If the octets are no frame; nothing has changed then.
    fn hear(&mut self, now: Time, octets: Bytes) -> Result<NodeId, FrameError> {
        let frame = Frame::decode(octets)?;
        let from = frame.from;
        self.arrive(now, frame);
        Ok(from)
    }

    /// A frame has come whose check sum is wrong; who sent it is not known.
    fn damaged(&mut self, now: Time);

    /// Whether [`transmit`](Layer::transmit) may have something; it has nothing if not.
    fn has_frames(&self) -> bool;

    /// The next frame to be sent.
    fn transmit(&mut self, now: Time) -> Option<Frame>;

    /// When [`expire`](Layer::expire) is to be called; may lie in the past. A careful layer has no timers but those of its
    /// audits and of its leases, if it has any.
    fn deadline(&self) -> Option<Time>;

    /// Whether its timers may run so late: then the driver may let the application wait so long before it calls
    /// [`wait`](Layer::wait), and hand over what comes meanwhile with the instant of the call before.
    fn bears(&self, _late: Span) -> bool {
        false
    }

    /// How often in a row a peer was asked whether anything was lost, and has not answered; of a layer that never asks none.
    fn unanswered(&self, _peer: NodeId) -> u32 {
        0
    }

    /// How often something has passed: a fragment was taken in, or a peer said that it has more than before. A layer that
    /// refuses nothing does not count it.
    fn passed(&self) -> u64 {
        0
    }

    /// Does what is due at `now`.
    fn expire(&mut self, now: Time);

    /// Why nothing more may be expected of it: the network has broken its promise, or a peer its word. Whatever was
    /// delivered before is good.
    fn failure(&self) -> Option<&Failure>;

    /// The operations done since this was asked last, for whoever charges their time.
    fn take_tally(&mut self) -> Tally;

    /// What it holds now, and has held at most.
    fn memory(&self) -> Memory;

    /// Counts of what is rare.
    fn counters(&self) -> Counters;
}

/// Counts of what happens only when frames are lost or buffers run short. A careful layer has none of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Fragments refused for want of buffers.
    pub refused: u64,
    /// Fragments asked for again.
    pub requests: u64,
    /// Fragments sent again.
    pub again: u64,
    /// Fragments that came twice.
    pub duplicates: u64,
    /// Explicit acknowledgements sent.
    pub acknowledgements: u64,
}

/// A fragment that cannot be sent now, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocked {
    /// This node's window is closed; a traditional layer has none.
    Window(Fragment, NodeId),
    /// All buffers for sending are taken by what is not acknowledged.
    Buffers(Fragment),
}

impl Blocked {
    /// The fragment, to be sent later.
    pub fn into_fragment(self) -> Fragment {
        match self {
            Blocked::Window(fragment, _) | Blocked::Buffers(fragment) => fragment,
        }
    }
}

/// Why a message layer cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Failure {
    /// Frames of a peer are missing, in a network that promised to lose none.
    #[error("reliability violated: {missing} frame(s) of {peer} were lost before one of {event}")]
    Lost {
        /// Whose frames.
        peer: NodeId,
        /// The event of the frame that showed it.
        event: EventId,
        /// How many.
        missing: u32,
    },
    /// A frame came twice, or out of order, in a network that promised neither.
    #[error("reliability violated: a frame of {peer} for {event} came twice or out of order")]
    Disordered {
        /// Whose frame.
        peer: NodeId,
        /// Its event.
        event: EventId,
    },
    /// A frame came damaged, in a network that promised to damage none.
    #[error("reliability violated: a frame came damaged")]
    Damaged,
    /// A peer sent more than its window allows.
    #[error("{peer} sent a frame of {event} for which it had no buffer")]
    Overrun {
        /// The peer.
        peer: NodeId,
        /// The frame's event.
        event: EventId,
    },
    /// Received fragments fill the adapter and the memory for copies: only a deadlock is left.
    #[error(
        "the memory for received fragments is full: {bytes} bytes wait to be received; receive before so much is sent ahead, or give more 'memory'"
    )]
    Memory {
        /// Bytes copied out of the adapter.
        bytes: u64,
    },
    /// Fragments of too many events wait.
    #[error(
        "fragments of {events} events wait to be received, and there is room for no more: receive before so much is sent ahead"
    )]
    Events {
        /// Events.
        events: usize,
    },
    /// The program waits for what it has itself acknowledged: who has received all of an event has all before it too.
    #[error(
        "its program waits for {event} when it has received all of {done}, which acknowledges all up to that: receive events in ascending order, and let several nodes send to one in a crowd only"
    )]
    Acknowledged {
        /// The event that it waits for.
        event: EventId,
        /// The latest that it has received all of.
        done: EventId,
    },
    /// A peer asks for, or says, what it cannot.
    #[error("{peer} breaks the protocol: {what}")]
    Protocol {
        /// The peer.
        peer: NodeId,
        /// What it did.
        what: &'static str,
    },
}

/// What a layer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Receive buffers of the adapter that are taken.
    pub receive: u32,
    /// The most that have been.
    pub receive_most: u32,
    /// Buffers for sending that are taken.
    pub send: u32,
    /// The most that have been.
    pub send_most: u32,
    /// Bytes of received fragments copied into memory, and not yet received, with those of their places.
    pub copied: u64,
    /// The most that have been.
    pub copied_most: u64,
    /// Bytes of state about peers.
    pub state: u64,
}
