//! Bodies for what people write: settings, scenarios, studies.

use super::assert_one_line;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trunkline_engine::{Engine, EngineError, EngineName, Pace, Run, SharedEngine};
use trunkline_scenario::{Files, Network, Scenario, Settings};
use trunkline_study::{Library, Makers, Source, StudyError, run_sources};

/// The files that there are, whatever the machine has.
#[derive(Debug)]
struct KnownFiles;

impl Files for KnownFiles {
    fn text(&self, path: &str) -> Result<String, String> {
        FILES
            .iter()
            .find(|(name, _)| *name == path)
            .map(|(_, text)| (*text).into())
            .ok_or_else(|| format!("cannot read '{}': there is none", path.escape_default()))
    }
}

/// One of each kind, and one that is of none.
const FILES: [(&str, &str); 4] = [
    ("line", "1\n1\n2\n5\n"),
    ("lost", "0 0 1 0\n"),
    ("steps", "0s delay=1ms; 5s loss=trace:lost; repeat 9s"),
    ("none", ""),
];

/// A path's settings, one on each line, and the same as a live change.
pub fn read_settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut settings = Settings::default();
    for line in text.lines() {
        if let Err(error) = settings.add_pair(line) {
            return assert_one_line("", &error.to_string());
        }
    }
    let resolved = settings.resolve_with(&KnownFiles);
    if let Err(error) = &resolved {
        assert_one_line("", &error.to_string());
    }
    let mut running = Settings::default().resolve().expect("a path without settings");
    let before = running.clone();
    if running.change_with(&settings, &KnownFiles).is_err() {
        assert_eq!(running, before, "refused, but changed");
    }
}

/// A scenario file: whatever is accepted has ways for all its traffic and links that can be built.
pub fn read_scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let cells = match Scenario::parse_with(text, "fuzz.toml", &KnownFiles) {
        Ok(cells) => cells,
        Err(error) => {
            let complaint = error.to_string();
            assert!(complaint.starts_with("fuzz.toml:"), "{complaint}");
            return assert_one_line("", &complaint);
        }
    };
    hold_together(&cells);
}

/// Scenarios of which lines are taken.
const TAKEN: [&str; 14] = [
    include_str!("../../examples/two-hops.toml"),
    include_str!("../../examples/asymmetric-access.toml"),
    include_str!("../../examples/cluster.toml"),
    include_str!("../../examples/ethernet.toml"),
    include_str!("../../examples/host-interface.toml"),
    include_str!("../../examples/incast-careful.toml"),
    include_str!("../../examples/lossy-link.toml"),
    include_str!("../../examples/low-latency.toml"),
    include_str!("../../examples/many-queues.toml"),
    include_str!("../../examples/netblt.toml"),
    include_str!("../../examples/textbook.toml"),
    include_str!("../../examples/token-ring.toml"),
    include_str!("../../examples/windows.toml"),
    include_str!("../../examples/xunet-small-window.toml"),
];
/// Changes of a file at most.
const MOST_CHANGES: usize = 12;

/// A scenario of the examples of which lines, or values of keys, are put in other places: of octets changed one by one most are
/// no TOML. The first octet chooses the scenario, and each five after it a change.
pub fn edit_scenario(data: &[u8]) {
    let Some((&first, changes)) = data.split_first() else { return };
    let lines_of = |text: &'static str| {
        let bare = |line: &'static str| line.split(" #").next().map(str::trim_end);
        let told = |line: &&str| !line.is_empty() && !line.starts_with('#');
        text.lines().filter_map(bare).filter(told).map(String::from).collect::<Vec<_>>()
    };
    let all: Vec<String> = TAKEN.into_iter().flat_map(lines_of).collect();
    let mut lines = lines_of(TAKEN[usize::from(first) % TAKEN.len()]);
    for change in changes.chunks_exact(5).take(MOST_CHANGES) {
        let at = usize::from(change[1]) % lines.len();
        let of = &all[usize::from(u16::from_be_bytes([change[2], change[3]])) % all.len()];
        match change[0] % 6 {
            0 => lines[at] = of.clone(),
            1 => lines.insert(at, of.clone()),
            2 if lines.len() > 1 => drop(lines.remove(at)),
            3 => lines.extend(of_element(&all, of)),
            4 => lines[at] = with_value(&lines[at], of),
            _ => lines[at] = with_digit(&lines[at], change[4]),
        }
    }
    read_scenario(lines.join("\n").as_bytes());
}

