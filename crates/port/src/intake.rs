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
    /// Where the frame starts; the virtio header lies before.
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
        match offload {
            Offload { gso: Some(gso), .. } => {
                let mut hand = |piece: &[u8]| sink(Received { bytes: piece, stamp });
                segment(frame, gso, &mut self.scratch, &mut hand)
                    .unwrap_or_else(|reason| self.refuse(reason))
            }
            Offload { checksum: Some((from, field)), .. }
                if !checksum::finish(frame, usize::from(from) + shift, usize::from(field)) =>
            {
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

/// Puts a stripped VLAN tag back between addresses and type; returns where the frame now starts.
fn put_tag(buffer: &mut [u8], start: usize, (protocol, control): (u16, u16)) -> usize {
    let new = start - TAG;
    buffer.copy_within(start..start + ADDRESSES, new);
    buffer[new + ADDRESSES..][..2].copy_from_slice(&protocol.to_be_bytes());
    buffer[new + ADDRESSES + 2..][..2].copy_from_slice(&control.to_be_bytes());
    new
}
