//! UDP between the programs of `shell` and this machine: by host.trunkline, and by published ports.

use crate::reach::neighbour;
use crate::support::{Host, LIMIT, Outcome, installed, is_forbidden, skipped};
use std::fs;
use std::io;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use trunkline_netns::Namespace;

/// A path with a round trip of 60 ms.
const PATH: [&str; 4] = ["shell", "--delay", "30ms", "--best-effort"];
const ROUND_TRIP: f64 = 0.06;

/// Sends each of its arguments' sizes to host:port twice from one socket, and prints the sizes and the first bytes of
/// what comes back, then the seconds that the quickest took.
const CLIENT: &str = r"
import socket, sys, time
host, port, took = sys.argv[1], int(sys.argv[2]), []
family, _, _, _, at = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
it = socket.socket(family, socket.SOCK_DGRAM)
it.settimeout(20)
for size in sys.argv[3:]:
    for _ in range(2):
        begun = time.monotonic()
        it.sendto(b'q' * int(size), at)
        answer, source = it.recvfrom(70000)
        took.append(time.monotonic() - begun)
        assert source[:2] == at[:2], (source, at)
        print(len(answer), answer[:1].decode(), end=' ')
print(min(took))
";

/// Answers each datagram at `address` of the machine with as many bytes of `mark`, and gives the port.
fn serve(namespace: Option<&Namespace>, address: &str, mark: u8) -> u16 {
    let bind = || UdpSocket::bind((address, 0)).unwrap();
    let server = namespace.map_or_else(bind, |it| it.run(bind).unwrap());
    let port = server.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut buffer = vec![0; 70_000];
        while let Ok((length, client)) = server.recv_from(&mut buffer) {
            let _ = server.send_to(&vec![mark; length], client);
        }
    });
    port
}

fn client(host: &str, port: u16, sizes: &[&str]) -> Vec<String> {
    let port = port.to_string();
    [&["python3", "-c", CLIENT, host, &port], sizes]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// Runs the command over the path, unless the kernel cannot take datagrams in.
fn run(host: &Host, options: &[&str], command: &[String]) -> Option<Outcome> {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let outcome = host.run(&[&PATH, options, &["--"], &command].concat());
    if is_without(&outcome) {
        skipped(&outcome.stderr);
        return None;
    }
    assert!(outcome.status.success(), "{outcome:#?}");
    Some(outcome)
}

/// Whether this user may have no laboratory, or the kernel cannot take datagrams in.
fn is_without(outcome: &Outcome) -> bool {
    is_forbidden(&outcome.stderr) || outcome.stderr.contains("and not by UDP: the kernel cannot")
}

/// Checks that `answers` came, none in less than a round trip.
fn check(outcome: &Outcome, answers: &str) {
    let (came, seconds) = outcome.stdout.trim_end().rsplit_once(' ').unwrap_or_default();
    assert_eq!(came, answers, "{outcome:#?}");
    assert!(seconds.parse::<f64>().unwrap() >= ROUND_TRIP, "{outcome:#?}");
}

#[test]
fn this_machine_is_reached_by_udp_whatever_loopback_address_it_serves() {
    let host = Host::beside();
    if !installed(&["python3"]) {
        return;
    }
    let mut ports = vec![(serve(host.namespace(), "127.0.0.1", b'4'), "4")];
    if fs::exists("/proc/sys/net/ipv6").unwrap() {
        ports.push((serve(host.namespace(), "::1", b'6'), "6"));
    }
    for (port, mark) in ports {
        for name in ["host.trunkline", "{host}"] {
            // The longest is cut into fragments on the way.
            let command = client(name, port, &["1", "1200", "60000"]);
            let Some(outcome) = run(&host, &[], &command) else { return };
            let answers = [1, 1200, 60_000].map(|size| format!("{size} {mark} {size} {mark}"));
            check(&outcome, &answers.join(" "));
        }
    }
}

#[test]
fn the_peer_reaches_this_machine_by_udp_too() {
    let host = Host::beside();
    if !installed(&["python3"]) {
        return;
    }
    let port = serve(host.namespace(), "127.0.0.1", b'4');
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let script = home.path().join("peer.py");
    // It ends when it has printed, and so does the program, which would take it along.
    let done = home.path().join("done");
    let text = format!("{CLIENT}\nopen('{}', 'w')\n", done.display());
    fs::write(&script, text).unwrap();
    let peer = format!("python3 {} host.trunkline {port} 5", script.display());
    let wait = format!("timeout 20 sh -c 'until test -e {}; do sleep 0.1; done'", done.display());
    let outcome = run(&host, &["--peer", &peer], &["sh", "-c", &wait].map(str::to_owned));
    let Some(outcome) = outcome else { return };
    // What a peer prints is told on standard error.
    assert!(outcome.stderr.contains("\n5 4 5 4 "), "{outcome:#?}");
}

#[test]
fn a_udp_server_that_is_not_there_is_named() {
    let host = Host::beside();
    if !installed(&["python3"]) {
        return;
    }
    let find = || UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = host.namespace().map_or_else(find, |it| it.run(find).unwrap());
    let send = "import socket, sys, time\nit = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nit.sendto(b'?', (sys.argv[1], int(sys.argv[2])))\ntime.sleep(0.5)";
    let command = ["python3", "-c", send, "{host}", &port.to_string()].map(str::to_owned);
    let Some(outcome) = run(&host, &[], &command) else { return };
    let line = format!("host.trunkline:{port}/udp: nothing answers on this machine");
    assert_eq!(outcome.stderr.matches(&line).count(), 1, "{outcome:#?}");
}

#[test]
fn an_ordinary_user_reaches_this_machine_and_the_world_by_udp() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    if !installed(&["python3", "setpriv"]) {
        return;
    }
    let own = serve(Some(namespace), "127.0.0.1", b'm');
    let (other, _) = neighbour(namespace);
    let outside = serve(Some(&other), "192.0.2.2", b'o');
    let home = tempfile::Builder::new().prefix("tl-user-").tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = home.path().join("trunkline");
    fs::copy(env!("CARGO_BIN_EXE_trunkline"), &program).unwrap();
    for (to, port, mark) in [("host.trunkline", own, "m"), ("192.0.2.2", outside, "o")] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        command.arg(&program).args(PATH).arg("--").args(client(to, port, &["9"]));
        command.env_remove("XDG_RUNTIME_DIR").current_dir("/");
        let outcome = host.start_command(command).finish();
        if is_without(&outcome) {
            return skipped(&outcome.stderr);
        }
        check(&outcome, &format!("9 {mark} 9 {mark}"));
        host.assert_nothing_left(outcome.pid);
    }
}

