//! Runs that are done, kept until all of a batch are, so that what is interrupted can go on.
//!
//! A directory holds `batch.json`, which says of what they are, and a file for each run with its engine, cell and seed.
//! Each is written under another name and then renamed: whatever ends the process, a file is whole or not there. A run
//! is found by a digest of everything that decides it, so that none is ever taken for another.

use crate::BatchError;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use trunkline_engine::{Engine, EngineError, EngineName, Pace, Run, SharedEngine, check};
use trunkline_measure::Key;
use trunkline_scenario::{Network, Scenario};

/// The form of the files; it rises when one of another form cannot be read.
const FORMAT: u32 = 2;
/// The file that says what the runs are of.
const HEADER: &str = "batch.json";

/// The origin of a directory's runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    format: u32,
    version: String,
    name: String,
    digest: String,
}

/// A run with what it is of.
#[derive(Serialize, Deserialize)]
struct Record {
    format: u32,
    version: String,
    digest: String,
    engine: EngineName,
    scenario: String,
    cell: Key,
    seed: u64,
    run: Run,
}

/// Runs that are done, in a directory of their own.
#[derive(Debug)]
pub struct Kept {
    directory: PathBuf,
    header: Header,
    /// The number of them.
    count: AtomicUsize,
    /// True once the directory has been made.
    made: AtomicBool,
    /// The reason why one could not be kept.
    failed: Mutex<Option<String>>,
}

impl Kept {
    /// A place for runs of what is called `name` and has this `digest`, made by this `version` of the program. Nothing
    /// is written before the first run is done.
    pub fn new(directory: PathBuf, name: &str, digest: String, version: &str) -> Kept {
        let header = Header { format: FORMAT, version: version.into(), name: name.into(), digest };
        let (count, made) = (AtomicUsize::new(0), AtomicBool::new(false));
        Kept { directory, header, count, made, failed: Mutex::new(None) }
    }

    /// Goes on with the runs that are kept, and returns how many there are.
    ///
    /// # Errors
    /// [`BatchError::NothingKept`] if there are none, [`BatchError::KeptOfOther`] if they are of something else, or
    /// of a file that has changed since, [`BatchError::Unkept`] if they cannot be read.
    pub fn resume(&self) -> Result<usize, BatchError> {
        let place = self.directory.join(HEADER);
        let text = match fs::read_to_string(&place) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(BatchError::NothingKept { place: self.directory.clone() });
            }
            Err(error) => return Err(unkept(&place, &error)),
        };
        let found: Header = serde_json::from_str(&text).map_err(|error| unkept(&place, &error))?;
        if let Some(what) = self.header.differs(&found) {
            return Err(BatchError::KeptOfOther { place: self.directory.clone(), what });
        }
        self.made.store(true, Ordering::Relaxed);
        self.count.store(self.files().map_err(|error| unkept(&place, &error))?, Ordering::Relaxed);
        Ok(self.kept())
    }

    /// Removes what is kept, and returns how many runs that were.
    ///
    /// # Errors
    /// [`BatchError::Unkept`] if it cannot be removed.
    pub fn discard(&self) -> Result<usize, BatchError> {
        let count = self.files().unwrap_or(0);
        self.made.store(false, Ordering::Relaxed);
        self.count.store(0, Ordering::Relaxed);
        match fs::remove_dir_all(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(unkept(&self.directory, &error))
            }
            _ => Ok(count),
        }
    }

    /// The number of runs that are kept.
    pub fn kept(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The reason why a run could not be kept, if one could not.
    pub fn failed(&self) -> Option<String> {
        self.failed.lock().ok().and_then(|failed| failed.clone())
    }

    /// An engine whose runs are kept: one that is kept already is not made again. Formulas take no time, so theirs are
    /// not kept.
    pub fn around(self: &Arc<Kept>, engine: SharedEngine) -> SharedEngine {
        match engine.pace() {
            Pace::Formulas => engine,
            Pace::Virtual | Pace::Real => Arc::new(Keeping { engine, kept: Arc::clone(self) }),
        }
    }

    fn found(&self, digest: &str) -> Option<Run> {
        if !self.made.load(Ordering::Relaxed) {
            return None;
        }
        let text = fs::read(self.file(digest)).ok()?;
        read_kept(&text, &self.header.version, digest)
    }

    fn keep(
        &self,
        digest: String,
        engine: EngineName,
        scenario: &Scenario,
        run: &Run,
    ) -> io::Result<()> {
        if !self.made.swap(true, Ordering::SeqCst) {
            fs::create_dir_all(&self.directory)?;
            self.put(&self.directory.join(HEADER), &self.header)?;
        }
        let record = Record {
            format: FORMAT,
            version: self.header.version.clone(),
            engine,
            scenario: scenario.name.clone(),
            cell: scenario.cell.clone(),
            seed: scenario.seed.0,
            run: run.clone(),
            digest,
        };
        self.put(&self.file(&record.digest), &record)?;
        self.count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn file(&self, digest: &str) -> PathBuf {
        self.directory.join(format!("run-{digest}.json"))
    }

    /// Whole or not at all.
    fn put(&self, place: &Path, value: &impl Serialize) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let partial = place.with_extension("partial");
        let mut file = io::BufWriter::new(fs::File::create(&partial)?);
        serde_json::to_writer(&mut file, value)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(partial, place)
    }

    fn files(&self) -> io::Result<usize> {
        let mut count = 0;
        for entry in fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            count += usize::from(name.starts_with("run-") && name.ends_with(".json"));
        }
        Ok(count)
    }
}

