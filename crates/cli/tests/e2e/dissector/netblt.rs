//! NETBLT: what the dissector reads is what our decoder reads.

use super::shark::{
    FOLDER, LUA_ERROR, NONE, Row, WRONG, ipv4, ipv6, place, read, read_with, tshark, turn, udp,
    write,
};
use std::fs;
use trunkline_transport::netblt::wire::{
    Burst, Data, Dialect, IP_PROTOCOL, Message, NullAck, Packet, Parity, Ports, Said, Terms,
    data_checksum, decode, encode,
};

const FIELDS: [&str; 43] = [
    "netblt.packet",
    "netblt.version",
    "netblt.length",
    "netblt.local_port",
    "netblt.foreign_port",
    "netblt.checksum",
    "netblt.checksum_status",
    "netblt.uid",
    "netblt.buffer_size",
    "netblt.transfer_size",
    "netblt.packet_size",
    "netblt.burst_size",
    "netblt.burst_interval",
    "netblt.death",
    "netblt.checksummed",
    "netblt.write",
    "netblt.parity",
    "netblt.outstanding",
    "netblt.client_string",
    "netblt.reason",
    "netblt.text",
    "netblt.buffer",
    "netblt.touched",
    "netblt.ack",
    "netblt.number",
    "netblt.row",
    "netblt.buffer_packets",
    "netblt.tail",
    "netblt.data_checksum",
    "netblt.data_checksum_status",
    "netblt.last",
    "netblt.data",
    "netblt.data_length",
    "netblt.left_out",
    "netblt.message_type",
    "netblt.sequence",
    "netblt.message_buffer",
    "netblt.offered_size",
    "netblt.offered_interval",
    "netblt.control_timer",
    "netblt.missing_count",
    "netblt.missing",
    "_ws.expert.message",
];

const THERE: Ports = Ports { local: 0x4001, foreign: 0x0064 };
const BURST: Burst = Burst { size: 5, interval: 55 };

/// The worked packets of the reference for RFC 998's layout, computed by hand; the second has its data behind it.
const WORKED: [&str; 5] = [
    "b2070200 00304001 00640000 12345678 000037f0 000aece0 05980005 0037003c 00030016 74657374 2e646174 00000000",
    "86f00207 001d4001 00640000 00000000 00030009 36790001 41424344 45",
    "b2970209 00340064 40010000 01000004 00000000 00050037 076c0000 00000005 00000001 02000006 00000002 00020000 00030007",
    "bd3c0208 00144001 00640000 00060005 00370000",
    "bd8c0202 000c4001 00640000",
];

