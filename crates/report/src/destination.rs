//! The destination of a report: all of it is written or nothing, and never over what is not a report.

use crate::error::ReportError;
use crate::report::Report;
use crate::write::write;
use std::ffi::OsString;
use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};

/// Directories of this prefix hold a report that is not complete.
const PARTIAL: &str = ".trunkline-";
/// Both make a directory one of results.
const MARKS: [&str; 2] = ["run.json", "index.html"];
/// What the other files of a report end in.
const ENDINGS: [&str; 2] = ["csv", "svg"];

/// A directory that a report will be written into.
///
/// The report is first written beside its place, and moved there when it is complete. What was written is removed
/// when this is dropped before.
#[derive(Debug)]
pub struct Destination {
    target: PathBuf,
    partial: PathBuf,
    /// Whether the directory was there before.
    existed: bool,
    /// Holds the lock by which others see that the partial directory is in use, if the file system has locks.
    _lock: Option<File>,
}

impl Destination {
    /// Sees to it that `target` can be written: it is made if it is not there; if it is, it may hold
    /// nothing, or with `replace` an earlier report.
    ///
    /// # Errors
    /// [`ReportError::Exists`], [`ReportError::Foreign`] and [`ReportError::NotDirectory`] if it may
    /// not be used, [`ReportError::Write`] if nothing can be written there.
    pub fn reserve(target: &Path, replace: bool) -> Result<Destination, ReportError> {
        let existed = fs::symlink_metadata(target).is_ok();
        if existed {
            check(target, replace)?;
        }
        // Beside a new directory, but in one that is there: it may be a file system of its own.
        let parent = if existed { target } else { above(target) };
        fs::create_dir_all(parent).map_err(at(parent))?;
        remove_abandoned(parent);
        let name = if existed { "results".into() } else { name_of(target) };
        let mut hidden = OsString::from(PARTIAL);
        hidden.push(format!("{}-", std::process::id()));
        hidden.push(name);
        let partial = parent.join(hidden);
        fs::create_dir(&partial).map_err(at(target))?;
        Ok(Destination { target: target.into(), _lock: lock(&partial), partial, existed })
    }

    /// Writes every file of `report` beside its place.
    ///
    /// # Errors
    /// As [`write()`](crate::write()).
    pub fn fill(&self, report: &Report) -> Result<(), ReportError> {
        write(&self.partial, report).map(drop)
    }

    /// Puts what was written in its place, and returns the names of the files.
    ///
    /// # Errors
    /// [`ReportError::Write`] if it cannot be moved.
    pub fn publish(self) -> Result<Vec<PathBuf>, ReportError> {
        let mut names: Vec<OsString> =
            entries(&self.partial)?.iter().map(DirEntry::file_name).collect();
        names.sort_unstable();
        if self.existed {
            self.replace(&names)?;
        } else {
            fs::rename(&self.partial, &self.target).map_err(at(&self.target))?;
        }
        Ok(names.into_iter().map(|name| self.target.join(name)).collect())
    }

    fn replace(&self, names: &[OsString]) -> Result<(), ReportError> {
        for old in entries(&self.target)?.iter().filter(|entry| is_ours(entry)) {
            fs::remove_file(old.path()).map_err(at(&old.path()))?;
        }
        for name in names {
            let place = self.target.join(name);
            fs::rename(self.partial.join(name), &place).map_err(at(&place))?;
        }
        Ok(())
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        // Once it is in its place it is not here, and that is no failure.
        let _ = fs::remove_dir_all(&self.partial);
    }
}

/// Checks that a directory that is there may be used.
fn check(target: &Path, replace: bool) -> Result<(), ReportError> {
    if !target.is_dir() {
        return Err(ReportError::NotDirectory(target.into()));
    }
    let found = entries(target)?;
    // What a killed run left is in nobody's way.
    let found: Vec<&DirEntry> = found.iter().filter(|entry| !is_partial(entry)).collect();
    let foreign = || found.iter().find(|entry| !is_ours(entry));
    let marked = MARKS.iter().all(|mark| found.iter().any(|entry| entry.file_name() == *mark));
    let Some(first) = found.first() else { return Ok(()) };
    match foreign().or((!marked).then_some(first)) {
        Some(entry) => Err(ReportError::Foreign {
            path: target.into(),
            found: entry.file_name().to_string_lossy().into_owned(),
        }),
        None if replace => Ok(()),
        None => Err(ReportError::Exists(target.into())),
    }
}

/// Whether it is a file that a report may have.
fn is_ours(entry: &DirEntry) -> bool {
    let path = entry.path();
    let ending = path.extension().and_then(|ending| ending.to_str());
    let named = MARKS.iter().any(|mark| entry.file_name() == *mark);
    let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
    is_file && (named || ending.is_some_and(|ending| ENDINGS.contains(&ending)))
}

fn is_partial(entry: &DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with(PARTIAL)
}

