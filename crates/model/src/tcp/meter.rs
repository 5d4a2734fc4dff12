//! What a greedy flow's intervals hold if its window still grows when they are measured.

use super::first::held_back;
use super::flow::Greedy;
use super::share::Share;
use super::times::{Before, SLOW_START, bytes_per_second, waiting};
use crate::message::{Terms, one_way};
use crate::prediction::What;
use crate::talk::window_place;
use trunkline_core::{Cause, Span};
use trunkline_scenario::Workload;

/// The part of its final rate below which it is worth a note that a window has not grown.
const GROWN: f64 = 0.95;

const BILLION: f64 = 1e9;

/// The intervals of a greedy flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meter {
    interval: Span,
    warm_up: Span,
    /// The mean over them, as a part of the connection's rate in the end.
    part: f64,
}

impl Meter {
    /// Of a greedy `workload`; of others there are none.
    pub fn of(
        workload: &Workload,
        flow: &Greedy<'_>,
        share: &Share,
        before: &Before,
    ) -> Option<Meter> {
        let Workload::Greedy { duration, warm_up, interval, .. } = *workload else { return None };
        let count = duration.saturating_sub(warm_up).as_nanos() / interval.as_nanos().max(1);
        let measured = interval.scaled(count, 1);
        let part = part(flow, share, before, (warm_up, measured));
        Some(Meter { interval, warm_up, part })
    }

    /// One of them: the bytes that it holds in the mean, and its time.
    pub fn amount(&self, flow: &Greedy<'_>, share: &Share) -> (u64, What, Terms) {
        let sending = self.interval.scaled((self.part * BILLION) as u64, BILLION as u64);
        let mut terms = waiting(flow, share, sending);
        if sending < self.interval {
            let place = window_place(flow.flow.there.from.0);
            let name = (
                "the window grows",
                "interval × (1 − bytes carried in the measured time / (throughput × measured time))",
                SLOW_START,
            );
            let numbers = format!("{:.1} % are carried", 100.0 * self.part);
            terms.add(name, &place, Cause::Window, self.interval - sending, numbers);
        }
        (share.rate.bytes_in(sending), What::Amount, terms)
    }

    /// What is to be said of a warm-up that is too short.
    pub fn short_warm_up(&self) -> Option<String> {
        let Meter { warm_up, part, .. } = self;
        (*part < GROWN).then(|| {
            format!(
                "after a warm_up of {warm_up} the window still grows: {:.0} % of the throughput told are carried in the mean over the intervals, fewer in the first of them and more in the last",
                100.0 * part
            )
        })
    }
}

/// Which part of a connection's final rate its host at the far end sees in the time `measured` behind `warm_up`, in the mean.
fn part(
    flow: &Greedy<'_>,
    share: &Share,
    before: &Before,
    (warm_up, measured): (Span, Span),
) -> f64 {
    let Before::New(new) = before else { return 1.0 };
    let rate = bytes_per_second(share);
    let mut way = Terms::default();
    one_way(&mut way, &flow.flow.there, flow.tcp.payload);
    let [_, alone, _] = held_back(flow, u64::MAX).unwrap_or_default();
    let come = |at: Span| new.carried(flow, at.saturating_sub(way.total() + alone), rate);
    let all = rate * measured.as_secs_f64();
    let part = (come(warm_up + measured) - come(warm_up)) / all;
    if part.is_finite() { part.clamp(0.0, 1.0) } else { 1.0 }
}
