//! Whether the emulator may spin, or has to give way to those who want its processor.

use crate::scheduling::processors;
use trunkline_core::{Span, Time};

/// A program that has waited this long for a processor after its frame was handed over waits for ours: an
/// idle one would have taken it.
const KEPT: Span = Span::from_micros(60);
/// For how long the emulator gives way after it was seen to keep somebody waiting. Then it is tried again.
const WAY: Span = Span::from_secs(1);

/// Who else runs on the emulator's processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nobody: programs and receivers are kept off.
    Own,
    /// There are others, to which the scheduler moves what waits, as long as one of them is idle.
    OneOfSeveral,
    /// It is the only one.
    Only,
}

/// Whether the emulator has to give way. Spinning is waiting, and whoever waits must not keep a processor
/// from a program that has just got a frame.
#[derive(Debug)]
pub(crate) struct Sharing {
    place: Place,
    until: Time,
}

impl Sharing {
    /// For a dataplane that has its processor to itself if `own`. To be asked before it binds itself to one.
    pub fn new(own: bool) -> Sharing {
        let place = match (own, processors().len()) {
            (true, _) => Place::Own,
            (false, 1) => Place::Only,
            (false, _) => Place::OneOfSeveral,
        };
        Sharing { place, until: Time::ZERO }
    }

    /// Whether it has to give way at `now`, a program having waited for `wait` at most since the last call.
    pub fn gives_way(&mut self, now: Time, wait: Span) -> bool {
        match self.place {
            Place::Own => false,
            Place::Only => true,
            Place::OneOfSeveral => {
                if wait > KEPT {
                    self.until = now + WAY;
                }
                now < self.until
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn way_is_given_where_somebody_waits() {
        let now = Time::from_nanos(5_000_000_000);
        let sharing = |place| Sharing { place, until: Time::ZERO };
        assert!(!sharing(Place::Own).gives_way(now, Span::from_secs(1)));
        assert!(sharing(Place::Only).gives_way(now, Span::ZERO));
        let mut several = sharing(Place::OneOfSeveral);
        assert!(!several.gives_way(now, KEPT));
        assert!(several.gives_way(now, KEPT + Span::from_nanos(1)));
        assert!(several.gives_way(now + WAY.scaled(9, 10), Span::ZERO), "for a while");
        assert!(!several.gives_way(now + WAY, Span::ZERO), "and then it is tried again");
    }
}
