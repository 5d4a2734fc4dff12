//! The time of a transfer, each part of it booked under what it was waited for.

use serde::Serialize;
use std::fmt;
use trunkline_core::{Span, Time};

/// What a sender waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The rate that the receiver found the path to carry.
    Path,
    /// The rate that its user allows.
    Cap,
    /// Data of its own disk.
    Disk,
    /// The receiver, which lets no more come: its memory is full, for its disk or its processor is slower, or the window
    /// is too small for the round trip.
    Receiver,
    /// Its processor.
    Processor,
    /// Word that the last data have come, or the next step: round trips.
    RoundTrips,
    /// The receiver, which has all data and writes the last of them, checks them and gives files their names.
    Naming,
}

impl Limit {
    /// All of them.
    pub const ALL: [Limit; 7] = [
        Limit::Path,
        Limit::Cap,
        Limit::Disk,
        Limit::Receiver,
        Limit::Processor,
        Limit::RoundTrips,
        Limit::Naming,
    ];
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Path => "the path's rate",
            Limit::Cap => "the rate cap",
            Limit::Disk => "this disk",
            Limit::Receiver => "the receiver's memory or window",
            Limit::Processor => "this processor",
            Limit::RoundTrips => "round trips",
            Limit::Naming => "the receiver's putting of files in place",
        })
    }
}

/// A sleep that lasts so much longer than it was to is the processor's (a choice): what timers and other programs make of every sleep
/// is much less.
const LATE: Span = Span::from_millis(100);

/// The account of a transfer.
#[derive(Debug, Clone, Default)]
pub struct Account {
    spent: [u64; Limit::ALL.len()],
}

impl Account {
    /// Books a part of the time.
    pub fn book(&mut self, limit: Limit, span: Span) {
        self.spent[limit as usize] += span.as_nanos();
    }

    /// Books a sleep from `before` to `now`, which was to end at `until`. An end that is woken much later was stopped, or its machine was.
    pub fn book_sleep(&mut self, limit: Limit, before: Time, until: Time, now: Time) {
        let late = now.since(until.max(before));
        let late = if late > LATE { late } else { Span::ZERO };
        self.book(Limit::Processor, late);
        self.book(limit, now.since(before).saturating_sub(late));
    }

    /// Books the wait from `before` to `now` for the receiver's word on the end. A round trip's worth of it until `answer` is the path's; what
    /// it takes beyond that, the receiver does with its files.
    pub fn book_end(&mut self, before: Time, now: Time, answer: Time) {
        let answer = answer.max(before).min(now);
        self.book(Limit::RoundTrips, answer.since(before));
        self.book(Limit::Naming, now.since(answer));
    }

    /// The shares of all causes in the time, the greatest first; those below half a percent are left out.
    pub fn shares(&self) -> Vec<(Limit, f64)> {
        let all: u64 = self.spent.iter().sum();
        let share = |limit: Limit| self.spent[limit as usize] as f64 / all.max(1) as f64;
        let mut shares: Vec<(Limit, f64)> =
            Limit::ALL.into_iter().map(|limit| (limit, share(limit))).collect();
        shares.retain(|(_, share)| *share >= 0.005);
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_the_time_and_in_order() {
        let mut account = Account::default();
        assert_eq!(account.shares(), []);
        account.book(Limit::Disk, Span::from_secs(1));
        account.book(Limit::Path, Span::from_secs(7));
        account.book(Limit::Disk, Span::from_secs(2));
        account.book(Limit::Cap, Span::from_millis(1));
        let shares = account.shares();
        assert_eq!(shares.iter().map(|it| it.0).collect::<Vec<_>>(), [Limit::Path, Limit::Disk]);
        assert!((shares[0].1 - 0.7).abs() < 0.001 && (shares[1].1 - 0.3).abs() < 0.001);
    }

    /// A sender that was stopped for six seconds of thirteen said that its cap had limited it.
    #[test]
    fn a_standstill_is_not_what_the_end_waited_for() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut account = Account::default();
        for (before, until, now) in [(0, 50, 51), (51, 101, 3900), (3900, 3950, 4000)] {
            account.book_sleep(Limit::Cap, at(before), at(until), at(now));
        }
        let [(most, share), (other, _)] = account.shares()[..] else { panic!("{account:?}") };
        assert_eq!((most, other), (Limit::Processor, Limit::Cap));
        assert!((share - 3799.0 / 4000.0).abs() < 1e-9, "{share}");
    }

    #[test]
    fn beyond_a_round_trip_the_end_is_the_receivers() {
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let mut account = Account::default();
        for (before, now) in [(0, 1), (1, 3), (3, 8)] {
            account.book_end(at(before), at(now), at(2));
        }
        assert_eq!(account.shares(), [(Limit::Naming, 0.75), (Limit::RoundTrips, 0.25)]);
    }
}