fn octets(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    let pairs = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Values of fields, each given with its name.
struct Values(Row);

impl Values {
    fn put(&mut self, name: &str, value: &impl ToString) {
        let value = value.to_string();
        if !value.is_empty() {
            self.0.insert(format!("netblt.{name}"), value);
        }
    }

    fn list<T: ToString>(&mut self, name: &str, values: impl Iterator<Item = T>) {
        let texts: Vec<String> = values.map(|value| value.to_string()).collect();
        self.put(name, &texts.join(","));
    }

    fn burst(&mut self, burst: Burst) {
        self.put("burst_size", &burst.size);
        self.put("burst_interval", &burst.interval);
    }

    fn terms(&mut self, terms: &Terms, dialect: Dialect) {
        self.put("uid", &format!("{:#010x}", terms.uid));
        self.put("buffer_size", &terms.buffer);
        if dialect == Dialect::Classic {
            self.put("transfer_size", &terms.transfer);
        }
        self.put("packet_size", &terms.packet);
        self.burst(terms.burst);
        self.put("death", &terms.death);
        self.put("checksummed", &u8::from(terms.checksum));
        self.put("write", &u8::from(terms.write));
        if dialect == Dialect::V5 {
            self.put("parity", &u8::from(terms.parity));
        }
        self.put("outstanding", &terms.outstanding);
        self.put("client_string", &String::from_utf8_lossy(&terms.text));
    }

    fn data(&mut self, data: &Data, dialect: Dialect, payload: &[u8]) {
        self.put("buffer", &data.buffer);
        self.put("ack", &data.ack);
        self.put("number", &data.packet);
        self.payload(data.checksum, data.last, payload);
        if dialect != Dialect::Classic {
            self.put("touched", &data.touched);
            self.burst(data.burst);
        }
    }

    fn payload(&mut self, checksum: u16, last: bool, payload: &[u8]) {
        self.put("data_checksum", &format!("{checksum:#06x}"));
        self.put("data_checksum_status", &if checksum == 0 { 3 } else { 1 });
        self.put("last", &u8::from(last));
        self.put("data_length", &payload.len());
        self.put("data", &payload.iter().map(|octet| format!("{octet:02x}")).collect::<String>());
    }

    fn parity(&mut self, parity: &Parity, payload: &[u8]) {
        self.put("buffer", &parity.buffer);
        self.put("touched", &parity.touched);
        self.put("ack", &parity.ack);
        self.put("row", &parity.row);
        self.put("buffer_packets", &parity.packets);
        self.put("tail", &parity.tail);
        self.payload(parity.checksum, parity.last, payload);
    }

    fn null_ack(&mut self, ack: &NullAck, dialect: Dialect) {
        self.put("ack", &ack.ack);
        self.burst(ack.burst);
        if dialect != Dialect::Classic {
            self.put("touched", &ack.touched);
            self.put("last", &u8::from(ack.last));
        }
    }

    fn messages(&mut self, messages: &[Message], dialect: Dialect) {
        let kind = |message: &Message| match message.said {
            Said::Go => 0,
            Said::Ok { .. } => 1,
            Said::Resend { .. } => 2,
        };
        self.list("message_type", messages.iter().map(kind));
        self.list("sequence", messages.iter().map(|it| it.sequence));
        self.list("message_buffer", messages.iter().map(|it| it.buffer));
        let offer = |message: &Message| match message.said {
            Said::Ok { offer, .. } => Some(offer),
            Said::Resend { offer, .. } if dialect != Dialect::Classic => Some(offer),
            _ => None,
        };
        let offers: Vec<Burst> = messages.iter().filter_map(offer).collect();
        self.list("offered_size", offers.iter().map(|it| it.size));
        self.list("offered_interval", offers.iter().map(|it| it.interval));
        let timers = messages.iter().filter_map(|it| match it.said {
            Said::Ok { timer, .. } => Some(timer),
            _ => None,
        });
        self.list("control_timer", timers);
        let missing = messages.iter().filter_map(|it| match &it.said {
            Said::Resend { missing, .. } => Some(missing),
            _ => None,
        });
        self.list("missing_count", missing.clone().map(Vec::len));
        self.list("missing", missing.flatten());
    }

    /// Returns the packet's name.
    fn packet(&mut self, packet: &Packet, dialect: Dialect, payload: &[u8]) -> &'static str {
        match packet {
            Packet::Open(terms) | Packet::Response(terms) => self.terms(terms, dialect),
            Packet::Quit(text) | Packet::Abort(text) | Packet::Refused(text) => {
                self.put("reason", &String::from_utf8_lossy(text));
            }
            Packet::Text(text) => self.put("text", &String::from_utf8_lossy(text)),
            Packet::Data(data) => self.data(data, dialect, payload),
            Packet::Parity(parity) => self.parity(parity, payload),
            Packet::NullAck(ack) => self.null_ack(ack, dialect),
            Packet::Control(messages) => self.messages(messages, dialect),
            Packet::Keepalive | Packet::QuitAck | Packet::Done => {}
        }
        match packet {
            Packet::Open(_) => "OPEN",
            Packet::Response(_) => "RESPONSE",
            Packet::Keepalive => "KEEPALIVE",
            Packet::Quit(_) => "QUIT",
            Packet::QuitAck => "QUITACK",
            Packet::Abort(_) => "ABORT",
            Packet::Data(data) if data.ends_buffer => "LDATA",
            Packet::Data(_) => "DATA",
            Packet::NullAck(_) => "NULL-ACK",
            Packet::Control(_) => "CONTROL",
            Packet::Refused(_) => "REFUSED",
            Packet::Done => "DONE",
            Packet::Text(_) => "MESSAGE",
            Packet::Parity(_) => "PARITY",
        }
    }
}

