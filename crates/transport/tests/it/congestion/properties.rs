//! The properties of every controller, whatever happens to it.

use crate::congestion::MSS;
use proptest::prelude::*;
use trunkline_core::{Span, Time};
use trunkline_transport::tcp::congestion::{
    Ack, Algorithm, Congestion, Controller, Counting, MOST_WINDOW, RateSample, Reason, Settings,
    Start,
};

#[derive(Debug, Clone)]
enum Event {
    Ack {
        bytes: u64,
        rtt: u64,
        limited: bool,
        lost: u64,
        round: bool,
    },
    Loss,
    Mark,
    /// Marks that are told of for each packet.
    Marked,
    Recovered,
    TimedOut,
    Undone,
    Idle,
    Sent,
}

fn event() -> impl Strategy<Value = Event> {
    let ack = (0u64..1 << 31, 0u64..10_000_000_000, any::<bool>(), 0u64..100_000, any::<bool>());
    prop_oneof![
        12 => ack.prop_map(|(bytes, rtt, limited, lost, round)| {
            Event::Ack { bytes: bytes >> (rtt % 31), rtt, limited, lost, round }
        }),
        1 => Just(Event::Loss),
        1 => Just(Event::Mark),
        1 => Just(Event::Marked),
        1 => Just(Event::Recovered),
        1 => Just(Event::TimedOut),
        1 => Just(Event::Undone),
        1 => Just(Event::Idle),
        2 => Just(Event::Sent),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let kinds = prop::sample::select(Algorithm::ALL.to_vec());
    let countings =
        prop::sample::select(vec![Counting::Bytes, Counting::Acks, Counting::AcksAndEighth]);
    let starts = prop::sample::select(vec![Start::Plain, Start::HyStart, Start::HyStartPlusPlus]);
    let sizes = (1u32..70_000, prop::option::of(any::<u64>()), 0u16..2_000, any::<u32>());
    (kinds, countings, starts, sizes, any::<bool>(), any::<bool>(), any::<u64>()).prop_map(
        |(kind, counting, start, (mss, initial_window, increase, c), whole, abe, seed)| Settings {
            counting,
            initial_window,
            increase,
            constant_rate_milli: c,
            whole_segments: whole,
            alternative_backoff: abe,
            start,
            seed,
            ..Settings::new(kind, mss)
        },
    )
}

/// The state of the machine around the controller, as far as it matters here.
#[derive(Default)]
struct World {
    now: Time,
    delivered: u64,
    recovering: bool,
}

impl World {
    fn ack(&mut self, bytes: u64, rtt: u64, limited: bool, lost: u64, round: bool) -> Ack {
        let rtt = Span::from_nanos(rtt);
        let prior_delivered = self.delivered;
        self.delivered += bytes;
        let sample = RateSample {
            delivered: bytes,
            interval: Some(rtt).filter(|rtt| !rtt.is_zero()),
            prior_delivered,
            app_limited: !limited,
            lost,
            prior_in_flight: bytes,
        };
        Ack {
            rtt: Some(rtt),
            smoothed_rtt: rtt,
            min_rtt: rtt.scaled(1, 2),
            in_flight: bytes / 2,
            marked: if round { bytes.min(lost) } else { 0 },
            rate_sample: Some(sample),
            round_start: round,
            window_limited: limited,
            recovering: self.recovering,
            ..Ack::of(self.now, bytes)
        }
    }

    fn apply(&mut self, flow: &mut Controller, event: &Event) {
        self.now += Span::from_micros(700);
        let (now, in_flight) = (self.now, flow.window());
        match *event {
            Event::Ack { bytes, rtt, limited, lost, round } => {
                self.now += Span::from_nanos(rtt / 16);
                flow.acked(&self.ack(bytes, rtt, limited, lost, round));
            }
            Event::Loss => flow.congested(now, in_flight, Reason::Loss),
            Event::Mark => flow.congested(now, in_flight, Reason::EcnEcho),
            Event::Marked => flow.congested(now, in_flight, Reason::Marked),
            Event::Recovered => flow.recovered(now),
            Event::TimedOut => flow.timed_out(now, in_flight),
            Event::Undone => flow.undone(now),
            Event::Idle => flow.restarted_after_idle(now, 1),
            Event::Sent => flow.sent(now, u64::from(MSS), u64::from(MSS)),
        }
        self.recovering = match event {
            Event::Loss => true,
            Event::Recovered | Event::TimedOut | Event::Undone => false,
            _ => self.recovering,
        };
    }
}

/// Window, threshold and pacing rate after every event.
fn history(settings: &Settings, events: &[Event]) -> Vec<(u64, u64, Option<u64>)> {
    let (mut flow, mut world) = (Controller::new(settings), World::default());
    let mut line = Vec::new();
    for event in events {
        world.apply(&mut flow, event);
        let pacing = flow.pacing().map(trunkline_core::Rate::bits_per_second);
        line.push((flow.window(), flow.slow_start_threshold(), pacing));
    }
    line
}

proptest! {
    #[test]
    fn the_window_keeps_its_bounds_and_the_same_events_give_the_same_windows(
        settings in settings(), events in prop::collection::vec(event(), 1..300),
    ) {
        let line = history(&settings, &events);
        let mss = u64::from(settings.mss);
        for (step, &(window, threshold, pacing)) in line.iter().enumerate() {
            prop_assert!((mss..=MOST_WINDOW).contains(&window), "{window} after {:?}", events[step]);
            prop_assert!(threshold >= 2 * mss);
            prop_assert!(pacing.is_none_or(|rate| rate > 0));
        }
        prop_assert_eq!(line, history(&settings, &events));
    }

    /// No ACK that tells of no marks makes the window smaller, save those of controllers that say so; and in slow start
    /// it grows by no more than was acknowledged.
    #[test]
    fn acks_do_not_shrink_the_window(
        settings in settings(), events in prop::collection::vec(event(), 1..300),
    ) {
        prop_assume!(!settings.kind.entry().shrinks_by_acks);
        let (mut flow, mut world) = (Controller::new(&settings), World::default());
        for event in &events {
            let (before, threshold) = (flow.window(), flow.slow_start_threshold());
            world.apply(&mut flow, event);
            if let Event::Ack { bytes, round: false, .. } = event {
                prop_assert!(flow.window() >= before);
                if flow.window() < threshold {
                    prop_assert!(flow.window() - before <= *bytes);
                }
            }
        }
    }

    /// What was no congestion leaves no trace (RFC 9438 §4.9; RFC 4015).
    #[test]
    fn undoing_gives_the_window_back(
        settings in settings(), acks in 1u64..200, reason in 0u8..4,
    ) {
        prop_assume!(settings.kind != Algorithm::BBR);
        let (mut flow, mut world) = (Controller::new(&settings), World::default());
        for _ in 0..acks {
            let bytes = u64::from(settings.mss);
            let ack = Event::Ack { bytes, rtt: 20_000_000, limited: true, lost: 0, round: false };
            world.apply(&mut flow, &ack);
        }
        let before = (flow.window(), flow.slow_start_threshold());
        let event = [Event::Loss, Event::Mark, Event::TimedOut, Event::Marked][usize::from(reason)].clone();
        world.apply(&mut flow, &event);
        world.apply(&mut flow, &Event::Undone);
        prop_assert_eq!(before, (flow.window(), flow.slow_start_threshold()));
    }
}
