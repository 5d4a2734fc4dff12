//! What impairments achieve, held against what they promise. Seeds are fixed: a bound of five standard
//! deviations is met by the one sample that there is.

use proptest::prelude::*;
use trunkline_core::{Channel, DropCause, Packet, Probability, Seed, Span, Time};
use trunkline_path::impairment::{
    Fate, ImpairmentSpec, Impairments, Jitter, LossModel, Setting, damage_probability,
};

const DELAY: Span = Span::from_millis(20);

fn spec(settings: &str) -> ImpairmentSpec {
    let mut spec = ImpairmentSpec::default();
    for setting in settings.split_whitespace() {
        let (key, value) = setting.split_once('=').unwrap();
        spec.set(Setting::parse(key, value).unwrap().unwrap());
    }
    spec
}

fn new(settings: &str, seed: u64) -> Impairments {
    Impairments::new(&spec(settings), Seed(seed), "link")
}

fn judge(impairments: &mut Impairments, at: Time, size: u32) -> Fate {
    impairments.judge(at, DELAY, Span::ZERO, &Packet::new(Channel(1), size, at, ()))
}

/// The fates of `count` packets of 1000 bytes that leave the line `spacing` apart.
fn fates(impairments: &mut Impairments, count: u64, spacing: Span) -> Vec<Fate> {
    (1..=count)
        .map(|n| judge(impairments, Time::from_nanos(n * spacing.as_nanos()), 1000))
        .collect()
}

fn lost(fates: &[Fate]) -> Vec<bool> {
    fates.iter().map(|fate| matches!(fate, Fate::Lost(_))).collect()
}

fn share(hits: &[bool]) -> f64 {
    hits.iter().filter(|&&hit| hit).count() as f64 / hits.len() as f64
}

/// Whether `achieved` is within five standard deviations of `p`, over `count` trials whose variance is
/// `inflation` times that of independent ones.
fn near(achieved: f64, p: f64, count: u64, inflation: f64) {
    let bound = 5.0 * (p * (1.0 - p) / count as f64 * inflation).sqrt();
    assert!((achieved - p).abs() <= bound, "{achieved} is not within {bound} of {p}");
}

const MANY: u64 = 200_000;
const MS: Span = Span::from_millis(1);

#[test]
fn independent_rates_are_within_binomial_bounds() {
    for (index, p) in ["0.01%", "1%", "10%", "50%", "99.9%", "100%"].into_iter().enumerate() {
        let asked = p.parse::<Probability>().unwrap().as_f64();
        let mut impairments = new(&format!("loss={p}"), index as u64);
        near(share(&lost(&fates(&mut impairments, MANY, MS))), asked, MANY, 1.0);
        let mut impairments = new(&format!("duplicate={p} reorder={p}:5ms"), index as u64);
        let fates = fates(&mut impairments, MANY, MS);
        let twice = fates.iter().map(|fate| matches!(fate, Fate::Arrives { copies: 2, .. }));
        near(share(&twice.collect::<Vec<_>>()), asked, MANY, 1.0);
        let held = fates.iter().map(|fate| matches!(fate, Fate::Arrives { unordered: true, .. }));
        near(share(&held.collect::<Vec<_>>()), asked, MANY, 1.0);
    }
}

#[test]
fn gilbert_elliott_has_its_rate_and_its_bursts() {
    let mut impairments = new("loss=ge:p=1%,r=20%", 11);
    let lost = lost(&fates(&mut impairments, MANY, MS));
    // Successive states correlate by 1 − p − r = 0.79, which inflates the variance of the mean.
    near(share(&lost), 1.0 / 21.0, MANY, 1.79 / 0.21);
    let bursts: Vec<usize> =
        lost.split(|&lost| !lost).map(<[bool]>::len).filter(|&length| length > 0).collect();
    let count = bursts.len() as f64;
    let mean = bursts.iter().sum::<usize>() as f64 / count;
    // Geometric with parameter r: mean 1/r, deviation √(1 − r)/r.
    assert!((mean - 5.0).abs() < 5.0 * 0.8f64.sqrt() / 0.2 / count.sqrt(), "{mean}");
    let single: Vec<bool> = bursts.iter().map(|&length| length == 1).collect();
    near(share(&single), 0.2, bursts.len() as u64, 1.0);
    let loss = impairments.achieved().loss.unwrap();
    assert!((loss.mean_burst - mean).abs() < 1e-9);
    assert_eq!(loss.share.count, bursts.iter().sum::<usize>() as u64);
}

