//! What TCP meets in the queues of slow lines and beside connections that are not like it, against the simulator.

use trunkline_model::{Predictions, What, predictions};
use trunkline_scenario::Scenario;

/// Hosts `a` and `b` with a line of these keys between them, and traffic of these.
fn scenario(line: &str, traffic: &str) -> Scenario {
    let text = format!(
        "samples = \"all\"\nstop_after = \"30min\"\nhost = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n[[link]]\nbetween = [\"a\", \"b\"]\n{line}\n{traffic}"
    );
    let cells = Scenario::parse(&text, "queues.toml");
    cells.unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0)
}

fn flow(name: &str, kind: &str, keys: &str, transport: &str) -> String {
    format!(
        "[[traffic]]\nname = \"{name}\"\nkind = \"{kind}\"\nfrom = \"a\"\nto = \"b\"\n{keys}\ntransport = {{ kind = \"tcp\"{transport} }}\n"
    )
}

fn time(found: &Predictions, name: &str, what: What) -> f64 {
    let own = found.list.iter().find(|it| it.traffic == name && it.what == what);
    own.and_then(|it| it.value.time()).unwrap_or_else(|| panic!("{found:?}")).as_secs_f64()
}

/// The mean of what is simulated of a traffic's size, in seconds.
fn simulated(scenario: &Scenario, name: &str, size: Option<u64>) -> f64 {
    let run = trunkline_sim::run(scenario).unwrap();
    let own = run.traffic.iter().find(|it| it.name == name).unwrap();
    let times = own.samples.iter().filter(|it| size.is_none_or(|size| it.size == size));
    let times: Vec<f64> = times.map(|it| it.delay().as_secs_f64()).collect();
    assert!(!times.is_empty(), "{name} has no samples");
    times.iter().sum::<f64>() / times.len() as f64
}

/// A connection that keeps its window gathers no writes either before that is full: 3000 bytes in writes of 100 are 30 segments,
/// and with their headers take half as long again as three.
#[test]
fn repeated_transfers_do_not_gather_small_writes() {
    for (rate, bytes, write) in [
        ("64kbit/s", 3000, 100),
        ("64kbit/s", 3000, 1024),
        ("1Mbit/s", 10_000, 250),
        ("10Mbit/s", 12_000, 400),
    ] {
        let line = format!("rate = \"{rate}\"\ndelay = \"40ms\"\nlimit = \"1MB\"");
        let keys = format!("bytes = \"{bytes}B\"\nwrite = {write}\nrepeat = 20");
        let scenario = scenario(&line, &flow("t", "bulk", &keys, ""));
        let formula = time(&predictions(&scenario).unwrap(), "t", What::Transfer);
        let seen = simulated(&scenario, "t", None);
        let case = format!("{bytes} in {write} over {rate}: {formula} {seen}");
        assert!((formula / seen - 1.0).abs() < 0.04, "{case}");
    }
}