/// Removes what killed runs have left in `parent`: partial directories whose process is gone and which nobody holds.
/// The process's number alone proves nothing, since the directory may be another machine's too; neither does the lock
/// in the moment in which a directory is there and not yet locked.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let Some(process) = maker_of(&entry).filter(|_| is_directory) else { continue };
        let lives = Path::new("/proc").join(process.to_string()).exists();
        // This process's number was another's before, or what it holds itself is locked.
        let gone = !lives || process == std::process::id();
        let Some(_lock) = lock(&entry.path()).filter(|_| gone) else { continue };
        // What may not be removed is in nobody's way.
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// The process that has made a partial directory.
fn maker_of(entry: &DirEntry) -> Option<u32> {
    let name = entry.file_name();
    let (number, _) = name.to_str()?.strip_prefix(PARTIAL)?.split_once('-')?;
    number.parse().ok()
}

/// The directory, locked; nothing if somebody else has locked it or the file system has no locks.
fn lock(directory: &Path) -> Option<File> {
    let opened = File::open(directory).ok()?;
    opened.try_lock().ok().map(|()| opened)
}

fn entries(directory: &Path) -> Result<Vec<DirEntry>, ReportError> {
    let list = || fs::read_dir(directory)?.collect::<io::Result<Vec<DirEntry>>>();
    let mut found = list().map_err(at(directory))?;
    found.sort_unstable_by_key(DirEntry::file_name);
    Ok(found)
}

fn above(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn name_of(target: &Path) -> OsString {
    target.file_name().map_or("results".into(), Into::into)
}

fn at(path: &Path) -> impl Fn(io::Error) -> ReportError {
    let path = path.to_path_buf();
    move |cause| ReportError::Write { path: path.clone(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn listed(directory: &Path) -> Vec<String> {
        let names = entries(directory).unwrap();
        names.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    fn written(target: &Path, replace: bool) -> Result<Vec<PathBuf>, ReportError> {
        let destination = Destination::reserve(target, replace)?;
        destination.fill(&Report::default())?;
        destination.publish()
    }

    #[test]
    fn a_report_comes_whole_or_not_at_all() {
        let home = TempDir::new().unwrap();
        let target = home.path().join("deep/er");
        let destination = Destination::reserve(&target, false).unwrap();
        destination.fill(&Report::default()).unwrap();
        assert!(!target.exists());
        drop(destination);
        assert_eq!(listed(&home.path().join("deep")), [""; 0]);
        let files = written(&target, false).unwrap();
        assert!(files.iter().all(|file| file.is_file()));
        assert_eq!(listed(&home.path().join("deep")), ["er"]);
    }

    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next() {
        let home = TempDir::new().unwrap();
        let target = home.path().join("results");
        // No process has a number above the kernel's largest (PID_MAX_LIMIT, 2^22).
        let dead = home.path().join(".trunkline-4194305-results");
        let own = std::process::id();
        let living = home.path().join(".trunkline-1-other");
        let kept = home.path().join(".trunkline-kept-results");
        let link = home.path().join(".trunkline-4194306-link");
        for directory in [&dead, &living, &kept] {
            fs::create_dir(directory).unwrap();
            fs::write(directory.join("run.json"), "{}").unwrap();
        }
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        let held = home.path().join(".trunkline-4194307-held");
        fs::create_dir(&held).unwrap();
        let lock = lock(&held);
        drop(Destination::reserve(&target, false).unwrap());
        assert!(!dead.exists());
        let left = [&living, &kept, &link, &held];
        assert!(
            left.iter().all(|path| fs::symlink_metadata(path).is_ok()),
            "{:?}",
            listed(home.path())
        );
        assert!(kept.join("run.json").exists());
        drop(lock);
        // The same within a directory of results, and while another run is at work there.
        fs::create_dir(&target).unwrap();
        let other = Destination::reserve(&target, false).unwrap();
        fs::create_dir(target.join(".trunkline-4194305-results")).unwrap();
        remove_abandoned(&target);
        assert_eq!(listed(&target), [format!(".trunkline-{own}-results")]);
        drop(other);
        drop(Destination::reserve(&home.path().join("more"), false).unwrap());
        assert!(!held.exists());
    }

    #[test]
    fn an_earlier_report_is_replaced_only_when_asked_for() {
        let home = TempDir::new().unwrap();
        let target = home.path();
        let first = written(target, false).unwrap();
        fs::write(target.join("old.svg"), "").unwrap();
        assert!(matches!(written(target, false), Err(ReportError::Exists(_))));
        assert_eq!(written(target, true).unwrap(), first);
        assert_eq!(listed(target).len(), first.len(), "{:?}", listed(target));
    }

    #[test]
    fn nothing_else_is_ever_replaced() {
        let home = TempDir::new().unwrap();
        let target = home.path();
        fs::write(target.join("thesis.csv"), "").unwrap();
        assert!(matches!(written(target, true), Err(ReportError::Foreign { .. })));
        MARKS.iter().for_each(|mark| fs::write(target.join(mark), "").unwrap());
        fs::write(target.join("notes.txt"), "").unwrap();
        let refused = written(target, true).unwrap_err();
        assert!(refused.is_wrong_use() && refused.to_string().contains("notes.txt"), "{refused}");
        let file = target.join("notes.txt");
        assert!(matches!(written(&file, true), Err(ReportError::NotDirectory(_))));
        let below = written(&file.join("sub"), true).unwrap_err();
        assert!(!below.is_wrong_use() && below.to_string().contains("notes.txt"), "{below}");
    }
}
