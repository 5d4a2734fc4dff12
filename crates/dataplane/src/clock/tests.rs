//! Steps of the wall clock, with clocks that the test sets.

use super::*;
use crate::testing::Hands;

const MILLI: u64 = 1_000_000;

/// A clock, the hands that move it, and a port whose ring is read every millisecond.
struct Bench {
    hands: Hands,
    clock: Clock,
    port: Arrivals,
}

impl Bench {
    fn new() -> Bench {
        let hands = Hands::at(Time::from_nanos(10_000 * MILLI), 1_700_000_000_000 * MILLI as i64);
        let mut clock = Clock::over(Box::new(hands.clone()));
        clock.start();
        let mut bench = Bench { hands, clock, port: Arrivals::default() };
        (0..10).for_each(|_| assert_eq!(bench.read(&[]), []));
        bench
    }

    /// Lets a millisecond pass and reads these stamps, the last that lay in the ring.
    fn read(&mut self, stamps: &[u64]) -> Vec<Time> {
        self.hands.pass(Span::from_millis(1));
        self.read_now(stamps)
    }

    fn read_now(&mut self, stamps: &[u64]) -> Vec<Time> {
        self.clock.synchronise();
        let began = self.clock.now();
        let times = stamps.iter().map(|&stamp| self.clock.stamp(Some(stamp), &self.port)).collect();
        self.clock.read(stamps.len());
        self.port.drained(began);
        times
    }

    /// A frame comes now: its stamp, and when that truly is.
    fn frame(&self) -> (u64, Time) {
        (self.hands.stamp(), self.hands.now())
    }
}

#[test]
fn a_stamp_is_believed_however_old() {
    let mut bench = Bench::new();
    let (stamp, came) = bench.frame();
    bench.hands.pass(Span::from_secs(3));
    assert_eq!(bench.read(&[stamp]), [came], "a stall of three seconds");
    assert_eq!((bench.clock.stamps(), bench.clock.steps()), (Stamps::default(), 0));
}

/// Only a step makes an old stamp doubtful: without one it is believed, also if the ring was empty since.
#[test]
fn a_stamp_from_before_the_last_reading_is_believed_if_there_was_no_step() {
    let mut bench = Bench::new();
    let (stamp, came) = bench.frame();
    let readings = 2 * LIMBO.as_nanos() / MILLI;
    (0..readings).for_each(|_| assert_eq!(bench.read(&[]), []));
    assert_eq!(bench.read(&[stamp]), [came]);
    assert_eq!(bench.clock.stamps(), Stamps::default());
}

#[test]
fn frames_around_a_step_of_any_size_keep_their_arrival() {
    let micros = |micros: i64| micros * 1_000;
    for step in [5, 40, 2_000, 9_000, 499_000, 3_600_000_000].map(micros) {
        for step in [step, -step] {
            let mut bench = Bench::new();
            // Between two readings of a loop that spins there are some microseconds at most.
            let (before, came) = bench.frame();
            bench.hands.pass(Span::from_nanos(1_000));
            bench.hands.step(step);
            let times = bench.read_now(&[before]);
            let error = times[0].since(came).max(came.since(times[0]));
            let Stamps { corrected, uncertain, uncertainty, replaced } = bench.clock.stamps();
            assert!(error <= uncertainty, "{step}: wrong by {error}, told {uncertainty}");
            assert_eq!((corrected + uncertain, replaced, bench.clock.steps()), (1, 0, 1), "{step}");
            assert!(uncertainty.as_nanos() <= step.unsigned_abs(), "{step}: {uncertainty}");
            // Later frames have one offset only.
            for _ in 0..20 {
                bench.read(&[]);
            }
            let (after, came) = bench.frame();
            assert_eq!(bench.read(&[after]), [came], "{step}");
            assert_eq!(bench.clock.stamps().uncertain, uncertain, "{step}");
        }
    }
}

#[test]
fn large_steps_are_corrected_and_not_uncertain() {
    for step in [20 * MILLI as i64, -20 * MILLI as i64] {
        let mut bench = Bench::new();
        let first = bench.frame();
        bench.hands.pass(Span::from_micros(300));
        bench.hands.step(step);
        let second = bench.frame();
        assert_eq!(bench.read(&[first.0, second.0]), [first.1, second.1], "{step}");
        let corrected = Stamps { corrected: 1, ..Stamps::default() };
        assert_eq!((bench.clock.stamps(), bench.clock.steps()), (corrected, 1), "{step}");
    }
}

#[test]
fn a_small_step_in_a_long_sleep_leaves_arrivals_uncertain_by_no_more() {
    for step in [300_000, -300_000] {
        let mut bench = Bench::new();
        bench.hands.pass(Span::from_millis(40));
        let first = bench.frame();
        bench.hands.pass(Span::from_millis(20));
        bench.hands.step(step);
        bench.hands.pass(Span::from_millis(20));
        let times = bench.read(&[first.0]);
        assert!(times[0].since(first.1).max(first.1.since(times[0])) <= Span::from_micros(300));
        let Stamps { uncertain, uncertainty, .. } = bench.clock.stamps();
        assert_eq!((uncertain, uncertainty), (1, Span::from_micros(300)), "{step}");
    }
}

