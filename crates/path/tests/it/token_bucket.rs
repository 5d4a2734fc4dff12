//! Token buckets on a link: never too much, never too late, nothing lost but by limit or policing.

use proptest::prelude::*;
use trunkline_core::{Channel, DropCause, Packet, Rate, Seed, Size, Span, Time};
use trunkline_path::{Link, LinkSpec};

/// Nanoseconds since the packet before, and user bytes.
type Arrivals = Vec<(u64, u32)>;

fn arrivals() -> impl Strategy<Value = Arrivals> {
    let gap = prop_oneof![3 => Just(0u64), 3 => 0u64..5_000_000, 1 => 0u64..500_000_000];
    prop::collection::vec((gap, 1u32..=2000), 1..80)
}

fn spec(queue: &str) -> LinkSpec {
    LinkSpec { discipline: queue.parse().unwrap(), ..LinkSpec::default() }
}

/// What came out, as release and size, and what was given up, with its number and cause.
type Outcome = (Vec<(u64, u32)>, Vec<(usize, DropCause)>);

/// Sends `arrivals` through a link, asking it at its own events only, or all at once.
fn play(spec: &LinkSpec, arrivals: &Arrivals, stepwise: bool) -> Outcome {
    let mut link: Link<Packet<usize>> = Link::new(spec, Seed(1), "t", Time::ZERO);
    let (mut out, mut lost, mut now) = (Vec::new(), Vec::new(), 0);
    let mut collect = |link: &mut Link<Packet<usize>>, at: u64| {
        while let Some(delivered) = link.take(Time::from_nanos(at)) {
            out.push((delivered.release.as_nanos(), delivered.packet.size));
        }
        lost.extend(link.dropped().map(|(packet, cause)| (packet.body, cause)));
    };
    let end = [(100_000_000_000, 0)];
    for (number, &(gap, size)) in arrivals.iter().chain(&end).enumerate() {
        now += gap;
        while stepwise && let Some(at) = link.next_event().filter(|at| at.as_nanos() < now) {
            link.advance(at);
            collect(&mut link, at.as_nanos());
        }
        link.advance(Time::from_nanos(now));
        collect(&mut link, now);
        if size > 0 {
            link.offer(
                Time::from_nanos(now),
                Packet::new(Channel(1), size, Time::from_nanos(now), number),
            );
        }
    }
    collect(&mut link, now);
    assert_eq!(link.counts().in_flight(), 0, "everything has come out or was given up");
    (out, lost)
}

/// The tokens of `bytes`, and what `rate` gives in `nanos`, in one unit.
fn tokens(bytes: u32) -> u128 {
    u128::from(bytes) * 8_000_000_000
}

/// No more than `burst` and what `rate` gives leaves between any two departures, both counted.
fn held_to(out: &[(u64, u32)], rate: u64, burst: u32) {
    for (first, &(from, _)) in out.iter().enumerate() {
        let mut sum = 0;
        for &(to, size) in &out[first..] {
            sum += tokens(size);
            let allowed = tokens(burst) + u128::from(rate) * u128::from(to - from);
            assert!(sum <= allowed, "{sum} of {allowed} from {from} to {to}");
        }
    }
}

