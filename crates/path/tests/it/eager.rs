//! A plain link works out departures at arrival. Everything that comes out of it must be what a link that
//! takes packets through their stages one by one gives, whatever arrives and whatever is changed.

use proptest::prelude::*;
use trunkline_core::{Channel, Counts, DropCause, Packet, Rate, Seed, Span, Time};
use trunkline_path::{Backlog, CatchUp, Change, DisciplineSpec, Framing, Limit, Link, LinkSpec};

/// What happens `gap` nanoseconds after what happened before.
#[derive(Debug, Clone)]
enum Step {
    Arrive { size: u32, controls: u32, channel: u64 },
    Advance,
    Change { ahead: u64, change: Change },
}

type Script = Vec<(u64, Step)>;

/// Everything that an engine can see.
#[derive(Debug, PartialEq)]
struct Seen {
    delivered: Vec<(Time, Packet<usize>)>,
    dropped: Vec<(usize, DropCause)>,
    states: Vec<(Backlog, usize, Counts, u64)>,
}

/// A link as described, or one that has to go stage by stage because a change is planned, far beyond the end
/// of any script.
fn link(spec: &LinkSpec, staged: bool) -> Link<Packet<usize>> {
    let mut spec = spec.clone();
    if staged {
        spec.schedule.steps.push((Span::from_secs(1 << 32), Change::Delay(spec.delay)));
    }
    Link::new(&spec, Seed(3), "link", Time::from_nanos(5))
}

/// Plays `script`; `lag` is how much earlier than the present arrivals are said to have come, and packets
/// are taken out at every step or only at the end.
fn play(spec: &LinkSpec, staged: bool, script: &Script, lag: u64, taking: bool) -> Seen {
    let mut link = link(spec, staged);
    let mut seen = Seen { delivered: Vec::new(), dropped: Vec::new(), states: Vec::new() };
    let mut now = 5;
    for (id, (gap, step)) in script.iter().enumerate() {
        now += gap;
        let at = Time::from_nanos(now);
        match step {
            Step::Arrive { size, controls, channel } => {
                let came = at.before(Span::from_nanos(lag));
                let mut packet = Packet::new(Channel(*channel), *size, came, id);
                packet.controls = *controls;
                link.offer(came, packet);
            }
            Step::Advance => link.advance(at),
            Step::Change { ahead, change } => {
                link.schedule(at + Span::from_nanos(*ahead), change.clone());
            }
        }
        if taking {
            link.advance(at);
            look(&mut link, at, &mut seen);
        }
    }
    let end = Time::from_nanos(now + 200_000_000_000);
    link.advance(end);
    look(&mut link, end, &mut seen);
    assert_eq!(link.counts().in_flight(), 0);
    seen
}

fn look(link: &mut Link<Packet<usize>>, now: Time, seen: &mut Seen) {
    let before = link.next_release().filter(|&release| release <= now);
    let first = seen.delivered.len();
    while let Some(delivered) = link.take(now) {
        seen.delivered.push((delivered.release, delivered.packet));
    }
    assert_eq!(seen.delivered.get(first).map(|&(release, _)| release), before);
    seen.dropped.extend(link.dropped().map(|(packet, cause)| (packet.body, cause)));
    let judged = link.achieved().packets;
    seen.states.push((link.backlog(), link.in_flight(), link.counts(), judged));
}

fn any_rate() -> impl Strategy<Value = Option<Rate>> {
    let bits = prop_oneof![100_000u64..2_000_000, 1_000_000u64..10_000_000_000];
    prop::option::weighted(0.9, bits.prop_map(Rate::from_bits_per_second))
}

fn any_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1u64..20_000).prop_map(Limit::Bytes),
        (1u64..20).prop_map(Limit::Packets),
        (1u64..200).prop_map(Limit::Cells),
    ]
}

fn any_catch_up() -> impl Strategy<Value = CatchUp> {
    prop::sample::select(vec![CatchUp::Drain, CatchUp::AtOnce])
}

