//! Frames on a wire: a header of 32 octets, big-endian, and the payload or a list of entries behind it.
//!
//! The report does not print its layout; this one fits the 52 octets of overhead that it states, with FDDI's 13 + 3 + 4.

use super::frame::Head;
use super::{Destination, Entry, EventId, Flags, Frame, Kind, NodeId, Route};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use thiserror::Error;

const VERSION: u8 = Frame::VERSION;
/// The destination that means all other nodes.
const ALL: u16 = u16::MAX;

/// Octets of a header.
const HEADER: usize = Frame::HEADER as usize;

/// Which word of a header has each field; two that share one stand in its upper and its lower half.
mod at {
    /// The version, the kind and the flags: an octet, an octet and two.
    pub const KIND: usize = 0;
    /// The node that sent it, and where it goes.
    pub const ENDS: usize = 1;
    pub const EVENT: usize = 2;
    pub const FRAGMENT: usize = 3;
    pub const LENGTH: usize = 4;
    /// What is granted, and what is given back.
    pub const GRANT: usize = 5;
    /// What is complete, asked for, or the ends of a way: each kind of frame has one of them.
    pub const MORE: usize = 6;
    pub const COUNTER: usize = 7;
}

/// Bits of the flags.
mod bit {
    pub const LAST: u16 = 1;
    pub const CROWD: u16 = 2;
    pub const LARGE: u16 = 4;
    pub const WANTS_ACK: u16 = 8;
    pub const AGAIN: u16 = 16;
    pub const ALL: u16 = 31;
}

/// A header, word by word.
type Words = [u32; HEADER / 4];

/// The words of the header before something.
#[inline]
fn words(octets: &[u8]) -> Option<Words> {
    let header = octets.first_chunk::<HEADER>()?;
    let word = |at: usize| {
        let octets = [header[4 * at], header[4 * at + 1], header[4 * at + 2], header[4 * at + 3]];
        u32::from_be_bytes(octets)
    };
    Some([word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7)])
}

/// The octets of a header.
#[inline]
fn octets(words: Words) -> [u8; HEADER] {
    let mut octets = [0; HEADER];
    for (place, word) in octets.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    octets
}

/// Two halves as a word.
#[inline]
const fn word(upper: u16, lower: u16) -> u32 {
    (upper as u32) << 16 | lower as u32
}

/// A word as two halves.
#[inline]
const fn halves(word: u32) -> (u16, u16) {
    ((word >> 16) as u16, word as u16)
}

/// The first word but its flags.
#[inline]
const fn first(kind: Kind) -> u32 {
    (VERSION as u32) << 24 | (kind.octet() as u32) << 16
}

/// Why octets are no frame.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Fewer octets than a header has.
    #[error("{octets} octets are fewer than the {} of a header", HEADER)]
    Short {
        /// How many there are.
        octets: usize,
    },
    /// Another version.
    #[error("version {0} is not spoken here")]
    Version(u8),
    /// An unknown kind.
    #[error("{0} is no kind of frame")]
    Kind(u8),
    /// Unknown flags.
    #[error("flags {0:#06x} are set that mean nothing")]
    Flags(u16),
    /// The length is not that of what stands behind the header.
    #[error("a length of {stated} is stated and {found} octets follow")]
    Length {
        /// The length stated.
        stated: u32,
        /// Octets behind the header.
        found: usize,
    },
    /// A list that does not consist of whole entries.
    #[error("{octets} octets are no list of entries of {} each", Frame::ENTRY)]
    List {
        /// How many there are.
        octets: usize,
    },
}

impl Kind {
    const fn octet(self) -> u8 {
        match self {
            Kind::Traditional => 1,
            Kind::Acknowledgement => 2,
            Kind::Request => 3,
            Kind::Careful => 4,
            Kind::Update => 5,
        }
    }

    const fn of(octet: u8) -> Option<Kind> {
        Some(match octet {
            1 => Kind::Traditional,
            2 => Kind::Acknowledgement,
            3 => Kind::Request,
            4 => Kind::Careful,
            5 => Kind::Update,
            _ => return None,
        })
    }

    /// Whether a list stands behind the header, not payload.
    fn has_list(self) -> bool {
        matches!(self, Kind::Acknowledgement | Kind::Request)
    }
}

