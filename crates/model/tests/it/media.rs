//! Formulas for shared media against the simulator.

use trunkline_model::{Figure, Predictions, What, predictions};
use trunkline_scenario::Scenario;

/// A scenario of `stations` hosts h0, h1, … on one medium, with `traffic`.
fn scenario(medium: &str, stations: usize, traffic: &str) -> Scenario {
    let hosts: String = (0..stations).map(|it| format!("[[host]]\nname = \"h{it}\"\n")).collect();
    let names: Vec<String> = (0..stations).map(|it| format!("\"h{it}\"")).collect();
    let text = format!(
        "stop_after = \"1h\"\n{hosts}[[medium]]\nname = \"m\"\nstations = [{}]\n{medium}\n{traffic}\n",
        names.join(",")
    );
    let cells =
        Scenario::parse(&text, "case.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    cells.into_iter().next().unwrap()
}

/// The mean of what a traffic measured, in nanoseconds; of messages behind each other the first, which finds the medium
/// idle, is left out.
fn simulated(scenario: &Scenario, name: &str, but: usize) -> f64 {
    let run = trunkline_sim::run(scenario).unwrap();
    let traffic = run.traffic.iter().find(|it| it.name == name).unwrap();
    let spans: Vec<f64> = traffic
        .samples
        .iter()
        .skip(but)
        .map(|it| it.end.since(it.start).as_nanos() as f64)
        .collect();
    assert!(!spans.is_empty(), "{name} measured nothing");
    spans.iter().sum::<f64>() / spans.len() as f64
}

fn time(found: &Predictions, what: What) -> Option<f64> {
    let own = found.list.iter().find(|it| it.what == what)?;
    match own.value {
        Figure::Time(span) => Some(span.as_nanos() as f64),
        _ => None,
    }
}

/// By how much two figures differ, in shares.
fn off(formula: f64, simulated: f64) -> f64 {
    (formula / simulated - 1.0).abs()
}

const MEDIA: [(&str, &str); 12] = [
    (
        "half-duplex",
        "kind = \"half-duplex\"\nrate = \"10Mbit/s\"\ndelay = \"30us\"\nturnaround = \"17us\"",
    ),
    (
        "half-duplex far",
        "kind = \"half-duplex\"\nrate = \"1Mbit/s\"\ndelay = \"5ms\"\nturnaround = \"2ms\"\nframing = \"ethernet\"",
    ),
    ("csma", "kind = \"csma-cd\"\nrate = \"10Mbit/s\"\ndelay = \"20us\"\nframing = \"ethernet\""),
    ("csma bare", "kind = \"csma-cd\"\nrate = \"10Mbit/s\"\ndelay = \"5us\""),
    ("ring", "kind = \"token-ring\"\nrate = \"4Mbit/s\"\ndelay = \"100us\""),
    ("ring long", "kind = \"token-ring\"\nrate = \"16Mbit/s\"\ndelay = \"2ms\""),
    (
        "ring early",
        "kind = \"token-ring\"\nrate = \"16Mbit/s\"\ndelay = \"2ms\"\nearly_release = true",
    ),
    (
        "ring short hold",
        "kind = \"token-ring\"\nrate = \"4Mbit/s\"\ndelay = \"1ms\"\nhold = \"0s\"",
    ),
    ("fddi", "kind = \"fddi\"\nrate = \"100Mbit/s\"\ndelay = \"500us\""),
    ("bus", "kind = \"bus\"\nrate = \"1Gbit/s\"\ndelay = \"0s\"\noverhead = \"240ns\"\nburst = 64"),
    ("wideband", "kind = \"wideband\"\nrate = \"2316305bit/s\"\ndelay = \"265ms\""),
    (
        "fabric",
        "kind = \"leaf-spine\"\nrate = \"1Gbit/s\"\ndelay = \"3us\"\nframing = \"ethernet\"\nhosts_per_leaf = 2",
    ),
];

/// The times that a note gives a range between, in nanoseconds.
fn range(found: &Predictions) -> Option<[f64; 2]> {
    let text =
        found.notes.iter().find_map(|note| note.text.split_once("the mean delay is between "))?.1;
    let (least, most) = text.split_once(" and ")?;
    Some([least, most].map(nanos))
}

fn nanos(text: &str) -> f64 {
    let digits = text.find(|letter: char| letter != '.' && !letter.is_ascii_digit()).unwrap();
    let unit = match &text[digits..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        other => panic!("{other} is no unit"),
    };
    unit * text[..digits].parse::<f64>().unwrap()
}

fn paced(from: &str, size: u32, rate: &str, seconds: u32) -> String {
    format!(
        "[[traffic]]\nname = \"{from}\"\nkind = \"paced\"\nfrom = \"{from}\"\nto = \"h1\"\nsize = {size}\nrate = \"{rate}\"\nduration = \"{seconds}s\"\n"
    )
}

/// One flow of datagrams: exact where nothing depends on the phase, else within half a per cent or in the range told.
#[test]
fn datagrams_that_have_a_medium_to_themselves() {
    for (name, medium) in MEDIA {
        for stations in [2, 3, 10, 100] {
            for (size, rate) in [(100, "31kbit/s"), (1000, "313kbit/s"), (1400, "91kbit/s")] {
                let scenario = scenario(medium, stations, &paced("h0", size, rate, 40));
                let found = predictions(&scenario).unwrap();
                let case = format!("{name}, {stations} stations, {size} bytes: {:?}", found.notes);
                let formula = time(&found, What::Delay).unwrap_or_else(|| panic!("{case}"));
                let seen = simulated(&scenario, "h0", 0);
                let has_phase = ["ring", "fddi", "wideband"].iter().any(|it| name.starts_with(it));
                match range(&found) {
                    Some([least, most]) => {
                        assert!(has_phase && least <= seen && seen <= most, "{seen} {case}")
                    }
                    None if has_phase => {
                        assert!(off(formula, seen) < 0.005, "{formula} {seen} {case}")
                    }
                    None => assert!((formula - seen).abs() <= 5.0, "{formula} {seen} {case}"),
                }
            }
        }
    }
}

/// Messages that follow each other: each but the first has its phase from the one before, and the formula is exact.
#[test]
fn messages_behind_each_other() {
    let urp = "{ kind = \"urp\", block = 1024, outstanding = 2, packet = 0 }";
    for (name, medium) in MEDIA {
        for stations in [2, 3, 10, 100] {
            for transport in ["\"tcp\"", "\"urp\"", urp] {
                for (size, reply) in [(16, 16), (100, 900), (900, 1)] {
                    let text = format!(
                        "[[traffic]]\nname = \"t\"\nkind = \"interactive\"\nfrom = \"h0\"\nto = \"h1\"\nsizes = [{size}]\nreply = {reply}\nrepeat = 20\ntransport = {transport}\n"
                    );
                    let scenario = scenario(medium, stations, &text);
                    let found = predictions(&scenario).unwrap();
                    let seen = simulated(&scenario, "t", 3);
                    let case = format!(
                        "{name}, {stations} stations, {transport}, {size} {reply}: {:?}",
                        found.notes
                    );
                    // URP in packets of 16 bytes has blocks of 256, and more packets of one than a frame has room for.
                    let longer = name == "wideband" || size.max(reply) > 256;
                    let Some(formula) = time(&found, What::RoundTrip) else {
                        assert!(transport == "\"urp\"" && longer, "{case}");
                        continue;
                    };
                    assert!((formula - seen).abs() <= 50.0, "{formula} {seen} {case}");
                }
            }
        }
    }
}

/// Messages now and then: exact but for the wait of the first packet, which is between nothing and a phase.
#[test]
fn messages_to_an_idle_medium() {
    for (name, medium) in MEDIA {
        for stations in [2, 10, 100] {
            for (transport, size) in [("tcp", 100), ("tcp", 900), ("urp", 100)] {
                let text = format!(
                    "[[traffic]]\nname = \"t\"\nkind = \"interactive\"\nfrom = \"h0\"\nto = \"h1\"\nsizes = [{size}]\nevery = \"2713ms\"\nrepeat = 60\ntransport = \"{transport}\"\n"
                );
                let scenario = scenario(medium, stations, &text);
                let found = predictions(&scenario).unwrap();
                let seen = simulated(&scenario, "t", 1);
                let case =
                    format!("{name}, {stations} stations, {transport}, {size}: {:?}", found.notes);
                let Some(formula) = time(&found, What::RoundTrip) else {
                    assert!(transport == "urp" && name == "wideband", "{case}");
                    continue;
                };
                let told = found.notes.iter().any(|note| note.text.contains("half of"));
                match told {
                    true => assert!(off(formula, seen) < 0.25, "{formula} {seen} {case}"),
                    false => assert!(off(formula, seen) < 0.01, "{formula} {seen} {case}"),
                }
                let has_phase = ["ring", "fddi", "wideband"].iter().any(|it| name.starts_with(it));
                assert!(has_phase || (formula - seen).abs() <= 50.0, "{formula} {seen} {case}");
            }
        }
    }
}
