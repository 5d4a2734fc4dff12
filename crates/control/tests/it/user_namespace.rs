//! A run of an ordinary user and whoever looks for it meet in the same place.

use rustix::process::{Uid, geteuid};
use std::process::Command;
use trunkline_control::runtime_dir;
use trunkline_skip::{installed, skipped};

const CHILD: &str = "TRUNKLINE_TEST_SHOW_DIRECTORY";

/// The directory as seen by this program, run again by `wrapper`, or `None` and a note if the system does not let
/// the wrapper do its work.
fn seen_through(wrapper: &[&str]) -> Option<String> {
    if !installed(&wrapper[..1]) {
        return None;
    }
    let output = Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "user_namespace::inside_and_outside_agree", "--nocapture"])
        .env(CHILD, "1")
        .env_remove("XDG_RUNTIME_DIR")
        .output()
        .unwrap();
    let [said, complained] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    if complained.contains("Operation not permitted") || complained.contains("Permission denied") {
        skipped(format_args!("{wrapper:?}: {complained}"));
        return None;
    }
    let mut told = said.lines().filter_map(|line| line.split_once("directory="));
    let (_, path) = told.next().unwrap_or_else(|| panic!("{wrapper:?}: {said}{complained}"));
    Some(path.into())
}

fn tell() {
    println!("\ndirectory={}", runtime_dir().unwrap().display());
}

#[test]
fn inside_and_outside_agree() {
    if std::env::var_os(CHILD).is_some() {
        return tell();
    }
    let uid = 45_678;
    let user = format!("--reuid={uid}");
    let become_user: Vec<&str> = match geteuid() {
        Uid::ROOT => vec!["setpriv", &user, "--regid=45678", "--clear-groups"],
        _ => vec!["env"],
    };
    let inside = [&become_user[..], &["unshare", "--user", "--map-root-user"]].concat();
    let (Some(inside), Some(outside)) = (seen_through(&inside), seen_through(&become_user)) else {
        return;
    };
    assert_eq!(inside, outside);
    if geteuid().is_root() {
        assert_eq!(outside, format!("/tmp/trunkline-{uid}"));
        std::fs::remove_dir(outside).unwrap();
    }
}
