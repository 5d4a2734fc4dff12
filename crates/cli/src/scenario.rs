//! What the verbs that read a scenario file have in common.

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use trunkline_batch::BatchError;
use trunkline_report::{Destination, ReportError};
use trunkline_scenario::Scenario;

/// Which file.
#[derive(Debug, Clone, clap::Args)]
pub struct FileArgs {
    /// The scenario file (docs/scenario.md)
    #[arg(value_name = "SCENARIO.TOML")]
    pub file: PathBuf,
}

impl FileArgs {
    /// The cells of the file's grid, and its text.
    pub fn read(&self) -> Result<(Vec<Scenario>, String), Failure> {
        Scenario::read_with_text(&self.file).map_err(Failure::wrong_use)
    }

    /// What the engines found wrong with the file.
    pub fn refused(&self, error: &BatchError) -> Failure {
        Failure::wrong_use(format!("{}: {error}", self.file.display()))
    }
}

/// How many runs are made at once.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ThreadsArgs {
    /// Runs made at once; the results are the same for any number [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

impl ThreadsArgs {
    /// As asked for, else one for each processor.
    pub fn number(self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.map_or_else(processors, usize::from)
    }
}

/// Where results are written.
#[derive(Debug, Clone, clap::Args)]
pub struct OutArgs {
    /// Write a page, charts, CSV files and run.json into DIR (docs/results.md)
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the results that DIR holds
    #[arg(long, requires = "out")]
    pub force: bool,
}

impl OutArgs {
    /// A place for results at `target`, held from now on.
    pub fn reserve(&self, target: &Path) -> Result<Destination, Failure> {
        Destination::reserve(target, self.force).map_err(unwritten)
    }
}

/// A directory badly chosen is wrong use; one that cannot be written is a failure.
pub fn unwritten(error: ReportError) -> Failure {
    match error.is_wrong_use() {
        true => Failure::wrong_use(error),
        false => Failure::failed(error),
    }
}

/// What is worth keeping beside the figures: they do not depend on it.
pub fn facts() -> Vec<(String, String)> {
    let words: Vec<String> = std::env::args().collect();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (system, kind) = (std::env::consts::OS, std::env::consts::ARCH);
    let facts = [
        ("command", words.join(" ")),
        ("machine", format!("{system}, {kind}, {processors} processors")),
    ];
    facts.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}