/// An engine whose runs are kept.
#[derive(Debug)]
struct Keeping {
    engine: SharedEngine,
    kept: Arc<Kept>,
}

impl Engine for Keeping {
    fn name(&self) -> EngineName {
        self.engine.name()
    }

    fn pace(&self) -> Pace {
        self.engine.pace()
    }

    fn run(&self, network: &Network<'_>, told: &(dyn Fn(&str) + Sync)) -> Result<Run, EngineError> {
        let (kept, engine, scenario) = (&self.kept, self.engine.name(), network.scenario());
        let digest = digest_of(&(engine, scenario));
        if let Some(run) = kept.found(&digest) {
            return Ok(run);
        }
        let run = self.engine.run(network, told)?;
        // What cannot be trusted is made again.
        if run.invalid().next().is_none()
            && let Err(error) = kept.keep(digest, engine, scenario, &run)
            && let Ok(mut failed) = kept.failed.lock()
        {
            failed.get_or_insert(format!("{}: {error}", kept.directory.display()));
        }
        Ok(run)
    }
}

/// Reads the file of a kept run: the one with this `digest` that this `version` of the program made. `None` if
/// it is another, breaks a law, or is no run.
pub fn read_kept(text: &[u8], version: &str, digest: &str) -> Option<Run> {
    let record: Record = serde_json::from_slice(text).ok()?;
    let own = record.format == FORMAT && record.version == version;
    // A file that was damaged may be JSON all the same.
    (own && record.digest == digest && check(&record.run).is_empty()).then_some(record.run)
}

impl Header {
    /// In what `found` is of something else.
    fn differs(&self, found: &Header) -> Option<String> {
        let Header { format, version, name, digest } = found;
        if *format != self.format || *version != self.version {
            return Some(format!("version {version} of the program made them"));
        }
        if *name != self.name {
            return Some(format!("they are of {name}"));
        }
        (*digest != self.digest).then(|| {
            "the file, a file that it names, or an option that changes results has changed since".into()
        })
    }
}

fn unkept(place: &Path, cause: &dyn fmt::Display) -> BatchError {
    BatchError::Unkept { place: place.into(), cause: cause.to_string() }
}

/// A digest of everything that `value` says of itself: FNV-1a (Fowler, Noll, Vo) twice, from two offsets, 128 bits
/// in all. It tells files apart, it keeps no secrets.
pub fn digest_of(value: &impl fmt::Debug) -> String {
    let mut digest = Digest([0xcbf2_9ce4_8422_2325, 0x6c62_272e_07bb_0142]);
    // Writing to a digest cannot fail.
    let _ = write!(digest, "{value:?}");
    format!("{:016x}{:016x}", digest.0[0], digest.0[1])
}

struct Digest([u64; 2]);

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            for (half, turn) in self.0.iter_mut().zip([0, 29]) {
                *half = (*half ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(turn);
            }
        }
        Ok(())
    }
}
