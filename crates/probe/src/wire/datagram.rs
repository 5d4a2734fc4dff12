//! The head of every datagram, 40 octets, after which come the user's octets.
//!
//! ```text
//!  0  cookie   of the session
//!  8  tag      the first eight octets of HMAC-SHA256 over octets 16 to 40 and the length
//! 16  kind     what it is
//! 17  version  1
//! 18  flow     of the session
//! 20  number   counted by whoever sends, from 0
//! 24  stamp    nanoseconds of the sender's clock; in a reply: when the request had come
//! 32  span     in a reply: nanoseconds from then until the reply was sent
//! 36  order    in a reply: its place in the order of arrival of the requests
//! ```
//!
//! All numbers are big-endian. A request and its reply are of one length. The tag does not cover the
//! user's octets, which carry nothing.

use super::VERSION;
use crate::key::{Key, same};

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

/// What a datagram is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// To be answered by one of the same length.
    Request = 1,
    /// The answer.
    Reply = 2,
    /// One of a stream, not answered.
    Data = 3,
    /// Envelopes of URP.
    Urp = 4,
}

impl Kind {
    fn of(octet: u8) -> Option<Kind> {
        [Kind::Request, Kind::Reply, Kind::Data, Kind::Urp]
            .into_iter()
            .find(|kind| *kind as u8 == octet)
    }
}

/// What the head says, besides the cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What it is.
    pub kind: Kind,
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
        body[1] = VERSION as u8;
        body[2..4].copy_from_slice(&self.flow.to_be_bytes());
        body[4..8].copy_from_slice(&self.number.to_be_bytes());
        body[8..16].copy_from_slice(&self.stamp.to_be_bytes());
        body[16..20].copy_from_slice(&self.span.to_be_bytes());
        body[20..].copy_from_slice(&self.order.to_be_bytes());
        body
    }

    /// Writes the head into the first [`HEAD`] octets of `datagram`, whose length is covered by the tag.
    /// Nothing is written where it is shorter than that.
    pub fn write(&self, cookie: u64, key: &Key, datagram: &mut [u8]) {
        let body = self.body();
        let tag = tag(key, cookie, &body, datagram.len());
        let Some(head) = datagram.first_chunk_mut::<HEAD>() else { return };
        head[..8].copy_from_slice(&cookie.to_be_bytes());
        head[8..16].copy_from_slice(&tag);
        head[16..].copy_from_slice(&body);
    }

    /// The head of a datagram of the session with this key; `None` where it is none or the tag is wrong.
    pub fn read(datagram: &[u8], key: &Key) -> Option<Head> {
        let head = datagram.first_chunk::<HEAD>()?;
        let (cookie, body) = (cookie(datagram)?, head.last_chunk::<{ HEAD - 16 }>()?);
        if !same(&tag(key, cookie, body, datagram.len()), &head[8..16]) {
            return None;
        }
        let word =
            |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        (u16::from(body[1]) == VERSION).then_some(Head {
            kind: Kind::of(body[0])?,
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

fn tag(key: &Key, cookie: u64, body: &[u8; HEAD - 16], length: usize) -> [u8; 8] {
    let mut covered = [0; HEAD];
    covered[..8].copy_from_slice(&cookie.to_be_bytes());
    covered[8..16].copy_from_slice(&(length as u64).to_be_bytes());
    covered[16..].copy_from_slice(body);
    key.tag(&covered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn heads() -> impl Strategy<Value = Head> {
        let kinds =
            prop_oneof![Just(Kind::Request), Just(Kind::Reply), Just(Kind::Data), Just(Kind::Urp)];
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
            let key = Key::new(&number.to_be_bytes());
            let mut datagram = vec![7; size];
            head.write(number, &key, &mut datagram);
            prop_assert_eq!(cookie(&datagram), Some(number));
            prop_assert_eq!(Head::read(&datagram, &key), Some(head));
            prop_assert_eq!(Head::read(&datagram, &Key::new(b"another")), None);
        }

        #[test]
        fn a_changed_octet_or_length_is_noticed(
            head in heads(), at in 0..HEAD, change in 1u8.., size in HEAD..100, cut in 0usize..100,
        ) {
            let key = Key::new(b"of this session");
            let mut datagram = vec![7; size];
            head.write(9, &key, &mut datagram);
            if cut != size && cut < size {
                prop_assert_eq!(Head::read(&datagram[..cut], &key), None);
            }
            datagram[at] ^= change;
            prop_assert_eq!(Head::read(&datagram, &key), None);
        }

        #[test]
        fn other_octets_are_nothing(octets in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(Head::read(&octets, &Key::new(b"of this session")), None);
        }
    }
}
