//! Segments as IPv4 packets (RFC 9293 §3.1, RFC 791 §3.1).
//!
//! Options stand as most hosts send them, padded so that their words lie at multiples of four (RFC 7323
//! appendix A): a SYN has its segment size, permission of SACK, time stamps and shift; others have time
//! stamps and SACK. Read are all orders; unknown options are passed over.

use super::segment::{Flags, IP_HEADER, Offer, Rare, Sack, Segment, TCP_HEADER, Timestamps};
use super::seq::Seq;
use crate::Payload;
use crate::checksum::checksum;
use core::net::{Ipv4Addr, SocketAddrV4};
use trunkline_core::{Ecn, Time};

const PROTOCOL: u8 = 6;
/// Hops that a packet may take (RFC 1700).
const TIME_TO_LIVE: u8 = 64;
const DO_NOT_FRAGMENT: u16 = 0x4000;
/// The largest data offset: 15 words.
const MOST_OPTIONS: usize = 40;

/// Kinds of options (RFC 9293 §3.2, RFC 7323, RFC 2018).
mod kind {
    pub const END: u8 = 0;
    pub const NOTHING: u8 = 1;
    pub const MSS: u8 = 2;
    pub const SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
}

/// The addresses and ports that a segment goes from and to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Address and port of the sender.
    pub from: SocketAddrV4,
    /// Address and port of the receiver.
    pub to: SocketAddrV4,
}

/// The reason for refusing a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too large to be written.
    #[error("a TCP segment of {0} octets fits into no IPv4 packet: keep to 65495 octets of data")]
    TooLong(u64),
    /// Not IPv4.
    #[error("this is no IPv4 packet: hand over what follows the frame's header, type 0x0800")]
    NotIp,
    /// Shorter than a header, or than it says.
    #[error("the packet ends after {0} octets, within what its headers announce: capture it whole")]
    Short(usize),
    /// Not TCP.
    #[error("the packet carries protocol {0}, not TCP (6): hand over TCP only")]
    NotTcp(u8),
    /// Part of a larger one.
    #[error("the packet is a fragment: put it together first, or set the path's MTU higher")]
    Fragment,
    /// A header length that no header has.
    #[error("a header of {0} octets is not possible: drop the packet")]
    Header(usize),
    /// Damaged.
    #[error("the check sum of the {0} header is wrong: drop the packet, TCP sends it again")]
    Checksum(&'static str),
    /// An option that cannot be read.
    #[error("the TCP option of kind {0} has a wrong length: drop the packet")]
    Option(u8),
}

