//! A buffer that both ends know to be shorter than the others, though it is not the last: what it lacks is never sent.

use super::Receiver;

impl Receiver {
    /// A buffer, counted from 0, has so many bytes, as the other end knows too. It has no GO yet.
    pub fn shorten(&mut self, buffer: u64, bytes: u32) {
        let is_possible = (1..=self.terms.buffer).contains(&bytes);
        self.short = is_possible.then_some((buffer, bytes));
    }

    /// Packets of a buffer, counted from 0, and bytes of its last one.
    pub(super) fn size(&self, buffer: u64) -> (u32, u16) {
        match self.short {
            Some((short, bytes)) if short == buffer => {
                let packets = bytes.div_ceil(self.terms.packet.into());
                (packets, (bytes - (packets - 1) * u32::from(self.terms.packet)) as u16)
            }
            _ => (self.packets, self.tail),
        }
    }

    /// The place of a packet among all.
    pub(super) fn place(&self, buffer: u64, packet: u16) -> u64 {
        let before = buffer * u64::from(self.packets);
        let missing = match self.short {
            Some((short, _)) if short < buffer => self.packets - self.size(short).0,
            _ => 0,
        };
        before - u64::from(missing) + u64::from(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netblt::RateLaw;
    use crate::netblt::wire::{Dialect, Terms};
    use trunkline_core::Span;

    /// Packets behind it are numbered on, so that the law takes none of those that it lacks for lost.
    #[test]
    fn what_it_lacks_has_no_place() {
        let terms = Terms { buffer: 4000, packet: 1000, ..Terms::default() };
        let mut half = Receiver::new(Dialect::V5, &terms, RateLaw::Adaptive, Span::from_secs(1));
        half.shorten(1, 1001);
        let sizes: Vec<_> = (0..3).map(|buffer| half.size(buffer)).collect();
        assert_eq!(sizes, [(4, 1000), (2, 1), (4, 1000)]);
        let places = [(0, 3), (1, 0), (1, 1), (2, 0), (3, 1)];
        assert_eq!(places.map(|(buffer, packet)| half.place(buffer, packet)), [3, 4, 5, 6, 11]);
        for impossible in [0, 4001] {
            half.shorten(1, impossible);
            assert_eq!(half.size(1), (4, 1000));
        }
    }
}
