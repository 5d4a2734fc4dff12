//! Every cell of every study in the simulator, shortened: each message's time is booked to the nanosecond, no packet is lost
//! in silence (the full runs make the same check of every run), and all figures are those that are stored.

use crate::short::{Cell, Figures, run_all};
use std::collections::BTreeMap;
use std::path::PathBuf;
use trunkline_engine::check;
use trunkline_study::{Source, names};

/// Says that the figures of this version are to be stored.
const STORE: &str = "TRUNKLINE_STORE";

/// A study's figures by cell and traffic.
type Stored = BTreeMap<(String, String), Figures>;

fn file(study: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/stored/{study}.csv"))
}

fn found(cells: &[Cell]) -> Stored {
    let of = |cell: &Cell| {
        let figures = cell.figures().unwrap_or_else(|| panic!("{}: {:?}", cell.label, cell.run));
        let label = cell.label.clone();
        figures.into_iter().map(move |(traffic, figures)| ((label.clone(), traffic), figures))
    };
    cells.iter().flat_map(of).collect()
}

fn read(study: &str) -> Stored {
    let mut reader = csv::Reader::from_path(file(study)).unwrap_or_else(|error| panic!("{error}"));
    let row = |row: csv::StringRecord| {
        let number = |at: usize| row[at].parse().unwrap();
        let [asked, count, nanos, delivered, again] = [2, 3, 4, 5, 6].map(number);
        let figures = Figures { asked, count, nanos, delivered, again };
        ((row[0].into(), row[1].into()), figures)
    };
    reader.records().map(|it| row(it.unwrap())).collect()
}

fn write(study: &str, stored: &Stored) {
    let mut writer = csv::Writer::from_path(file(study)).unwrap();
    let head = ["cell", "traffic", "asked", "count", "nanoseconds", "delivered", "again"];
    writer.write_record(head).unwrap();
    for ((cell, traffic), it) in stored {
        let numbers = [it.asked, it.count, it.nanos, it.delivered, it.again];
        let numbers = numbers.map(|it| it.to_string());
        let words = [cell, traffic].into_iter().chain(&numbers);
        writer.write_record(words).unwrap();
    }
    writer.flush().unwrap();
}

/// What differs, one line each.
fn moved(stored: &Stored, found: &Stored) -> Vec<String> {
    let gone = stored.keys().filter(|key| !found.contains_key(*key));
    let gone = gone.map(|(cell, traffic)| format!("{cell}, {traffic}: it is not there any more"));
    let differs = found.iter().filter_map(|(key, now)| {
        let (cell, traffic) = key;
        match stored.get(key) {
            None => Some(format!("{cell}, {traffic}: it is new")),
            Some(was) if !was.are(now) => Some(format!("{cell}, {traffic}: {was:?} is {now:?}")),
            Some(_) => None,
        }
    });
    gone.chain(differs).collect()
}

#[test]
fn every_message_has_its_time_booked_and_all_figures_are_as_stored() {
    let (mut samples, mut wrong) = (0, Vec::new());
    for study in names() {
        let source = Source::open(study).unwrap();
        let cells = run_all(&source);
        for (cell, run) in cells.iter().filter_map(|cell| Some((cell, cell.run.as_ref().ok()?))) {
            let faults = check(run);
            wrong.extend(faults.iter().map(|fault| format!("{study} {}: {fault}", cell.label)));
            samples += run.traffic.iter().map(|one| one.samples.len()).sum::<usize>();
        }
        let found = found(&cells);
        if std::env::var_os(STORE).is_some() {
            write(study, &found);
        }
        let moved = moved(&read(study), &found);
        wrong.extend(moved.into_iter().map(|line| format!("{study} {line}")));
    }
    let first: Vec<&String> = wrong.iter().take(10).collect();
    assert!(
        wrong.is_empty(),
        "{} cells, first {first:#?}. If the change is meant: {STORE}=1 cargo test -p trunkline-study --test it ledger, \
         and say in the commit which published cells it moves",
        wrong.len()
    );
    assert!(samples > 2000, "too few messages to mean anything");
}
