//! The punctuality of the frames that left, and the causes that they had waited for.

use crate::snapshot::LaneSnapshot;
use trunkline_core::{Cause, Counts, Ledger, Packet, Span};
use trunkline_measure::Times;
use trunkline_path::{Backlog, Link};

/// The punctuality of a lane's frames that left, and the causes that they had waited for.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    lateness: Times,
    spacing: Times,
    last_lateness: Option<Span>,
    /// Frames whose waits are booked.
    passed: u64,
    booked: [u128; Cause::ALL.len()],
}

impl Tally {
    /// A frame has left, so much later than due.
    #[inline]
    pub fn left(&mut self, lateness: Span) {
        self.lateness.record(lateness);
        if let Some(last) = self.last_lateness.replace(lateness) {
            self.spacing.record(last.abs_diff(lateness));
        }
        self.booked[Cause::Emulator as usize] += u128::from(lateness.as_nanos());
    }

    /// Books the waits of a frame on the lane's link.
    #[inline]
    pub fn book(&mut self, ledger: &Ledger) {
        self.passed += 1;
        for (cause, span) in ledger.entries() {
            self.booked[cause as usize] += u128::from(span.as_nanos());
        }
    }

    /// The sum booked under `cause`, in nanoseconds.
    pub fn booked(&self, cause: Cause) -> u128 {
        self.booked[cause as usize]
    }

    /// The lateness of frames that left.
    pub fn lateness(&self) -> &Times {
        &self.lateness
    }

    /// The differences of gaps between frames from those that the path prescribes.
    pub fn spacing(&self) -> &Times {
        &self.spacing
    }

    /// Returns what the lane called `name` over `link` has done so far. Frames later than `bound` are late.
    /// `on_medium` is what its station on a shared medium did, and what waits there.
    pub fn snapshot<B>(
        &self,
        name: &str,
        link: &Link<Packet<B>>,
        on_medium: (Counts, Backlog),
        bound: Span,
    ) -> LaneSnapshot {
        let counts = link.counts() + on_medium.0;
        let mean = |cause| {
            let frames = if cause == Cause::Emulator { self.lateness.count() } else { self.passed };
            Span::from_nanos((self.booked(cause) / u128::from(frames.max(1))) as u64)
        };
        LaneSnapshot {
            name: name.to_string(),
            entered: counts.entered,
            entered_bytes: counts.entered_bytes,
            duplicated: counts.duplicated,
            delivered: counts.delivered,
            delivered_bytes: counts.delivered_bytes,
            marked: counts.marked,
            dropped: counts.drops().map(|(cause, count)| (cause.name().into(), count)).collect(),
            dropped_by_emulator: counts.dropped_by_emulator(),
            in_flight: counts.in_flight(),
            impairments: link.achieved().to_string().lines().map(str::to_string).collect(),
            queued_packets: link.backlog().packets + on_medium.1.packets,
            queued_bytes: link.backlog().bytes + on_medium.1.bytes,
            late: self.lateness.longer_than(bound),
            lateness: self.lateness.percentiles(),
            spacing_error: self.spacing.percentiles(),
            mean_delay: Cause::ALL
                .into_iter()
                .map(|cause| (cause, mean(cause)))
                .filter(|(_, span)| !span.is_zero())
                .collect(),
        }
    }
}
