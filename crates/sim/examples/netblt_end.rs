//! The end of NETBLT transfers over paths that lose packets at random, as CSV: round trips that a transfer takes beyond one
//! without loss, less the time of the packets that the path lost, and packets sent for each of the data.
//!
//! ```text
//! cargo run -p trunkline-sim --example netblt_end > end.csv
//! ```
//!
//! Each line is of 21 seeds: median, 90th percentile, and the mean of the packets.

use trunkline_scenario::Scenario;

/// Runs of a cell.
const SEEDS: usize = 21;
/// User bytes of a packet, and its bytes on the line.
const USER: f64 = 1440.0;
const PACKET: f64 = 1472.0;

/// Seconds that a transfer of so many bytes takes until all has come, and packets sent and lost.
fn transfer(seed: usize, (megabits, millis): (f64, f64), loss: f64, bytes: u64) -> (f64, [f64; 2]) {
    let limit = (megabits * millis * 125.0).max(4.0 * PACKET) as u64;
    let text = format!(
        "seed = {seed}\nstop_after = \"900s\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"{}kbit/s\"\ndelay = \"{}us\"\nlimit = \"{limit}B\"\n\
         forward = {{ loss = \"{loss}%\" }}\n\
         [[traffic]]\nname = \"t\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nwrite = 10000\n\
         bytes = \"{bytes}B\"\nconfirm = true\ntransport = {{ kind = \"netblt\" }}\n",
        megabits * 1e3,
        (millis * 500.0) as u64,
    );
    let cells = Scenario::parse(&text, "end.toml").expect("a scenario of its own");
    let run = trunkline_sim::run(&cells[0]).expect("a run of its own");
    let traffic = &run.traffic[0];
    let sample = traffic.samples.iter().next().expect("a transfer that ended");
    let packets = [traffic.packets.sent, traffic.packets.dropped].map(|it| it as f64);
    (sample.delay().as_secs_f64(), packets)
}

fn main() {
    println!("megabits,round_ms,loss_percent,bytes,median,p90,sent_for_each");
    let paths: [(f64, f64, &[f64], &[u64]); 4] = [
        (10.0, 600.0, &[0.0, 1.0, 5.0], &[256 << 10, 2_000_000, 5_000_000]),
        (1.0, 1800.0, &[0.0, 0.5], &[256 << 10, 2_000_000]),
        (100.0, 100.0, &[0.0, 1.0], &[256 << 10, 10_000_000]),
        (100.0, 40.0, &[20.0], &[256 << 10, 10_000_000]),
    ];
    for (megabits, millis, losses, sizes) in paths {
        for &bytes in sizes {
            let path = (megabits, millis);
            let lossless = transfer(1, path, 0.0, bytes).0;
            for &loss in losses {
                let (mut over, mut sent) = (Vec::new(), 0.0);
                let runs = if loss == 0.0 { 1 } else { SEEDS };
                for seed in 1..=runs {
                    let (took, [packets, lost]) = transfer(seed, path, loss, bytes);
                    let repeats = lost * PACKET * 8.0 / (megabits * 1e6);
                    over.push((took - lossless - repeats) / (millis / 1e3));
                    sent += packets / (bytes as f64 / USER).ceil() / runs as f64;
                }
                over.sort_by(f64::total_cmp);
                let at = |part: usize| over[(over.len() - 1) * part / 10];
                println!("{megabits},{millis},{loss},{bytes},{:.2},{:.2},{sent:.3}", at(5), at(9));
            }
        }
    }
}
