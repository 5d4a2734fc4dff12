//! The goodput of one transfer in one direction.

use super::transfer::{Datagrammed, Direction, Transferred};
use crate::tcp::TcpReading;
use crate::wire::message::UrpReading;
use serde::Serialize;
use trunkline_core::Span;
use trunkline_measure::{MeanInterval, mean_interval};

/// One direction of one run.
#[derive(Debug, Clone, Serialize)]
pub struct BulkFigures {
    /// The direction.
    pub direction: Direction,
    /// User octets that the receiver got in the time that counts.
    pub octets: u64,
    /// The time that counts: whole intervals after the warm-up.
    pub counted_s: f64,
    /// Whether it lasted as long as it was meant to: neither the user nor the server ended it.
    pub whole: bool,
    /// User bits received each second of the time that counts; `None` if there is none.
    pub goodput_bit_per_s: Option<f64>,
    /// The mean of the intervals that count and its 95 % interval, by batch means; `None` for fewer than
    /// two.
    pub goodput: Option<MeanInterval>,
    /// The same as `goodput_bit_per_s` for each stream.
    pub streams_bit_per_s: Vec<Option<f64>>,
    /// All intervals, the warm-up's too.
    pub intervals: Vec<IntervalFigures>,
    /// TCP: the sender's congestion control.
    pub congestion: Option<String>,
    /// TCP: segments sent again, over all streams.
    pub retransmits: Option<u64>,
    /// TCP: for each stream, what the sender's kernel said over time.
    pub tcp: Vec<Vec<TcpReading>>,
    /// UDP: what became of the datagrams.
    pub datagrams: Option<DatagramFigures>,
    /// URP: the sender.
    pub urp_sender: Option<UrpReading>,
    /// URP: the receiver.
    pub urp_receiver: Option<UrpReading>,
}

/// An interval.
#[derive(Debug, Clone, Serialize)]
pub struct IntervalFigures {
    /// When it began, after the first octets.
    pub start_s: f64,
    /// The length of the interval.
    pub length_s: f64,
    /// User octets received.
    pub octets: u64,
    /// The same of each stream.
    pub streams_octets: Vec<u64>,
    /// All of them as bits per second.
    pub goodput_bit_per_s: f64,
    /// Whether it is part of the warm-up.
    pub warmup: bool,
}

/// Counts of the datagrams.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DatagramFigures {
    /// The counts.
    #[serde(flatten)]
    pub counts: Datagrammed,
    /// Lost on the path.
    pub lost: u64,
    /// The same as a share of those sent, 0 to 1.
    pub lost_share: f64,
    /// Interarrival jitter (RFC 3550).
    pub jitter_ms: Option<f64>,
}

impl From<Datagrammed> for DatagramFigures {
    fn from(counts: Datagrammed) -> DatagramFigures {
        DatagramFigures {
            counts,
            lost: counts.lost(),
            lost_share: counts.lost() as f64 / counts.sent.max(1) as f64,
            jitter_ms: counts.jitter_ns.map(|nanos| nanos as f64 / 1e6),
        }
    }
}

