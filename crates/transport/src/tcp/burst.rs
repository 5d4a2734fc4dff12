//! Super-segments: Linux hands several segments to its interface at once, and may wait until it can.
//!
//! What the application writes lies in pieces of up to 64 KiB or half the largest window offered
//! (`tcp_bound_to_half_wnd`). As many segments of a piece go out together as the windows allow, and as the rate sends
//! in about a millisecond (`tcp_tso_autosize`). If fewer could go, and the next acknowledgement is near, they wait for
//! it (`tcp_tso_should_defer`). The last of several is pushed, so that the other end answers at once.

use super::congestion::Congestion;
use super::sender::{Phase, Sender};
use super::settings::Settings;
use crate::Payload;
use trunkline_core::{Span, Time};

/// The largest piece (GSO_MAX_SIZE).
const LARGEST: u64 = 65_536;
/// Segments that are enough at any rate (sysctl tcp_min_tso_segs).
const ENOUGH: u64 = 2;
/// The part of a window that is enough (sysctl tcp_tso_win_divisor).
const PART: u64 = 3;
/// Only who has sent so shortly before waits, for no more than this.
const SHORTLY: Span = Span::from_millis(1);

/// The segments that go out together.
#[derive(Debug, Clone, Copy, Default)]
pub struct Burst {
    /// Octets of the piece that the next segment is from.
    piece: u64,
    /// Octets that may go without another thought.
    left: u64,
    /// Whether they are more than one segment.
    several: bool,
}

impl Burst {
    /// Counts `octets` as sent. Returns whether they were the last of several segments.
    pub fn sent(&mut self, octets: u64) -> bool {
        self.piece = self.piece.saturating_sub(octets);
        self.left = self.left.saturating_sub(octets);
        self.left == 0 && std::mem::take(&mut self.several)
    }
}

impl<B: Payload> Sender<B> {
    /// Whether a segment of `len` new octets may go while the windows allow `limit`. `others` is what all windows but
    /// the congestion window allow.
    pub(super) fn lets_go(
        &mut self,
        now: Time,
        len: u64,
        (limit, others): (u64, u64),
        mss: u64,
        settings: &Settings,
    ) -> bool {
        if !settings.defers || self.control.pacing().is_some() || self.burst.left >= len {
            return true;
        }
        if self.burst.piece < mss {
            let most = LARGEST.min(self.offered.largest / 2) / mss * mss;
            self.burst.piece = most.max(mss).min(self.unsent());
        }
        let (piece, most) = (self.burst.piece, self.together(mss));
        if piece > mss && self.waits(now, limit, most, mss) {
            self.limited |= limit < others;
            return false;
        }
        self.burst.left = (limit.min(piece).min(most) / mss * mss).max(len);
        self.burst.several = self.burst.left > mss;
        true
    }

    /// The octets that go out together at most.
    fn together(&self, mss: u64) -> u64 {
        let window = self.control.window();
        let slow = window < self.control.slow_start_threshold() / 2;
        let micros = (self.rtt.smoothed().as_nanos() / 1000).max(1);
        let rate = window.saturating_mul(if slow { 2_000_000 } else { 1_200_000 }) / micros;
        let near = (self.rtt.shortest().as_nanos() / 1000) >> 9;
        let more = if near < 32 { LARGEST >> near } else { 0 };
        (rate / 1024 + more).min(LARGEST).max(ENOUGH * mss) / mss * mss
    }

    /// Whether it is better to wait for the next acknowledgement.
    fn waits(&self, now: Time, limit: u64, most: u64, mss: u64) -> bool {
        let window = self.control.window().min(self.offered.largest);
        let last_of_piece = limit >= self.burst.piece && self.unsent() > self.burst.piece;
        let enough = limit >= most || last_of_piece || limit >= window / PART;
        let Some(first) = self.board.first().filter(|_| limit >= mss) else { return false };
        let smoothed = self.rtt.smoothed();
        let near = SHORTLY.min(Span::from_nanos(smoothed.as_nanos() / 2));
        let due = first.sent + smoothed;
        let active = self.phase != Phase::Recovery && self.phase != Phase::Loss;
        active && !enough && now.since(self.last_sent) <= SHORTLY && due <= now + near
    }
}
