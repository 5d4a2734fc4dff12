//! Files that a command writes when it is done, and looks for a place for before it begins.

use crate::failure::Failure;
use rustix::fs::Access;
use std::io::{BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trunkline_dataplane::capture::create_file;

/// Fails if one of these files cannot be written, as far as that can be told without making it, or if two of them are one.
pub fn writable(wanted: &[Option<&Path>]) -> Result<(), Failure> {
    wanted.iter().flatten().try_for_each(|it| has_place(it))?;
    differ(wanted)
}

/// Fails if two of these files are one: of two results in one file the first is lost.
pub fn differ(wanted: &[Option<&Path>]) -> Result<(), Failure> {
    let mut places = Vec::new();
    for path in wanted.iter().flatten() {
        let Some(place) = Place::of(path) else { continue };
        if places.contains(&place) {
            return Err(Failure::wrong_use(format!(
                "{} is named twice, and would hold the last result alone: name two files",
                path.display()
            )));
        }
        places.push(place);
    }
    Ok(())
}

/// What tells a file from all others, whatever it is called.
#[derive(PartialEq)]
enum Place {
    /// It is there: its device and its number.
    There(u64, u64),
    /// It is not, and will be made here.
    New(PathBuf),
}

impl Place {
    /// The place of a file. A device or a pipe has none: it bears two results.
    fn of(path: &Path) -> Option<Place> {
        match path.metadata() {
            Ok(found) if found.is_file() => Some(Place::There(found.dev(), found.ino())),
            Ok(_) => None,
            Err(_) => {
                let parent = directory_of(path).canonicalize().ok()?;
                Some(Place::New(parent.join(path.file_name()?)))
            }
        }
    }
}

/// The directory that a file is in, or will be.
fn directory_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Fails if this file cannot be written.
fn has_place(path: &Path) -> Result<(), Failure> {
    let parent = directory_of(path);
    if path == Path::new("-") {
        return Err(Failure::wrong_use(
            "- is no file here, and nothing is captured or reported to standard output: name a file (a named pipe, to look at it meanwhile)",
        ));
    }
    if path.is_dir() {
        return Err(Failure::wrong_use(format!("{} is a directory: name a file", path.display())));
    }
    if !parent.is_dir() {
        return Err(Failure::wrong_use(format!(
            "cannot write {}: there is no directory {}",
            path.display(),
            parent.display()
        )));
    }
    let place = if path.exists() { path } else { parent };
    rustix::fs::access(place, Access::WRITE_OK).map_err(|error| {
        let (error, path) = (std::io::Error::from(error), path.display());
        Failure::wrong_use(format!("cannot write {path}: {error}: name a file that you may write"))
    })
}

/// Writes a file, if one is wanted. One that cannot be written to its end is removed: what is there is whole.
pub fn write(
    path: Option<&Path>,
    fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let fail = |error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    let mut out = BufWriter::new(create_file(path).map_err(fail)?);
    fill(&mut out).and_then(|()| out.flush()).map_err(|error| {
        // A device or a pipe is not ours to remove.
        if path.is_file() {
            let _ = std::fs::remove_file(path);
        }
        fail(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    /// By whatever name: of two results in one file the first is lost. A device bears both.
    #[test]
    fn two_results_are_two_files() {
        let dir = tempfile::tempdir().unwrap();
        let [old, linked, new, again] =
            ["old", "linked", "new", "./new"].map(|it| dir.path().join(it));
        std::fs::write(&old, "").unwrap();
        std::fs::hard_link(&old, &linked).unwrap();
        let both = |one: &Path, other: &Path| writable(&[Some(one), None, Some(other)]);
        for (one, other) in [(&old, &old), (&old, &linked), (&new, &new), (&new, &again)] {
            let told = both(one, other).unwrap_err();
            assert!(told.message().contains("twice"), "{}", told.message());
        }
        both(&old, &new).unwrap();
        both(Path::new("/dev/null"), Path::new("/dev/null")).unwrap();
    }

    #[test]
    fn half_a_file_does_not_remain() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("trace.json");
        let half = |out: &mut dyn Write| {
            out.write_all(&[b'x'; 100_000])?;
            Err(ErrorKind::StorageFull.into())
        };
        let told = write(Some(&path), half).unwrap_err();
        assert!(told.message().contains("cannot write"), "{}", told.message());
        assert!(!path.exists());
        write(Some(&path), |out| out.write_all(b"whole")).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        let full = Path::new("/dev/full");
        write(Some(full), |out| out.write_all(b"x")).unwrap_err();
        assert!(full.exists());
    }
}
