//! The demands of a fuzzer on every decoder: it answers or refuses, and what it accepts holds together.
//!
//! The bodies are plain functions over bytes, so that the tests of the command try them too, on the
//! stable toolchain (`crates/cli/tests/fuzz_smoke.rs`).

pub mod cstar;
pub mod described;
pub mod heard;
pub mod met;
pub mod mover;
pub mod netblt;
pub mod served;
pub mod transfer;

use std::fmt::{Debug, Display};
use std::str::FromStr;
use trunkline_capsule::{Capsule, HEADER, Hop, Ledger};
use trunkline_core::{Rate, Size, Span, Time};
use trunkline_path::discipline::Gain;
use trunkline_path::impairment::{LossTrace, Setting};
use trunkline_path::{
    ChannelKey, Class, DeliveryTrace, DisciplineSpec, Limit, Schedule, classify, mark_frame,
};
use trunkline_port::offload::{LENGTH, Offload};
use trunkline_port::segment::segment;
use trunkline_transport::Extent;
use trunkline_transport::envelope::{Envelope, Packet, Reader, write};
use trunkline_transport::protocol::{Frame, Header, PROTOCOLS};
use trunkline_transport::tcp::congestion::Algorithm;
use trunkline_transport::tcp::wire::decode;
use trunkline_transport::tcp::{self, Flags, Rare, Sack, Seq, Tcp};
use trunkline_transport::urp::{self, Check, Profile, Urp};

/// A body: panics if the decoder has a fault.
pub type Body = fn(&[u8]);

/// Every body by the name of its target.
pub const BODIES: [(&str, Body); 30] = [
    ("segment", cut_super_frame),
    ("classify", read_frame),
    ("quantities", read_quantities),
    ("discipline", read_discipline),
    ("impairments", read_impairments),
    ("traces", read_traces),
    ("settings", described::read_settings),
    ("scenario", described::read_scenario),
    ("lines", described::edit_scenario),
    ("study", described::read_study),
    ("request", served::read_request),
    ("http", served::serve_http),
    ("probe", served::read_probe),
    ("session", served::serve_session),
    ("envelopes", read_envelopes),
    ("tcp", read_tcp),
    ("netblt", netblt::hear),
    ("netblt-ends", netblt::converse),
    ("cstar", cstar::hear),
    ("protocols", hear_protocols),
    ("capsule", read_capsule),
    ("netlink", heard::read_netlink),
    ("iptables", heard::read_iptables),
    ("names", heard::answer_names),
    ("state", heard::read_state),
    ("programs", heard::read_programs),
    ("runs", heard::read_runs),
    ("transfer", transfer::read),
    ("mover", mover::hear),
    ("mover-met", met::hear),
];

/// A super-frame with the kernel's header before it: the pieces hold the payload, no more and no less.
pub fn cut_super_frame(data: &[u8]) {
    let Some((header, frame)) = data.split_first_chunk::<LENGTH>() else { return };
    let offload = Offload::read(header);
    if let Some((start, offset)) = offload.checksum {
        let mut finished = frame.to_vec();
        trunkline_port::checksum::finish(&mut finished, start.into(), offset.into());
        assert_eq!(finished.len(), frame.len());
    }
    let Some(gso) = offload.gso else { return };
    let (mut scratch, mut pieces) = (Vec::new(), Vec::<Vec<u8>>::new());
    let unfinished = offload.checksum.map(|(start, field)| (start.into(), field.into()));
    let Ok(count) =
        segment(frame, gso, unfinished, &mut scratch, &mut |piece| pieces.push(piece.into()))
    else {
        return assert_eq!(pieces.len(), 0, "refused, but pieces were handed out");
    };
    assert_eq!(count, pieces.len());
    let headers = headers_of(frame, &pieces, gso.size.into());
    let payload: Vec<u8> = pieces.iter().flat_map(|piece| &piece[headers..]).copied().collect();
    assert_eq!(payload, frame[headers..]);
    let longest = headers + usize::from(gso.size);
    assert!(pieces.iter().all(|piece| piece.len() <= longest));
}

/// Bytes of the headers that every piece repeats: what the pieces are longer than the frame, shared out.
fn headers_of(frame: &[u8], pieces: &[Vec<u8>], size: usize) -> usize {
    match pieces {
        [_, _, ..] => pieces[0].len() - size,
        [one] => {
            assert_eq!(one.len(), frame.len());
            frame.len()
        }
        [] => panic!("a frame stands for one piece at least"),
    }
}

