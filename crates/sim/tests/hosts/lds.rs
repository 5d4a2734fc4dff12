//! The experiment of the LDS report (section 3.10): two greedy connections with different round trips share an
//! ATM trunk.

use crate::support::{run, traffic};
use trunkline_core::Span;
use trunkline_measure::Run;

/// Four hosts; `short` has a round trip of 1 ms, `long` of so many, without queues and packets' own times.
/// The trunk is OC-3 under AAL5.
fn scenario(millis: u64, profile: &str, queue: &str, more: &str) -> String {
    let extra = (millis - 1) * 500;
    let connection = |name: &str, from: &str, to: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"greedy\"\nfrom = \"{from}\"\nto = \"{to}\"\n\
             duration = \"31s\"\nwarm_up = \"1s\"\ninterval = \"1s\"\nwrite = 65536\n\
             transport = {{ kind = \"tcp\", profile = \"{profile}\", mss = 9140, window = 65536, \
             window_scaling = false, timestamps = false }}\n"
        )
    };
    let hosts: String =
        ["s", "l", "r", "q"].map(|name| format!("[[host]]\nname = \"{name}\"\n")).concat();
    format!(
        "seed = 7\nmtu = 9180\n{hosts}[[node]]\nname = \"m\"\n[[node]]\nname = \"n\"\n\
         [[link]]\nbetween = [\"s\", \"m\"]\nrate = \"149.76Mbit/s\"\nframing = \"atm-aal5\"\n\
         [[link]]\nbetween = [\"l\", \"m\"]\nrate = \"149.76Mbit/s\"\nframing = \"atm-aal5\"\ndelay = \"{extra}us\"\n\
         [[link]]\nbetween = [\"m\", \"n\"]\nrate = \"149.76Mbit/s\"\nframing = \"atm-aal5\"\n\
         delay = \"500us\"\ndiscipline = {queue}\n\
         [[link]]\nbetween = [\"n\", \"r\"]\n[[link]]\nbetween = [\"n\", \"q\"]\n{}{}{more}",
        connection("short", "s", "r"),
        connection("long", "l", "q"),
    )
}

const EPD: &str = "{ kind = \"epd\", threshold = 1000, limit = 1200 }";

/// Goodput in Mbit/s.
fn goodput(run: &Run, name: &str) -> f64 {
    let samples = &traffic(run, name).samples;
    assert_eq!(samples.len(), 30);
    assert!(samples.iter().all(|it| it.delay() == Span::from_secs(1)));
    samples.iter().map(|it| it.rate() * 8.0 / 1e6).sum::<f64>() / samples.len() as f64
}

fn both(run: &Run) -> [f64; 2] {
    ["short", "long"].map(|name| goodput(run, name))
}

#[test]
fn table() {
    for jitter in ["1ns", "35us", "135us", "272us"] {
        let text = |millis, profile, queue: &str, seed: u64, ws: u64, more: &str| {
            let t = scenario(millis, profile, queue, more);
            let t = t.replace("name = \"s\"\n", &format!("name = \"s\"\nprocessor = \"cpu\"\n")).replace("name = \"l\"\n", "name = \"l\"\nprocessor = \"cpu\"\n")
         .replace("seed = 7\nmtu = 9180\n", &format!("seed = {seed}\nmtu = 9180\n[processor.cpu]\ndisturbance = {{ probability = \"100%\", mean = \"{jitter}\" }}\n"));
            let _ = ws;
            t
        };
        for profile in ["bsd-reno", "linux"] {
            for millis in [1, 2, 5, 10, 20] {
                let mut sums = [0.0; 2];
                for seed in 1..=5 {
                    let run = run(&text(millis, profile, EPD, seed, 0, ""));
                    let g = both(&run);
                    sums[0] += g[0];
                    sums[1] += g[1];
                    print!(" {:.1}", 100.0 * g[1] / (g[0] + g[1]));
                }
                let [short, long] = sums.map(|x| x / 5.0);
                println!(
                    "{jitter} {profile} {millis}: {short:.2} {long:.2} share {:.1} sum {:.1} ",
                    100.0 * long / (short + long),
                    short + long
                );
            }
        }
        for millis in [1, 2, 5, 10, 20] {
            let run = run(&text(
                millis,
                "bsd-reno",
                "{ kind = \"fifo\", limit = \"3000cells\" }",
                1,
                0,
                "",
            ));
            let [short, long] = both(&run);
            println!(
                "{jitter} fifo {millis}: {short:.2} {long:.2} share {:.1} dropped {}",
                100.0 * long / (short + long),
                run.links.iter().map(|l| l.counts.dropped()).sum::<u64>()
            );
        }
    }
}
