//! Captures of emulated runs: nothing in them is malformed, and each packet has its name.

use super::shark::{NONE, Row, WRONG, is_here, place, read};
use crate::support::Host;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A short transfer by each transport over a line that loses packets, and datagrams beside it.
const SCENARIO: &str = r#"
name = "Short transfers"
stop_after = "3s"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
name = "line"
between = ["a", "b"]
rate = "10Mbit/s"
delay = "2ms"
limit = "100kB"
forward = { loss = "2%" }
[[traffic]]
name = "file"
kind = "bulk"
from = "a"
to = "b"
bytes = "120kB"
write = 16384
transport = TRANSPORT
[[traffic]]
name = "stream"
kind = "paced"
from = "a"
to = "b"
size = 100
rate = "80kbit/s"
duration = "200ms"
"#;

const KEY: &str = "a-key-for-these-tests";

/// The captures of a run with this transport; nothing if this user may not have one.
fn captures(host: &Host, home: &Path, transport: &str) -> Option<Vec<PathBuf>> {
    let (file, capture) = (home.join("scenario.toml"), home.join("run.pcapng"));
    fs::write(&file, SCENARIO.replace("TRANSPORT", transport)).unwrap();
    let [file, capture] = [&file, &capture].map(|path| path.to_str().unwrap());
    host.run_well(&["run", file, "--engine", "emu", "--best-effort", "--pcap", capture])?;
    let entries = fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path());
    Some(entries.filter(|path| path.extension().is_some_and(|it| it == "pcapng")).collect())
}

/// Frames without the errors of hosts: an end that has closed its port answers what still comes with an error (RFC 1122
/// section 4.1.3.1), which quotes the capsule, or its front.
const NO_ERRORS: &str = "not icmp and not icmpv6";

/// The frames that are a capsule, not those that quote one.
fn capsules(file: &Path) -> usize {
    let mut reader = PcapNgReader::new(File::open(file).unwrap()).unwrap();
    let mut found = 0;
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            found += usize::from(trunkline_capsule::find(&packet.data).is_some());
        }
    }
    found
}

/// Checks the captures of a transport, whose packets all carry `body`. Returns the values of `fields` in them.
fn checked(transport: &str, body: &str, fields: &[&str]) -> Option<Vec<Row>> {
    let (host, home) = (Host::beside(), place());
    let mut all = Vec::new();
    for file in captures(&host, home.path(), transport)? {
        assert_eq!(read(&file, WRONG, &["frame.number", "_ws.expert.message"]), NONE);
        let own = format!("tlcp and {NO_ERRORS}");
        let bodies = read(&file, &own, &["tlcp.body", "tlcp.traffic"]);
        assert_eq!(bodies.len(), capsules(&file), "{transport}: every capsule is one to tshark");
        let kinds: BTreeSet<(&str, &str)> =
            bodies.iter().map(|it| (&*it["tlcp.traffic"], &*it["tlcp.body"])).collect();
        let file_of = (!body.is_empty()).then_some(("0", body));
        let wanted = file_of.into_iter().chain([("1", "DATAGRAM")]);
        assert_eq!(kinds, wanted.collect(), "{transport}");
        all.extend(read(&file, NO_ERRORS, fields));
    }
    assert!(!all.is_empty(), "{transport}: nothing was captured");
    Some(all)
}

/// The values of a field, those of a packet apart.
fn values<'a>(rows: &'a [Row], field: &str) -> BTreeSet<&'a str> {
    rows.iter().filter_map(|row| row.get(field)).flat_map(|value| value.split(',')).collect()
}

