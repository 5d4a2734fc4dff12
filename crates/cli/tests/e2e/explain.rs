//! `trunkline explain` as it is called: text, JSON, exit statuses.

use crate::turn;
use std::process::{Command, Output};

fn explain(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.arg("explain").args(arguments).output().expect("trunkline runs")
}

fn example(name: &str) -> String {
    format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn it_says_what_binds_and_twice_the_same() {
    let _turn = turn::beside();
    let file = example("xunet-small-window.toml");
    let once = explain(&[&file, "--traffic", "echo"]);
    assert_eq!(once.status.code(), Some(0), "{once:?}");
    let told = text(&once.stdout);
    assert!(told.contains("The window binds (84 B; "), "{told}");
    assert!(told.contains("112 bytes go as 84, wait, 28, wait: two round trips"), "{told}");
    assert_eq!(explain(&[&file, "--traffic", "echo"]).stdout, once.stdout);
}

#[test]
fn json_holds_an_explanation_for_each_cell() {
    let _turn = turn::beside();
    let file = example("xunet-small-window.toml");
    let output = explain(&[&file, "--traffic", "echo", "--json"]);
    let cells: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(cells.as_array().map(Vec::len), Some(2));
    let groups = cells[0]["traffic"][0]["groups"].as_array().expect("groups");
    assert!(groups.iter().any(|group| group["binds"]["one"] == "window"), "{groups:#?}");
}

#[test]
fn traffic_over_a_medium_is_explained() {
    let _turn = turn::beside();
    for (name, place) in [("leaf-spine.toml", "fabric"), ("token-ring.toml", "ring")] {
        let output = explain(&[&example(name)]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let told = text(&output.stdout);
        assert!(told.contains(&format!("The medium's rate of {place} binds")), "{told}");
    }
}

#[test]
fn wrong_use_is_one_line_and_status_2() {
    let _turn = turn::beside();
    let file = example("long-distance.toml");
    let cases: [(&[&str], &str); 5] = [
        (&["/nowhere/at-all.toml"], "/nowhere/at-all.toml: cannot be read"),
        (&[env!("CARGO_MANIFEST_PATH")], "Cargo.toml:1:"),
        (&[&file, "--traffic", "nobody"], "no traffic or cluster 'nobody'"),
        (&[&file, "--cell", "speed=3"], "--cell speed: the scenario has"),
        (&[&file, "--cell", "speed"], "write KEY=VALUE"),
    ];
    for (arguments, words) in cases {
        let output = explain(arguments);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{arguments:?}: {complaint}");
        assert!(complaint.contains(words), "{arguments:?}: {complaint}");
        assert!(output.stdout.is_empty());
    }
}
