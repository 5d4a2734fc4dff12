//! From what the kernel hands over to what a wire would have carried.

use crate::offload::{LENGTH, Offload};
use crate::segment::{Unsegmentable, segment};
use crate::{Received, Refusals, checksum};

/// Bytes of a VLAN tag, needed free before the frame to put a stripped one back.
const TAG: usize = 4;
/// The two addresses, which move to make room for the tag.
const ADDRESSES: usize = 12;

/// A frame in a writable buffer, as the kernel gave it.
pub(crate) struct Raw<'a> {
    /// The buffer: virtio header, then the frame, up to the frame's end.
    pub(crate) buffer: &'a mut [u8],
    /// The start of the frame; the virtio header lies before.
    pub(crate) start: usize,
    /// A tag that was stripped: protocol and control information.
    pub(crate) tag: Option<(u16, u16)>,
    /// Arrival in CLOCK_REALTIME nanoseconds.
    pub(crate) stamp: Option<u64>,
}

/// Makes wire frames, and counts what it cannot make into such.
#[derive(Default)]
pub(crate) struct Intake {
    pub(crate) refusals: Refusals,
    scratch: Vec<u8>,
}

impl Intake {
    /// Hands the frame, or its pieces, to `sink`; returns how many.
    pub(crate) fn deliver(&mut self, raw: Raw<'_>, sink: &mut dyn FnMut(Received<'_>)) -> usize {
        let Raw { buffer, start, tag, stamp } = raw;
        let Some(header) = start.checked_sub(LENGTH).and_then(|at| buffer[at..].first_chunk())
        else {
            return self.refuse(Unsegmentable::Short);
        };
        let offload = Offload::read(header);
        let (start, shift) = match tag {
            Some(tag) if buffer.len() >= start + ADDRESSES => (put_tag(buffer, start, tag), TAG),
            _ => (start, 0),
        };
        let frame = &mut buffer[start..];
        let checksum = offload.checksum;
        let unfinished = checksum.map(|(from, field)| (usize::from(from) + shift, field.into()));
        match (offload.gso, unfinished) {
            (Some(gso), unfinished) => {
                let mut hand = |piece: &[u8]| sink(Received { bytes: piece, stamp });
                segment(frame, gso, unfinished, &mut self.scratch, &mut hand)
                    .unwrap_or_else(|reason| self.refuse(reason))
            }
            (None, Some((from, field))) if !checksum::finish(frame, from, field) => {
                self.refuse(Unsegmentable::Checksum)
            }
            _ => {
                sink(Received { bytes: frame, stamp });
                1
            }
        }
    }

    fn refuse(&mut self, reason: Unsegmentable) -> usize {
        self.refusals.unsegmentable += 1;
        self.refusals.reason = Some(reason);
        0
    }
}

/// Puts a stripped VLAN tag back between addresses and type. Returns the frame's new start.
fn put_tag(buffer: &mut [u8], start: usize, (protocol, control): (u16, u16)) -> usize {
    let new = start - TAG;
    buffer.copy_within(start..start + ADDRESSES, new);
    buffer[new + ADDRESSES..][..2].copy_from_slice(&protocol.to_be_bytes());
    buffer[new + ADDRESSES + 2..][..2].copy_from_slice(&control.to_be_bytes());
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: usize = 16;

    /// Header and frame in a buffer with room before, delivered; what came out, and the refusals.
    fn deliver(
        header: [u8; LENGTH],
        frame: &[u8],
        tag: Option<(u16, u16)>,
    ) -> (Vec<Vec<u8>>, Refusals) {
        let mut buffer = vec![0xee; START - LENGTH];
        buffer.extend(header);
        buffer.extend(frame);
        let mut intake = Intake::default();
        let mut out = Vec::new();
        let raw = Raw { buffer: &mut buffer, start: START, tag, stamp: Some(5) };
        let count = intake.deliver(raw, &mut |got| {
            assert_eq!(got.stamp, Some(5));
            out.push(got.bytes.to_vec());
        });
        assert_eq!(count, out.len());
        (out, intake.refusals)
    }

    fn header(checksum: Option<(u16, u16)>, kind: u8, size: u16) -> [u8; LENGTH] {
        let mut header = [u8::from(checksum.is_some()), kind, 0, 0, 0, 0, 0, 0, 0, 0];
        let (start, field) = checksum.unwrap_or_default();
        for (at, word) in [(4, size), (6, start), (8, field)] {
            header[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
        header
    }

    #[test]
    fn a_stripped_tag_comes_back() {
        let frame: Vec<u8> = (0..60).collect();
        let (out, _) = deliver([0; LENGTH], &frame, Some((0x88a8, 0x6005)));
        assert_eq!(out, [[&frame[..12], &[0x88, 0xa8, 0x60, 0x05], &frame[12..]].concat()]);
        let (out, _) = deliver([0; LENGTH], &frame, None);
        assert_eq!(out, [frame]);
    }

    #[test]
    fn a_checksum_is_finished_where_the_tag_moved_it() {
        let frame: Vec<u8> = (0..61).collect();
        let (untagged, _) = deliver(header(Some((34, 6)), 0, 0), &frame, None);
        let (tagged, _) = deliver(header(Some((34, 6)), 0, 0), &frame, Some((0x8100, 7)));
        assert_ne!(untagged[0], frame);
        assert_eq!(tagged[0][16..], untagged[0][12..]);
    }

    #[test]
    fn what_cannot_be_a_wire_frame_is_counted() {
        let (out, refusals) = deliver(header(Some((60, 6)), 0, 0), &[1; 60], None);
        assert!(out.is_empty());
        assert_eq!((refusals.total(), refusals.reason), (1, Some(Unsegmentable::Checksum)));
        let (out, refusals) = deliver(header(None, 3, 1000), &[1; 3000], None);
        assert!(out.is_empty());
        assert_eq!((refusals.total(), refusals.reason), (1, Some(Unsegmentable::Kind(3))));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), start in 0usize..40,
            end in 0usize..200, tag: Option<(u16, u16)>,
        ) {
            let mut buffer = bytes;
            buffer.truncate(end);
            let start = start.min(buffer.len());
            let mut intake = Intake::default();
            let raw = Raw { buffer: &mut buffer, start, tag, stamp: None };
            let count = intake.deliver(raw, &mut |_| {});
            prop_assert_eq!(count == 0, intake.refusals.total() == 1);
        }
    }
}