#[test]
fn gilbert_elliott_with_partial_states() {
    let mut impairments = new("loss=ge:p=3%,r=7%,good=2%,bad=40%", 12);
    let rate = 0.7 * 0.02 + 0.3 * 0.4;
    near(share(&lost(&fates(&mut impairments, MANY, MS))), rate, MANY, 1.9 / 0.1);
    assert!((impairments.achieved().loss.unwrap().share.asked - rate).abs() < 1e-9);
}

#[test]
fn gilbert_elliott_is_stationary_from_the_first_packet() {
    const RUNS: u64 = 4000;
    let first = |seed| lost(&fates(&mut new("loss=ge:p=1%,r=3%", seed), 1, MS))[0];
    let hits: Vec<bool> = (0..RUNS).map(first).collect();
    near(share(&hits), 0.25, RUNS, 1.0);
}

#[test]
fn a_loss_trace_is_replayed_over_and_over() {
    let mut spec = spec("loss=trace:file");
    spec.check(DELAY).unwrap_err();
    spec.loss.load("0 1 1 0 0").unwrap();
    spec.check(DELAY).unwrap();
    let mut impairments = Impairments::new(&spec, Seed(1), "link");
    let pattern = [false, true, true, false, false];
    assert_eq!(lost(&fates(&mut impairments, 15, MS)), pattern.repeat(3));
    assert_eq!(impairments.achieved().loss.unwrap().share.achieved, 0.4);
}

#[test]
fn bit_errors_damage_packets_as_the_formula_says() {
    for (index, rate) in ["1e-7", "1e-5", "0.01%", "2%"].into_iter().enumerate() {
        for size in [0u32, 40, 1500, 9000] {
            let mut impairments = new(&format!("bit-errors={rate}"), index as u64);
            let hits: Vec<bool> = (0..MANY)
                .map(|n| judge(&mut impairments, Time::from_nanos(n), size))
                .map(|fate| fate == Fate::Lost(DropCause::BitError))
                .collect();
            let rate = rate.parse::<Probability>().unwrap();
            let p = 1.0 - (1.0 - rate.as_f64()).powi(8 * (size as i32 + 4));
            assert!((damage_probability(rate, size) - p).abs() < 1e-9, "{p}");
            near(share(&hits), p, MANY, 1.0);
            // Neighbours are hit independently of each other.
            let both: Vec<bool> = hits.chunks(2).map(|pair| pair[0] && pair[1]).collect();
            near(share(&both), p * p, MANY / 2, 1.0);
        }
    }
}

#[test]
fn the_bit_error_rate_is_estimated_and_follows_a_change() {
    let mut impairments = new("bit-errors=1e-9", 5);
    fates(&mut impairments, 10, MS);
    impairments.set(Setting::BitErrors("1e-4".parse().unwrap()));
    fates(&mut impairments, MANY, MS);
    let achieved = impairments.achieved().bit_errors.unwrap();
    let relative = achieved.achieved / achieved.asked - 1.0;
    assert!(relative.abs() < 5.0 / (achieved.count as f64).sqrt(), "{achieved}");
    assert!((achieved.asked - 1e-4).abs() < 1e-8, "ten packets hardly count: {achieved}");
}

