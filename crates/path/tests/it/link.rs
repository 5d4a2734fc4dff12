//! The whole link under arbitrary arrivals and arbitrary changes while traffic flows.

use proptest::prelude::*;
use trunkline_core::{Cause, Channel, Counts, DropCause, Packet, Rate, Seed, Span, Time};
use trunkline_path::{CatchUp, Change, DisciplineSpec, Framing, Limit, Link, LinkSpec};

/// What happens `gap` nanoseconds after what happened before.
#[derive(Debug, Clone)]
enum Event {
    Arrive {
        size: u32,
    },
    /// A change asked for now, to happen so many nanoseconds later.
    Change {
        ahead: u64,
        change: Change,
    },
}

type Script = Vec<(u64, Event)>;

/// How often the engine looks after the link.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Steps {
    /// Only when a packet arrives, and at the end.
    Big,
    /// Every so many nanoseconds and at each event of the link; taking out what is due.
    Small(u64),
}

#[derive(Debug, PartialEq)]
struct Arrival {
    id: usize,
    packet: Packet<usize>,
    release: Time,
}

#[derive(Debug, PartialEq)]
struct Outcome {
    delivered: Vec<Arrival>,
    dropped: Vec<(usize, DropCause)>,
    counts: Counts,
}

struct Run {
    link: Link<Packet<usize>>,
    outcome: Outcome,
    steps: Steps,
    now: u64,
    extra_delivered: u64,
}

impl Run {
    fn new(spec: &LinkSpec, seed: u64, steps: Steps) -> Run {
        let outcome =
            Outcome { delivered: Vec::new(), dropped: Vec::new(), counts: Counts::default() };
        let link = Link::new(spec, Seed(seed), "link", Time::ZERO);
        Run { link, outcome, steps, now: 0, extra_delivered: 0 }
    }

    fn collect(&mut self) {
        while let Some(delivered) = self.link.take(Time::from_nanos(self.now)) {
            self.extra_delivered += u64::from(delivered.packet.copies) - 1;
            let (release, packet) = (delivered.release, delivered.packet);
            self.outcome.delivered.push(Arrival { id: packet.body, packet, release });
        }
        self.outcome
            .dropped
            .extend(self.link.dropped().map(|(packet, cause)| (packet.body, cause)));
        self.conservation();
    }

    /// Law 6, at any moment.
    fn conservation(&self) {
        let counts = self.link.counts();
        let copies = counts.duplicated - self.extra_delivered;
        let inside = self.link.backlog().packets + self.link.in_flight() as u64 + copies;
        assert_eq!(
            counts.entered + counts.duplicated,
            counts.delivered + counts.dropped() + inside,
            "{counts:?}"
        );
    }

    fn go_to(&mut self, to: u64) {
        if let Steps::Small(step) = self.steps {
            while self.now < to {
                let event = self.link.next_event().map_or(to, |at| at.as_nanos());
                let next = (self.now + step).min(event.max(self.now + 1)).min(to);
                self.now = next;
                self.link.advance(Time::from_nanos(next));
                self.collect();
            }
        }
        self.now = to;
    }

    fn play(mut self, script: &Script) -> Outcome {
        for (id, (gap, event)) in script.iter().enumerate() {
            self.go_to(self.now + gap);
            let now = Time::from_nanos(self.now);
            match event {
                Event::Arrive { size } => {
                    self.link.offer(now, Packet::new(Channel(1), *size, now, id));
                }
                Event::Change { ahead, change } => {
                    self.link.schedule(now + Span::from_nanos(*ahead), change.clone());
                }
            }
        }
        // The slowest rate below drains everything within this time.
        if self.steps != Steps::Big {
            self.steps = Steps::Small(1_000_000_000);
        }
        self.go_to(self.now + 60_000_000_000);
        self.link.advance(Time::from_nanos(self.now));
        self.collect();
        assert_eq!(self.link.counts().in_flight(), 0, "everything has arrived or been dropped");
        self.outcome.counts = self.link.counts();
        self.outcome
    }
}

