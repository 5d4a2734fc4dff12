//! A frame on its way through the network.

use super::plan::Takes;
use crate::pool::{Frame, FramePool};
use trunkline_capsule::{Header, Hop, Ledger as Record, find, without_checksum};
use trunkline_core::{Cause, Channel, Ecn, Ledger, Packet, Span, Time};
use trunkline_netns::Mac;
use trunkline_path::{ChannelKey, classify, mark_frame};

/// The beginning of every way's address: locally administered, "tlw".
pub(super) const PREFIX: [u8; 4] = [0x02, b't', b'l', b'w'];

/// A frame on its way.
#[derive(Debug)]
pub(super) struct Transit {
    pub frame: Frame,
    way: u16,
    hop: u16,
    /// The offset of the capsule in the frame; 0 if it is none.
    capsule: u16,
}

/// The way that a frame is to go, by its destination.
pub(super) fn way_of(frame: &[u8]) -> Option<usize> {
    let address = frame.get(..6)?;
    (address[..4] == PREFIX).then(|| usize::from(u16::from_be_bytes([address[4], address[5]])))
}

/// Takes a frame in that came at `at` to go `way`; `None` if there is no room for it. On a way of addressed
/// frames a capsule says itself how it counts; of anything else the packet behind the Ethernet header counts.
#[inline]
pub(super) fn packet(
    bytes: &[u8],
    (way, takes): (usize, Takes),
    at: Time,
    pool: &mut FramePool,
) -> Option<Packet<Transit>> {
    match takes {
        Takes::All(key) => plain(bytes, way, key, at, pool),
        Takes::Addressed(_) => addressed(bytes, way, at, pool),
    }
}

#[inline]
fn plain(
    bytes: &[u8],
    way: usize,
    key: ChannelKey,
    at: Time,
    pool: &mut FramePool,
) -> Option<Packet<Transit>> {
    let class = classify(bytes, key);
    let body = Transit { frame: pool.store(bytes)?, way: way as u16, hop: 0, capsule: 0 };
    let mut packet = Packet::new(class.channel, class.size, at, body);
    (packet.band, packet.ecn, packet.hosts) = (class.band, class.ecn, Some(class.hosts));
    Some(packet)
}

fn addressed(bytes: &[u8], way: usize, at: Time, pool: &mut FramePool) -> Option<Packet<Transit>> {
    let place = find(bytes);
    let header = place.clone().and_then(|place| Header::read(&bytes[place]));
    let Some((place, header)) = place.zip(header) else {
        return plain(bytes, way, ChannelKey::FiveTuple, at, pool);
    };
    let frame = pool.store(bytes)?;
    let hosts = classify(bytes, ChannelKey::One).hosts;
    let stored = pool.bytes_mut(&frame);
    without_checksum(stored, &place);
    if let Some(mut record) = Record::of(&mut stored[place.clone()]) {
        record.arrive(at);
    }
    let body = Transit { frame, way: way as u16, hop: 0, capsule: place.start as u16 };
    let mut packet = Packet::new(Channel(header.channel), header.path_size, at, body);
    (packet.band, packet.controls) = (header.band, u32::from(header.controls));
    (packet.ecn, packet.hosts) = (Ecn::from_bits(header.ecn), Some(hosts));
    Some(packet)
}

impl Transit {
    /// Its way's number.
    #[inline]
    pub fn way(&self) -> usize {
        usize::from(self.way)
    }

    /// The place of the present lane on its way.
    #[inline]
    pub fn hop(&self) -> usize {
        usize::from(self.hop)
    }

    /// Notes that the next lane of its way is the present one.
    pub fn go_on(&mut self) {
        self.hop += 1;
    }

    /// Writes what lane `lane` made it wait for into the frame, if that has room for it.
    #[inline]
    pub fn note_hop(&self, pool: &mut FramePool, lane: usize, ledger: &Ledger) {
        if let Some(mut record) = self.record(pool) {
            record.add_hop(&Hop {
                link: lane as u16,
                queue: ledger.get(Cause::Queue),
                transmit: ledger.get(Cause::Transmit),
                propagate: ledger.get(Cause::Propagate),
            });
        }
    }

    /// Makes the frame ready to leave: with its lateness if it has room for it, with the mark of a discipline
    /// if there is one, and addressed to its host on a way of addressed frames.
    #[inline]
    pub fn finish(&self, pool: &mut FramePool, takes: Takes, lateness: Span, ecn: Ecn) {
        if let Some(mut record) = self.record(pool) {
            record.set_lateness(lateness);
            if ecn == Ecn::Ce {
                record.mark();
            }
        } else if ecn == Ecn::Ce {
            mark_frame(pool.bytes_mut(&self.frame));
        }
        if let Takes::Addressed(Mac(address)) = takes {
            pool.bytes_mut(&self.frame)[..6].copy_from_slice(&address);
        }
    }

    #[inline]
    fn record<'p>(&self, pool: &'p mut FramePool) -> Option<Record<'p>> {
        let start = usize::from(self.capsule);
        if start == 0 {
            return None;
        }
        Record::of(&mut pool.bytes_mut(&self.frame)[start..])
    }

    /// A copy with a frame of its own; `None` if there is no room.
    pub fn copy(&self, pool: &mut FramePool) -> Option<Transit> {
        let frame = pool.duplicate(&self.frame)?;
        Some(Transit { frame, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::way_mac;

    #[test]
    fn an_address_names_its_way() {
        for way in [0, 1, 255, 256, 65535] {
            let mut frame = way_mac(way).0.to_vec();
            frame.extend([0; 60]);
            assert_eq!(way_of(&frame), Some(way));
        }
        assert_eq!(way_of(&[0xff; 60]), None);
        assert_eq!(way_of(&PREFIX), None);
    }
}