impl Frame {
    /// Appends the frame's octets.
    pub fn encode(&self, out: &mut BytesMut) {
        out.reserve(self.size() as usize);
        out.extend_from_slice(&self.header());
        if !self.kind.has_list() {
            return out.extend_from_slice(&self.data);
        }
        for &Entry { event, first, following } in &self.list {
            [event.0, first, following].into_iter().for_each(|word| out.put_u32(word));
        }
    }

    /// The octets of its header. Behind them stand those of its data, or its list.
    #[inline]
    pub fn header(&self) -> [u8; HEADER] {
        octets([
            first(self.kind) | u32::from(self.bits()),
            word(self.from.0, number(self.to)),
            self.event.0,
            self.fragment,
            self.size() - Frame::HEADER,
            word(self.grant, self.back),
            self.more(),
            self.counter,
        ])
    }

    fn more(&self) -> u32 {
        match (self.kind, self.route) {
            (Kind::Update, _) => self.asks,
            (Kind::Careful, Some(Route { origin, target })) => word(origin.0, number(target)),
            // Node 0 sends nothing to itself.
            (Kind::Careful, None) => 0,
            _ => self.complete.0,
        }
    }

    fn bits(&self) -> u16 {
        let wants_ack = u16::from(self.wants_ack) * bit::WANTS_ACK;
        self.flags.bits() + wants_ack + u16::from(self.again) * bit::AGAIN
    }

    /// Octets of the first of several frames that stand behind each other, as it says; all if it says more or nothing.
    #[inline]
    pub fn extent(octets: &[u8]) -> usize {
        let length = octets.get(4 * at::LENGTH..).and_then(|it| it.first_chunk());
        let length = length.map_or(u32::MAX, |&length| u32::from_be_bytes(length));
        (HEADER as u64 + u64::from(length)).min(octets.len() as u64) as usize
    }

    /// Reads a frame from all of `octets`, whose payload it keeps where it is.
    ///
    /// # Errors
    /// What is wrong with them.
    #[inline]
    pub fn decode(mut octets: Bytes) -> Result<Frame, FrameError> {
        let Some(words) = words(&octets) else {
            return Err(FrameError::Short { octets: octets.len() });
        };
        let (kind, bits) = kind(words[at::KIND])?;
        let (stated, found) = (words[at::LENGTH], octets.len() - HEADER);
        if stated as usize != found {
            return Err(FrameError::Length { stated, found });
        }
        octets.advance(HEADER);
        let ((from, to), (grant, back)) = (halves(words[at::ENDS]), halves(words[at::GRANT]));
        let more = words[at::MORE];
        let (origin, target) = halves(more);
        let route = Route { origin: NodeId(origin), target: destination(target) };
        let (list, data) =
            if kind.has_list() { (entries(octets)?, Bytes::new()) } else { (Vec::new(), octets) };
        Ok(Frame {
            kind,
            flags: Flags::of(bits),
            wants_ack: bits & bit::WANTS_ACK != 0,
            again: bits & bit::AGAIN != 0,
            from: NodeId(from),
            to: destination(to),
            event: EventId(words[at::EVENT]),
            fragment: words[at::FRAGMENT],
            grant,
            back,
            complete: EventId(if kind.is_careful() { 0 } else { more }),
            asks: if kind == Kind::Update { more } else { 0 },
            route: Some(route).filter(|_| kind == Kind::Careful && more != 0),
            counter: words[at::COUNTER],
            data,
            list,
        })
    }
}

impl Flags {
    #[inline]
    fn bits(self) -> u16 {
        let Flags { last, crowd, large } = self;
        u16::from(last) * bit::LAST + u16::from(crowd) * bit::CROWD + u16::from(large) * bit::LARGE
    }

    #[inline]
    fn of(bits: u16) -> Flags {
        let has = |bit: u16| bits & bit != 0;
        Flags { last: has(bit::LAST), crowd: has(bit::CROWD), large: has(bit::LARGE) }
    }
}

impl Head {
    /// The octets of the header, before so many of data.
    #[inline]
    pub fn octets(&self, data: u32) -> [u8; HEADER] {
        let bits = self.flags.bits() + u16::from(self.wants_ack) * bit::WANTS_ACK;
        octets([
            first(self.kind) | u32::from(bits),
            word(self.from.0, number(self.to)),
            self.event.0,
            self.fragment,
            data,
            word(self.grant, 0),
            self.complete.0,
            self.counter,
        ])
    }

