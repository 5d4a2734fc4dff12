//! What the programs of `shell` reach beyond the path: the machine's loopback, its name servers, the world outside; and
//! published ports, by which they are reached.

use crate::support::{Host, LIMIT, Outcome, Running, files_of, installed, is_forbidden, skipped};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use trunkline_netns::{End, Namespace, create_veth};

/// A path with a round trip of 60 ms.
const PATH: [&str; 4] = ["shell", "--delay", "30ms", "--best-effort"];
const ROUND_TRIP: f64 = 0.06;

/// Serves `body` by HTTP at `address` of the namespace, or of the machine if there is none, and gives the port.
fn serve(namespace: Option<&Namespace>, address: &str, body: &'static str) -> u16 {
    let bind = || TcpListener::bind((address, 0)).unwrap();
    let listener = namespace.map_or_else(bind, |it| it.run(bind).unwrap());
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let _ = respond(client, body);
        }
    });
    port
}

fn respond(mut client: TcpStream, body: &str) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && client.read(&mut byte)? == 1 {
        request.extend(byte);
    }
    let length = body.len();
    write!(client, "HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Whether the kernel has IPv6.
pub fn has_v6() -> bool {
    fs::exists("/proc/sys/net/ipv6").unwrap()
}

/// Fetches from inside, with the time until the connection stood in front of the body.
fn fetch(url: &str) -> Vec<String> {
    let format = "%{time_connect} ";
    ["curl", "-s", "-g", "-m", "20", "-w", format, url].map(str::to_string).to_vec()
}

fn run(host: &Host, options: &[&str], command: &[String]) -> Option<Outcome> {
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    host.run_well(&[&PATH, options, &["--"], &command].concat())
}

/// Checks that `body` came, over the path.
fn check(outcome: &Outcome, body: &str) {
    let time = outcome.stdout.trim_start_matches(body).trim();
    assert!(outcome.stdout.starts_with(body), "{outcome:#?}");
    let seconds: f64 = time.parse().unwrap();
    assert!(seconds >= ROUND_TRIP, "{seconds}: {outcome:#?}");
}

#[test]
fn this_machine_is_reached_by_its_name_whatever_loopback_address_it_serves() {
    let host = Host::beside();
    if !installed(&["curl"]) {
        return;
    }
    let inside = host.namespace();
    let mut ports = vec![serve(inside, "127.0.0.1", "of IPv4")];
    ports.extend(has_v6().then(|| serve(inside, "::1", "of IPv6")));
    for (port, body) in ports.into_iter().zip(["of IPv4", "of IPv6"]) {
        for name in ["host.trunkline", "{host}"] {
            let url = format!("http://{name}:{port}/");
            let Some(outcome) = run(&host, &[], &fetch(&url)) else { return };
            check(&outcome, body);
            assert!(outcome.stderr.contains("this machine as host.trunkline"), "{outcome:#?}");
        }
    }
}

#[test]
fn a_server_that_is_not_there_is_named_and_the_connection_reset() {
    let host = Host::beside();
    if !installed(&["curl"]) {
        return;
    }
    // A port of the test's own that nobody listens at.
    let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = host.namespace().map_or_else(bind, |it| it.run(bind).unwrap());
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let url = format!("http://host.trunkline:{port}/");
    let command = ["sh", "-c", &format!("curl -s -m 20 {url}; test $? = 56")];
    let Some(outcome) = run(&host, &[], &command.map(str::to_string)) else { return };
    let line = format!("host.trunkline:{port}: nothing answers on this machine");
    assert!(outcome.stderr.contains(&line), "{outcome:#?}");
    // Without the gateway the name is not known (curl's status 6).
    let command = command.map(|word| word.replace("56", "6"));
    let alone = run(&host, &["--no-outside"], &command).unwrap();
    assert!(!alone.stderr.contains("host.trunkline"), "{alone:#?}");
}

/// A dnsmasq that answers for one name at the loopback address of systemd's resolver.
fn resolver(host: &Host) -> Running {
    let mut command = Command::new("dnsmasq");
    command.args(["--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"]);
    command.args(["--listen-address=127.0.0.53", "--bind-interfaces", "--log-facility=-"]);
    command.args(["--user=root", "--pid-file=", "--address=/server.example/192.0.2.7"]);
    let mut running = host.start_command(command);
    running.await_line("started");
    running
}

/// The script asks by the C library, which asks by UDP, and says how many seconds that took; then it asks the same by TCP,
/// where the question has its length in front (RFC 1035 §4.2.2).
const BOTH_WAYS: &str = r"
import socket, struct, time
begun = time.monotonic()
print(socket.gethostbyname('server.example'), time.monotonic() - begun)
question = b'\0\7\1\0\0\1\0\0\0\0\0\0\6server\7example\0\0\1\0\1'
with socket.create_connection(('10.77.0.254', 53)) as it:
    it.sendall(struct.pack('>H', len(question)) + question)
    answer = it.recv(999)
print(socket.inet_ntoa(answer[-4:]))
";

#[test]
fn names_come_over_the_path_from_a_resolver_on_the_loopback_device() {
    let host = Host::beside();
    if host.separate().is_none() || !installed(&["dnsmasq", "unshare", "python3"]) {
        return;
    }
    if !Path::new("/etc/resolv.conf").exists() {
        return skipped("this machine has no /etc/resolv.conf");
    }
    let dns = resolver(&host);
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = home.path().join("resolv.conf");
    fs::write(&file, "nameserver 127.0.0.53\noptions edns0\n").unwrap();
    let script = home.path().join("both-ways.py");
    fs::write(&script, BOTH_WAYS).unwrap();
    let text = format!(
        "mount --bind {} /etc/resolv.conf && exec {} {} -- python3 {}",
        file.display(),
        env!("CARGO_BIN_EXE_trunkline"),
        PATH.join(" "),
        script.display(),
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &text]);
    let outcome = host.start_command(command).finish();
    dns.kill();
    assert!(outcome.status.success(), "{outcome:#?}");
    let answers: Vec<&str> = outcome.stdout.lines().collect();
    let [by_udp, "192.0.2.7"] = answers[..] else { panic!("{outcome:#?}") };
    let seconds: f64 = by_udp.strip_prefix("192.0.2.7 ").unwrap().parse().unwrap();
    assert!(seconds >= ROUND_TRIP, "the question did not cross the path: {seconds} s");
    host.assert_nothing_left(outcome.pid);
    let kept = fs::read_to_string("/etc/resolv.conf").unwrap();
    assert!(!kept.contains("10.77.0.254"), "the machine's own file was changed: {kept}");
}

