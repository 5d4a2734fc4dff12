//! The segments that one end hands to the network, and how they are cut into packets.

use super::control::{Control, TrailerKind, User};
use super::crc::Crc;
use super::seq::Seq;
use crate::Payload;
use trunkline_core::Time;

/// The data that an end sends in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment<P> {
    /// A block with its trailer.
    Block(Block<P>),
    /// Characters without a trailer.
    Characters(Characters<P>),
    /// A control.
    Control(Control),
}

/// A block of block mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<P> {
    /// User data, perhaps none.
    pub data: P,
    /// A user control after them.
    pub user: Option<User>,
    /// Its number.
    pub seq: Seq,
    /// The request of its trailer.
    pub kind: TrailerKind,
    /// The check sum of [`Check::Crc`](super::Check::Crc).
    pub crc: Option<u32>,
    /// When its data were there and the window first allowed it.
    pub eligible: Time,
    /// When it was sent for the first time, if this is not the first.
    pub first_sent: Option<Time>,
}

impl<P> Block<P> {
    /// Whether a message ends behind it.
    pub fn ends_message(&self) -> bool {
        self.kind != TrailerKind::Botm
    }

    /// Its number, from 0, among all blocks of its sender, which has sent `sent` of them at least once. Sequence
    /// numbers start at 1 and go modulo 8, and at most 7 blocks are outstanding.
    pub fn number_among(&self, sent: u64) -> u64 {
        let behind = sent.wrapping_sub(u64::from(self.seq.get())) % 8;
        sent.wrapping_sub(behind + 1)
    }
}

/// Data of character mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Characters<P> {
    /// User data.
    pub data: P,
    /// A user control, or the number that asks for an echo, after them.
    pub control: Option<Control>,
    /// When they were there and might be sent.
    pub eligible: Time,
    /// The request whose last data these are, counted from 0.
    pub request: Option<u64>,
}

/// The trailer of a block: begin, length low, length high, number. The check sum, if any, comes before
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer {
    /// The request of the trailer.
    pub kind: TrailerKind,
    /// Octets and user controls since the last trailer, check sum included; `None` if the two octets
    /// of the length did not both come.
    pub length: Option<u16>,
    /// The block's number.
    pub seq: Seq,
    /// The check sum of [`Check::Crc`](super::Check::Crc).
    pub crc: Option<u32>,
}

/// The part of a segment that one packet of the network carries: data, then a control, then a trailer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part<P> {
    /// User data, perhaps none.
    pub data: P,
    /// A control.
    pub control: Option<Control>,
    /// The end of a block.
    pub trailer: Option<Trailer>,
}

impl<P: Payload> Part<P> {
    /// Data alone.
    pub fn data(data: P) -> Part<P> {
        Part { data, control: None, trailer: None }
    }
    /// A control alone.
    pub fn control(control: Control) -> Part<P> {
        Part { control: Some(control), ..Part::default() }
    }
    /// A trailer alone.
    pub fn trailer(trailer: Trailer) -> Part<P> {
        Part { trailer: Some(trailer), ..Part::default() }
    }
    /// The number of envelopes.
    pub fn envelopes(&self) -> u32 {
        self.data.len()
            + self.control.map_or(0, Control::envelopes)
            + self.trailer.map_or(0, Trailer::envelopes)
    }
    /// The number of control envelopes; each costs a stuff octet on a T1 trunk (Hawley 1989
    /// §2.1).
    pub fn controls(&self) -> u32 {
        self.control.map_or(0, Control::controls) + self.trailer.map_or(0, Trailer::controls)
    }
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.envelopes() == 0
    }
    /// Whether the other end may get something by it: not with a control of the protocol alone.
    pub fn brings_data(&self) -> bool {
        let user = matches!(self.control, Some(Control::User(_)));
        !self.data.is_empty() || self.trailer.is_some() || user
    }
}

impl Trailer {
    /// Octets that a check sum adds to the length: its mark and four octets.
    pub const CRC_LENGTH: u16 = 5;

    /// Envelopes: four, and five for a check sum.
    pub const fn envelopes(self) -> u32 {
        if self.crc.is_some() { 9 } else { 4 }
    }
    /// Control envelopes among them.
    pub const fn controls(self) -> u32 {
        if self.crc.is_some() { 3 } else { 2 }
    }
}

impl<P: Payload> Block<P> {
    /// User octets, a user control being one.
    pub fn len(&self) -> u32 {
        self.data.len() + u32::from(self.user.is_some())
    }
    /// Whether it is a mere trailer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Its trailer.
    pub fn trailer(&self) -> Trailer {
        let check = if self.crc.is_some() { Trailer::CRC_LENGTH } else { 0 };
        let length = u16::try_from(self.len()).unwrap_or(u16::MAX).saturating_add(check);
        Trailer { kind: self.kind, length: Some(length), seq: self.seq, crc: self.crc }
    }
    /// This block with its check sum.
    pub(crate) fn with_crc(mut self) -> Block<P> {
        let mut crc = Crc::new();
        crc.payload(&self.data);
        self.user.into_iter().for_each(|user| crc.control(user.octet()));
        self.crc = Some(crc.finish(self.kind, self.seq));
        self
    }
}

