//! Finding out that a recovery or a time-out was needless.

use super::clock_stamp;
use trunkline_core::Time;

/// The data sent again since the window was last reduced.
#[derive(Debug, Clone, Copy, Default)]
pub struct Undo {
    /// Octets sent again that no duplicate SACK has told of.
    octets: u64,
    /// The time stamp of the first of them; `None` if nothing was sent again, or the answer has come.
    stamp: Option<u32>,
    /// Whether there is a reduction to be undone.
    armed: bool,
}

impl Undo {
    /// The window is being reduced.
    pub fn begin() -> Undo {
        Undo { armed: true, ..Undo::default() }
    }

    /// The window is being reduced again while `octets` that were sent again are on their way. Time stamps tell nothing
    /// then, for the next answer may be that of an earlier repair.
    pub fn go_on(octets: u64) -> Undo {
        Undo { armed: true, octets, stamp: None }
    }

    /// Something goes out again.
    pub fn resent(&mut self, now: Time, octets: u64) {
        if self.armed && self.octets == 0 && self.stamp.is_none() {
            self.stamp = Some(clock_stamp(now));
        }
        self.octets += octets;
    }

    /// Something new is acknowledged, by a segment that echoes `echo`. True if that was sent before
    /// anything was sent again (Eifel detection, RFC 3522 §3.2). Only the first acknowledgement can tell.
    pub fn acked(&mut self, echo: Option<u32>) -> bool {
        let (Some(stamp), Some(echo)) = (self.stamp.take(), echo) else { return false };
        let needless = self.armed && (echo.wrapping_sub(stamp) as i32) < 0;
        self.armed &= !needless;
        needless
    }

    /// A duplicate SACK of `octets` came. True if everything sent again has been told of, so that all
    /// of it had arrived the first time (RFC 3708 §3, as Linux has it).
    pub fn duplicate(&mut self, octets: u64) -> bool {
        if !self.armed || self.octets == 0 {
            return false;
        }
        self.octets = self.octets.saturating_sub(octets);
        self.armed = self.octets > 0;
        !self.armed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Span;

    fn resent() -> Undo {
        let mut undo = Undo::begin();
        undo.resent(Time::ZERO + Span::from_millis(70), 1000);
        undo.resent(Time::ZERO + Span::from_millis(71), 1000);
        undo
    }

    #[test]
    fn an_echo_from_before_shows_that_the_first_one_arrived() {
        assert!(resent().acked(Some(69)));
        assert!(!resent().acked(Some(70)));
        assert!(!resent().acked(None));
        let mut late = resent();
        assert!(!late.acked(Some(70)) && !late.acked(Some(3)), "only the first one can tell");
    }

    #[test]
    fn all_that_was_sent_again_must_be_told_of() {
        let mut undo = resent();
        assert!(!undo.duplicate(1000));
        assert!(undo.duplicate(1000));
        assert!(!undo.duplicate(1000));
        assert!(!Undo::default().duplicate(1000));
    }
}
