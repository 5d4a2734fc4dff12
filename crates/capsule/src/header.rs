//! The header that the sending end writes.

use crate::bytes::{put, u16_at, u32_at, u64_at};
use crate::ledger::{self, Record};
use trunkline_core::Time;

/// Bytes before the body.
pub const HEADER: usize = ledger::END;

const MAGIC: [u8; 4] = *b"tlcp";
const VERSION: u8 = 1;
const DIRECTION: usize = 5;
pub(crate) const ECN: usize = 6;
const BAND: usize = 7;
const PATH_SIZE: usize = 8;
const CONTROLS: usize = 12;
const TRAFFIC: usize = 14;
const FLOW: usize = 16;
const CHANNEL: usize = 20;
const NUMBER: usize = 28;
const SENT: usize = 36;

/// The direction of a packet along its flow's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Direction {
    /// From the flow's sender to its peer.
    #[default]
    Forward,
    /// Back.
    Backward,
}

/// The header that the sending end writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// The direction of the packet.
    pub direction: Direction,
    /// ECN code point of RFC 3168, 0 to 3.
    pub ecn: u8,
    /// Priority band, 0 the most urgent.
    pub band: u8,
    /// Bytes that the emulated path counts.
    pub path_size: u32,
    /// Control envelopes among them.
    pub controls: u16,
    /// Index of the scenario's traffic.
    pub traffic: u16,
    /// Index of the traffic's flow.
    pub flow: u32,
    /// The channel (virtual circuit), by which disciplines tell flows apart.
    pub channel: u64,
    /// Number of the packet, counted by the sending end from 0: a copy has the original's.
    pub number: u64,
    /// When the sending end handed it to its socket, CLOCK_MONOTONIC.
    pub sent: Time,
}

/// A capsule as its receiver finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View<'a> {
    /// The sending end's header.
    pub header: Header,
    /// The path's record.
    pub record: Record,
    /// The data carried. They may be shorter than the path size, if that does not fit a datagram.
    pub body: &'a [u8],
}

/// Whether `payload` begins with a whole capsule header of this version.
pub(crate) fn is_capsule(payload: &[u8]) -> bool {
    let marked = payload.len() >= HEADER && payload[..4] == MAGIC && payload[4] == VERSION;
    marked && payload[DIRECTION] <= 1 && payload[ECN] <= 3
}

impl Header {
    /// Writes it to the first [`HEADER`] bytes of `payload`, with an empty ledger.
    ///
    /// # Panics
    /// If `payload` is shorter.
    pub fn write(&self, payload: &mut [u8]) {
        payload[..HEADER].fill(0);
        put(payload, 0, &MAGIC);
        payload[4] = VERSION;
        payload[DIRECTION] = u8::from(self.direction == Direction::Backward);
        payload[ECN] = self.ecn & 3;
        payload[BAND] = self.band;
        put(payload, PATH_SIZE, &self.path_size.to_be_bytes());
        put(payload, CONTROLS, &self.controls.to_be_bytes());
        put(payload, TRAFFIC, &self.traffic.to_be_bytes());
        put(payload, FLOW, &self.flow.to_be_bytes());
        put(payload, CHANNEL, &self.channel.to_be_bytes());
        put(payload, NUMBER, &self.number.to_be_bytes());
        put(payload, SENT, &self.sent.as_nanos().to_be_bytes());
    }

    /// The header of the capsule in `payload`, as [`Capsule::parse`](crate::Capsule::parse) finds it.
    pub fn read(payload: &[u8]) -> Option<Header> {
        if !is_capsule(payload) {
            return None;
        }
        let direction = [Direction::Forward, Direction::Backward][usize::from(payload[DIRECTION])];
        Some(Header {
            direction,
            ecn: payload[ECN],
            band: payload[BAND],
            path_size: u32_at(payload, PATH_SIZE),
            controls: u16_at(payload, CONTROLS),
            traffic: u16_at(payload, TRAFFIC),
            flow: u32_at(payload, FLOW),
            channel: u64_at(payload, CHANNEL),
            number: u64_at(payload, NUMBER),
            sent: Time::from_nanos(u64_at(payload, SENT)),
        })
    }
}

impl<'a> View<'a> {
    pub(crate) fn of(payload: &'a [u8]) -> Option<View<'a>> {
        let header = Header::read(payload)?;
        Some(View { header, record: Record::read(payload), body: &payload[HEADER..] })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Capsule;
    use proptest::prelude::*;

    pub(crate) fn headers() -> impl Strategy<Value = Header> {
        let small = (any::<bool>(), 0u8..4, any::<u8>(), any::<u32>(), any::<u16>());
        let large = (any::<u16>(), any::<u32>(), any::<u64>(), any::<u64>(), any::<u64>());
        (small, large).prop_map(|(small, large)| {
            let (back, ecn, band, path_size, controls) = small;
            let (traffic, flow, channel, number, sent) = large;
            let direction = if back { Direction::Backward } else { Direction::Forward };
            let sent = Time::from_nanos(sent);
            #[rustfmt::skip]
            let header = Header {
                direction, ecn, band, path_size, controls, traffic, flow, channel, number, sent,
            };
            header
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(header in headers(), body: Vec<u8>) {
            let mut payload = vec![0xaa; HEADER];
            payload.extend(&body);
            header.write(&mut payload);
            let view = Capsule::parse(&payload).unwrap();
            prop_assert_eq!((view.header, view.body), (header, body.as_slice()));
            prop_assert_eq!(view.record, Record::default());
            prop_assert_eq!(Capsule::parse(&payload[..HEADER - 1]), None);
        }

        #[test]
        fn anything_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let mut bytes = bytes;
            Capsule::parse(&bytes);
            if bytes.len() >= 5 {
                bytes[..4].copy_from_slice(&MAGIC);
                bytes[4] = VERSION;
                Capsule::parse(&bytes);
            }
        }
    }

    #[test]
    fn another_version_is_no_capsule() {
        let mut payload = [0; HEADER];
        Header::default().write(&mut payload);
        payload[4] += 1;
        assert_eq!(Capsule::parse(&payload), None);
        Header::default().write(&mut payload);
        payload[0] ^= 1;
        assert_eq!(Capsule::parse(&payload), None);
    }
}
