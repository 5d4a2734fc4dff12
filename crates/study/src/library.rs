//! The sources of studies: those built in, or a directory.

use crate::StudyError;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use trunkline_scenario::Files;

/// Every file of `studies/`, by its path there.
static FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The file that makes a directory a study.
const STUDY: &str = "study.toml";

/// The files of a study. They are named relative to its directory; `../` leads to its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Library {
    /// Compiled into the program, under this name.
    BuiltIn(&'static str),
    /// In a directory.
    Directory(PathBuf),
    /// Texts by path, for tests and for studies that are made by programs.
    Texts(BTreeMap<String, String>),
}

/// The names of the studies built in, in alphabetical order.
pub fn names() -> Vec<&'static str> {
    let of = |path: &'static str| path.strip_suffix(STUDY)?.strip_suffix('/');
    FILES.iter().filter_map(|(path, _)| of(path)).collect()
}

impl Library {
    /// The study built in under `name`, or the one in the directory `name`.
    ///
    /// # Errors
    /// If there is neither.
    pub fn open(name: &str) -> Result<Library, StudyError> {
        if let Some(known) = names().into_iter().find(|&known| known == name) {
            return Ok(Library::BuiltIn(known));
        }
        let place = Path::new(name);
        match place.join(STUDY).is_file() {
            true => Ok(Library::Directory(name.into())),
            false if place.is_dir() => Err(StudyError::File {
                file: name.into(),
                problem: format!("the directory holds no {STUDY}"),
            }),
            false => Err(StudyError::Unknown { found: name.into(), known: names().join(", ") }),
        }
    }

    /// The text of `file`.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be read.
    pub fn text(&self, file: &str) -> Result<Cow<'_, str>, StudyError> {
        let missing = |problem: String| StudyError::File { file: file.into(), problem };
        let none = || missing(format!("the study {} has no such file", self.name()));
        match self {
            Library::BuiltIn(name) => {
                let path = join(name, file);
                let found = FILES.iter().find(|(known, _)| *known == path);
                found.map(|(_, text)| Cow::Borrowed(*text)).ok_or_else(none)
            }
            Library::Directory(directory) => fs::read_to_string(directory.join(file))
                .map(Cow::Owned)
                .map_err(|error| missing(error.to_string())),
            Library::Texts(texts) => {
                let found = texts.get(&join("", file));
                found.map(|text| Cow::Borrowed(text.as_str())).ok_or_else(none)
            }
        }
    }

    /// The text of `study.toml`.
    ///
    /// # Errors
    /// If there is none.
    pub fn study(&self) -> Result<Cow<'_, str>, StudyError> {
        self.text(STUDY)
    }

    /// How complaints call it.
    pub fn name(&self) -> String {
        match self {
            Library::BuiltIn(name) => (*name).into(),
            Library::Directory(directory) => directory.display().to_string(),
            Library::Texts(_) => "at hand".into(),
        }
    }
}

impl Files for Library {
    fn text(&self, path: &str) -> Result<String, String> {
        Library::text(self, path).map(Cow::into_owned).map_err(|error| error.to_string())
    }
}

/// `file` seen from `directory`, without `.` and `..`.
fn join(directory: &str, file: &str) -> String {
    let mut steps: Vec<&str> = directory.split('/').filter(|step| !step.is_empty()).collect();
    for step in file.split('/') {
        match step {
            "." | "" => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_study() {
        assert_eq!(join("beyond", "../hawley1989/./loaded.toml"), "hawley1989/loaded.toml");
        assert_eq!(join("beyond", "published/a.csv"), "beyond/published/a.csv");
    }

    #[test]
    fn the_studies_are_built_in_and_can_be_read_from_their_directory() {
        assert!(names().contains(&"hawley1989") && names().contains(&"vandewater1988"));
        let built_in = Library::open("hawley1989").unwrap();
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/hawley1989");
        let read = Library::open(directory).unwrap();
        assert_eq!(read.study().unwrap(), built_in.study().unwrap());
        assert!(built_in.text("none.toml").unwrap_err().to_string().contains("none.toml"));
        assert!(read.text("none.toml").unwrap_err().to_string().contains("none.toml"));
        let wrong = Library::open("hawley").unwrap_err().to_string();
        assert!(wrong.contains("hawley1989") && wrong.contains("vandewater1988"), "{wrong}");
    }
}
