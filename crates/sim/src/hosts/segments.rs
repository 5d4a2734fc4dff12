//! What is on its way and does not fit into the 64 bits that a parcel carries: segments of TCP, and the frames of
//! listed protocols.
//!
//! It waits here and the parcel carries its place. The path may copy a parcel: the place is kept until the last copy
//! has come or is lost.

use super::flying::Flying;

/// A segment on its way, and its records until one of its parcels comes.
#[derive(Debug)]
struct Slot<S> {
    segment: S,
    parcels: u32,
    flying: Option<Box<Flying>>,
}

/// All of them. Places are used again.
#[derive(Debug)]
pub(crate) struct Segments<S> {
    slots: Vec<Option<Slot<S>>>,
    free: Vec<u32>,
}

impl<S> Default for Segments<S> {
    fn default() -> Segments<S> {
        Segments { slots: Vec::new(), free: Vec::new() }
    }
}

impl<S: Clone> Segments<S> {
    /// Keeps a segment of one parcel, with its records; its place.
    pub fn put(&mut self, segment: S, flying: Option<Box<Flying>>) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
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
    pub fn get(&self, place: u32) -> Option<&S> {
        self.slots[place as usize].as_ref().map(|slot| &slot.segment)
    }

    /// Its records, once.
    pub fn take_records(&mut self, place: u32) -> Option<Box<Flying>> {
        self.slots[place as usize].as_mut()?.flying.take()
    }

    /// One of its parcels has come: the segment.
    pub fn take(&mut self, place: u32) -> Option<S> {
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
