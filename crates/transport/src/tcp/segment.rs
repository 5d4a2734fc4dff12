//! The segments that one end hands to the network.

use super::seq::Seq;
use crate::Payload;
use std::ops::BitOr;
use trunkline_core::{Ecn, Time};

/// Octets of an IPv4 header without options.
pub const IP_HEADER: u32 = 20;
/// Octets of a TCP header without options.
pub const TCP_HEADER: u32 = 20;

/// The control bits of a header, as they stand there (RFC 9293 §3.1), with the one before them (RFC 9768 §3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u16);

impl Flags {
    /// No bit.
    pub const NONE: Flags = Flags(0);
    /// The sender has no more data.
    pub const FIN: Flags = Flags(0x01);
    /// Here the numbers begin.
    pub const SYN: Flags = Flags(0x02);
    /// The connection is refused.
    pub const RST: Flags = Flags(0x04);
    /// The receiver is to pass on what it has. Set at the end of the application's data.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement number counts.
    pub const ACK: Flags = Flags(0x10);
    /// There are urgent data. Never sent here.
    pub const URG: Flags = Flags(0x20);
    /// The echo of a congestion mark (RFC 3168 §6.1).
    pub const ECE: Flags = Flags(0x40);
    /// The window has been reduced because of the echo (RFC 3168 §6.1).
    pub const CWR: Flags = Flags(0x80);
    /// The first of the three bits of [`ace`](Flags::ace) (RFC 9768 §3.1).
    pub const AE: Flags = Flags(0x100);

    /// The bits of the counter of marks.
    const ACE: Flags = Flags(0x1c0);
    /// Their distance from the right.
    const ACE_SHIFT: u32 = 6;

    /// The nine bits.
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// From the nine bits; others are left out.
    pub const fn from_bits(bits: u16) -> Flags {
        Flags(bits & 0x1ff)
    }
    /// AE, CWR and ECE as a number, the ACE field (RFC 9768 §3.2): congestion marks that have come, modulo 8.
    pub const fn ace(self) -> u8 {
        ((self.0 & Flags::ACE.0) >> Flags::ACE_SHIFT) as u8
    }
    /// These bits with another ACE field, of which the last three bits count.
    #[must_use]
    pub const fn with_ace(self, ace: u8) -> Flags {
        Flags(self.0 & !Flags::ACE.0 | (ace as u16 & 7) << Flags::ACE_SHIFT)
    }
    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// These bits, and those of `other` if `wanted`.
    #[must_use]
    pub const fn with(self, other: Flags, wanted: bool) -> Flags {
        if wanted { Flags(self.0 | other.0) } else { self }
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// The time stamps option (RFC 7323 §3.2), in milliseconds of the sender's clock here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Timestamps {
    /// When this segment was sent.
    pub value: u32,
    /// The value that the other end sent last; counts if the segment has an ACK.
    pub echo: u32,
}

/// Runs of the other end's octets that came while something before them is missing (RFC 2018): first and
/// one past the last number. The first one may tell of a duplicate (RFC 2883). At most four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Sack {
    runs: [(Seq, Seq); Sack::MOST],
    count: u8,
}

impl Sack {
    /// The most runs that the room for options allows, without time stamps.
    pub const MOST: usize = 4;
    /// The most beside time stamps.
    pub const MOST_WITH_TIMESTAMPS: usize = 3;

    /// Adds a run; one too many is left out.
    pub fn push(&mut self, start: Seq, end: Seq) {
        if let Some(run) = self.runs.get_mut(usize::from(self.count)) {
            *run = (start, end);
            self.count += 1;
        }
    }
    /// The runs, in the order of the option.
    pub fn runs(&self) -> &[(Seq, Seq)] {
        &self.runs[..usize::from(self.count)]
    }
}

/// The offer of a SYN's sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Offer {
    /// The largest segment that it takes, counting what follows a header without options (RFC 6691).
    pub mss: Option<u16>,
    /// By how many bits its windows are shifted (RFC 7323 §2).
    pub scale: Option<u8>,
    /// Whether it understands SACK.
    pub sack: bool,
}

/// Options that few segments have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rare {
    /// Of a SYN.
    Offer(Offer),
    /// Of an acknowledgement with something missing.
    Sack(Sack),
}

