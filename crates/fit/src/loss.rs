//! The losses: how many, which way, and in what runs.

use crate::{Observations, Way};
use serde::Serialize;
use std::collections::BTreeMap;
use trunkline_measure::{Interval, share_interval};

const CONFIDENCE: f64 = 0.95;

/// Losses of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loss {
    /// Messages without an answer, of the messages sent.
    pub both: Share,
    /// Messages that did not reach the far host, of those sent.
    pub out: Share,
    /// Answers that did not come back, of the messages that reached the far host.
    pub back: Share,
    /// The number of runs of lost messages one after the other, by length (loss runs or
    /// "loss periods", RFC 3357 §4).
    pub runs: BTreeMap<u64, u64>,
}

/// A share of losses. If nobody can tell which way a message was lost, it counts for both ways: then
/// `most` exceeds `least`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// Messages that could be lost.
    pub of: u64,
    /// Lost at least.
    pub least: u64,
    /// Lost at most.
    pub most: u64,
    /// The probability of loss, with 95 % confidence (Wilson's interval; from the lower end for
    /// `least` to the upper end for `most`). `None` if nothing could be lost.
    pub interval: Option<Interval>,
}

impl Share {
    fn new(of: u64, least: u64, most: u64) -> Share {
        let (low, high) =
            (share_interval(least, of, CONFIDENCE), share_interval(most, of, CONFIDENCE));
        let interval = low.zip(high).map(|(low, high)| Interval { low: low.low, high: high.high });
        Share { of, least, most, interval }
    }
}

impl Loss {
    /// The losses of a session.
    pub fn of(observed: &Observations) -> Loss {
        let lost = |way| observed.lost.iter().filter(|lost| lost.way == way).count() as u64;
        let (out, back, unknown) = (lost(Some(Way::Out)), lost(Some(Way::Back)), lost(None));
        let (sent, all) = (observed.sent(), out + back + unknown);
        Loss {
            both: Share::new(sent, all, all),
            out: Share::new(sent, out, out + unknown),
            back: Share::new(sent - out, back, back + unknown),
            runs: runs(observed.lost.iter().map(|lost| lost.sequence)),
        }
    }

    /// The mean length of a run of losses; above `1 / (1 - p)` losses come in bursts. `None` if
    /// nothing was lost.
    pub fn mean_run(&self) -> Option<f64> {
        let runs: u64 = self.runs.values().sum();
        let lost: u64 = self.runs.iter().map(|(length, count)| length * count).sum();
        (runs > 0).then(|| lost as f64 / runs as f64)
    }
}

/// Lengths of runs of successive numbers, which come in any order, each once.
fn runs(numbers: impl Iterator<Item = u64>) -> BTreeMap<u64, u64> {
    let mut sorted: Vec<u64> = numbers.collect();
    sorted.sort_unstable();
    let mut found = BTreeMap::new();
    for run in sorted.chunk_by(|one, next| one + 1 == *next) {
        *found.entry(run.len() as u64).or_default() += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Exchange, Lost};
    use proptest::prelude::*;

    fn session(fates: &[Option<Option<Way>>]) -> Observations {
        let mut all = Observations::default();
        for (sequence, fate) in (0u64..).zip(fates) {
            let (size, sent) = (1, sequence as i64);
            match *fate {
                Some(way) => all.lost.push(Lost { sequence, size, sent, way }),
                None => all.exchanges.push(Exchange {
                    sequence,
                    size,
                    reply: 1,
                    intended: sent,
                    sent,
                    far: None,
                    received: sent + 5,
                }),
            }
        }
        all
    }

    #[test]
    fn what_nobody_can_tell_counts_for_both() {
        let (out, back) = (Some(Some(Way::Out)), Some(Some(Way::Back)));
        let loss = Loss::of(&session(&[None, out, out, back, None, Some(None), None, None]));
        let counts = |share: Share| (share.of, share.least, share.most);
        assert_eq!(counts(loss.both), (8, 4, 4));
        assert_eq!(counts(loss.out), (8, 2, 3));
        assert_eq!(counts(loss.back), (6, 1, 2));
        assert_eq!(loss.runs, BTreeMap::from([(1, 1), (3, 1)]));
        assert_eq!(loss.mean_run(), Some(2.0));
    }

    #[test]
    fn nothing_sent_nothing_said() {
        let loss = Loss::of(&Observations::default());
        assert_eq!((loss.both.interval, loss.mean_run()), (None, None));
    }

    fn fate() -> impl Strategy<Value = Option<Option<Way>>> {
        prop_oneof![
            3 => Just(None),
            1 => Just(Some(Some(Way::Out))),
            1 => Just(Some(Some(Way::Back))),
            1 => Just(Some(None)),
        ]
    }

    proptest! {
        #[test]
        fn every_loss_is_in_one_run(fates in prop::collection::vec(fate(), 0..80)) {
            let loss = Loss::of(&session(&fates));
            let in_runs: u64 = loss.runs.iter().map(|(length, count)| length * count).sum();
            prop_assert_eq!(in_runs, loss.both.most);
            prop_assert!(loss.out.least + loss.back.least <= loss.both.most);
            prop_assert!(loss.out.most + loss.back.least == loss.both.most);
            for share in [loss.both, loss.out, loss.back] {
                if let Some(interval) = share.interval {
                    prop_assert!(interval.contains(share.least as f64 / share.of as f64));
                    prop_assert!(interval.contains(share.most as f64 / share.of as f64));
                }
            }
        }
    }
}
