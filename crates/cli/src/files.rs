//! Files that a command writes when it is done, and looks for a place for before it begins.

use crate::failure::Failure;
use rustix::fs::Access;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Fails if this file cannot be written, as far as that can be told without making it.
pub fn writable(path: &Path) -> Result<(), Failure> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent {
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

/// Writes a file, if one is wanted.
pub fn write(
    path: Option<&Path>,
    fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let fail = |error| Failure::failed(format!("cannot write {}: {error}", path.display()));
    let mut out = BufWriter::new(File::create(path).map_err(fail)?);
    fill(&mut out).and_then(|()| out.flush()).map_err(fail)
}
