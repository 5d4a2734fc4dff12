//! The worked packets of RFC 998's layout, and whatever else comes.

use super::*;
use proptest::prelude::*;

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let value = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(value).collect()
}

const THERE: Ports = Ports { local: 0x4001, foreign: 0x0064 };

/// Packets computed by hand from the field tables of RFC 998, with their checksums.
fn worked() -> Vec<(Ports, Packet, &'static str)> {
    let burst = Burst { size: 5, interval: 55 };
    let terms = Terms {
        uid: 0x1234_5678,
        buffer: 14_320,
        transfer: 716_000,
        packet: 1432,
        burst,
        death: 60,
        checksum: true,
        write: true,
        parity: false,
        outstanding: 22,
        text: b"test.dat".to_vec(),
    };
    let data = Data {
        ends_buffer: true,
        ack: 3,
        packet: 9,
        checksum: 0x3679,
        last: true,
        bytes: 5,
        ..Data::default()
    };
    let said = [
        (4, 0, Said::Ok { offer: burst, timer: 1900 }),
        (5, 1, Said::Go),
        (6, 2, Said::Resend { offer: Burst::default(), missing: vec![3, 7] }),
    ];
    let messages = said.map(|(sequence, buffer, said)| Message { sequence, buffer, said });
    let ack = NullAck { ack: 6, burst, ..NullAck::default() };
    vec![
        (
            THERE,
            Packet::Open(terms),
            "b2070200 00304001 00640000 12345678 000037f0 000aece0 05980005 0037003c 00030016
             74657374 2e646174 00000000",
        ),
        (THERE, Packet::Data(data), "86f00207 001d4001 00640000 00000000 00030009 36790001"),
        (
            THERE.turned(),
            Packet::Control(messages.into()),
            "b2970209 00340064 40010000 01000004 00000000 00050037 076c0000 00000005 00000001
             02000006 00000002 00020000 00030007",
        ),
        (THERE, Packet::NullAck(ack), "bd3c0208 00144001 00640000 00060005 00370000"),
        (THERE, Packet::Keepalive, "bd8c0202 000c4001 00640000"),
    ]
}

#[test]
fn the_worked_packets_are_written_and_read() {
    for (ports, packet, hex) in worked() {
        let expected = octets(hex);
        let mut written = Vec::new();
        encode(Dialect::Classic, ports, &packet, &mut written);
        assert_eq!(written, expected, "{packet:?}");
        let read = decode(&expected).expect("a good packet");
        assert_eq!((read.dialect, read.ports, read.packet), (Dialect::Classic, ports, packet));
    }
    assert_eq!(data_checksum(b"ABCDE"), 0x3679);
}

#[test]
fn a_terms_packet_may_end_without_a_text() {
    let (_, _, hex) = worked().swap_remove(0);
    let mut short = octets(hex)[..36].to_vec();
    short[..2].fill(0);
    short[4..6].copy_from_slice(&36u16.to_be_bytes());
    let sum = data_checksum(&short);
    short[..2].copy_from_slice(&sum.to_be_bytes());
    let Packet::Open(terms) = decode(&short).expect("a good packet").packet else { panic!() };
    assert_eq!((terms.text, terms.outstanding), (Vec::new(), 22));
}

#[test]
fn types_have_their_numbers() {
    let numbers = |dialect| [Code::Quit, Code::Data, Code::Done].map(|code| code.number(dialect));
    assert_eq!(numbers(Dialect::Classic), [3, 6, 11]);
    assert_eq!(numbers(Dialect::V4), [2, 5, 10]);
    assert_eq!(Code::of(11, Dialect::V5), Some(Code::Text));
    assert_eq!(Code::of(11, Dialect::V4), None);
    assert_eq!(Code::of(12, Dialect::V5), Some(Code::Parity));
    assert_eq!(Code::of(12, Dialect::V4), None);
    assert!((12..20).all(|it| Code::of(it, Dialect::Classic).is_none()));
}

prop_compose! {
    fn a_burst()(size: u16, interval: u16) -> Burst {
        Burst { size, interval }
    }
}

prop_compose! {
    fn some_terms()(
        (uid, buffer, transfer, packet, outstanding) in any::<(u32, u32, u32, u16, u16)>(),
        burst in a_burst(), (death, checksum, write, parity) in any::<(u16, bool, bool, bool)>(),
        text in prop::collection::vec(1u8.., 0..20),
    ) -> Terms {
        Terms { uid, buffer, transfer, packet, burst, death, checksum, write, parity, outstanding, text }
    }
}

