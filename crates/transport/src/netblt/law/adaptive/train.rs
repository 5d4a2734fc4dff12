//! The first train: packets, or copies of the OPEN, that are sent at once, so that they come as fast as the narrowest link lets them.

use super::{Adaptive, Arrival, Window};
use trunkline_core::Span;

/// Packets of the first train that are looked at.
const TRAIN: u64 = 12;
/// The same of copies of the OPEN.
const COPIES: u64 = 10;
/// Packets of a train that tell something if the others are lost (a choice).
const LEFT: u64 = 3;
/// Spacings of a train after which its next packet does not come (a choice).
const CUT: u64 = 4;
/// Copies of the OPEN that are further apart were not sent at once (a choice).
const APART: Span = Span::from_millis(500);

impl Adaptive {
    /// A packet has come before anything is offered.
    pub(super) fn of_train(&mut self, arrival: &Arrival) {
        if !self.is_in_train(arrival) {
            if self.tells() {
                return self.decide(arrival.at);
            }
            self.window = Window::default();
        }
        self.window.take(arrival);
        let enough = if self.window.from().is_some() { TRAIN } else { COPIES };
        if self.window.count() >= enough {
            self.decide(arrival.at);
        }
    }

    /// Whether a packet is of the same train as those before it: copies of the OPEN, or data. What comes long behind others of its kind is
    /// not: a short queue has cut their train.
    fn is_in_train(&self, arrival: &Arrival) -> bool {
        let gap = arrival.at.since(self.window.last());
        let is_cut = self.tells() && gap > self.window.spacing().scaled(CUT, 1);
        let is_copy = arrival.place.is_none() && self.window.from().is_none();
        is_copy && gap < APART || self.window.from().is_some() && !is_cut
    }

    /// Whether a train that has ended early tells something of the path.
    pub(super) fn tells(&self) -> bool {
        self.offered == 0 && self.window.count() >= LEFT
    }
}
