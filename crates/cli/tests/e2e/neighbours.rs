//! The far end as a neighbour: its own addresses, multicast, broadcast, and addresses of the link.

use crate::reach::{has_v6, neighbour};
use crate::support::{Host, Outcome, installed, is_forbidden, skipped};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A path that hurries nobody.
const PATH: [&str; 4] = ["shell", "--delay", "30ms", "--best-effort"];

/// Hears one datagram to a group or to everybody and prints it, or sends ten each second for some seconds, by the
/// interface that the kernel chooses.
const GROUP: &str = r"
import socket, struct, sys, time
does, group, seconds = sys.argv[1:]
six = ':' in group
it = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
it.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
if does == 'hear':
    it.settimeout(int(seconds))
    it.bind(('', 5999))
    if six:
        asked = socket.inet_pton(socket.AF_INET6, group) + struct.pack('=I', 0)
        it.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, asked)
    elif group != '255.255.255.255':
        asked = socket.inet_aton(group) + socket.inet_aton('0.0.0.0')
        it.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, asked)
    print('heard', it.recv(100).decode(), flush=True)
else:
    for _ in range(10 * int(seconds)):
        it.sendto(b'word', (group, 5999))
        time.sleep(0.1)
";

/// The arguments by which the two ends hear and send, each once.
fn each_way<'a>(file: &'a str, group: &'a str, options: &[&'a str]) -> [Vec<String>; 2] {
    [("hear", "send", "2"), ("send", "hear", "20")].map(|(peer, program, seconds)| {
        let peer = format!("python3 {file} {peer} {group} 20");
        let program = ["python3", file, program, group, seconds];
        let words = [&PATH, options, &["--peer", &peer, "--"], &program].concat();
        words.into_iter().map(str::to_owned).collect()
    })
}

fn check_heard(outcome: &Outcome) {
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(said.contains("heard word"), "{outcome:#?}");
}

#[test]
fn multicast_and_broadcast_pass_between_the_ends_each_way() {
    if !installed(&["python3"]) {
        return;
    }
    let host = Host::beside();
    // With it the world outside has IPv6.
    let _other = host.namespace().map(neighbour);
    let file = format!("{}/group.py", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&file, GROUP).unwrap();
    let mut cases = Vec::new();
    for options in [&[][..], &["--no-outside"]] {
        cases.extend(["239.1.2.3", "255.255.255.255"].map(|group| (options, group)));
        cases.extend(has_v6().then_some((options, "ff15::123")));
    }
    for (options, group) in cases {
        for args in each_way(&file, group, options) {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let Some(outcome) = host.run_well(&args) else { return };
            check_heard(&outcome);
        }
    }
}

#[test]
fn they_do_so_for_an_ordinary_user() {
    let host = Host::beside();
    if host.separate().is_none() || !installed(&["python3", "setpriv"]) {
        return;
    }
    let home = tempfile::Builder::new().prefix("tl-user-").tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = home.path().join("trunkline");
    fs::copy(env!("CARGO_BIN_EXE_trunkline"), &program).unwrap();
    let file = home.path().join("group.py");
    fs::write(&file, GROUP).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    for group in ["239.1.2.3", "255.255.255.255"] {
        for args in each_way(file.to_str().unwrap(), group, &[]) {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
            command.arg(&program).args(args).env_remove("XDG_RUNTIME_DIR").current_dir("/");
            let outcome = host.start_command(command).finish();
            if is_forbidden(&outcome.stderr) {
                return skipped(&outcome.stderr);
            }
            check_heard(&outcome);
            host.assert_nothing_left(outcome.pid);
        }
    }
}

/// Answers what comes to any address by UDP and by TCP, or asks the address given by both, and prints whence the
/// datagram's answer came and what TCP brought.
const ANSWERS: &str = r"
import socket, sys, threading
if sys.argv[1] == 'serve':
    def stream():
        server = socket.create_server(('::', 7003), family=socket.AF_INET6)
        while True:
            server.accept()[0].sendall(b'by TCP')
    threading.Thread(target=stream, daemon=True).start()
    it = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    it.bind(('::', 7001))
    while True:
        it.sendto(*it.recvfrom(100))
else:
    at = socket.getaddrinfo(sys.argv[1], 7001, socket.AF_INET6, socket.SOCK_DGRAM)[0][4]
    it = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    it.settimeout(10)
    it.sendto(b'asked', at)
    source = it.recvfrom(100)[1]
    assert source[:2] == at[:2], source
    stream = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    stream.settimeout(10)
    stream.connect((at[0], 7003) + at[2:])
    print('from', at[0], stream.recv(100).decode())
";

#[test]
fn servers_of_ipv6_answer_from_the_address_that_was_asked() {
    if !installed(&["python3"]) {
        return;
    }
    if !has_v6() {
        return skipped("this kernel has no IPv6");
    }
    let host = Host::beside();
    let _other = host.namespace().map(neighbour);
    let file = format!("{}/answers.py", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&file, ANSWERS).unwrap();
    let peer = format!("python3 {file} serve");
    for options in [&[][..], &["--link", "far delay=1ms"]] {
        for to in ["fd00:746c::1", "fe80::74:6cff:fe00:1%tl0"] {
            let ends = ["--peer", &peer, "--", "python3", &file, to];
            let Some(outcome) = host.run_well(&[&PATH, options, &ends].concat()) else { return };
            let address = to.trim_end_matches("%tl0");
            assert!(outcome.stdout.contains(&format!("from {address}")), "{outcome:#?}");
            assert!(outcome.stdout.contains("by TCP"), "{outcome:#?}");
        }
    }
}
