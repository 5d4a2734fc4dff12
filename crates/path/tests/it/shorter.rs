//! Settings that change while packets are under way: what follows comes in order, and never faster than the
//! line could carry.

use proptest::prelude::*;
use trunkline_core::{Cause, Channel, Packet, Rate, Seed, Span, Time};
use trunkline_path::{CatchUp, Change, DisciplineSpec, Framing, Limit, Link, LinkSpec};

/// A packet that came out: which one, when it entered, when it was due, and what it had waited for.
#[derive(Debug)]
struct Out {
    id: usize,
    release: u64,
    packet: Packet<usize>,
}

/// Sends `arrivals` (an instant and a size each) through a link on which `changes` are made, and drains it.
fn carry(spec: &LinkSpec, arrivals: &[(u64, u32)], changes: &[(u64, Change)]) -> Vec<Out> {
    let mut link = Link::new(spec, Seed(7), "link", Time::ZERO);
    let mut changes = changes.iter().peekable();
    for (id, &(at, size)) in arrivals.iter().enumerate() {
        while let Some((when, change)) = changes.next_if(|&&(when, _)| when <= at) {
            link.schedule(Time::from_nanos(*when), change.clone());
        }
        let at = Time::from_nanos(at);
        link.offer(at, Packet::new(Channel(id as u64 % 3), size, at, id));
    }
    changes.for_each(|(when, change)| link.schedule(Time::from_nanos(*when), change.clone()));
    let end = Time::from_nanos(1 << 50);
    link.advance(end);
    let out = std::iter::from_fn(|| link.take(end))
        .map(|it| Out { id: it.packet.body, release: it.release.as_nanos(), packet: it.packet })
        .collect();
    assert_eq!(link.counts().in_flight(), 0);
    out
}

fn delay(millis: u64) -> Change {
    Change::Delay(Span::from_millis(millis))
}

fn setting(text: &str) -> Change {
    text.parse().unwrap()
}

/// 8 Mbit/s, so that 1000 bytes take a millisecond.
fn rated(delay: u64) -> LinkSpec {
    LinkSpec {
        rate: Some(Rate::from_bits_per_second(8_000_000)),
        delay: Span::from_millis(delay),
        ..LinkSpec::default()
    }
}

fn unrated(delay: u64) -> LinkSpec {
    LinkSpec { rate: None, ..rated(delay) }
}

const MS: u64 = 1_000_000;

/// Packets of 1000 bytes, `gap` apart.
fn stream(from: u64, count: u64, gap: u64) -> Vec<(u64, u32)> {
    (0..count).map(|index| (from + index * gap, 1000)).collect()
}

fn gaps(out: &[Out]) -> Vec<u64> {
    out.windows(2).map(|pair| pair[1].release - pair[0].release).collect()
}

#[test]
fn a_full_line_stays_full_when_the_delay_is_cut() {
    let out = carry(&rated(100), &stream(0, 300, MS), &[(50 * MS, delay(10))]);
    assert_eq!(out[0].release, 101 * MS);
    assert_eq!(gaps(&out), vec![MS; 299], "one by one, as the line carries them");
}

#[test]
fn half_a_load_catches_up_by_its_gaps() {
    let out = carry(&rated(100), &stream(0, 300, 2 * MS), &[(50 * MS, delay(10))]);
    // The packet that arrives at 50 ms leaves the line at 51 and is due at 61, the one before it at 149. They
    // close up by the idle millisecond of each, until the 89 ms are used up.
    let close = gaps(&out).iter().filter(|&&gap| gap == MS).count();
    assert_eq!((close, gaps(&out)[24]), (90, MS));
    assert_eq!(out[299].release, 598 * MS + 11 * MS);
    assert!(out.iter().all(|it| it.packet.ledger.get(Cause::Transmit) == Span::from_millis(1)));
    let waited: u64 = out.iter().map(|it| it.packet.ledger.get(Cause::Queue).as_nanos()).sum();
    assert_eq!(waited, (1..=89).sum::<u64>() * MS);
}