impl<B: Payload> Segment<B> {
    /// Appends the segment as an IPv4 packet to `out`. Data that have no octets of their own are written as
    /// [`Payload::octet`] makes them.
    pub fn encode(&self, flow: Flow, out: &mut Vec<u8>) -> Result<(), Refused> {
        let length =
            u64::from(IP_HEADER + TCP_HEADER + self.options()) + u64::from(self.data.len());
        let total = u16::try_from(length).map_err(|_| Refused::TooLong(length))?;
        let start = out.len();
        out.reserve(usize::from(total));
        write_ip(out, flow, total, self.ecn);
        let tcp = out.len();
        self.write_header(flow, out);
        out.extend((0..self.data.len()).map(|index| self.data.octet(index)));
        let sum = checksum(&out[tcp..], pseudo_sum(flow, out.len() - tcp));
        out[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
        debug_assert_eq!(out.len() - start, usize::from(total));
        Ok(())
    }

    fn write_header(&self, flow: Flow, out: &mut Vec<u8>) {
        let words = (TCP_HEADER + self.options()) / 4;
        out.extend(flow.from.port().to_be_bytes());
        out.extend(flow.to.port().to_be_bytes());
        out.extend(self.seq.get().to_be_bytes());
        out.extend(self.ack.get().to_be_bytes());
        out.extend(((words as u16) << 12 | self.flags.bits()).to_be_bytes());
        out.extend(self.window.to_be_bytes());
        out.extend([0; 4]);
        match self.rare.as_deref() {
            Some(Rare::Offer(offer)) => write_offer(out, offer, self.timestamps),
            Some(Rare::Sack(sack)) => {
                write_stamps(out, self.timestamps, [kind::NOTHING; 2]);
                write_sack(out, sack);
            }
            None => write_stamps(out, self.timestamps, [kind::NOTHING; 2]),
        }
    }
}

fn write_ip(out: &mut Vec<u8>, flow: Flow, total: u16, ecn: Ecn) {
    let start = out.len();
    out.extend([0x45, ecn.bits()]);
    out.extend(total.to_be_bytes());
    out.extend([0; 2]);
    out.extend(DO_NOT_FRAGMENT.to_be_bytes());
    out.extend([TIME_TO_LIVE, PROTOCOL, 0, 0]);
    out.extend(flow.from.ip().octets());
    out.extend(flow.to.ip().octets());
    let sum = checksum(&out[start..], 0);
    out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
}

/// Time stamps after two octets that align them.
fn write_stamps(out: &mut Vec<u8>, stamps: Option<Timestamps>, before: [u8; 2]) {
    let Some(stamps) = stamps else { return };
    out.extend(before);
    out.extend([kind::TIMESTAMPS, 10]);
    out.extend(stamps.value.to_be_bytes());
    out.extend(stamps.echo.to_be_bytes());
}

fn write_offer(out: &mut Vec<u8>, offer: &Offer, stamps: Option<Timestamps>) {
    if let Some(mss) = offer.mss {
        out.extend([kind::MSS, 4]);
        out.extend(mss.to_be_bytes());
    }
    let permitted = [kind::SACK_PERMITTED, 2];
    if offer.sack && stamps.is_none() {
        out.extend([kind::NOTHING; 2]);
        out.extend(permitted);
    }
    write_stamps(out, stamps, if offer.sack { permitted } else { [kind::NOTHING; 2] });
    if let Some(scale) = offer.scale {
        out.extend([kind::NOTHING, kind::SCALE, 3, scale]);
    }
}

fn write_sack(out: &mut Vec<u8>, sack: &Sack) {
    let runs = sack.runs();
    if runs.is_empty() {
        return;
    }
    out.extend([kind::NOTHING, kind::NOTHING, kind::SACK, 2 + 8 * runs.len() as u8]);
    for (start, end) in runs {
        out.extend(start.get().to_be_bytes());
        out.extend(end.get().to_be_bytes());
    }
}

/// Reads an IPv4 packet that carries TCP, which came at `now`. What follows it is left out, such as the
/// padding of short frames.
pub fn decode(packet: &[u8], now: Time) -> Result<(Flow, Segment<Vec<u8>>), Refused> {
    let (ip, tcp) = read_ip(packet)?;
    let header: &[u8; 20] = tcp.first_chunk().ok_or(Refused::Short(packet.len()))?;
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let number = |at: usize| {
        Seq::new(u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]))
    };
    let flow = Flow {
        from: SocketAddrV4::new(address(ip, 12), half(0)),
        to: SocketAddrV4::new(address(ip, 16), half(2)),
    };
    let length = usize::from(header[12] >> 4) * 4;
    if length < TCP_HEADER as usize {
        return Err(Refused::Header(length));
    }
    let options = tcp.get(TCP_HEADER as usize..length).ok_or(Refused::Short(packet.len()))?;
    if checksum(tcp, pseudo_sum(flow, tcp.len())) != 0 {
        return Err(Refused::Checksum("TCP"));
    }
    let flags = Flags::from_bits(half(12));
    let data = tcp[length..].to_vec();
    let mut segment = Segment::new(number(4), number(8), flags, half(14), data, now);
    segment.ecn = Ecn::from_bits(ip[1]);
    read_options(options, &mut segment)?;
    Ok((flow, segment))
}