#[test]
fn a_held_back_packet_is_late_by_that_time_and_overtaken() {
    let mut impairments = new("reorder=10%:5ms", 6);
    let mut held = 0;
    for (n, fate) in (1..).zip(fates(&mut impairments, 1000, MS)) {
        let Fate::Arrives { release, unordered, .. } = fate else { panic!("lost") };
        let extra = if unordered { Span::from_millis(5) } else { Span::ZERO };
        assert_eq!(release, Time::from_nanos(n * 1_000_000) + DELAY + extra);
        held += u64::from(unordered);
    }
    let achieved = impairments.achieved();
    assert_eq!(achieved.held_back.unwrap().count, held);
    // Four packets fall within 5 ms behind a held one, less those held themselves or counted already.
    assert!(achieved.overtakes > 2 * held && achieved.overtakes < 4 * held, "{achieved}");
}

/// The jitter of each packet, in nanoseconds.
fn jitters(fates: &[Fate], spacing: Span) -> Vec<f64> {
    let extra = |(n, fate): (u64, &Fate)| match fate {
        Fate::Arrives { release, .. } => {
            release.as_nanos() as f64 - (n * spacing.as_nanos()) as f64 - DELAY.as_nanos() as f64
        }
        Fate::Lost(_) => panic!("lost"),
    };
    (1..).zip(fates).map(extra).collect()
}

fn moments(values: &[f64]) -> (f64, f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    let lag = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
    (mean, variance.sqrt(), lag / count / variance)
}

/// Spacing so wide that order never binds.
const WIDE: Span = Span::from_secs(1);

#[test]
fn correlated_jitter_keeps_the_distribution_and_has_its_correlation() {
    let unit = 3e6;
    for (index, rho) in [0.0f64, 0.5, 0.9].into_iter().enumerate() {
        // Correlation of uniform variables made from correlated normal ones: 6/π · asin(rho/2).
        let uniform = 6.0 / std::f64::consts::PI * (rho / 2.0).asin();
        for (shape, mean, deviation, correlation) in [
            ("normal", 0.0, unit, Some(rho)),
            ("uniform", 0.0, unit / 3f64.sqrt(), Some(uniform)),
            ("exponential", unit, unit, None),
        ] {
            let mut impairments =
                new(&format!("jitter=correlated:{shape}:3ms:rho={rho}"), index as u64);
            let values = jitters(&fates(&mut impairments, MANY, WIDE), WIDE);
            let achieved = moments(&values);
            // The mean of n values with correlation rho varies as that of n(1 − rho)/(1 + rho) free ones.
            let bound = 5.0 * deviation * ((1.0 + rho) / (1.0 - rho) / MANY as f64).sqrt();
            assert!((achieved.0 - mean).abs() < bound, "{shape} {rho}: mean {}", achieved.0);
            let ratio = achieved.1 / deviation;
            assert!((ratio - 1.0).abs() < 0.02, "{shape} {rho}: deviation {ratio}");
            if let Some(correlation) = correlation {
                assert!((achieved.2 - correlation).abs() < 0.015, "{shape} {rho}: {}", achieved.2);
            }
        }
    }
}

#[test]
fn independent_jitter_has_its_distribution_and_reorders() {
    for (shape, mean, deviation) in
        [("uniform", 0.0, 5e6 / 3f64.sqrt()), ("normal", 0.0, 5e6), ("exponential", 5e6, 5e6)]
    {
        let mut impairments = new(&format!("jitter=independent:{shape}:5ms"), 9);
        let fates = fates(&mut impairments, MANY, MS);
        let (sum, sd, lag) = moments(&jitters(&fates, MS));
        assert!((sum - mean).abs() < 5.0 * deviation / (MANY as f64).sqrt(), "{shape} {sum}");
        assert!((sd / deviation - 1.0).abs() < 0.01 && lag.abs() < 0.012, "{shape} {sd} {lag}");
        let achieved = impairments.achieved();
        let jitter = achieved.jitter.unwrap();
        assert!((jitter.mean - sum).abs() < 1.0 && (jitter.deviation - sd).abs() < 1.0);
        assert!((jitter.asked_deviation - deviation).abs() < 1.0);
        assert!(achieved.overtakes > MANY / 10, "{achieved}");
    }
}