impl BulkFigures {
    /// Of a transfer, its first `warmup` left out. An interval counts if the transfer went on all through it, whether or not
    /// anything came.
    pub fn of(done: Transferred, warmup: Span) -> BulkFigures {
        let interval = done.interval.max(Span::from_millis(1));
        let seconds = interval.as_secs_f64();
        let whole = (done.lasted.as_nanos() / interval.as_nanos()) as usize;
        let skipped = (warmup.as_nanos().div_ceil(interval.as_nanos()) as usize).min(whole);
        let at = |bins: &[u64], index: usize| bins.get(index).copied().unwrap_or(0);
        let sum = |index: usize| done.bins.iter().map(|bins| at(bins, index)).sum::<u64>();
        let counted: Vec<u64> = (skipped..whole).map(sum).collect();
        let rates: Vec<f64> = counted.iter().map(|&octets| octets as f64 * 8.0 / seconds).collect();
        let (octets, counted_s) = (counted.iter().sum::<u64>(), counted.len() as f64 * seconds);
        let rate = |octets: u64| (counted_s > 0.0).then(|| octets as f64 * 8.0 / counted_s);
        let stream = |bins: &Vec<u64>| rate((skipped..whole).map(|index| at(bins, index)).sum());
        let figure = |index: usize| IntervalFigures {
            start_s: index as f64 * seconds,
            length_s: seconds,
            octets: sum(index),
            streams_octets: done.bins.iter().map(|bins| at(bins, index)).collect(),
            goodput_bit_per_s: sum(index) as f64 * 8.0 / seconds,
            warmup: index < skipped,
        };
        let last = |list: &Vec<TcpReading>| list.last().map(|last| u64::from(last.retransmits));
        BulkFigures {
            direction: done.direction,
            octets,
            counted_s,
            whole: done.is_whole(),
            goodput_bit_per_s: rate(octets),
            goodput: mean_interval(&rates, CONFIDENCE),
            streams_bit_per_s: done.bins.iter().map(stream).collect(),
            intervals: (0..whole).map(figure).collect(),
            congestion: done.congestion,
            retransmits: done.tcp.iter().map(last).sum(),
            tcp: done.tcp,
            datagrams: done.datagrams.map(DatagramFigures::from),
            urp_sender: done.urp.map(|(sender, _)| sender),
            urp_receiver: done.urp.map(|(_, receiver)| receiver),
        }
    }

    /// Whether nothing arrived, in the warm-up neither.
    pub(super) fn is_empty(&self) -> bool {
        self.intervals.iter().all(|interval| interval.octets == 0)
    }
}

/// The confidence of all intervals.
pub(super) const CONFIDENCE: f64 = 0.95;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::client) fn done(bins: &[&[u64]]) -> Transferred {
        Transferred {
            direction: Direction::Up,
            duration: Span::from_secs(5),
            lasted: Span::from_secs(5),
            interval: Span::from_secs(1),
            bins: bins.iter().map(|bins| bins.to_vec()).collect(),
            tcp: Vec::new(),
            congestion: None,
            datagrams: None,
            urp: None,
        }
    }

    #[test]
    fn the_warm_up_and_what_comes_late_do_not_count() {
        let figures = BulkFigures::of(
            done(&[&[1, 2, 1000, 1000, 1000, 500], &[0, 0, 0, 2000]]),
            Span::from_millis(1500),
        );
        assert_eq!((figures.octets, figures.counted_s), (5000, 3.0));
        assert!((figures.goodput_bit_per_s.unwrap() - 40_000.0 / 3.0).abs() < 1e-9);
        assert_eq!(figures.streams_bit_per_s, [Some(8000.0), Some(16_000.0 / 3.0)]);
        assert_eq!(figures.intervals.len(), 5);
        assert!(figures.intervals[1].warmup && !figures.intervals[2].warmup);
        assert_eq!(figures.intervals[3].octets, 3000);
    }

    #[test]
    fn nothing_received_is_a_goodput_of_nothing_and_no_interval_is_none() {
        let figures = BulkFigures::of(done(&[&[]]), Span::from_secs(1));
        assert_eq!((figures.goodput_bit_per_s, figures.counted_s), (Some(0.0), 4.0));
        let figures = BulkFigures::of(done(&[&[7]]), Span::from_secs(9));
        assert_eq!((figures.goodput_bit_per_s, figures.counted_s), (None, 0.0));
        assert_eq!((figures.goodput, figures.streams_bit_per_s), (None, vec![None]));
    }

    pub(in crate::client) fn cut_short(bins: &[&[u64]], lasted: Span) -> Transferred {
        Transferred { lasted, ..done(bins) }
    }

    #[test]
    fn a_transfer_cut_short_has_the_intervals_that_went_by() {
        let cut = cut_short(&[&[9, 1000, 0, 500]], Span::from_millis(3900));
        let figures = BulkFigures::of(cut, Span::from_secs(1));
        assert_eq!((figures.intervals.len(), figures.counted_s, figures.octets), (3, 2.0, 1000));
        assert_eq!((figures.goodput_bit_per_s, figures.whole), (Some(4000.0), false));
    }

    #[test]
    fn what_came_in_the_warm_up_is_something() {
        assert!(!BulkFigures::of(done(&[&[7]]), Span::from_secs(2)).is_empty());
        assert!(BulkFigures::of(done(&[&[]]), Span::from_secs(2)).is_empty());
    }
}