fn any_change() -> impl Strategy<Value = Change> {
    let texts = ["loss=30%", "duplicate=20%", "jitter=3ms", "reorder=20%:5ms", "jitter=none"];
    let setting = prop::sample::select(texts.to_vec()).prop_map(|text| text.parse().unwrap());
    prop_oneof![
        (0u64..20_000_000).prop_map(|nanos| Change::Delay(Span::from_nanos(nanos))),
        any_rate().prop_map(Change::Rate),
        any_catch_up().prop_map(Change::CatchUp),
        any_limit().prop_map(Change::Limit),
        setting,
    ]
}

fn any_script() -> impl Strategy<Value = Script> {
    // Few sizes, so that some repeat.
    let size = prop_oneof![Just(1500u32), Just(64), Just(0), 1u32..3000];
    let arrive = (size, 0u32..4, 1u64..3).prop_map(|(size, controls, channel)| Step::Arrive {
        size,
        controls,
        channel,
    });
    let change = (prop_oneof![Just(0u64), 0u64..5_000_000], any_change())
        .prop_map(|(ahead, change)| Step::Change { ahead, change });
    let step = prop_oneof![24 => arrive, 4 => Just(Step::Advance), 1 => change];
    let gap = prop_oneof![Just(0u64), 0u64..10_000, 0u64..3_000_000];
    prop::collection::vec((gap, step), 1..120)
}

fn any_spec() -> impl Strategy<Value = LinkSpec> {
    let framings = [Framing::None, Framing::Ethernet, Framing::T1_LAPD, Framing::AtmAal5];
    let framings = framings.into_iter().chain([Framing::Datakit]).collect::<Vec<_>>();
    let framing = prop::sample::select(framings);
    let delay = prop_oneof![Just(0u64), 0u64..20_000_000];
    let parts = (any_rate(), framing, delay, any_limit(), any_catch_up());
    parts.prop_map(|(rate, framing, delay, limit, catch_up)| LinkSpec {
        rate,
        framing,
        delay: Span::from_nanos(delay),
        catch_up,
        discipline: DisciplineSpec::fifo(limit),
        ..LinkSpec::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Looked at after every step: the same releases, ledgers, drops, counts and backlog.
    #[test]
    fn eager_and_staged_agree_at_every_step(
        spec in any_spec(), script in any_script(), lag in prop_oneof![Just(0u64), 0u64..100_000],
    ) {
        let [eager, staged] = [false, true].map(|mode| play(&spec, mode, &script, lag, true));
        prop_assert_eq!(eager, staged);
    }

    /// Looked at only at the end.
    #[test]
    fn eager_and_staged_agree_in_one_big_step(
        spec in any_spec(), script in any_script(), lag in prop_oneof![Just(0u64), 0u64..100_000],
    ) {
        let [eager, staged] = [false, true].map(|mode| play(&spec, mode, &script, lag, false));
        prop_assert_eq!(eager, staged);
    }
}

#[test]
fn an_eager_link_asks_for_nothing_but_its_releases() {
    let spec = LinkSpec {
        rate: Some(Rate::from_bits_per_second(8_000_000)),
        delay: Span::from_millis(10),
        ..LinkSpec::default()
    };
    let mut link = Link::new(&spec, Seed(1), "link", Time::ZERO);
    for index in 0..3usize {
        link.offer(Time::ZERO, Packet::new(Channel(1), 1000, Time::ZERO, index));
    }
    assert_eq!(link.next_work(), None);
    assert_eq!(link.next_event(), Some(Time::from_nanos(11_000_000)));
    assert_eq!((link.backlog().packets, link.in_flight()), (3, 0));
    link.advance(Time::from_nanos(2_500_000));
    assert_eq!((link.backlog().packets, link.in_flight()), (1, 2));
    // A change is asked for in the middle of the third packet: its second half takes a quarter millisecond.
    let rate = Rate::from_bits_per_second(16_000_000);
    link.schedule(Time::from_nanos(2_500_000), Change::Rate(Some(rate)));
    assert_eq!(link.next_work(), Some(Time::from_nanos(2_500_000)));
    link.advance(Time::from_nanos(5_000_000));
    let releases: Vec<u64> = std::iter::from_fn(|| link.take(Time::from_nanos(1 << 40)))
        .map(|delivered| delivered.release.as_nanos())
        .collect();
    assert_eq!(releases, [11_000_000, 12_000_000, 12_750_000]);
}
