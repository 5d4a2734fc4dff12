//! Formulas for shared media against the simulator.

use trunkline_model::{Figure, Predictions, What, predictions};
use trunkline_scenario::Scenario;

/// A scenario of `stations` hosts h0, h1, … on one medium, with `traffic`.
fn scenario(medium: &str, stations: usize, traffic: &str) -> Scenario {
    let hosts: String = (0..stations).map(|it| format!("[[host]]\nname = \"h{it}\"\n")).collect();
    let names: Vec<String> = (0..stations).map(|it| format!("\"h{it}\"")).collect();
    let text = format!(
        "stop_after = \"1h\"\nsamples = \"all\"\n{hosts}[[medium]]\nname = \"m\"\nstations = [{}]\n{medium}\n{traffic}\n",
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
    let most = most.split(':').next()?;
    Some([least, most].map(nanos))
}

pub(crate) fn nanos(text: &str) -> f64 {
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

/// Bytes per second that come of a traffic between `from` and `to` seconds.
fn carried(run: &trunkline_engine::Run, name: &str, [from, to]: [f64; 2]) -> f64 {
    let traffic = run.traffic.iter().find(|it| it.name == name).unwrap();
    let ends = traffic.samples.iter().map(|it| (it.end.as_nanos() as f64 / 1e9, it.size));
    let bytes: u64 = ends.filter(|(end, _)| (from..to).contains(end)).map(|(_, size)| size).sum();
    bytes as f64 / (to - from)
}

fn throughput(found: &Predictions, name: &str) -> Option<f64> {
    let of = |what: What| found.list.iter().find(|it| it.traffic == name && it.what == what);
    match of(What::Throughput)?.value {
        Figure::Rate(rate) => Some(rate.millibytes_per_second() as f64 / 1e3),
        _ => None,
    }
}

/// `count` stations, each of which sends datagrams to the next.
fn everybody(count: usize, size: u32, rates: impl Fn(usize) -> u64, seconds: u32) -> String {
    let each = |station: usize| {
        let to = (station + 1) % count;
        let rate = rates(station);
        format!(
            "[[traffic]]\nname = \"h{station}\"\nkind = \"paced\"\nfrom = \"h{station}\"\nto = \"h{to}\"\nsize = {size}\nrate = \"{rate}bit/s\"\nduration = \"{seconds}s\"\n"
        )
    };
    (0..count).map(each).collect()
}

const FULL: [(&str, &str, u64, f64); 10] = [
    (
        "half-duplex",
        "kind = \"half-duplex\"\nrate = \"10Mbit/s\"\ndelay = \"30us\"\nturnaround = \"17us\"",
        10_000_000,
        0.002,
    ),
    (
        "ring",
        "kind = \"token-ring\"\nrate = \"4Mbit/s\"\ndelay = \"100us\"\nhold = \"0s\"",
        4_000_000,
        0.002,
    ),
    ("ring long", "kind = \"token-ring\"\nrate = \"16Mbit/s\"\ndelay = \"2ms\"", 16_000_000, 0.01),
    (
        "ring early",
        "kind = \"token-ring\"\nrate = \"16Mbit/s\"\ndelay = \"2ms\"\nearly_release = true\nhold = \"3ms\"",
        16_000_000,
        0.01,
    ),
    ("fddi", "kind = \"fddi\"\nrate = \"100Mbit/s\"\ndelay = \"500us\"", 100_000_000, 0.02),
    // Tokens of 10 us, of which a rotation of 2 ms has room for 12 with frames of 1400 bytes.
    (
        "fddi short",
        "kind = \"fddi\"\nrate = \"100Mbit/s\"\ndelay = \"500us\"\nttrt = \"2ms\"\ntoken_bits = 1000",
        100_000_000,
        0.05,
    ),
    (
        "bus",
        "kind = \"bus\"\nrate = \"10Mbit/s\"\ndelay = \"0s\"\noverhead = \"24us\"\norder = \"turns\"\nburst = 2000",
        10_000_000,
        0.002,
    ),
    (
        "bus listed",
        "kind = \"bus\"\nrate = \"10Mbit/s\"\ndelay = \"0s\"\noverhead = \"24us\"\nburst = 64",
        10_000_000,
        0.002,
    ),
    (
        "wideband",
        "kind = \"wideband\"\nrate = \"2316305bit/s\"\ndelay = \"265ms\"",
        2_316_305,
        0.02,
    ),
    (
        "csma",
        "kind = \"csma-cd\"\nrate = \"10Mbit/s\"\ndelay = \"12us\"\nframing = \"ethernet\"",
        10_000_000,
        0.07,
    ),
];

/// Stations that all ask for more than their part: the medium carries what the formula says, exactly but for whole frames of
/// the TTRT, and for collisions, of which the formula is an estimate.
#[test]
fn stations_that_fill_a_medium() {
    for (name, medium, rate, bound) in FULL {
        for stations in [1usize, 2, 3, 10, 30] {
            for size in [100, 1000, 1400] {
                let hosts = stations.max(2);
                // Of a bus that serves by the list the first alone fills it.
                let offered =
                    if name == "bus listed" { 2 * rate } else { 2 * rate / stations as u64 };
                let seconds = if name == "wideband" { 20 } else { 2 };
                let mut traffic = everybody(hosts, size, |_| offered, seconds);
                if stations == 1 {
                    traffic = paced("h0", size, &format!("{offered}bit/s"), seconds);
                }
                let medium = format!(
                    "{medium}\nlimit = \"{}KiB\"",
                    if name == "wideband" { 400 } else { 64 }
                );
                let scenario = scenario(&medium, hosts, &traffic);
                let found = predictions(&scenario).unwrap();
                let run = trunkline_sim::run(&scenario).unwrap();
                let names = || (0..stations).map(|it| format!("h{it}"));
                let seen: f64 = names()
                    .map(|it| carried(&run, &it, [f64::from(seconds) / 2.0, seconds.into()]))
                    .sum();
                let formula: Option<f64> = names().map(|it| throughput(&found, &it)).sum();
                let case = format!("{name}, {stations} stations, {size} bytes: {:?}", found.notes);
                let formula = formula.unwrap_or_else(|| panic!("{case}"));
                // The first and the last frame of the second may count or not.
                let edge = f64::from(2 * stations as u32 * size) / seen / f64::from(seconds);
                match name == "csma" && stations > 1 {
                    true if size == 100 => {
                        assert!((0.5..1.0).contains(&(formula / seen)), "{formula} {seen} {case}")
                    }
                    true => assert!(off(formula, seen) < bound + edge, "{formula} {seen} {case}"),
                    false => assert!(off(formula, seen) < bound + edge, "{formula} {seen} {case}"),
                }
            }
        }
    }
}

/// Stations of which each sends less often than all can once: the mean delay of each is in its range, and no datagram's
/// above it.
#[test]
fn stations_that_leave_a_medium_idle_in_part() {
    let mut told = 0;
    for (name, medium, rate, _) in FULL {
        for (stations, size, load) in [
            (2usize, 100, 40),
            (2, 1000, 75),
            (3, 1000, 40),
            (3, 100, 75),
            (10, 1000, 10),
            (10, 100, 75),
            (30, 1000, 75),
        ] {
            let base = rate / 100 * load / stations as u64;
            let rates = |it: usize| base * (100 + 7 * it as u64 % 13) / 112;
            let seconds = if name == "wideband" { 20 } else { 3 };
            let scenario = scenario(medium, stations, &everybody(stations, size, rates, seconds));
            let found = predictions(&scenario).unwrap();
            let run = trunkline_sim::run(&scenario).unwrap();
            for traffic in &run.traffic {
                let own = found.list.iter().filter(|it| it.traffic == traffic.name);
                let Some(most) = own.into_iter().find(|it| it.what == What::DelayAtMost) else {
                    continue;
                };
                let most = most.value.time().unwrap().as_nanos() as f64;
                let least = range(&found).unwrap()[0];
                let delays =
                    traffic.samples.iter().map(|it| it.end.since(it.start).as_nanos() as f64);
                let (shortest, longest) =
                    delays.fold((f64::MAX, 0.0), |(a, b): (f64, f64), it| (a.min(it), b.max(it)));
                let case = format!(
                    "{name}, {stations} stations, {size} bytes, {load} %, {}",
                    traffic.name
                );
                let near = 200.0;
                assert!(longest <= most + near, "{longest} {most} {case}");
                assert!(
                    shortest + near >= least || name.contains("ring") || name == "fddi",
                    "{shortest} {least} {case}"
                );
                told += 1;
            }
        }
    }
    assert!(told > 200, "{told}");
}

/// Transfers on a channel on which blocks and answers alternate: within a half per cent, or by what the note on their ends
/// says; where blocks are shorter than the way of an answer only one block at once is covered.
#[test]
fn transfers_by_turns() {
    let windows: Vec<String> = [1, 4, 7]
        .iter()
        .map(|it| format!("{{ kind = \"urp\", block = 1024, outstanding = {it}, packet = 0 }}"))
        .chain(
            ["urp", "stop-and-wait", "go-back-n", "selective-repeat"].map(|it| format!("\"{it}\"")),
        )
        .collect();
    let mut covered = 0;
    for (delay, turnaround) in
        [("1us", "0us"), ("30us", "17us"), ("2ms", "0s"), ("200us", "1ms"), ("70us", "4ms")]
    {
        for (framing, transport) in windows.iter().flat_map(|it| [("none", it), ("ethernet", it)]) {
            for bytes in ["20kB", "1MB"] {
                let medium = format!(
                    "kind = \"half-duplex\"\nrate = \"10Mbit/s\"\ndelay = \"{delay}\"\nturnaround = \"{turnaround}\"\nframing = \"{framing}\""
                );
                let text = format!(
                    "[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nfrom = \"h0\"\nto = \"h1\"\nbytes = \"{bytes}\"\nwrite = 4096\ntransport = {transport}\n"
                );
                let scenario = scenario(&medium, 2, &text);
                let found = predictions(&scenario).unwrap();
                let case = format!(
                    "{delay} {turnaround} {framing} {transport} {bytes}: {:?}",
                    found.notes
                );
                let Some(formula) = time(&found, What::Transfer) else {
                    assert!(delay == "2ms" && !transport.contains("outstanding = 1"), "{case}");
                    continue;
                };
                let seen = simulated(&scenario, "t", 0);
                let ends =
                    found.notes.iter().find_map(|note| note.text.split_once("may take up to "));
                let ends = ends.map_or(0.0, |(_, rest)| nanos(rest.split(' ').next().unwrap()));
                assert!((formula - seen).abs() <= ends.max(0.01 * seen), "{formula} {seen} {case}");
                covered += 1;
            }
        }
    }
    assert!(covered > 100, "{covered}");
}

/// Hosts that answer one at once over a fabric that loses nothing share its port to that one; where windows may overflow the
/// port, or it marks what heeds marks, nothing is said.
#[test]
fn answers_at_once_over_a_fabric() {
    for (flow, ecn, covered) in [
        ("credit", false, true),
        ("pause", false, true),
        ("credit", true, false),
        ("drop", false, false),
    ] {
        for senders in [1, 8, 40] {
            let medium = format!(
                "kind = \"leaf-spine\"\nrate = \"10Gbit/s\"\ndelay = \"200ns\"\nframing = \"ethernet\"\nhosts_per_leaf = 16\nflow = \"{flow}\"\nbuffer = \"256kB\"\necn_threshold = \"65kB\"\nlimit = \"16MB\""
            );
            let from: Vec<String> = (1..=senders).map(|it| format!("\"h{it}\"")).collect();
            let text = format!(
                "[[traffic]]\nname = \"t\"\nkind = \"bulk\"\ncount = {senders}\nfrom_each = [{}]\nto = \"h0\"\nbytes = \"64kB\"\nwrite = 65536\ntransport = {{ kind = \"tcp\", profile = \"linux\", ecn = {ecn} }}\n",
                from.join(", ")
            );
            let scenario = scenario(&medium, senders + 1, &text);
            let found = predictions(&scenario).unwrap();
            let case = format!("{flow}, {ecn}, {senders}: {:?}", found.notes);
            let formula = time(&found, What::Transfer);
            let Some(formula) = formula else {
                assert!(!covered && senders > 1, "{case}");
                continue;
            };
            let run = trunkline_sim::run(&scenario).unwrap();
            let ends =
                run.traffic[0].samples.iter().map(|it| it.end.since(it.start).as_nanos() as f64);
            let last = ends.fold(0.0, f64::max);
            assert!(off(formula, last) < 0.03, "{formula} {last} {case}");
            let is_unequal = found.notes.iter().any(|note| note.text.contains("unequal numbers"));
            assert_eq!(is_unequal, senders == 40, "{case}");
        }
    }
}

/// Hosts at work between a message and its answer, and a line in front of the medium: the turns come later, and are as exact.
#[test]
fn messages_of_hosts_that_cost_something_and_over_a_line() {
    let costs = "[processor.slow]\nwrite = { fixed = \"130us\" }\nread = { fixed = \"210us\" }\ninterrupt = { fixed = \"17us\" }\nsend_block = { fixed = \"90us\" }\nreceive_block = { fixed = \"150us\" }\ncontrol = \"40us\"\n";
    let urp = "{ kind = \"urp\", block = 1024, outstanding = 2, packet = 0 }";
    for (name, medium) in MEDIA {
        for transport in ["\"tcp\"", urp] {
            for line in [false, true] {
                let (from, node) = match line {
                    true => (
                        "far",
                        "[[node]]\nname = \"n\"\n[[link]]\nbetween = [\"far\", \"n\"]\nforward = { rate = \"3Mbit/s\", delay = \"211us\" }\nbackward = { rate = \"3Mbit/s\", delay = \"211us\" }\n",
                    ),
                    false => ("h0", ""),
                };
                let hosts: String = [from, "h1", "h2"]
                    .iter()
                    .map(|it| format!("[[host]]\nname = \"{it}\"\nprocessor = \"slow\"\n"))
                    .collect();
                let stations =
                    if line { "\"n\", \"h1\", \"h2\"" } else { "\"h0\", \"h1\", \"h2\"" };
                let text = format!(
                    "stop_after = \"1h\"\nsamples = \"all\"\n{costs}{hosts}{node}[[medium]]\nname = \"m\"\nstations = [{stations}]\n{medium}\n[[traffic]]\nname = \"t\"\nkind = \"interactive\"\nfrom = \"{from}\"\nto = \"h1\"\nsizes = [700]\nrepeat = 20\ntransport = {transport}\n"
                );
                let scenario = Scenario::parse(&text, "case.toml")
                    .unwrap_or_else(|error| panic!("{error}\n{text}"))
                    .remove(0);
                let found = predictions(&scenario).unwrap();
                let case = format!("{name}, {transport}, line {line}: {:?}", found.notes);
                let Some(formula) = time(&found, What::RoundTrip) else {
                    assert!(line && transport == urp && name != "fabric", "{case}");
                    continue;
                };
                let seen = simulated(&scenario, "t", 5);
                assert!((formula - seen).abs() <= 50.0, "{formula} {seen} {case}");
            }
        }
    }
}
