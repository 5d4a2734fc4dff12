//! What a node does, operation by operation.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::AddAssign;
use trunkline_transport::cstar::{Delivery, EventId, Fragment, Source};

/// The program of one node. All nodes run the same program with the same flow of control.
///
/// It is asked for its next operation with the outcome of the last one, the first time with [`Outcome::Started`].
pub trait Program: fmt::Debug + Send {
    /// The next operation.
    fn next(&mut self, outcome: Outcome) -> Op;

    /// Whether what it has computed and received is right, once it is [done](Op::Done).
    ///
    /// # Errors
    /// What is wrong.
    fn verdict(&self) -> Result<(), String>;
}

/// An operation of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Sends a fragment; waits while a resource is short.
    Send(Fragment),
    /// Receives a fragment of an event; waits until one is there. What was received before is done with, and its buffer is
    /// free.
    Receive(Source, EventId),
    /// Spends time of the processor.
    Work(Work),
    /// What is measured begins here.
    Begin,
    /// A measured piece ends here, so many user bytes of it this node's, and the next begins.
    Lap(u64),
    /// Nothing more.
    Done,
}

/// How an operation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There was none before.
    Started,
    /// It is done, and there is nothing to be said of it.
    Done,
    /// A fragment was received. Its buffer is free when the program next sends, receives or ends.
    Received(Delivery),
}

/// Work of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Work {
    /// Words of 4 bytes written, each once.
    pub written: u64,
    /// Words of 4 bytes read, each once.
    pub read: u64,
    /// Points of a grid computed anew from their neighbours.
    pub points: u64,
    /// Sweeps over the node's part of a grid begun, each with its fixed cost.
    pub sweeps: u64,
    /// Values of 8 bytes added to others.
    pub added: u64,
}

impl AddAssign for Work {
    fn add_assign(&mut self, more: Work) {
        self.written += more.written;
        self.read += more.read;
        self.points += more.points;
        self.sweeps += more.sweeps;
        self.added += more.added;
    }
}
