//! Two DCTCP flows behind a port that marks from a queue length on (RFC 8257 §3.1).

use trunkline_scenario::Scenario;
use trunkline_sim::run;

/// Bytes that each flow delivers in each of its intervals of 20 round trips; the second starts 300 ms after the first.
fn shares(delay: &str, rate: &str, threshold: &str, round_micros: u64) -> [Vec<f64>; 2] {
    let interval = round_micros * 20;
    let host = |name: &str| format!("[[host]]\nname = '{name}'\n");
    let flow = |name: &str, from: &str, start: &str| {
        format!(
            "[[traffic]]\nname = '{name}'\nkind = 'greedy'\nfrom = '{from}'\nto = 'c'\nwrite = 65536\nwarm_up = '0'\n\
             start = '{start}'\ninterval = '{interval}us'\nduration = '{}us'\n\
             transport = {{ kind = 'tcp', congestion = 'dctcp', profile = 'trunkline' }}\n",
            interval * 45
        )
    };
    let medium = format!(
        "[[medium]]\nname = 'm'\nkind = 'leaf-spine'\nstations = ['a', 'b', 'c']\nrate = '{rate}'\ndelay = '{delay}'\n\
         flow = 'drop'\nbuffer = '500kB'\necn_threshold = '{threshold}'\n"
    );
    let hosts = ["a", "b", "c"].map(host).concat();
    let text = [hosts, medium, flow("one", "a", "0"), flow("two", "b", "300ms")].concat();
    let run = run(&Scenario::parse(&text, "dctcp.toml").unwrap()[0]).unwrap();
    let shares = |at: usize| run.traffic[at].samples.iter().map(|sample| sample.size as f64);
    [0, 1].map(|at| shares(at).collect())
}

/// DCTCP converges slowly, over some hundred round trips (Alizadeh, Javanmard and Prabhakar, *Analysis of DCTCP*,
/// SIGMETRICS 2011, §4), and does converge: after 500 the two have equal shares, Jain's index 0.95 and above.
#[test]
fn two_equal_flows_come_to_equal_shares() {
    for (delay, rate, threshold, round) in [
        ("2ms", "100Mbit/s", "30kB", 17_000),
        ("250us", "100Mbit/s", "30kB", 3_500),
        ("200us", "1Gbit/s", "100kB", 1_700),
    ] {
        let [one, two] = shares(delay, rate, threshold, round);
        // Intervals of the first flow that lie behind 500 round trips of the second's.
        let behind = (300_000 / (round as usize * 20)) + 1 + 25;
        let sums =
            [&one[behind..], &two[25..25 + one.len() - behind]].map(|all| all.iter().sum::<f64>());
        let jain = (sums[0] + sums[1]).powi(2) / 2.0 / (sums[0].powi(2) + sums[1].powi(2));
        assert!(jain >= 0.95, "{delay} {rate}: {jain}, {sums:?}");
    }
}
