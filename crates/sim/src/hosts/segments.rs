//! What is on its way and does not fit, with its records, into the 64 bits that a parcel carries: everything but the
//! packets of URP.
//!
//! It waits here and the parcel carries its place. The path may copy a parcel: the place is kept until the last copy
//! has come or is lost.

use super::flying::Flying;
use trunkline_core::{Ecn, Tight, Time};
use trunkline_transport::Extent;
use trunkline_transport::protocol::Frame;
use trunkline_transport::tcp::{Flags, Rare, Segment, Seq, Timestamps};
use trunkline_workload::Stamp;

/// The meaning of a parcel.
#[derive(Debug, Clone)]
pub(crate) enum Sent {
    /// A segment of TCP.
    Segment(Wire),
    /// A frame of a listed protocol, with the number of the unit that it carries, if it carries one. It is boxed, as of
    /// segments there are many more.
    Frame(Box<(Frame, Option<u64>)>),
    /// A datagram, which is no more than its bytes, and what it brings if it has no records.
    Datagram(Option<Posted>),
}

/// A segment of TCP as it is on the wire, without what its sender alone knows: 48 bytes.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    /// The place of its octets in the stream, and their number.
    offset: u64,
    len: u32,
    pub ecn: Ecn,
    seq: Seq,
    ack: Seq,
    window: u16,
    flags: Flags,
    /// Whether there are time stamps, and these: apart, an option's mark would need a word of its own.
    is_stamped: bool,
    stamps: [u32; 2],
    rare: Option<Box<Rare>>,
}

impl From<Segment<Extent>> for Wire {
    fn from(segment: Segment<Extent>) -> Wire {
        let Segment { data, ecn, seq, ack, window, flags, timestamps, rare, .. } = segment;
        let Extent { offset, len } = data;
        let (is_stamped, stamps) =
            (timestamps.is_some(), timestamps.map_or([0; 2], |it| [it.value, it.echo]));
        Wire { offset, len, ecn, seq, ack, window, flags, is_stamped, stamps, rare }
    }
}

impl Wire {
    /// The segment as its receiver gets it now, with the congestion bits that its packet came with.
    pub fn heard(self, now: Time, ecn: Ecn) -> Segment<Extent> {
        let Wire { offset, len, seq, ack, window, flags, is_stamped, stamps, rare, .. } = self;
        let [value, echo] = stamps;
        let timestamps = is_stamped.then_some(Timestamps { value, echo });
        let data = Extent { offset, len };
        Segment { ecn, timestamps, rare, ..Segment::new(seq, ack, flags, window, data, now) }
    }
}

/// A datagram of an ideal host, which has left at the instant at which it was written: its records follow from that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posted {
    pub left: Time,
    pub stamp: Option<Stamp>,
}

impl Sent {
    /// Whether it is only a control, or an acknowledgement.
    pub fn is_control(&self) -> bool {
        match self {
            Sent::Segment(segment) => segment.len == 0,
            Sent::Frame(frame) => frame.1.is_none(),
            Sent::Datagram(_) => false,
        }
    }
}

/// A segment on its way, and its records until one of its parcels comes.
#[derive(Debug)]
struct Slot {
    segment: Sent,
    parcels: u32,
    flying: Option<Box<Flying>>,
}

/// All of them. Places are used again.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
}

impl Segments {
    /// Keeps a segment of one parcel, with its records; its place.
    pub fn put(&mut self, segment: Sent, flying: Option<Box<Flying>>) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push_tight(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[place as usize] = Some(Slot { segment, parcels: 1, flying });
        place
    }

    /// The path has made so many more parcels of it.
    pub fn copied(&mut self, place: u32, copies: u32) {
        if let Some(Some(slot)) = self.slots.get_mut(place as usize) {
            slot.parcels += copies;
        }
    }

    /// The segment at `place`.
    pub fn get(&self, place: u32) -> Option<&Sent> {
        self.slots[place as usize].as_ref().map(|slot| &slot.segment)
    }

    /// The segment at `place` has records from now on.
    pub fn attach(&mut self, place: u32, flying: Box<Flying>) {
        if let Some(slot) = &mut self.slots[place as usize] {
            slot.flying = Some(flying);
        }
    }

    /// The datagram at `place`, until one of its parcels has come, if an ideal host has posted it.
    pub fn posted(&mut self, place: u32) -> Option<&mut Option<Posted>> {
        match &mut self.slots[place as usize].as_mut()?.segment {
            Sent::Datagram(posted) => Some(posted),
            _ => None,
        }
    }

    /// Its records, once.
    pub fn take_records(&mut self, place: u32) -> Option<Box<Flying>> {
        self.slots[place as usize].as_mut()?.flying.take()
    }

    /// One of its parcels has come: the segment.
    pub fn take(&mut self, place: u32) -> Option<Sent> {
        let slot = self.slots[place as usize].as_mut()?;
        slot.parcels -= 1;
        if slot.parcels > 0 {
            return Some(slot.segment.clone());
        }
        self.free.push(place);
        self.slots[place as usize].take().map(|slot| slot.segment)
    }

    /// One of its parcels is lost. With the last one its records are left over.
    pub fn lose(&mut self, place: u32) -> Option<Box<Flying>> {
        let slot = self.slots[place as usize].as_mut()?;
        slot.parcels -= 1;
        if slot.parcels > 0 {
            return None;
        }
        self.free.push(place);
        self.slots[place as usize].take()?.flying
    }

    /// How many are on their way.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_on_their_way_are_small() {
        assert_eq!((size_of::<Wire>(), size_of::<Sent>(), size_of::<Option<Slot>>()), (48, 48, 64));
    }
}