/// Another host, with addresses of both families, and a server there. Returns its port.
pub fn neighbour(host: &Namespace) -> (Namespace, u16) {
    let other = Namespace::create().unwrap();
    create_veth(&End::new(&other, "tltn"), &End::new(host, "tltm"), 1500).unwrap();
    for (side, device, number) in [(&other, "tltn", 2), (host, "tltm", 1)] {
        side.add_address(device, format!("192.0.2.{number}/24").parse().unwrap()).unwrap();
        if has_v6() {
            side.add_address(device, format!("2001:db8::{number}/64").parse().unwrap()).unwrap();
        }
    }
    other.add_default_route("192.0.2.1".parse().unwrap()).unwrap();
    if has_v6() {
        host.add_default_route("2001:db8::2".parse().unwrap()).unwrap();
    }
    let port = serve(Some(&other), if has_v6() { "::" } else { "0.0.0.0" }, "from outside");
    (other, port)
}

/// Runs a program of the machine's.
fn set(host: &Host, line: &[&str]) -> bool {
    let mut command = Command::new(line[0]);
    command.args(&line[1..]);
    host.spawn(command).wait().unwrap().success()
}

#[test]
fn a_firewall_that_drops_what_is_passed_on_is_told_and_got_round() {
    let drop = "add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }";
    firewall(&["nft", drop], &["nft", "delete table ip filter"]);
}

#[test]
fn so_is_one_of_the_older_mechanism() {
    let policy = |policy| ["iptables-legacy", "-P", "FORWARD", policy];
    firewall(&policy("DROP"), &policy("ACCEPT"));
}

fn firewall(up: &[&str], down: &[&str]) {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    if !installed(&["curl", up[0]]) {
        return;
    }
    let (_other, port) = neighbour(namespace);
    if !set(&host, up) && up[0] == "iptables-legacy" {
        return skipped("this kernel has no ip_tables");
    }
    let url = format!("http://192.0.2.2:{port}/");
    let outcome =
        host.start(&[&PATH[..], &["--", "curl", "-s", "-m", "20", &url]].concat()).finish();
    assert!(outcome.status.success() && outcome.stdout == "from outside", "{outcome:#?}");
    assert!(outcome.stderr.contains("chain FORWARD of table filter"), "{outcome:#?}");
    let tool = if up[0] == "nft" { "iptables" } else { up[0] };
    let remedy = format!(": {tool} -I FORWARD -i 'tl+' -j ACCEPT");
    assert!(outcome.stderr.contains(&remedy), "{outcome:#?}");
    assert!(set(&host, down));
    let free = run(&host, &[], &fetch(&url)).unwrap();
    check(&free, "from outside");
    assert!(!free.stderr.contains("drops packets"), "{free:#?}");
}

#[test]
fn the_world_outside_is_reached_by_ipv6_where_the_machine_reaches_it() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    if !installed(&["curl"]) {
        return;
    }
    if !has_v6() {
        return skipped("this kernel has no IPv6");
    }
    let (_other, port) = neighbour(namespace);
    let url = format!("http://[2001:db8::2]:{port}/");
    let Some(outcome) = run(&host, &[], &fetch(&url)) else { return };
    check(&outcome, "from outside");
}

