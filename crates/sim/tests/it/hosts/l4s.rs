//! The low-latency service: Prague in DualPI2's one queue, CUBIC in its other (RFC 9330, RFC 9332).

use crate::hosts::support::{run, traffic};
use trunkline_engine::Run;
use trunkline_measure::TrafficRun;

/// A Prague and a CUBIC flow through one line; `round` is the round trip of the empty path in
/// milliseconds.
fn beside(megabits: u64, round: u64, seed: u64) -> Run {
    let flow = |name: &str, congestion: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"greedy\"\nfrom = \"a\"\nto = \"b\"\nwrite = 65536\n\
             duration = \"40s\"\nwarm_up = \"10s\"\ninterval = \"1s\"\n\
             transport = {{ kind = \"tcp\", profile = \"linux\", congestion = \"{congestion}\" }}\n"
        )
    };
    run(&format!(
        "seed = {seed}\nsample_backlog = \"10ms\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"{megabits}Mbit/s\"\ndelay = \"{}us\"\n\
         discipline = \"dualpi2\"\n{}{}",
        round * 500,
        flow("low", "prague"),
        flow("classic", "cubic"),
    ))
}

fn goodput(tcp: &TrafficRun) -> f64 {
    tcp.samples.iter().map(|sample| sample.rate()).sum::<f64>() / tcp.samples.len() as f64
}

/// The mean queueing delay in milliseconds, by the smoothed round trips of the samples after the warm-up.
fn queueing(tcp: &TrafficRun, round: u64) -> f64 {
    let late = tcp.windows.iter().filter(|sample| sample.at.as_nanos() > 10_000_000_000);
    let rounds: Vec<f64> = late.map(|sample| sample.round_trip.as_secs_f64() * 1e3).collect();
    rounds.iter().sum::<f64>() / rounds.len() as f64 - round as f64
}

/// Prague waits a millisecond or two while CUBIC waits the target's fifteen, and neither starves the other (RFC 9332
/// §2.1 couples the queues so that rates are about the same). Each line is judged by the mean of three seeds.
#[test]
fn prague_has_a_short_queue_beside_cubic_and_an_even_share() {
    for (megabits, round) in [(40, 10), (100, 5), (40, 20), (20, 40)] {
        let line = megabits as f64 * 1e6 / 8.0 * 1448.0 / 1500.0;
        let (mut shares, mut queues) = ([0.0; 2], [0.0; 2]);
        for seed in 1..=3 {
            let run = beside(megabits, round, seed);
            for (flow, name) in ["low", "classic"].iter().enumerate() {
                let tcp = traffic(&run, name);
                shares[flow] += goodput(tcp) / line / 3.0;
                queues[flow] += queueing(tcp, round) / 3.0;
            }
        }
        println!("{megabits} Mbit/s, {round} ms: queues {queues:.2?} ms, shares {shares:.3?}");
        let ratio = shares[0] / shares[1];
        assert!(queues[0] < 2.0 && queues[1] > 5.0, "{queues:.2?} ms");
        assert!((0.5..2.0).contains(&ratio), "{ratio:.2}");
        assert!(shares[0] + shares[1] > 0.9, "{shares:.3?}");
    }
}