/// A frame off the wire: classified under every key, the same way every time.
pub fn read_frame(data: &[u8]) {
    for key in ["five-tuple", "source-destination", "vlan", "dscp", "one"] {
        let key: ChannelKey = key.parse().expect("a key of the list");
        let class = classify(data, key);
        assert_eq!(class.size as usize, data.len().saturating_sub(14));
        assert!(class.band < 8);
        assert_eq!(class, classify(data, key));
        let mut marked = data.to_vec();
        assert_eq!(mark_frame(&mut marked), class.ecn.is_capable());
        assert_eq!(classify(&marked, key), Class { ecn: class.ecn.marked(), ..class });
    }
}

/// What is read, printed and read again is the same.
fn round_trip<T>(text: &str)
where
    T: FromStr + Display + PartialEq + Debug,
    T::Err: Debug + Display,
{
    match text.parse::<T>() {
        Ok(value) => {
            let printed = value.to_string();
            let again = printed.parse::<T>();
            let again = again.unwrap_or_else(|error| panic!("'{text}' -> '{printed}': {error}"));
            assert_eq!(again, value, "'{text}' -> '{printed}'");
        }
        Err(error) => assert_one_line(text, &error.to_string()),
    }
}

/// Complaints are one line, unless the text complained of is itself of several.
fn assert_one_line(text: &str, complaint: &str) {
    assert!(!complaint.is_empty());
    assert!(text.contains('\n') || !complaint.contains('\n'), "'{text}': {complaint}");
}

/// Times, rates, sizes and limits.
pub fn read_quantities(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    round_trip::<Span>(text);
    round_trip::<Rate>(text);
    round_trip::<Size>(text);
    round_trip::<Gain>(text);
    round_trip::<Limit>(text);
}

/// A discipline's text form.
pub fn read_discipline(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match DisciplineSpec::parse(text, Limit::Bytes(65_536)) {
        Ok(spec) => {
            let printed = spec.to_string();
            let again = DisciplineSpec::parse(&printed, Limit::Packets(1));
            let again = again.unwrap_or_else(|error| panic!("'{text}' -> '{printed}': {error}"));
            assert_eq!(again, spec, "'{text}' -> '{printed}'");
        }
        Err(error) => assert_one_line(text, &error.to_string()),
    }
}

/// `name=value` of an impairment, and a schedule.
pub fn read_impairments(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    round_trip::<Schedule>(text);
    let Some((key, value)) = text.split_once('=') else { return };
    let Some(Ok(setting)) = Setting::parse(key, value) else { return };
    let printed = setting.to_string();
    let (key, value) = printed.split_once('=').expect("settings are printed as name=value");
    let again = Setting::parse(key, value).expect("a known name");
    let again = again.unwrap_or_else(|error| panic!("'{text}' -> '{printed}': {error}"));
    assert_eq!(again, setting, "'{text}' -> '{printed}'");
}

/// Files of delivery opportunities and of losses.
pub fn read_traces(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(trace) = DeliveryTrace::parse(text) {
        assert!(trace.is_sorted() && trace.last().is_some_and(|&last| last > 0));
        let (mean, window) = (DeliveryTrace::mean_rate(&trace), Span::from_secs(1));
        assert!(mean <= DeliveryTrace::peak_rate(&trace, Span::from_millis(1)).max(mean));
        assert!(DeliveryTrace::most_bytes(&trace, window) >= 1500);
    }
    if let Ok(trace) = LossTrace::parse(text) {
        assert!(!trace.decisions().is_empty() && (0.0..=1.0).contains(&trace.rate()));
    }
}

/// Packets of Datakit's backplane in both codings, and envelopes two octets each: what is read can be
/// written and read the same, and an end that hears it answers and comes to rest.
pub fn read_envelopes(data: &[u8]) {
    let words: Vec<u16> =
        data.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    for packet in [Packet::unpack(data), Packet::from_words(&words)] {
        match packet {
            Ok(packet) => {
                assert_eq!(Packet::unpack(&packet.pack()).as_ref(), Ok(&packet));
                assert_eq!(Packet::from_words(&packet.words()).as_ref(), Ok(&packet));
                hear(packet.envelopes());
            }
            Err(error) => assert_one_line("", &error.to_string()),
        }
    }
    let envelopes: Vec<Envelope> =
        words.iter().filter_map(|word| Envelope::from_word(word & 0x1ff | 0x8000)).collect();
    hear(&envelopes);
}

