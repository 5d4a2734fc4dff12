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
    /// Any word of the receiver, which was due: it was stopped or away, or the path was broken.
    Silence,
}

impl Limit {
    /// All of them.
    pub const ALL: [Limit; 8] = [
        Limit::Path,
        Limit::Cap,
        Limit::Disk,
        Limit::Receiver,
        Limit::Processor,
        Limit::RoundTrips,
        Limit::Naming,
        Limit::Silence,
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
            Limit::Silence => "the silence of the receiver or the path",
        })
    }
}

/// A sleep that lasts so much longer than it was to is the processor's (a choice): what timers and other programs make of every sleep
/// is much less.
const LATE: Span = Span::from_millis(100);

/// Whoever is called for so much longer than an answer takes was not there (a choice): first words that are lost are said again sooner.
const AWAY: Span = Span::from_secs(1);

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
    /// Behind `overdue`, if the receiver has been silent for too long, it is not `limit` that is waited for.
    pub fn book_sleep(
        &mut self,
        limit: Limit,
        overdue: Option<Time>,
        (before, until, now): (Time, Time, Time),
    ) {
        let late = now.since(until.max(before));
        let end = if late > LATE { until.max(before) } else { now };
        let silent = overdue.unwrap_or(Time::NEVER).max(before).min(end);
        self.book(limit, silent.since(before));
        self.book(Limit::Silence, end.since(silent));
        self.book(Limit::Processor, now.since(end));
    }

    /// Books the calling of a receiver from `before` to `now`, whose last answer took `round` at most. It answers twice if there is a code;
    /// what the calls take beyond that it was not there.
    pub fn book_call(&mut self, before: Time, now: Time, round: Span) {
        let (waited, answers) = (now.since(before), round.scaled(2, 1));
        let away = waited.saturating_sub(answers);
        let away = if away > AWAY { away } else { Span::ZERO };
        self.book(Limit::Silence, away);
        self.book(Limit::RoundTrips, waited.saturating_sub(away));
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
            account.book_sleep(Limit::Cap, None, (at(before), at(until), at(now)));
        }
        let [(most, share), (other, _)] = account.shares()[..] else { panic!("{account:?}") };
        assert_eq!((most, other), (Limit::Processor, Limit::Cap));
        assert!((share - 3799.0 / 4000.0).abs() < 1e-9, "{share}");
    }

    /// A receiver that was stopped for eight seconds of twelve, and a path that was broken, were told as the rate cap.
    #[test]
    fn a_silence_is_not_what_would_be_waited_for_without_it() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut account = Account::default();
        for (before, now) in [(0, 50), (50, 100), (100, 150), (150, 200)] {
            let overdue = (now > 120).then_some(at(120));
            account.book_sleep(Limit::Cap, overdue, (at(before), at(now), at(now)));
        }
        // It was stopped itself meanwhile: that is its own doing.
        account.book_sleep(Limit::Cap, Some(at(120)), (at(200), at(250), at(450)));
        let shares = [(Limit::Processor, 200), (Limit::Silence, 130), (Limit::Cap, 120)];
        assert_eq!(
            account.shares(),
            shares.map(|(limit, millis)| (limit, f64::from(millis) / 450.0))
        );
    }

    #[test]
    fn a_receiver_that_is_called_for_long_was_not_there() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        for (answered, round, away) in
            [(100, 100, 0), (3600, 1800, 0), (1150, 100, 0), (9400, 200, 9000)]
        {
            let mut account = Account::default();
            account.book_call(at(0), at(answered), Span::from_millis(round));
            let shares = account.shares();
            let silent = shares.iter().find(|it| it.0 == Limit::Silence).map_or(0.0, |it| it.1);
            assert_eq!(silent, f64::from(away) / answered as f64, "{answered}");
        }
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
