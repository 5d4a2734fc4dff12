//! Frames on a wire: a header of 32 octets, big-endian, and the payload or a list of entries behind it.
//!
//! The report does not print its layout; this one fits the 52 octets of overhead that it states, with FDDI's 13 + 3 + 4.

use super::{Destination, Entry, EventId, Flags, Frame, Kind, NodeId, Route};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use thiserror::Error;

/// The version that is written and read.
const VERSION: u8 = 1;
/// The destination that means all other nodes.
const ALL: u16 = u16::MAX;

/// Where each field stands.
mod at {
    pub const VERSION: usize = 0;
    pub const KIND: usize = 1;
    pub const FLAGS: usize = 2;
    pub const FROM: usize = 4;
    pub const TO: usize = 6;
    pub const EVENT: usize = 8;
    pub const FRAGMENT: usize = 12;
    pub const LENGTH: usize = 16;
    pub const GRANT: usize = 20;
    pub const BACK: usize = 22;
    /// What is complete, asked for, or the ends of a way: each kind of frame has one of them.
    pub const MORE: usize = 24;
    pub const COUNTER: usize = 28;
    pub const PAYLOAD: usize = 32;
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

/// Why octets are no frame.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Fewer octets than a header has.
    #[error("{octets} octets are fewer than the {} of a header", at::PAYLOAD)]
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
    pub fn header(&self) -> [u8; Frame::HEADER as usize] {
        let mut octets = [0; at::PAYLOAD];
        (octets[at::VERSION], octets[at::KIND]) = (VERSION, self.kind.octet());
        let two = [
            (at::FLAGS, self.bits()),
            (at::FROM, self.from.0),
            (at::TO, number(self.to)),
            (at::GRANT, self.grant),
            (at::BACK, self.back),
        ];
        for (at, value) in two {
            octets[at..at + 2].copy_from_slice(&value.to_be_bytes());
        }
        let four = [
            (at::EVENT, self.event.0),
            (at::FRAGMENT, self.fragment),
            (at::LENGTH, self.size() - Frame::HEADER),
            (at::MORE, self.more()),
            (at::COUNTER, self.counter),
        ];
        for (at, value) in four {
            octets[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        octets
    }

    fn more(&self) -> u32 {
        match (self.kind, self.route) {
            (Kind::Update, _) => self.asks,
            (Kind::Careful, Some(Route { origin, target })) => {
                u32::from(origin.0) << 16 | u32::from(number(target))
            }
            // Node 0 sends nothing to itself.
            (Kind::Careful, None) => 0,
            _ => self.complete.0,
        }
    }

    fn bits(&self) -> u16 {
        let Flags { last, crowd, large } = self.flags;
        u16::from(last) * bit::LAST
            + u16::from(crowd) * bit::CROWD
            + u16::from(large) * bit::LARGE
            + u16::from(self.wants_ack) * bit::WANTS_ACK
            + u16::from(self.again) * bit::AGAIN
    }

    /// Octets of the first of several frames that stand behind each other, as it says; all if it says more or nothing.
    #[inline]
    pub fn extent(octets: &[u8]) -> usize {
        let length = octets.get(at::LENGTH..at::LENGTH + 4).and_then(|it| it.first_chunk());
        let length = length.map_or(u32::MAX, |&length| u32::from_be_bytes(length));
        (at::PAYLOAD as u64 + u64::from(length)).min(octets.len() as u64) as usize
    }

    /// Reads a frame from all of `octets`, whose payload it keeps where it is.
    ///
    /// # Errors
    /// What is wrong with them.
    #[inline]
    pub fn decode(mut octets: Bytes) -> Result<Frame, FrameError> {
        let Some(&header) = octets.first_chunk::<{ at::PAYLOAD }>() else {
            return Err(FrameError::Short { octets: octets.len() });
        };
        let two = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let four = |at: usize| {
            u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        if header[at::VERSION] != VERSION {
            return Err(FrameError::Version(header[at::VERSION]));
        }
        let kind = Kind::of(header[at::KIND]).ok_or(FrameError::Kind(header[at::KIND]))?;
        let bits = two(at::FLAGS);
        if bits & !bit::ALL != 0 {
            return Err(FrameError::Flags(bits));
        }
        let (stated, found) = (four(at::LENGTH), octets.len() - at::PAYLOAD);
        if stated as usize != found {
            return Err(FrameError::Length { stated, found });
        }
        octets.advance(at::PAYLOAD);
        let has = |bit: u16| bits & bit != 0;
        let more = four(at::MORE);
        let route = Route { origin: NodeId((more >> 16) as u16), target: destination(more as u16) };
        let (list, data) =
            if kind.has_list() { (entries(octets)?, Bytes::new()) } else { (Vec::new(), octets) };
        Ok(Frame {
            kind,
            flags: Flags { last: has(bit::LAST), crowd: has(bit::CROWD), large: has(bit::LARGE) },
            wants_ack: has(bit::WANTS_ACK),
            again: has(bit::AGAIN),
            from: NodeId(two(at::FROM)),
            to: destination(two(at::TO)),
            event: EventId(four(at::EVENT)),
            fragment: four(at::FRAGMENT),
            grant: two(at::GRANT),
            back: two(at::BACK),
            complete: EventId(if kind.is_careful() { 0 } else { more }),
            asks: if kind == Kind::Update { more } else { 0 },
            route: Some(route).filter(|_| kind == Kind::Careful && more != 0),
            counter: four(at::COUNTER),
            data,
            list,
        })
    }
}

fn number(to: Destination) -> u16 {
    match to {
        Destination::Node(NodeId(node)) => node,
        Destination::All => ALL,
    }
}

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

        /// Whatever is read is written again octet for octet.
        #[test]
        fn what_is_read_is_written(mut octets in prop::collection::vec(any::<u8>(), 32..80), kind in 0..8u8) {
            (octets[at::VERSION], octets[at::KIND]) = (VERSION, kind);
            octets[at::FLAGS] = 0;
            octets[at::FLAGS + 1] &= bit::ALL as u8;
            let length = (octets.len() - at::PAYLOAD) as u32;
            octets[at::LENGTH..at::LENGTH + 4].copy_from_slice(&length.to_be_bytes());
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
            (octets[at::VERSION], octets[at::KIND], octets[at::LENGTH + 3]) = (VERSION, 2, 12);
            octets[place] = value;
            Frame::decode(Bytes::from(octets)).unwrap_err().to_string()
        };
        assert!(wrong(at::VERSION, 2).contains("version 2"));
        assert!(wrong(at::KIND, 9).contains("9 is no kind"));
        assert!(wrong(at::FLAGS, 1).contains("mean nothing"));
        assert!(wrong(at::LENGTH + 3, 13).contains("length of 13"));
        let mut octets = vec![0; 43];
        (octets[at::VERSION], octets[at::KIND], octets[at::LENGTH + 3]) = (VERSION, 3, 11);
        assert_eq!(Frame::decode(Bytes::from(octets)), Err(FrameError::List { octets: 11 }));
    }
}
