//! Capsules and what they carry: the dissector reads what our codecs wrote.

use super::shark::{
    ICMP, LUA_ERROR, NONE, Row, WRONG, ipv4, place, read, turn, udp, write, write_cut,
};
use trunkline_capsule::{Direction, Header, Hop, Ledger, MERGED, PORT};
use trunkline_core::{Span, Time};
use trunkline_transport::envelope::{self, Envelope, packed};
use trunkline_transport::netblt::wire::{Data, Dialect, Packet, Ports, data_checksum, encode};
use trunkline_transport::urp::{Control, Part, Seq, Trailer, TrailerKind, User};

/// A datagram with a capsule that has crossed these hops.
fn capsule(header: &Header, hops: &[Hop], body: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; trunkline_capsule::HEADER];
    header.write(&mut payload);
    payload.extend(body);
    let mut ledger = Ledger::of(&mut payload).unwrap();
    if !hops.is_empty() {
        ledger.arrive(Time::from_nanos(3_000_000_001));
        ledger.set_lateness(Span::from_nanos(77));
    }
    hops.iter().for_each(|hop| ledger.add_hop(hop));
    udp((40_000, PORT), &payload)
}

fn rows(packets: &[Vec<u8>], fields: &[&str]) -> Vec<Row> {
    let home = place();
    let file = home.path().join("capsules.pcap");
    write(&file, packets);
    assert_eq!(read(&file, WRONG, &["_ws.expert.message"]), NONE);
    read(&file, "tlcp", fields)
}

fn row(values: &[(&str, &str)]) -> Row {
    values.iter().map(|&(name, value)| (name.to_string(), value.to_string())).collect()
}

/// The values of a capsule's fields after two hops.
const CROSSED: [(&str, &str); 20] = [
    ("tlcp.direction", "1"),
    ("tlcp.ecn", "3"),
    ("tlcp.band", "5"),
    ("tlcp.path_size", "1000"),
    ("tlcp.controls", "2"),
    ("tlcp.traffic", "600"),
    ("tlcp.flow", "70000"),
    ("tlcp.channel", "18446744073709551615"),
    ("tlcp.number", "1099511627776"),
    ("tlcp.sent", "2914760500640"),
    ("tlcp.arrival", "3000000001"),
    ("tlcp.lateness", "77"),
    ("tlcp.crossed", "2"),
    ("tlcp.link", "4,65535"),
    ("tlcp.queue", "10,20"),
    ("tlcp.transmit", "11,21"),
    ("tlcp.propagate", "5000000000,5000000000"),
    ("tlcp.path", "10000000062"),
    ("tlcp.body", "DATAGRAM"),
    ("tlcp.filler", "616e797468696e67"),
];

#[test]
fn the_header_and_the_ledger_are_read() {
    let Some(_turn) = turn() else { return };
    let header = Header {
        direction: Direction::Backward,
        ecn: 3,
        band: 5,
        path_size: 1000,
        controls: 2,
        traffic: 600,
        flow: 70_000,
        channel: u64::MAX,
        number: 1 << 40,
        sent: Time::from_nanos(2_914_760_500_640),
    };
    let hop = |link, nanos| Hop {
        link,
        queue: Span::from_nanos(nanos),
        transmit: Span::from_nanos(nanos + 1),
        propagate: Span::from_nanos(5_000_000_000),
    };
    let packets = [
        capsule(&header, &[hop(4, 10), hop(MERGED, 20)], b"anything"),
        capsule(&header, &[hop(1, 0); 12], b""),
    ];
    let found = rows(&packets, &CROSSED.map(|(field, _)| field));
    assert_eq!(found[0], row(&CROSSED));
    // Of twelve hops the last place holds the rest.
    assert_eq!(found[1]["tlcp.crossed"], "12");
    assert_eq!(found[1]["tlcp.link"], "1,1,1,1,1,1,1,1");
    assert_eq!(found[1]["tlcp.path"], "60000000012");
    assert!(!found[1].contains_key("tlcp.filler"), "{:?}", found[1]);
}

