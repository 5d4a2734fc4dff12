//! Frames that the emulator itself loses: provoked, counted by their cause, and never called valid.

use crate::support::{Host, Outcome, installed};

/// Runs `script` behind `path`, which has to end INVALID because the emulator lost frames.
fn lossy(host: &Host, path: &[&str], script: &str) -> Option<Outcome> {
    let arguments = [&["shell", "--no-outside", "--json"], path, &["--", "sh", "-c", script]];
    let outcome = host.run(&arguments.concat());
    if outcome.stderr.contains("user namespace") {
        crate::support::skipped(&outcome.stderr);
        return None;
    }
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    let reasons = outcome.statement()["reasons"].to_string();
    assert!(reasons.contains("the emulator itself lost"), "{outcome:#?}");
    Some(outcome)
}

#[test]
fn a_ring_that_overflows_is_counted() {
    let host = Host::alone();
    if !installed(&["ping"]) {
        return;
    }
    // Nobody empties the ring of 8192 slots while the emulator stands still. A thread goes on until it has noticed.
    let script = "kill -STOP $TRUNKLINE_PID; \
                  for i in $(seq 200); do \
                    grep -L '^State:.T' /proc/$TRUNKLINE_PID/task/*/status | grep -q . || break; sleep 0.01; \
                  done; \
                  ping -n -q -l 12000 -c 12000 -W 1 {peer} >&2; \
                  kill -CONT $TRUNKLINE_PID; ping -n -q -c 3 -i 0.2 {peer} >&2; true";
    let Some(outcome) = lossy(&host, &["--delay", "1ms"], script) else { return };
    let up = outcome.lane("up");
    let (lost, entered) = (up.dropped("ring-full"), up.count("entered"));
    assert!(entered >= 12_003 && lost >= 12_000 - 8192 && lost < entered - 8000, "{up:?}");
    assert_eq!(up.count("dropped_by_emulator"), lost);
    assert_eq!(up.count("delivered") + up.count("in_flight"), entered - lost);
}

#[test]
fn frames_that_no_device_takes_are_counted() {
    let host = Host::alone();
    if !installed(&["ping", "ip"]) {
        return;
    }
    // The answers come a second after the near end has been switched off, and its wire with it.
    let script = "LC_ALL=C ping -n -q -c 5 -i 0.1 -W 2 {peer} >&2 & sleep 0.7; ip link set tl0 down; wait; true";
    let Some(outcome) = lossy(&host, &["--delay", "500ms"], script) else { return };
    let down = outcome.lane("down");
    let lost = down.dropped("send-failed");
    // What the kernel says of itself, such as its groups of IPv6, may have come before.
    assert!(outcome.stderr.contains(" 0 received"), "{outcome:#?}");
    assert!(lost >= 5 && lost + down.count("delivered") == down.count("entered"), "{down:?}");
    assert_eq!(down.count("dropped_by_emulator"), lost);
    assert!(outcome.lane("up").count("delivered") >= 5);
}
