//! The applications.
//!
//! An application is a sequential process: it asks for one [`Action`], and is told the [`Outcome`] when
//! that is done. It never reads a clock and does no I/O, so that the same process runs on simulated
//! hosts and on real sockets.
//!
//! For each flow of a traffic the host runs two of them, [`Application::sender`] and
//! [`Application::receiver`]: it calls [`step`](Application::step) with [`Outcome::Start`], does what it
//! is asked, calls `step` again with the outcome and the time, and so on until [`Action::Done`]. After
//! each step it asks [`take_sample`](Application::take_sample) until there is none. Senders end by
//! themselves; receivers wait for more until the host stops them, after a [`flush`](Application::flush).

mod application;
mod bulk;
mod echo;
mod greedy;
mod paced;
#[cfg(test)]
mod pair;
mod sink;
mod transfer;

pub use application::Application;

use trunkline_core::{Span, Time};

/// The next request of a process to its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Write `bytes` user bytes in one system write; `end` marks the end of a message. `fresh` says that
    /// the time of a new sample starts here, so that nothing before it is booked to that sample.
    Write {
        /// User bytes, may be 0 with `end`.
        bytes: u32,
        /// Whether it ends a message.
        end: bool,
        /// Whether a sample starts here.
        fresh: bool,
    },
    /// Wait for data.
    Read,
    /// Keep the processor busy.
    Work(Span),
    /// Sleep until an instant.
    Wait(Time),
    /// The process has ended.
    Done,
}

/// The outcome of the last action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The first call.
    Start,
    /// The write has returned.
    Written,
    /// Data were read: all that had arrived, at most to the end of a message.
    Read {
        /// User bytes.
        bytes: u32,
        /// Whether the end of a message was reached.
        end: bool,
    },
    /// The work is done or the time has come.
    Woke,
}

/// A measurement as the process saw it; the host adds the steps of its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draft {
    /// User bytes of the message or transfer.
    pub size: u64,
    /// The repetition of this size.
    pub index: u32,
    /// When it was meant to start.
    pub intended: Time,
    /// When it started.
    pub start: Time,
    /// When it ended.
    pub end: Time,
}

/// The information on its sending that a datagram gives its receiver, as a time stamp in the datagram would.
///
/// [`Application::stamp`] gives it on the sending side, [`Application::stamped`] takes it on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its number, from 0.
    pub index: u32,
    /// When it was meant to be sent.
    pub intended: Time,
    /// When its write started.
    pub start: Time,
}

/// User bytes of the answer to an empty message: the count of bytes received, one machine word
/// (`meat` answers `mpuke` so: Hawley 1989, section 3.1).
pub(crate) const COUNT: u32 = 4;