#[test]
fn a_line_without_a_rate_closes_gaps_by_a_quarter() {
    let out = carry(&unrated(100), &stream(0, 1000, MS), &[(50 * MS, delay(10))]);
    let gaps = gaps(&out);
    assert!(gaps.iter().all(|&gap| gap >= 3 * MS / 4), "{gaps:?}");
    let close = gaps.iter().filter(|&&gap| gap == 3 * MS / 4).count();
    assert_eq!(close, 4 * 90);
    assert_eq!(out[999].release, 999 * MS + 10 * MS);
}

#[test]
fn jitter_that_is_switched_off_leaves_no_burst() {
    let mut spec = rated(100);
    spec.impairments.jitter = Some("40ms".parse().unwrap());
    for at in [1000, 1020, 1040, 1060, 1080] {
        let out = carry(&spec, &stream(0, 2000, MS), &[(at * MS, setting("jitter=none"))]);
        let after = out.iter().position(|it| it.packet.entered.as_nanos() >= at * MS).unwrap();
        let least = gaps(&out[after..]).into_iter().min().unwrap();
        assert!(least >= MS, "{least} ns between two packets after {at} ms");
    }
}

#[test]
fn at_once_is_a_burst_whenever_it_is_asked_for() {
    let at_once = LinkSpec { catch_up: CatchUp::AtOnce, ..rated(100) };
    let asked = [(50 * MS, setting("catch-up=at-once")), (50 * MS, delay(10))];
    let later = [(50 * MS, delay(10)), (50 * MS, setting("catch-up=at-once"))];
    let cut = [(50 * MS, delay(10))];
    for (spec, changes) in [(&at_once, &cut[..]), (&rated(100), &asked), (&rated(100), &later)] {
        let out = carry(spec, &stream(0, 300, MS), changes);
        // Those that leave the line from 51 to 140 ms come with the one that left it at 50.
        let burst = out.iter().filter(|it| it.release == 150 * MS).count();
        assert_eq!((burst, out[299].release), (91, 310 * MS));
    }
}

#[test]
fn a_trace_catches_up_at_its_mean_rate() {
    // A packet each millisecond is half of what the trace carries.
    let trace = Some(vec![1, 1, 2, 2]);
    let spec = LinkSpec { rate: None, trace, delay: Span::from_millis(100), ..LinkSpec::default() };
    let arrivals: Vec<_> = (0..300).map(|index| (index * MS + MS / 2, 1500)).collect();
    let out = carry(&spec, &arrivals, &[(50 * MS, delay(10))]);
    assert!(gaps(&out).iter().all(|&gap| gap >= MS / 2));
    assert_eq!(gaps(&out).iter().filter(|&&gap| gap == MS / 2).count(), 180);
    assert_eq!(out[299].release, 310 * MS);
}

#[test]
fn a_longer_delay_takes_what_is_left_of_a_wait() {
    let changes = [(50 * MS, delay(10)), (60 * MS, delay(90)), (70 * MS, delay(200))];
    let out = carry(&rated(100), &stream(0, 200, MS), &changes);
    // 90 ms of wait, then 10, then none: the last step leaves a gap of 100.
    let gaps = gaps(&out);
    assert_eq!(gaps.iter().filter(|&&gap| gap != MS).collect::<Vec<_>>(), [&(101 * MS)]);
    let queued = |index: usize| out[index].packet.ledger.get(Cause::Queue).as_nanos() / MS;
    assert_eq!([49, 50, 59, 60, 69, 70].map(queued), [0, 90, 90, 10, 10, 0]);
}

#[test]
fn nobody_waits_where_nothing_is_under_way() {
    for spec in [rated(100), unrated(100)] {
        let out = carry(&spec, &[(0, 1000), (120 * MS, 1000)], &[(110 * MS, delay(10))]);
        let line = if spec.rate.is_some() { MS } else { 0 };
        assert_eq!(out[1].release, 130 * MS + line);
    }
}

fn any_delay() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), 0u64..200_000, 0u64..50_000_000]
}

