//! The head of every message on a data connection, 24 octets, after which come the user's octets.
//!
//! ```text
//!  0  size     user octets that follow
//!  4  number   of the message, from 0
//!  8  stamp    in a reply: when the request had arrived in full, nanoseconds of the server's clock
//! 16  span     in a reply: nanoseconds from then until the reply was sent
//! 20  order    in a reply: the request's place in the order of arrival
//! ```
//!
//! All numbers are big-endian. A message and its reply are of one length.

/// Octets of the head.
pub const HEAD: usize = 24;
/// The most user octets in a message.
pub const MOST_USER: u32 = 1 << 20;

/// What the head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// User octets that follow.
    pub size: u32,
    /// The message's number.
    pub number: u32,
    /// When the request had arrived.
    pub stamp: u64,
    /// Nanoseconds until the reply was sent.
    pub span: u32,
    /// The request's place in the order of arrival.
    pub order: u32,
}

impl Record {
    /// As octets.
    pub fn write(&self) -> [u8; HEAD] {
        let mut octets = [0; HEAD];
        octets[..4].copy_from_slice(&self.size.to_be_bytes());
        octets[4..8].copy_from_slice(&self.number.to_be_bytes());
        octets[8..16].copy_from_slice(&self.stamp.to_be_bytes());
        octets[16..20].copy_from_slice(&self.span.to_be_bytes());
        octets[20..].copy_from_slice(&self.order.to_be_bytes());
        octets
    }

    /// From octets; `None` where there are fewer than a head's, or more user octets are announced than a
    /// message may have.
    pub fn read(octets: &[u8]) -> Option<Record> {
        let head = octets.first_chunk::<HEAD>()?;
        let word =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let record = Record {
            size: word(0),
            number: word(4),
            stamp: u64::from(word(8)) << 32 | u64::from(word(12)),
            span: word(16),
            order: word(20),
        };
        (record.size <= MOST_USER).then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_read_back(
            size in 0..=MOST_USER, number: u32, stamp: u64, span: u32, order: u32, cut in 0..HEAD,
        ) {
            let record = Record { size, number, stamp, span, order };
            prop_assert_eq!(Record::read(&record.write()), Some(record));
            prop_assert_eq!(Record::read(&record.write()[..cut]), None);
        }

        #[test]
        fn too_much_is_refused(size in MOST_USER + 1..) {
            prop_assert_eq!(Record::read(&Record { size, ..Record::default() }.write()), None);
        }
    }
}
