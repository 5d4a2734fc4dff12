//! A short verification in namespaces of its own. Only counts are asserted, never times: those
//! belong to the machine.

use std::sync::atomic::AtomicBool;
use trunkline_core::Span;
use trunkline_scenario::{PathSpec, Settings};
use trunkline_verify::report::{Row, Thresholds};
use trunkline_verify::sweep::{Load, Sweep};
use trunkline_verify::{Emulator, Laboratory, VerifyError};

fn path(pairs: &[&str]) -> PathSpec {
    let mut settings = Settings::default();
    pairs.iter().for_each(|pair| settings.add_pair(pair).expect("a setting"));
    settings.resolve().expect("a path")
}

fn sweep(pairs: &[&str], change: Option<Span>, duration: Span) -> Sweep {
    Sweep {
        path: path(pairs),
        delays: Vec::new(),
        sizes: vec![1500],
        loads: vec![Load::PerSecond(500.0)],
        duration: Some(duration),
        repeat: 1,
        change,
        emulator: Emulator::default(),
        thresholds: Thresholds::default(),
    }
}

/// A laboratory, or nothing and a message if there is no permission to build one.
fn laboratory(mtu: u32) -> Option<Laboratory> {
    match Laboratory::build(mtu, None) {
        Err(VerifyError::Emulator(trunkline_dataplane::DataplaneError::Lab(error)))
            if error.errno() == Some(1) =>
        {
            trunkline_skip::skipped(error);
            None
        }
        built => Some(built.expect("a laboratory")),
    }
}

fn run(sweep: &Sweep, stop: &AtomicBool) -> Option<Result<Vec<Row>, VerifyError>> {
    let mut laboratory = laboratory(sweep.path.mtu)?;
    let mut rows = Vec::new();
    let result = sweep.run(&mut laboratory, stop, &mut |_| {}, &mut |row| rows.push(row));
    Some(result.map(|()| rows))
}

/// Every probe is compared, or left out for a stated reason.
fn assert_accounted(row: &Row) {
    let left_out = row.interrupted + row.near_change + row.other_fate;
    assert!(row.sent >= 500, "{row:?}");
    assert_eq!(row.delay_error.count + left_out, row.sent, "{row:?}");
    assert!(row.rtt_with.count > 0 && row.rtt_without.count > 0, "{row:?}");
}

#[test]
fn a_path_of_ten_milliseconds_loses_and_reorders_nothing() {
    let wanted = sweep(&["delay=10ms"], Some(Span::from_millis(2)), Span::from_secs(2));
    let Some(rows) = run(&wanted, &AtomicBool::new(false)) else { return };
    let rows = rows.expect("a verification");
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((row.lost.emulator, row.lost.queue, row.reordered, row.duplicated), (0, 0, 0, 0));
    assert_eq!((row.delay_changes, row.other_fate), (2, 0));
    assert_accounted(row);
}

#[test]
fn what_the_modelled_queue_drops_is_not_the_emulators_loss() {
    // 500 packets of 1500 bytes are 6 Mbit/s each way, twice the line's rate.
    let wanted = sweep(&["rate=3mbit", "limit=20p", "delay=1ms"], None, Span::from_secs(1));
    let Some(rows) = run(&wanted, &AtomicBool::new(false)) else { return };
    let row = &rows.expect("a verification")[0];
    assert_eq!((row.lost.emulator, row.reordered, row.duplicated), (0, 0, 0));
    assert!(row.lost.queue > 300, "{row:?}");
    assert!(row.sent >= 500);
}

#[test]
fn a_request_to_stop_ends_the_run() {
    let wanted = sweep(&["delay=10ms"], None, Span::from_secs(600));
    let Some(result) = run(&wanted, &AtomicBool::new(true)) else { return };
    assert!(matches!(result, Err(VerifyError::Interrupted)));
}