impl<P> Characters<P> {
    /// Whether a message ends behind them.
    pub fn ends_message(&self) -> bool {
        self.control == Some(Control::User(User::EOT))
    }
}

impl<P: Payload> Segment<P> {
    /// Cuts the segment into what packets of at most `packet` envelopes carry; 0: one packet for all.
    ///
    /// Data fill packets. A trailer shares the last one only if all its envelopes fit, for the boards
    /// never tear one (8th edition microcode; Hawley 1989 §3.2 on 12 and 13 octets). If not even an
    /// empty packet holds one, it goes alone.
    pub fn parts(self, packet: u32) -> Parts<P> {
        let (data, control, trailer) = match self {
            Segment::Block(block) => {
                let trailer = block.trailer();
                (block.data, block.user.map(Control::User), Some(trailer))
            }
            Segment::Characters(characters) => (characters.data, characters.control, None),
            Segment::Control(control) => (P::default(), Some(control), None),
        };
        let packet = if packet == 0 { u32::MAX } else { packet };
        Parts { rest: Part { data, control, trailer }, packet }
    }

    /// Envelopes altogether.
    pub fn envelopes(&self) -> u32 {
        match self {
            Segment::Block(block) => block.len() + block.trailer().envelopes(),
            Segment::Characters(characters) => {
                characters.data.len() + characters.control.map_or(0, Control::envelopes)
            }
            Segment::Control(control) => control.envelopes(),
        }
    }
}

/// The parts of a segment, in order ([`Segment::parts`]).
#[derive(Debug, Clone)]
pub struct Parts<P> {
    rest: Part<P>,
    packet: u32,
}

impl<P: Payload> Iterator for Parts<P> {
    type Item = Part<P>;

    fn next(&mut self) -> Option<Part<P>> {
        if self.rest.is_empty() {
            return None;
        }
        let mut part = Part::data(self.rest.data.take_front(self.packet));
        let fits = |part: &Part<P>, more: u32| {
            part.is_empty() || part.envelopes().saturating_add(more) <= self.packet
        };
        if !self.rest.data.is_empty() {
            return Some(part);
        }
        if self.rest.control.is_some_and(|control| fits(&part, control.envelopes())) {
            part.control = self.rest.control.take();
        }
        if self.rest.control.is_none()
            && self.rest.trailer.is_some_and(|trailer| fits(&part, trailer.envelopes()))
        {
            part.trailer = self.rest.trailer.take();
        }
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Extent;

    fn block(len: u32) -> Segment<Extent> {
        Segment::Block(Block {
            data: Extent::new(0, len),
            user: None,
            seq: Seq::FIRST,
            kind: TrailerKind::Bot,
            crc: None,
            eligible: Time::ZERO,
            first_sent: None,
        })
    }

    fn sizes(segment: Segment<Extent>, packet: u32) -> Vec<(u32, u32)> {
        segment.parts(packet).map(|part| (part.envelopes(), part.controls())).collect()
    }

    #[test]
    fn twelve_octets_and_a_trailer_fill_a_packet_and_thirteen_do_not() {
        assert_eq!(sizes(block(12), 16), [(16, 2)]);
        assert_eq!(sizes(block(13), 16), [(13, 0), (4, 2)]);
        assert_eq!(sizes(block(28), 16), [(16, 0), (16, 2)]);
        assert_eq!(sizes(block(16), 16), [(16, 0), (4, 2)]);
        assert_eq!(sizes(block(252), 16).len(), 16);
        assert_eq!(sizes(block(0), 16), [(4, 2)]);
    }

    #[test]
    fn packets_without_limit_and_packets_smaller_than_a_trailer() {
        assert_eq!(sizes(block(1024), 0), [(1028, 2)]);
        assert_eq!(sizes(block(3), 2), [(2, 0), (1, 0), (4, 2)]);
        assert_eq!(sizes(Segment::Control(Control::Express([1, 2])), 16), [(4, 2)]);
        assert_eq!(sizes(Segment::Control(Control::Enq), 16), [(1, 1)]);
    }

    #[test]
    fn a_user_control_is_counted_and_a_check_sum_goes_with_the_trailer() {
        let Segment::Block(mut with) = block(0) else { unreachable!() };
        with.user = Some(User::BREAK);
        assert_eq!(with.trailer().length, Some(1));
        assert_eq!(sizes(Segment::Block(with.clone()), 16), [(5, 3)]);
        let with = with.with_crc();
        assert_eq!(with.trailer().length, Some(6));
        assert_eq!(sizes(Segment::Block(with), 16), [(10, 4)]);
    }

    #[test]
    fn parts_hold_what_the_segment_held() {
        for len in 0..70 {
            for packet in 0..40 {
                let envelopes = block(len).envelopes();
                let parts: Vec<_> = block(len).parts(packet).collect();
                assert_eq!(parts.iter().map(Part::envelopes).sum::<u32>(), envelopes);
                assert_eq!(parts.iter().filter(|part| part.trailer.is_some()).count(), 1);
                assert!(parts.last().is_some_and(|part| part.trailer.is_some()));
                assert!(packet < 4 || parts.iter().all(|part| part.envelopes() <= packet));
            }
        }
    }
}
