//! Transfers of a few segments over TCP, in writes of any size, against the simulator.

use crate::media::nanos;
use trunkline_model::{What, predictions};
use trunkline_scenario::Scenario;

fn transfer(
    (profile, bytes, write): (&str, u32, u32),
    (rate, delay): (u64, u32),
    more: &str,
) -> Scenario {
    let line = format!("{{ rate = \"{rate}bit/s\", delay = \"{delay}us\", limit = \"1MB\" }}");
    let text = format!(
        "stop_after = \"10min\"\nhost = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n[[link]]\nbetween = [\"a\", \"b\"]\nforward = {line}\nbackward = {line}\n[[traffic]]\nname = \"t\"\nkind = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nbytes = \"{bytes}B\"\nwrite = {write}\ntransport = {{ kind = \"tcp\", profile = \"{profile}\"{more} }}\n"
    );
    let cells = Scenario::parse(&text, "small.toml");
    cells.unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0)
}

/// A profile whose first window has room for one segment: its acknowledgement comes with the receiver's clock, and a note tells
/// the range.
#[test]
fn the_first_acknowledgement_of_a_ticking_clock_is_told() {
    for (bytes, write) in [(2000, 4096), (4000, 4096), (20_000, 4096), (100_000, 1460)] {
        for line in [(1_544_000, 1000), (10_000_000, 100)] {
            let scenario = transfer(("bsd-reno", bytes, write), line, "");
            let (formula, seen) = both(&scenario);
            let notes = predictions(&scenario).unwrap().notes;
            assert!(notes.iter().any(|note| note.text.contains("100ms less or more")), "{notes:?}");
            let off = (formula - seen).abs();
            assert!(off < 0.1 + 0.05 * seen, "{bytes} in {write} over {line:?}: {formula} {seen}");
        }
    }
}

/// A test of a second or two: what the host holds at its end decides, or the window has not grown yet. The mean is as told, or
/// in the range of a note.
#[test]
fn short_tests_are_in_the_range_told() {
    let mut told = 0;
    for profile in ["trunkline", "linux"] {
        for write in [200, 1448, 4096] {
            for (rate, delay, lines) in [
                (1_544_000, 1000, 1),
                (1_544_000, 1000, 2),
                (10_000_000, 10, 2),
                (10_000_000, 10_000, 2),
            ] {
                for seconds in [1, 2, 20] {
                    let scenario = test((profile, write, seconds), (rate, delay), lines);
                    let found = predictions(&scenario).unwrap();
                    let figure = found.list.iter().find(|it| it.what == What::Interval).unwrap();
                    let formula = figure.value.time().unwrap().as_secs_f64();
                    let run = trunkline_sim::run(&scenario).unwrap();
                    let writes = run.traffic[0].samples.iter().count();
                    let seen = f64::from(seconds) / writes as f64;
                    let ends = found.notes.iter().find_map(|note| {
                        let (_, rest) = note.text.split_once("writes take between ")?;
                        let mut ends = rest
                            .split(' ')
                            .filter(|it| it.starts_with(|it: char| it.is_ascii_digit()));
                        Some([nanos(ends.next()?), nanos(ends.next()?)])
                    });
                    told += usize::from(ends.is_some());
                    let covered = ends.is_some_and(|[least, most]| {
                        least <= seen * 1.03e9 && seen * 0.97e9 <= most
                    });
                    let case = format!(
                        "{profile} {write} {seconds} s over {lines} of {rate}: {formula} {seen} {ends:?}"
                    );
                    assert!(covered || (formula / seen - 1.0).abs() < 0.03, "{case}");
                }
            }
        }
    }
    assert!(told > 20, "{told}");
}

fn test(
    (profile, write, seconds): (&str, u32, u32),
    (rate, delay): (u64, u32),
    lines: u32,
) -> Scenario {
    let line = format!("{{ rate = \"{rate}bit/s\", delay = \"{delay}us\", limit = \"64KiB\" }}");
    let nodes = ["a", "n", "b"];
    let ends = if lines == 1 { vec![["a", "b"]] } else { vec![["a", "n"], ["n", "b"]] };
    let links: String = ends
        .iter()
        .map(|[from, to]| {
            format!(
                "[[link]]\nbetween = [\"{from}\", \"{to}\"]\nforward = {line}\nbackward = {line}\n"
            )
        })
        .collect();
    let node =
        if lines == 1 { String::new() } else { format!("[[node]]\nname = \"{}\"\n", nodes[1]) };
    let text = format!(
        "samples = \"all\"\nhost = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n{node}{links}[[traffic]]\nname = \"t\"\nkind = \"timed-transfer\"\nfrom = \"a\"\nto = \"b\"\nsizes = [{write}]\nduration = \"{seconds}s\"\ntransport = {{ kind = \"tcp\", profile = \"{profile}\" }}\n"
    );
    let cells = Scenario::parse(&text, "short.toml");
    cells.unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0)
}

/// The formula's time and the simulator's, in seconds.
fn both(scenario: &Scenario) -> (f64, f64) {
    let found = predictions(scenario).unwrap();
    let figure = found.list.iter().find(|it| it.what == What::Transfer);
    let formula = figure.unwrap_or_else(|| panic!("{:?}", found.notes)).value.time().unwrap();
    let run = trunkline_sim::run(scenario).unwrap();
    let sample = run.traffic[0].samples.iter().next().expect("it ends");
    (formula.as_secs_f64(), sample.end.since(sample.start).as_secs_f64())
}

/// As long as the first window has room each write is a segment with a header of its own: 4000 bytes in writes of 200 have 20,
/// not 3. What has to wait is gathered.
#[test]
fn writes_are_not_gathered_before_the_window_is_full() {
    for profile in ["trunkline", "linux"] {
        for (bytes, write) in [
            (1000, 200),
            (2000, 100),
            (4000, 200),
            (4000, 1000),
            (4000, 2000),
            (14_000, 700),
            (20_000, 200),
            (20_000, 1000),
            (100_000, 200),
            (60_000, 2000),
        ] {
            for line in [(1_544_000, 100), (1_544_000, 10_000), (10_000_000, 1_000)] {
                let (formula, seen) = both(&transfer((profile, bytes, write), line, ""));
                let off = (formula / seen - 1.0).abs();
                let bound = if bytes <= 14_480 { 0.002 } else { 0.03 };
                assert!(
                    off < bound,
                    "{profile} {bytes} in {write} over {line:?}: {formula} {seen}"
                );
            }
        }
    }
}

/// A window of one segment waits for the acknowledgement that the receiver holds back.
#[test]
fn a_segment_that_is_alone_waits_for_the_receiver() {
    for (bytes, write) in [(2000, 4096), (4000, 4096), (4000, 1000), (20_000, 4096)] {
        let alone = ", initial_window = 1";
        let (formula, seen) =
            both(&transfer(("trunkline", bytes, write), (1_544_000, 1000), alone));
        let off = (formula / seen - 1.0).abs();
        assert!(off < 0.03, "{bytes} in {write}: {formula} {seen}");
    }
}