fn play(spec: &LinkSpec, seed: u64, steps: Steps, script: &Script) -> Outcome {
    Run::new(spec, seed, steps).play(script)
}

fn any_rate() -> impl Strategy<Value = Option<Rate>> {
    let bits = prop_oneof![100_000u64..2_000_000, 1_000_000u64..10_000_000_000];
    prop::option::weighted(0.8, bits.prop_map(Rate::from_bits_per_second))
}

fn any_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1u64..50_000).prop_map(Limit::Bytes),
        (1u64..50).prop_map(Limit::Packets),
        (1u64..500).prop_map(Limit::Cells),
    ]
}

fn any_catch_up() -> impl Strategy<Value = CatchUp> {
    prop::sample::select(vec![CatchUp::Drain, CatchUp::AtOnce])
}

fn any_change(wild: bool) -> impl Strategy<Value = Change> {
    let mut texts = vec!["loss=0%", "loss=30%", "loss=ge:p=10%,r=20%", "bit-errors=1e-5"];
    texts.extend(["duplicate=20%", "duplicate=0%"]);
    if wild {
        texts.extend(["jitter=3ms", "jitter=independent:normal:2ms", "jitter=exponential:1ms"]);
        texts.extend(["jitter=none", "reorder=20%:5ms", "reorder=none"]);
        texts.push("jitter=correlated:normal:2ms:rho=0.9");
    }
    let setting = prop::sample::select(texts).prop_map(|text| text.parse().unwrap());
    prop_oneof![
        (0u64..20_000_000).prop_map(|nanos| Change::Delay(Span::from_nanos(nanos))),
        any_rate().prop_map(Change::Rate),
        any_catch_up().prop_map(Change::CatchUp),
        any_limit().prop_map(Change::Limit),
        setting,
    ]
}

fn any_script(wild: bool) -> impl Strategy<Value = Script> {
    let ahead = prop_oneof![Just(0u64), 0u64..5_000_000];
    let change = (ahead, any_change(wild));
    let event = prop_oneof![
        4 => (1u32..3000).prop_map(|size| Event::Arrive { size }),
        1 => change.prop_map(|(ahead, change)| Event::Change { ahead, change }),
    ];
    let gap = prop_oneof![Just(0u64), 0u64..10_000, 0u64..3_000_000];
    prop::collection::vec((gap, event), 1..80)
}

fn any_spec() -> impl Strategy<Value = LinkSpec> {
    let framing = prop::sample::select(vec![
        Framing::None,
        Framing::Ethernet,
        Framing::T1_LAPD,
        Framing::AtmAal5,
    ]);
    let schedule =
        prop::option::of(Just("1ms delay=3ms; 4ms rate=1mbit; 9ms rate=20mbit; repeat 170ms"));
    (any_rate(), framing, 0u64..20_000_000, any_limit(), 0u64..5000, schedule).prop_map(
        |(rate, framing, delay, limit, buffer, schedule)| LinkSpec {
            rate,
            framing,
            delay: Span::from_nanos(delay),
            discipline: DisciplineSpec::fifo(limit),
            output_buffer: trunkline_core::Size::from_bytes(buffer),
            schedule: schedule.map(|text| text.parse().unwrap()).unwrap_or_default(),
            ..LinkSpec::default()
        },
    )
}

/// Everything at once that the delay can be.
fn delays<'a>(spec: &'a LinkSpec, script: &'a Script) -> impl Iterator<Item = Span> + 'a {
    let live = script.iter().filter_map(|(_, event)| match event {
        Event::Change { change: Change::Delay(delay), .. } => Some(*delay),
        _ => None,
    });
    let planned = spec.schedule.steps.iter().filter_map(|(_, change)| match change {
        Change::Delay(delay) => Some(*delay),
        _ => None,
    });
    std::iter::once(spec.delay).chain(live).chain(planned)
}