#[test]
fn the_world_outside_is_reached_by_udp_of_ipv6() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    if !installed(&["python3"]) {
        return;
    }
    if !fs::exists("/proc/sys/net/ipv6").unwrap() {
        return skipped("this kernel has no IPv6");
    }
    let (other, _) = neighbour(namespace);
    let port = serve(Some(&other), "2001:db8::2", b'o');
    let Some(outcome) = run(&host, &[], &client("2001:db8::2", port, &["9"])) else { return };
    check(&outcome, "9 o 9 o");
}

/// Asks the port of the calling thread's namespace, from a socket for each number.
fn ask(port: u16, numbers: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let sockets: Vec<UdpSocket> =
        numbers.iter().map(|_| UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    for (socket, &number) in sockets.iter().zip(numbers) {
        socket.set_read_timeout(Some(Duration::from_millis(500)))?;
        socket.connect(("127.0.0.1", port))?;
        socket.send(&[number; 3])?;
    }
    let answer = |socket: &UdpSocket| {
        let mut buffer = vec![0; 99];
        let length = socket.recv(&mut buffer)?;
        Ok(buffer[..length].to_vec())
    };
    sockets.iter().map(answer).collect()
}

#[test]
fn a_published_udp_port_leads_to_a_server_inside_over_the_path() {
    let host = Host::beside();
    if !installed(&["python3"]) {
        return;
    }
    let find = || UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = host.namespace().map_or_else(find, |it| it.run(find).unwrap());
    let publish = format!("{port}:5000/udp");
    let echo = "import socket\nit = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nit.bind(('', 5000))\nwhile True:\n    data, of = it.recvfrom(70000)\n    it.sendto(data[::-1] + b'!', of)";
    let command = ["--publish", &publish, "--", "python3", "-c", echo];
    let mut running = host.start(&[&PATH[..], &command].concat());
    if !running.await_line_or_end("UDP port") {
        return skipped(running.told().join(" "));
    }
    let begun = Instant::now();
    let (answers, took) = loop {
        let asked = Instant::now();
        let ask = || ask(port, &[1, 2]);
        match host.namespace().map_or_else(ask, |it| it.run(ask).unwrap()) {
            Ok(answers) => break (answers, asked.elapsed()),
            other => assert!(begun.elapsed() < LIMIT, "{other:?}"),
        }
    };
    assert_eq!(answers, [[1, 1, 1, b'!'], [2, 2, 2, b'!']]);
    assert!(took.as_secs_f64() >= ROUND_TRIP, "{took:?}");
    let taken = host.start(&["shell", "--publish", &publish, "--", "true"]).finish();
    let line = format!("--publish {port}/udp: cannot listen");
    assert!(taken.stderr.contains(&line), "{taken:#?}");
    running.signal(rustix::process::Signal::TERM);
    host.assert_nothing_left(running.finish().pid);
}
