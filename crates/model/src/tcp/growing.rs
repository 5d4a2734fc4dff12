//! Transfers one after the other on one connection: what the first of them take longer, until the window holds one.

use super::beginning::Beginning;
use super::first::{Segments, held_back};
use super::flow::Greedy;
use super::times::Before;

/// Transfers that are looked at one by one at most; the rest are like the last of these.
const MOST: u32 = 64;
/// Times a buffer that a transfer may exceed what the path holds, to be sent at once again and again.
const FEW: u64 = 4;
/// Seconds that are nothing.
const NOTHING: f64 = 1e-6;

/// A connection that makes several transfers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Growing {
    /// The connection at its beginning.
    pub new: Beginning,
    /// Its transfers.
    pub transfers: u32,
}

/// What the first transfers take longer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Longer {
    /// Transfers that do.
    pub transfers: u32,
    /// Seconds that this is in the mean over all.
    pub mean: f64,
}

impl Growing {
    /// What transfers of `bytes` user bytes take longer than when the window has grown.
    pub fn longer(&self, flow: &Greedy<'_>, bytes: u64) -> Longer {
        let grown = self.grown(flow, bytes);
        let mut found = Longer { transfers: 0, mean: 0.0 };
        // Acknowledgements that the receiver holds back of segments that are alone are waited for once, by the first transfer.
        let [_, alone, _] = held_back(flow, bytes).unwrap_or_default();
        let (mut window, mut sum) = (f64::from(flow.tcp.first), alone.as_secs_f64());
        while found.transfers < self.transfers {
            let latency = self.new.latency_from(flow, bytes, Some(window));
            let more = latency.slow + latency.rest - grown;
            if more < NOTHING || latency.lost > 0.5 {
                break;
            }
            let alike = found.transfers + 1 == MOST;
            let times = if alike { self.transfers - found.transfers } else { 1 };
            found.transfers += times;
            sum += more * f64::from(times);
            window = after(flow, bytes, window);
        }
        let transfers = found.transfers.max(u32::from(!alone.is_zero()));
        Longer { transfers, mean: sum / f64::from(self.transfers.max(1)) }
    }

    /// Seconds that a transfer of `bytes` takes, up to the end of its last segment at the bottleneck, with the largest window.
    pub fn grown(&self, flow: &Greedy<'_>, bytes: u64) -> f64 {
        let all = Segments::of(flow, bytes, u64::MAX);
        let beyond = all.beyond(bytes, flow.tcp.payload) * flow.segment.as_secs_f64();
        if all.at_once {
            return bytes as f64 / self.new.line + beyond;
        }
        let found = self.new.latency_from(flow, bytes, Some(flow.tcp.segments()));
        found.slow + found.rest
    }
}

/// What is to be said of transfers that are not much larger than a buffer that does not hold them: behind the first each may go
/// out at once.
pub(super) fn bursts(flow: &Greedy<'_>, before: &Before, bytes: u64) -> Option<String> {
    let Before::Grown(Some(growing)) = before else { return None };
    let pipe = (growing.new.line * flow.round_trip.as_secs_f64()) as u64;
    let large = growing.new.holds(bytes.saturating_sub(pipe) / FEW);
    (large && !growing.new.holds(bytes.min(flow.tcp.window))).then(|| {
        "a window that has grown may send a whole transfer at once, for which the line has no room: transfers that lose a part so took up to three times as long".into()
    })
}

/// The window in segments behind a transfer that begins with `window` and does not fit into it. A sender that counts octets has
/// it grow by what is acknowledged while something is left to send; one that counts segments, by all that is acknowledged in
/// the round trip in which it was full (`tcp_cwnd_validate`).
fn after(flow: &Greedy<'_>, bytes: u64, window: f64) -> f64 {
    let payload = f64::from(flow.tcp.payload);
    let growth = 1.0 / f64::from(flow.tcp.slowed_by());
    let segments = Segments::of(flow, bytes, (window * payload) as u64);
    let all = if flow.tcp.whole { segments.count as f64 } else { bytes as f64 / payload };
    let most = flow.tcp.segments();
    let (mut full, mut left) = (window, all - window);
    while left > full * (1.0 + growth) && full < most {
        full *= 1.0 + growth;
        left -= full;
    }
    let grown = match flow.tcp.whole {
        true => full * (1.0 + growth) + growth * left.max(0.0),
        false => {
            // Until there is room for a segment that nobody has to send.
            let acked = f64::from(flow.tcp.acked);
            full + growth * acked * ((left.max(0.0) + 1.0) / (1.0 + growth) / acked).ceil()
        }
    };
    grown.min(most)
}
