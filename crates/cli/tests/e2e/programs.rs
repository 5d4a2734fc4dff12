//! Programs that people use, over the path, unchanged.

use crate::support::{Host, installed};
use trunkline_core::Span;

/// A path that hurries nobody, and that nobody overtakes.
const PATH: [&str; 8] =
    ["shell", "--best-effort", "--no-outside", "--json", "--rate", "20mbit", "--delay", "2ms"];
/// The rate of its line, in bytes per second.
const RATE: f64 = 20e6 / 8.0;

#[test]
fn iperf3_moves_data_and_the_emulator_loses_none() {
    let host = Host::alone();
    if !installed(&["iperf3"]) {
        return;
    }
    // A short queue, so that little more than two seconds' worth arrives in all.
    let client = [
        "--limit",
        "30p",
        "--peer",
        "iperf3 -s -1",
        "--",
        "iperf3",
        "-c",
        "{peer}",
        "-t",
        "2",
        "-J",
    ];
    let Some(outcome) = host.run_well(&[&PATH, &client[..]].concat()) else { return };
    let mut documents = serde_json::Deserializer::from_str(&outcome.stdout).into_iter();
    let told: serde_json::Value = documents.next().unwrap().unwrap();
    let goodput = told["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 8.0;
    // 1448 of 1500 bytes are the user's. A machine at work may leave the line idle for some of the time.
    let share = goodput / (RATE * 1448.0 / 1500.0);
    assert!((0.4..1.03).contains(&share), "{share} of the line: {told:#}");
    let (up, down) = (outcome.lane("up"), outcome.lane("down"));
    assert!(up.count("delivered_bytes") as f64 > 2.0 * goodput, "{goodput}: {up:?}");
    assert_eq!(up.count("dropped_by_emulator") + down.count("dropped_by_emulator"), 0);
}

#[test]
fn a_stream_of_udp_and_the_other_way_round() {
    let host = Host::alone();
    if !installed(&["iperf3"]) {
        return;
    }
    let script = "iperf3 -c {peer} -u -b 4M -t 1 && sleep 0.5 && iperf3 -c {peer} -t 1 -R";
    let client = ["--peer", "iperf3 -s", "--", "sh", "-c", script];
    let Some(outcome) = host.run_well(&[&PATH, &client[..]].concat()) else { return };
    let (up, down) = (outcome.lane("up"), outcome.lane("down"));
    // A second at 4 Mbit/s one way, with what acknowledges the second the other way, at the line's rate.
    let (there, back) = (up.count("delivered_bytes"), down.count("delivered_bytes"));
    assert!((450_000..900_000).contains(&there), "{there}");
    // A sender's buffer drains after its second: how much that is hangs on its congestion control.
    let uptime: Span = outcome.statement()["state"]["uptime"].as_str().unwrap().parse().unwrap();
    let most = RATE * uptime.as_secs_f64();
    assert!((RATE * 0.4..most).contains(&(back as f64)), "{back} of {most}");
    assert_eq!(up.count("dropped_by_emulator") + down.count("dropped_by_emulator"), 0);
}

#[test]
fn curl_fetches_a_file() {
    let host = Host::beside();
    if !installed(&["curl", "python3"]) {
        return;
    }
    let directory = format!("{}/served", env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&directory).unwrap();
    let content: Vec<u8> = (0..300_000u32).map(|index| (index * 7 % 251) as u8).collect();
    std::fs::write(format!("{directory}/file"), &content).unwrap();
    let server = format!("python3 -m http.server 8000 --directory {directory}");
    let fetched = format!("{directory}/fetched");
    let (url, time) = ("http://{peer}:8000/file", "%{time_total}\\n");
    let client = ["--peer", &server, "--", "curl", "-sS", "-w", time, "-o", &fetched, url];
    let Some(outcome) = host.run_well(&[&PATH, &client[..]].concat()) else { return };
    assert!(std::fs::read(&fetched).unwrap() == content, "the file came through unharmed");
    assert!(outcome.lane("down").count("delivered_bytes") > 300_000);
    let seconds: f64 = outcome.stdout.lines().next().unwrap().parse().unwrap();
    // Two round trips until it begins, and then the line's rate.
    assert!(seconds >= 0.008 + 300_000.0 / RATE, "{seconds} s");
}

/// Asks for the address of trunk.test as RFC 1035 §4 says, and prints the last four bytes of the answer.
const ASK: &str = "
import os, socket
question = b'\\x12\\x34\\x01\\x00\\0\\x01\\0\\0\\0\\0\\0\\0\\x05trunk\\x04test\\0\\0\\x01\\0\\x01'
asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asker.settimeout(5)
asker.sendto(question, (os.environ['TRUNKLINE_PEER'], 53))
print(socket.inet_ntoa(asker.recv(512)[-4:]))
";

#[test]
fn names_are_looked_up() {
    let host = Host::beside();
    if !installed(&["dnsmasq", "python3"]) {
        return;
    }
    // Without a daemon it keeps its user: an ordinary user's namespace has no other.
    let server = "PATH=$PATH:/usr/sbin; exec dnsmasq --no-daemon --conf-file=/dev/null --no-resolv --no-hosts \
                  --pid-file= --address=/trunk.test/192.0.2.77";
    let client = ["--peer", server, "--", "python3", "-c", ASK];
    let Some(outcome) = host.run_well(&[&PATH, &client[..]].concat()) else { return };
    assert_eq!(outcome.stdout.lines().next(), Some("192.0.2.77"), "{outcome:#?}");
}

/// Both ends of a conversation of many small messages over one TCP connection, as a terminal session is.
const TALK: &str = "
import os, socket, sys, time
if sys.argv[1] == 'serve':
    server = socket.create_server(('', 2222))
    line, _ = server.accept()
    while data := line.recv(4096):
        line.sendall(data.upper())
else:
    line = socket.create_connection((os.environ['TRUNKLINE_PEER'], 2222), 10)
    begun = time.monotonic()
    for number in range(100):
        word = b'key %d' % number
        line.sendall(word)
        assert line.recv(4096) == word.upper()
    print(time.monotonic() - begun)
";

#[test]
fn a_long_conversation_over_one_connection() {
    let host = Host::beside();
    if !installed(&["python3"]) {
        return;
    }
    let script = format!("{}/talk.py", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&script, TALK).unwrap();
    let server = format!("python3 {script} serve");
    let client = ["--peer", &server, "--", "python3", &script, "talk"];
    let Some(outcome) = host.run_well(&[&PATH, &client[..]].concat()) else { return };
    let seconds: f64 = outcome.stdout.lines().next().unwrap().parse().unwrap();
    assert!(seconds >= 100.0 * 0.004, "{seconds} s for 100 round trips of 4 ms");
    assert!(outcome.lane("up").count("delivered") >= 100);
}

/// A Java machine, or any interpreter on a busy machine.
#[test]
fn a_server_that_computes_before_it_listens_is_waited_for() {
    let host = Host::beside();
    if !installed(&["python3", "curl"]) {
        return;
    }
    let busy = "while time.monotonic() < end: pass\n";
    let serve = "http.server.test(http.server.SimpleHTTPRequestHandler, port=8000)";
    let script = format!("import http.server, time\nend = time.monotonic() + 5\n{busy}{serve}");
    let peer = format!("exec python3 -c '{script}'");
    let client = ["--peer", &peer, "--", "curl", "-sI", "http://{peer}:8000/"];
    let Some(outcome) = host.run_well(&[&PATH, &client[..]].concat()) else { return };
    assert!(outcome.stdout.starts_with("HTTP/1.0 200 OK"), "{outcome:#?}");
    assert!(!outcome.stderr.contains("the peer listens at no port"), "{outcome:#?}");
}

#[test]
fn a_peer_that_never_listens_is_told() {
    let host = Host::beside();
    for peer in ["exec sleep 60", "sleep 60 &", "true"] {
        let client = ["--peer", peer, "--", "true"];
        let Some(outcome) = host.run_well(&[&PATH, &client[..]].concat()) else { return };
        let told = "trunkline: the peer listens at no port so far: the program starts all the same";
        assert!(outcome.stderr.contains(told), "{outcome:#?}");
    }
}

#[test]
fn a_server_in_the_background_is_waited_for() {
    let host = Host::beside();
    if !installed(&["python3", "curl"]) {
        return;
    }
    let peer = "python3 -m http.server 8000 >/dev/null 2>&1 &";
    let client = ["--peer", peer, "--", "curl", "-sI", "http://{peer}:8000/"];
    let Some(outcome) = host.run_well(&[&PATH, &client[..]].concat()) else { return };
    assert!(outcome.stdout.starts_with("HTTP/1.0 200 OK"), "{outcome:#?}");
}
