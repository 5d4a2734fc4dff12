//! The experiment of the LDS report (section 3.10): two greedy connections with different round trips share an
//! ATM trunk.

use crate::hosts::support::{run, traffic};
use trunkline_core::Span;
use trunkline_engine::Run;

/// Four hosts on links of OC-3, their trunk another; `short` has a round trip of 1 ms, `long` of so many, without
/// queues and packets' own times. What a sender spends on a segment differs by half a segment's time on the
/// trunk, so that the connections do not keep in step (Floyd and Jacobson 1992 ask for so much).
fn scenario(seed: u64, millis: u64, profile: &str, queue: &str) -> String {
    let extra = (millis - 1) * 500;
    let hosts = ["s", "l", "r", "q"].map(|name| {
        let processor = if "sl".contains(name) { "processor = \"cpu\"\n" } else { "" };
        format!("[[host]]\nname = \"{name}\"\n{processor}")
    });
    let line = "rate = \"155.52Mbit/s\"\nframing = \"atm-aal5\"";
    let connection = |name: &str, from: &str, to: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"greedy\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             duration = \"31s\"\nwarm_up = \"1s\"\ninterval = \"1s\"\nwrite = 65536\n\
             transport = {{ kind = \"tcp\", profile = \"{profile}\", mss = 9140, window = 65536, \
             window_scaling = false, timestamps = false }}\n"
        )
    };
    format!(
        "seed = {seed}\nmtu = 9180\n{}[processor.cpu]\n\
         disturbance = {{ probability = \"100%\", mean = \"272us\" }}\n\
         [[node]]\nname = \"m\"\n[[node]]\nname = \"n\"\n\
         [[link]]\nbetween = [\"s\", \"m\"]\n{line}\n\
         [[link]]\nbetween = [\"l\", \"m\"]\n{line}\ndelay = \"{extra}us\"\n\
         [[link]]\nbetween = [\"m\", \"n\"]\n{line}\ndelay = \"500us\"\ndiscipline = {queue}\n\
         [[link]]\nbetween = [\"n\", \"r\"]\n[[link]]\nbetween = [\"n\", \"q\"]\n{}{}",
        hosts.concat(),
        connection("short", "s", "r"),
        connection("long", "l", "q"),
    )
}

/// What the trunk carries of user bytes, in Mbit/s: 9140 in 192 cells of 424 bits at 149.76 Mbit/s.
const CEILING: f64 = 134.52;
const EPD: &str = "{ kind = \"epd\", threshold = 1000, limit = 1200 }";

/// Goodput in Mbit/s of both.
fn goodput(run: &Run) -> [f64; 2] {
    ["short", "long"].map(|name| {
        let samples = &traffic(run, name).samples;
        assert_eq!(samples.len(), 30);
        assert!(samples.iter().all(|it| it.delay() == Span::from_secs(1)));
        samples.iter().map(|it| it.rate() * 8.0 / 1e6).sum::<f64>() / samples.len() as f64
    })
}

/// Reference section 5: at equal round trips both get the same. Each run is a lottery of time-outs of a second
/// and more: single ones give 35 to 65 %.
#[test]
fn equal_round_trips_share_equally() {
    for (profile, seeds, tolerance) in [("bsd-reno", 12, 0.05), ("linux", 3, 0.03)] {
        let mut sums = [0.0; 2];
        for seed in 1..=seeds {
            let run = run(&scenario(seed, 1, profile, EPD));
            let [short, long] = goodput(&run);
            assert!(short + long < CEILING, "{short} {long}");
            sums = [sums[0] + short, sums[1] + long];
        }
        let share = sums[1] / (sums[0] + sums[1]);
        assert!((share - 0.5).abs() < tolerance, "{profile}: {share}");
    }
}

/// A segment's time on the trunk, in milliseconds.
const SEGMENT: f64 = 192.0 * 424.0 / 149_760.0;

/// The share of `long`, in per cent, if both keep so many segments under way and the queue takes what the line
/// does not: a fluid, as in reference section 4, remark 2. Round trips contain what a segment takes on the sender's own
/// line and, in the mean, on its processor.
fn fluid(millis: u64, segments: f64) -> f64 {
    let own = SEGMENT + 0.272;
    let trips = [1.0 + own, millis as f64 + own];
    let rate = |trip: f64, queue: f64| segments / (trip + queue);
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..60 {
        let queue = (low + high) / 2.0;
        let sum: f64 = trips.iter().map(|&trip| rate(trip, queue)).sum();
        if sum > 1.0 / SEGMENT { low = queue } else { high = queue }
    }
    let [short, long] = trips.map(|trip| rate(trip, low));
    100.0 * long / (short + long)
}

/// If nothing is lost the windows decide. 64 KB are seven whole segments (7.17 in remark 2, which has 50, 46.8,
/// 38.0, 27.3 and 16.6 %), one of which at most waits at the receiver for its acknowledgement (RFC 5681 §4.2): the
/// share lies between those of six and seven. A point of tolerance is what reference section 5 has at equal round
/// trips.
#[test]
fn without_loss_the_windows_decide() {
    let queue = "{ kind = \"fifo\", limit = \"3000cells\" }";
    for millis in [1, 2, 5, 10, 20] {
        let run = run(&scenario(1, millis, "bsd-reno", queue));
        let dropped: u64 = run.links.iter().map(|link| link.counts.dropped()).sum();
        let [short, long] = goodput(&run);
        let share = 100.0 * long / (short + long);
        assert_eq!(dropped, 0);
        let (least, most) = (fluid(millis, 6.0) - 1.0, fluid(millis, 7.0) + 1.0);
        assert!((least..most).contains(&share), "{millis} ms: {share} %, for {least} to {most}");
        assert!((130.0..CEILING).contains(&(short + long)), "{short} {long}");
    }
}