/// A capsule with the envelopes of a part, in at most `room` octets.
fn urp(part: &Part<Vec<u8>>, room: usize) -> Vec<u8> {
    let mut envelopes: Vec<Envelope> = Vec::new();
    envelope::write(part, &mut envelopes);
    let mut body = Vec::new();
    packed::write(&envelopes, room, &mut body);
    let (path_size, controls) = (part.envelopes(), part.controls() as u16);
    capsule(&Header { path_size, controls, ..Header::default() }, &[], &body)
}

const URP: [&str; 9] = [
    "tlcp.body",
    "urp.envelopes",
    "urp.left_out",
    "urp.data",
    "urp.name",
    "urp.seq",
    "urp.block_length",
    "urp.crc",
    "urp.express",
];

#[test]
fn trailers_are_read_whole() {
    let Some(_turn) = turn() else { return };
    let trailer = |kind, length, seq, crc| {
        Some(Trailer { kind, length: Some(length), seq: Seq::new(seq), crc })
    };
    let data = vec![0x28, 0x09, 0x78];
    let block = Part { data, control: None, trailer: trailer(TrailerKind::Bot, 3, 5, None) };
    let user = Some(Control::User(User::BREAK));
    let crc = Some(0x0403_0201);
    let summed =
        Part { data: vec![1], control: user, trailer: trailer(TrailerKind::Botm, 258, 7, crc) };
    let long =
        Part { data: vec![7; 50], control: None, trailer: trailer(TrailerKind::Bots, 50, 0, None) };
    let found = rows(&[urp(&block, 999), urp(&summed, 999), urp(&long, 30)], &URP);
    let wanted = [
        row(&[
            ("tlcp.body", "URP"),
            ("urp.envelopes", "7"),
            ("urp.data", "280978"),
            ("urp.name", "BOT,SEQ"),
            ("urp.seq", "5"),
            ("urp.block_length", "3"),
        ]),
        row(&[
            ("tlcp.body", "URP"),
            ("urp.envelopes", "11"),
            ("urp.data", "01"),
            ("urp.name", "BREAK,CRC,BOTM,SEQ"),
            ("urp.seq", "7"),
            ("urp.block_length", "258"),
            ("urp.crc", "0x04030201"),
        ]),
        // Four octets of numbers, four of places, and 22 of the 54 envelopes.
        row(&[
            ("tlcp.body", "URP"),
            ("urp.envelopes", "54"),
            ("urp.left_out", "32"),
            ("urp.data", "070707070707070707070707070707070707"),
            ("urp.name", "BOTS,SEQ"),
            ("urp.seq", "0"),
            ("urp.block_length", "50"),
        ]),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn every_control_has_its_name() {
    let Some(_turn) = turn() else { return };
    let seq = Seq::new(6);
    let controls = [
        (Control::Seq(seq), "SEQ"),
        (Control::Echo(seq), "ECHO"),
        (Control::Rej(seq), "REJ"),
        (Control::Ack(seq), "ACK"),
        (Control::Enq, "ENQ"),
        (Control::Check, "CHECK"),
        (Control::InitReq, "INITREQ"),
        (Control::Init0, "INIT0"),
        (Control::Init1, "INIT1"),
        (Control::Ainit, "AINIT"),
        (Control::Express([8, 9]), "SOI,EOI"),
        (Control::User(User::BREAK), "BREAK"),
        (Control::User(User::delay(3)), "USER"),
    ];
    let packets: Vec<Vec<u8>> =
        controls.iter().map(|&(control, _)| urp(&Part::control(control), 999)).collect();
    for (found, (control, name)) in rows(&packets, &URP).iter().zip(controls) {
        assert_eq!(found["urp.name"], name, "{control:?}");
        let is_numbered = matches!(name, "SEQ" | "ECHO" | "REJ" | "ACK");
        assert_eq!(found.get("urp.seq").map(String::as_str), is_numbered.then_some("6"));
        let express = matches!(control, Control::Express(_)).then_some("0809");
        assert_eq!(found.get("urp.express").map(String::as_str), express);
    }
}

/// A frame: the length of the header, the place of the data, both.
fn frame(place: u64, header: &[u8], data: &[u8]) -> Vec<u8> {
    [&(header.len() as u16).to_be_bytes()[..], &place.to_be_bytes(), header, data].concat()
}

/// A capsule of DATA whose body has room for so many octets of the data.
fn netblt(data: &[u8], carried: usize) -> Vec<u8> {
    let (checksum, bytes) = (data_checksum(data), data.len() as u16);
    let packet = Packet::Data(Data { packet: 4, checksum, bytes, ..Data::default() });
    let mut header = Vec::new();
    encode(Dialect::V5, Ports { local: 16_385, foreign: 1 }, &packet, &mut header);
    let path_size = (header.len() + data.len()) as u32;
    let header_of_capsule = Header { path_size, ..Header::default() };
    capsule(&header_of_capsule, &[], &frame(1 << 33, &header, &data[..carried]))
}

#[test]
fn frames_are_told_by_their_numbers() {
    let Some(_turn) = turn() else { return };
    // Kind, flags, octets, number: the third message's end, sent twice before.
    let data = [1, 5, 0, 3, 0, 0, 1, 2];
    let answer = [2, 4, 0, 0, 0, 0, 1, 2];
    let arq = |header: &[u8], data: &[u8]| {
        let path_size = (header.len() + data.len()) as u32;
        capsule(&Header { path_size, ..Header::default() }, &[], &frame(9, header, data))
    };
    let packets =
        [arq(&data, b"abc"), arq(&answer, b""), netblt(b"a packet", 8), netblt(b"a packet", 3)];
    let fields = [
        "tlcp.body",
        "tlframe.header_length",
        "tlframe.place",
        "tlframe.data",
        "tlarq.kind",
        "tlarq.sending",
        "tlarq.octets",
        "tlarq.number",
        "netblt.packet",
        "netblt.number",
        "netblt.data_checksum_status",
        "netblt.left_out",
    ];
    let arq = [("tlcp.body", "ARQ"), ("tlframe.header_length", "8"), ("tlframe.place", "9")];
    let arq = [&arq[..], &[("tlarq.sending", "2"), ("tlarq.number", "258")]].concat();
    let netblt = [
        ("tlcp.body", "NETBLT"),
        ("tlframe.header_length", "32"),
        ("tlframe.place", "8589934592"),
        ("netblt.packet", "DATA"),
        ("netblt.number", "4"),
    ];
    let data = [("tlarq.kind", "1"), ("tlarq.octets", "3"), ("tlframe.data", "616263")];
    let whole = [("netblt.data_checksum_status", "1")];
    // What is not there cannot be verified.
    let cut = [("netblt.data_checksum_status", "2"), ("netblt.left_out", "5")];
    let wanted = [
        row(&[&arq[..], &data].concat()),
        row(&[&arq[..], &[("tlarq.kind", "2"), ("tlarq.octets", "0")]].concat()),
        row(&[&netblt[..], &whole].concat()),
        row(&[&netblt[..], &cut].concat()),
    ];
    assert_eq!(rows(&packets, &fields), wanted);
}

/// A body whose numbers are not those of its capsule is a datagram, whatever it looks like.
#[test]
fn what_only_looks_like_a_protocol_is_a_datagram() {
    let Some(_turn) = turn() else { return };
    // Two envelopes of data, without a control.
    let envelopes = [0, 2, 0, 0, 7, 7];
    // A header of data of the repeat-request transports in front of three octets.
    let arq = frame(9, &[1, 5, 0, 3, 0, 0, 1, 2], b"abc");
    let answer = frame(9, &[2, 4, 0, 0, 0, 0, 1, 2], b"");
    let long = frame(9, &[1, 5, 0, 3, 0, 0, 1, 2], b"abcd");
    let mut too_long = answer.clone();
    too_long[1] = 20;
    // An answer ends no message.
    let ends = frame(9, &[2, 5, 0, 0, 0, 0, 1, 2], b"");
    // A header of NETBLT of 12 octets, and one octet more than it has.
    let keepalive = [0xbd, 0x8c, 2, 2, 0, 12, 0x40, 1, 0, 0x64, 0, 0];
    let netblt = frame(9, &keepalive, b"");
    let mut wrong_length = frame(9, &keepalive, b"a");
    wrong_length[1] = 13;
    // A transport that the dissector does not know.
    let unknown = frame(9, &[9, 5, 0, 3, 0, 0, 1, 2], b"abc");
    let bodies: [(&[u8], u32, u16, &str); 14] = [
        (&envelopes, 2, 0, "URP"),
        (&envelopes, 3, 0, "DATAGRAM"),
        (&envelopes, 2, 1, "DATAGRAM"),
        (&[0, 2, 0, 0, 7, 7, 7], 2, 0, "DATAGRAM"),
        (&arq, 11, 0, "ARQ"),
        (&arq, 12, 0, "DATAGRAM"),
        (&answer, 9, 0, "DATAGRAM"),
        (&long, 11, 0, "DATAGRAM"),
        (&too_long, 21, 0, "DATAGRAM"),
        (&netblt, 12, 0, "NETBLT"),
        (&wrong_length, 13, 0, "FRAME"),
        (&unknown, 11, 0, "FRAME"),
        (&unknown, 12, 0, "DATAGRAM"),
        (&ends, 8, 0, "FRAME"),
    ];
    let packets = bodies.map(|(body, path_size, controls, _)| {
        capsule(&Header { path_size, controls, ..Header::default() }, &[], body)
    });
    let found = rows(&packets, &["tlcp.body", "tlframe.header", "tlframe.data"]);
    assert_eq!(found[11]["tlframe.header"], "0905000300000102");
    assert_eq!(found[11]["tlframe.data"], "616263");
    let found: Vec<&str> = found.iter().map(|row| &*row["tlcp.body"]).collect();
    assert_eq!(found, bodies.map(|(.., name)| name));
}

/// A datagram of the probe with envelopes: a head of 40 octets, the 17th its kind and the 18th its version.
fn probe(kind: u8, version: u8, body: &[u8]) -> Vec<u8> {
    let mut head = vec![0; 40];
    (head[16], head[17]) = (kind, version);
    udp((PORT, 40_000), &[&head, body].concat())
}

/// What the dissector says of envelopes against what our codec says of them.
#[test]
fn wrong_envelopes_are_told_of() {
    let Some(_turn) = turn() else { return };
    let numbers = "The numbers of envelopes do not agree with the octets";
    let places = "The places of the controls are not in order";
    let mut most = vec![0; 4 + packed::MOST];
    most[..2].copy_from_slice(&(packed::MOST as u16).to_be_bytes());
    let mut more = [&most[..], &[0]].concat();
    more[..2].copy_from_slice(&(packed::MOST as u16 + 1).to_be_bytes());
    let bodies: [(&[u8], &str); 10] = [
        (&[0, 2, 0, 2, 0, 0, 0, 1, 7, 8], ""),
        (&[0, 2, 0, 1, 0, 1, 8], ""),
        (&most, ""),
        (&[0, 2], numbers),
        (&[0, 2, 0, 0, 1, 1, 1], numbers),
        (&[0, 1, 0, 2, 0, 0, 0], numbers),
        (&more, numbers),
        (&[0, 2, 0, 2, 0, 1, 0, 0, 7, 8], places),
        (&[0, 2, 0, 1, 0, 2, 7, 8], places),
        (&[0, 2, 0, 1, 0, 0, 8], places),
    ];
    let packets: Vec<Vec<u8>> = bodies.iter().map(|(body, _)| probe(4, 2, body)).collect();
    let home = place();
    let file = home.path().join("probe.pcap");
    write(&file, &packets);
    let message = "_ws.expert.message";
    for (row, (body, wanted)) in read(&file, "tlprobe", &[message]).iter().zip(bodies) {
        let is_right = packed::read(body, &mut Vec::new()).is_some();
        assert_eq!(is_right, wanted.is_empty(), "{body:?}");
        assert_eq!(row.get(message).map_or("", |it| it), wanted, "{body:?}");
    }
}

#[test]
fn other_datagrams_of_the_port_are_left_alone() {
    let Some(_turn) = turn() else { return };
    let home = place();
    let file = home.path().join("others.pcap");
    let short = udp((PORT, 40_000), &[4; 39]);
    write(&file, &[probe(1, 2, b""), probe(5, 2, b""), probe(0, 2, b""), probe(1, 1, b""), short]);
    let found = read(&file, "tlprobe || tlcp || urp", &["frame.number"]);
    assert_eq!(found, [row(&[("frame.number", "1")])]);
}

/// What a capture has left out of a packet is no error, and what is there is not taken for something else.
#[test]
fn a_capture_of_the_fronts_of_packets_is_read_as_far_as_it_goes() {
    let Some(_turn) = turn() else { return };
    let trailer =
        Some(Trailer { kind: TrailerKind::Bot, length: Some(9), seq: Seq::new(1), crc: None });
    let part = Part { data: vec![7; 90], control: None, trailer };
    let mut envelopes = Vec::new();
    envelope::write(&part, &mut envelopes);
    let mut body = Vec::new();
    packed::write(&envelopes, 999, &mut body);
    let packets =
        [netblt(&[7; 90], 90), urp(&part, 999), probe(4, 2, &[&body[..], &[0; 250]].concat())];
    let home = place();
    let file = home.path().join("cut.pcap");
    let fields = ["tlcp.body", "tlprobe.kind", "netblt.left_out", "_ws.expert.message"];
    // IP, UDP, the capsule's header, a frame's prefix and NETBLT's header; then nothing behind the capsule's header.
    for (most, left_out, kinds) in [(28 + 272 + 10 + 32, "90", "NETBLT"), (28 + 272, "", "CUT")] {
        write_cut(&file, &packets, most);
        let mut wanted = vec![row(&[("tlcp.body", kinds)]), row(&[("tlcp.body", "CUT")])];
        if !left_out.is_empty() {
            wanted[0].insert("netblt.left_out".into(), left_out.into());
        }
        wanted.push(row(&[("tlprobe.kind", "4")]));
        assert_eq!(read(&file, "udp", &fields), wanted);
    }
}

/// Capsules cut and changed anywhere end without an error of the dissector's own.
#[test]
fn cut_and_changed_capsules_do_no_harm() {
    let Some(_turn) = turn() else { return };
    let payload = |packet: Vec<u8>| packet[28..].to_vec();
    let control = Part::control(Control::Express([1, 2]));
    let mut packets = Vec::new();
    for payload in [payload(netblt(b"a packet", 8)), payload(urp(&control, 99))] {
        for at in (0..payload.len()).filter(|at| *at < 64 || *at >= trunkline_capsule::HEADER) {
            packets.push(udp((PORT, 9), &payload[..at]));
            for change in [1, 0x80, 0xff] {
                let mut changed = payload.clone();
                changed[at] ^= change;
                packets.push(udp((PORT, 9), &changed));
            }
        }
    }
    let home = place();
    let file = home.path().join("damaged.pcap");
    write(&file, &packets);
    assert_eq!(read(&file, LUA_ERROR, &["frame.number"]), NONE);
    assert_eq!(read(&file, "ip", &["frame.number"]).len(), packets.len());
}

/// The error of a host whose port is closed, with so many octets of the packet that it answers.
fn closed(packet: &[u8], quoted: usize) -> Vec<u8> {
    let mut error = vec![3, 3, 0, 0, 0, 0, 0, 0];
    error.extend(&packet[..packet.len().min(quoted)]);
    let sum = data_checksum(&error);
    error[2..4].copy_from_slice(&sum.to_be_bytes());
    ipv4(ICMP, true, &error)
}

#[test]
fn a_capsule_that_an_error_quotes_is_read_as_far_as_it_goes() {
    let Some(_turn) = turn() else { return };
    let packet = netblt(b"a packet", 8);
    let whole = closed(&packet, packet.len());
    // As much as Linux quotes of a long packet, and the front of a capsule alone.
    let long = closed(&netblt(&[1; 1000], 1000), 548);
    let front = closed(&packet, 28 + trunkline_capsule::HEADER);
    for error in [&whole, &long, &front] {
        assert!(trunkline_capsule::find(error).is_none(), "an error is no capsule");
    }
    let found = rows(&[whole, long, front], &["icmp.type", "tlcp.body"]);
    let wanted = ["NETBLT", "NETBLT", "CUT"];
    assert_eq!(found, wanted.map(|body| row(&[("icmp.type", "3"), ("tlcp.body", body)])));
}
