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
/// Copies in a row that are told to be lost at most, and what part of their mean the other times from one to the next may differ by (choices).
const HOLE: u64 = 3;
const EVEN: u64 = 4;
/// Packets of a train of which that can be told (a choice).
const TOLD: u64 = 6;

/// The rate of a train as it was sent. Copies of the OPEN bear no numbers: if all follow each other evenly but for two, which lie a few times
/// as far apart, those between these were lost.
pub(super) fn sent_at(window: &Window) -> u64 {
    let gaps = window.count().saturating_sub(1).max(2);
    let (longest, span) = (window.longest().as_nanos(), window.span().as_nanos());
    let usual = ((span - longest) / (gaps - 1)).max(1);
    let times = (longest + usual / 2) / usual;
    let is_near = |span: u64, to: u64| span.abs_diff(to) <= usual / EVEN;
    let is_hole = is_near(longest, times * usual) && is_near(window.shortest().as_nanos(), usual);
    let are_copies = window.from().is_none() && window.count() >= TOLD;
    let is_told = are_copies && is_hole && (2..=HOLE + 1).contains(&times);
    let lost = if is_told { times - 1 } else { 0 };
    (u128::from(window.rate()) * u128::from(gaps + lost) / u128::from(gaps)) as u64
}

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
