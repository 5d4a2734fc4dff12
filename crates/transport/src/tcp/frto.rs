//! Detection of a needless time-out by what comes after it, without time stamps: F-RTO (RFC 5682), in its form
//! for SACK (§3.1) if that is agreed upon.
//!
//! What was lost is repaired from the first segment on. If that one's acknowledgement moves the window, two new
//! segments go out before any other repair: if the next acknowledgement covers what was sent only once, before the
//! time-out, nothing was lost.

use super::agreed::Agreed;
use super::scoreboard::Taken;
use super::sender::{Phase, Sender};
use super::sending::Outgoing;
use super::settings::Settings;
use crate::Payload;
use trunkline_core::Time;

/// The stage that the trial has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trial {
    /// There is none, or it is over.
    #[default]
    Over,
    /// The first segment goes again, and its acknowledgement is waited for (step 2).
    First,
    /// New segments go out, so many more, and the acknowledgement after the first is waited for (step 3).
    New(u8),
}

/// Segments that go out before the next repair (step 2b).
const NEW: u8 = 2;

impl Trial {
    /// Whether repairs wait for its outcome.
    pub fn is_open(self) -> bool {
        matches!(self, Trial::New(_))
    }
    /// Whether all new segments that it allows have gone out.
    pub fn is_full(self) -> bool {
        self == Trial::New(0)
    }
}

/// An acknowledgement as the trial sees it.
#[derive(Debug, Clone, Copy)]
pub struct Evidence {
    pub ack: u64,
    /// Whether it acknowledged something new.
    pub progress: bool,
    /// Whether it told of something that had arrived out of its turn, by SACK or as a duplicate.
    pub told: bool,
}

impl<B: Payload> Sender<B> {
    /// Whether an acknowledgement shows that the time-out was needless.
    pub(super) fn try_time_out(
        &mut self,
        evidence: Evidence,
        taken: &Taken,
        agreed: &Agreed,
    ) -> bool {
        if self.trial == Trial::Over || self.phase != Phase::Loss {
            self.trial = Trial::Over;
            return false;
        }
        // Without SACK, what lies behind a repaired segment may have come before the time-out.
        let clear = agreed.sack || !taken.repaired;
        if clear && taken.original.is_some_and(|end| end <= self.recover) {
            self.trial = Trial::Over;
            return true;
        }
        self.trial = match self.trial {
            Trial::First if evidence.progress => self.after_first(evidence.ack),
            Trial::First if evidence.told && !agreed.sack => Trial::Over,
            Trial::New(_) if evidence.told => Trial::Over,
            trial => trial,
        };
        false
    }

    /// Step 2b: new segments, if the acknowledgement leaves some of what was outstanding, there are such
    /// segments, and the other end takes them.
    fn after_first(&self, ack: u64) -> Trial {
        let partial = ack < self.recover;
        let new = self.unsent() > 0 && self.offered.edge > self.board.next();
        if partial && new { Trial::New(NEW) } else { Trial::Over }
    }

    /// Sends a new segment of a trial. If none can go out, the trial is over.
    pub(super) fn on_trial(
        &mut self,
        now: Time,
        agreed: &Agreed,
        settings: &Settings,
    ) -> Option<Outgoing<B>> {
        let Trial::New(left) = self.trial else { return None };
        if left == 0 {
            return None;
        }
        let out = self.fresh(now, agreed, settings);
        self.trial = match (&out, left) {
            (Some(_), _) => Trial::New(left - 1),
            (None, NEW) => Trial::Over,
            (None, _) => Trial::New(0),
        };
        out
    }
}