/// A segment with its header. What belongs to IP or to the driver stands after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment<B> {
    /// The octets, perhaps none.
    pub data: B,
    /// The number of the first octet, or of the SYN.
    pub seq: Seq,
    /// The number that is expected next; counts with [`Flags::ACK`].
    pub ack: Seq,
    /// The receive window, shifted as agreed upon.
    pub window: u16,
    /// The control bits.
    pub flags: Flags,
    /// The codepoint of the IP header, which the network may change to [`Ecn::Ce`].
    pub ecn: Ecn,
    /// The time stamps.
    pub timestamps: Option<Timestamps>,
    /// Options that few segments have.
    pub rare: Option<Box<Rare>>,
    /// When its data were there and the windows first allowed it.
    pub eligible: Time,
    /// When it was sent for the first time, if this is not the first.
    pub first_sent: Option<Time>,
}

impl<B: Payload> Segment<B> {
    /// A segment of `data` without options.
    pub fn new(seq: Seq, ack: Seq, flags: Flags, window: u16, data: B, now: Time) -> Segment<B> {
        Segment {
            data,
            seq,
            ack,
            window,
            flags,
            ecn: Ecn::NotEct,
            timestamps: None,
            rare: None,
            eligible: now,
            first_sent: None,
        }
    }

    /// The sequence numbers that it takes: its octets, one for a SYN and one for a FIN.
    pub fn span(&self) -> u64 {
        u64::from(self.data.len())
            + u64::from(self.flags.has(Flags::SYN))
            + u64::from(self.flags.has(Flags::FIN))
    }

    /// The offer of a SYN; empty in other segments.
    pub fn offer(&self) -> Offer {
        match self.rare.as_deref() {
            Some(Rare::Offer(offer)) => *offer,
            _ => Offer::default(),
        }
    }

    /// The runs of its SACK option.
    pub fn sack(&self) -> &[(Seq, Seq)] {
        match self.rare.as_deref() {
            Some(Rare::Sack(sack)) => sack.runs(),
            _ => &[],
        }
    }

    /// Octets of its options, a multiple of four: time stamps 12, SACK 4 and 8 for each run
    /// (RFC 7323 appendix A, RFC 2018 §3).
    pub fn options(&self) -> u32 {
        let stamps = if self.timestamps.is_some() { 12 } else { 0 };
        stamps + self.rare.as_deref().map_or(0, |rare| rare.octets(stamps != 0))
    }

    /// Octets of the packet: IPv4 header, TCP header, options, data.
    pub fn size(&self) -> u32 {
        IP_HEADER + TCP_HEADER + self.options() + self.data.len()
    }

    /// Whether it is sent again.
    pub fn is_retransmission(&self) -> bool {
        self.first_sent.is_some()
    }
}

impl Rare {
    /// Octets that it adds. The permission to use SACK takes the place of the padding of the time stamps.
    fn octets(&self, stamps: bool) -> u32 {
        match self {
            Rare::Offer(offer) => {
                let mss = if offer.mss.is_some() { 4 } else { 0 };
                let scale = if offer.scale.is_some() { 4 } else { 0 };
                let sack = if offer.sack && !stamps { 4 } else { 0 };
                mss + scale + sack
            }
            Rare::Sack(sack) if sack.count == 0 => 0,
            Rare::Sack(sack) => 4 + 8 * u32::from(sack.count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Extent;

    fn segment(len: u32) -> Segment<Extent> {
        let data = Extent::new(0, len);
        Segment::new(Seq::new(1), Seq::new(1), Flags::ACK, 0, data, Time::ZERO)
    }

    #[test]
    fn sizes_are_those_of_the_wire() {
        assert_eq!(segment(0).size(), 40);
        let stamped = Segment { timestamps: Some(Timestamps::default()), ..segment(1448) };
        assert_eq!(stamped.size(), 1500);
        let mut sack = Sack::default();
        let none = Some(Box::new(Rare::Sack(sack)));
        assert_eq!(Segment { rare: none, ..segment(0) }.options(), 0);
        (0..5).for_each(|run| sack.push(Seq::new(run), Seq::new(run + 1)));
        assert_eq!(sack.runs().len(), Sack::MOST);
        let rare = Some(Box::new(Rare::Sack(sack)));
        assert_eq!(Segment { rare, ..segment(0) }.options(), 36);
    }

    #[test]
    fn a_syn_of_today_has_twenty_octets_of_options() {
        let offer = Offer { mss: Some(1460), scale: Some(7), sack: true };
        let syn = Segment { rare: Some(Box::new(Rare::Offer(offer))), ..segment(0) };
        assert_eq!(syn.options(), 12);
        let syn = Segment { timestamps: Some(Timestamps::default()), ..syn };
        assert_eq!((syn.options(), syn.offer()), (20, offer));
    }
}
