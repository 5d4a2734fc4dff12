//! Framing: how user bytes become line bits.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use trunkline_core::Channel;

/// The framing of what a line sends.
///
/// "User bytes" are the network-layer packet: what follows the Ethernet header in an emulated frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Framing {
    /// No overhead: 8 line bits for each user byte.
    #[default]
    None,
    /// Ethernet: 14 bytes of header, 4 of check sequence, 8 of preamble and 12 of gap for each frame,
    /// and at least 46 user bytes (IEEE 802.3).
    Ethernet,
    /// A T1 trunk with LAPD-like frames (Hawley 1989 §2.1): 8 bytes of overhead for each frame of at
    /// most `frame` data bytes of one channel, a stuff byte for each control envelope, and 192 of 193 line
    /// bits. Written `t1-lapd` for the 256 bytes that a frame can hold, or `t1-lapd:frame=64`: how much a
    /// trunk puts into one frame is what the report could not determine beforehand.
    T1Lapd {
        /// Most data bytes in one frame, 1 to 256.
        frame: u16,
    },
    /// The same trunk with frames that mix channels (Riddle, US patent 4,583,219, abstract, which gives no form): 6
    /// bytes of overhead for each frame of at most `frame` data bytes, and 3 for each stretch of one channel in it: its
    /// number, 2 as above, and a length. Written `t1-mixed` or `t1-mixed:frame=64`.
    T1Mixed {
        /// Most data bytes in one frame, 1 to 256.
        frame: u16,
    },
    /// ATM cells with AAL5 on SONET (LDS report §3.2; RFC 2684): 48 payload bytes in 53, 8 bytes of
    /// LLC/SNAP and 8 of trailer for each packet, 260 of 270 SONET columns. Slotted: a cell leaves only
    /// on a cell boundary.
    AtmAal5,
    /// The backplane of a Datakit node (Hawley 1989 §1.3, §2.1): packets of a channel number in two envelopes
    /// and 16 envelopes of user bytes, short ones filled up, 10 bits an envelope. At 8 Mbit/s a packet
    /// takes 22.5 µs.
    Datakit,
}

/// Every framing with its name.
const NAMES: [(Framing, &str); 6] = [
    (Framing::None, "none"),
    (Framing::Ethernet, "ethernet"),
    (Framing::T1_LAPD, "t1-lapd"),
    (Framing::T1_MIXED, "t1-mixed"),
    (Framing::AtmAal5, "atm-aal5"),
    (Framing::Datakit, "datakit"),
];

/// Bits of one ATM cell.
const CELL_BITS: u64 = 53 * 8;
/// Payload bytes of one ATM cell.
const CELL_PAYLOAD: u64 = 48;
/// LLC/SNAP header (RFC 2684) and AAL5 trailer.
const AAL5_OVERHEAD: u64 = 8 + 8;
/// Flags 2, check sequence 2, control and protocol discrimination 2, channel 2 (Hawley 1989 §2.1).
const T1_FRAME_OVERHEAD: u64 = 8;
/// The same without the channel, and those of a stretch of one channel in a mixed frame: channel 2, length 1.
const T1_MIXED_OVERHEAD: u64 = 6;
const T1_STRETCH: u64 = 3;
/// Most data bytes of one T1 frame (Hawley 1989 §2.1).
const T1_FRAME_DATA: u16 = 256;
/// Header 14, check sequence 4, preamble 8, inter-packet gap 12 (IEEE 802.3).
const ETHERNET_OVERHEAD: u64 = 38;
/// Least payload of an Ethernet frame.
const ETHERNET_LEAST: u64 = 46;

/// User envelopes of one backplane packet, and those of its channel number (Hawley 1989 §2.1).
const DATAKIT_USER: u32 = 16;
const DATAKIT_CHANNEL: u32 = 2;
/// Bits of an envelope: 8 of data, one that tells control from data, one of parity (Hawley 1989 §1.3).
const ENVELOPE_BITS: u64 = 10;
/// Bits of one backplane packet.
const DATAKIT_BITS: u64 = (DATAKIT_USER + DATAKIT_CHANNEL) as u64 * ENVELOPE_BITS;

/// Envelopes that channel numbers add to `size` user bytes which travel in packets of the backplane.
pub(crate) fn channel_envelopes(size: u32) -> u64 {
    u64::from(size.div_ceil(DATAKIT_USER)) * u64::from(DATAKIT_CHANNEL)
}

