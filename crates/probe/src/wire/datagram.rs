//! The head of every datagram, 40 octets, after which come the user's octets.
//!
//! ```text
//!  0  cookie   of the session
//!  8  tag      eight octets of a keyed BLAKE3 over the cookie, octets 16 to 40 and the user's octets
//! 16  kind     what it is
//! 17  version  2
//! 18  flow     of the session
//! 20  number   counted by whoever sends, from 0
//! 24  stamp    nanoseconds of the sender's clock; in a reply: when the request had come
//! 32  span     in a reply: nanoseconds from then until the reply was sent
//! 36  order    in a reply: its place in the order of arrival of the requests
//! ```
//!
//! All numbers are big-endian. A request and its reply are of one length. Each direction of a session
//! has its own key, so that nothing can be sent back to its sender.

use super::VERSION;
use trunkline_handshake::{CodeKey, TAG, same};

/// Octets of the head.
pub const HEAD: usize = 40;
/// Octets of UDP and IPv4 headers.
pub const UDP_IPV4: u32 = 28;
/// Octets of UDP and IPv6 headers.
pub const UDP_IPV6: u32 = 48;
/// The largest payload that UDP over IPv4 can carry.
pub const MOST: usize = 65_507;
/// The most user octets in a datagram.
pub const MOST_USER: u32 = (MOST - HEAD) as u32;

/// The kind of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum DatagramKind {
    /// To be answered by one of the same length.
    Request = 1,
    /// The answer.
    Reply = 2,
    /// One of a stream, not answered.
    Data = 3,
    /// Envelopes of URP.
    Urp = 4,
}

impl DatagramKind {
    fn of(octet: u8) -> Option<DatagramKind> {
        [DatagramKind::Request, DatagramKind::Reply, DatagramKind::Data, DatagramKind::Urp]
            .into_iter()
            .find(|kind| *kind as u8 == octet)
    }
}

/// The contents of the head, besides the cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The kind.
    pub kind: DatagramKind,
    /// Of which flow.
    pub flow: u16,
    /// The sender's number for it.
    pub number: u32,
    /// The sender's clock, or in a reply the time of the request's arrival, in nanoseconds.
    pub stamp: u64,
    /// In a reply: nanoseconds since that arrival.
    pub span: u32,
    /// In a reply: the request's place in the order of arrival.
    pub order: u32,
}

impl Head {
    fn body(&self) -> [u8; HEAD - 16] {
        let mut body = [0; HEAD - 16];
        body[0] = self.kind as u8;
        body[1] = VERSION;
        body[2..4].copy_from_slice(&self.flow.to_be_bytes());
        body[4..8].copy_from_slice(&self.number.to_be_bytes());
        body[8..16].copy_from_slice(&self.stamp.to_be_bytes());
        body[16..20].copy_from_slice(&self.span.to_be_bytes());
        body[20..].copy_from_slice(&self.order.to_be_bytes());
        body
    }

    /// Writes the head into the first [`HEAD`] octets of `datagram`, all of which the tag covers. Nothing is
    /// written if it is shorter than that.
    pub fn write(&self, cookie: u64, key: &CodeKey, datagram: &mut [u8]) {
        let Some((head, user)) = datagram.split_first_chunk_mut::<HEAD>() else { return };
        let body = self.body();
        head[..8].copy_from_slice(&cookie.to_be_bytes());
        head[8..16].copy_from_slice(&key.tag(&[&cookie.to_be_bytes(), &body, user]));
        head[16..].copy_from_slice(&body);
    }

    /// The head of a datagram with this key; `None` if it is none or the tag is wrong.
    pub fn read(datagram: &[u8], key: &CodeKey) -> Option<Head> {
        let (head, user) = datagram.split_first_chunk::<HEAD>()?;
        let (cookie, body) = (&head[..8], head.last_chunk::<{ HEAD - 16 }>()?);
        if !same(&key.tag(&[cookie, body, user]), &head[8..8 + TAG]) {
            return None;
        }
        let word =
            |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        (body[1] == VERSION).then_some(Head {
            kind: DatagramKind::of(body[0])?,
            flow: u16::from_be_bytes([body[2], body[3]]),
            number: word(4),
            stamp: u64::from(word(8)) << 32 | u64::from(word(12)),
            span: word(16),
            order: word(20),
        })
    }
}

/// The cookie of what may be a datagram of ours.
pub fn cookie(datagram: &[u8]) -> Option<u64> {
    (datagram.len() >= HEAD)
        .then(|| datagram.first_chunk().map(|head| u64::from_be_bytes(*head)))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(number: u64) -> CodeKey {
        CodeKey::derive(&[9; 32], "trunkline test of datagrams", &[&number.to_be_bytes()])
    }

    fn heads() -> impl Strategy<Value = Head> {
        let kinds = prop_oneof![
            Just(DatagramKind::Request),
            Just(DatagramKind::Reply),
            Just(DatagramKind::Data),
            Just(DatagramKind::Urp)
        ];
        (kinds, any::<u16>(), any::<u32>(), any::<u64>(), any::<u32>(), any::<u32>()).prop_map(
            |(kind, flow, number, stamp, span, order)| Head {
                kind,
                flow,
                number,
                stamp,
                span,
                order,
            },
        )
    }

    proptest! {
        #[test]
        fn heads_read_back(head in heads(), number: u64, size in HEAD..200) {
            let key = key(number);
            let mut datagram = vec![7; size];
            head.write(number, &key, &mut datagram);
            prop_assert_eq!(cookie(&datagram), Some(number));
            prop_assert_eq!(Head::read(&datagram, &key), Some(head));
            prop_assert_eq!(Head::read(&datagram, &super::tests::key(number.wrapping_add(1))), None);
        }

        #[test]
        fn a_changed_octet_or_length_is_noticed(
            head in heads(), at: prop::sample::Index, change in 1u8.., size in HEAD..100,
            cut in 0usize..100,
        ) {
            let key = key(0);
            let mut datagram = vec![7; size];
            head.write(9, &key, &mut datagram);
            if cut != size && cut < size {
                prop_assert_eq!(Head::read(&datagram[..cut], &key), None);
            }
            let at = at.index(size);
            datagram[at] ^= change;
            prop_assert_eq!(Head::read(&datagram, &key), None);
        }

        #[test]
        fn other_octets_are_nothing(octets in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(Head::read(&octets, &key(0)), None);
        }
    }
}
