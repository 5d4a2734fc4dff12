//! The common part of the verbs that read a scenario file.

use crate::failure::Failure;
use crate::output::{self, counted};
use std::path::{Path, PathBuf};
use trunkline_batch::{BatchError, Kept};
use trunkline_report::{Destination, ReportError, each_once};
use trunkline_scenario::Scenario;

/// The file to read.
#[derive(Debug, Clone, clap::Args)]
pub struct FileArgs {
    /// The scenario file (docs/scenario.md); - is standard input
    #[arg(value_name = "SCENARIO.TOML")]
    pub file: PathBuf,
}

impl FileArgs {
    /// The cells of the file's grid, and its text.
    pub fn read(&self) -> Result<(Vec<Scenario>, String), Failure> {
        let read = Scenario::read_with_text(&self.file).map_err(Failure::wrong_use)?;
        warn_of_remarks(&read.0);
        Ok(read)
    }

    /// The failure for what the engines found wrong with the file.
    pub fn refused(&self, error: &BatchError) -> Failure {
        Failure::wrong_use(format!("{}: {error}", self.file.display()))
    }
}

/// Says which keys do less than what they say, each once.
pub fn warn_of_remarks(cells: &[Scenario]) {
    for (remark, count) in each_once(cells.iter().flat_map(Scenario::remarks)) {
        let of = if cells.len() == 1 {
            String::new()
        } else {
            format!(" ({count} of {} cells)", cells.len())
        };
        warn(&format!("{remark}{of}"));
    }
}

/// A line on standard error that stops nothing.
pub fn warn(text: &str) {
    output::tell(format_args!("warning: {text}"));
}

/// The number of runs made at once.
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

/// The places to which results are written.
#[derive(Debug, Clone, clap::Args)]
pub struct OutArgs {
    /// Write a page, charts, CSV files and run.json into DIR (docs/results.md)
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace the results that DIR holds
    #[arg(long, requires = "out")]
    pub force: bool,
}

/// Whether an interrupted run is gone on with.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ResumeArgs {
    /// Continue an interrupted run to DIR; finished cells are not run again
    #[arg(long, requires = "out")]
    resume: bool,
}

impl OutArgs {
    /// The place for results, if any are to be written, held from now on.
    pub fn destination(&self) -> Result<Option<Destination>, Failure> {
        self.out.as_ref().map(|target| self.reserve(target)).transpose()
    }

    /// A place for results at `target`, held from now on.
    pub fn reserve(&self, target: &Path) -> Result<Destination, Failure> {
        Destination::reserve(target, self.force).map_err(unwritten)
    }
}

impl ResumeArgs {
    /// The runs that an interrupted run to `target` has done, of what is called `name` and has this `digest`. With
    /// `--resume` it goes on with them, else they are removed.
    pub fn kept(self, target: &Path, name: &str, digest: String) -> Result<Kept, Failure> {
        let directory = kept_beside(target);
        let kept = Kept::new(directory, name, digest, env!("CARGO_PKG_VERSION"));
        match self.resume {
            true => {
                let count = kept.resume().map_err(Failure::wrong_use)?;
                output::tell(format_args!(
                    "going on: {} done before",
                    counted(count as u64, "run")
                ));
            }
            false => match kept.discard()? {
                0 => {}
                count => warn(&format!(
                    "{} of an interrupted run to {} removed; --resume would have gone on with them",
                    counted(count as u64, "run"),
                    target.display()
                )),
            },
        }
        Ok(kept)
    }
}

/// The directory in which the runs to `target` are kept until it is written: hidden, beside it.
fn kept_beside(target: &Path) -> PathBuf {
    let name = target.file_name().map_or("results".into(), |name| name.to_string_lossy());
    target.with_file_name(format!(".trunkline-kept-{name}"))
}

/// Says what an interrupted run leaves, if it leaves anything.
pub fn tell_of_kept(kept: &Kept) {
    if let Some(why) = kept.failed() {
        warn(&format!("a run could not be kept: {why}"));
    }
    if kept.kept() > 0 {
        let runs = counted(kept.kept() as u64, "run");
        output::tell(format_args!("{runs} done and kept: the same command with --resume goes on"));
    }
}

/// A directory badly chosen is wrong use; one that cannot be written is a failure.
pub fn unwritten(error: ReportError) -> Failure {
    match error.is_wrong_use() {
        true => Failure::wrong_use(error),
        false => Failure::failed(error),
    }
}

/// The facts worth keeping beside the figures, which do not depend on them.
pub fn facts() -> Vec<(String, String)> {
    // A result that was gone on with is the same as one in one go.
    let mut words = output::words();
    words.retain(|word| word != "--resume");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let (system, kind) = (std::env::consts::OS, std::env::consts::ARCH);
    let facts = [
        ("command", words.join(" ")),
        ("machine", format!("{system}, {kind}, {processors} processors")),
    ];
    facts.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}