/// The number of ATM cells that a packet of `size` user bytes takes with AAL5 and LLC/SNAP.
pub fn aal5_cells(size: u32) -> u64 {
    (u64::from(size) + AAL5_OVERHEAD).div_ceil(CELL_PAYLOAD)
}

impl Framing {
    /// A T1 trunk whose frames are filled to the 256 bytes that they hold.
    pub const T1_LAPD: Framing = Framing::T1Lapd { frame: T1_FRAME_DATA };
    /// The same if frames mix channels.
    pub const T1_MIXED: Framing = Framing::T1Mixed { frame: T1_FRAME_DATA };

    /// The part of the line rate that carries frames: (numerator, denominator).
    pub fn line_share(self) -> (u64, u64) {
        match self {
            Framing::None | Framing::Ethernet | Framing::Datakit => (1, 1),
            Framing::T1Lapd { .. } | Framing::T1Mixed { .. } => (192, 193),
            Framing::AtmAal5 => (260, 270),
        }
    }

    /// Line bits of one slot, if the framing is slotted.
    pub fn slot_bits(self) -> Option<u64> {
        (self == Framing::AtmAal5).then_some(CELL_BITS)
    }

    /// The share of the line rate left for user bytes, sending packets of `size` user bytes back to
    /// back: what TCP or any other load can hope for, headers of its own included.
    pub fn efficiency(self, size: u32) -> f64 {
        // Enough packets that frames shared by two of them average out.
        const PACKETS: u32 = 256;
        let mut framer = Framer::new(self);
        let piece = Piece { channel: Channel(1), bytes: size, controls: 0, last: true };
        let bits: u64 = (0..PACKETS).map(|index| framer.line_bits(piece, index > 0)).sum();
        let (numerator, denominator) = self.line_share();
        let user_bits = 8.0 * f64::from(size) * f64::from(PACKETS);
        user_bits / bits.max(1) as f64 * numerator as f64 / denominator as f64
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(framing, _)| framing == self) {
            Some(&(_, name)) => f.pad(name),
            None => match self {
                Framing::T1Lapd { frame } => f.pad(&format!("t1-lapd:frame={frame}")),
                Framing::T1Mixed { frame } => f.pad(&format!("t1-mixed:frame={frame}")),
                _ => f.pad("?"),
            },
        }
    }
}

impl FromStr for Framing {
    type Err = String;

    fn from_str(text: &str) -> Result<Framing, String> {
        if let Some((name @ ("t1-lapd" | "t1-mixed"), frame)) = text.split_once(":frame=") {
            let frame = t1_frame(frame)?;
            return Ok(match name {
                "t1-lapd" => Framing::T1Lapd { frame },
                _ => Framing::T1Mixed { frame },
            });
        }
        NAMES.iter().find(|&&(_, name)| name == text).map(|&(framing, _)| framing).ok_or_else(
            || {
                let names: Vec<&str> = NAMES.iter().map(|&(_, name)| name).collect();
                format!("'{text}' is no framing: use one of {}", names.join(", "))
            },
        )
    }
}

fn t1_frame(text: &str) -> Result<u16, String> {
    let frame = text.parse().ok().filter(|frame| (1..=T1_FRAME_DATA).contains(frame));
    frame.ok_or_else(|| {
        format!("'{text}' data bytes are no T1 frame: it holds between 1 and {T1_FRAME_DATA}")
    })
}

impl TryFrom<String> for Framing {
    type Error = String;

    fn try_from(text: String) -> Result<Framing, String> {
        text.parse()
    }
}

impl From<Framing> for String {
    fn from(framing: Framing) -> String {
        framing.to_string()
    }
}

/// The piece that a discipline hands to the line at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Whose bytes.
    pub channel: Channel,
    /// User bytes.
    pub bytes: u32,
    /// Control envelopes among them.
    pub controls: u32,
    /// Whether it completes a packet.
    pub last: bool,
}

/// Turns pieces into line bits, remembering the frame that is still open.
#[derive(Debug, Clone)]
pub struct Framer {
    framing: Framing,
    /// The T1 frame sent last: its channel and the room left in it.
    channel: Channel,
    room: u32,
}

impl Framer {
    /// A framer with no frame open.
    pub fn new(framing: Framing) -> Framer {
        Framer { framing, channel: Channel::default(), room: 0 }
    }

