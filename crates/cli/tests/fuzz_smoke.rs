//! The fuzz targets' bodies over good inputs, damaged ones and noise: seeded, so that a failure comes
//! again, and bounded. A long search is `make fuzz`'s work (`fuzz/README.md`).

#[path = "../../../fuzz/src/lib.rs"]
mod fuzz;

use fuzz::{BODIES, Body};
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::panic::catch_unwind;
use std::path::Path;
use trunkline_core::Time;
use trunkline_netns::decode;
use trunkline_path::discipline::KINDS;
use trunkline_path::impairment::{LossTrace, Setting};
use trunkline_path::{DeliveryTrace, DisciplineSpec, Limit};
use trunkline_probe::CodeKey;
use trunkline_probe::wire::datagram::{self, Head};
use trunkline_probe::wire::frame;
use trunkline_probe::wire::message::{
    Answer, FlowReport, FlowSpec, Request, Role, Transport, UrpSpec,
};
use trunkline_probe::wire::record::{Record, Writer};
use trunkline_transport::envelope::{Packet, write};
use trunkline_transport::tcp::wire::{Flow, decode};
use trunkline_transport::tcp::{self, Tcp};
use trunkline_transport::urp::{Part, Seq, Trailer, TrailerKind};

/// Inputs that decoders accept, from which damaged ones are made.
const TEXTS: [&str; 21] = [
    "250ms",
    "1.5us",
    "1.544Mbit/s",
    "32KiB",
    "1200c",
    "loss=ge:p=1%,r=20%,good=0%,bad=90%",
    "loss=0.3%",
    "bit-errors=1e-7",
    "reorder=1%:5ms",
    "jitter=correlated:normal:3ms:rho=0.9",
    "jitter=independent:exponential:2ms",
    "0s rate=10mbit; 5s rate=1mbit; 7s delay=80ms; repeat 10s",
    "1\n1\n2\n5 # a comment\n9\n",
    "0 0 1 0, 1\n1 # lost\n",
    "rate=10mbit\nup-delay=50ms\nqueue=fq-codel\nframing=ethernet\nloss=1%\n",
    "rate=155.52mbit\nframing=atm-aal5\nlimit=1200c\nmtu=9180\nkey=vlan\nseed=7\n",
    r#"{"settings": {"delay": "80ms", "up-loss": "1%"}, "after": "2s", "link": "satellite"}"#,
    r#"{"settings": {"rate": "\u0031mbit"}}"#,
    TWO_HOSTS,
    LOOP,
    RING,
];

/// A scenario with a grid of six cells.
const TWO_HOSTS: &str = r#"
[interface.kmc]
split = [{ below = 512, piece = 64 }, { piece = 1024 }]
[processor.vax]
write = { fixed = "1ms", per_byte = "1us" }
[module.m]
discipline = { kind = "drr", quantum = 9 }
[[host]]
name = "a"
interface = "kmc"
processor = "vax"
[[host]]
name = "b"
[[link]]
between = ["a", "b"]
rate = ["1mbit", "9mbit"]
module = "m"
forward = { delay = "1ms", loss = 0.1 }
[[traffic]]
name = "t"
kind = "bulk"
from = "a"
to = "b"
count = [1, 2, 3]
transport = { kind = "urp", block = 9, outstanding = 7 }
until = "u"
[[traffic]]
name = "u"
kind = "interactive"
from = "b"
to = "a"
sizes = [1, 64]
start_after = "t:1kB"
"#;

/// A scenario whose traffic comes back to its host.
const LOOP: &str = r#"
host = [{ name = "a" }]
node = [{ name = "n", backplane = "8mbit" }, { name = "m" }]
link = [{ between = ["a", "n"] }, { between = ["n", "m"], limit = "9p" }]
[[traffic]]
name = "t"
kind = "paced"
from = "a"
to = "a"
via = ["n", "m", "n"]
size = 9
rate = "1kbit"
"#;

/// Hosts and a node on a shared medium.
const RING: &str = r#"
host = [{ name = "a" }, { name = "b" }]
node = [{ name = "n" }]
[[medium]]
name = "m"
kind = "half-duplex"
stations = ["a", "n", "b"]
rate = "9mbit"
limit = "9p"
turnaround = ["9us", "1ms"]
[[traffic]]
name = "t"
kind = "bulk"
from = "a"
to = "b"
"#;