type Story = (Vec<(u64, u32)>, Vec<(u64, Change)>);

/// Arrivals, and changes of the delay between them.
fn any_story() -> impl Strategy<Value = Story> {
    let gap = prop_oneof![Just(0u64), 0u64..200_000, 0u64..3_000_000];
    let step = (gap, 1u32..3000, prop::option::weighted(0.2, any_delay()));
    prop::collection::vec(step, 2..150).prop_map(|steps| {
        let (mut now, mut arrivals, mut changes) = (0, Vec::new(), Vec::new());
        for (gap, size, change) in steps {
            now += gap;
            if let Some(nanos) = change {
                changes.push((now, Change::Delay(Span::from_nanos(nanos))));
            }
            arrivals.push((now, size));
        }
        (arrivals, changes)
    })
}

fn any_framing() -> impl Strategy<Value = Framing> {
    prop::sample::select(vec![Framing::None, Framing::Ethernet, Framing::AtmAal5, Framing::Datakit])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Each packet has the line to itself before it comes out, whatever is done to the delay.
    #[test]
    fn nothing_leaves_faster_than_the_line_carries(
        (arrivals, changes) in any_story(), bits in 1_000_000u64..100_000_000, first in any_delay(),
        framing in any_framing(),
    ) {
        let rate = Some(Rate::from_bits_per_second(bits));
        let spec = LinkSpec { rate, framing, delay: Span::from_nanos(first), ..LinkSpec::default() };
        let out = carry(&spec, &arrivals, &changes);
        prop_assert_eq!(out.len(), arrivals.len());
        for pair in out.windows(2) {
            let own = pair[1].packet.ledger.get(Cause::Transmit).as_nanos();
            prop_assert!(pair[1].id > pair[0].id && pair[1].release >= pair[0].release + own, "{pair:?}");
        }
        for it in &out {
            let ledger = &it.packet.ledger;
            prop_assert_eq!(ledger.total(), Time::from_nanos(it.release) - it.packet.entered);
            let set = changes.iter().map(|(_, change)| match change {
                Change::Delay(delay) => *delay,
                _ => Span::ZERO,
            });
            let travelled = ledger.get(Cause::Propagate);
            prop_assert!(set.chain([spec.delay]).any(|delay| delay == travelled), "{it:?}");
        }
    }

    /// With pieces of several channels on the line, and with rates that change: no more comes out within any
    /// stretch of time than the fastest line carries, beyond the packets that were in pieces at its start.
    #[test]
    fn no_window_holds_more_than_the_line_carries(
        (arrivals, mut changes) in any_story(), rates in prop::collection::vec(1_000_000u64..50_000_000, 1..4),
        first in any_delay(),
    ) {
        let end = arrivals[arrivals.len() - 1].0;
        for (index, &bits) in rates.iter().enumerate() {
            let at = end * index as u64 / rates.len() as u64;
            changes.push((at, Change::Rate(Some(Rate::from_bits_per_second(bits)))));
        }
        changes.sort_by_key(|&(at, _)| at);
        let rate = Some(Rate::from_bits_per_second(rates[0]));
        let discipline = DisciplineSpec::parse("round-robin:quantum=64", Limit::Bytes(1 << 30)).unwrap();
        let spec = LinkSpec { rate, discipline, delay: Span::from_nanos(first), ..LinkSpec::default() };
        let out = carry(&spec, &arrivals, &changes);
        prop_assert_eq!(out.len(), arrivals.len());
        prop_assert!(out.is_sorted_by_key(|it| it.release));
        let fastest = u128::from(*rates.iter().max().unwrap());
        for from in 0..out.len() {
            let mut bits = 0u128;
            for to in from + 1..out.len() {
                bits += 8 * u128::from(out[to].packet.size);
                let carried = u128::from(out[to].release - out[from].release + 1) * fastest / 1_000_000_000;
                prop_assert!(bits <= carried + 2 * 8 * 3000, "{} bits in {} ns", bits, out[to].release - out[from].release);
            }
        }
    }
}
