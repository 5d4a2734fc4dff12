//! The step of a CI job: `packaging/action/run.sh`, with an installed command.

use crate::support::{Host, Outcome, installed};
use std::path::Path;
use std::process::Command;

const STEP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/action/run.sh");
const PATH: &str = "--best-effort --no-outside --delay 3ms --link 'side delay=1ms'";

/// Runs the step in `place` with what a job would state.
fn step(host: &Host, place: &Path, stated: &[(&str, &str)]) -> Outcome {
    let binary = Path::new(env!("CARGO_BIN_EXE_trunkline")).parent().unwrap().display().to_string();
    let path = format!("{binary}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.arg(STEP).current_dir(place).env("PATH", path);
    command.envs(stated.iter().copied());
    host.start_command(command).finish()
}

#[test]
fn a_job_fails_with_its_command_and_leaves_the_statement() {
    let host = Host::beside();
    if host.run_well(&["shell", "--best-effort", "--", "true"]).is_none() {
        return;
    }
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let stated = |command| [("TRUNKLINE_OPTIONS", PATH), ("TRUNKLINE_COMMAND", command)];
    // Several commands, and the quoted option is one word.
    let good =
        step(&host, place.path(), &stated("ip route | grep tl0\ntest -n \"$TRUNKLINE_PEER\""));
    assert!(good.status.success(), "{good:#?}");
    let report = std::fs::read_to_string(place.path().join("trunkline.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert!(report.to_string().contains("side"), "{report:#}");
    // The command's own status, and that of a part of it.
    assert_eq!(step(&host, place.path(), &stated("exit 7")).status.code(), Some(7));
    assert_eq!(step(&host, place.path(), &stated("false\ntrue")).status.code(), Some(1));
}

#[test]
fn what_a_job_left_out_is_told() {
    let host = Host::beside();
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    if !installed(&["bash"]) {
        return;
    }
    let none = step(&host, place.path(), &[("TRUNKLINE_COMMAND", "true")]);
    assert!(!none.status.success() && none.stderr.contains("the path is missing"), "{none:#?}");
    let stated = [
        ("TRUNKLINE_OPTIONS", PATH),
        ("TRUNKLINE_COMMAND", "true"),
        ("TRUNKLINE_PACKAGE", "trunkline.rpm"),
    ];
    let wrong = step(&host, place.path(), &stated);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:#?}");
    assert!(wrong.stderr.contains("'trunkline.rpm' is neither a .deb nor a .tar.gz"), "{wrong:#?}");
}
