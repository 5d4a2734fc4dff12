//! The end of slow start before there is a loss: HyStart++ (RFC 9406) and HyStart as its authors published
//! it (Ha and Rhee, *Taming the elephants: New TCP slow start*, Computer Networks 55(9), 2011).

use super::super::settings::Start;
use super::super::{Ack, Settings};
use trunkline_core::{Span, Time};

/// MIN_RTT_THRESH and MAX_RTT_THRESH (RFC 9406 §4.3); HyStart has the same bounds.
const THRESHOLD: (Span, Span) = (Span::from_millis(4), Span::from_millis(16));
/// N_RTT_SAMPLE (RFC 9406 §4.3).
const SAMPLES: u8 = 8;
/// CSS_ROUNDS (RFC 9406 §4.3).
const CONSERVATIVE_ROUNDS: u8 = 5;
/// CSS_GROWTH_DIVISOR (RFC 9406 §4.3).
const CONSERVATIVE_DIVISOR: u64 = 4;
/// L for senders that do not pace (RFC 9406 §4.3).
const LIMIT: u64 = 8;
/// HyStart: ACKs closer together than this belong to one train.
const TRAIN_GAP: Span = Span::from_millis(2);
/// HyStart: segments below which the window is left alone.
const LOW_WINDOW: u64 = 16;

/// The advice to slow start after an ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// Add what was acknowledged, divided by this.
    Grow(u64),
    /// Go over to congestion avoidance.
    Leave,
}

/// Watches the first slow start of a connection.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    how: Start,
    last_round: Span,
    this_round: Span,
    samples: u8,
    /// HyStart++: the round trip that led into Conservative Slow Start, and its rounds so far.
    conservative: Option<(Span, u8)>,
    /// HyStart: when the round began and when its last ACK of the train came.
    train: (Time, Time),
}

/// Whether `later` is longer than `earlier` by more than chance (RFC 9406 §4.2).
fn longer(earlier: Span, later: Span) -> bool {
    let threshold = earlier.scaled(1, 8).clamp(THRESHOLD.0, THRESHOLD.1);
    later >= earlier + threshold
}

impl Watch {
    pub(super) fn new(how: Start) -> Watch {
        Watch {
            how,
            last_round: Span::MAX,
            this_round: Span::MAX,
            samples: 0,
            conservative: None,
            train: (Time::ZERO, Time::ZERO),
        }
    }

    /// Segments for which one ACK counts.
    pub(super) fn limit(&self, settings: &Settings) -> u64 {
        let limit = u64::from(settings.slow_start_limit.max(1));
        if self.how == Start::HyStartPlusPlus { limit.max(LIMIT) } else { limit }
    }

