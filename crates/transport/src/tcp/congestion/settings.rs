//! A congestion controller's settings.

use super::Algorithm;

/// The largest window, in bytes: window scaling allows no more (RFC 7323 §2.3).
pub const MOST_WINDOW: u64 = 1 << 30;

/// The way in which congestion avoidance counts what is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Counting {
    /// Bytes: the window grows when a whole window has been acknowledged, however many ACKs it took
    /// (RFC 3465 §2.1). In slow start an ACK counts for at most [`Settings::slow_start_limit`] segments.
    #[default]
    Bytes,
    /// ACKs: each adds mss²/window, and in slow start one segment (RFC 5681 equation 3; 4.3BSD-Tahoe),
    /// so that delayed ACKs halve the growth.
    Acks,
    /// As `Acks`, and an eighth of a segment more for every ACK, as 4.3BSD-Reno and 4.4BSD did; RFC 2525
    /// §2.6 counts it among the known faults.
    AcksAndEighth,
}

/// The way in which slow start ends before there is a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Start {
    /// It does not: only loss or a mark ends it.
    Plain,
    /// HyStart (Ha and Rhee 2011): at a round trip notably longer, or a train of ACKs half a round trip
    /// long.
    HyStart,
    /// HyStart++ (RFC 9406): at a round trip notably longer, by way of Conservative Slow Start.
    #[default]
    HyStartPlusPlus,
}

/// A congestion controller's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The controller.
    pub kind: Algorithm,
    /// The largest segment's payload, in bytes; zero is taken as one.
    pub mss: u32,
    /// The initial window in bytes; `None` for ten segments as RFC 6928 has it.
    pub initial_window: Option<u64>,
    /// The way in which congestion avoidance counts. CUBIC and BBR always count bytes.
    pub counting: Counting,
    /// L of RFC 3465: segments for which one ACK counts in slow start at most. Its §2.3 allows up to 2; a
    /// sender that paces or sees ACKs merged on their way may want more (RFC 9406 §4.3).
    pub slow_start_limit: u8,
    /// Segments that the window grows by in each round trip of congestion avoidance, for the Reno kinds:
    /// 1 by the standard, K for "increase-by-K" (RFC 2760 §3.4).
    pub increase: u16,
    /// c of [`Algorithm::CONSTANT_RATE`], in thousandths of a segment per second squared: the window grows by
    /// c·r² segments in a round trip of r seconds.
    pub constant_rate_milli: u32,
    /// Whether a halved window comes down to whole segments, as BSD's did.
    pub whole_segments: bool,
    /// Whether the window is a count of segments, as in Linux (`snd_cwnd`). If so, a congestion leaves a part of the
    /// window itself, in whole segments (`tcp_reno_ssthresh`, `cubictcp_recalc_ssthresh`), whatever was in flight; a
    /// time-out within a recovery reduces nothing again (`tcp_enter_loss`); slow start after a time-out counts all that
    /// an ACK covers; and CUBIC grows by whole segments, behind Reno's law rather than along it, whose gain stays at
    /// 8/15 of a segment (`bictcp_update`; RFC 9438 §4.3 has 9/17, then 1).
    pub counts_segments: bool,
    /// Whether the window is reduced less for a congestion mark than for a loss (RFC 8511): by 0.8, CUBIC 0.85.
    pub alternative_backoff: bool,
    /// The way in which CUBIC ends slow start.
    pub start: Start,
    /// Whether CUBIC gives way to newcomers by fast convergence (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// The seed of BBR's draws; two flows with different seeds probe at different times.
    pub seed: u64,
}

impl Settings {
    /// The usual settings of `kind` with segments of `mss` bytes.
    ///
    /// The constant rate is 100 segments/s², with which a connection of 100 ms grows as by the standard.
    pub const fn new(kind: Algorithm, mss: u32) -> Settings {
        Settings {
            kind,
            mss,
            initial_window: None,
            counting: Counting::Bytes,
            slow_start_limit: 2,
            increase: 1,
            constant_rate_milli: 100_000,
            whole_segments: false,
            counts_segments: false,
            alternative_backoff: false,
            start: Start::HyStartPlusPlus,
            fast_convergence: true,
            seed: 0,
        }
    }

    /// The segment size as the controllers use it: not zero.
    pub(super) fn segment(&self) -> u64 {
        u64::from(self.mss.max(1))
    }

    /// The initial window in bytes: what was asked for, at least a segment; or
    /// min(10·mss, max(2·mss, 14 600)) (RFC 6928 §2).
    pub(super) fn first_window(&self) -> u64 {
        let mss = self.segment();
        let standard = (10 * mss).min((2 * mss).max(14_600));
        self.initial_window.unwrap_or(standard).clamp(mss, MOST_WINDOW)
    }
}