/// When each packet leaves: as soon as it has come, its predecessor has left, and each bucket has its tokens.
fn due(arrivals: &Arrivals, buckets: &[(u64, u32)]) -> Vec<(u64, u32)> {
    let mut levels: Vec<u128> = buckets.iter().map(|&(_, bytes)| tokens(bytes)).collect();
    let (mut at, mut came) = (0u64, 0);
    arrivals
        .iter()
        .map(|&(gap, size)| {
            came += gap;
            let mut leaves = came.max(at);
            for (level, &(rate, depth)) in levels.iter().zip(buckets) {
                let full = tokens(depth).min(level + u128::from(rate) * u128::from(leaves - at));
                let lacking = tokens(size).saturating_sub(full);
                leaves += u64::try_from(lacking.div_ceil(u128::from(rate))).unwrap();
            }
            // A later bucket's wait has filled the earlier ones further.
            for (level, &(rate, depth)) in levels.iter_mut().zip(buckets) {
                let full = tokens(depth).min(*level + u128::from(rate) * u128::from(leaves - at));
                *level = full - tokens(size);
            }
            at = leaves;
            (leaves, size)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_shaper_lets_go_at_the_very_instant_and_never_too_much(
        arrivals in arrivals(), rate in 100_000u64..50_000_000, burst in 2000u32..20_000,
        peak in prop::option::of(1u64..20), stepwise: bool,
    ) {
        let mut buckets = vec![(rate, burst)];
        let mut text = format!("token-bucket:rate={rate}bit/s,burst={burst},limit=1GB");
        if let Some(times) = peak {
            buckets.push((rate * times, 2000));
            text += &format!(",peak={}bit/s,mtu=2000", rate * times);
        }
        let (out, lost) = play(&spec(&text), &arrivals, stepwise);
        prop_assert!(lost.is_empty());
        prop_assert_eq!(&out, &due(&arrivals, &buckets));
        buckets.iter().for_each(|&(rate, bytes)| held_to(&out, rate, bytes));
    }

    #[test]
    fn a_policer_drops_exactly_what_has_no_tokens_and_delays_nothing(
        arrivals in arrivals(), rate in 100_000u64..50_000_000, burst in 2000u32..20_000, stepwise: bool,
    ) {
        let text = format!("token-bucket:rate={rate}bit/s,burst={burst},mode=police,limit=1GB");
        let (out, lost) = play(&spec(&text), &arrivals, stepwise);
        held_to(&out, rate, burst);
        let (mut level, mut now, mut expected) = (tokens(burst), 0, Vec::new());
        let mut refused = Vec::new();
        for (number, &(gap, size)) in arrivals.iter().enumerate() {
            now += gap;
            level = tokens(burst).min(level + u128::from(rate) * u128::from(gap));
            match level.checked_sub(tokens(size)) {
                Some(left) => { level = left; expected.push((now, size)) }
                None => refused.push((number, DropCause::EarlyDiscard)),
            }
        }
        prop_assert_eq!((out, lost), (expected, refused));
    }

    /// With a line, an output buffer or a board behind it, and a limit: the same in one step and in many, and
    /// nothing is lost but by the limit.
    #[test]
    fn behind_it_stands_any_line(
        arrivals in arrivals(), rate in 100_000u64..50_000_000, line in 100_000u64..100_000_000,
        buffer in 0u64..9000, board: bool, limit in 1u64..60,
    ) {
        let text = format!("token-bucket:rate={rate}bit/s,burst=4000,limit={limit}p");
        let mut spec = LinkSpec {
            rate: Some(Rate::from_bits_per_second(line)),
            output_buffer: Size::from_bytes(buffer),
            delay: Span::from_millis(3),
            ..spec(&text)
        };
        if board {
            let each = "100ns".parse().unwrap();
            spec.output_buffer = Size::from_bytes(6000);
            spec.processor = Some(trunkline_path::TrunkProcessor {
                input_fifo: Size::from_bytes(9000), input_per_byte: each, output_per_byte: each,
                output_first: false,
            });
        }
        let (out, lost) = play(&spec, &arrivals, true);
        prop_assert_eq!(&play(&spec, &arrivals, false), &(out.clone(), lost.clone()));
        prop_assert_eq!(out.len() + lost.len(), arrivals.len());
        prop_assert!(lost.iter().all(|&(_, cause)| cause == DropCause::QueueLimit));
        let sizes: Vec<u32> = out.iter().map(|&(_, size)| size).collect();
        let gone = |number: usize| lost.iter().any(|&(other, _)| other == number);
        let kept = arrivals.iter().enumerate().filter(|&(number, _)| !gone(number));
        prop_assert_eq!(sizes, kept.map(|(_, &(_, size))| size).collect::<Vec<_>>());
    }
}

#[test]
fn what_no_bucket_can_hold_is_dropped_at_once() {
    let (out, lost) = play(
        &spec("token-bucket:rate=1Mbit/s,burst=1000,limit=9p"),
        &vec![(0, 1001), (5, 1000)],
        true,
    );
    assert_eq!((out, lost), (vec![(5, 1000)], vec![(0, DropCause::EarlyDiscard)]));
}

#[test]
fn settings_at_odds_are_refused() {
    let complaint =
        |text: &str| text.parse::<trunkline_path::DisciplineSpec>().unwrap_err().to_string();
    assert!(complaint("token-bucket").contains("give rate="));
    assert!(complaint("token-bucket:rate=2Mbit/s,peak=1Mbit/s").contains("peak 1Mbit/s is below"));
    assert!(complaint("tbf:rate=2Mbit/s").contains("did you mean 'token-bucket'?"));
}
