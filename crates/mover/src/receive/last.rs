//! The receiver's last word, which nothing follows that would show its loss.

use super::End;
use crate::words::Answer;
use trunkline_core::{Span, Time};
use trunkline_transport::netblt::wire::{Packet, Ports};

/// The part of a round trip after which the last word is said again (a choice), and the least time.
const AGAIN: (u64, Span) = (16, Span::from_millis(2));

/// A last word that is said until it is answered, each time after twice as long a pause. On a path without loss that is five
/// times, within the round trip that the answer takes.
pub(super) struct LastWord {
    /// Whom it is for.
    guest: u64,
    ports: Ports,
    due: Time,
    pause: Span,
}

impl LastWord {
    /// A word that is said for the first time now, over a path of this round trip.
    pub fn new(now: Time, (guest, ports): (u64, Ports), round: Span) -> LastWord {
        let pause = round.scaled(1, AGAIN.0).max(AGAIN.1);
        LastWord { guest, ports, due: now + pause, pause }
    }

    /// When it is said again.
    pub fn due(&self) -> Time {
        self.due
    }

    /// Whether it is to be said again now.
    fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.due <= now;
        if is_due {
            self.pause = self.pause.scaled(2, 1);
            self.due = now + self.pause;
        }
        is_due
    }
}

impl End {
    /// All is in its place, which is said for the first time now.
    pub(super) fn begin_last_word(&mut self, now: Time) {
        let asks = self.pending.as_ref().map(|it| (it.guest, it.ports));
        let Some(to) = asks.or(self.teller) else { return };
        let guest = self.sessions.iter().find(|it| it.number == to.0);
        let round = guest.and_then(|it| it.round).unwrap_or_default();
        self.last_word = Some(LastWord::new(now, to, round));
    }

    /// Says that all is in its place to whom it was told, as long as nothing says that it is known.
    pub(super) fn say_last_word(&mut self, now: Time) {
        let Some(word) = &mut self.last_word else { return };
        let (guest, ports) = (word.guest, word.ports);
        if !word.is_due(now) {
            return;
        }
        self.tell_guest(guest, ports, &Packet::Text(Answer::Done.text()), &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times at which it is said again, in 16ths of a round trip.
    #[test]
    fn a_last_word_is_said_at_ever_longer_pauses() {
        let round = Span::from_millis(160);
        let at = |sixteenth: u64| Time::ZERO + round.scaled(sixteenth, 16);
        let mut word = LastWord::new(Time::ZERO, (1, Ports { local: 1, foreign: 2 }), round);
        let said: Vec<u64> = (0..64).filter(|&it| word.is_due(at(it))).collect();
        assert_eq!(said, [1, 3, 7, 15, 31, 63]);
        let near = LastWord::new(Time::ZERO, (1, Ports { local: 1, foreign: 2 }), Span::ZERO);
        assert_eq!(near.due(), Time::ZERO + AGAIN.1);
    }
}