/// The values that our decoder reads of a packet.
fn decoded(octets: &[u8]) -> Row {
    let read = decode(octets).unwrap();
    let mut values = Values(Row::new());
    let name = values.packet(&read.packet, read.dialect, &octets[read.header..]);
    values.put("packet", &name);
    values.put("version", &octets[2]);
    values.put("length", &u16::from_be_bytes([octets[4], octets[5]]));
    values.put("local_port", &read.ports.local);
    values.put("foreign_port", &read.ports.foreign);
    values.put("checksum", &format!("{:#06x}", u16::from_be_bytes([octets[0], octets[1]])));
    values.put("checksum_status", &1);
    values.0
}

/// Later Wiresharks print truth values as words.
fn plain(mut row: Row) -> Row {
    for name in ["netblt.checksummed", "netblt.parity", "netblt.last"] {
        if let Some(value) = row.get_mut(name) {
            *value = value.replace("True", "1").replace("False", "0");
        }
    }
    row
}

/// The rows of all packets of a capture, in which nothing may be wrong.
fn rows_of(packets: &[Vec<u8>]) -> Vec<Row> {
    let home = place();
    let file = home.path().join("packets.pcap");
    write(&file, packets);
    assert_eq!(read(&file, WRONG, &FIELDS), NONE);
    read(&file, "frame", &FIELDS).into_iter().map(plain).collect()
}

fn encoded(dialect: Dialect, ports: Ports, packet: &Packet, data: &[u8]) -> Vec<u8> {
    let mut octets = Vec::new();
    encode(dialect, ports, packet, &mut octets);
    octets.extend(data);
    octets
}

fn some_terms() -> Terms {
    Terms {
        uid: 0xfeed_beef,
        buffer: 92_160,
        transfer: 5_000_000,
        packet: 1440,
        burst: BURST,
        death: 600,
        checksum: true,
        write: true,
        parity: false,
        outstanding: 22,
        text: b"file".to_vec(),
    }
}

fn some_messages(dialect: Dialect) -> Vec<Message> {
    let offer = if dialect == Dialect::Classic { Burst::default() } else { BURST };
    let said = [
        (7, 3, Said::Ok { offer: BURST, timer: 1900 }),
        (8, 4, Said::Go),
        (9, 5, Said::Resend { offer, missing: vec![3, 7, 65_535] }),
        (10, 6, Said::Resend { offer, missing: vec![] }),
        (11, 70_000, Said::Resend { offer, missing: vec![1, 2] }),
    ];
    said.map(|(sequence, buffer, said)| Message { sequence, buffer, said }).into()
}

/// A packet of each type that `dialect` has, with its data.
fn one_of_each(dialect: Dialect) -> Vec<(Packet, &'static [u8])> {
    let text = || b"no room".to_vec();
    let data = Data {
        buffer: 70_000,
        touched: 70_001,
        ack: 6,
        packet: 12,
        checksum: data_checksum(b"odd"),
        burst: BURST,
        bytes: 3,
        ..Data::default()
    };
    let last =
        Data { ends_buffer: true, last: true, checksum: data_checksum(b""), bytes: 0, ..data };
    let ack = NullAck { touched: 70_001, ack: 6, burst: BURST, last: true };
    let mut all: Vec<(Packet, &[u8])> = vec![
        (Packet::Open(some_terms()), b""),
        (Packet::Response(Terms { text: Vec::new(), ..some_terms() }), b""),
        (Packet::Quit(text()), b""),
        (Packet::QuitAck, b""),
        (Packet::Abort(b"four".to_vec()), b""),
        (Packet::Data(data), b"odd"),
        (Packet::Data(last), b""),
        (Packet::NullAck(ack), b""),
        (Packet::Control(some_messages(dialect)), b""),
        (Packet::Control(Vec::new()), b""),
        (Packet::Refused(text()), b""),
        (Packet::Done, b""),
    ];
    match dialect {
        Dialect::Classic => all.push((Packet::Keepalive, b"")),
        Dialect::V4 => {}
        Dialect::V5 => {
            let row = Parity {
                buffer: 70_000,
                touched: 70_001,
                ack: 6,
                row: 3,
                packets: 64,
                tail: 700,
                checksum: data_checksum(b"sum"),
                last: true,
                bytes: 3,
            };
            let terms = Terms { parity: true, ..some_terms() };
            all.extend([
                (Packet::Text(text()), &b""[..]),
                (Packet::Parity(row), b"sum"),
                (Packet::Open(terms), b""),
            ]);
        }
    }
    all
}

