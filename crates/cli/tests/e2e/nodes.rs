//! `trunkline cluster node` by hand: nodes that die, fail or are stopped, and Ethernet frames beside other traffic.

use crate::support::{Host, Running, skipped};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use trunkline_netns::{End, IpNet, Mac, Namespace, SpawnOptions, create_veth, spawn};

/// The next port that is tried. Of itself the kernel gives out those from 32768 (ip(7)): one of these that is let go is
/// not given to the next program that asks for any.
static PORT: AtomicU16 = AtomicU16::new(20_000);

/// A socket on the loopback where the nodes are.
fn socket(host: &Host) -> UdpSocket {
    let next = || UdpSocket::bind((Ipv4Addr::LOCALHOST, PORT.fetch_add(1, Ordering::Relaxed)));
    let bind = || (0..100).find_map(|_| next().ok()).expect("a free port");
    host.separate().map_or_else(bind, |namespace| namespace.run(bind).unwrap())
}

/// So many addresses at which nobody listens.
fn places(host: &Host, count: usize) -> Vec<String> {
    let sockets: Vec<UdpSocket> = (0..count).map(|_| socket(host)).collect();
    sockets.iter().map(|it| it.local_addr().unwrap().to_string()).collect()
}

/// Starts the node that listens at one of these places.
fn at(host: &Host, places: &[String], place: usize, id: u16, more: &[&str]) -> Running {
    let (id, list) = (id.to_string(), places.join(","));
    let own = ["cluster", "node", "--id", &id, "--bind", &places[place], "--peers", &list];
    host.start(&[&own[..], more].concat())
}

/// Nodes on loopback, started by hand, each with its number and further arguments.
fn by_hand(host: &Host, more: &[(u16, &[&str])]) -> Vec<Running> {
    let places = places(host, more.len());
    let start = |(place, &(id, more))| at(host, &places, place, id, more);
    more.iter().enumerate().map(start).collect()
}

/// Three of them at work.
fn three(host: &Host, more: [&[&str]; 3]) -> Vec<Running> {
    let all = ["--buffers", "16", "--test", "latency:rounds=100000000"];
    let more = more.map(|more| [&all, more].concat());
    let [one, two, three] = more.each_ref().map(|it| &it[..]);
    let mut nodes = by_hand(host, &[(0, one), (1, two), (2, three)]);
    nodes.iter_mut().for_each(|node| node.await_line("all 3 nodes are there"));
    nodes
}

/// Nodes that would wait for each other for ever, or take frames for what they are not, do not begin.
#[test]
fn nodes_with_different_settings_are_told_which() {
    let host = Host::beside();
    let latency: &[&str] = &["--test", "latency:rounds=5"];
    let cases: [(&[&str], &str); 8] = [
        (&["--test", "latency:rounds=6"], "rounds"),
        (&["--test", "all-to-all:rounds=5"], "--test"),
        (&["--test", "latency:rounds=5,words=2"], "words"),
        (&["--test", "latency:rounds=5", "--frame", "4000"], "--frame"),
        (&["--test", "latency:rounds=5", "--buffers", "64"], "--buffers"),
        (&["--test", "latency:rounds=5", "--protocol", "traditional"], "--protocol"),
        (&["--test", "latency:rounds=5", "--protocol", "careful:lease=1s"], "lease"),
        (&["--test", "latency:rounds=5", "--protocol", "careful:audit=1s"], "audit"),
    ];
    for (other, name) in cases {
        let unlike = |said: &str| said.contains(&format!(" has {name} = "));
        for node in by_hand(&host, &[(0, latency), (1, other)]) {
            let outcome = node.finish();
            assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
            assert!(unlike(&outcome.stderr), "{name}: {}", outcome.stderr);
            assert!(outcome.stderr.contains("give all nodes the same"), "{outcome:#?}");
        }
    }
    // What only looks different, and what is a node's own.
    let same: &[&str] =
        &["--test", "latency:words=1,rounds=5", "--protocol", "careful:audit=200ms"];
    let own: &[&str] = &["--test", "latency:rounds=5", "--seed", "7", "--silence", "20s"];
    let mut nodes = by_hand(&host, &[(0, same), (1, own)]);
    nodes.iter_mut().for_each(|node| node.await_line("all 2 nodes are there"));
    nodes.into_iter().for_each(Running::kill);
}

/// A node whose number is another's in the list of peers hears itself.
#[test]
fn a_number_that_is_another_nodes_is_told() {
    let host = Host::beside();
    let test: &[&str] = &["--test", "latency:rounds=5"];
    let [first, second] =
        <[Running; 2]>::try_from(by_hand(&host, &[(0, test), (0, test)])).ok().unwrap();
    let outcome = second.finish();
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    assert!(outcome.stderr.contains("another node says that it is node 0"), "{outcome:#?}");
    first.kill();
}

