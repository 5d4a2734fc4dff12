//! TCP in the simulator against what theory says of it.

use crate::support::{run, traffic};
use trunkline_measure::Run;

/// One greedy connection from `a` to `b`.
fn greedy(link: &str, seconds: u64, transport: &str, seed: u64) -> Run {
    run(&format!(
        "seed = {seed}\nsample_backlog = \"100ms\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\n{link}\n\
         [[traffic]]\nname = \"t\"\nkind = \"greedy\"\nfrom = \"a\"\nto = \"b\"\n\
         duration = \"{}s\"\nwarm_up = \"10s\"\ninterval = \"1s\"\nwrite = 65536\n\
         transport = {{ kind = \"tcp\", {transport} }}\n",
        seconds + 10
    ))
}

/// Bytes a second.
fn goodput(run: &Run) -> f64 {
    let samples = &traffic(run, "t").samples;
    samples.iter().map(|sample| sample.rate()).sum::<f64>() / samples.len() as f64
}

#[test]
fn table() {
    for (p, k, extra) in [(0.01, "newreno", ""), (0.002, "newreno", ""), (0.002, "newreno", ", profile = \"linux\""), (0.0003, "cubic", "")] {
      let (mut w, mut n) = (0.0, 0.0);
      let start = std::time::Instant::now();
      let mut again = 0;
      for seed in 0..6 {
        let link = format!("rate = \"1Gbit/s\"\nforward = {{ loss = \"{p}\" }}\ndelay = \"50ms\"\nlimit = \"100MiB\"");
        let run = greedy(&link, 120+seed, &format!("congestion = \"{k}\", delayed_ack = \"0s\", window = \"16MiB\"{extra}"), seed);
        w += goodput(&run) * 0.1 / 1448.0;
        n += 1.0;
        again += traffic(&run, "t").retransmissions;
      }
      let w = w / n;
        let law = if k == "newreno" { (1.5f64 / p).sqrt() } else { 1.054 * (0.1f64 / p).powf(0.75) };
        println!("{k} {p}{extra}: W {w:.1}, law {law:.1}, ratio {:.3}; again {again} wall {:?}", w / law, start.elapsed());
    }
    for k in ["newreno", "cubic", "bbr"] {
      for (rate, delay, limit) in [("10Mbit/s", "20ms", "50000"), ("100Mbit/s", "10ms", "250000")] {
       for extra in ["", ", sack = false", ", profile = \"linux\""] {
        let link = format!("rate = \"{rate}\"\ndelay = \"{delay}\"\nlimit = {limit}");
        let run = greedy(&link, 30, &format!("congestion = \"{k}\"{extra}"), 1);
        let r: f64 = if rate == "10Mbit/s" {10e6} else {100e6};
        let t = traffic(&run, "t");
        println!("{k}{extra} {rate} fills {:.4}, again {}, timeouts {}, windows {}", goodput(&run) * 8.0 / (r * 1448.0 / 1500.0), t.retransmissions, t.timeouts, t.windows.len());
       }
      }
    }
}

#[test]
fn look() {
    let link = "rate = \"100Mbit/s\"\ndelay = \"10ms\"\nlimit = 250000";
    let run = greedy(link, 10, "congestion = \"cubic\", sack = false", 1);
    let t = traffic(&run, "t");
    for w in t.windows.iter().take(80) {
        println!("{} w {} thr {:?} rtt {}", w.at, w.window / 1448, w.threshold.map(|x| x / 1448), w.round_trip);
    }
    println!("{:?}", run.links[0].counts);
    println!("{:?}", t.sender);
}
