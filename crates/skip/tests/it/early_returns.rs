//! No test of this workspace ends early without a note: every `return` of a test stands behind a call that notes
//! a skip, or hands over to the rest of the test.

use crate::lint::complaints;
use std::path::{Path, PathBuf};

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path);
        }
    }
}

/// The sources of each crate, with their paths in the workspace.
fn crates() -> Vec<Vec<(String, String)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        (name, std::fs::read_to_string(path).unwrap())
    };
    let of_crate = |directory: PathBuf| {
        let mut paths = Vec::new();
        ["src", "tests"].iter().for_each(|part| sources(&directory.join(part), &mut paths));
        paths.sort();
        paths.iter().map(read).collect()
    };
    let entries = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    // This crate prints the notes.
    let others =
        entries.filter(|path| path.join("Cargo.toml").is_file() && !path.ends_with("skip"));
    others.map(of_crate).collect()
}

#[test]
fn no_test_ends_early_without_a_note() {
    let crates = crates();
    assert!(crates.len() > 20, "{} crates", crates.len());
    let found: Vec<String> = crates.iter().flat_map(|sources| complaints(sources)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The complaints of the lint about one file, without its name.
fn said(text: &str) -> Vec<String> {
    let found = complaints(&[("a.rs".into(), text.into())]);
    found.iter().map(|line| line.trim_start_matches("a.rs:").into()).collect()
}

#[test]
fn silent_ends_are_found() {
    let early = "ends early without a note: trunkline_skip::skipped";
    for (text, line) in [
        ("#[test]\nfn t() {\n    if cfg() { return; }\n}", 3),
        ("#[test]\nfn t() {\n    let Some(x) = get() else { return };\n}", 3),
        ("#[test]\nfn t() {\n    match get() { Err(_) => return, Ok(_) => {} }\n}", 3),
        ("fn main() {\n    if cfg() { return eprintln!(\"no\"); }\n}", 2),
        ("mod m {\n    #[test]\n    fn t() { for _ in 0..9 { return; } }\n}", 3),
        // A note that stands elsewhere is none for this end.
        ("#[test]\nfn t() {\n    if a() { skipped(1); return; }\n    if b() { return; }\n}", 4),
    ] {
        assert_eq!(said(text), [format!("{line}: {early}")], "{text}");
    }
    let printed = "a skip that is only printed: trunkline_skip::skipped";
    let text =
        "fn helper() { eprintln!(\"Skipped: {}\", 1); println!(\"skip\"); println!(\"x\"); }";
    assert_eq!(said(text), [format!("1: {printed}"), format!("1: {printed}")]);
    let ignored = "is ignored: a test that cannot run here is skipped with a note";
    let text = ["#[test]", concat!("#[", "ignore]"), "fn t() {}"].join("\n");
    assert_eq!(said(&text), [format!("3: {ignored}")]);
}

#[test]
fn noted_ends_are_not() {
    let helper = "fn lab() -> Option<u8> { skipped(1); None }\nfn far() -> Option<u8> { lab() }\n";
    for text in [
        "#[test]\nfn t() { let Some(x) = far() else { return }; }",
        "#[test]\nfn t() { if !trunkline_skip::installed(&[\"x\"]) { return; } }",
        "#[test]\nfn t() { if child() { return rest(1); } }",
        "#[test]\nfn t() { match f() { Err(e) => return skipped(e), Ok(()) => {} } }",
        "#[test]\nfn t() { let f = || { return; }; f(); }",
        "fn not_a_test() { if cfg() { return; } }",
        "struct H;\nimpl H { fn new() -> Option<H> { lab(); None } }\n\
         #[test]\nfn t() { let Some(h) = H::new() else { return }; }",
    ] {
        assert_eq!(said(&format!("{helper}{text}")), [""; 0], "{text}");
    }
}