#[test]
fn nothing_arrives_before_it_left_or_out_of_order_where_the_delay_is_cut() {
    for setting in ["", "jitter=uniform:20ms", "jitter=independent:normal:20ms"] {
        let mut impairments = new(setting, 3);
        let mut last = Time::ZERO;
        for n in 0..10_000u64 {
            let at = Time::from_nanos(n * 1_000_000);
            let delay = Span::from_millis(n % 20);
            let packet = Packet::new(Channel(1), 100, at, ());
            let Fate::Arrives { release, unordered, .. } =
                impairments.judge(at, delay, Span::ZERO, &packet)
            else {
                panic!("lost")
            };
            assert!(release >= at && (unordered || release >= last));
            last = release;
        }
    }
}

/// The unit of each shape, its deviation in it, and for how many units its delays stay alike.
const SHAPES: [(&str, f64, f64); 3] =
    [("uniform", 0.577_350_269, 2.0), ("normal", 1.0, 3.0), ("exponential", 1.0, 4.0)];

#[test]
fn ordered_jitter_has_the_mean_and_the_deviation_asked_for_at_every_load() {
    // From packets that know nothing of each other to a hundred within the unit of the jitter.
    for units in [10.0f64, 5.0, 2.0, 1.0, 0.5, 0.2, 0.05, 0.01] {
        for (shape, deviation, memory) in SHAPES {
            let mut impairments = new(&format!("jitter={shape}:5ms"), 4);
            let spacing = Span::from_nanos((units * 5e6) as u64);
            fates(&mut impairments, 2 * MANY, spacing);
            let achieved = impairments.achieved();
            let jitter = achieved.jitter.unwrap();
            assert_eq!(achieved.overtakes, 0);
            // The mean of a process over a time T varies by 4·memory/T of its variance (the integral of its
            // correlation is two memories on either side), the variance itself by half of that and by its
            // kurtosis, which is 9 for the exponential.
            let free = (2 * MANY) as f64;
            let lifetimes = free * (units / (4.0 * memory)).min(1.0);
            let off = (jitter.mean - jitter.asked_mean) / (deviation * 5e6);
            assert!(off.abs() < 5.0 / lifetimes.sqrt() + 0.01, "{shape} at {spacing}: {achieved}");
            let kurtosis = if shape == "exponential" { 9.0f64 } else { 3.0 };
            let ratio = jitter.deviation / jitter.asked_deviation - 1.0;
            let chance = 5.0 * ((kurtosis - 1.0) / 4.0 / lifetimes).sqrt();
            assert!(ratio.abs() < 0.02 + chance, "{shape} at {spacing}: {achieved}");
        }
    }
}

#[test]
fn ordered_jitter_seldom_lets_packets_come_together() {
    for (shape, ..) in SHAPES {
        for spacing in [Span::from_millis(5), MS, Span::from_micros(100)] {
            let mut impairments = new(&format!("jitter={shape}:5ms"), 5);
            let releases =
                fates(&mut impairments, MANY, spacing).into_iter().map(|fate| match fate {
                    Fate::Arrives { release, .. } => release,
                    Fate::Lost(_) => panic!("lost"),
                });
            let releases: Vec<Time> = releases.collect();
            let together: Vec<bool> = releases.windows(2).map(|pair| pair[0] == pair[1]).collect();
            assert!(share(&together) < 0.02, "{shape} at {spacing}: {}", share(&together));
        }
    }
}

fn any_jitter() -> impl Strategy<Value = Jitter> {
    let rho = prop::sample::select(vec!["0", "0.8"]);
    let shape = prop::sample::select(vec!["uniform", "normal", "exponential"]);
    (rho, shape, 1u64..20_000).prop_map(|(rho, shape, micros)| {
        format!("correlated:{shape}:{micros}us:rho={rho}").parse().unwrap()
    })
}