/// The header of an IPv4 packet and what it carries.
fn read_ip(packet: &[u8]) -> Result<(&[u8], &[u8]), Refused> {
    if packet.first().is_none_or(|first| first >> 4 != 4) {
        return Err(Refused::NotIp);
    }
    let short = Refused::Short(packet.len());
    let length = usize::from(packet[0] & 15) * 4;
    if length < IP_HEADER as usize {
        return Err(Refused::Header(length));
    }
    let header = packet.get(..length).ok_or(short)?;
    if checksum(header, 0) != 0 {
        return Err(Refused::Checksum("IPv4"));
    }
    if header[9] != PROTOCOL {
        return Err(Refused::NotTcp(header[9]));
    }
    if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
        return Err(Refused::Fragment);
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    Ok((header, packet.get(length..total).ok_or(short)?))
}

fn address(header: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3])
}

fn read_options(mut options: &[u8], segment: &mut Segment<Vec<u8>>) -> Result<(), Refused> {
    let (mut offer, mut sack) = (Offer::default(), Sack::default());
    while let [kind, rest @ ..] = options {
        match *kind {
            kind::END => break,
            kind::NOTHING => options = rest,
            kind => {
                let wrong = Refused::Option(kind);
                let length = usize::from(*rest.first().ok_or(wrong)?);
                let body = options.get(2..length).ok_or(wrong)?;
                options = &options[length..];
                read_option(kind, body, &mut offer, &mut sack, &mut segment.timestamps)
                    .ok_or(wrong)?;
            }
        }
    }
    segment.rare = match segment.flags.has(Flags::SYN) {
        true => Some(Rare::Offer(offer)).filter(|_| offer != Offer::default()),
        false => Some(Rare::Sack(sack)).filter(|_| !sack.runs().is_empty()),
    }
    .map(Box::new);
    Ok(())
}

/// Reads one option; `None` if its length is not that of its kind.
fn read_option(
    kind: u8,
    body: &[u8],
    offer: &mut Offer,
    sack: &mut Sack,
    stamps: &mut Option<Timestamps>,
) -> Option<()> {
    match kind {
        kind::MSS => offer.mss = Some(u16::from_be_bytes(body.try_into().ok()?)),
        kind::SCALE => {
            let [scale] = body.try_into().ok()?;
            offer.scale = Some(scale);
        }
        kind::SACK_PERMITTED => {
            let [] = body.try_into().ok()?;
            offer.sack = true;
        }
        kind::SACK => {
            let (runs, rest) = body.as_chunks::<8>();
            if runs.is_empty() || !rest.is_empty() {
                return None;
            }
            *sack = Sack::default();
            runs.iter().for_each(|run| sack.push(word(run, 0), word(run, 4)));
        }
        kind::TIMESTAMPS => {
            let body: &[u8; 8] = body.try_into().ok()?;
            *stamps = Some(Timestamps { value: word(body, 0).get(), echo: word(body, 4).get() });
        }
        _ => {}
    }
    Some(())
}

fn word(octets: &[u8; 8], at: usize) -> Seq {
    Seq::new(u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]))
}

/// The sum of the pseudo header (RFC 9293 §3.1).
fn pseudo_sum(flow: Flow, length: usize) -> u64 {
    let address = |address: &Ipv4Addr| {
        let [a, b, c, d] = address.octets();
        u64::from(u16::from_be_bytes([a, b])) + u64::from(u16::from_be_bytes([c, d]))
    };
    address(flow.from.ip()) + address(flow.to.ip()) + u64::from(PROTOCOL) + length as u64
}

