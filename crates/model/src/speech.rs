//! The form that a transport gives to user bytes: blocks, packets, and the answers that move the window.

use crate::formula::rounds;
use crate::tcp::Connection;
use trunkline_core::Span;
use trunkline_scenario::{Split, Transport, UDP_HEADER};
use trunkline_transport::protocol::Shape;

/// Envelopes of a URP trailer: BOT, two of length, SEQ (Hawley 1989 §1.1).
const TRAILER: u32 = 4;
/// Control envelopes among them, each stuffed on a T1 trunk (Hawley 1989 §2.1).
const TRAILER_CONTROLS: u32 = 2;

/// A packet of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Envelopes, or user bytes of a datagram.
    pub bytes: u32,
    /// Control envelopes among them.
    pub controls: u32,
    /// Whether it is a control or an acknowledgement only, which costs hosts something else than a block.
    pub is_control: bool,
}

/// The way in which one end sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Speech {
    /// User bytes of a block.
    pub block: u32,
    /// Blocks outstanding; `None` for no window.
    pub outstanding: Option<u32>,
    /// Envelopes of a packet; 0 for a block in one.
    packet: u32,
    /// Bytes around the data of a block: its header, or its trailer.
    around: u32,
    /// Control envelopes among them.
    controls: u32,
    /// The protocol's own answer to each block, if it has one.
    pub answer: Option<Packet>,
    /// The time without an answer after which URP asks, and may send again; `None` for other protocols.
    pub timeout: Option<Span>,
    /// Whether what has come lies in the host's own buffers, not in receive buffers of the interface.
    pub of_host: bool,
}

impl Packet {
    /// A packet with data, without control envelopes.
    pub fn plain(bytes: u32) -> Packet {
        Packet { bytes, controls: 0, is_control: false }
    }

    /// An acknowledgement in a packet of a network without envelopes.
    pub fn acknowledgement(bytes: u32) -> Packet {
        Packet { is_control: true, ..Packet::plain(bytes) }
    }

    fn with_controls(bytes: u32, controls: u32) -> Packet {
        Packet { controls, ..Packet::plain(bytes) }
    }
}

impl Speech {
    /// The speech of `transport` to an end that speaks `theirs`, if a packet has at most `mtu` bytes.
    pub fn of(transport: &Transport, theirs: &Transport, mtu: u32) -> Speech {
        match transport {
            Transport::Urp(urp) => Speech {
                block: u32::from(urp.block).max(1),
                outstanding: Some(u32::from(urp.outstanding).max(1)),
                packet: urp.packet,
                around: TRAILER,
                controls: TRAILER_CONTROLS,
                answer: Some(Packet { controls: 1, ..Packet::acknowledgement(1) }),
                timeout: Some(urp.timeout),
                of_host: false,
            },
            Transport::Udp => Speech { around: UDP_HEADER, ..Speech::datagrams() },
            Transport::Datagram => Speech::datagrams(),
            Transport::Listed(listed) => {
                let shape = (listed.entry.shape)(&listed.values);
                let (block, around) = (shape.unit.max(1), shape.header);
                Speech { block, around, of_host: true, ..Speech::datagrams() }
            }
            // Segments follow each other like datagrams; window and losses are not the speech's affair.
            Transport::Tcp(tcp) => {
                let theirs = if let Transport::Tcp(theirs) = theirs { theirs } else { tcp };
                Connection::between(tcp, theirs, mtu).map_or(Speech::datagrams(), |tcp| {
                    let (block, around) = (tcp.payload, tcp.header);
                    Speech { block, around, of_host: true, ..Speech::datagrams() }
                })
            }
        }
    }

    fn datagrams() -> Speech {
        Speech {
            block: u32::MAX,
            outstanding: None,
            packet: 0,
            around: 0,
            controls: 0,
            answer: None,
            timeout: None,
            of_host: false,
        }
    }

    /// The speech over a listed protocol of that shape whose window and answers are followed block by block. Where its own
    /// formula is asked, that counts them.
    pub fn answered(self, shape: Shape) -> Speech {
        let answer = shape.window.map(|_| Packet::acknowledgement(shape.answer));
        Speech { outstanding: shape.window, answer, ..self }
    }

    /// The blocks of each request of one write.
    pub fn requests(&self, write: u32, split: &[Split]) -> Vec<Vec<u32>> {
        let requests = rounds::requests(write, split);
        requests.into_iter().map(|bytes| rounds::pieces(bytes, self.block)).collect()
    }

    /// Envelopes of a block of `data` user bytes, its trailer included.
    pub fn envelopes(&self, data: u32) -> u64 {
        u64::from(data) + u64::from(self.around)
    }

    /// The packets of a block: 16 envelopes each on Datakit; the trailer shares the last one only if it
    /// fits in whole (Hawley 1989 §4.2.1: 12 bytes are one packet, 13 two).
    pub fn packets(&self, data: u32) -> Vec<Packet> {
        if self.packet == 0 {
            return vec![Packet::with_controls(data + self.around, self.controls)];
        }
        let mut packets = vec![Packet::plain(self.packet); (data / self.packet) as usize];
        let rest = data % self.packet;
        let ending = |data| Packet::with_controls(data + self.around, self.controls);
        if rest > 0 && rest + self.around > self.packet {
            packets.extend([Packet::plain(rest), ending(0)]);
        } else {
            packets.push(ending(rest));
        }
        packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_scenario::UrpSettings;

    #[test]
    fn twelve_bytes_are_one_packet_and_thirteen_two() {
        let urp = Transport::Urp(UrpSettings::default());
        let speech = Speech::of(&urp, &urp, 1500);
        let sizes = |data| speech.packets(data).iter().map(|p| p.bytes).collect::<Vec<_>>();
        assert_eq!(sizes(12), [16]);
        assert_eq!(sizes(13), [13, 4]);
        assert_eq!(sizes(28), [16, 16]);
        assert_eq!(sizes(16), [16, 4]);
        assert_eq!(sizes(0), [4]);
        for data in 0..300 {
            let total: u32 = sizes(data).iter().sum();
            assert_eq!(u64::from(total), speech.envelopes(data));
        }
    }

    #[test]
    fn a_udp_datagram_has_its_headers_and_a_plain_one_none() {
        for (transport, bytes) in [(Transport::Udp, 128), (Transport::Datagram, 100)] {
            let speech = Speech::of(&transport, &transport, 1500);
            assert_eq!(speech.packets(100), [Packet::plain(bytes)]);
            assert_eq!(speech.envelopes(100), u64::from(bytes));
            assert!(speech.answer.is_none());
        }
    }
}
