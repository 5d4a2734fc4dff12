//! Files that a command writes when it is done, and looks for a place for before it begins.

use crate::failure::Failure;
use rustix::fs::Access;
use std::io::{BufWriter, Write};
use std::path::Path;
use trunkline_dataplane::capture::create_file;

/// Fails if this file cannot be written, as far as that can be told without making it.
pub fn writable(path: &Path) -> Result<(), Failure> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent {
        _ if path == Path::new("-") => Err(Failure::wrong_use(
            "- is no file here, and nothing is captured or reported to standard output: name a file (a named pipe, to look at it meanwhile)",
        )),
        _ if path.is_dir() => {
            Err(Failure::wrong_use(format!("{} is a directory: name a file", path.display())))
        }
        Some(parent) if !parent.is_dir() => Err(Failure::wrong_use(format!(
            "cannot write {}: there is no directory {}",
            path.display(),
            parent.display()
        ))),
        parent => {
            let place = if path.exists() { path } else { parent.unwrap_or(Path::new(".")) };
            rustix::fs::access(place, Access::WRITE_OK).map_err(|error| {
                let error = std::io::Error::from(error);
                let path = path.display();
                Failure::wrong_use(format!(
                    "cannot write {path}: {error}: name a file that you may write"
                ))
            })
        }
    }
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