/// Bytes that mean something to a decoder of text.
const MARKS: &[u8] = b"0123456789.=:,%-;\n \"{}";

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same everywhere.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.next() as u8).collect()
    }
}

/// A super-frame of TCP over IPv4 (kind 1) or IPv6 (kind 4) as the kernel hands it over, in a VLAN or not.
fn super_frame(v6: bool, vlan: bool, payload: usize) -> Vec<u8> {
    let mut frame = vec![1, if v6 { 4 } else { 1 }];
    let transport = 14 + if vlan { 4 } else { 0 } + if v6 { 40 } else { 20 };
    for word in [0u16, 1448, transport, 16] {
        frame.extend(word.to_ne_bytes());
    }
    frame.extend([2; 12]);
    if vlan {
        frame.extend([0x81, 0, 0, 77]);
    }
    if v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(((20 + payload) as u16).to_be_bytes());
        frame.extend([6, 64]);
        frame.extend([0xfd; 32]);
    } else {
        frame.extend([0x08, 0, 0x45, 0]);
        frame.extend(((40 + payload) as u16).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
    }
    frame.extend([0x12, 0x34, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
    frame.extend((0..payload).map(|index| index as u8));
    frame
}

/// A block of 12 octets with its trailer, which fill a packet: packed, and as words of the host interface.
fn backplane_packets() -> [Vec<u8>; 2] {
    let trailer = Trailer { kind: TrailerKind::Bot, length: Some(12), seq: Seq::FIRST, crc: None };
    let part = Part { data: b"twelve bytes".to_vec(), control: None, trailer: Some(trailer) };
    let mut envelopes = Vec::new();
    write(&part, &mut envelopes);
    let packet = Packet::new(77, &envelopes).unwrap();
    [packet.pack().to_vec(), packet.words().into_iter().flat_map(u16::to_le_bytes).collect()]
}

/// A capsule that has crossed two links: as a payload, and in its frame.
fn capsules() -> [Vec<u8>; 2] {
    let mut payload = vec![3; trunkline_capsule::HEADER + 20];
    trunkline_capsule::Header { path_size: 20, ..Default::default() }.write(&mut payload);
    let mut ledger = trunkline_capsule::Ledger::of(&mut payload).unwrap();
    (1..=2).for_each(|link| ledger.add_hop(&trunkline_capsule::Hop { link, ..Default::default() }));
    let mut frame = vec![2; 12];
    frame.extend([0x08, 0, 0x45, 0]);
    frame.extend(((28 + payload.len()) as u16).to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2, 0x90, 0]);
    frame.extend(trunkline_capsule::PORT.to_be_bytes());
    frame.extend(((8 + payload.len()) as u16).to_be_bytes());
    frame.extend([0x12, 0x34]);
    frame.extend(&payload);
    assert!(trunkline_capsule::find(&frame).is_some());
    [payload, frame]
}

/// A SYN and an acknowledgement with SACK as IPv4 packets.
fn tcp_packets() -> [Vec<u8>; 2] {
    let address = |last, port| SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, last), port);
    let flow = Flow { from: address(1, 40_000), to: address(2, 80) };
    let settings = tcp::Settings::default();
    let mut end = Tcp::<Vec<u8>>::connect(settings, tcp::Seq::new(7)).unwrap();
    let syn = end.transmit(Time::ZERO).unwrap();
    let mut end = Tcp::<Vec<u8>>::connected(settings, &settings).unwrap();
    let flags = tcp::Flags::ACK;
    let (seq, data) = (tcp::Seq::new(101), b"late".to_vec());
    let mut late = tcp::Segment::new(seq, tcp::Seq::new(1), flags, 9, data, Time::ZERO);
    late.timestamps = Some(tcp::Timestamps::default());
    end.receive(Time::ZERO, late);
    let sack = end.transmit(Time::ZERO).unwrap();
    assert_eq!(sack.sack().len(), 1);
    [syn, sack].map(|segment| {
        let mut packet = Vec::new();
        segment.encode(flow, &mut packet).unwrap();
        packet
    })
}