/// When the packet left the line, by its ledger.
fn departed(arrival: &Arrival) -> Time {
    let ledger = &arrival.packet.ledger;
    arrival.packet.entered + ledger.get(Cause::Queue) + ledger.get(Cause::Transmit)
}

proptest! {
    #[test]
    fn order_delay_and_ledger_hold_under_live_changes(
        spec in any_spec(), script in any_script(false), seed in any::<u64>(),
    ) {
        let outcome = play(&spec, seed, Steps::Big, &script);
        let least = delays(&spec, &script).min().unwrap();
        prop_assert!(outcome.delivered.is_sorted_by(|a, b| a.id < b.id && a.release <= b.release));
        for arrival in &outcome.delivered {
            prop_assert_eq!(arrival.packet.ledger.total(), arrival.release - arrival.packet.entered);
            prop_assert!(arrival.release >= arrival.packet.entered + least);
            prop_assert!(arrival.packet.ledger.get(Cause::Propagate) >= least);
        }
    }

    #[test]
    fn ledgers_sum_with_jitter_and_reordering_too(
        spec in any_spec(), script in any_script(true), seed in any::<u64>(),
    ) {
        let outcome = play(&spec, seed, Steps::Big, &script);
        prop_assert!(outcome.delivered.is_sorted_by_key(|arrival| arrival.release));
        for arrival in &outcome.delivered {
            prop_assert_eq!(arrival.packet.ledger.total(), arrival.release - arrival.packet.entered);
            prop_assert!(arrival.release >= departed(arrival));
        }
        let mut ids: Vec<usize> = outcome.delivered.iter().map(|arrival| arrival.id).collect();
        ids.extend(outcome.dropped.iter().map(|&(id, _)| id));
        ids.sort_unstable();
        let entered = script.iter().enumerate()
            .filter(|(_, (_, event))| matches!(event, Event::Arrive { .. }));
        prop_assert_eq!(ids, entered.map(|(id, _)| id).collect::<Vec<_>>(), "each once");
    }

    /// How the engine slices time changes nothing, to the last bit. The conservation of packets is
    /// asserted at every small step.
    #[test]
    fn one_big_step_equals_many_small_ones(
        spec in any_spec(), script in any_script(true), seed in any::<u64>(),
        step in prop_oneof![1_000u64..100_000, 100_000u64..5_000_000],
    ) {
        let big = play(&spec, seed, Steps::Big, &script);
        let small = play(&spec, seed, Steps::Small(step), &script);
        prop_assert_eq!(&big, &small);
        prop_assert_eq!(&big, &play(&spec, seed, Steps::Big, &script), "the same seed again");
    }

    /// What has left the line is released when it was going to be, whatever is changed afterwards.
    #[test]
    fn packets_under_way_keep_their_release_time(
        spec in any_spec(), script in any_script(true), seed in any::<u64>(), cut in 0usize..80,
    ) {
        let cut = cut.min(script.len());
        let until: u64 = script[..cut].iter().map(|(gap, _)| gap).sum();
        let mut calm = script.clone();
        for (_, event) in &mut calm[cut..] {
            if let Event::Change { change, .. } = event {
                // A change that cannot matter: two runs must differ in their later changes only.
                *event = Event::Change { ahead: 120_000_000_000, change: change.clone() };
            }
        }
        let under_way = |outcome: Outcome| -> Vec<(usize, Time)> {
            let gone = outcome.delivered.into_iter()
                .filter(|arrival| departed(arrival) < Time::from_nanos(until));
            let mut gone: Vec<_> = gone.map(|arrival| (arrival.id, arrival.release)).collect();
            gone.sort_unstable();
            gone
        };
        let changed = under_way(play(&spec, seed, Steps::Big, &script));
        prop_assert_eq!(changed, under_way(play(&spec, seed, Steps::Big, &calm)));
    }

    /// On a line without a rate the release times are known: the delay in force at arrival, or behind the
    /// packet in front if that is under way still, at once or after three quarters of the gap between them.
    #[test]
    fn releases_follow_the_delay_in_force(
        arrivals in prop::collection::vec((0u64..3_000_000, prop::option::of(0u64..10_000_000)), 1..100),
        catch_up in any_catch_up(),
    ) {
        let spec = LinkSpec { delay: Span::from_millis(5), catch_up, ..LinkSpec::default() };
        let mut script = Script::new();
        let (mut now, mut delay, mut expected) = (0, 5_000_000, Vec::<u64>::new());
        for (gap, new) in arrivals {
            now += gap;
            if let Some(new) = new {
                delay = new;
                let change = Change::Delay(Span::from_nanos(new));
                script.push((gap, Event::Change { ahead: 0, change }));
            }
            script.push((if new.is_some() { 0 } else { gap }, Event::Arrive { size: 100 }));
            let last = expected.last().copied().unwrap_or(0);
            let behind = if catch_up == CatchUp::Drain && last > now { gap * 3 / 4 } else { 0 };
            expected.push((now + delay).max(last + behind));
        }
        let outcome = play(&spec, 1, Steps::Big, &script);
        let releases: Vec<u64> =
            outcome.delivered.iter().map(|arrival| arrival.release.as_nanos()).collect();
        prop_assert_eq!(releases, expected);
    }
}