/// What a node that had to fail says.
fn fails(node: Running) -> String {
    let outcome = node.finish();
    assert_eq!(outcome.status.code(), Some(1), "{outcome:#?}");
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "it begins, and says why it ends: {outcome:#?}");
    lines[1].to_owned()
}

/// The first to notice a silent node tells the other.
#[test]
fn a_node_that_is_killed_is_noticed_by_the_others() {
    let host = Host::beside();
    let mut nodes = three(&host, [&["--silence", "3s"]; 3]);
    nodes.remove(1).kill();
    for node in nodes {
        let said = fails(node);
        assert!(said.contains("node 1 is gone: it has not answered for 3s"), "{said}");
    }
}

/// A node that was killed and started again would wait for a run that is over or half done: both are told.
#[test]
fn a_node_that_is_started_again_is_told() {
    let host = Host::beside();
    for protocol in ["careful", "traditional"] {
        let places = places(&host, 2);
        let test = ["--protocol", protocol, "--test", "latency:rounds=100000000"];
        let mut nodes = [0, 1].map(|id| at(&host, &places, id, id as u16, &test));
        nodes.iter_mut().for_each(|node| node.await_line("all 2 nodes are there"));
        let [stays, dies] = nodes;
        dies.kill();
        let again = at(&host, &places, 1, 1, &test).finish();
        assert_eq!(again.status.code(), Some(1), "{again:#?}");
        let why = "node 1 is gone: it was started again";
        assert!(again.stderr.contains(&format!("node 0 has failed: {why}")), "{again:#?}");
        let said = fails(stays);
        assert!(said.contains(why), "{protocol}: {said}");
    }
}

/// A node that waits for the others says for whom, and whether anybody listens there.
#[test]
fn a_node_that_waits_for_others_says_for_whom() {
    let host = Host::beside();
    let places = places(&host, 3);
    let silent = UdpSocket::bind(&places[2]);
    let mut node = at(&host, &places, 0, 0, &["--test", "latency:rounds=5"]);
    node.await_line(&format!("node 0 waits for node 1 at {} (nobody listens there)", places[1]));
    if host.separate().is_none() && silent.is_ok() {
        node.await_line(&format!("node 0 waits for node 2 at {}", places[2]));
    }
    node.kill();
}

/// Whatever a stranger sends to a node's port: it is not taken for a peer's, neither while the nodes meet nor while they work.
#[test]
fn strangers_change_nothing() {
    let host = Host::beside();
    let stranger = socket(&host);
    let frame = |kind: u8, from: u8| {
        let mut frame = [0; 36];
        (frame[0], frame[1], frame[5], frame[19], frame[27]) = (1, kind, from, 4, 0);
        frame
    };
    let sprayed = [
        &[1, 2, 3][..],
        &[],
        &[0xff; 1400],
        &frame(4, 1),
        &frame(1, 1),
        &frame(5, 0),
        b"\0\0\x01\x02it cannot go on",
        b"\0\0\x01\x01\n--test=none",
    ];
    for protocol in ["careful", "traditional"] {
        let places = places(&host, 2);
        let test = ["--protocol", protocol, "--test", "latency:rounds=100000000"];
        let spray = || {
            for octets in sprayed {
                places.iter().for_each(|place| drop(stranger.send_to(octets, place)));
            }
        };
        let first = at(&host, &places, 0, 0, &test);
        for _ in 0..20 {
            spray();
            thread::sleep(Duration::from_millis(10));
        }
        let mut nodes = [first, at(&host, &places, 1, 1, &test)];
        nodes.iter_mut().for_each(|node| node.await_line("all 2 nodes are there"));
        (0..100).for_each(|_| spray());
        thread::sleep(Duration::from_millis(300));
        let [stopped, other] = nodes;
        stopped.signal(Signal::INT);
        assert_eq!(stopped.finish().status.code(), Some(130));
        assert!(fails(other).contains("node 0 has failed: it was stopped"), "{protocol}");
    }
}

#[test]
fn a_node_that_fails_or_is_stopped_tells_the_others() {
    let host = Host::beside();
    let nodes = three(&host, [&[], &[], &["--drop", "1%"]]);
    for (number, node) in nodes.into_iter().enumerate() {
        let said = fails(node);
        assert!(said.contains("reliability violated"), "{said}");
        assert_eq!(said.contains("node 2 has failed: "), number < 2, "{said}");
    }
    let mut nodes = three(&host, [&[]; 3]);
    let stopped = nodes.remove(0);
    stopped.signal(Signal::INT);
    let outcome = stopped.finish();
    assert_eq!(outcome.status.code(), Some(130), "{outcome:#?}");
    for node in nodes {
        let said = fails(node);
        assert!(said.contains("node 0 has failed: it was stopped"), "{said}");
    }
}

