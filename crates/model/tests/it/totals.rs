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

/// Of datagrams of which lines lose some the rest comes as late as without losses, and the total is what is left.
#[test]
fn lost_datagrams_are_missing_from_the_total() {
    let text = "samples = 'all'\nhost = [{ name = 'a' }, { name = 'b' }]\nnode = [{ name = 'n' }]\n\
                link = [{ between = ['a', 'n'], rate = '10Mbit/s', delay = '5ms', loss = '3%' }, { between = ['n', 'b'], rate = '2Mbit/s', loss = '10%' }]\n\
                [[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = 500\nrate = '1Mbit/s'\nduration = '200s'\n";
    let scenario = Scenario::parse(text, "totals.toml").unwrap().remove(0);
    let [model, sim] =
        [trunkline_model::predict(&scenario).unwrap(), trunkline_sim::run(&scenario).unwrap()];
    let [ours, seen] = [&model, &sim].map(|run| run.traffic[0].total_rate(500).unwrap());
    assert!((ours / (125_000.0 * 0.97 * 0.9) - 1.0).abs() < 1e-4, "{ours}");
    assert!((ours / seen - 1.0).abs() < 0.01, "{ours} {seen}");
    let [first, later] =
        [&model, &sim].map(|run| run.traffic[0].samples.iter().next().unwrap().delay());
    assert_eq!(first, later);
    assert!(model.notes.iter().any(|it| it.text.contains("12.70 % of the datagrams are lost")));
    // Nothing that comes through has a delay.
    let none = text.replace("10%", "100%");
    let found = trunkline_model::predict(&Scenario::parse(&none, "totals.toml").unwrap()[0]);
    assert!(found.unwrap().traffic[0].samples.is_empty());
}

/// Flows that begin one after the other, together for a part of their time or never: the line carries no more than it can.
#[test]
fn the_total_of_staggered_flows_is_no_more_than_the_line() {
    for (traffic, within) in [
        ("kind = 'greedy'\ncount = 2\nstagger = '30s'\nduration = '10s'", 0.01),
        ("kind = 'greedy'\ncount = 2\nstagger = '4s'\nduration = '10s'", 0.05),
        ("kind = 'bulk'\ncount = 5\nstagger = '10s'\nbytes = 1000000\nrepeat = 3", 0.05),
        ("kind = 'bulk'\ncount = 2\nstagger = '20s'\nbytes = 2000000\ntransport = 'urp'", 0.05),
        (
            "kind = 'timed-transfer'\nsizes = [1000]\ncount = 2\nstagger = '30s'\nduration = '10s'\ntransport = 'urp'",
            0.05,
        ),
    ] {
        let text = format!(
            "host = [{{ name = 'a' }}, {{ name = 'b' }}]\nlink = [{{ between = ['a', 'b'], rate = '10Mbit/s', delay = '10ms' }}]\n\
             [[traffic]]\nname = 't'\nfrom = 'a'\nto = 'b'\n{traffic}\n"
        );
        let scenario = Scenario::parse(&text, "totals.toml").unwrap().remove(0);
        let both =
            [trunkline_model::predict(&scenario).unwrap(), trunkline_sim::run(&scenario).unwrap()];
        let [model, sim] = both.map(|run| {
            let of = &run.traffic[0];
            of.total_rate(of.samples.iter().next().unwrap().size).unwrap()
        });
        assert!((model / sim - 1.0).abs() < within, "{traffic}: {model} B/s, simulated {sim}");
    }
}
