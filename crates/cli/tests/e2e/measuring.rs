//! `trunkline verify` and `trunkline calibrate` as commands. What they measure belongs to the machine; that
//! they count all of it, and that status and words say the same, does not.

use crate::plane::shown;
use crate::support::{Host, Outcome, Running, skipped};
use rustix::process::Signal;
use serde_json::Value;
use std::thread::sleep;
use std::time::Duration;

const VERIFY: [&str; 7] = ["verify", "--delay", "5ms", "--sizes", "100", "--loads", "500"];

/// Starts a measurement. Returns nothing, with a message, if this user may have no laboratory.
fn start(host: &Host, arguments: &[&str]) -> Option<Running> {
    host.run_well(&["shell", "--best-effort", "--", "true"])?;
    Some(host.start(arguments))
}

/// The one run in the report, which must agree with itself and with the exit status.
fn row(outcome: &Outcome) -> Value {
    let report = outcome.statement_of_all();
    let rows = report["runs"].as_array().unwrap();
    assert_eq!((rows.len(), report["format"].as_u64()), (1, Some(1)), "{outcome:#?}");
    let holds = rows[0]["problems"].as_array().unwrap().is_empty();
    assert_eq!(report["holds"], holds, "{outcome:#?}");
    assert_eq!(outcome.status.code(), Some(i32::from(!holds)), "{outcome:#?}");
    rows[0].clone()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no count: {value}"))
}

#[test]
fn verify_accounts_for_every_probe_and_its_status_is_its_verdict() {
    let host = Host::beside();
    let options = [&VERIFY[..], &["--duration", "1s", "--json"]].concat();
    let Some(running) = start(&host, &options) else { return };
    let pid = running.pid();
    let outcome = running.finish();
    host.assert_nothing_left(pid);
    let row = row(&outcome);
    assert!(count(&row["sent"]) >= 1000, "{row:#}");
    let left_out = ["interrupted", "near_change", "other_fate"].map(|name| count(&row[name]));
    let lost = ["emulator", "queue", "receiver"].map(|name| count(&row["lost"][name]));
    let compared = count(&row["delay_error"]["count"]);
    let accounted = compared + left_out.iter().sum::<u64>() + lost.iter().sum::<u64>();
    assert!(accounted >= count(&row["sent"]), "{row:#}");
}

#[test]
fn verify_in_words_says_holds_or_fails() {
    let host = Host::beside();
    let Some(running) = start(&host, &[&VERIFY[..], &["--duration", "500ms"]].concat()) else {
        return;
    };
    let outcome = running.finish();
    let holds = outcome.status.success();
    assert_eq!(outcome.stdout.contains("holds"), holds, "{outcome:#?}");
    assert_eq!(outcome.stdout.contains("FAILS at delay 5ms"), !holds, "{outcome:#?}");
    assert!(outcome.stdout.contains("probes: lost by the emulator"), "{outcome:#?}");
}

#[test]
fn a_stall_while_verify_measures_is_never_held() {
    let host = Host::alone();
    let options = [&VERIFY[..], &["--duration", "3s", "--json"]].concat();
    let Some(running) = start(&host, &options) else { return };
    // The laboratory is built and the baseline measured once frames enter the path.
    shown(&host, &running);
    sleep(Duration::from_millis(300));
    running.signal(Signal::STOP);
    sleep(Duration::from_millis(400));
    running.signal(Signal::CONT);
    let row = row(&running.finish());
    assert!(count(&row["stalls"]["emulator"]) + count(&row["stalls"]["generator"]) > 0, "{row:#}");
    assert!(!row["problems"].as_array().unwrap().is_empty(), "{row:#}");
}

#[test]
fn a_measurement_that_is_interrupted_says_so_by_its_status_and_leaves_nothing() {
    let host = Host::beside();
    for arguments in [&["calibrate", "--json"][..], &["verify", "--delay", "5ms"]] {
        let Some(running) = start(&host, arguments) else { return };
        let pid = running.pid();
        sleep(Duration::from_millis(1500));
        running.signal(Signal::INT);
        let outcome = running.finish();
        assert_eq!(outcome.status.code(), Some(130), "{outcome:#?}");
        host.assert_nothing_left(pid);
    }
}

#[test]
fn calibrate_tells_all_that_it_promises() {
    let host = Host::alone();
    let Some(running) = start(&host, &["calibrate", "--json"]) else { return };
    let pid = running.pid();
    let outcome = running.finish_within(Duration::from_secs(240));
    assert!(outcome.status.success(), "{outcome:#?}");
    host.assert_nothing_left(pid);
    let told = outcome.statement_of_all();
    let list = |name: &str| told[name].as_array().unwrap().clone();
    let floors: Vec<Value> = list("floors").iter().map(|floor| floor["busy"].clone()).collect();
    assert_eq!(floors, [Value::Bool(false), Value::Bool(true)], "{told:#}");
    assert!(list("floors").iter().all(|floor| count(&floor["added"]["count"]) > 0), "{told:#}");
    assert_eq!((list("ceilings").len(), count(&told["sleep_late"]["count"])), (8, 300), "{told:#}");
    let samples = |what: &str| count(&told["costs"][what]["count"]);
    let costs = ["clock_read", "ring_look", "system_call", "wake_up"].map(samples);
    assert_eq!(costs, [5000, 5000, 5000, 1000], "{told:#}");
    let ranges = told["costs"]["clock_read"]["ranges"].as_array().unwrap();
    let in_ranges: u64 = ranges.iter().map(|range| count(&range["count"])).sum();
    assert_eq!(in_ranges, 5000, "{told:#}");
    for ceiling in list("ceilings") {
        let highest = &ceiling["highest"];
        match highest["Ok"]["per_second"].as_f64() {
            Some(rate) => assert!(rate > 0.0, "{ceiling:#}"),
            None => skipped(format_args!("{}: {}", ceiling["backend"], highest["Err"])),
        }
    }
    // What is held with small packets is held with large ones of the same line.
    let presets = list("presets");
    assert!(presets.len() > 5, "{told:#}");
    let held = |preset: &Value, name: &str| preset[name].as_bool().unwrap();
    assert!(presets.iter().any(|preset| held(preset, "full")), "{told:#}");
}