#[test]
fn netblt_of_each_version_is_named_and_right() {
    if !is_here() {
        return;
    }
    let fields =
        ["netblt.packet", "netblt.version", "netblt.checksum_status", "netblt.message_type"];
    for (keys, version) in [
        (r#"interval = "10ms", burst = 8, version = 2"#, "2"),
        (r#"interval = "10ms", burst = 8, version = 4"#, "4"),
        ("version = 5", "5"),
    ] {
        let transport = format!(r#"{{ kind = "netblt", {keys} }}"#);
        let Some(rows) = checked(&transport, "NETBLT", &fields) else { return };
        let names = values(&rows, "netblt.packet");
        for name in ["OPEN", "RESPONSE", "DATA", "LDATA", "CONTROL", "NULL-ACK", "DONE"] {
            assert!(names.contains(name), "no {name} of version {version}: {names:?}");
        }
        assert_eq!(values(&rows, "netblt.version"), BTreeSet::from([version]));
        assert_eq!(values(&rows, "netblt.checksum_status"), BTreeSet::from(["1"]));
        let messages = values(&rows, "netblt.message_type");
        assert!(messages.contains("0") && messages.contains("1"), "{messages:?}");
    }
}

#[test]
fn urp_is_named_control_by_control() {
    if !is_here() {
        return;
    }
    let transport = r#"{ kind = "urp" }"#;
    let Some(rows) = checked(transport, "URP", &["urp.name", "urp.block_length"]) else { return };
    let names = values(&rows, "urp.name");
    for name in ["BOTM", "SEQ", "ECHO"] {
        assert!(names.contains(name), "no {name}: {names:?}");
    }
    assert!(!names.contains("unknown"), "{names:?}");
    // Every trailer is one piece: each has its length.
    let begins = |row: &Row| row["urp.name"].split(',').filter(|it| it.starts_with("BOT")).count();
    for row in rows.iter().filter(|row| row.contains_key("urp.name")) {
        let lengths = row.get("urp.block_length").map_or(0, |it| it.split(',').count());
        assert_eq!(begins(row), lengths, "{row:?}");
    }
}

#[test]
fn repeat_requests_are_named() {
    if !is_here() {
        return;
    }
    let transport = r#"{ kind = "selective-repeat" }"#;
    let Some(rows) = checked(transport, "ARQ", &["tlarq.kind"]) else { return };
    assert_eq!(values(&rows, "tlarq.kind"), BTreeSet::from(["1", "2"]));
}

/// TCP is the kernel's, and Wireshark's own.
#[test]
fn tcp_is_left_to_wireshark() {
    if !is_here() {
        return;
    }
    let fields = ["tcp.flags.syn", "netblt.version", "frame.number"];
    let Some(rows) = checked(r#"{ kind = "tcp" }"#, "", &fields) else { return };
    assert!(rows.iter().any(|row| row.contains_key("tcp.flags.syn")), "no TCP was captured");
    assert!(values(&rows, "netblt.version").is_empty());
}

/// The probe's datagrams have the capsules' port and another head; a server at the far end of a path answers them.
#[test]
fn the_datagrams_of_the_probe_are_named() {
    if !is_here() {
        return;
    }
    let (host, home) = (Host::beside(), place());
    let capture = home.path().join("probe.pcapng");
    let command = env!("CARGO_BIN_EXE_trunkline");
    let serve = format!("TRUNKLINE_KEY={KEY} {command} serve --bind 10.77.0.1 --json >&2");
    let probe = |transport: &str| {
        format!("{command} probe rtt $TRUNKLINE_PEER --transport {transport} --count 3 --json >&2")
    };
    let both = format!("export TRUNKLINE_KEY={KEY}; {} && {}", probe("udp"), probe("urp"));
    let path = ["shell", "--best-effort", "--no-outside", "--delay", "2ms", "--pcap"];
    let programs = [capture.to_str().unwrap(), "--peer", &serve, "--", "sh", "-c", &both];
    if host.run_well(&[&path[..], &programs].concat()).is_none() {
        return;
    }
    assert_eq!(read(&capture, WRONG, &["frame.number", "_ws.expert.message"]), NONE);
    let fields = ["tlprobe.kind", "tlprobe.number", "urp.name"];
    let rows = read(&capture, "udp.port == 29804", &fields);
    assert!(rows.iter().all(|row| row.contains_key("tlprobe.kind")), "{rows:?}");
    assert_eq!(values(&rows, "tlprobe.kind"), BTreeSet::from(["1", "2", "4"]));
    let is_urp = |row: &&Row| row["tlprobe.kind"] == "4";
    assert!(rows.iter().filter(is_urp).all(|row| row.contains_key("urp.name")), "{rows:?}");
    assert!(values(&rows, "urp.name").is_superset(&BTreeSet::from(["BOT", "SEQ", "ECHO"])));
}