fn a_message() -> impl Strategy<Value = Message> {
    let said = prop_oneof![
        Just(Said::Go),
        (a_burst(), any::<u16>()).prop_map(|(offer, timer)| Said::Ok { offer, timer }),
        (a_burst(), prop::collection::vec(any::<u16>(), 0..9))
            .prop_map(|(offer, missing)| Said::Resend { offer, missing }),
    ];
    (any::<u16>(), any::<u32>(), said).prop_map(|(sequence, buffer, said)| Message {
        sequence,
        buffer,
        said,
    })
}

prop_compose! {
    fn some_data()(
        (ends_buffer, last) in any::<(bool, bool)>(), (buffer, touched) in any::<(u32, u32)>(),
        (ack, packet, checksum) in any::<(u16, u16, u16)>(), burst in a_burst(), bytes in 0u16..60_000,
    ) -> Data {
        Data { ends_buffer, buffer, touched, ack, packet, checksum, last, burst, bytes }
    }
}

prop_compose! {
    fn some_parity()(
        (buffer, touched) in any::<(u32, u32)>(), (ack, row, packets) in any::<(u16, u16, u16)>(),
        (tail, checksum, last) in any::<(u16, u16, bool)>(), bytes in 0u16..60_000,
    ) -> Parity {
        Parity { buffer, touched, ack, row, packets, tail, checksum, last, bytes }
    }
}

pub(crate) fn a_packet() -> impl Strategy<Value = Packet> {
    let text = || prop::collection::vec(1u8.., 0..30);
    let null_ack = (any::<(u32, u16, bool)>(), a_burst());
    prop_oneof![
        some_terms().prop_map(Packet::Open),
        some_terms().prop_map(Packet::Response),
        Just(Packet::Keepalive),
        text().prop_map(Packet::Quit),
        Just(Packet::QuitAck),
        text().prop_map(Packet::Abort),
        some_data().prop_map(Packet::Data),
        some_parity().prop_map(Packet::Parity),
        null_ack.prop_map(|((touched, ack, last), burst)| {
            Packet::NullAck(NullAck { touched, ack, burst, last })
        }),
        prop::collection::vec(a_message(), 0..7).prop_map(Packet::Control),
        text().prop_map(Packet::Refused),
        Just(Packet::Done),
        text().prop_map(Packet::Text),
    ]
}

/// The packet as one that `dialect` can carry.
fn within(dialect: Dialect, mut packet: Packet) -> Packet {
    let classic = dialect.is_classic();
    match &mut packet {
        Packet::Open(terms) | Packet::Response(terms) => {
            terms.transfer = if classic { terms.transfer } else { 0 };
            terms.parity &= dialect == Dialect::V5;
        }
        Packet::Data(data) if classic => {
            (data.touched, data.burst) = (data.buffer, Burst::default());
        }
        Packet::NullAck(ack) if classic => (ack.touched, ack.last) = (0, false),
        Packet::Keepalive if !classic => return Packet::Control(Vec::new()),
        Packet::Text(_) | Packet::Parity(_) if dialect != Dialect::V5 => return Packet::Done,
        Packet::Control(messages) if classic => {
            for message in messages {
                if let Said::Resend { offer, .. } = &mut message.said {
                    *offer = Burst::default();
                }
            }
        }
        _ => {}
    }
    packet
}

proptest! {
    #[test]
    fn what_is_written_is_read(packet in a_packet(), local: u16, foreign: u16, which in 0usize..3) {
        let (dialect, ports) = (Dialect::ALL[which], Ports { local, foreign });
        let packet = within(dialect, packet);
        let mut written = Vec::new();
        encode(dialect, ports, &packet, &mut written);
        prop_assert_eq!(written.len() % 4, 0);
        let header = written.len();
        prop_assert_eq!(decode(&written), Ok(Read { dialect, ports, packet, header }));
        for cut in 0..header {
            prop_assert!(decode(&written[..cut]).is_err());
        }
    }

    #[test]
    fn a_changed_octet_is_noticed(packet in a_packet(), at: prop::sample::Index, change in 1u8..255) {
        let mut written = Vec::new();
        encode(Dialect::V5, THERE, &packet, &mut written);
        let at = at.index(written.len());
        written[at] ^= change;
        // Another length may by chance have this checksum over what it leaves.
        prop_assert!(decode(&written).is_err() || (4..6).contains(&at));
    }

    #[test]
    fn anything_is_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..90)) {
        let _ = decode(&octets);
    }
}