/// The messages of a probe: requests, one and several by line, a record, a datagram of another key, envelopes.
fn probe_messages() -> Vec<Vec<u8>> {
    let urp = UrpSpec { block: 1024, outstanding: 7, timeout_ns: 1_000_000_000, datagram: 1432 };
    let spec = FlowSpec {
        transport: Transport::Urp,
        role: Role::Echo,
        streams: 1,
        size: 4096,
        rate: Some(1_000_000),
        duration_ns: 5,
        interval_ns: 1_000_000_000,
        congestion: Some("reno".into()),
        urp: Some(urp),
    };
    let requests = [Request::Flow { flow: 3, spec }, Request::Host, Request::Collect { flow: 3 }];
    let texts = requests.map(|request| frame::encode(&request).unwrap());
    let ranges = vec![(0, 9), (11, 12)];
    let told = FlowReport { ranges, bins: vec![vec![1, 2]], ..FlowReport::default() };
    let report = frame::encode(&Answer::Report(Box::new(told))).unwrap();
    let head = Head {
        kind: datagram::DatagramKind::Request,
        flow: 1,
        number: 2,
        stamp: 3,
        span: 4,
        order: 5,
    };
    let mut signed = vec![0; 60];
    let key = CodeKey::derive(&[7; 32], "trunkline fuzz", &[]);
    head.write(9, &key, &mut signed);
    let record = Record { size: 9, number: 1, stamp: 2, span: 3, order: 4 };
    let record = Writer::new(key).filled(record, 9);
    let [first, ..] = texts.clone();
    vec![first, texts.join(&b'\n'), report, signed, record, vec![0, 2, 0, 1, 0, 1, 7, 9]]
}

/// [`TEXTS`], and every discipline there is.
fn texts() -> Vec<String> {
    let others = TEXTS.into_iter().map(str::to_string);
    KINDS.iter().flat_map(|kind| kind.texts()).chain(others).collect()
}