#[test]
fn the_worked_packets_have_the_values_of_the_reference() {
    let Some(_turn) = turn() else { return };
    let packets = WORKED.map(octets);
    let rows = rows_of(&packets.each_ref().map(|octets| ipv4(IP_PROTOCOL, false, octets)));
    let wanted: Vec<Row> = packets.iter().map(|octets| decoded(octets)).collect();
    assert_eq!(rows, wanted);
    // As the reference states them, whatever our decoder reads.
    let stated: [(usize, &[(&str, &str)]); 4] = [
        (
            0,
            &[
                ("packet", "OPEN"),
                ("uid", "0x12345678"),
                ("buffer_size", "14320"),
                ("transfer_size", "716000"),
                ("packet_size", "1432"),
                ("burst_size", "5"),
                ("burst_interval", "55"),
                ("death", "60"),
                ("checksummed", "1"),
                ("write", "1"),
                ("outstanding", "22"),
                ("client_string", "test.dat"),
            ],
        ),
        (
            1,
            &[
                ("packet", "LDATA"),
                ("ack", "3"),
                ("number", "9"),
                ("last", "1"),
                ("data", "4142434445"),
            ],
        ),
        (
            2,
            &[
                ("message_type", "1,0,2"),
                ("sequence", "4,5,6"),
                ("message_buffer", "0,1,2"),
                ("control_timer", "1900"),
                ("missing", "3,7"),
            ],
        ),
        (3, &[("packet", "NULL-ACK"), ("ack", "6"), ("burst_size", "5"), ("burst_interval", "55")]),
    ];
    for (index, values) in stated {
        for (name, value) in values {
            assert_eq!(rows[index][&format!("netblt.{name}")], *value, "{name} of {index}");
        }
    }
    assert_eq!(rows[4]["netblt.packet"], "KEEPALIVE");
}

/// On IP, on the port of the preference, and on any other, where the checksum tells.
#[test]
fn every_packet_of_each_dialect_is_read_as_our_decoder_reads_it() {
    let Some(_turn) = turn() else { return };
    let mut packets = Vec::new();
    for dialect in Dialect::ALL {
        let all = one_of_each(dialect);
        packets.extend(all.iter().map(|(packet, data)| encoded(dialect, THERE, packet, data)));
    }
    // Version 3 is read as RFC 998's.
    packets.push(changed(WORKED[0], false, |octets| octets[2] = 3));
    let wanted: Vec<Row> = packets.iter().map(|octets| decoded(octets)).collect();
    assert_eq!(wanted.len(), 13 + 12 + 15 + 1);
    let on_ip: Vec<Vec<u8>> = packets.iter().map(|it| ipv4(IP_PROTOCOL, false, it)).collect();
    assert_eq!(rows_of(&on_ip), wanted);
    let on_ipv6: Vec<Vec<u8>> = packets.iter().map(|it| ipv6(IP_PROTOCOL, it)).collect();
    assert_eq!(rows_of(&on_ipv6), wanted);
    for ports in [(40_000, 1818), (1818, 40_000), (40_000, 40_001)] {
        let on_udp: Vec<Vec<u8>> = packets.iter().map(|octets| udp(ports, octets)).collect();
        assert_eq!(rows_of(&on_udp), wanted, "{ports:?}");
    }
}

/// What a packet is made to be by changing its octets; the checksum of the header is then set anew, unless it is `raw`.
fn changed(hex: &str, raw: bool, change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut octets = octets(hex);
    change(&mut octets);
    let header = if octets.get(3) == Some(&7) { 24 } else { octets.len() };
    if !raw {
        octets[..2].fill(0);
        let sum = data_checksum(&octets[..header]);
        octets[..2].copy_from_slice(&sum.to_be_bytes());
    }
    octets
}