fn hear(envelopes: &[Envelope]) {
    for check in [Check::Count, Check::Crc] {
        let parts = Reader::new(check).read(envelopes);
        let mut written = Vec::new();
        parts.iter().for_each(|part| write(part, &mut written));
        assert!(written.len() <= envelopes.len());
        assert_eq!(Reader::new(check).read(&written), parts);
        for profile in Profile::ALL {
            answer(urp::Settings { profile, check, ..urp::Settings::default() }, parts.clone());
        }
    }
}

/// An end with blocks outstanding hears the parts. To each it says no more than an enquiry's answer and a
/// window of blocks, and it delivers no more than came.
fn answer(settings: urp::Settings, parts: Vec<urp::Part<Vec<u8>>>) {
    let mut end = Urp::connected(Time::ZERO, settings).expect("the default settings");
    end.offer(Time::ZERO, vec![7; 1024], true);
    let came: u32 = parts.iter().map(urp::Part::envelopes).sum();
    for part in parts {
        end.receive(Time::ZERO, part);
        let said = std::iter::from_fn(|| end.transmit(Time::ZERO)).take(20).count();
        assert!(said <= 10, "{said} segments, and perhaps no end");
    }
    let delivered: u32 = std::iter::from_fn(|| end.take()).map(|piece| piece.len()).sum();
    assert!(delivered <= came, "{delivered} of {came}");
    assert!(end.outstanding() <= usize::from(settings.outstanding));
    assert!(end.unsent() + end.unechoed() <= 1024);
}

/// IPv4 packets with TCP, as they come and with their check sums put right: what is read can be written and
/// read the same. Then the octets as a conversation, which an end in any state stands.
pub fn read_tcp(data: &[u8]) {
    for packet in [data.to_vec(), with_sums(data)] {
        match decode(&packet, Time::ZERO) {
            Ok((flow, segment)) => {
                let mut written = Vec::new();
                segment.encode(flow, &mut written).expect("what was a packet is one again");
                assert_eq!(written.len(), segment.size() as usize);
                assert_eq!(decode(&written, Time::ZERO), Ok((flow, segment.clone())));
                converse(&[segment]);
            }
            Err(error) => assert_one_line("", &error.to_string()),
        }
    }
    let said: Vec<_> = data.chunks_exact(12).map(near_segment).collect();
    converse(&said);
}

/// Each protocol of the list hears frames from a peer that says anything: it keeps what is new, and no more than it
/// may.
pub fn hear_protocols(data: &[u8]) {
    let Some((&first, data)) = data.split_first() else { return };
    let entry = PROTOCOLS[usize::from(first) % PROTOCOLS.len()];
    let Ok(mut end) = (entry.build)(&entry.defaults()) else { return };
    end.offer(Time::ZERO, Extent::new(0, 20_000), true);
    let mut number = 0;
    for (index, piece) in data.chunks(11).enumerate() {
        let now = Time::from_nanos(index as u64 * 50_000_000);
        let (header, rest) = piece.split_at(piece.len().min(8));
        let len = rest.iter().fold(0, |len, &octet| len << 8 | u32::from(octet)) & 0xffff;
        end.receive(now, &Frame { header: Header::new(header), data: Extent::new(0, len) });
        end.expire(now);
        // What it says is bounded: its answers, and a window once more.
        assert!((0..1 << 18).any(|_| end.transmit(now).is_none()), "{} goes on", entry.name);
        while let Some(unit) = end.take() {
            assert_eq!(unit.number, number, "{} counts its units", entry.name);
            number += 1;
        }
    }
}

