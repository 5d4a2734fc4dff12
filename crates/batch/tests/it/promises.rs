//! Checks that the engines find what the examples promise in their comments.
//!
//! A comment that claims a figure has an expectation beside it:
//!
//! ```text
//! # expect TRAFFIC, KEY=VALUE, …, SIZE B: FIGURE [in all] [within PERCENT %] [simulated]
//! ```
//!
//! `KEY=VALUE` picks cells of the grid by the end of a coordinate's key, `SIZE B` one of several message sizes. The
//! figure is a rate of one flow (`B/s`, `kB/s`), of all with `in all`, a median delay (`ms`), or a share of
//! packets that are lost (`%`). The simulator and the formulas have to agree with it, within 5 % unless the line
//! says otherwise; `simulated` leaves the formulas out. Every other number in a comment or in `about` has to be a
//! number of the file, of an expectation, or of a source, whose line names its section (§).

use std::collections::BTreeSet;
use std::path::PathBuf;
use trunkline_batch::make;
use trunkline_engine::{Engine, EngineName, Run};
use trunkline_measure::{Estimator, Quantity};
use trunkline_model::Formulas;
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

/// The tolerance of a line that names none.
const WITHIN: f64 = 5.0;

/// A figure that a comment promises.
#[derive(Debug)]
struct Expectation {
    line: String,
    traffic: String,
    cell: Vec<(String, String)>,
    size: Option<u64>,
    value: f64,
    what: What,
    within: f64,
    engines: Vec<EngineName>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    /// Bytes a second of a flow, or of all.
    Rate { all: bool },
    /// Milliseconds.
    Delay,
    /// Per cent of the packets.
    Lost,
}

fn bad(line: &str, why: &str) -> ! {
    panic!("'{line}': {why}")
}

fn expectation(line: &str) -> Expectation {
    let Some((left, right)) = line.split_once(':') else { bad(line, "no colon") };
    let mut parts = left.split(',').map(str::trim);
    let traffic = parts.next().unwrap_or_default().to_string();
    let (mut cell, mut size) = (Vec::new(), None);
    for part in parts {
        match (part.split_once('='), part.strip_suffix(" B")) {
            (Some((key, value)), _) => cell.push((key.to_string(), value.to_string())),
            (None, Some(bytes)) => size = bytes.parse().ok(),
            (None, None) => bad(line, "neither KEY=VALUE nor SIZE B"),
        }
    }
    let mut words = right.split_whitespace();
    let Some(value) = words.next().and_then(|word| word.parse::<f64>().ok()) else {
        bad(line, "no figure")
    };
    let (scale, mut what) = match words.next() {
        Some("B/s") => (1.0, What::Rate { all: false }),
        Some("kB/s") => (1e3, What::Rate { all: false }),
        Some("ms") => (1.0, What::Delay),
        Some("%") => (1.0, What::Lost),
        _ => bad(line, "no unit"),
    };
    let (mut within, mut engines) = (WITHIN, vec![EngineName::SIM, EngineName::MODEL]);
    while let Some(word) = words.next() {
        match word {
            "in" if words.next() == Some("all") => what = What::Rate { all: true },
            "within" => within = words.next().and_then(|it| it.parse().ok()).unwrap_or(0.0),
            "%" => {}
            "simulated" => engines = vec![EngineName::SIM],
            _ => bad(line, "a word without a meaning"),
        }
    }
    let line = line.to_string();
    Expectation { line, traffic, cell, size, value: value * scale, what, within, engines }
}

fn made_by(engine: EngineName) -> &'static dyn Engine {
    if engine == EngineName::SIM { &Simulator } else { &Formulas }
}

impl Expectation {
    fn is_of(&self, scenario: &Scenario) -> bool {
        self.cell.iter().all(|(key, value)| {
            let ending = format!(".{key}");
            scenario
                .cell
                .iter()
                .any(|(own, found)| (own == key || own.ends_with(&ending)) && found == value)
        })
    }

    fn found(&self, run: &Run) -> Option<f64> {
        let traffic = run.traffic(&self.traffic)?;
        let size = self.size.or_else(|| traffic.sizes().first().copied())?;
        match self.what {
            What::Delay => Some(traffic.estimate(size, Quantity::Delay, Estimator::MEDIAN)?.value),
            What::Rate { all } => {
                let rate = traffic.throughput(size, Estimator::MEDIAN)?;
                Some(if all { rate.sum } else { rate.per_conversation })
            }
            What::Lost => {
                Some(traffic.packets.dropped as f64 / traffic.packets.sent as f64 * 100.0)
            }
        }
    }

