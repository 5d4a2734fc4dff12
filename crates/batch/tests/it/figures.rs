//! The rule by which each cell's measurements become a figure.

use std::sync::Arc;
use trunkline_batch::Batch;
use trunkline_report::{answer, figures, terminal};
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

/// The table of a link of 5 ms and 10 Mbit/s with `traffic`, simulated.
fn simulated(traffic: &str) -> trunkline_report::Report {
    let text = format!(
        "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\n\
         rate = '10Mbit/s'\ndelay = '5ms'\njitter = '1ms'\n\
         [[traffic]]\nname = 't'\nfrom = 'a'\nto = 'b'\n{traffic}\n"
    );
    let cells = Scenario::parse(&text, "rules.toml").unwrap();
    let batch = Batch { cells, engines: vec![Arc::new(Simulator)], threads: 1 };
    batch.run(&|_| ()).unwrap().report
}

/// The line of `table` with all of `words`.
fn line<'a>(table: &'a str, words: &[&str]) -> &'a str {
    let found = table.lines().find(|line| words.iter().all(|word| line.contains(word)));
    found.unwrap_or_else(|| panic!("no line with {words:?} in\n{table}"))
}

#[test]
fn each_cell_has_the_rule_that_it_asks_for() {
    let report = simulated(
        "kind = 'paced'\nsize = 1000\nrate = '2Mbit/s'\nduration = '2s'\nestimator = ['minimum', 'median', 'p99']",
    );
    let table = terminal(&report);
    line(&table, &["minimum", "1000 B: minimum"]);
    line(&table, &["1000 B: p99"]);
    // 0.8 ms on the line and 5 ms of distance in the middle.
    let middle = line(&table, &["1000 B: median"]);
    assert!(middle.contains("5.7") || middle.contains("5.8"), "{table}");
    let found = figures(&report);
    let chart = found.iter().find(|it| it.title.starts_with("t: delay")).unwrap();
    assert!(!chart.title.contains("p99"), "one rule for all: {}", chart.title);
    let sentence = answer(&report).join(" ");
    assert!(sentence.starts_with("t: delay from"), "{sentence}");
}

#[test]
fn each_cell_has_the_figure_of_its_kind() {
    let kinds = "sizes = [100]\nduration = '1s'\ntransport = 'urp'";
    for order in ["'timed-transfer', 'timed-echo'", "'timed-echo', 'timed-transfer'"] {
        let table = terminal(&simulated(&format!("kind = [{order}]\n{kinds}")));
        line(&table, &["timed-transfer", "100 B: mean"]);
        line(&table, &["timed-echo", "100 B: median"]);
    }
}

#[test]
fn an_empty_file_has_a_time_and_no_rate() {
    let report = simulated("kind = 'push'\nbytes = [0, 10000]\nwrite = 1000\ntransport = 'urp'");
    let table = terminal(&report);
    assert!(line(&table, &["0 B: median"]).contains("ms"), "{table}");
    assert!(line(&table, &["10000 B: median per flow"]).contains("bit/s"), "{table}");
    assert!(!table.contains("each interval"), "{table}");
}