/// A line and those behind it up to the next table.
fn of_element(all: &[String], first: &String) -> Vec<String> {
    let rest = all.iter().skip_while(|line| *line != first);
    rest.enumerate()
        .take_while(|(at, it)| *at == 0 || !it.starts_with('['))
        .map(|it| it.1.clone())
        .collect()
}

/// A line with the value of another.
fn with_value(line: &str, other: &str) -> String {
    match (line.split_once('='), other.split_once('=')) {
        (Some((key, _)), Some((_, value))) => format!("{key}={value}"),
        _ => line.into(),
    }
}

/// A line with another first digit.
fn with_digit(line: &str, choice: u8) -> String {
    let digit = char::from(b'0' + choice % 10);
    match line.find(|it: char| it.is_ascii_digit()) {
        Some(at) => format!("{}{digit}{}", &line[..at], &line[at + usize::from(choice < 128)..]),
        None => line.into(),
    }
}

/// Cells have ways for all their traffic, links that can be built, and coordinates of their own.
fn hold_together(cells: &[Scenario]) {
    assert!(!cells.is_empty());
    for cell in cells {
        Network::of(cell).expect("the traffic of an accepted file has ways");
        cell.remarks().iter().for_each(|it| assert_one_line("", &it.to_string()));
        for link in &cell.links {
            link.forward.check().and(link.backward.check()).expect("links can be built");
        }
    }
    let names: BTreeMap<_, _> = cells.iter().map(|cell| (&cell.cell, ())).collect();
    assert_eq!(names.len(), cells.len(), "no cell twice");
}

/// A scenario and a published table for studies to name.
const SCENARIO: &str = "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nname = 't1'\n\
    between = ['a', 'b']\nrate = ['1Mbit/s', '2Mbit/s']\n[[traffic]]\nname = 'echo'\n\
    kind = 'interactive'\nfrom = 'a'\nto = 'b'\nsizes = [1, 64]\nrepeat = 30\n";
const TABLE: &str = "rate,size,delay_ms,suspect,note\nslow,1,3.8,0,\nslow,64,4.4,0,\n\
    fast,1,3.8,1,smudged\nfast,64,9.9,0,\n";

/// An engine that refuses every cell.
#[derive(Debug)]
struct Refusing(EngineName);

impl Engine for Refusing {
    fn name(&self) -> EngineName {
        self.0
    }

    fn pace(&self) -> Pace {
        Pace::Virtual
    }

    fn run(&self, _: &Network<'_>, _: &(dyn Fn(&str) + Sync)) -> Result<Run, EngineError> {
        Err(EngineError::Refused("refused".into()))
    }
}

/// Opens a study with the files that there are.
pub fn open_study(text: &str) -> Result<Source, StudyError> {
    let others = FILES.into_iter().chain([("scenario.toml", SCENARIO), ("published.csv", TABLE)]);
    let files = others.chain([("study.toml", text)]);
    let texts = files.map(|(name, text)| (name.into(), text.into())).collect();
    Source::read(Library::Texts(texts))
}

/// A `study.toml` with the files that it names: whatever is accepted can be run by engines that refuse every
/// cell, and each refusal is told.
pub fn read_study(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = match open_study(text) {
        Ok(source) => source,
        Err(error) => return assert_one_line("", &error.to_string()),
    };
    source.scenarios().for_each(|(_, file)| hold_together(&file.cells));
    let names: BTreeSet<_> = source.study.experiment.iter().map(|one| &one.name).collect();
    assert_eq!(names.len(), source.study.experiment.len(), "no experiment twice");
    let tables = names.len();
    let refusing =
        source.engines().into_iter().map(|name| Arc::new(Refusing(name)) as SharedEngine);
    let engines: Vec<SharedEngine> = refusing.collect();
    let makers = Makers { engines: &engines, verify: &|_| Err("refused".into()) };
    match run_sources(&[source], &makers, 1, &|_| {}) {
        Ok(results) => results.iter().for_each(|result| {
            assert!(!result.failures.is_empty() || result.runs == 0, "a refusal is told");
            assert_eq!(result.experiments.len(), tables, "every table is there");
            assert!(!result.summary().is_empty());
        }),
        Err(error) => assert_one_line("", &error.to_string()),
    }
}
