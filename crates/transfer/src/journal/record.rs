//! Octets of a journal.

use crate::hash::hash;
use std::collections::BTreeMap;

/// Octets of a record: 40 and a check of 8.
pub const RECORD: usize = 48;

const MAGIC: &[u8; 8] = b"TLJN\x01\0\0\0";
/// The number in place of a chunk's that means: the machine was started anew.
const BOOT: u64 = u64::MAX;
/// The number in place of a chunk's that means: the transfer is being finished.
const FINISHING: u64 = u64::MAX - 1;

/// The beginning of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The transfer's identity.
    pub identity: [u8; 32],
    /// Bytes of a chunk, at least 1.
    pub chunk: u32,
    /// The run of the machine that the journal was begun in, if known.
    pub boot: Option<[u8; 16]>,
}

impl Header {
    /// Octets of a header.
    pub const LENGTH: usize = 68;

    /// Returns the octets of the header.
    pub fn encode(&self) -> Vec<u8> {
        let boot = self.boot.unwrap_or_default();
        let mut into = [&MAGIC[..], &self.identity, &self.chunk.to_le_bytes(), &boot].concat();
        let check = hash(&into);
        into.extend_from_slice(&check[..8]);
        into
    }

    fn decode(octets: &[u8]) -> Option<Header> {
        let (stated, check) = octets.get(..Self::LENGTH)?.split_at(Self::LENGTH - 8);
        if hash(stated)[..8] != *check {
            return None;
        }
        let stated = stated.strip_prefix(MAGIC)?;
        let (identity, stated) = stated.split_first_chunk::<32>()?;
        let (chunk, boot) = stated.split_first_chunk::<4>()?;
        let (identity, chunk) = (*identity, u32::from_le_bytes(*chunk));
        (chunk > 0).then_some(Header { identity, chunk, boot: known(boot) })
    }
}

/// Returns the run of the machine in these octets; all 0 is none.
fn known(octets: &[u8]) -> Option<[u8; 16]> {
    octets.first_chunk().copied().filter(|boot| boot != &[0; 16])
}

/// A record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// A chunk was written; its hash.
    Chunk(u64, [u8; 32]),
    /// A chunk is missing again.
    Lost(u64),
    /// The machine was started anew; its run, if known.
    Boot(Option<[u8; 16]>),
    /// All chunks are on the disk, and the hash of the whole is this: names are given now.
    Finishing([u8; 32]),
}

impl Record {
    /// Returns the octets of the record in the journal of this transfer.
    pub fn encode(&self, identity: &[u8; 32]) -> [u8; RECORD] {
        let (number, rest) = match *self {
            Record::Chunk(index, hash) => (index, hash),
            // No data are known whose BLAKE3 is 0 throughout.
            Record::Lost(index) => (index, [0; 32]),
            Record::Finishing(root) => (FINISHING, root),
            Record::Boot(boot) => {
                let mut rest = [0; 32];
                rest[..16].copy_from_slice(&boot.unwrap_or_default());
                (BOOT, rest)
            }
        };
        let mut octets = [0; RECORD];
        octets[..8].copy_from_slice(&number.to_le_bytes());
        octets[8..40].copy_from_slice(&rest);
        let check = check(identity, &octets[..40]);
        octets[40..].copy_from_slice(&check);
        octets
    }

    fn decode(identity: &[u8; 32], octets: &[u8; RECORD]) -> Option<Record> {
        let (stated, stands) = octets.split_at(40);
        if check(identity, stated) != *stands {
            return None;
        }
        let (number, rest) = stated.split_first_chunk::<8>()?;
        let rest: [u8; 32] = rest.try_into().ok()?;
        Some(match u64::from_le_bytes(*number) {
            BOOT => Record::Boot(known(&rest)),
            FINISHING => Record::Finishing(rest),
            index if rest == [0; 32] => Record::Lost(index),
            index => Record::Chunk(index, rest),
        })
    }
}

/// Returns the check of a record: it fails for records of other journals, and for half a record.
fn check(identity: &[u8; 32], stated: &[u8]) -> [u8; 8] {
    let whole = blake3::Hasher::new_keyed(identity).update(stated).finalize();
    *whole.as_bytes().first_chunk().expect("a hash has 32 octets")
}

/// A chunk that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Confirmed {
    /// BLAKE3 of its data.
    pub hash: [u8; 32],
    /// Whether the machine stopped since, so that the data may be lost.
    pub doubtful: bool,
}