/// The octets with the check sums of both headers put right, if there are both.
fn with_sums(data: &[u8]) -> Vec<u8> {
    let mut packet = data.to_vec();
    let length = usize::from(data.first().map_or(0, |first| first & 15)) * 4;
    let total = data.get(2..4).map_or(0, |two| usize::from(u16::from_be_bytes([two[0], two[1]])));
    if length < 20 || total < length + 20 || total > data.len() {
        return packet;
    }
    packet[10..12].fill(0);
    let sum = internet_sum(&packet[..length], 0);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[length + 16..length + 18].fill(0);
    let pseudo: u32 = packet[12..20].chunks(2).map(word).sum();
    let sum = internet_sum(&packet[length..total], pseudo + 6 + (total - length) as u32);
    packet[length + 16..length + 18].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn word(two: &[u8]) -> u32 {
    u32::from(two[0]) << 8 | two.get(1).map_or(0, |&low| u32::from(low))
}

/// RFC 1071.
fn internet_sum(octets: &[u8], start: u32) -> u16 {
    let sum = octets.chunks(2).map(word).fold(start, |sum, word| sum + word);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// A segment whose numbers lie near those of a young connection.
fn near_segment(octets: &[u8]) -> tcp::Segment<Vec<u8>> {
    let near = |at: usize| Seq::new(u32::from(octets[at]) * 16).minus(64);
    let data = vec![octets[1]; usize::from(octets[2])];
    let flags = Flags::from_bits(u16::from(octets[0]) | u16::from(octets[11] & 16) << 4);
    let window = u16::from_be_bytes([octets[3], octets[4]]);
    let mut segment = tcp::Segment::new(near(5), near(6), flags, window, data, Time::ZERO);
    if octets[11] & 1 != 0 && !flags.has(Flags::SYN) {
        let mut sack = Sack::default();
        sack.push(near(7), near(8));
        sack.push(near(9), near(10));
        segment.rare = Some(Box::new(Rare::Sack(sack)));
    }
    if octets[11] & 2 != 0 {
        let (value, echo) = (u32::from(octets[7]), u32::from(octets[8]));
        segment.timestamps = Some(tcp::Timestamps { value, echo });
    }
    segment.ecn = trunkline_core::Ecn::from_bits(octets[11] >> 2);
    segment
}

/// Ends in every state, of a profile that the segments choose, hear them ten milliseconds apart.
fn converse(segments: &[tcp::Segment<Vec<u8>>]) {
    let choice: usize = segments.iter().map(|segment| usize::from(segment.window)).sum();
    let profile = tcp::Profile::ALL[choice % tcp::Profile::ALL.len()];
    let kind = Algorithm::ALL[choice / tcp::Profile::ALL.len() % Algorithm::ALL.len()];
    let settings = tcp::Settings { ecn: true, ..tcp::Settings::of(profile) };
    let settings = settings.with_congestion(kind);
    let ends = [
        Tcp::connected(settings, &settings),
        Tcp::connect(settings, Seq::default()),
        Tcp::listen(settings, Seq::default()),
    ];
    ends.into_iter().for_each(|end| hear_segments(end.expect("good settings"), segments));
}

/// The end says no more to a segment than a window of answers, and delivers no more than came.
fn hear_segments(mut end: Tcp<Vec<u8>>, segments: &[tcp::Segment<Vec<u8>>]) {
    end.offer(Time::ZERO, vec![7; 3000]);
    let (mut now, mut came, mut delivered) = (Time::ZERO, 0, 0);
    let say = |end: &mut Tcp<Vec<u8>>, now| {
        let said = std::iter::from_fn(|| end.transmit(now)).take(3100).count();
        assert!(said < 3100, "{said} segments, and perhaps no end");
    };
    say(&mut end, now);
    for segment in segments {
        now += Span::from_millis(10);
        came += segment.data.len();
        end.receive(now, segment.clone());
        say(&mut end, now);
        end.expire(now);
        say(&mut end, now);
        delivered += std::iter::from_fn(|| end.take()).map(|data| data.len()).sum::<usize>();
    }
    assert!(delivered <= came, "{delivered} of {came}");
    // Where windows count segments, one of a single octet is in flight as a full one.
    let settings = end.settings();
    let most = if settings.counts_segments { u64::from(settings.mss) } else { 1 };
    assert!(end.outstanding() <= 3001 && end.in_flight() <= most * end.outstanding());
    assert_eq!(end.received(), delivered as u64);
}

/// A capsule as a payload and within a frame: its ledger can be filled in, and nothing else changes.
pub fn read_capsule(data: &[u8]) {
    if let Some(at) = trunkline_capsule::find(data) {
        let mut frame = data.to_vec();
        trunkline_capsule::without_checksum(&mut frame, &at);
        fill_ledger(&frame[at]);
    }
    match Capsule::parse(data) {
        Some(_) => fill_ledger(data),
        None => assert!(Ledger::of(&mut data.to_vec()).is_none()),
    }
}

fn fill_ledger(payload: &[u8]) {
    let mut written = payload.to_vec();
    let mut ledger = Ledger::of(&mut written).expect("a capsule that was found");
    ledger.arrive(Time::from_nanos(9));
    let hop = Hop { link: 1, queue: Span::from_nanos(5), ..Hop::default() };
    (0..20).for_each(|_| ledger.add_hop(&hop));
    let (before, after) = (Capsule::parse(payload), Capsule::parse(&written));
    let (before, after) = (before.expect("a capsule"), after.expect("still one"));
    assert_eq!((before.header, before.body), (after.header, after.body));
    assert_eq!((after.record.path(), after.record.crossed), (Span::from_nanos(100), 20));
    assert_eq!(before.body.len(), payload.len() - HEADER);
}
