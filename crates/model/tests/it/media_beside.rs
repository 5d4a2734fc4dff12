//! Datagrams beside a conversation on a shared medium.

use trunkline_engine::About;
use trunkline_model::{What, predictions};
use trunkline_scenario::Scenario;

fn paced(station: usize, rate: u32) -> String {
    let to = (station + 1) % 3;
    format!(
        "[[traffic]]\nname = \"from-h{station}\"\nkind = \"paced\"\nfrom = \"h{station}\"\nto = \"h{to}\"\nsize = 1000\nrate = \"{rate}kbit/s\"\nduration = \"5s\"\n"
    )
}

/// Stations as those of examples/token-ring.toml and ethernet.toml.
fn scenario(medium: &str, (transport, every, size): (&str, u32, u32)) -> Scenario {
    let hosts: String = (0..5).map(|it| format!("[[host]]\nname = \"h{it}\"\n")).collect();
    let datagrams = paced(0, 350) + &paced(1, 370) + &paced(2, 390);
    let text = format!(
        "samples = \"all\"\nstop_after = \"1min\"\n{hosts}[[medium]]\nname = \"m\"\nstations = [\"h0\", \"h1\", \"h2\", \"h3\", \"h4\"]\n{medium}\n{datagrams}[[traffic]]\nname = \"echoes\"\nkind = \"interactive\"\nfrom = \"h3\"\nto = \"h4\"\nsizes = [{size}]\nrepeat = 300\nevery = \"{every}ms\"\ntransport = {transport}\n"
    );
    Scenario::parse(&text, "beside.toml")
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .remove(0)
}

/// The most that a datagram takes is told, and none takes longer, whatever the echoes do.
#[test]
fn no_datagram_beside_echoes_takes_longer_than_told() {
    let media = [
        "kind = \"token-ring\"\nrate = \"4Mbit/s\"\ndelay = \"100us\"",
        "kind = \"token-ring\"\nrate = \"4Mbit/s\"\ndelay = \"2ms\"\nearly_release = true",
        "kind = \"fddi\"\nrate = \"10Mbit/s\"\ndelay = \"100us\"\nttrt = \"20ms\"",
        "kind = \"half-duplex\"\nrate = \"10Mbit/s\"\ndelay = \"10us\"\nframing = \"ethernet\"",
        "kind = \"bus\"\nrate = \"5Mbit/s\"\ndelay = \"0s\"\noverhead = \"20us\"\nburst = 256",
    ];
    let urp = "{ kind = \"urp\", block = 1024, packet = 0 }";
    for medium in media {
        for echoes in [("\"tcp\"", 50, 64), ("\"tcp\"", 0, 900), (urp, 0, 300)] {
            let scenario = scenario(medium, echoes);
            let found = predictions(&scenario).unwrap();
            let run = trunkline_sim::run(&scenario).unwrap();
            for traffic in run.traffic.iter().filter(|it| it.name != "echoes") {
                let own = found.list.iter().filter(|it| it.traffic == traffic.name);
                let figure = own.into_iter().find(|it| it.what == What::DelayAtMost);
                let figure =
                    figure.unwrap_or_else(|| panic!("{medium} {echoes:?}: {:?}", found.notes));
                let most = figure.value.time().unwrap();
                let longest =
                    traffic.samples.iter().map(|it| it.end.since(it.start)).max().unwrap();
                assert!(longest <= most, "{longest} {most} {}, {medium}, {echoes:?}", traffic.name);
            }
        }
    }
}

/// What no formula covers of the conversation is told of it, not of the datagrams.
#[test]
fn what_is_not_covered_beside_datagrams_is_named() {
    let urp = "{ kind = \"urp\", block = 1024, packet = 0 }";
    let scenario = scenario("kind = \"fddi\"\nrate = \"10Mbit/s\"", (urp, 50, 2000));
    let notes = predictions(&scenario).unwrap().notes;
    let of_datagrams: Vec<&str> = notes
        .iter()
        .filter(|note| matches!(&note.about, About::Traffic(name) if name == "from-h0"))
        .map(|note| note.text.as_str())
        .collect();
    assert!(!of_datagrams.is_empty(), "{notes:?}");
    assert!(of_datagrams.iter().all(|text| text.contains("echoes")), "{of_datagrams:?}");
}