/// A node whose addresses come by its input, and which ends with it.
struct Fed {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Fed {
    fn start(namespace: &Namespace, number: usize, arguments: &[&str]) -> Fed {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
        command.args(["cluster", "node", "--nodes", "2", "--id", &number.to_string()]);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn(namespace, command, SpawnOptions::default()).unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Fed { child, stdout }
    }

    /// What it says next under this name; it also says how far it has come.
    fn line(&mut self, name: &str) -> Value {
        loop {
            let mut line = String::new();
            self.stdout.read_line(&mut line).unwrap();
            let said: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| panic!("it says {line:?}"));
            if !said[name].is_null() {
                return said[name].clone();
            }
        }
    }

    fn tell(&mut self, peers: &Value) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{}", serde_json::json!({ "peers": peers })).unwrap();
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// A node that is told that there is nowhere to go to ends without a word.
#[test]
fn a_node_that_need_not_begin_ends() {
    let host = Host::beside();
    let Some(namespace) = host.separate() else { return };
    let mut node = Fed::start(namespace, 0, &["--bind", "127.0.0.1:0", "--test", "latency"]);
    node.line("listens");
    node.tell(&serde_json::json!([]));
    node.end();
}

/// Datagrams that the kernel dropped because a socket of this namespace was full.
fn dropped(namespace: &Namespace) -> u64 {
    let table = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/udp").unwrap());
    let of = |line: &str| line.split_whitespace().next_back()?.parse::<u64>().ok();
    table.unwrap().lines().skip(1).filter_map(of).sum()
}

/// Sends datagrams that nobody reads until told to stop, for at most a minute.
fn flood(to: IpAddr, stop: &AtomicBool) {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let begin = Instant::now();
    while !stop.load(Ordering::Relaxed) && begin.elapsed() < Duration::from_secs(60) {
        for _ in 0..64 {
            // What the device does not take is no loss here.
            let _ = socket.send_to(&[0; 1000], (to, 9));
        }
    }
}

/// Careful frames have a pool of buffers to themselves: while other traffic fills a socket of its own on the same device
/// none of them is lost.
#[test]
fn careful_frames_lose_nothing_beside_a_flood_on_the_same_device() {
    let host = Host::alone();
    if host.separate().is_none() {
        return;
    }
    let spaces = [Namespace::create(), Namespace::create()];
    let [Ok(near), Ok(far)] = spaces else {
        return skipped("cannot make network namespaces: run as root");
    };
    let ends = [
        End::new(&near, "tl").with_mac(Mac::local(0)),
        End::new(&far, "tl").with_mac(Mac::local(1)),
    ];
    create_veth(&ends[0], &ends[1], 9000).unwrap();
    let (here, there) = (Ipv4Addr::new(10, 78, 0, 1), Ipv4Addr::new(10, 78, 0, 2));
    near.add_address("tl", IpNet::new(here, 24).unwrap()).unwrap();
    far.add_address("tl", IpNet::new(there, 24).unwrap()).unwrap();
    let silent = far.run(|| UdpSocket::bind((there, 9)).unwrap()).unwrap();
    let test = ["--bind", "tl", "--test", "throughput:words=1000,messages=30000,ahead=20"];
    let mut nodes: Vec<Fed> = [&near, &far]
        .into_iter()
        .enumerate()
        .map(|(number, space)| Fed::start(space, number, &test))
        .collect();
    let peers: Value = nodes.iter_mut().map(|node| node.line("listens")).collect();
    assert_eq!(peers[1], "02:74:00:00:00:01");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| near.run(|| flood(there.into(), &stop)).unwrap());
        nodes.iter_mut().for_each(|node| node.tell(&peers));
        let outcomes: Vec<Value> = nodes.iter_mut().map(|node| node.line("ended")).collect();
        stop.store(true, Ordering::Relaxed);
        for outcome in outcomes {
            assert!(outcome["failure"].is_null() && outcome["wrong"].is_null(), "{outcome}");
            assert_eq!(outcome["kernel_dropped"], 0, "{outcome}");
            assert!(outcome["received"].as_u64().unwrap() >= 30_000, "{outcome}");
        }
    });
    nodes.into_iter().for_each(Fed::end);
    assert!(dropped(&far) > 1000, "the flood was none: {}", dropped(&far));
    drop(silent);
}
