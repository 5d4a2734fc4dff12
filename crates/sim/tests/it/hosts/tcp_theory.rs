//! TCP in the simulator against what theory says of it.

use crate::hosts::support::{run, traffic};
use trunkline_engine::Run;

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

/// The mean segments in a round trip of a window that grows by one in each and is halved if one or
/// more of it are lost, each with probability `loss`; the repair takes a round trip of half a window (RFC 6937). The
/// chain of Ott, Kemperman and Mathis (1996), whose limit for small losses is 1.31 / sqrt(p), taken by rounds: it
/// is 10 % below the limit at 1 % and 5 % at 0.2 %.
fn square_root_law(loss: f64) -> f64 {
    let mut now = vec![0.0; 401];
    now[10] = 1.0;
    let lost = |window: usize| 1.0 - (1.0 - loss).powi(window as i32);
    for _ in 0..3000 {
        let mut next = vec![0.0; now.len()];
        for (window, share) in now.iter().enumerate().skip(1) {
            next[(window + 1).min(400)] += share * (1.0 - lost(window));
            next[(window / 2).max(1)] += share * lost(window);
        }
        now = next;
    }
    let sum = |of: &dyn Fn(usize) -> f64| -> f64 {
        now.iter().enumerate().map(|(window, share)| share * of(window)).sum()
    };
    let brought = sum(&|window| window as f64 * (1.0 - loss + lost(window) / 2.0));
    brought / sum(&|window| 1.0 + lost(window))
}

/// Twelve runs of 120 s are some 1600 epochs at 1 % and 700 at 0.2 %, whose lengths vary by 0.7 of their mean: three
/// standard errors are 5.3 and 7.8 %.
#[test]
fn newreno_follows_the_square_root_law() {
    for (loss, tolerance) in [(0.01, 0.053), (0.002, 0.078)] {
        let (window, law) = (mean_window("newreno", loss, 100, 12), square_root_law(loss));
        assert!((window / law - 1.0).abs() < tolerance, "loss {loss}: {window} for {law} segments");
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
        // Every 100 ms of 50 s, and of what the last bytes take.
        assert!((501..=503).contains(&tcp.windows.len()), "{}", tcp.windows.len());
    }
}

/// A recovery in which repairs are lost too sends no faster than the line carries: it did, twice as fast, so that half of all
/// was dropped for ever.
#[test]
fn a_recovery_that_goes_on_losing_slows_down() {
    for discipline in ["pie", "red"] {
        let link = format!("rate = \"10Mbit/s\"\ndelay = \"10ms\"\ndiscipline = \"{discipline}\"");
        for congestion in ["cubic", "newreno"] {
            let run = greedy(&link, 30, &format!("congestion = \"{congestion}\""), 1);
            let counts = &run.links[0].counts;
            let share = counts.dropped() as f64 / counts.entered as f64;
            assert!(share < 0.02, "{discipline}, {congestion}: {share} is lost");
        }
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