/// The width of the distribution, clipped as documented.
fn range(jitter: &Jitter) -> u64 {
    let most = jitter.shape.most().as_nanos();
    match jitter.to_string().contains("exponential") {
        true => most,
        false => 2 * most.min(DELAY.as_nanos()),
    }
}

/// The most packets of `times`, ascending, within any stretch of `window`.
fn crowd(times: &[u64], window: u64) -> u64 {
    let end = |&from: &u64| times.partition_point(|&at| at <= from + window);
    times.iter().enumerate().map(|(start, at)| (end(at) - start) as u64).max().unwrap_or(0)
}

proptest! {
    /// The documented rule: order is kept, nothing leaves the range of the distribution, and the sum
    /// of all jitter is above the sum drawn by at most range × (1 + packets within the range).
    #[test]
    fn jitter_in_order_pays_its_debt(
        jitter in any_jitter(),
        gaps in prop::collection::vec(prop_oneof![0u64..1000, 0u64..1_000_000, 0u64..100_000_000], 1..400),
        seed in any::<u64>(),
    ) {
        let spec = ImpairmentSpec { jitter: Some(jitter), ..ImpairmentSpec::default() };
        let mut impairments = Impairments::new(&spec, Seed(seed), "link");
        // The same stream at spacing without order to keep: what was drawn.
        let mut free = Impairments::new(&spec, Seed(seed), "link");
        let (mut now, mut last, mut sum, mut drawn) = (0u64, Time::ZERO, 0i64, 0i64);
        let mut times = Vec::new();
        for (index, gap) in gaps.iter().enumerate() {
            now += gap;
            times.push(now);
            let base = now + DELAY.as_nanos();
            let Fate::Arrives { release, unordered: false, .. } =
                judge(&mut impairments, Time::from_nanos(now), 100)
            else { panic!("lost or unordered") };
            prop_assert!(release >= last && release.as_nanos() >= now);
            let extra = release.as_nanos() as i64 - base as i64;
            prop_assert!(extra <= jitter.shape.most().as_nanos() as i64);
            let apart = index as u64 * 1_000_000_000_000;
            let Fate::Arrives { release: wide, .. } = judge(&mut free, Time::from_nanos(apart), 100)
            else { panic!("lost") };
            drawn += wide.as_nanos() as i64 - (apart + DELAY.as_nanos()) as i64;
            sum += extra;
            last = release;
        }
        let bound = range(&jitter) * (1 + crowd(&times, range(&jitter)));
        prop_assert!((0..=bound as i64).contains(&(sum - drawn)), "{} of {bound}", sum - drawn);
        let achieved = impairments.achieved().jitter.unwrap();
        prop_assert!((achieved.mean - sum as f64 / gaps.len() as f64).abs() < 1.0);
    }
}

const ALL: &str =
    "loss=5% bit-errors=1e-6 duplicate=10% reorder=5%:3ms jitter=independent:normal:2ms";

#[test]
fn changing_one_setting_leaves_the_others_alone() {
    let plain = fates(&mut new(ALL, 8), 4000, MS);
    for change in ["loss=50%", "bit-errors=1e-4", "duplicate=0%", "reorder=none"] {
        let (key, value) = change.split_once('=').unwrap();
        let mut impairments = new(ALL, 8);
        fates(&mut impairments, 1000, MS);
        let mut changed = new(ALL, 8);
        let mut after = fates(&mut changed, 1000, MS);
        changed.set(Setting::parse(key, value).unwrap().unwrap());
        let later = |n: u64| Time::from_nanos(n * 1_000_000);
        after.extend((1001..=4000).map(|n| judge(&mut changed, later(n), 1000)));
        assert_eq!(after[..1000], plain[..1000]);
        assert_ne!(after, plain, "{change}");
        let arrive = |fate: &Fate| match *fate {
            Fate::Arrives { release, copies, unordered } => Some((release, copies, unordered)),
            Fate::Lost(_) => None,
        };
        let both = plain.iter().zip(&after).filter_map(|(a, b)| arrive(a).zip(arrive(b)));
        for (a, b) in both {
            assert!(key == "duplicate" || a.1 == b.1, "{change}");
            assert!(key == "reorder" || a.0 == b.0, "{change}");
        }
    }
}

