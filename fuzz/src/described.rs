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

/// Cells have ways for all their traffic, links that can be built, and coordinates of their own.
fn hold_together(cells: &[Scenario]) {
    assert!(!cells.is_empty());
    for cell in cells {
        Network::of(cell).expect("the traffic of an accepted file has ways");
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