#[test]
fn what_is_wrong_with_a_packet_is_told() {
    let Some(_turn) = turn() else { return };
    let [open, ldata, control, _, keepalive] = WORKED;
    let wrong = [
        (changed(open, true, |it| it[20] ^= 1), "The checksum of the header is wrong"),
        (changed(ldata, true, |it| it[26] ^= 1), "The checksum of the data is wrong"),
        (changed(ldata, true, |it| it.truncate(27)), "The packet is shorter than its type"),
        (changed(ldata, true, |it| it.truncate(20)), "The packet is shorter than its type"),
        (changed(keepalive, true, |it| it.truncate(9)), "The packet is shorter than its type"),
        (changed(keepalive, false, |it| it[5] = 11), "The packet is shorter than its type"),
        (changed(keepalive, false, |it| it[3] = 0), "The packet is shorter than its type"),
        (changed(keepalive, false, |it| it[2] = 9), "The version is not known"),
        (changed(keepalive, false, |it| it[3] = 12), "The version has no such type"),
        (changed(control, false, |it| it[12] = 3), "The type of the control message"),
        (changed(control, false, |it| it[45] = 9), "The packet is shorter than its type"),
        (changed(control, false, |it| it[45] = 4), "The packet is shorter than its type"),
        (changed(open, false, |it| it[44..].fill(1)), "No NUL ends the string"),
    ];
    let home = place();
    for (number, (octets, message)) in wrong.iter().enumerate() {
        let file = home.path().join(format!("wrong-{number}.pcap"));
        write(&file, &[ipv4(IP_PROTOCOL, false, octets)]);
        let rows = read(&file, WRONG, &["_ws.expert.message"]);
        let [row] = &rows[..] else { panic!("{number}: {rows:?}") };
        assert!(row["_ws.expert.message"].contains(message), "{number}: {row:?}");
    }
}

/// Whatever octets come, the dissector ends without an error of its own.
#[test]
fn cut_and_changed_packets_do_no_harm() {
    let Some(_turn) = turn() else { return };
    let mut packets = Vec::new();
    for (dialect, hex) in Dialect::ALL.into_iter().zip(WORKED).chain([(Dialect::V5, WORKED[2])]) {
        let mut octets = octets(hex);
        octets[2] = dialect.version();
        packets.extend((0..octets.len()).map(|cut| ipv4(IP_PROTOCOL, false, &octets[..cut])));
        for at in 2..octets.len() {
            for change in [1, 0x80, 0xff] {
                let mut changed = octets.clone();
                changed[at] ^= change;
                packets.push(ipv4(IP_PROTOCOL, false, &changed));
                packets.push(udp((1818, 1818), &changed));
            }
        }
    }
    let home = place();
    let file = home.path().join("damaged.pcap");
    write(&file, &packets);
    assert_eq!(read(&file, LUA_ERROR, &["frame.number"]), NONE);
    assert_eq!(read(&file, "ip", &["frame.number"]).len(), packets.len());
}

