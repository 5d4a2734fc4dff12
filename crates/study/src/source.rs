//! An opened study: its description with the files that it names, all checked.

use crate::check;
use crate::error::StudyError;
use crate::format::{Experiment, Measure, Study, Variant};
use crate::keypath;
use crate::library::Library;
use crate::table::Published;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use toml::Value;
use trunkline_engine::EngineName;
use trunkline_measure::Keep;
use trunkline_scenario::{Scenario, ScenarioError};

/// A scenario file with its shared tables, read: its cells and its values.
#[derive(Debug, Clone)]
pub struct ScenarioFile {
    /// One scenario for each cell of the grid.
    pub cells: Vec<Scenario>,
    /// The file's values.
    pub values: Value,
}

/// A study and its files.
#[derive(Debug, Clone)]
pub struct Source {
    /// What `study.toml` says.
    pub study: Study,
    library: Library,
    /// Scenario files by name and variant.
    scenarios: BTreeMap<(String, Option<String>), Arc<ScenarioFile>>,
    /// Published tables by file name.
    published: BTreeMap<String, Published>,
}

impl Source {
    /// Opens and checks the study called `name`, or the one in the directory `name`.
    ///
    /// # Errors
    /// The first thing that is wrong with it, in one line.
    pub fn open(name: &str) -> Result<Source, StudyError> {
        Source::read(Library::open(name)?)
    }

    /// Reads and checks the study of a library.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn read(library: Library) -> Result<Source, StudyError> {
        let study: Study = toml::from_str(&library.study()?).map_err(|error| {
            let place = error.span().map(|span| line(&library, span.start)).unwrap_or_default();
            StudyError::file("study.toml", format!("{place}{}", error.message()))
        })?;
        let mut source =
            Source { study, library, scenarios: BTreeMap::new(), published: BTreeMap::new() };
        check::names(&source.study)?;
        source.read_scenarios()?;
        source.read_published()?;
        check::source(&source)?;
        Ok(source)
    }

    /// The complete text of a scenario file: itself, then the tables that it shares with others.
    ///
    /// # Errors
    /// If a file is not there.
    pub fn scenario_text(&self, file: &str) -> Result<String, StudyError> {
        let mut text = self.library.text(file)?.into_owned();
        for shared in &self.study.shared {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            text.push_str(&format!("{end}# {shared}\n"));
            text.push_str(&self.library.text(shared)?);
        }
        Ok(text)
    }

    /// The engines that its experiments ask for.
    pub fn engines(&self) -> BTreeSet<EngineName> {
        let formula = |one: &Experiment| matches!(one.measure, Measure::Formula { .. });
        let run = self.study.experiment.iter().filter(|one| !formula(one));
        run.flat_map(|one| one.resolved()).map(|part| part.engine()).collect()
    }

    /// The values of any TOML file of the study, without what it shares.
    ///
    /// # Errors
    /// If it is not there or not TOML.
    pub fn values(&self, file: &str) -> Result<Value, StudyError> {
        let text = self.library.text(file)?;
        let table = text
            .parse()
            .map_err(|error: toml::de::Error| StudyError::file(file, error.message()))?;
        Ok(Value::Table(table))
    }

    /// A scenario file in a variant.
    pub fn scenario(&self, file: &str, variant: Option<&str>) -> Option<&Arc<ScenarioFile>> {
        self.scenarios.get(&(file.into(), variant.map(String::from)))
    }

    /// Every scenario file that an experiment uses, with its variant.
    pub fn scenarios(
        &self,
    ) -> impl Iterator<Item = (&(String, Option<String>), &Arc<ScenarioFile>)> {
        self.scenarios.iter()
    }

    /// A published table.
    pub fn published(&self, file: &str) -> Option<&Published> {
        self.published.get(file)
    }

    fn read_scenarios(&mut self) -> Result<(), StudyError> {
        let used: Vec<(String, Option<String>)> = self
            .study
            .experiment
            .iter()
            .flat_map(|experiment| experiment.resolved())
            .filter_map(|part| Some((part.scenario?, part.variant)))
            .collect();
        for (file, variant) in used {
            if !self.scenarios.contains_key(&(file.clone(), variant.clone())) {
                let read = self.read_scenario(&file, variant.as_deref())?;
                self.scenarios.insert((file, variant), Arc::new(read));
            }
        }
        Ok(())
    }

    fn read_scenario(&self, file: &str, variant: Option<&str>) -> Result<ScenarioFile, StudyError> {
        let mut text = self.scenario_text(file)?;
        let parse = |text: &str| {
            let table: Result<toml::Table, _> = text.parse();
            table.map(Value::Table).map_err(|error| StudyError::file(file, error.message()))
        };
        let mut values = parse(&text)?;
        if let Some(name) = variant {
            let known = self.study.variant.iter().find(|variant| variant.name == name);
            let variant = known.ok_or_else(|| {
                StudyError::wrong(format!("variant {name}"), "there is none of this name: add it")
            })?;
            change(&mut values, variant, file)?;
            text = toml::to_string(&values)
                .map_err(|error| StudyError::file(file, error.to_string()))?;
        }
        let mut cells =
            Scenario::parse_with(&text, file, &self.library).map_err(|error| match variant {
                // A changed text is written anew: its lines are not those of a file.
                Some(name) => StudyError::wrong(format!("variant {name}"), error.to_string()),
                None => self.located(file, error),
            })?;
        // The reports' rules look at all measurements, however many there are.
        cells.iter_mut().for_each(|cell| cell.samples = Keep::All);
        Ok(ScenarioFile { cells, values })
    }

    /// The error at its place: a line after the scenario's own is one of a shared file.
    fn located(&self, file: &str, error: ScenarioError) -> StudyError {
        let mut at = match error {
            ScenarioError::Wrong { line, .. } | ScenarioError::Syntax { line, .. } => line,
            ref other => return StudyError::Scenario(other.to_string()),
        };
        let mut place = file;
        for shared in &self.study.shared {
            // A comment line with the shared file's name stands between them.
            let own = self.library.text(place).map_or(0, |text| text.lines().count()) + 1;
            if at <= own {
                break;
            }
            (place, at) = (shared, at - own);
        }
        StudyError::Scenario(match error {
            ScenarioError::Wrong { key, problem, .. } => format!("{place}:{at}: {key}: {problem}"),
            ScenarioError::Syntax { problem, .. } => {
                format!("{place}:{at}: {problem}")
            }
            other => other.to_string(),
        })
    }

    fn read_published(&mut self) -> Result<(), StudyError> {
        let tables =
            self.study.experiment.iter().filter_map(|experiment| experiment.published.clone());
        let files: Vec<String> =
            tables.chain(self.study.quote.iter().map(|quote| quote.file.clone())).collect();
        for file in files {
            let table = Published::read(&self.library.text(&file)?);
            self.published
                .insert(file.clone(), table.map_err(|error| StudyError::file(&file, error))?);
        }
        Ok(())
    }
}

/// Which line of `study.toml` the byte at `offset` is in, as the beginning of a complaint.
fn line(library: &Library, offset: usize) -> String {
    let text = library.study().unwrap_or_default();
    let before = text.bytes().take(offset).filter(|&byte| byte == b'\n').count();
    format!("line {}: ", before + 1)
}

fn change(values: &mut Value, variant: &Variant, file: &str) -> Result<(), StudyError> {
    for (path, new) in &variant.set {
        if !keypath::set(values, path, new) {
            let problem = format!("{file} has no place {path}: name a table that is there");
            return Err(StudyError::wrong(format!("variant {}", variant.name), problem));
        }
    }
    Ok(())
}
