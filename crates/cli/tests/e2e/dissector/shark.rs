//! Runs of tshark with the dissector, and the captures that it is given.

use crate::turn::{self, Turn};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use trunkline_skip::installed;
use trunkline_transport::netblt::wire::data_checksum;

/// The folder of the dissector.
pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark");
/// Packets that the dissector or Wireshark itself finds wrong.
pub const WRONG: &str = "_ws.malformed || _ws.expert.severity == \"Error\"";
/// Packets at which the dissector itself fails.
pub const LUA_ERROR: &str = "_ws.lua.error";

/// Protocol numbers of IP.
pub const ICMP: u8 = 1;
const UDP: u8 = 17;

/// Values of fields by name; several of one field are joined by commas.
pub type Row = BTreeMap<String, String>;

/// No packet at all.
pub const NONE: [Row; 0] = [];

/// Whether there is tshark; a note if not.
pub fn is_here() -> bool {
    installed(&["tshark"])
}

/// The right to work beside one other test, if there is tshark; a note if not.
pub fn turn() -> Option<Turn> {
    is_here().then(turn::beside)
}

/// A place of the test's own.
pub fn place() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The values that tshark, with the dissector, finds of `fields` in the packets that `filter` lets through. Fields that a
/// packet has not are not in its row.
pub fn read(file: &Path, filter: &str, fields: &[&str]) -> Vec<Row> {
    let script = format!("lua_script:{FOLDER}/trunkline.lua");
    read_with(tshark(file.parent().unwrap()).args(["-X", &script]), file, filter, fields)
}

/// tshark as somebody runs it whose home is `home`.
pub fn tshark(home: &Path) -> Command {
    let mut command = Command::new("tshark");
    command.env("HOME", home).env_remove("XDG_CONFIG_HOME");
    command
}

/// The same as [`read`] by a tshark with these options.
pub fn read_with(command: &mut Command, file: &Path, filter: &str, fields: &[&str]) -> Vec<Row> {
    command.args(["-n", "-T", "fields", "-Y", filter, "-r"]).arg(file);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (text, told) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && !told.contains("Lua"), "{told}");
    let row = |line: &str| -> Row {
        let values = fields.iter().zip(line.split('\t'));
        let present = values.filter(|(_, value)| !value.is_empty());
        present.map(|(field, value)| (field.to_string(), value.to_string())).collect()
    };
    text.lines().map(row).collect()
}

/// Writes IP packets into a file.
pub fn write(file: &Path, packets: &[Vec<u8>]) {
    write_cut(file, packets, usize::MAX);
}

/// Writes at most so many octets of each packet into a file.
pub fn write_cut(file: &Path, packets: &[Vec<u8>], most: usize) {
    let header = PcapHeader { datalink: DataLink::RAW, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(File::create(file).unwrap(), header).unwrap();
    for (number, packet) in packets.iter().enumerate() {
        let at = Duration::from_millis(number as u64);
        let kept = &packet[..packet.len().min(most)];
        writer.write_packet(&PcapPacket::new(at, packet.len() as u32, kept)).unwrap();
    }
}

/// An IPv4 packet of this protocol. Back it goes the other way.
pub fn ipv4(protocol: u8, back: bool, payload: &[u8]) -> Vec<u8> {
    let ends = if back { [2, 1] } else { [1, 2] };
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    ends.into_iter().for_each(|end| packet.extend([10, 77, 0, end]));
    let sum = data_checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(payload);
    packet
}

/// An IPv6 packet of this protocol.
pub fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    for end in [1, 2] {
        packet.extend([0xfd, 0, 0x74, 0x6c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
    }
    packet.extend(payload);
    packet
}

/// An IPv4 packet with a UDP datagram without checksum.
pub fn udp(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    for word in [ports.0, ports.1, 8 + payload.len() as u16, 0] {
        datagram.extend(word.to_be_bytes());
    }
    datagram.extend(payload);
    ipv4(UDP, false, &datagram)
}