/// Without a checksum of the data agreed on, what stands in its field means nothing; with one, 0 is a value.
#[test]
fn the_checksum_of_the_data_is_verified_if_the_ends_agreed_on_it() {
    let Some(_turn) = turn() else { return };
    let open = |local, checksum| {
        let ports = Ports { local, ..THERE };
        (ports, Packet::Response(Terms { checksum, ..some_terms() }))
    };
    let data = |local, checksum| {
        let data = Data { bytes: 3, checksum, ..Data::default() };
        (Ports { local, ..THERE }, Packet::Data(data))
    };
    let right = data_checksum(b"odd");
    let sent = [
        (open(1, true), ""),
        (data(1, right), "1"),
        (data(1, 0), "0"),
        (open(2, false), ""),
        (data(2, 5), "3"),
        (data(1, 5), "0"),
        (data(3, 5), "0"),
        (data(3, 0), "3"),
        (open(1, false), ""),
        (data(1, 5), "3"),
    ];
    let packets = sent.iter().map(|((ports, packet), _)| {
        let data: &[u8] = if matches!(packet, Packet::Data(_)) { b"odd" } else { b"" };
        // A RESPONSE comes from the other end.
        let back = data.is_empty();
        let ports = if back { ports.turned() } else { *ports };
        ipv4(IP_PROTOCOL, back, &encoded(Dialect::V5, ports, packet, data))
    });
    let home = place();
    let file = home.path().join("agreed.pcap");
    write(&file, &packets.collect::<Vec<_>>());
    let field = "netblt.data_checksum_status";
    let script = format!("lua_script:{FOLDER}/trunkline.lua");
    // In one pass, and in two, as Wireshark goes over a file again and again.
    for passes in [&[][..], &["-2"]] {
        let mut command = tshark(home.path());
        command.args(["-X", &script]).args(passes);
        let found = read_with(&mut command, &file, "netblt", &["netblt.packet", field]);
        let found: Vec<&str> = found.iter().map(|row| row.get(field).map_or("", |it| it)).collect();
        assert_eq!(found, sent.each_ref().map(|(_, status)| *status), "{passes:?}");
    }
}

/// Two connections of the same NETBLT ports are told apart by their UDP ports.
#[test]
fn what_was_agreed_holds_for_one_pair_of_udp_ports() {
    let Some(_turn) = turn() else { return };
    let open = |checksum| {
        let terms = Terms { checksum, ..some_terms() };
        encoded(Dialect::Classic, THERE, &Packet::Open(terms), b"")
    };
    let data = Data { bytes: 3, checksum: 5, ..Data::default() };
    let data = encoded(Dialect::Classic, THERE, &Packet::Data(data), b"odd");
    let home = place();
    let file = home.path().join("pairs.pcap");
    let sent = [udp((9, 1818), &open(true)), udp((8, 1818), &open(false))];
    write(&file, &[&sent[..], &[udp((9, 1818), &data), udp((8, 1818), &data)]].concat());
    let field = "netblt.data_checksum_status";
    let found = read(&file, field, &[field]);
    assert_eq!(found.iter().map(|row| &*row[field]).collect::<Vec<_>>(), ["0", "3"]);
}

/// The preference moves the port; a damaged packet, which its checksum does not tell, is read at that port alone.
#[test]
fn the_port_is_a_preference() {
    let Some(_turn) = turn() else { return };
    let home = place();
    let file = home.path().join("ports.pcap");
    let damaged = changed(WORKED[0], true, |it| it[20] ^= 1);
    write(&file, &[udp((9, 1818), &damaged), udp((9, 5000), &damaged)]);
    let script = format!("lua_script:{FOLDER}/trunkline.lua");
    let found = |options: &[&str]| {
        let mut command = tshark(home.path());
        command.args(["-X", &script]).args(options);
        let rows = read_with(&mut command, &file, "netblt", &["frame.number"]);
        rows.into_iter().map(|row| row["frame.number"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(found(&[]), ["1"]);
    assert_eq!(found(&["-o", "netblt.udp_port:5000"]), ["2"]);
    assert!(found(&["-o", "netblt.udp_port:0"]).is_empty());
}

/// All files in the folder of plugins, whichever is loaded first, with and without the option for the script.
#[test]
fn the_folder_of_plugins_takes_it() {
    let Some(_turn) = turn() else { return };
    let home = place();
    let plugins = home.path().join(".local/lib/wireshark/plugins/trunkline");
    fs::create_dir_all(&plugins).unwrap();
    for entry in fs::read_dir(FOLDER).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), plugins.join(entry.file_name())).unwrap();
    }
    let file = home.path().join("worked.pcap");
    write(&file, &[ipv4(IP_PROTOCOL, false, &octets(WORKED[4]))]);
    let script = format!("lua_script:{FOLDER}/trunkline.lua");
    for options in [&[][..], &["-X", &script]] {
        let mut command = tshark(home.path());
        let rows = read_with(command.args(options), &file, "netblt", &["netblt.packet"]);
        assert_eq!(rows[0]["netblt.packet"], "KEEPALIVE");
    }
}
