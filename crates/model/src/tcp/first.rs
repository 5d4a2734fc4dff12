//! The window with which a transfer begins, in which writes are not gathered.

use super::connection::{Connection, UNSCALED};
use super::flow::Greedy;
use trunkline_core::Span;

/// Segments that are alone at most, which a window of two never leaves so many.
const MOST: u64 = 1_000;

/// How a transfer becomes segments. Each write goes at once (TCP_NODELAY), as segments of its own, as long as the window with which
/// the transfer begins has room; what has to wait is gathered, and fills its segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segments {
    /// All of them.
    pub count: u64,
    /// User bytes of the last one.
    pub last: u32,
    /// Whether that window holds the whole transfer.
    pub at_once: bool,
}

impl Segments {
    /// Of `bytes` user bytes on a connection whose window has `grown` to so many, or to those of a new one.
    pub fn of(flow: &Greedy<'_>, bytes: u64, grown: u64) -> Segments {
        let payload = u64::from(flow.tcp.payload);
        let write = first_write(flow);
        let first = in_first_writes(flow, first_window(&flow.tcp).max(grown));
        let in_writes = |bytes: u64| {
            bytes / write * write.div_ceil(payload) + (bytes % write).div_ceil(payload)
        };
        let rest = |bytes: u64, of: u64| u32::try_from((bytes - 1) % of + 1).unwrap_or(u32::MAX);
        let bytes = bytes.max(1);
        if bytes <= first {
            let last_write = u64::from(rest(bytes, write));
            return Segments {
                count: in_writes(bytes),
                last: rest(last_write, payload),
                at_once: true,
            };
        }
        let sent = first / write.min(payload) * write.min(payload);
        let count = in_writes(sent) + (bytes - sent).div_ceil(payload);
        Segments { count, last: rest(bytes - sent, payload), at_once: false }
    }

    /// Segments beyond those of the same bytes that fill all but the last.
    pub fn beyond(&self, bytes: u64, payload: u32) -> f64 {
        let before_last = bytes.saturating_sub(self.last.into()) as f64 / f64::from(payload);
        (self.count as f64 - 1.0 - before_last).max(0.0)
    }

    /// Whether the last one is acknowledged as it comes, so that what the receiver says is behind its acknowledgement.
    pub fn last_is_acknowledged(&self, tcp: &Connection) -> bool {
        tcp.acked <= 1
            || tcp.prompt
            || (self.at_once && self.count.is_multiple_of(tcp.acked.into()))
    }
}

/// User bytes of each write while the window has room.
fn first_write(flow: &Greedy<'_>) -> u64 {
    if flow.gathers_when_full { flow.write } else { flow.tcp.payload.into() }
}

/// User bytes of writes that go at once in a window of so many. One that counts segments is so many full ones, each of which may
/// be shorter.
fn in_first_writes(flow: &Greedy<'_>, window: u64) -> u64 {
    let (payload, write) = (u64::from(flow.tcp.payload), first_write(flow));
    let bytes = match flow.tcp.whole {
        true => {
            let (segments, each) = (window / payload, write.div_ceil(payload));
            (segments / each).saturating_mul(write).saturating_add(segments % each * payload)
        }
        false => window,
    };
    bytes.min(flow.tcp.window)
}

/// The part of a full segment that those have with which a transfer of `bytes` begins, if a window that counts segments does not
/// hold all its writes.
pub(super) fn filled(flow: &Greedy<'_>, bytes: u64, grown: u64) -> f64 {
    let window = first_window(&flow.tcp).max(grown);
    let first = in_first_writes(flow, window);
    if bytes <= first { 1.0 } else { first as f64 / window.min(flow.tcp.window) as f64 }
}

/// How much shorter the round trip of a write is, if writes are shorter than segments.
pub(super) fn sooner(flow: &Greedy<'_>) -> Span {
    let write = first_write(flow).min(flow.tcp.payload.into());
    flow.round_trip.saturating_sub(flow.round_trip_of(u32::try_from(write).unwrap_or(u32::MAX)))
}

/// User bytes of the first window, which is not scaled.
fn first_window(tcp: &Connection) -> u64 {
    (u64::from(tcp.first) * u64::from(tcp.payload)).min(UNSCALED)
}

/// How often a new connection's window has room for one segment alone before the end of `bytes`: a receiver waits for a second
/// one before it acknowledges, which the sender may not send.
fn segments_alone(flow: &Greedy<'_>, bytes: u64) -> u64 {
    let tcp = &flow.tcp;
    let payload = u64::from(tcp.payload);
    let (mut window, mut left, mut alone) = (first_window(tcp), bytes, 0);
    let mut segment = flow.write.min(payload);
    // A receiver whose own window is that small tells at once when it has room again.
    while left > segment && window < 2 * segment && tcp.window >= 2 * segment && alone < MOST {
        alone += 1;
        left -= segment;
        // However a sender counts, an acknowledgement of less than a segment adds that much in slow start (RFC 5681 §3.1).
        window += segment;
        segment = payload;
    }
    alone
}

/// What the receiver holds acknowledgements back of segments that are alone in the first windows, the least, the mean and the
/// most. By a clock that ticks the first waits for the next tick, and others from one tick to the next.
pub(super) fn held_back(flow: &Greedy<'_>, bytes: u64) -> Option<[Span; 3]> {
    let tcp = &flow.tcp;
    let held = tcp.held_back.filter(|_| !tcp.prompt)?;
    let alone = segments_alone(flow, bytes).checked_sub(1)?;
    if !tcp.ticks {
        return Some([held.scaled(alone + 1, 1); 3]);
    }
    let between = held.saturating_sub(flow.round_trip).scaled(alone, 1);
    Some([between, between + held.scaled(1, 2), between + held])
}
