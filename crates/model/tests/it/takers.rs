//! Greedy connections over URP, which take what they can for a time, against the simulator.

use trunkline_core::Time;
use trunkline_model::{Figure, What, predictions};
use trunkline_scenario::Scenario;

fn scenario(hosts: &str, line: &str, traffic: &str) -> Scenario {
    let text = format!(
        "stop_after = \"60s\"\n[[host]]\nname = \"a\"\n{hosts}\n[[host]]\nname = \"b\"\n{hosts}\n[[link]]\nbetween = [\"a\", \"b\"]\n{line}\n{traffic}"
    );
    Scenario::parse(&text, "takers.toml")
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .remove(0)
}

fn greedy(name: &str, urp: &str) -> String {
    format!(
        "[[traffic]]\nname = \"{name}\"\nkind = \"greedy\"\nfrom = \"a\"\nto = \"b\"\nduration = \"22s\"\nwarm_up = \"2s\"\nwrite = 1024\ntransport = {{ kind = \"urp\", {urp} }}\n"
    )
}

/// Bytes of a flow in a second, by formula and simulated.
fn both(scenario: &Scenario, name: &str) -> (f64, f64) {
    let found = predictions(scenario).unwrap();
    let own = found.list.iter().find(|it| it.traffic == name && it.what == What::Amount);
    let own = own.unwrap_or_else(|| panic!("{found:?}"));
    let Figure::Time(interval) = own.value else { panic!("{own:?}") };
    assert_eq!(interval.as_secs_f64(), 1.0, "{own:?}");
    let run = trunkline_sim::run(scenario).unwrap();
    let traffic = run.traffic(name).unwrap();
    let bytes: u64 = traffic.samples.iter().map(|it| it.size).sum();
    let flows = traffic.samples.iter().map(|it| it.flow).max().unwrap() + 1;
    assert!(run.ended > Time::from_nanos(22_000_000_000));
    (own.size as f64, bytes as f64 / 20.0 / f64::from(flows))
}

#[test]
fn they_have_the_window_or_their_share_of_the_line() {
    for line in
        [("64kbit/s", "5ms"), ("1.544Mbit/s", "30ms"), ("2Mbit/s", "200us"), ("5Mbit/s", "80ms")]
    {
        for (block, outstanding) in [(64, 2), (256, 3), (1024, 7)] {
            for count in [1, 3] {
                let urp =
                    format!("block = {block}, outstanding = {outstanding} }}\ncount = {count}\n#");
                let line = format!("rate = \"{}\"\ndelay = \"{}\"", line.0, line.1);
                let (formula, seen) = both(&scenario("", &line, &greedy("it", &urp)), "it");
                let off = (formula / seen - 1.0).abs();
                assert!(off < 0.02, "{line}, {urp}: {formula} and {seen}");
            }
        }
    }
}

/// Of a write of 100 bytes in blocks of 84 the short one waits for the long one ahead: 4 % less than the mean of both rounds says.
#[test]
fn a_short_block_behind_a_long_one_gains_nothing() {
    for (write, outstanding) in [(100, 2), (100, 3), (300, 2), (300, 5)] {
        let line = "rate = \"1Mbit/s\"\ndelay = \"3ms\"";
        let traffic = greedy("it", &format!("block = 84, outstanding = {outstanding}"))
            .replace("write = 1024", &format!("write = {write}"));
        let (formula, seen) = both(&scenario("", line, &traffic), "it");
        assert!((formula / seen - 1.0).abs() < 0.001, "{write}, {outstanding}: {formula}, {seen}");
    }
}

/// A board takes in what the far processor has not, and that is what is counted.
#[test]
fn they_do_not_wait_for_a_reader_behind_a_board() {
    let hosts = "processor = \"slow\"\ninterface = \"board\"";
    let line = "rate = \"10Mbit/s\"\ndelay = \"1ms\"\n[processor.slow]\nread = \"9ms\"\nwrite = \"100us\"\n[interface.board]\nprotocol = \"board\"\necho = \"arrival\"";
    let (formula, seen) =
        both(&scenario(hosts, line, &greedy("it", "block = 1024, outstanding = 7")), "it");
    assert!(seen > 1e6 && (formula / seen - 1.0).abs() < 0.02, "{formula} and {seen}");
}

/// They have as much of a line as a transfer of as large blocks beside them; its share was told to have no formula, "the writes of
/// several sizes".
#[test]
fn transfers_beside_them_have_their_share() {
    let urp = "block = 1024, outstanding = 7";
    let transfer = "[[traffic]]\nname = \"file\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"2MB\"\ntransport = { kind = \"urp\", block = 1024, outstanding = 7 }\n";
    let line = "rate = \"1Mbit/s\"\ndelay = \"2ms\"";
    let scenario = scenario("", line, &(greedy("it", urp) + transfer));
    let found = predictions(&scenario).unwrap();
    let rate = |name: &str| {
        let own = found.list.iter().find(|it| it.traffic == name && it.what == What::Throughput);
        own.unwrap_or_else(|| panic!("{found:?}")).value
    };
    assert_eq!(rate("file"), rate("it"));
    let (formula, seen) = both(&scenario, "it");
    assert!((formula / seen - 1.0).abs() < 0.02, "{formula} and {seen}");
}
