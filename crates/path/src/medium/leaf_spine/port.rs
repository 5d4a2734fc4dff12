//! A port of the fabric: its wire, what waits for it in its switch, and what it may send.

use super::plan::PortId;
use crate::framing::Piece;
use crate::line::Wire;
use crate::medium::StationId;
use crate::medium::transit::{Destination, FrameId};
use std::collections::{BTreeMap, VecDeque};
use trunkline_core::{Span, Time};

/// A frame, or a copy of one, on its way over the fabric.
#[derive(Debug, Clone, Copy)]
pub struct FrameCopy {
    pub frame: FrameId,
    pub from: StationId,
    pub to: Destination,
    pub piece: Piece,
    /// The time of its own bits so far.
    pub own: Span,
    /// The time on cables and in switches so far.
    pub way: Span,
    /// The input buffer that it lies in, if it is in a switch.
    pub lodging: Option<u32>,
}

/// A port that sends.
#[derive(Debug)]
pub struct Port {
    pub wire: Wire,
    /// Whether a frame is on the wire.
    pub busy: bool,
    /// The copy on the wire, of a switch's port.
    pub sending: Option<FrameCopy>,
    /// Bytes that it may still send by credits. Below 0 by a frame that is larger than the buffer.
    pub credit: i64,
    /// Whether the far end has told it to stop.
    pub stopped: bool,
    /// When a station's queue gives out what it holds back. [`Time::NEVER`] if it is not waited for.
    pub ready: Time,
    /// The input buffer at the far end of its cable.
    pub far: Input,
    pub waiting: Waiting,
}

/// An input buffer of a switch, at the end of a port's cable.
#[derive(Debug, Default)]
pub struct Input {
    /// Bytes in it.
    pub bytes: u64,
    /// Whether it has told the port to stop.
    pub stops: bool,
}

/// What waits for a port in its switch: a queue for each input, served in turn, frame by frame.
#[derive(Debug, Default)]
pub struct Waiting {
    queues: BTreeMap<PortId, VecDeque<FrameCopy>>,
    turns: VecDeque<PortId>,
    /// Bytes that wait or are on the wire.
    pub bytes: u64,
}

impl Port {
    /// An idle port with a credit.
    pub fn new(wire: Wire, credit: u32) -> Port {
        Port {
            wire,
            busy: false,
            sending: None,
            credit: i64::from(credit),
            stopped: false,
            ready: Time::NEVER,
            far: Input::default(),
            waiting: Waiting::default(),
        }
    }

    /// Puts a piece on the wire at `now`. Returns when its last bit leaves.
    pub fn begin(&mut self, now: Time, piece: Piece) -> Time {
        self.busy = true;
        self.wire.send(now, piece)
    }

    /// How long a piece itself takes.
    pub fn length(&self, piece: Piece) -> Span {
        self.wire.nominal(piece.bytes, piece.controls)
    }
}

impl Waiting {
    /// Lets a copy wait behind all others of `queue`.
    pub fn push(&mut self, queue: PortId, copy: FrameCopy) {
        self.bytes += u64::from(copy.piece.bytes);
        let waiting = self.queues.entry(queue).or_default();
        if waiting.is_empty() {
            self.turns.push_back(queue);
        }
        waiting.push_back(copy);
    }

    /// The copy whose turn it is.
    pub fn first(&self) -> Option<&FrameCopy> {
        self.queues.get(self.turns.front()?)?.front()
    }

    /// Takes the copy whose turn it is; then it is the next queue's turn. Its bytes count until [`sent`](Waiting::sent).
    pub fn pop(&mut self) -> Option<FrameCopy> {
        let turn = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&turn)?;
        let copy = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(&turn);
        } else {
            self.turns.push_back(turn);
        }
        copy
    }

    /// The last bit of a copy has left.
    pub fn sent(&mut self, bytes: u32) {
        self.bytes -= u64::from(bytes);
    }
}
