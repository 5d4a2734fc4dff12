//! Puts the files of `studies/` into the library, so that studies run from anywhere. The folder is a link to that of the
//! workspace, which a package takes along as files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root =
        PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("studies");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let mut list = String::from("[\n");
    for file in &files {
        let name = file
            .strip_prefix(&root)
            .expect("it was found there")
            .to_string_lossy()
            .replace('\\', "/");
        let path = file.canonicalize().expect("it was just listed");
        writeln!(list, "({name:?}, include_str!({path:?})),").expect("a string takes everything");
    }
    list.push(']');
    let target = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it")).join("files.rs");
    fs::write(target, list).expect("the build directory can be written");
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo::rerun-if-changed={}", directory.display());
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries {
        let path = entry.expect("the directory can be read").path();
        let kind = path.extension().and_then(|extension| extension.to_str());
        match kind {
            _ if path.is_dir() => collect(&path, files),
            Some("toml" | "csv") => files.push(path),
            _ => {}
        }
    }
}
