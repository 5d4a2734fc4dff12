//! What nodes exchange.

use super::{Destination, EventId, Flags, NodeId};
use bytes::Bytes;

/// A frame of the message layer. Its header has 32 octets, a layout of ours: TR 94-14 §6.1 states only that a frame has 52
/// octets beyond its payload, of which 20 are FDDI's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// What it says of its event.
    pub flags: Flags,
    /// Whether its fragment's acknowledgement is asked for at once.
    pub wants_ack: bool,
    /// Whether its fragment was sent before.
    pub again: bool,
    /// The node that sent it.
    pub from: NodeId,
    /// Where it goes.
    pub to: Destination,
    /// Its event; of a frame without a fragment the latest that its node has sent under.
    pub event: EventId,
    /// The fragment's number among those of its node and event, from 0.
    pub fragment: u32,
    /// Frames that the receiver may send beyond those that it might before.
    pub grant: u16,
    /// Frames that its node might send and gives back: it had been lent them, and did not use them.
    pub back: u16,
    /// All events before this one have been received whole by the node that sent it; 0 in the careful protocol's frames.
    pub complete: EventId,
    /// Frames that its node asks to be granted beyond its window, for a message; 0 but in updates.
    pub asks: u32,
    /// Whose fragment it is and for whom, if nodes between hand it on; `None` if it is `from`'s for `to`, and in all frames but
    /// fragments of the careful protocol.
    pub route: Option<Route>,
    /// How many frames its node has sent to this destination before: to this node, or to all.
    pub counter: u32,
    /// The fragment's octets.
    pub data: Bytes,
    /// The fragments that an acknowledgement or a request names.
    pub list: Vec<Entry>,
}

/// The ends of a way over other nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The node that sent the fragment first.
    pub origin: NodeId,
    /// The node or nodes that it is for.
    pub target: Destination,
}

/// What a frame with a fragment says that goes from its sender straight to its receivers, for the first time, and nothing
/// besides: as nearly all do. It is written without a [`Frame`] and, of the careful protocol, read so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub kind: Kind,
    pub flags: Flags,
    pub wants_ack: bool,
    pub from: NodeId,
    pub to: Destination,
    pub event: EventId,
    pub fragment: u32,
    pub grant: u16,
    pub complete: EventId,
    pub counter: u32,
}

impl Head {
    /// The frame with these octets.
    #[inline]
    pub fn frame(self, data: Bytes) -> Frame {
        let Head { kind, flags, wants_ack, from, to, event, fragment, grant, complete, counter } =
            self;
        Frame {
            kind,
            flags,
            wants_ack,
            again: false,
            from,
            to,
            event,
            fragment,
            grant,
            back: 0,
            complete,
            asks: 0,
            route: None,
            counter,
            data,
            list: Vec::new(),
        }
    }

    /// The head of a frame, if that says nothing besides.
    #[inline]
    pub fn of(frame: &Frame) -> Option<Head> {
        let &Frame { kind, wants_ack, again, back, asks, route, .. } = frame;
        let plain = !kind.is_control() && !again && back == 0 && asks == 0 && route.is_none();
        let plain = plain && !(wants_ack && kind == Kind::Careful);
        plain.then(|| Head::of_fragment(frame))
    }

    /// The head of a frame with a fragment, whatever else it says.
    #[inline]
    pub fn of_fragment(frame: &Frame) -> Head {
        let &Frame { kind, flags, wants_ack, from, to, event, fragment, .. } = frame;
        let &Frame { grant, complete, counter, .. } = frame;
        Head { kind, flags, wants_ack, from, to, event, fragment, grant, complete, counter }
    }
}

impl Kind {
    /// Whether it is one of the careful protocol's.
    pub fn is_careful(self) -> bool {
        matches!(self, Kind::Careful | Kind::Update)
    }

    /// Whether it has no fragment.
    pub fn is_control(self) -> bool {
        !matches!(self, Kind::Careful | Kind::Traditional)
    }
}

impl Frame {
    /// The version of frames that is written and read.
    pub const VERSION: u8 = 1;
    /// Octets of the header.
    pub const HEADER: u32 = 32;
    /// Octets of an entry.
    pub const ENTRY: u32 = 12;

    /// The node whose fragment it is.
    pub fn origin(&self) -> NodeId {
        self.route.map_or(self.from, |it| it.origin)
    }

    /// The node or nodes that it is for in the end.
    pub fn target(&self) -> Destination {
        self.route.map_or(self.to, |it| it.target)
    }

    /// Octets in all, without those of the network.
    pub fn size(&self) -> u32 {
        Frame::HEADER + self.data.len() as u32 + Frame::ENTRY * self.list.len() as u32
    }
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A fragment of the traditional protocol.
    Traditional,
    /// An explicit, selective acknowledgement.
    Acknowledgement,
    /// A request for missing fragments.
    Request,
    /// A fragment of the careful protocol.
    Careful,
    /// A window update, and nothing else.
    Update,
}

/// Fragments of one event: the first, and of the following 32 those whose bit is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The event.
    pub event: EventId,
    /// The first fragment.
    pub first: u32,
    /// Bit i: the fragment `first + 1 + i` too.
    pub following: u32,
}
