//! TCP in the simulator against what theory says of it.

use crate::support::{run, traffic};
use trunkline_measure::Run;

/// One greedy connection from `a` to `b`.
fn greedy(link: &str, seconds: u64, transport: &str) -> Run {
    run(&format!(
        "seed = 11\nsample_backlog = \"100ms\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
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
    for (p, k, extra) in [(0.01, "newreno", ""), (0.002, "newreno", ""), (0.002, "newreno", ", sack = false"), (0.0005, "newreno", ""), (0.0003, "cubic", ""), (0.00005, "cubic", "")] {
        let start = std::time::Instant::now();
        let link = format!("rate = \"1Gbit/s\"\nforward = {{ loss = \"{p}\" }}\ndelay = \"50ms\"\nlimit = \"100MiB\"");
        let run = greedy(&link, 300, &format!("congestion = \"{k}\", delayed_ack = \"0s\", window = \"16MiB\"{extra}"));
        let w = goodput(&run) * 0.1 / 1448.0;
        let law = if k == "newreno" { (1.5f64 / p).sqrt() } else { 1.054 * (0.1f64 / p).powf(0.75) };
        let t = traffic(&run, "t");
        println!("{k} {p}{extra}: W {w:.1}, law {law:.1}, ratio {:.3}; again {} timeouts {} of {} wall {:?}", w / law, t.retransmissions, t.timeouts, t.packets.sent, start.elapsed());
    }
    for k in ["newreno", "cubic", "bbr"] {
      for (rate, delay, limit) in [("10Mbit/s", "20ms", "50000"), ("100Mbit/s", "10ms", "250000")] {
        let link = format!("rate = \"{rate}\"\ndelay = \"{delay}\"\nlimit = {limit}");
        let run = greedy(&link, 60, &format!("congestion = \"{k}\""));
        let r: f64 = if rate == "10Mbit/s" {10e6} else {100e6};
        let t = traffic(&run, "t");
        println!("{k} {rate} fills {:.4}, again {}, timeouts {}, windows {}", goodput(&run) * 8.0 / (r * 1448.0 / 1500.0), t.retransmissions, t.timeouts, t.windows.len());
      }
    }
}