fn steady(count: usize, gap: u64) -> Script {
    vec![(gap, Event::Arrive { size: 1000 }); count]
}

#[test]
fn another_seed_gives_another_result() {
    let mut spec = LinkSpec { delay: Span::from_millis(5), ..LinkSpec::default() };
    for setting in ["loss=10%", "duplicate=10%", "jitter=2ms", "reorder=10%:3ms", "bit-errors=1e-5"]
    {
        let Change::Setting(setting) = setting.parse().unwrap() else { panic!("no impairment") };
        spec.impairments = Default::default();
        spec.impairments.set(setting);
        let script = steady(200, 100_000);
        let [one, same, other] = [1, 1, 2].map(|seed| play(&spec, seed, Steps::Big, &script));
        assert_eq!(one, same);
        assert_ne!(one, other);
    }
}

#[test]
fn a_repeating_schedule_goes_on_for_ever() {
    let spec = LinkSpec {
        schedule: "0s delay=10ms; 1s delay=20ms; repeat 2s".parse().unwrap(),
        ..LinkSpec::default()
    };
    spec.check().unwrap();
    let mut link = Link::new(&spec, Seed(1), "link", Time::ZERO);
    for half in 0..10_000u64 {
        let at = Time::from_nanos(half * 500_000_000);
        link.offer(at, Packet::new(Channel(1), 100, at, 0usize));
        let delivered = link.take(Time::from_nanos(half * 500_000_000 + 20_000_000)).unwrap();
        let expected = if half % 4 < 2 { 10 } else { 20 };
        assert_eq!(delivered.release - at, Span::from_millis(expected), "half-second {half}");
    }
    assert_eq!(link.next_event(), Some(Time::from_nanos(5_000_000_000_000)));
}

#[test]
fn a_scheduled_rate_applies_to_what_is_on_the_line() {
    // 1000 bytes at 1 Mbit/s: 8 ms. After 4 ms the rate doubles: the rest takes 2 ms.
    let spec = LinkSpec {
        rate: Some(Rate::from_bits_per_second(1_000_000)),
        schedule: "4ms rate=2mbit; 10ms rate=unlimited loss=100%".parse().unwrap(),
        ..LinkSpec::default()
    };
    let outcome = play(
        &spec,
        1,
        Steps::Big,
        &vec![(0, Event::Arrive { size: 1000 }), (12_000_000, Event::Arrive { size: 1000 })],
    );
    assert_eq!(outcome.delivered[0].release, Time::from_nanos(6_000_000));
    assert_eq!(outcome.dropped, [(1, DropCause::Loss)]);
}