    /// The head of a fragment, of one of the two kinds that have one, that says nothing besides; `None` if these are the octets
    /// of anything else.
    #[inline]
    pub fn plain(octets: &[u8], kind: Kind) -> Option<Head> {
        let words = words(octets)?;
        let bits = words[at::KIND] ^ first(kind);
        let ((from, to), (grant, back)) = (halves(words[at::ENDS]), halves(words[at::GRANT]));
        let (complete, more, wants_ack) = match kind {
            Kind::Careful => (0, words[at::MORE], 0),
            _ => (words[at::MORE], 0, bit::WANTS_ACK),
        };
        let besides = u32::from(back) | more;
        let known = bits & !u32::from(bit::LAST | bit::CROWD | bit::LARGE | wants_ack) == 0;
        let whole = words[at::LENGTH] as usize == octets.len() - HEADER;
        let head = Head {
            kind,
            flags: Flags::of(bits as u16),
            wants_ack: bits & u32::from(wants_ack) != 0,
            from: NodeId(from),
            to: destination(to),
            event: EventId(words[at::EVENT]),
            fragment: words[at::FRAGMENT],
            grant,
            complete: EventId(complete),
            counter: words[at::COUNTER],
        };
        (known && whole && besides == 0).then_some(head)
    }
}

/// The kind and the flags of the first word.
fn kind(first: u32) -> Result<(Kind, u16), FrameError> {
    let (upper, bits) = halves(first);
    let [version, octet] = upper.to_be_bytes();
    if version != VERSION {
        return Err(FrameError::Version(version));
    }
    let kind = Kind::of(octet).ok_or(FrameError::Kind(octet))?;
    if bits & !bit::ALL != 0 {
        return Err(FrameError::Flags(bits));
    }
    Ok((kind, bits))
}

#[inline]
fn number(to: Destination) -> u16 {
    match to {
        Destination::Node(NodeId(node)) => node,
        Destination::All => ALL,
    }
}

#[inline]
fn destination(number: u16) -> Destination {
    if number == ALL { Destination::All } else { Destination::Node(NodeId(number)) }
}