const _: () = assert!(MOST_OPTIONS == 12 + 4 + 8 * Sack::MOST_WITH_TIMESTAMPS);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FLOW: Flow = Flow {
        from: SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 1), 40_000),
        to: SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 2), 80),
    };

    fn plain(data: &[u8]) -> Segment<Vec<u8>> {
        let (seq, ack) = (Seq::new(0x0102_0304), Seq::new(0x0506_0708));
        Segment::new(seq, ack, Flags::ACK | Flags::PSH, 0x1234, data.to_vec(), Time::ZERO)
    }

    fn coded(segment: &Segment<Vec<u8>>) -> Vec<u8> {
        let mut packet = Vec::new();
        segment.encode(FLOW, &mut packet).unwrap();
        packet
    }

    #[test]
    fn the_fields_stand_where_rfc_9293_draws_them() {
        let packet = coded(&Segment { ecn: Ecn::Ect0, ..plain(b"abc") });
        assert_eq!(packet[..4], [0x45, 0b10, 0, 43]);
        assert_eq!(packet[20..24], [0x9c, 0x40, 0, 80]);
        assert_eq!(packet[24..36], [1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x18, 0x12, 0x34]);
        assert_eq!(packet[40..], *b"abc");
        // Computed apart: the sums of 16-bit words, carried round and inverted.
        assert_eq!(packet[36..38], [0x17, 0xf2]);
        assert_eq!(packet[10..12], [0x26, 0x2f]);
    }

    #[test]
    fn a_syn_is_laid_out_as_most_hosts_do() {
        let offer = Offer { mss: Some(1460), scale: Some(7), sack: true };
        let syn = Segment {
            flags: Flags::SYN,
            timestamps: Some(Timestamps { value: 1, echo: 0 }),
            rare: Some(Box::new(Rare::Offer(offer))),
            ..plain(b"")
        };
        let options = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(coded(&syn)[40..], options);
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let good = coded(&plain(b"some octets"));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            let refusal = decode(&bad, Time::ZERO).unwrap_err();
            assert!(!refusal.to_string().contains('\n'));
        }
        for length in 0..good.len() {
            assert!(decode(&good[..length], Time::ZERO).is_err(), "{length}");
        }
        let padded = [&good[..], &[0; 6]].concat();
        assert_eq!(decode(&padded, Time::ZERO).unwrap().1.data, b"some octets");
    }

    #[test]
    fn too_much_is_not_written() {
        let mut packet = Vec::new();
        let refusal = plain(&[0; 65_496]).encode(FLOW, &mut packet).unwrap_err();
        assert_eq!((refusal, packet.len()), (Refused::TooLong(65_536), 0));
    }

    fn any_segment() -> impl Strategy<Value = Segment<Vec<u8>>> {
        let rare = prop_oneof![
            Just(None),
            prop::collection::vec(any::<(u32, u32)>(), 1..4).prop_map(|runs| {
                let mut sack = Sack::default();
                runs.iter().for_each(|run| sack.push(Seq::new(run.0), Seq::new(run.1)));
                Some(Rare::Sack(sack))
            }),
            (any::<Option<u16>>(), any::<Option<u8>>(), any::<bool>()).prop_map(
                |(mss, scale, sack)| {
                    let offer = Offer { mss, scale, sack };
                    Some(Rare::Offer(offer)).filter(|_| offer != Offer::default())
                }
            ),
        ];
        let header = any::<(u32, u32, u16, u16, u8)>();
        let stamps = any::<Option<(u32, u32)>>();
        (header, rare, stamps, prop::collection::vec(any::<u8>(), 0..40)).prop_map(
            |((seq, ack, flags, window, ecn), rare, stamps, data)| {
                let syn = matches!(rare, Some(Rare::Offer(_)));
                let clear = if rare.is_some() && !syn { !Flags::SYN.bits() } else { 0x1ff };
                let flags = Flags::from_bits(flags & clear).with(Flags::SYN, syn);
                let (seq, ack) = (Seq::new(seq), Seq::new(ack));
                let mut segment = Segment::new(seq, ack, flags, window, data, Time::ZERO);
                segment.timestamps = stamps.map(|(value, echo)| Timestamps { value, echo });
                segment.rare = rare.map(Box::new);
                segment.ecn = Ecn::from_bits(ecn);
                segment
            },
        )
    }

    proptest! {
        #[test]
        fn every_segment_survives_the_wire(segment in any_segment()) {
            let packet = coded(&segment);
            prop_assert_eq!(packet.len() as u32, segment.size());
            prop_assert_eq!(decode(&packet, Time::ZERO), Ok((FLOW, segment)));
        }
    }
}
