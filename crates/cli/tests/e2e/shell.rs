//! `trunkline shell`: delays, directions, several links, and what the program finds.

use crate::support::{Host, installed, is_forbidden, skipped};

const QUIET: [&str; 4] = ["shell", "--best-effort", "--no-outside", "--json"];

fn with<'a>(path: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&QUIET, path, &["--"], command].concat()
}

#[test]
fn ping_takes_twice_the_delay() {
    let host = Host::alone();
    let ping = ["ping", "-n", "-c", "5", "-i", "0.2", "{peer}"];
    if !installed(&["ping"]) {
        return;
    }
    let arguments = with(&["--delay", "30ms"], &ping);
    let Some(outcome) = host.ping_well(&arguments, &[(5, 60.0)]) else { return };
    for direction in ["up", "down"] {
        let lane = outcome.lane(direction);
        assert!(lane.count("delivered") >= 5, "{lane:?}");
        assert_eq!(lane.count("dropped_by_emulator"), 0);
        assert_eq!(lane.mean_delay("propagate").as_deref(), Some("30ms"));
    }
}

#[test]
fn the_directions_may_differ() {
    let host = Host::alone();
    if !installed(&["ping"]) {
        return;
    }
    let ping = ["ping", "-n", "-c", "3", "-i", "0.2", "{peer}"];
    let path = ["--delay", "3ms", "--up-delay", "40ms", "--down-rate", "10mbit"];
    let Some(outcome) = host.ping_well(&with(&path, &ping), &[(3, 43.0)]) else { return };
    let (up, down) = (outcome.lane("up"), outcome.lane("down"));
    assert_eq!(up.mean_delay("propagate").as_deref(), Some("40ms"));
    assert_eq!(down.mean_delay("propagate").as_deref(), Some("3ms"));
    assert_eq!(up.mean_delay("transmit"), None, "the uplink has no rate");
    assert!(down.mean_delay("transmit").is_some());
}

#[test]
fn loss_is_counted_by_cause_and_ipv6_works() {
    let host = Host::beside();
    if !installed(&["ping"]) {
        return;
    }
    let lossy = format!("{}/loss", env!("CARGO_TARGET_TMPDIR"));
    // Every second packet of the uplink is lost, the first of all among them.
    std::fs::write(&lossy, "1\n0\n").unwrap();
    let loss = format!("trace:{lossy}");
    // ping answers 1 when answers are missing.
    let script = "ping -n -6 -c 6 -i 0.2 -W 1 $TRUNKLINE_PEER6 || test $? = 1";
    let arguments = with(&["--up-loss", &loss], &["sh", "-c", script]);
    let Some(outcome) = host.run_well(&arguments) else { return };
    let (up, down) = (outcome.lane("up"), outcome.lane("down"));
    assert_eq!(up.count("entered").div_ceil(2), up.count("entered") - up.count("delivered"));
    assert!(up.count("entered") >= 6 && down.count("delivered") >= 2, "{outcome:#?}");
    let answered = outcome.ping_times().len();
    assert!((2..=4).contains(&answered), "{answered} of 6: {outcome:#?}");
}

#[test]
fn paths_too_small_for_ipv6_do_without_and_say_so() {
    let host = Host::beside();
    if !installed(&["ping"]) {
        return;
    }
    for (mtu, v6) in
        [("68", false), ("296", false), ("576", false), ("1279", false), ("1280", true)]
    {
        // The largest echo request that fits: headers of IPv4 and ICMP are 28 bytes.
        let size = (mtu.parse::<u32>().unwrap() - 28).to_string();
        let script = format!("ping -n -c 1 -M do -s {size} {{peer}} && echo 6=$TRUNKLINE_PEER6");
        let Some(outcome) = host.run_well(&with(&["--mtu", mtu], &["sh", "-c", &script])) else {
            return;
        };
        let told = outcome.stderr.contains("peer has no IPv6, which needs --mtu 1280 or more");
        assert_eq!(told, !v6, "{outcome:#?}");
        let address = if v6 { "6=fd00:746c::1\n" } else { "6=\n" };
        assert!(outcome.stdout.contains(address), "{mtu}: {outcome:#?}");
    }
}

#[test]
fn two_links_in_one_process() {
    let host = Host::alone();
    if !installed(&["ping"]) {
        return;
    }
    let script = "ping -n -c 3 -i 0.2 {peer} && ping -n -c 3 -i 0.2 $TRUNKLINE_PEER_SATELLITE";
    let link = "satellite delay=150ms down-delay=130ms";
    let arguments = with(&["--delay", "15ms", "--link", link], &["sh", "-c", script]);
    let Some(outcome) = host.ping_well(&arguments, &[(3, 30.0), (3, 280.0)]) else { return };
    let delay = |lane| outcome.lane(lane).mean_delay("propagate").unwrap();
    let delays = ["peer/up", "peer/down", "satellite/up", "satellite/down"].map(delay);
    assert_eq!(delays, ["15ms", "15ms", "150ms", "130ms"]);
}

#[test]
fn the_program_is_told_where_the_peer_is() {
    let host = Host::beside();
    let script = "echo $TRUNKLINE_PEER $TRUNKLINE_PEER6 {peer} {peer6} {far} $TRUNKLINE_PEER_FAR";
    let arguments = with(&["--link", "far delay=1ms"], &["sh", "-c", script]);
    let Some(outcome) = host.run_well(&arguments) else { return };
    let told = "10.77.0.1 fd00:746c::1 10.77.0.1 fd00:746c::1 10.77.1.1 10.77.1.1";
    assert_eq!(outcome.stdout.lines().next(), Some(told));
    assert!(outcome.stderr.contains("far 10.77.1.1 (here 10.77.1.2)"), "{outcome:#?}");
}

#[test]
fn the_world_outside_is_the_hosts_and_is_left_as_it_was() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    let before = namespace.sysctl("net/ipv4/ip_forward").unwrap();
    let arguments = ["shell", "--best-effort", "--", "cat", "/proc/net/route"];
    let Some(outcome) = host.run_well(&arguments) else { return };
    // A default route (destination 0) by way of 10.77.0.1, in the kernel's byte order.
    let gateway = format!("{:08X}", u32::from_ne_bytes([10, 77, 0, 1]));
    let default = |line: &str| line.contains("\t00000000\t") && line.contains(&gateway);
    if outcome.stderr.contains("outside is reached") {
        assert!(outcome.stdout.lines().any(default), "{outcome:#?}");
    } else {
        assert!(outcome.stderr.contains("outside is not reached: "), "{outcome:#?}");
    }
    assert_eq!(namespace.sysctl("net/ipv4/ip_forward").unwrap(), before);
}

#[test]
fn an_empty_variable_names_no_shell() {
    let host = Host::beside();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.args(QUIET).env("SHELL", "");
    let outcome = host.start_command(command).finish();
    if is_forbidden(&outcome.stderr) {
        return skipped(&outcome.stderr);
    }
    assert!(outcome.status.success(), "{outcome:#?}");
}