    /// The framing.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Line bits of `piece`. `follows` says that it comes right behind the piece before it, with no
    /// idle line in between; only then can it go on in the same T1 frame.
    #[inline]
    pub fn line_bits(&mut self, piece: Piece, follows: bool) -> u64 {
        match self.framing {
            Framing::None => 8 * u64::from(piece.bytes),
            Framing::Ethernet => {
                8 * (u64::from(piece.bytes).max(ETHERNET_LEAST) + ETHERNET_OVERHEAD)
            }
            Framing::T1Lapd { frame } => 8 * self.t1_bytes(piece, follows, u32::from(frame)),
            Framing::T1Mixed { frame } => 8 * self.mixed_bytes(piece, follows, u32::from(frame)),
            Framing::AtmAal5 if piece.last => CELL_BITS * aal5_cells(piece.bytes),
            Framing::AtmAal5 => CELL_BITS * u64::from(piece.bytes).div_ceil(CELL_PAYLOAD),
            Framing::Datakit => DATAKIT_BITS * u64::from(piece.bytes.div_ceil(DATAKIT_USER)),
        }
    }

    /// Line bytes on a T1 trunk. The framer is a state machine that appends to the frame being sent
    /// while data of its channel keep coming, up to the frame's most (Hawley 1989 §2.1).
    fn t1_bytes(&mut self, piece: Piece, follows: bool, most: u32) -> u64 {
        let goes_on = follows && self.channel == piece.channel;
        let room = if goes_on { self.room } else { 0 };
        let frames = self.fill(piece, room, most);
        u64::from(piece.bytes) + u64::from(piece.controls) + u64::from(frames) * T1_FRAME_OVERHEAD
    }

    /// The same if a frame takes what follows, of whatever channel.
    fn mixed_bytes(&mut self, piece: Piece, follows: bool, most: u32) -> u64 {
        let room = if follows { self.room } else { 0 };
        let joins = room > 0 && self.channel != piece.channel;
        let frames = self.fill(piece, room, most);
        let stretches = u64::from(joins) + u64::from(frames);
        let overhead = u64::from(frames) * T1_MIXED_OVERHEAD + stretches * T1_STRETCH;
        u64::from(piece.bytes) + u64::from(piece.controls) + overhead
    }

    /// Puts a piece into the `room` of the open frame and into new frames of at most `most` data bytes: how many.
    fn fill(&mut self, piece: Piece, room: u32, most: u32) -> u32 {
        let beyond = piece.bytes.saturating_sub(room);
        // Without dividing, but for what is larger than a frame.
        let frames = if beyond <= most { u32::from(beyond > 0) } else { beyond.div_ceil(most) };
        let left = if frames == 0 { room - piece.bytes } else { frames * most - beyond };
        (self.channel, self.room) = (piece.channel, left);
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hawley's Table 1 by running the framer: a block of B bytes in quanta of q, each in a frame of
    /// its own because other channels are served in between, then the URP trailer (4 envelopes, two
    /// of them control) in its own frame. §2.1.
    fn table1_cell(quantum: u32, block: Option<u32>) -> f64 {
        const BLOCK_FOR_INFINITE: u32 = 1 << 24;
        let bytes = block.unwrap_or(BLOCK_FOR_INFINITE);
        let mut framer = Framer::new(Framing::T1_LAPD);
        let data = Piece { channel: Channel(1), bytes: quantum, controls: 0, last: false };
        let mut line = u64::from(bytes / quantum) * framer.line_bits(data, false);
        line += framer.line_bits(Piece { bytes: 4, controls: 2, last: true, ..data }, false);
        192.0 * 8.0 * f64::from(bytes) / line as f64
    }

    #[test]
    fn table1_of_hawley_1989() {
        let published = include_str!("../tests/published/table1_theoretical_throughput.csv");
        let mut compared = 0;
        for row in published.lines().skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            let (quantum, block, suspect) = (cells[0], cells[1], cells[4] == "1");
            if suspect {
                continue;
            }
            let block = block.parse::<u32>().ok();
            let ours = match quantum.parse::<u32>() {
                Ok(quantum) => table1_cell(quantum, block),
                // An infinite quantum: the data frame's overhead vanishes, the trailer's remains.
                Err(_) => {
                    let trailer = Piece { channel: Channel(1), bytes: 4, controls: 2, last: true };
                    let trailer =
                        Framer::new(Framing::T1_LAPD).line_bits(trailer, false) as f64 / 8.0;
                    block.map_or(192.0, |b| 192.0 * f64::from(b) / (f64::from(b) + trailer))
                }
            };
            assert_eq!(format!("{ours:.1}"), cells[2], "quantum {quantum}, block {:?}", block);
            compared += 1;
        }
        assert_eq!(compared, 21, "24 cells less three suspect ones");
    }

