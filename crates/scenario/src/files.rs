//! The files that a description names: traces and schedules.

use std::fmt::Debug;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest file that is read, in bytes: a day of trace at one line for each packet of 1 Mbit/s.
const LONGEST: u64 = 64 << 20;

/// A giver of the files that a description names. The reader of a description opens none itself, so that a
/// program can say which files there are.
pub trait Files: Debug {
    /// Returns the text of the file that the description calls `path`.
    ///
    /// # Errors
    /// One line with the cause and the remedy if there is no such file, or it is no text.
    fn text(&self, path: &str) -> Result<String, String>;
}

/// The files of the machine. Relative paths begin at this directory; at the working directory if it is empty.
#[derive(Debug, Clone, Copy)]
pub struct Folder<'a>(pub &'a Path);

impl Folder<'static> {
    /// The files as the working directory shows them.
    pub fn working() -> Folder<'static> {
        Folder(Path::new(""))
    }
}

impl Files for Folder<'_> {
    fn text(&self, path: &str) -> Result<String, String> {
        let unread = |error| format!("cannot read '{path}': {error}; give the path of a text file");
        let mut text = String::new();
        let file = File::open(self.0.join(path)).map_err(unread)?;
        let read = file.take(LONGEST + 1).read_to_string(&mut text).map_err(unread)?;
        if read as u64 > LONGEST {
            return Err(format!("'{path}' is longer than {LONGEST} bytes: give a shorter trace"));
        }
        Ok(text)
    }
}
