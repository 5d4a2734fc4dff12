//! The ends of messages in a stream that has no marks of its own.
//!
//! TCP carries octets and nothing else: its reader knows the end of a message from outside. An empty
//! message takes one octet of the stream, because TCP cannot carry nothing; its reader gets none.

use super::flying::Carried;
use std::collections::VecDeque;
use trunkline_measure::Spent;

/// A message that has been handed to TCP and not yet to its reader.
#[derive(Debug)]
pub(crate) struct Ending {
    /// The place behind its last octet.
    pub place: u64,
    /// Whether it is empty, and that octet a filler.
    pub empty: bool,
    /// What it brings to its reader.
    pub carried: Carried,
    /// What the sender's clock showed when it was handed over.
    pub since: Spent,
    /// Whether its last octet has been sent by the protocol.
    pub sent: bool,
    /// Whether it has left the host.
    pub left: bool,
}

/// The messages of a stream, in its order.
#[derive(Debug, Default)]
pub(crate) struct Endings(VecDeque<Ending>);

/// A stretch of the stream as its reader gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Octets of the stream.
    pub octets: u32,
    /// The end of a message behind them, if there is one.
    pub end: Option<u64>,
    /// Whether it is only the octet of an empty message.
    pub empty: bool,
}

impl Endings {
    /// No messages.
    pub const NONE: Endings = Endings(VecDeque::new());

    /// A message more.
    pub fn push(&mut self, ending: Ending) {
        self.0.push_back(ending);
    }

    /// The messages that end within `from` to `to`, their last octet included.
    pub fn within(&mut self, from: u64, to: u64) -> impl Iterator<Item = &mut Ending> {
        let first = self.0.partition_point(|ending| ending.place <= from);
        self.0.range_mut(first..).take_while(move |ending| ending.place <= to)
    }

    /// What a reader gets first of `octets` that come next in order from `from` on. A message that ends
    /// there is forgotten.
    pub fn next_piece(&mut self, from: u64, octets: u32) -> Piece {
        let whole = Piece { octets, end: None, empty: false };
        let Some(first) = self.0.front() else { return whole };
        let (place, empty) = (first.place, first.empty);
        // A filler is a piece of its own.
        let begin = place.saturating_sub(u64::from(empty));
        if place > from + u64::from(octets) {
            return whole;
        }
        if from < begin {
            let data = (begin - from) as u32;
            return match empty {
                true => Piece { octets: data, ..whole },
                false => self.end(Piece { octets: (place - from) as u32, ..whole }, place),
            };
        }
        self.end(Piece { octets: (place - from) as u32, empty, ..whole }, place)
    }

    fn end(&mut self, piece: Piece, place: u64) -> Piece {
        self.0.pop_front();
        Piece { end: Some(place), ..piece }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Time;
    use trunkline_measure::Trail;

    fn endings(places: &[(u64, bool)]) -> Endings {
        let mut endings = Endings::default();
        for &(place, empty) in places {
            let carried = Box::new((Trail::new(Time::ZERO), None));
            let since = Spent::default();
            endings.push(Ending { place, empty, carried, since, sent: false, left: false });
        }
        endings
    }

    #[test]
    fn a_stream_is_cut_where_messages_end() {
        let mut endings = endings(&[(10, false), (11, true), (12, true), (40, false)]);
        let (mut from, mut pieces) = (0, Vec::new());
        for octets in [4u32, 30, 6] {
            let end = from + u64::from(octets);
            while from < end {
                let piece = endings.next_piece(from, (end - from) as u32);
                from += u64::from(piece.octets);
                pieces.push((piece.octets, piece.end, piece.empty));
            }
        }
        let expected = [
            (4, None, false),
            (6, Some(10), false),
            (1, Some(11), true),
            (1, Some(12), true),
            (22, None, false),
            (6, Some(40), false),
        ];
        assert_eq!(pieces, expected);
    }

    /// What comes before an empty message ends nothing: its reader waits for more.
    #[test]
    fn data_before_a_filler_are_a_piece_of_their_own() {
        let mut endings = endings(&[(10, true)]);
        let pieces = [(0, 10), (9, 1)].map(|(from, octets)| endings.next_piece(from, octets));
        let of = |octets, end, empty| Piece { octets, end, empty };
        assert_eq!(pieces, [of(9, None, false), of(1, Some(10), true)]);
    }

    #[test]
    fn messages_are_found_by_their_last_octet() {
        let mut endings = endings(&[(10, false), (20, false), (21, true), (40, false)]);
        let mut found = |from, to| endings.within(from, to).map(|it| it.place).collect::<Vec<_>>();
        assert_eq!(found(0, 9), [0u64; 0]);
        assert_eq!(found(9, 10), [10]);
        assert_eq!(found(10, 40), [20, 21, 40]);
    }
}