    /// Takes in an ACK of slow start, whether the window grows with it or not.
    pub(super) fn see(&mut self, ack: &Ack) {
        if ack.round_start {
            self.begin_round(ack.now);
        }
        if let Some(rtt) = ack.rtt {
            self.this_round = self.this_round.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
    }

    /// Advises slow start on the ACK just seen.
    pub(super) fn advise(&mut self, ack: &Ack, window: u64, mss: u64) -> Advice {
        match self.how {
            Start::Plain => Advice::Grow(1),
            Start::HyStart => self.hystart(ack, window / mss),
            Start::HyStartPlusPlus => self.plus_plus(),
        }
    }

    fn begin_round(&mut self, now: Time) {
        self.last_round = self.this_round;
        self.this_round = Span::MAX;
        self.samples = 0;
        self.train = (now, now);
        if let Some((_, rounds)) = &mut self.conservative {
            *rounds += 1;
        }
    }

    /// RFC 9406 §4.2.
    fn plus_plus(&mut self) -> Advice {
        let judged = self.samples >= SAMPLES;
        match self.conservative {
            Some((_, rounds)) if rounds >= CONSERVATIVE_ROUNDS => return Advice::Leave,
            // The round trip has come down again: it was jitter that had lengthened it.
            Some((baseline, _)) if judged && self.this_round < baseline => self.conservative = None,
            None if judged && self.last_round < Span::MAX => {
                let slower = longer(self.last_round, self.this_round);
                self.conservative = slower.then_some((self.this_round, 0));
            }
            _ => {}
        }
        Advice::Grow(if self.conservative.is_some() { CONSERVATIVE_DIVISOR } else { 1 })
    }

    /// Either sign ends slow start: a train of ACKs as long as half the shortest round trip, or the
    /// round trip of eight samples longer than the shortest.
    fn hystart(&mut self, ack: &Ack, segments: u64) -> Advice {
        let (began, last) = self.train;
        let mut leave = false;
        if ack.now.since(last) <= TRAIN_GAP {
            self.train.1 = ack.now;
            leave = ack.now.since(began) > ack.min_rtt.scaled(1, 2) && !ack.min_rtt.is_zero();
        }
        leave |= self.samples >= SAMPLES && longer(ack.min_rtt, self.this_round);
        if leave && segments >= LOW_WINDOW { Advice::Leave } else { Advice::Grow(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn ack(millis: u64, rtt: u64, round_start: bool) -> Ack {
        let now = Time::ZERO + Span::from_millis(millis);
        let (rtt, min_rtt) = (Some(Span::from_millis(rtt)), Span::from_millis(40));
        Ack { rtt, min_rtt, round_start, ..Ack::of(now, MSS) }
    }

    fn advise(watch: &mut Watch, ack: &Ack, segments: u64) -> Advice {
        watch.see(ack);
        watch.advise(ack, segments * MSS, MSS)
    }

    /// A round of ten ACKs `gap` apart with one round-trip time; the last advice.
    fn round(watch: &mut Watch, begin: u64, gap: u64, rtt: u64) -> Advice {
        let acks = (0..10).map(|i| ack(begin + i * gap, rtt, i == 0));
        acks.map(|ack| advise(watch, &ack, 20)).last().unwrap()
    }

    #[test]
    fn a_longer_round_leads_through_five_conservative_rounds() {
        let mut watch = Watch::new(Start::HyStartPlusPlus);
        assert_eq!(round(&mut watch, 0, 1, 40), Advice::Grow(1));
        assert_eq!(round(&mut watch, 40, 1, 44), Advice::Grow(1), "an eighth of 40 is 5 ms");
        assert_eq!(round(&mut watch, 80, 1, 50), Advice::Grow(4));
        for n in 0..4 {
            assert_eq!(round(&mut watch, 120 + 40 * n, 1, 51), Advice::Grow(4), "round {n}");
        }
        assert_eq!(round(&mut watch, 300, 1, 51), Advice::Leave);
    }

    #[test]
    fn a_shorter_round_resumes_slow_start() {
        let mut watch = Watch::new(Start::HyStartPlusPlus);
        round(&mut watch, 0, 1, 40);
        assert_eq!(round(&mut watch, 40, 1, 50), Advice::Grow(4));
        assert_eq!(round(&mut watch, 80, 1, 41), Advice::Grow(1));
    }

    #[test]
    fn too_few_samples_decide_nothing() {
        let mut watch = Watch::new(Start::HyStartPlusPlus);
        round(&mut watch, 0, 1, 40);
        for i in 0..7 {
            let advice = advise(&mut watch, &ack(40 + i, 90, i == 0), 20);
            assert_eq!(advice, Advice::Grow(1));
        }
    }

    #[test]
    fn hystart_leaves_at_a_long_train_and_at_a_long_round_trip() {
        let mut watch = Watch::new(Start::HyStart);
        assert_eq!(round(&mut watch, 100, 2, 40), Advice::Grow(1), "18 ms is below 20");
        assert_eq!(round(&mut watch, 140, 2, 45), Advice::Leave, "the round trip is 5 ms longer");
        let mut watch = Watch::new(Start::HyStart);
        let train = (0..12).map(|i| advise(&mut watch, &ack(100 + 2 * i, 40, i == 0), 20));
        assert_eq!(train.last(), Some(Advice::Leave));
        let mut watch = Watch::new(Start::HyStart);
        assert_eq!(round(&mut watch, 100, 5, 40), Advice::Grow(1), "gaps of 5 ms are no train");
    }

    #[test]
    fn hystart_leaves_small_windows_alone() {
        let mut watch = Watch::new(Start::HyStart);
        let acks = (0..20).map(|i| ack(i, 90, i == 0));
        let advice: Vec<Advice> = acks.map(|ack| advise(&mut watch, &ack, 15)).collect();
        assert!(advice.iter().all(|&advice| advice == Advice::Grow(1)));
    }
}
