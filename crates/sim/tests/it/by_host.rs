//! A line shared among hosts first, then among their flows.

use trunkline_scenario::Scenario;

/// Host `a` sends one flow and host `b` eight over one line under `queue`; the share of `a` in what comes through.
fn share_of_one_flow(queue: &str) -> f64 {
    let text = format!(
        r#"
stop_after = "60s"
[[host]]
name = "a"
[[host]]
name = "b"
[[host]]
name = "c"
[[node]]
name = "n"
[[link]]
between = ["a", "n"]
rate = "100Mbit/s"
[[link]]
between = ["b", "n"]
rate = "100Mbit/s"
[[link]]
between = ["n", "c"]
rate = "10Mbit/s"
delay = "5ms"
discipline = "{queue}"
[[traffic]]
name = "one"
kind = "greedy"
from = "a"
to = "c"
duration = "20s"
transport = "tcp"
[[traffic]]
name = "eight"
kind = "greedy"
from = "b"
to = "c"
count = 8
duration = "20s"
transport = "tcp"
"#
    );
    let cells = Scenario::parse(&text, "by-host.toml").unwrap();
    let run = trunkline_sim::run(&cells[0]).unwrap();
    // Of the accesses: data forward, in the order of links and directions.
    let bytes = |link: usize| run.links[2 * link].counts.delivered_bytes as f64;
    bytes(0) / (bytes(0) + bytes(1))
}

#[test]
fn a_host_with_one_flow_has_half_of_the_line_if_hosts_count() {
    let by_host = share_of_one_flow("fq-codel:hosts=source");
    assert!((by_host - 0.5).abs() < 0.03, "{by_host}");
    let by_flow = share_of_one_flow("fq-codel");
    assert!((by_flow - 1.0 / 9.0).abs() < 0.03, "{by_flow}");
    let one_destination = share_of_one_flow("fq-codel:hosts=destination");
    assert!((one_destination - 1.0 / 9.0).abs() < 0.03, "{one_destination}");
}