    fn check(&self, file: &str, cells: &[Scenario]) {
        let own: Vec<&Scenario> = cells.iter().filter(|cell| self.is_of(cell)).collect();
        assert!(!own.is_empty(), "{file}: '{}' is of no cell", self.line);
        for cell in own {
            for &engine in &self.engines {
                let found = self.found(&make(made_by(engine), cell).unwrap());
                let found =
                    found.unwrap_or_else(|| panic!("{file}: '{}': {engine:?} has none", self.line));
                let off = (found / self.value - 1.0).abs() * 100.0;
                assert!(off <= self.within, "{file}: '{}': {engine:?} finds {found}", self.line);
            }
        }
    }
}

fn files() -> Vec<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let all = [folder.to_string(), format!("{folder}/ladder")].into_iter().flat_map(|folder| {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    });
    let mut files: Vec<PathBuf> =
        all.filter(|file| file.extension().is_some_and(|it| it == "toml")).collect();
    files.sort();
    assert!(files.len() > 30);
    files
}

/// The comment of a line, without those in texts.
fn comment(line: &str) -> Option<&str> {
    let mut within = false;
    let at = line.char_indices().find(|&(_, c)| {
        within ^= c == '"';
        c == '#' && !within
    });
    at.map(|(at, _)| &line[at + 1..])
}

fn promises(text: &str) -> Vec<Expectation> {
    let comments = text.lines().filter_map(comment);
    comments.filter_map(|it| it.trim().strip_prefix("expect ")).map(expectation).collect()
}

/// Numbers as they are written, but not those that belong to a name, such as T1.
fn numbers(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let part = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
    for word in text.split(|c| !part(c)) {
        let digits: String = word.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        let digits = digits.trim_end_matches('.');
        if digits.starts_with(|c: char| c.is_ascii_digit()) {
            found.push(digits.to_string());
        }
    }
    found
}

/// The numbers that a comment or `about` claims and nothing stands for.
fn unfounded(text: &str) -> Vec<String> {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for line in text.lines() {
        let rest = comment(line).unwrap_or_default();
        let own = &line[..line.len() - rest.len()];
        if !own.starts_with("about") {
            known.extend(numbers(own));
        }
        if rest.trim().starts_with("expect ") {
            known.extend(numbers(rest));
        }
    }
    let told = text.lines().filter_map(|line| match line.starts_with("about") {
        true => Some(line),
        false => comment(line),
    });
    let mut wrong = Vec::new();
    for line in told.filter(|line| !line.contains('§')) {
        // A report is named by its author and its year.
        let named = ["Hawley 1989", "Vande Water 1988"]
            .iter()
            .fold(line.to_string(), |line, it| line.replace(it, ""));
        wrong.extend(numbers(&named).into_iter().filter(|it| !known.contains(it)));
    }
    wrong
}

#[test]
fn every_promise_is_kept() {
    let mut kept = 0;
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let cells = Scenario::read(&file).unwrap();
        for promise in promises(&text) {
            promise.check(&file.display().to_string(), &cells);
            kept += 1;
        }
    }
    assert!(kept >= 6, "{kept}");
}

#[test]
fn no_number_of_a_comment_stands_for_itself() {
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let wrong = unfounded(&text);
        assert!(
            wrong.is_empty(),
            "{}: {wrong:?} in a comment is neither a value of the file nor of a line '# expect'",
            file.display()
        );
    }
}

/// Checks what the files say: no key is capped by another or does nothing.
#[test]
fn every_key_of_an_example_has_its_effect() {
    for file in files() {
        for cell in Scenario::read(&file).unwrap() {
            assert_eq!(cell.remarks(), [], "{}", file.display());
        }
    }
}

#[test]
fn a_claim_without_an_expectation_is_found() {
    let text = "about = \"A hop of 600 ms\"\ndelay = \"300ms\" # 300 ms one way\n# it gets 47 kB/s (T1, §3 99)\n";
    assert_eq!(unfounded(text), ["600"]);
    let text =
        "# it gets 47 kB/s of 125\n# expect file, block=4096: 47 kB/s within 3 % simulated\n";
    assert_eq!(unfounded(text), ["125"]);
    let found = &promises(text)[0];
    assert_eq!((found.value, found.within, found.what), (47e3, 3.0, What::Rate { all: false }));
    assert_eq!((found.cell.len(), &found.engines[..]), (1, &[EngineName::SIM][..]));
}
