//! Whether the emulator may spin, or has to give way to those who want its processor.

use crate::scheduling::processors;
use trunkline_core::{Span, Time};

/// A program that has waited this long for a processor after its frame was handed over may wait for ours: an
/// idle one takes it sooner, but for one time in a hundred on a virtual machine.
const KEPT: Span = Span::from_micros(60);
/// So many such waits one after the other are no accident.
const OFTEN: u32 = 2;
/// For how long the emulator gives way after it was seen to keep somebody waiting. Then it is tried again.
const WAY: Span = Span::from_secs(1);

/// The other users of the emulator's processor.
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
    /// Long waits one after the other.
    kept: u32,
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
        Sharing { place, kept: 0, until: Time::ZERO }
    }

    /// Whether it has to give way at `now`. Since the last call a program's wait has ended after `ended`, if
    /// one has; another has lasted for `waiting`.
    pub fn gives_way(&mut self, now: Time, ended: Option<Span>, waiting: Span) -> bool {
        match self.place {
            Place::Own => false,
            Place::Only => true,
            Place::OneOfSeveral => {
                if let Some(wait) = ended {
                    self.kept = if wait > KEPT { self.kept + 1 } else { 0 };
                    if self.kept >= OFTEN {
                        self.until = now + WAY;
                    }
                }
                waiting > KEPT || now < self.until
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(5_000_000_000);
    const LONG: Span = Span::from_nanos(KEPT.as_nanos() + 1);

    fn sharing(place: Place) -> Sharing {
        Sharing { place, kept: 0, until: Time::ZERO }
    }

    #[test]
    fn the_place_decides_where_there_is_no_choice() {
        assert!(!sharing(Place::Own).gives_way(NOW, Some(LONG), Span::from_secs(1)));
        assert!(sharing(Place::Only).gives_way(NOW, None, Span::ZERO));
    }

    #[test]
    fn way_is_given_while_somebody_waits() {
        let mut several = sharing(Place::OneOfSeveral);
        assert!(!several.gives_way(NOW, None, KEPT));
        assert!(several.gives_way(NOW, None, LONG));
        assert!(!several.gives_way(NOW, Some(LONG), Span::ZERO), "a single one is an accident");
    }

    #[test]
    fn way_is_given_for_a_while_where_everybody_waits() {
        let mut several = sharing(Place::OneOfSeveral);
        for wait in [LONG, KEPT, LONG] {
            assert!(!several.gives_way(NOW, Some(wait), Span::ZERO), "not one after the other");
        }
        assert!(several.gives_way(NOW, Some(LONG), Span::ZERO));
        assert!(several.gives_way(NOW + WAY.scaled(9, 10), None, Span::ZERO), "for a while");
        assert!(!several.gives_way(NOW + WAY, None, Span::ZERO), "and then it is tried again");
        assert!(several.gives_way(NOW + WAY, Some(LONG), Span::ZERO), "to no avail");
    }
}