fn good_inputs() -> Vec<Vec<u8>> {
    let frames = [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .flat_map(|(v6, vlan)| [0, 1, 1448, 5000].map(|size| super_frame(v6, vlan, size)));
    let texts = texts().into_iter().map(String::into_bytes);
    let packets = backplane_packets().into_iter().chain(capsules()).chain(tcp_packets());
    texts.chain(frames).chain(packets).chain(probe_messages()).collect()
}

/// One to four bytes changed, left out, doubled, or put in; sometimes cut short.
fn damage(input: &[u8], noise: &mut Noise) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=noise.below(4) {
        let at = noise.below(bytes.len());
        match noise.below(5) {
            0 if at < bytes.len() => bytes[at] = noise.next() as u8,
            1 if at < bytes.len() => bytes[at] ^= 1 << noise.below(8),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => bytes.insert(at, MARKS[noise.below(MARKS.len())]),
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes
}

fn check(name: &str, body: Body, input: &[u8]) {
    if catch_unwind(|| body(input)).is_err() {
        panic!("{name} fails on {:?} = {input:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn every_decoder_stands_good_damaged_and_random_input() {
    let mut noise = Noise(1989);
    let everyones = good_inputs();
    for (name, body) in BODIES {
        check(name, body, &[]);
        let good: Vec<_> = everyones.iter().cloned().chain(corpus(name)).collect();
        good.iter().for_each(|input| check(name, body, input));
        // A handshake takes a thousand times as long as most decoders, a scenario or a conversation some ten times.
        let count = match name {
            "session" | "mover-met" => 3000,
            "lines" | "netblt-ends" => 10_000,
            _ => 60_000,
        };
        for _ in 0..count {
            let input = match noise.below(4) {
                0 => noise.bytes(200),
                _ => damage(&good[noise.below(good.len())], &mut noise),
            };
            check(name, body, &input);
        }
    }
}

/// Stands what fuzzers found, and what they kept because it led to new code: `fuzz/corpus/TARGET/NAME`.
#[test]
fn the_corpus_is_stood() {
    for (name, body) in BODIES {
        let inputs = corpus(name);
        assert!(!inputs.is_empty(), "an empty corpus: put a good input into fuzz/corpus/{name}");
        inputs.iter().for_each(|input| check(name, body, input));
    }
    for target in fs::read_dir(CORPUS).unwrap() {
        let name = target.unwrap().file_name().into_string().unwrap();
        assert!(BODIES.iter().any(|(body, _)| *body == name), "no target is called {name}");
    }
}

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

/// The inputs of a target, by their names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let files = fs::read_dir(Path::new(CORPUS).join(target)).into_iter().flatten();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn the_good_inputs_are_accepted_by_somebody() {
    let frame = super_frame(true, true, 5000);
    let mut pieces = 0;
    let (header, rest) = frame.split_first_chunk().unwrap();
    let offload = trunkline_port::offload::Offload::read(header);
    let unfinished = offload.checksum.map(|(start, field)| (start.into(), field.into()));
    let mut count_them = |_: &[u8]| pieces += 1;
    let gso = offload.gso.unwrap();
    let count =
        trunkline_port::segment::segment(rest, gso, unfinished, &mut Vec::new(), &mut count_them);
    assert_eq!((count, pieces), (Ok(4), 4));
    let [packed, _] = backplane_packets();
    assert_eq!(Packet::unpack(&packed).unwrap().envelopes().len(), 16);
    assert!(tcp_packets().iter().all(|packet| decode(packet, Time::ZERO).is_ok()));
    for text in &texts() {
        assert!(accepted(text), "nobody accepts '{text}'");
    }
}

/// One of each kind that is no text of [`TEXTS`], so that damaged inputs are damaged good ones.
#[test]
fn the_good_inputs_of_the_corpus_are_accepted() {
    let read = |name: &str| fs::read(Path::new(CORPUS).join(name)).unwrap();
    for name in ["runs/simulated", "runs/emulated"] {
        let run =
            trunkline_batch::read_kept(&read(name), fuzz::heard::VERSION, fuzz::heard::DIGEST);
        assert!(run.is_some(), "{name}");
    }
    assert!(trunkline_netns::Record::read(&read("state/record")).is_some());
    let answer = |name| decode::reply(&read(name), &(1..=3)).unwrap().answers.swap_remove(0).1;
    assert_eq!(decode::link(&answer("netlink/device")).unwrap().mtu, 1500);
    assert_eq!(decode::name(&answer("netlink/device")), Some((7, "tl0".into())));
    let route = decode::route(&answer("netlink/routes")).unwrap();
    assert_eq!((route.to, route.devices), ("10.77.0.0/24".parse().ok(), vec![7]));
    assert_eq!(decode::table(&answer("netlink/table")).as_deref(), Some("tl1"));
    let refusal = decode::reply(&read("netlink/refused"), &(1..=3)).unwrap_err().to_string();
    assert!(refusal.contains("no such device"), "{refusal}");
    for name in ["study/delays", "study/variant"] {
        let text = String::from_utf8(read(name)).unwrap();
        let source = fuzz::described::open_study(&text).unwrap();
        assert_eq!(source.study.experiment.len(), 1, "{name}");
    }
    let manifest = trunkline_transfer::Manifest::decode(&read("transfer/manifest")).unwrap();
    assert_eq!((manifest.entries(), manifest.files()), (7, 3));
    let journal = trunkline_transfer::journal::read(&read("transfer/journal")).unwrap();
    assert_eq!((journal.confirmed.len(), journal.finishing), (3, None));
    for (name, changes) in [("state", 0), ("change", 1), ("chunks", 1)] {
        let (sent, heard) = fuzz::served::ask_control(&read(&format!("http/{name}")));
        assert!(sent.starts_with(b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&sent));
        assert_eq!(heard.len(), changes, "{name}");
    }
}

fn accepted(text: &str) -> bool {
    let mut settings = trunkline_scenario::Settings::default();
    let impairment = |(key, value)| matches!(Setting::parse(key, value), Some(Ok(_)));
    let pairs = text.lines().all(|line| settings.add_pair(line).is_ok());
    text.parse::<trunkline_core::Span>().is_ok()
        || text.parse::<trunkline_core::Rate>().is_ok()
        || text.parse::<trunkline_path::Limit>().is_ok()
        || DisciplineSpec::parse(text, Limit::Packets(9)).is_ok()
        || text.parse::<trunkline_path::Schedule>().is_ok()
        || DeliveryTrace::parse(text).is_ok()
        || LossTrace::parse(text).is_ok()
        || (pairs && settings.resolve().is_ok())
        || text.split_once('=').is_some_and(impairment)
        || serde_json::from_str::<trunkline_control::SetRequest>(text).is_ok()
        || trunkline_scenario::Scenario::parse(text, "good.toml").is_ok()
}