#[test]
fn a_step_while_frames_are_read_is_noticed_by_the_end_of_the_reading() {
    for step in [50_000, -50_000] {
        let mut bench = Bench::new();
        bench.clock.synchronise();
        bench.hands.pass(Span::from_micros(100));
        bench.hands.step(step);
        let (stamp, came) = bench.frame();
        let at = bench.clock.stamp(Some(stamp), &bench.port);
        bench.clock.read(1);
        let error = at.since(came).max(came.since(at));
        let Stamps { uncertain, uncertainty, .. } = bench.clock.stamps();
        assert!(error <= uncertainty, "{step}: {error}, told {uncertainty}");
        // A step forward shows in a stamp from the future, at once.
        assert_eq!(uncertain, u64::from(step < 0));
        assert_eq!(bench.clock.steps(), 1);
    }
}

#[test]
fn two_steps_before_a_reading_are_both_corrected() {
    let mut bench = Bench::new();
    let first = bench.frame();
    bench.hands.step(700 * MILLI as i64);
    bench.clock.synchronise();
    bench.hands.pass(Span::from_micros(10));
    let second = bench.frame();
    bench.hands.step(-2_000 * MILLI as i64);
    bench.hands.pass(Span::from_micros(10));
    let third = bench.frame();
    let stamps = [first.0, second.0, third.0];
    assert_eq!(bench.read(&stamps), [first.1, second.1, third.1]);
    assert_eq!((bench.clock.stamps().corrected, bench.clock.steps()), (2, 2));
}

#[test]
fn what_no_offset_explains_is_replaced_and_counted() {
    let mut bench = Bench::new();
    let (stamp, _) = bench.frame();
    let read = bench.read(&[stamp + 5 * MILLI, 1]);
    assert_eq!(read, [bench.hands.now(); 2], "from the future, and from the distant past");
    assert_eq!(bench.clock.stamps().replaced, 2);
    assert_eq!(bench.clock.stamp(None, &bench.port), bench.hands.now());
    assert_eq!((bench.clock.stamps().replaced, bench.clock.steps()), (2, 0));
}

#[test]
fn what_lay_in_the_ring_at_the_start_came_with_it() {
    let hands = Hands::at(Time::from_nanos(10_000 * MILLI), 0);
    let mut clock = Clock::over(Box::new(hands.clone()));
    let stamp = hands.stamp();
    hands.pass(Span::from_secs(1));
    clock.start();
    let start = hands.now();
    hands.pass(Span::from_micros(10));
    clock.synchronise();
    assert_eq!(clock.stamp(Some(stamp), &Arrivals::default()), start);
    assert_eq!(clock.stamps(), Stamps::default());
}

#[test]
fn the_systems_clocks_are_compared_closely() {
    let mut clock = Clock::default();
    for _ in 0..1000 {
        clock.synchronise();
        let stamp = System.realtime() as u64;
        let now = clock.now();
        let at = clock.stamp(Some(stamp), &Arrivals::default());
        assert!(at <= now && now.since(at) < Span::from_secs(1), "{now} {at}");
    }
    assert_eq!(clock.stamps(), Stamps::default());
}

#[test]
fn instants_are_told_by_the_wall_clock_and_back() {
    let mut bench = Bench::new();
    let (stamp, came) = bench.frame();
    assert_eq!(bench.clock.realtime(came), stamp);
    assert_eq!(bench.read(&[stamp]), [came]);
}

/// Clocks of which each reading takes some time.
#[derive(Debug, Clone)]
struct Slow {
    hands: Hands,
    takes: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Slow {
    fn pass(&self) {
        let takes = self.takes.load(std::sync::atomic::Ordering::Relaxed);
        self.hands.pass(Span::from_nanos(takes));
    }
}

impl Source for Slow {
    fn monotonic(&self) -> Time {
        Source::monotonic(&self.hands)
    }

    fn realtime(&self) -> i64 {
        self.pass();
        Source::realtime(&self.hands)
    }
}

#[test]
fn instants_told_by_the_wall_clock_keep_their_distance_while_the_offset_is_narrowed() {
    let hands = Hands::at(Time::from_nanos(10_000 * MILLI), 1_700_000_000_000 * MILLI as i64);
    let takes = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(400));
    let mut clock = Clock::over(Box::new(Slow { hands: hands.clone(), takes: takes.clone() }));
    let (first, told) = (clock.now(), clock.realtime(clock.now));
    takes.store(0, std::sync::atomic::Ordering::Relaxed);
    clock.synchronise();
    let second = first + Span::from_millis(50);
    assert_eq!(clock.realtime(second) - told, 50 * MILLI);
    // After a step they are told by the wall clock as it is now.
    hands.step(20 * MILLI as i64);
    clock.synchronise();
    assert_eq!(clock.realtime(hands.now()), hands.stamp());
}
