//! A protocol that speaks in frames, on a wire.
//!
//! A packet is the frame as it stands on the wire behind ten octets of ours: two that tell how long the protocol's
//! header is, and eight with the place of the data in the stream, by which what comes is checked. Octets of data for
//! which there is no room are left out; the path counts them.

use super::{Delivered, Departure, Wired, octets};
use trunkline_core::Time;
use trunkline_transport::protocol::{Frame, Header, Outgoing};
use trunkline_transport::{Endpoint, Extent, Protocol};

/// Octets of ours in front of a frame.
pub const PREFIX: u32 = 10;

/// An end that speaks in frames.
#[derive(Debug)]
pub struct FrameWire {
    protocol: Box<dyn Protocol>,
    /// Bytes accepted of what the other end has sent.
    accepted: u64,
    /// Whether a frame has come whose octets are not those of their place.
    spoilt: bool,
}

impl FrameWire {
    /// An end of `protocol`.
    pub fn new(protocol: Box<dyn Protocol>) -> FrameWire {
        FrameWire { protocol, accepted: 0, spoilt: false }
    }
}

impl Wired for FrameWire {
    fn end(&self) -> &dyn Endpoint {
        &*self.protocol
    }

    fn end_mut(&mut self) -> &mut dyn Endpoint {
        &mut *self.protocol
    }

    fn offer(&mut self, now: Time, data: Extent, end: bool) {
        self.protocol.offer(now, data, end);
    }

    fn depart(&mut self, now: Time, room: usize, out: &mut Vec<u8>) -> Option<Departure> {
        let Outgoing { frame, unit } = self.protocol.transmit(now)?;
        let cut = encode(&frame, room, out) > 0;
        // What is no unit's only fills the packet up.
        let is_new = unit.is_some_and(|unit| unit.first_sent.is_none());
        let data = if is_new { frame.data } else { Extent::default() };
        let size = frame.size();
        Some(Departure { size, cut, data, unit, ..Departure::default() })
    }

    fn arrive(&mut self, now: Time, octets: &[u8], size: u32) -> Option<u64> {
        let (frame, right) = decode(octets, size)?;
        self.spoilt |= !right;
        self.protocol.receive(now, &frame)
    }

    fn take(&mut self) -> Option<Delivered> {
        let unit = self.protocol.take()?;
        let right = unit.data.offset == self.accepted && !std::mem::take(&mut self.spoilt);
        let bytes = unit.data.len;
        self.accepted += u64::from(bytes);
        Some(Delivered { number: unit.number, bytes, end: unit.end, right })
    }

    fn is_of_host(&self) -> bool {
        true
    }
}

/// Appends a frame to `out`, in at most `room` octets. Answers how many of its data are left out.
fn encode(frame: &Frame, room: usize, out: &mut Vec<u8>) -> u32 {
    let header = frame.header.octets();
    let first = out.len();
    out.extend((header.len() as u16).to_be_bytes());
    out.extend(frame.data.offset.to_be_bytes());
    out.extend(header);
    let left = room.saturating_sub(out.len() - first);
    let carried = frame.data.len.min(u32::try_from(left).unwrap_or(u32::MAX));
    out.extend(&octets::from(frame.data.offset, carried)[..]);
    frame.data.len - carried
}

/// Reads what [`encode`] wrote, of a frame that counts `size` bytes; and whether the octets of its data are those of
/// their place.
fn decode(body: &[u8], size: u32) -> Option<(Frame, bool)> {
    let (&length, rest) = body.split_first_chunk()?;
    let length = u16::from_be_bytes(length);
    let (place, rest) = rest.split_first_chunk::<8>()?;
    let (header, data) = rest.split_at_checked(usize::from(length))?;
    let len = size.checked_sub(u32::from(length))?;
    if data.len() > len as usize {
        return None;
    }
    let offset = u64::from_be_bytes(*place);
    let frame = Frame { header: Header::new(header), data: Extent::new(offset, len) };
    (frame.header.octets() == header).then(|| (frame, octets::are(data, offset)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_comes_out_as_it_went_in(
            header in prop::collection::vec(any::<u8>(), 0..32), offset in 0u64..1 << 40,
            len in 0u32..3000, room in 60usize..4000,
        ) {
            let frame = Frame { header: Header::new(&header), data: Extent::new(offset, len) };
            let mut body = Vec::new();
            let left_out = encode(&frame, room, &mut body);
            prop_assert!(body.len() <= room);
            prop_assert_eq!(body.len() as u32 + left_out, PREFIX + frame.size());
            prop_assert_eq!(decode(&body, frame.size()), Some((frame, true)));
        }

        #[test]
        fn anything_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..80), size: u32) {
            if let Some((frame, _)) = decode(&body, size) {
                prop_assert_eq!(frame.size(), size);
            }
        }
    }

    #[test]
    fn octets_of_another_place_are_seen() {
        let mut body = Vec::new();
        let frame = Frame { header: Header::new(&[1, 2, 3]), data: Extent::new(1000, 100) };
        encode(&frame, 500, &mut body);
        *body.last_mut().expect("data") ^= 1;
        assert_eq!(decode(&body, 103), Some((frame, false)));
    }
}