#[test]
fn setting_the_same_again_changes_nothing() {
    let all = format!("{ALL} loss=ge:p=5%,r=30% jitter=correlated:normal:2ms:rho=0.7");
    let plain = fates(&mut new(&all, 8), 2000, MS);
    let mut impairments = new(&all, 8);
    let mut again = fates(&mut impairments, 700, MS);
    let counted = impairments.achieved();
    impairments.set_spec(&spec(&all));
    assert_eq!(impairments.achieved(), counted);
    again.extend(
        (701..=2000).map(|n| judge(&mut impairments, Time::from_nanos(n * 1_000_000), 1000)),
    );
    assert_eq!(again, plain);
    assert_ne!(fates(&mut new(&all, 9), 2000, MS), plain, "another seed");
}

#[test]
fn the_account_is_one_line_for_each_impairment() {
    let mut impairments = new("", 1);
    fates(&mut impairments, 100, MS);
    assert_eq!(impairments.achieved().to_string(), "");
    let mut impairments = new(ALL, 1);
    fates(&mut impairments, 10_000, MS);
    let achieved = impairments.achieved();
    let text = achieved.to_string();
    let starts = ["loss asked 5%, achieved ", "bit errors asked 1.000e-6, achieved "];
    let more = ["duplication asked 10%, ", "reordering asked 5%, ", "jitter asked mean +0.0000ms"];
    for (line, start) in text.lines().zip(starts.iter().chain(&more)) {
        assert!(line.starts_with(start), "{line}");
    }
    assert_eq!(text.lines().count(), 5);
    let json = serde_json::to_value(&achieved).unwrap();
    assert_eq!(json["packets"], 10_000);
    assert_eq!(json["loss"]["of"], 10_000);
    let arrived = 10_000
        - json["loss"]["count"].as_u64().unwrap()
        - json["bit_errors"]["count"].as_u64().unwrap();
    assert_eq!(json["duplicated"]["of"], arrived);
    assert_eq!(json["jitter"]["packets"], arrived);
}

#[test]
fn specs_are_checked_and_travel_as_text() {
    let complaint = |settings: &str| spec(settings).check(DELAY).unwrap_err().to_string();
    for settings in [
        "jitter=21ms",
        "jitter=independent:normal:21ms",
        "jitter=exponential:7min",
        "jitter=correlated:normal:3ms:rho=1",
        "reorder=1%:0ms",
        "reorder=1%:61min",
        "loss=trace:x",
    ] {
        assert!(!complaint(settings).contains('\n') && !complaint(settings).is_empty());
    }
    assert!(complaint("jitter=21ms").contains("delay of 20ms"));
    for settings in ["", ALL, "jitter=20ms", "jitter=exponential:5min", "loss=100%"] {
        let spec = spec(settings);
        spec.check(DELAY).unwrap();
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<ImpairmentSpec>(&json).unwrap(), spec);
    }
    let most = |settings: &str| spec(settings).most_extra_delay();
    assert_eq!(most("reorder=1%:5ms jitter=normal:2ms"), Span::from_millis(13));
    assert_eq!(most("jitter=exponential:2ms"), Span::from_millis(20));
    assert_eq!(most("loss=5%"), Span::ZERO);
    let unknown = serde_json::from_str::<ImpairmentSpec>(r#"{"lost":"1%"}"#).unwrap_err();
    assert!(unknown.to_string().contains("lost"));
    assert_eq!(spec("loss=1%").loss, LossModel::Bernoulli("1%".parse().unwrap()));
}
