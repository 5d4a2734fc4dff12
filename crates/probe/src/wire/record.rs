//! The records of a data connection, each a head of 40 octets, after which come the user's octets.
//!
//! ```text
//!  0  size     user octets that follow
//!  4  number   of the message, from 0
//!  8  stamp    in a reply: when the request had arrived in full, nanoseconds of the server's clock
//! 16  span     in a reply: nanoseconds from then until the reply was sent
//! 20  order    in a reply: the request's place in the order of arrival
//! 24  code     of the record's place on the connection, the octets before, and the user's octets
//! ```
//!
//! All numbers are big-endian. A message and its reply are of one length. In a transfer only the size counts.

use std::io;
use trunkline_handshake::{CODE, Code, CodeKey, Codes, same};

/// Octets of the head.
pub const HEAD: usize = BODY + CODE;
/// Octets of the head before the code.
const BODY: usize = 24;
/// The most user octets in a message.
pub const MOST_USER: u32 = 1 << 20;

/// The contents of the head.
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
    fn write(&self) -> [u8; BODY] {
        let mut octets = [0; BODY];
        octets[..4].copy_from_slice(&self.size.to_be_bytes());
        octets[4..8].copy_from_slice(&self.number.to_be_bytes());
        octets[8..16].copy_from_slice(&self.stamp.to_be_bytes());
        octets[16..20].copy_from_slice(&self.span.to_be_bytes());
        octets[20..].copy_from_slice(&self.order.to_be_bytes());
        octets
    }

    fn read(body: &[u8; BODY]) -> Record {
        let word =
            |at: usize| u32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        Record {
            size: word(0),
            number: word(4),
            stamp: u64::from(word(8)) << 32 | u64::from(word(12)),
            span: word(16),
            order: word(20),
        }
    }
}

/// Something on a connection was not sent by the other end, or was changed, left out or repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forged;

impl From<Forged> for io::Error {
    fn from(_: Forged) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, "octets were changed on the way")
    }
}

/// Writes the records of one direction.
#[derive(Debug)]
pub struct Writer(Codes);

impl Writer {
    /// From the first record on.
    pub fn new(key: CodeKey) -> Writer {
        Writer(Codes::new(key))
    }

    /// Writes the head of the next record, whose user octets follow it in `whole`; their number is its size.
    pub fn write(&mut self, record: Record, whole: &mut [u8]) {
        let Some((head, user)) = whole.split_first_chunk_mut::<HEAD>() else { return };
        let body = Record { size: user.len() as u32, ..record }.write();
        let mut code = self.0.begin();
        code.update(&body);
        code.update(user);
        head[..BODY].copy_from_slice(&body);
        head[BODY..].copy_from_slice(&code.finish());
    }

    /// The next record, with so many user octets, which mean nothing.
    pub fn filled(&mut self, record: Record, user: usize) -> Vec<u8> {
        let mut whole = vec![0x55; HEAD + user];
        self.write(record, &mut whole);
        whole
    }
}

/// Reads the records of one direction, as they come.
#[derive(Debug)]
pub struct Reader {
    codes: Codes,
    most: u32,
    head: Vec<u8>,
    open: Option<Open>,
}

/// A record of which user octets are missing.
#[derive(Debug)]
struct Open {
    record: Record,
    right: [u8; CODE],
    code: Code,
    left: usize,
}

/// The meaning of some octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// User octets among them. They are not known to be genuine before their record is whole.
    pub user: usize,
    /// The record that ends with them, which is genuine.
    pub whole: Option<Record>,
}

impl Reader {
    /// From the first record on; each has at most so many user octets.
    pub fn new(key: CodeKey, most: u32) -> Reader {
        let codes = Codes::new(key);
        Reader { codes, most: most.min(MOST_USER), head: Vec::with_capacity(HEAD), open: None }
    }