    #[test]
    fn t1_frames_merge_only_back_to_back_and_up_to_256() {
        let mut framer = Framer::new(Framing::T1_LAPD);
        let piece =
            |channel| Piece { channel: Channel(channel), bytes: 64, controls: 0, last: false };
        let bytes: Vec<u64> = (0..5).map(|i| framer.line_bits(piece(1), i > 0) / 8).collect();
        assert_eq!(bytes, [72, 64, 64, 64, 72]);
        assert_eq!(framer.line_bits(piece(1), false) / 8, 72, "the line was idle");
        assert_eq!(framer.line_bits(piece(2), true) / 8, 72, "another channel");
        let long = Piece { channel: Channel(2), bytes: 1500, controls: 0, last: true };
        // 192 fit in the open frame, 1308 need six more.
        assert_eq!(framer.line_bits(long, true) / 8, 1500 + 6 * 8);
    }

    /// Four quanta of four channels are one frame of 256 bytes, where each had one of its own.
    #[test]
    fn mixed_frames_take_whatever_follows() {
        let mut framer = Framer::new(Framing::T1_MIXED);
        let piece =
            |channel| Piece { channel: Channel(channel), bytes: 64, controls: 1, last: false };
        let bytes: Vec<u64> =
            [1, 2, 2, 3, 3].iter().map(|&it| framer.line_bits(piece(it), true) / 8).collect();
        let quantum = 64 + 1;
        assert_eq!(bytes, [quantum + 9, quantum + 3, quantum, quantum + 3, quantum + 9]);
        assert_eq!(framer.line_bits(piece(3), false) / 8, quantum + 9, "the line was idle");
        // 192 of another channel fill the frame, 8 begin the next.
        let long = Piece { channel: Channel(4), bytes: 200, controls: 0, last: true };
        assert_eq!(framer.line_bits(long, true) / 8, 200 + 3 + 9);
    }

    #[test]
    fn atm_ethernet_and_backplane() {
        assert_eq!(aal5_cells(40), 2);
        assert_eq!(aal5_cells(9180), 192, "tcp-fairness reference §4");
        assert_eq!(aal5_cells(32), 1);
        assert_eq!(aal5_cells(33), 2);
        let mut framer = Framer::new(Framing::Ethernet);
        let piece = |bytes| Piece { channel: Channel(1), bytes, controls: 0, last: true };
        assert_eq!(framer.line_bits(piece(20), false), 84 * 8);
        assert_eq!(framer.line_bits(piece(1500), true), 1538 * 8);
        assert!(
            (Framing::AtmAal5.efficiency(9180) - 260.0 / 270.0 * 9180.0 / (192.0 * 53.0)).abs()
                < 1e-9
        );
        let mut backplane = Framer::new(Framing::Datakit);
        let bits = [1, 16, 17, 64].map(|bytes| backplane.line_bits(piece(bytes), true));
        assert_eq!(bits, [180, 180, 360, 720]);
        let t1 = Framing::T1_LAPD.efficiency(1500);
        assert!((t1 - 192.0 / 193.0 * 256.0 / 264.0).abs() < 1e-4, "{t1}");
    }

    #[test]
    fn names_read_back() {
        for (framing, name) in NAMES {
            assert_eq!(name.parse::<Framing>().unwrap(), framing);
            assert_eq!(framing.to_string(), name);
        }
        assert!("t3".parse::<Framing>().unwrap_err().contains("t1-lapd"));
    }

    #[test]
    fn a_t1_frame_of_its_own_is_written_and_read() {
        let framing: Framing = "t1-lapd:frame=64".parse().unwrap();
        assert_eq!(framing, Framing::T1Lapd { frame: 64 });
        assert_eq!(framing.to_string(), "t1-lapd:frame=64");
        assert_eq!("t1-lapd".parse(), Ok(Framing::T1_LAPD));
        assert_eq!("t1-lapd:frame=256".parse(), Ok(Framing::T1_LAPD));
        let mixed: Framing = "t1-mixed:frame=64".parse().unwrap();
        assert_eq!(
            (mixed, mixed.to_string().as_str()),
            (Framing::T1Mixed { frame: 64 }, "t1-mixed:frame=64")
        );
        assert!("t1-lapd:frame=257".parse::<Framing>().unwrap_err().contains("256"));
        // 128 bytes: two frames instead of one.
        let piece = Piece { channel: Channel(1), bytes: 128, controls: 0, last: true };
        assert_eq!(Framer::new(framing).line_bits(piece, false), 8 * (128 + 16));
    }
}
