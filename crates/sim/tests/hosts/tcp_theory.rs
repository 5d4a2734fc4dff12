//! TCP in the simulator against what theory says of it.

use crate::support::{run, traffic};
use trunkline_measure::Run;

/// One greedy connection from `a` to `b`, measured for so many seconds.
fn greedy(link: &str, seconds: u64, transport: &str, seed: u64) -> Run {
    let duration = seconds + 10;
    run(&format!(
        "seed = {seed}\nsample_backlog = \"100ms\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\n{link}\n\
         [[traffic]]\nname = \"t\"\nkind = \"greedy\"\nfrom = \"a\"\nto = \"b\"\n\
         duration = \"{duration}s\"\nwarm_up = \"10s\"\ninterval = \"1s\"\nwrite = 65536\n\
         transport = {{ kind = \"tcp\", profile = \"trunkline\", {transport} }}\n"
    ))
}

/// Bytes a second.
fn goodput(run: &Run) -> f64 {
    let samples = &traffic(run, "t").samples;
    samples.iter().map(|sample| sample.rate()).sum::<f64>() / samples.len() as f64
}

/// The mean window in segments under random loss, over some runs; `millis` is the round trip.
fn mean_window(congestion: &str, loss: f64, millis: u64, seeds: u64) -> f64 {
    let delay = millis / 2;
    let link = format!("delay = \"{delay}ms\"\nforward = {{ loss = \"{loss}\" }}");
    let transport =
        format!("congestion = \"{congestion}\", delayed_ack = \"0s\", window = \"16MiB\"");
    let sum: f64 = (1..=seeds).map(|seed| goodput(&greedy(&link, 120, &transport, seed))).sum();
    sum / seeds as f64 * millis as f64 / 1e3 / 1448.0
}

/// A window that grows by one a round trip and is halved by each loss: with losses at equal distances
/// sqrt(3 / 2p) in the mean (Mathis et al. 1997), with independent ones 1.31 / sqrt(p), 7 % more (Ott, Kemperman
/// and Mathis 1996). Two losses in a window are one halving, which adds some per cent at 1 %; the round trip of a
/// repair, in which nothing grows, takes more off epochs of eight.
#[test]
fn newreno_follows_the_square_root_law() {
    for loss in [0.01, 0.002] {
        let window = mean_window("newreno", loss, 100, 4);
        let ratio = window * loss.sqrt() / 1.31;
        assert!((0.86..1.1).contains(&ratio), "loss {loss}: {window} segments, {ratio} of the law");
    }
}

/// RFC 9438 §5 and §5.1: 1.054 (RTT / p)^(3/4) with losses at equal distances. Independent ones
/// let it have more, as the square root law shows.
#[test]
fn cubic_follows_its_law() {
    let loss = 3e-4;
    let window = mean_window("cubic", loss, 200, 3);
    let ratio = window / (1.054 * (0.2 / loss).powf(0.75));
    assert!((0.95..1.3).contains(&ratio), "{window} segments, {ratio} of the law");
}

/// A queue as long as the path keeps the line busy while the window is halved, and CUBIC reduces by less. Both
/// windows are seen to swing.
#[test]
fn a_queue_of_a_round_trip_fills_the_line() {
    for (congestion, swing) in [("newreno", 1.6), ("cubic", 1.2)] {
        // 10 Mbit/s for 40 ms are 50 kB.
        let link = "rate = \"10Mbit/s\"\ndelay = \"20ms\"\nlimit = 50000";
        let run = greedy(link, 40, &format!("congestion = \"{congestion}\""), 1);
        let filled = goodput(&run) * 8.0 / (10e6 * 1448.0 / 1500.0);
        assert!((0.97..=1.001).contains(&filled), "{congestion}: {filled}");
        let tcp = traffic(&run, "t");
        let late = tcp.windows.iter().filter(|it| it.at.as_nanos() > 10_000_000_000);
        let (least, most) = late.fold((u64::MAX, 0), |(least, most), sample| {
            (least.min(sample.window), most.max(sample.window))
        });
        assert!(most as f64 > swing * least as f64, "{congestion}: {least} to {most}");
        assert!(tcp.retransmissions > 0 && tcp.timeouts == 0, "{congestion}");
        assert_eq!(tcp.windows.len(), 501);
    }
}

/// A queue that marks makes it slow down without a loss.
#[test]
fn marks_take_the_place_of_losses() {
    let link =
        "rate = \"10Mbit/s\"\ndelay = \"20ms\"\ndiscipline = { kind = \"fq-codel\", ecn = true }";
    let run = greedy(link, 20, "ecn = true", 1);
    let (tcp, trunk) = (traffic(&run, "t"), &run.links[0]);
    assert!(trunk.counts.marked > 10, "{:?}", trunk.counts);
    assert_eq!((tcp.retransmissions, trunk.counts.dropped()), (0, 0));
    let filled = goodput(&run) * 8.0 / (10e6 * 1448.0 / 1500.0);
    // Its target of 5 ms is less than half the round trip would need.
    assert!(filled > 0.8, "{filled}");
}
