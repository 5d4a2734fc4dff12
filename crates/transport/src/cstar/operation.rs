//! What a message layer does, operation by operation, as the report's Appendix A counts it.

use std::ops::AddAssign;

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $cycles:literal, $printed:literal, $of:ident $phase:ident;)*) => {
        /// An operation that one of the protocols has and the other can omit (Appendix A of TR 94-14).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Operation {
            $($(#[$doc])* $name,)*
        }

        impl Operation {
            /// Every operation, in the order of the appendix.
            pub const ALL: &'static [Operation] = &[$(Operation::$name),*];

            /// Cycles of 20 ns that it took on an HP 9000/720, as printed.
            pub const fn cycles(self) -> u32 {
                match self {
                    $(Operation::$name => $cycles,)*
                }
            }

            /// Its name in the appendix.
            pub const fn printed(self) -> &'static str {
                match self {
                    $(Operation::$name => $printed,)*
                }
            }

            /// Whether it is the careful protocol's.
            pub const fn is_careful(self) -> bool {
                match self {
                    $(Operation::$name => operations!(@$of),)*
                }
            }

            /// Whether it is done while sending; else in the interrupt.
            pub const fn is_sending(self) -> bool {
                match self {
                    $(Operation::$name => operations!(@$phase),)*
                }
            }
        }
    };
    (@careful) => { true };
    (@traditional) => { false };
    (@send) => { true };
    (@interrupt) => { false };
}

operations! {
    /// Decide not to set the ACK flag.
    DecideAck = 7, "decide not to set ACK flag", traditional send;
    /// Allocate and fill a fragment descriptor.
    FillDescriptor = 109, "allocate and fill fragment descriptor", traditional send;
    /// Set the mask of nodes whose acknowledgement is due.
    SetAckMask = 24, "set ACK mask", traditional send;
    /// Find the event's slot for sending.
    FindSlot = 32, "get TX event slot pointer", traditional send;
    /// Push the descriptor on the event's stack.
    PushDescriptor = 58, "push descriptor on stack", traditional send;
    /// Collect buffers that have been transmitted.
    CollectSent = 62, "collect transmitted buffers", traditional send;
    /// Check and update the two sets of buffers.
    CheckSets = 26, "check/update bit sets", traditional send;
    /// Count the buffers on board.
    CountBuffers = 14, "on-board buffer counter", traditional interrupt;
    /// Determine the fragment's priority.
    Prioritise = 69, "determine fragment priority", traditional interrupt;
    /// See whether buffers on board run short.
    CheckCopyOut = 32, "check for copy-out", traditional interrupt;
    /// Free what the frame acknowledges by its event.
    ImplicitAck = 779, "handle implicit ACK", traditional interrupt;
    /// Check and update the fragment's number, allocate its descriptor.
    CheckNumber = 66, "check and update fragment number", traditional interrupt;
    /// See whether an explicit acknowledgement is asked for.
    CheckExplicitAck = 6, "check for explicit ACK", traditional interrupt;
    /// See whether anything has to be sent again.
    CheckRetransmission = 36, "check for retransmission", traditional interrupt;
    /// See whether every node sends under this event.
    CheckCrowd = 9, "check for all-to-all", traditional interrupt;
    /// See whether the event is complete.
    CheckComplete = 89, "check if complete", traditional interrupt;
    /// Take a frame off the window.
    ShrinkWindow = 21, "shrink window", careful send;
    /// Fill in the window update that the frame carries.
    FillUpdate = 21, "fill in window update", careful send;
    /// Process the window update that came with the frame.
    ProcessUpdate = 52, "process window update", careful interrupt;
    /// Keep track of the last event's number.
    TrackEvent = 24, "track last event number", careful interrupt;
    /// Take a frame off the sender's window.
    ShrinkSender = 29, "decrement sender's window", careful interrupt;
    /// See that nothing has to be copied out.
    SkipCopyOut = 4, "skip copy-out", careful interrupt;
}

/// What operations took, and what was copied. It goes along with each step of a node: so it is small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    cycles: u64,
    /// Bytes copied between the adapter and memory.
    pub copied: u64,
    /// Frames copied out of the adapter that had been received.
    pub copied_out: u32,
    /// Frames of other nodes that were queued for the next on their way.
    pub handed_on: u32,
}

impl Tally {
    /// One more of an operation.
    #[inline]
    pub fn note(&mut self, operation: Operation) {
        self.cycles += u64::from(operation.cycles());
    }

    /// Cycles of 20 ns that the operations take by the appendix; copying is not in it.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.cycles += other.cycles;
        self.copied += other.copied;
        self.copied_out += other.copied_out;
        self.handed_on += other.handed_on;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appendix A prints 318 and 1100 cycles of the traditional protocol, and 42 and 109 of the careful one.
    #[test]
    fn the_sums_are_those_of_the_appendix() {
        let sum = |careful: bool, sending: bool| -> u32 {
            let of = |it: &&Operation| it.is_careful() == careful && it.is_sending() == sending;
            Operation::ALL.iter().filter(of).map(|it| it.cycles()).sum()
        };
        assert_eq!((sum(false, true), sum(false, false)), (318, 1100));
        assert_eq!((sum(true, true), sum(true, false)), (42, 109));
    }
}
