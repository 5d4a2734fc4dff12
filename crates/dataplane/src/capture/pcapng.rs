//! The blocks of a pcapng file (draft-ietf-opsawg-pcapng), little-endian.
//!
//! Encoded here and not by a library, because the dataplane thread encodes: nothing may be allocated
//! for a packet, the block must lie in one piece to go into the ring whole, and the time must be exact
//! nanoseconds. The `pcap-file` crate builds a vector of options for each packet and writes through
//! `io::Write`, field by field; the tests read what is written here with it.

use super::plan::Interface;

/// Longest part of a frame that is kept: tcpdump's own limit, and more than any super-frame.
pub const SNAPLEN: usize = 262_144;
/// Room for the largest packet block: head and tail of the block, data, flags and the longest comment.
pub const LARGEST_BLOCK: usize = SNAPLEN + 256;

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1A2B_3C4D;
const LINKTYPE_ETHERNET: u32 = 1;

// Options, by the section of the draft that defines them.
const END_OF_OPTIONS: u16 = 0; // 3.5
const COMMENT: u16 = 1; // 3.5
const SHB_USERAPPL: u16 = 4; // 4.1
const IF_NAME: u16 = 2; // 4.2
const IF_DESCRIPTION: u16 = 3; // 4.2
const IF_TSRESOL: u16 = 9; // 4.2
const EPB_FLAGS: u16 = 2; // 4.3
const ISB_STARTTIME: u16 = 2; // 4.6
const ISB_ENDTIME: u16 = 3; // 4.6
const ISB_IFRECV: u16 = 4; // 4.6
const ISB_IFDROP: u16 = 5; // 4.6

/// The direction of a frame, as seen by the path: into it or out of it (epb_flags, bits 0 and 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Direction {
    Inbound = 1,
    Outbound = 2,
}

/// One packet as it will stand in the file.
#[derive(Debug)]
pub struct Record<'a> {
    /// Its number in the file.
    pub interface: u32,
    pub direction: Option<Direction>,
    /// Nanoseconds of CLOCK_REALTIME.
    pub at: u64,
    pub bytes: &'a [u8],
    /// The comment, in pieces, so that nobody has to join them.
    pub comment: &'a [&'a str],
}

impl Record<'_> {
    /// Appends an Enhanced Packet Block to `out`, which needs room for [`LARGEST_BLOCK`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        let kept = &self.bytes[..self.bytes.len().min(SNAPLEN)];
        block(out, ENHANCED_PACKET, |out| {
            word(out, self.interface);
            time(out, self.at);
            word(out, kept.len() as u32);
            word(out, u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
            out.extend_from_slice(kept);
            pad(out);
            if let Some(direction) = self.direction {
                option(out, EPB_FLAGS, &[&(direction as u32).to_le_bytes()]);
            }
            match self.comment {
                [first, second, third] => {
                    option(out, COMMENT, &[first.as_bytes(), second.as_bytes(), third.as_bytes()]);
                }
                pieces => debug_assert!(pieces.is_empty(), "a comment has three pieces or none"),
            }
            option(out, END_OF_OPTIONS, &[]);
        });
    }
}

/// The beginning of a file: section header and the interfaces.
pub fn header(application: &str, command_line: &str, interfaces: &[Interface]) -> Vec<u8> {
    let mut out = Vec::new();
    block(&mut out, SECTION_HEADER, |out| {
        word(out, BYTE_ORDER_MAGIC);
        out.extend_from_slice(&1u16.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        // The length of the section is not stated: it is not known yet.
        out.extend_from_slice(&u64::MAX.to_le_bytes());
        text(out, COMMENT, command_line);
        text(out, SHB_USERAPPL, application);
        option(out, END_OF_OPTIONS, &[]);
    });
    interfaces.iter().for_each(|interface| describe(&mut out, interface));
    out
}

fn describe(out: &mut Vec<u8>, interface: &Interface) {
    let Interface { name, description, .. } = interface;
    block(out, INTERFACE_DESCRIPTION, |out| {
        word(out, LINKTYPE_ETHERNET);
        word(out, SNAPLEN as u32);
        text(out, IF_NAME, name);
        text(out, IF_DESCRIPTION, description);
        option(out, IF_TSRESOL, &[&[9]]);
        option(out, END_OF_OPTIONS, &[]);
    });
}

/// Counts of the records of one interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statistics {
    /// Its number in the file.
    pub interface: u32,
    /// Nanoseconds of CLOCK_REALTIME at which the capture started and ended.
    pub times: (u64, u64),
    pub written: u64,
    pub missed: u64,
}