/// What the records of a journal come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Its header.
    pub header: Header,
    /// The run of the machine that the last records were written in, if known.
    pub boot: Option<[u8; 16]>,
    /// The chunks that were written, by number.
    pub confirmed: BTreeMap<u64, Confirmed>,
    /// The hash of the whole, if names are being given.
    pub finishing: Option<[u8; 32]>,
    /// Octets of the header and of whole records.
    pub end: usize,
}

impl Contents {
    /// Returns the contents of a journal without records.
    pub fn new(header: Header) -> Contents {
        let (boot, confirmed, finishing, end) =
            (header.boot, BTreeMap::new(), None, Header::LENGTH);
        Contents { header, boot, confirmed, finishing, end }
    }

    /// Adds what a record says.
    pub fn apply(&mut self, record: &Record) {
        match *record {
            Record::Chunk(index, hash) => {
                self.confirmed.insert(index, Confirmed { hash, doubtful: false });
            }
            Record::Lost(index) => {
                self.confirmed.remove(&index);
            }
            Record::Boot(boot) => {
                self.boot = boot;
                self.confirmed.values_mut().for_each(|chunk| chunk.doubtful = true);
            }
            Record::Finishing(root) => self.finishing = Some(root),
        }
    }
}

/// Returns the contents of a journal's octets; `None` without a whole header. Records that fail their check count as
/// not written, as does half a record at the end.
pub fn read(octets: &[u8]) -> Option<Contents> {
    let header = Header::decode(octets)?;
    let mut contents = Contents::new(header);
    let (records, _) = octets[Header::LENGTH..].as_chunks::<RECORD>();
    for record in records {
        if let Some(record) = Record::decode(&header.identity, record) {
            contents.apply(&record);
        }
    }
    contents.end += records.len() * RECORD;
    Some(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { identity: [7; 32], chunk: 1000, boot: Some([3; 16]) };

    fn journal(records: &[Record]) -> Vec<u8> {
        let records = records.iter().flat_map(|record| record.encode(&HEADER.identity));
        HEADER.encode().into_iter().chain(records).collect()
    }

    #[test]
    fn a_journal_torn_at_any_octet_keeps_its_whole_records() {
        let records: Vec<Record> = (0..5).map(|index| Record::Chunk(index, [9; 32])).collect();
        let whole = journal(&records);
        for length in 0..=whole.len() {
            let read = read(&whole[..length]);
            let Some(behind) = length.checked_sub(Header::LENGTH) else {
                assert_eq!(read, None, "half a header");
                continue;
            };
            let read = read.expect("a whole header");
            assert_eq!(read.confirmed.len(), behind / RECORD);
            assert_eq!(read.end, Header::LENGTH + behind / RECORD * RECORD);
        }
    }

    #[test]
    fn a_damaged_octet_costs_one_record() {
        let whole = journal(&[Record::Chunk(1, [9; 32]), Record::Chunk(2, [8; 32])]);
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            let left = read(&damaged).map(|read| read.confirmed.into_keys().collect::<Vec<_>>());
            let due = match place.checked_sub(Header::LENGTH) {
                None => None,
                Some(behind) if behind < RECORD => Some(vec![2]),
                Some(_) => Some(vec![1]),
            };
            assert_eq!(left, due, "octet {place}");
        }
    }

    #[test]
    fn records_are_read_as_written() {
        let chunk = |index, last| Record::Chunk(index, [last; 32]);
        let boot = Record::Boot(Some([4; 16]));
        let records = [
            chunk(4, 1),
            chunk(5, 1),
            boot,
            chunk(5, 2),
            Record::Lost(4),
            Record::Finishing([6; 32]),
        ];
        let read = read(&journal(&records)).expect("a journal");
        let confirmed = BTreeMap::from([(5, Confirmed { hash: [2; 32], doubtful: false })]);
        assert_eq!(read.confirmed, confirmed);
        assert_eq!((read.boot, read.finishing), (Some([4; 16]), Some([6; 32])));
    }

    #[test]
    fn chunks_from_before_the_machine_stopped_are_in_doubt() {
        let records = [Record::Chunk(0, [1; 32]), Record::Boot(None), Record::Chunk(1, [1; 32])];
        let read = read(&journal(&records)).expect("a journal");
        assert_eq!(
            read.confirmed.values().map(|it| it.doubtful).collect::<Vec<_>>(),
            [true, false]
        );
    }

    #[test]
    fn records_of_another_journal_are_not_read() {
        let mut octets = HEADER.encode();
        octets.extend(Record::Chunk(0, [1; 32]).encode(&[8; 32]));
        assert_eq!(read(&octets).expect("a journal").confirmed.len(), 0);
    }
}
