//! The end of slow start by HyStart, before anything is lost (S. Ha, I. Rhee, *Taming the elephants: New TCP slow
//! start*, Computer Networks 55(9), 2011). Windows are in segments, times in seconds.

use super::transfer::Transfer;

/// Segments below which HyStart leaves a window alone.
const LOW_WINDOW: f64 = 16.0;
/// ACKs whose round trips are compared with the shortest.
const SAMPLES: f64 = 8.0;
/// The eighth of a round trip by which it must be longer, within these bounds.
const LONGER: (f64, f64) = (0.004, 0.016);

/// HyStart, and the signs that it can see.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HyStart {
    /// Whether ACKs come closely enough to be a train, which ends slow start when it lasts half a round trip. A
    /// round trip that gets longer ends it in any case.
    pub trains: bool,
    /// Segments of a window that make no queue.
    pub held: f64,
    /// Segments per second at which a queue drains.
    pub rate: f64,
}

impl HyStart {
    /// The window at which slow start ends while the ACKs of `window` come in, if it does; `before` is the window of
    /// the round before. Short segments at the beginning made the shortest round trip `sooner` seconds shorter.
    pub fn ends(
        self,
        transfer: &Transfer,
        (before, window): (f64, f64),
        sooner: f64,
    ) -> Option<f64> {
        let queue = (before - self.held).max(0.0) / self.rate;
        let acknowledged = if self.trains && 2.0 * window > transfer.pipe {
            transfer.pipe / 2.0
        } else if queue + sooner > longer(transfer.round - sooner) {
            SAMPLES * transfer.acked
        } else {
            return None;
        };
        let grown = window + transfer.growth * acknowledged.min(window);
        let most = window * (1.0 + transfer.growth);
        (most >= LOW_WINDOW).then(|| grown.max(LOW_WINDOW.min(most)))
    }
}

/// By how many seconds the first segments of a round must be later.
fn longer(round: f64) -> f64 {
    (round / 8.0).clamp(LONGER.0, LONGER.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::transfer::tests::transfer;

    /// A path of 100 segments and 100 ms.
    fn ends(trains: bool, before: f64, window: f64) -> Option<f64> {
        HyStart { trains, held: 100.0, rate: 1_000.0 }.ends(&transfer(1e6), (before, window), 0.0)
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_it_with_a_window_that_fills_the_path() {
        assert_eq!(ends(true, 20.0, 40.0), None, "40 ms of ACKs");
        assert_eq!(ends(true, 40.0, 80.0), Some(130.0), "50 ACKs of the 80 had come");
    }

    #[test]
    fn without_trains_a_standing_queue_ends_it() {
        assert_eq!(ends(false, 40.0, 80.0), None);
        assert_eq!(ends(false, 100.0, 200.0), None, "no queue stood when the round began");
        // 20 ms more than 100, of which 12.5 are enough; eight ACKs of two segments each.
        assert_eq!(ends(false, 120.0, 240.0), Some(256.0));
    }

    /// Full segments on a slow line are later than the short ones before them, as if there were a queue.
    #[test]
    fn segments_that_are_longer_than_the_first_end_it() {
        let hystart = HyStart { trains: false, held: 100.0, rate: 1_000.0 };
        let ends = |sooner| hystart.ends(&transfer(1e6), (1.0, 20.0), sooner);
        assert_eq!([0.010, 0.012].map(ends), [None, Some(36.0)]);
    }

    #[test]
    fn small_windows_are_left_alone() {
        let short = Transfer { pipe: 4.0, ..transfer(1e6) };
        let hystart = HyStart { trains: true, held: 4.0, rate: 40.0 };
        assert_eq!(hystart.ends(&short, (0.0, 7.0), 0.0), None);
        assert_eq!(hystart.ends(&short, (0.0, 10.0), 0.0), Some(16.0));
    }
}