impl Statistics {
    /// Appends an Interface Statistics Block to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        block(out, INTERFACE_STATISTICS, |out| {
            word(out, self.interface);
            time(out, self.times.1);
            if self.missed > 0 {
                let missed = self.missed;
                text(out, COMMENT, &format!("{missed} frames are missing: the disk was too slow"));
            }
            option(out, ISB_STARTTIME, &[&halves(self.times.0)]);
            option(out, ISB_ENDTIME, &[&halves(self.times.1)]);
            option(out, ISB_IFRECV, &[&(self.written + self.missed).to_le_bytes()]);
            option(out, ISB_IFDROP, &[&self.missed.to_le_bytes()]);
            option(out, END_OF_OPTIONS, &[]);
        });
    }
}

/// The length of the block at the start of `bytes`, and the number of its interface if it is a packet;
/// `None` if the block is not there as a whole.
pub fn first_block(bytes: &[u8]) -> Option<(usize, Option<u32>)> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let length = word(4)? as usize;
    if length < 12 || length > bytes.len() {
        return None;
    }
    let packet = (word(0)? == ENHANCED_PACKET).then(|| word(8)).flatten();
    Some((length, packet))
}

/// Appends a block: its type, its length before and after, and what `body` appends in between.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    word(out, kind);
    word(out, 0);
    body(out);
    let length = (out.len() - start + 4) as u32;
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
    word(out, length);
}

fn word(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// A time goes as two words, the upper one first, whatever the byte order.
fn halves(nanos: u64) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&((nanos >> 32) as u32).to_le_bytes());
    bytes[4..].copy_from_slice(&(nanos as u32).to_le_bytes());
    bytes
}

fn time(out: &mut Vec<u8>, nanos: u64) {
    out.extend_from_slice(&halves(nanos));
}

/// Appends an option whose value is `pieces` joined; they are shorter than 64 KiB together.
fn option(out: &mut Vec<u8>, code: u16, pieces: &[&[u8]]) {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(length as u16).to_le_bytes());
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    pad(out);
}

/// Appends an option that is text, cut if it is too long for one.
fn text(out: &mut Vec<u8>, code: u16, text: &str) {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    option(out, code, &[&text.as_bytes()[..end]]);
}

/// Everything is padded to 32 bits.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_packet_block_byte_for_byte() {
        let mut out = Vec::new();
        let at = 0x1_0000_0002;
        let (interface, direction) = (1, Some(Direction::Outbound));
        Record { interface, direction, at, bytes: &[0xAA; 5], comment: &[] }.encode(&mut out);
        let mut wanted = Vec::new();
        for word in [6u32, 52, 1, 1, 2, 5, 5] {
            wanted.extend(word.to_le_bytes());
        }
        wanted.extend([0xAA, 0xAA, 0xAA, 0xAA, 0xAA, 0, 0, 0]);
        wanted.extend([2, 0, 4, 0, 2, 0, 0, 0]);
        wanted.extend([0, 0, 0, 0]);
        wanted.extend(52u32.to_le_bytes());
        assert_eq!(out, wanted);
    }

    #[test]
    fn the_longest_comment_and_frame_fit_the_room_set_aside() {
        for cause in trunkline_core::DropCause::ALL {
            let mut out = Vec::new();
            let entered =
                format!(" (entered at {})", "n".repeat(crate::capture::plan::LONGEST_NAME));
            let comment = ["dropped: ", cause.name(), &entered];
            let (interface, direction) = (2, Some(Direction::Inbound));
            let bytes = &vec![1; SNAPLEN + 1];
            Record { interface, direction, at: 0, bytes, comment: &comment }.encode(&mut out);
            assert!(out.len() <= LARGEST_BLOCK, "{cause}: {}", out.len());
        }
    }

    #[test]
    fn a_long_command_line_is_cut_between_characters() {
        let header = header("trunkline", &"é".repeat(40_000), &[]);
        let (length, packet) = first_block(&header).unwrap();
        assert_eq!((length % 4, packet), (0, None));
        let comment = usize::from(u16::from_le_bytes([header[26], header[27]]));
        assert_eq!(comment, 65_534);
        assert!(std::str::from_utf8(&header[28..28 + comment]).is_ok());
    }

    proptest! {
        #[test]
        fn blocks_are_found_again(sizes in prop::collection::vec(0usize..200, 1..20)) {
            let mut out = Vec::new();
            for (index, &size) in sizes.iter().enumerate() {
                let interface = index as u32 % 3;
                let bytes = &vec![index as u8; size];
                Record { interface, direction: None, at: 1, bytes, comment: &[] }.encode(&mut out);
            }
            let mut rest = &out[..];
            for index in 0..sizes.len() {
                prop_assert_eq!(first_block(&rest[..rest.len().min(11)]), None);
                let (length, interface) = first_block(rest).unwrap();
                prop_assert_eq!(interface, Some(index as u32 % 3));
                prop_assert_eq!(first_block(&rest[..length - 1]), None);
                rest = &rest[length..];
            }
            prop_assert!(rest.is_empty());
        }
    }
}
