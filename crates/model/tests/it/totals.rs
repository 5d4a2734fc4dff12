//! What all flows deliver together, by the formulas and in the simulator.

use trunkline_engine::Run;
use trunkline_scenario::Scenario;

/// What formulas and simulator find of one traffic over 10 Mbit/s and 5 ms.
fn runs(traffic: &str) -> [Run; 2] {
    let text = format!(
        "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit/s'\ndelay = '5ms'\n\
         [[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\n{traffic}\n"
    );
    let scenario = Scenario::parse(&text, "totals.toml").unwrap().remove(0);
    [trunkline_model::predict(&scenario).unwrap(), trunkline_sim::run(&scenario).unwrap()]
}

/// What is offered and carried, not one datagram over its delay.
#[test]
fn the_total_of_datagrams_is_their_rate() {
    for (size, traffic, offered) in [
        (100, "size = 100\nrate = '1Mbit/s'\nduration = '2s'", 125_000.0),
        (100, "size = 100\nrate = '1Mbit/s'\nduration = '2s'\ntransport = 'udp'", 125_000.0),
        (1000, "size = 1000\nrate = '800kbit/s'\nduration = '3s'\ncount = 4", 400_000.0),
        (
            1000,
            "size = 1000\nrate = '800kbit/s'\nduration = '3s'\ncount = 4\nstagger = '2ms'",
            400_000.0,
        ),
    ] {
        let [model, sim] = runs(traffic).map(|run| run.traffic[0].total_rate(size).unwrap());
        assert!((model / offered - 1.0).abs() < 0.01, "{traffic}: {model} of {offered} B/s");
        assert!((model / sim - 1.0).abs() < 1e-3, "{traffic}: {model} B/s, simulated {sim}");
    }
}

/// One datagram has no rate but its own.
#[test]
fn one_datagram_is_carried_in_its_delay() {
    let [model, sim] = runs("size = 1000\nrate = '8kbit/s'\nduration = '1s'")
        .map(|run| run.traffic[0].total_rate(1000).unwrap());
    assert!(
        (model - 1000.0 / 0.0058).abs() < 1.0 && (model / sim - 1.0).abs() < 1e-6,
        "{model}, {sim}"
    );
}
