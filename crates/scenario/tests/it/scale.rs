//! The scenarios that `scripts/scale.py` writes are read.

use std::process::Command;
use trunkline_scenario::Scenario;
use trunkline_skip::installed;

#[test]
fn scenarios_of_any_size_are_read() {
    if !installed(&["python3"]) {
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/scale.py");
    for (shape, number) in [("b1", 7), ("b2", 7), ("b3", 7), ("b4", 135)] {
        let mut command = Command::new("python3");
        command.args([script, shape, &number.to_string(), "--length", "0.5"]);
        let output = command.output().expect("python3 runs");
        let text = String::from_utf8(output.stdout).expect("it writes UTF-8");
        let scenarios = Scenario::parse(&text, shape).unwrap_or_else(|error| panic!("{error}"));
        let flows: u32 = scenarios[0].traffic.iter().map(|traffic| traffic.count).sum();
        assert_eq!((scenarios.len(), flows), (1, number), "{shape}");
    }
}
