//! Messages over the textbook protocols, and transfers that their own formulas do not know, against the simulator: the window,
//! the answers and the hosts, unit by unit.

use trunkline_core::Span;
use trunkline_model::{Figure, Predictions, What, predictions};
use trunkline_scenario::Scenario;

/// Messages, or transfers of a number of bytes, over a line of 2 Mbit/s.
fn scenario(hosts: &str, line: &str, traffic: &str) -> Scenario {
    let traffic = match traffic.starts_with("bytes") {
        true => format!("kind = \"bulk\"\n{traffic}"),
        false => format!("kind = \"interactive\"\nrepeat = 20\n{traffic}"),
    };
    let text = format!(
        "{hosts}\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"2Mbit/s\"\n{line}\n[[traffic]]\nname = \"it\"\nfrom = \"a\"\nto = \"b\"\n{traffic}"
    );
    Scenario::parse(&text, "textbooks.toml")
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
        .remove(0)
}

const IDEAL: &str = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"";

fn hosts(costs: &str) -> String {
    format!(
        "[processor.p]\n{costs}\n[[host]]\nname = \"a\"\nprocessor = \"p\"\n[[host]]\nname = \"b\"\nprocessor = \"p\""
    )
}

fn told(found: &Predictions) -> String {
    found.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn figure(scenario: &Scenario, what: What) -> Figure {
    let found = predictions(scenario).unwrap();
    let own = found.list.iter().find(|it| it.what == what);
    own.unwrap_or_else(|| panic!("{found:?}")).value
}

/// The round trip by formula, and simulated in the median.
fn both(scenario: &Scenario) -> (f64, f64) {
    let Figure::Time(span) = figure(scenario, What::RoundTrip) else { panic!("{scenario:?}") };
    let run = trunkline_sim::run(scenario).unwrap();
    let mut seen: Vec<_> = run.traffic("it").unwrap().samples.iter().map(|it| it.delay()).collect();
    seen.sort();
    (span.as_secs_f64(), seen[seen.len() / 2].as_secs_f64())
}

fn agree(scenario: &Scenario, within: f64) {
    let (formula, seen) = both(scenario);
    assert!((formula / seen - 1.0).abs() < within, "{formula} and {seen}: {scenario:?}");
}

#[test]
fn a_window_is_waited_for_as_often_as_the_message_fills_it() {
    for protocol in ["stop-and-wait", "go-back-n", "selective-repeat"] {
        for frames in [1, 3, 8] {
            let window = match protocol {
                "stop-and-wait" if frames > 1 => continue,
                "stop-and-wait" => String::new(),
                _ => format!(", frames = {frames}"),
            };
            for (size, reply) in
                [(1, "echo"), (500, "echo"), (501, "echo"), (9_999, "10B"), (64, "7000B")]
            {
                let traffic = format!(
                    "sizes = [{size}]\nreply = \"{reply}\"\ntransport = {{ kind = \"{protocol}\", frame = 500{window} }}"
                );
                for line in ["delay = \"5ms\"", "delay = \"80us\"\nframing = \"ethernet\""] {
                    agree(&scenario(IDEAL, line, &traffic), 1e-6);
                }
            }
        }
    }
}

/// The answer of a host's own protocol goes before the host is interrupted for the data, and so ahead of the reply.
#[test]
fn hosts_work_for_units_and_for_their_answers() {
    let costs = "write = \"300us\"\nrequest = \"200us\"\nsend_block = \"150us\"\nreceive_block = \"90us\"\nread = \"100us\"\ninterrupt = \"400us\"";
    for window in ["stop-and-wait\", frame = 400", "go-back-n\", frame = 400, frames = 6"] {
        for size in [30, 1_700] {
            let traffic = format!("sizes = [{size}]\ntransport = {{ kind = \"{window} }}");
            agree(&scenario(&hosts(costs), "delay = \"5ms\"", &traffic), 1e-6);
            // An answer is on the line for less than the interrupt takes.
            let line = "delay = \"5ms\"\nframing = \"ethernet\"";
            agree(&scenario(&hosts("interrupt = \"400us\""), line, &traffic), 1e-6);
        }
    }
}

#[test]
fn a_reader_that_is_behind_is_told_of() {
    let traffic = "sizes = [2000]\ntransport = { kind = \"go-back-n\", frame = 100, frames = 20 }";
    let scenario = scenario(&hosts("read = \"3ms\""), "delay = \"5ms\"", traffic);
    let notes = told(&predictions(&scenario).unwrap());
    let (formula, seen) = both(&scenario);
    let shorter =
        notes.split_once("may be up to ").and_then(|(_, rest)| rest.split_once("ms shorter"));
    let shorter: f64 = shorter.unwrap_or_else(|| panic!("{notes}")).0.parse().unwrap();
    assert!(seen < formula && seen > formula - shorter / 1e3, "{formula} and {seen}: {notes}");
}

#[test]
fn what_the_formulas_do_not_follow_is_said() {
    let cases = [
        ("kind = \"netblt\"", "no formula covers messages over netblt"),
        (
            "kind = \"go-back-n\", frames = 4, frame = 100, rate = \"100kbit/s\"",
            "that the rate of go-back-n",
        ),
        ("kind = \"stop-and-wait\", timeout = \"9ms\"", "a time-out that is shorter"),
    ];
    for (transport, why) in cases {
        let traffic = format!("sizes = [700]\ntransport = {{ {transport} }}");
        let found = predictions(&scenario(IDEAL, "delay = \"5ms\"", &traffic)).unwrap();
        assert!(found.list.is_empty(), "{found:?}");
        assert!(told(&found).contains(why), "{}", told(&found));
    }
}

/// The bytes of a flow in a second by formula, and simulated.
fn rates(scenario: &Scenario) -> (f64, f64) {
    let Figure::Rate(rate) = figure(scenario, What::Throughput) else { panic!("{scenario:?}") };
    let run = trunkline_sim::run(scenario).unwrap();
    let samples = &run.traffic("it").unwrap().samples;
    let flows = samples.iter().map(|it| it.flow).max().unwrap() + 1;
    let seen = samples.iter().map(|it| it.size as f64 / it.delay().as_secs_f64()).sum::<f64>();
    (rate.bytes_per_second() as f64, seen / f64::from(flows))
}

/// A line whose writes of 1024 bytes go in frames of 1000 and 24, and connections that share it.
#[test]
fn transfers_whose_writes_do_not_fill_their_frames_and_several_at_once() {
    for protocol in ["stop-and-wait\"", "go-back-n\", frames = 4", "selective-repeat\", frames = 9"]
    {
        for (write, count) in [(1024, 1), (2500, 1), (700, 1), (1000, 3)] {
            let traffic = format!(
                "bytes = \"2MB\"\nwrite = {write}\ncount = {count}\ntransport = {{ kind = \"{protocol}, frame = 1000, timeout = \"9s\" }}"
            );
            let scenario = scenario(IDEAL, "delay = \"5ms\"", &traffic);
            let (formula, seen) = rates(&scenario);
            let off = (formula / seen - 1.0).abs();
            assert!(off < 0.01, "{protocol}, {write}, {count}: {formula} and {seen}");
        }
    }
}

/// Windows of 4 frames that take turns on a line while it has time to spare. Behind the last whole window all flows have their
/// last frames at once.
#[test]
fn flows_in_step_wait_for_each_other_behind_the_last_whole_window() {
    for (transport, frames) in [
        ("{ kind = \"go-back-n\", frame = 1000, frames = 4, timeout = \"9s\" }", 3),
        ("{ kind = \"go-back-n\", frame = 1000, frames = 4, timeout = \"9s\" }", 4),
        ("{ kind = \"selective-repeat\", frame = 1000, frames = 4, timeout = \"9s\" }", 6),
        ("{ kind = \"urp\", block = 1000, outstanding = 4 }", 7),
        ("{ kind = \"urp\", block = 1000, outstanding = 4 }", 40),
    ] {
        for count in [1, 2, 5] {
            let traffic = format!(
                "bytes = \"{frames}kB\"\nwrite = 1000\ncount = {count}\ntransport = {transport}"
            );
            let scenario = scenario(IDEAL, "delay = \"70ms\"", &traffic);
            let Figure::Time(told) = figure(&scenario, What::Transfer) else { panic!() };
            let run = trunkline_sim::run(&scenario).unwrap();
            let samples = &run.traffic("it").unwrap().samples;
            let seen = samples.iter().map(|it| it.delay()).sum::<Span>().scaled(1, count);
            let off = told.as_secs_f64() / seen.as_secs_f64() - 1.0;
            assert!(off.abs() < 0.005, "{told}, {seen}: {traffic}");
        }
    }
}

/// The second frame of two is short. Where windows in full would not find room in the queue, or the sender's own rate holds
/// frames back, the protocol's own formula is asked, which knows whole frames.
#[test]
fn a_short_last_frame_counts_and_never_costs_the_figure() {
    for (line, keys) in [
        ("delay = \"5ms\"", "kind = \"stop-and-wait\""),
        ("delay = \"5ms\"", "kind = \"go-back-n\", frames = 5"),
    ] {
        let traffic = format!("bytes = 1138\ntransport = {{ {keys}, frame = 1024 }}");
        let scenario = scenario(IDEAL, line, &traffic);
        let Figure::Time(told) = figure(&scenario, What::Transfer) else { panic!("{keys}") };
        let run = trunkline_sim::run(&scenario).unwrap();
        let seen = run.traffic("it").unwrap().samples[0].delay();
        let off = told.as_secs_f64() / seen.as_secs_f64() - 1.0;
        assert!(off.abs() < 0.01, "{keys}: {told} and {seen}");
    }
    for (line, keys) in [
        ("delay = \"5ms\"\nlimit = \"20kB\"", "kind = \"selective-repeat\", frames = 100"),
        ("delay = \"5ms\"", "kind = \"go-back-n\", frames = 5, rate = \"1Mbit/s\""),
    ] {
        let traffic = format!("bytes = 10000\ntransport = {{ {keys}, frame = 1024 }}");
        let told = figure(&scenario(IDEAL, line, &traffic), What::Transfer);
        assert!(matches!(told, Figure::Time(_)), "{keys}: {told:?}");
    }
}

/// Cells leave at the beginning of a slot only. Blocks that go round in step find each the same wait, so the formula's half a
/// slot for each may be far off: the simulated time lies in the range that is told.
#[test]
fn transfers_that_meet_slots_in_step_are_told_to() {
    for (delay, keys, write) in
        [("3.026", "\"stop-and-wait\"", 1024), ("7.31", "\"go-back-n\", frames = 2", 300)]
    {
        let line = format!("delay = \"{delay}ms\"\nframing = \"atm-aal5\"");
        let transfer = format!(
            "bytes = \"50000B\"\nwrite = {write}\ntransport = {{ kind = {keys}, frame = 500, timeout = \"9s\" }}"
        );
        let scenario = scenario(IDEAL, &line, &transfer);
        let notes = told(&predictions(&scenario).unwrap());
        let text = "taken as half a slot each: the time of a transfer is between ";
        let (_, range) = notes.split_once(text).unwrap_or_else(|| panic!("{notes}"));
        let (least, most) = range.lines().next().unwrap().split_once(" and ").unwrap();
        let [least, most]: [Span; 2] = [least, most].map(|it| it.parse().unwrap());
        let seen = trunkline_sim::run(&scenario).unwrap().traffic("it").unwrap().samples[0].delay();
        assert!(least < most && least <= seen && seen <= most, "{seen}: {notes}");
    }
}

/// Answers that take longer on the way back than frames on the way there queue, and the reply waits behind them: 50 of 64 bits
/// each over 10 kbit/s are 320 ms, then 7.2 ms the reply and 2 ms the distance.
#[test]
fn answers_queue_on_a_slow_way_back() {
    for (transport, size) in [
        ("{ kind = \"go-back-n\", frames = 50, frame = 10 }", 500),
        ("{ kind = \"selective-repeat\", frames = 8, frame = 100, timeout = \"99s\" }", 3000),
        ("{ kind = \"urp\", block = 100, outstanding = 7 }", 700),
        ("{ kind = \"urp\", block = 100, outstanding = 3 }", 900),
    ] {
        let line = "delay = \"1ms\"\nbackward = { rate = \"10kbit/s\" }";
        let traffic = format!("sizes = [{size}]\nreply = 1\ntransport = {transport}");
        agree(&scenario(IDEAL, line, &traffic), 0.01);
    }
}