#[test]
fn an_ordinary_user_reaches_the_machine_and_the_world_by_tcp() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    if !installed(&["curl", "setpriv"]) {
        return;
    }
    let (_other, port) = neighbour(namespace);
    let own = serve(Some(namespace), "127.0.0.1", "from the machine");
    let home = tempfile::Builder::new().prefix("tl-user-").tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = home.path().join("trunkline");
    fs::copy(env!("CARGO_BIN_EXE_trunkline"), &program).unwrap();
    for (url, body) in [
        (format!("http://192.0.2.2:{port}/"), "from outside"),
        (format!("http://host.trunkline:{own}/"), "from the machine"),
    ] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
        command.arg(&program).args(PATH).arg("--").args(fetch(&url));
        command.env_remove("XDG_RUNTIME_DIR").current_dir("/");
        let outcome = host.start_command(command).finish();
        if is_forbidden(&outcome.stderr) {
            return skipped(&outcome.stderr);
        }
        check(&outcome, body);
        assert!(outcome.stderr.contains("the world outside is reached by TCP"), "{outcome:#?}");
        host.assert_nothing_left(outcome.pid);
    }
}

#[test]
fn a_published_port_leads_to_a_server_inside_over_the_path() {
    let host = Host::beside();
    if !installed(&["python3"]) {
        return;
    }
    let find = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let port = host.namespace().map_or_else(find, |it| it.run(find).unwrap());
    let publish = format!("{port}:8000");
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(home.path().join("page"), "from inside").unwrap();
    let server = ["python3", "-m", "http.server", "8000", "--directory"];
    let place = [home.path().to_str().unwrap()];
    let options = ["--publish", &publish, "--"];
    let mut running = host.start(&[&PATH[..], &options, &server, &place].concat());
    if !running.await_line_or_end("leads to port 8000 inside") {
        return skipped(running.told().join(" "));
    }
    let begun = Instant::now();
    let (answer, took) = loop {
        let ask = || get(port);
        let asked = Instant::now();
        match host.namespace().map_or_else(ask, |it| it.run(ask).unwrap()) {
            Ok(answer) if !answer.is_empty() => break (answer, asked.elapsed()),
            other => assert!(begun.elapsed() < LIMIT, "{other:?}"),
        }
        thread::sleep(Duration::from_millis(50));
    };
    assert!(answer.ends_with("from inside"), "{answer}");
    // One round trip for the connection inside, one for the page.
    assert!(took.as_secs_f64() >= 2.0 * ROUND_TRIP, "{took:?}");
    let taken = host.start(&["shell", "--publish", &publish, "--", "true"]).finish();
    assert!(taken.stderr.contains(&format!("--publish {port}: cannot listen")), "{taken:#?}");
    running.signal(rustix::process::Signal::TERM);
    host.assert_nothing_left(running.finish().pid);
}

/// Fetches the page from the port of the calling thread's namespace.
fn get(port: u16) -> std::io::Result<String> {
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    server.write_all(b"GET /page HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    server.read_to_string(&mut answer).map(|_| answer)
}

#[test]
fn files_for_programs_of_a_killed_run_go_with_the_next() {
    // Alone: a start of another test's, in another network, would sweep the record of this one's.
    let host = Host::alone();
    if host.separate().is_none() {
        return;
    }
    let mut running =
        host.start(&[&PATH[..], &["--", "sh", "-c", "echo ready >&2; sleep 40"]].concat());
    running.await_line("ready");
    let pid = running.pid();
    assert!(files_of(pid).iter().any(|name| name.ends_with(".hosts")));
    running.kill();
    let next = host.run_well(&["shell", "--best-effort", "--no-outside", "--", "true"]);
    assert!(next.is_some());
    host.assert_nothing_left(pid);
}

#[test]
fn a_doctor_tries_everything_and_leaves_nothing() {
    let host = Host::beside();
    let outcome = host.run(&["doctor", "--json"]);
    let findings = outcome.statement_of_all();
    let state = |what: &str| -> String {
        let found = findings.as_array().unwrap().iter().find(|it| it["what"] == what);
        found.map_or(String::new(), |it| it["state"].as_str().unwrap().to_owned())
    };
    let missing = findings.as_array().unwrap().iter().any(|it| it["state"] == "missing");
    assert_eq!(outcome.status.code(), Some(i32::from(missing)), "{outcome:#?}");
    for finding in findings.as_array().unwrap() {
        assert_eq!(finding["state"] == "good", finding["remedy"].is_null(), "{finding}");
    }
    if host.separate().is_some() {
        for what in ["rights", "namespaces", "packet sockets"] {
            assert_eq!(state(what), "good", "{what}: {outcome:#?}");
        }
        assert_eq!(state("IPv6 outside"), "limited", "this namespace has no routes");
    }
    let plain = host.run(&["doctor"]);
    assert_eq!(
        plain.stdout.matches("-> ").count(),
        plain.stdout.lines().count() - findings.as_array().unwrap().len()
    );
}
