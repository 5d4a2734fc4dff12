//! What a host knows of a protocol, whatever it exchanges with the other end.

use trunkline_core::Time;

/// Bytes that may wait, unsent, in a protocol that sends what it has; a choice.
pub const WAITING: u64 = 4096;

/// One end of a conversation, driven from outside.
///
/// The driver feeds whatever has come, or what the application hands over, then polls the protocol's `transmit` until it answers `None`, then asks for the [`deadline`](Endpoint::deadline) and sees to it that
/// [`expire`](Endpoint::expire) is called at that instant, unless something else comes first. After `expire` it polls
/// `transmit` again. Instants never go back from one call to the next.
///
/// What is handed over, sent and received is each protocol's own, and so are the methods for it. A unit is what the protocol sends and repeats as a whole: a block, a frame, a datagram. A request is cut into
/// [`units_of`](Endpoint::units_of) of them.
pub trait Endpoint {
    /// How many units end in a request of so many bytes, the next to be handed over. Requests that do not end a message may
    /// share a unit with the next.
    fn units_of(&self, bytes: u32, end: bool) -> u64;
    /// The application has read so many bytes of what this end has accepted.
    fn consumed(&mut self, _now: Time, _bytes: u64) {}
    /// When [`expire`](Endpoint::expire) is to be called, if nothing else happens; may lie in the past.
    fn deadline(&self) -> Option<Time>;
    /// Does what is due at `now`. A call before the deadline does nothing.
    fn expire(&mut self, now: Time);
    /// Bytes taken over and not yet sent for the first time.
    fn unsent(&self) -> u64;
    /// Bytes sent and not answered for.
    fn unanswered(&self) -> u64;
    /// Bytes that may wait here, unsent, when the application's write returns ([`WAITING`] by default).
    fn room(&self) -> u64 {
        WAITING
    }
    /// Whether data wait here until more of them come. An interface then takes requests without a limit, for the next one may
    /// be what the one before waits for.
    fn gathers(&self) -> bool {
        false
    }
    /// The reason why data are held back that could be sent; `None` if there is none.
    fn held(&self, now: Time) -> Option<Held>;
    /// Whether the other end has been silent for so long that it counts as dead.
    fn dead(&self) -> bool;
    /// Units with which the host is done, as [`Counters::answered`].
    fn answered(&self) -> u64 {
        self.counters().answered
    }
    /// Counts of what has happened.
    fn counters(&self) -> Counters;
}

/// The reason why a sender does not send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Its connection is being set up.
    Opening,
    /// Its window is full.
    Window,
    /// Its congestion window is full.
    Congestion,
    /// Something that was lost is waited for or sent again.
    Recovery,
    /// It keeps to a rate.
    Pace,
}

/// Counts of what a protocol has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Units sent at least once.
    pub units: u64,
    /// Units with which the host is done, all before the first with which it is not: answered for, or, where no
    /// answer concerns the host, sent or kept by the protocol.
    pub answered: u64,
    /// Units sent again, each time counted.
    pub resent: u64,
    /// Time-outs.
    pub timeouts: u64,
}