    /// Takes octets off the front, to the end of a record at most.
    ///
    /// # Errors
    /// If the record that ends there was not sent like this, or a longer one is announced than may be.
    pub fn take(&mut self, octets: &mut &[u8]) -> Result<Taken, Forged> {
        if self.open.is_none() {
            self.take_head(octets)?;
        }
        let Some(open) = &mut self.open else { return Ok(Taken { user: 0, whole: None }) };
        let (user, rest) = octets.split_at(octets.len().min(open.left));
        open.code.update(user);
        open.left -= user.len();
        *octets = rest;
        let whole = (open.left == 0).then_some(open.record);
        if whole.is_some() {
            let genuine = same(&open.code.finish(), &open.right);
            self.open = None;
            if !genuine {
                return Err(Forged);
            }
        }
        Ok(Taken { user: user.len(), whole })
    }

    fn take_head(&mut self, octets: &mut &[u8]) -> Result<(), Forged> {
        let (part, rest) = octets.split_at(octets.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(part);
        *octets = rest;
        let Some(head) = self.head.first_chunk::<HEAD>() else { return Ok(()) };
        let (Some(body), Some(right)) = (head.first_chunk(), head.last_chunk()) else {
            return Ok(());
        };
        let record = Record::read(body);
        if record.size > self.most {
            return Err(Forged);
        }
        let mut code = self.codes.begin();
        code.update(body);
        self.open = Some(Open { record, right: *right, code, left: record.size as usize });
        self.head.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> CodeKey {
        CodeKey::derive(&[7; 32], "trunkline test of records", &[])
    }

    fn wire(records: &[Record]) -> Vec<Vec<u8>> {
        let mut writer = Writer::new(key());
        records.iter().map(|record| writer.filled(*record, record.size as usize)).collect()
    }

    fn read_all(wire: &[u8], most: u32, cuts: usize) -> Result<(Vec<Record>, usize), Forged> {
        let (mut reader, mut found, mut user) = (Reader::new(key(), most), Vec::new(), 0);
        for mut chunk in wire.chunks(cuts) {
            while !chunk.is_empty() {
                let taken = reader.take(&mut chunk)?;
                found.extend(taken.whole);
                user += taken.user;
            }
        }
        Ok((found, user))
    }

    fn records() -> impl Strategy<Value = Vec<Record>> {
        let one = (0u32..200, any::<u32>(), any::<u64>(), any::<u32>(), any::<u32>()).prop_map(
            |(size, number, stamp, span, order)| Record { size, number, stamp, span, order },
        );
        prop::collection::vec(one, 1..5)
    }

    proptest! {
        #[test]
        fn records_read_back_however_they_are_cut(records in records(), cuts in 1usize..90) {
            let user = records.iter().map(|record| record.size as usize).sum();
            prop_assert_eq!(read_all(&wire(&records).concat(), 200, cuts), Ok((records, user)));
        }

        #[test]
        fn a_changed_octet_is_noticed_before_its_record_is_whole(
            records in records(), at: prop::sample::Index, change in 1u8..,
        ) {
            let mut octets = wire(&records).concat();
            let at = at.index(octets.len());
            octets[at] ^= change;
            let whole = read_all(&octets, 200, 50).map_or(0, |(found, _)| found.len());
            prop_assert!(whole < records.len());
        }
    }

    #[test]
    fn records_left_out_repeated_or_moved_are_noticed() {
        let sent = wire(&[Record { size: 5, ..Record::default() }; 3]);
        let heard = |order: &[usize]| {
            let octets: Vec<u8> = order.iter().flat_map(|&at| sent[at].clone()).collect();
            read_all(&octets, 5, 1000).map(|(found, _)| found.len())
        };
        assert_eq!(heard(&[0, 1, 2]), Ok(3));
        for order in [&[1][..], &[0, 0], &[0, 2], &[1, 0]] {
            assert_eq!(heard(order), Err(Forged), "{order:?}");
        }
        assert_eq!(read_all(&sent[0], 4, 1000), Err(Forged));
    }
}