fn entries(mut octets: Bytes) -> Result<Vec<Entry>, FrameError> {
    if !octets.len().is_multiple_of(Frame::ENTRY as usize) {
        return Err(FrameError::List { octets: octets.len() });
    }
    let mut list = Vec::with_capacity(octets.len() / Frame::ENTRY as usize);
    while octets.has_remaining() {
        let (event, first) = (EventId(octets.get_u32()), octets.get_u32());
        list.push(Entry { event, first, following: octets.get_u32() });
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Where some fields stand, in octets.
    mod octet {
        pub const VERSION: usize = 0;
        pub const KIND: usize = 1;
        pub const FLAGS: usize = 2;
        pub const LENGTH: usize = 16;
    }

    fn frames() -> impl Strategy<Value = Frame> {
        let flags = any::<[bool; 5]>();
        let places = (any::<u16>(), any::<u16>(), any::<u32>(), any::<u32>());
        let rest = (any::<u16>(), any::<u16>(), any::<u32>(), any::<u32>());
        let list = prop::collection::vec(any::<(u32, u32, u32)>(), 0..5);
        let behind = (prop::collection::vec(any::<u8>(), 0..100), list);
        (1_u8..6, flags, places, rest, behind).prop_map(
            |(
                kind,
                flags,
                (from, to, event, fragment),
                (grant, back, complete, counter),
                (data, list),
            )| {
                let [last, crowd, large, wants_ack, again] = flags;
                let kind = Kind::of(kind).expect("one of five");
                let entry = |&(event, first, following): &(u32, u32, u32)| Entry {
                    event: EventId(event),
                    first,
                    following,
                };
                Frame {
                    kind,
                    flags: Flags { last, crowd, large },
                    wants_ack,
                    again,
                    from: NodeId(from),
                    to: destination(to),
                    event: EventId(event),
                    fragment,
                    grant,
                    back,
                    complete: EventId(if kind.is_careful() { 0 } else { complete }),
                    asks: if kind == Kind::Update { complete } else { 0 },
                    route: Some(Route {
                        origin: NodeId((complete >> 16) as u16),
                        target: destination(complete as u16),
                    })
                    .filter(|_| kind == Kind::Careful && complete != 0),
                    counter,
                    data: if kind.has_list() { Bytes::new() } else { data.into() },
                    list: if kind.has_list() {
                        list.iter().map(entry).collect()
                    } else {
                        Vec::new()
                    },
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(frame in frames()) {
            let mut out = BytesMut::new();
            frame.encode(&mut out);
            prop_assert_eq!(out.len() as u32, frame.size());
            prop_assert_eq!(Frame::decode(out.freeze()), Ok(frame));
        }

        /// Frames behind each other are told apart, and octets of any kind come to an end.
        #[test]
        fn frames_behind_each_other_are_found(all in prop::collection::vec(frames(), 1..5), rest in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut out = BytesMut::new();
            all.iter().for_each(|frame| frame.encode(&mut out));
            let mut octets = out.freeze();
            for frame in all {
                let first = octets.split_to(Frame::extent(&octets));
                prop_assert_eq!(Frame::decode(first), Ok(frame));
            }
            prop_assert!(octets.is_empty());
            prop_assert!(rest.is_empty() || (1..=rest.len()).contains(&Frame::extent(&rest)));
        }

        /// A head is read where a frame is a fragment without anything besides, and says the same.
        #[test]
        fn a_head_says_what_its_frame_does(frame in frames(), plain in any::<bool>(), careful in any::<bool>()) {
            let kind = if careful { Kind::Careful } else { Kind::Traditional };
            let frame = if plain {
                let (wants_ack, again) = (false, false);
                Frame { kind, wants_ack, again, back: 0, complete: EventId(0), asks: 0, route: None, list: Vec::new(), ..frame }
            } else {
                frame
            };
            let mut out = BytesMut::new();
            frame.encode(&mut out);
            let head = Head::plain(&out, kind);
            prop_assert!(head.is_some() || !plain);
            prop_assert_eq!(&head, &Head::of(&frame).filter(|_| frame.kind == kind));
            if let Some(head) = Head::of(&frame) {
                prop_assert_eq!(head.octets(frame.data.len() as u32), frame.header());
                prop_assert_eq!(head.frame(frame.data.clone()), frame);
            }
        }

        /// Whatever is read is written again octet for octet.
        #[test]
        fn what_is_read_is_written(mut octets in prop::collection::vec(any::<u8>(), 32..80), kind in 0..8u8) {
            (octets[octet::VERSION], octets[octet::KIND]) = (VERSION, kind);
            octets[octet::FLAGS] = 0;
            octets[octet::FLAGS + 1] &= bit::ALL as u8;
            let length = (octets.len() - HEADER) as u32;
            octets[octet::LENGTH..octet::LENGTH + 4].copy_from_slice(&length.to_be_bytes());
            let octets = Bytes::from(octets);
            if let Ok(frame) = Frame::decode(octets.clone()) {
                let mut out = BytesMut::new();
                frame.encode(&mut out);
                prop_assert_eq!(out.freeze(), octets);
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_told_apart() {
        let mut out = BytesMut::new();
        let frame = Frame::decode(Bytes::from_static(&[0; 31]));
        assert_eq!(frame, Err(FrameError::Short { octets: 31 }));
        out.resize(32, 0);
        let wrong = |place: usize, value: u8| {
            let mut octets = vec![0; 44];
            (octets[octet::VERSION], octets[octet::KIND], octets[octet::LENGTH + 3]) =
                (VERSION, 2, 12);
            octets[place] = value;
            Frame::decode(Bytes::from(octets)).unwrap_err().to_string()
        };
        assert!(wrong(octet::VERSION, 2).contains("version 2"));
        assert!(wrong(octet::KIND, 9).contains("9 is no kind"));
        assert!(wrong(octet::FLAGS, 1).contains("mean nothing"));
        assert!(wrong(octet::LENGTH + 3, 13).contains("length of 13"));
        let mut octets = vec![0; 43];
        (octets[octet::VERSION], octets[octet::KIND], octets[octet::LENGTH + 3]) = (VERSION, 3, 11);
        assert_eq!(Frame::decode(Bytes::from(octets)), Err(FrameError::List { octets: 11 }));
    }
}
