//! User data as a protocol sees them: something that has a length and can be cut and joined.

use bytes::{Bytes, BytesMut};

/// User data of a protocol. The default value is no data.
pub trait Payload: Clone + Default {
    /// The number of octets.
    fn len(&self) -> u32;
    /// Cuts off the first `bytes` octets, or all if there are fewer.
    fn take_front(&mut self, bytes: u32) -> Self;
    /// Joins `more` to the end.
    fn append(&mut self, more: Self);
    /// The octet at `index`, for check sums and real wires; 0 past the end.
    fn octet(&self, index: u32) -> u8;
    /// Whether there is no octet.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A stretch of a numbered stream: octets `offset` to `offset + len`, without the octets.
///
/// A simulator uses it to check delivery octet for octet. Stretches that do not adjoin make a patchwork
/// when joined, which no `Extent` can state: it gets the offset [`Extent::PATCHWORK`], so that whoever
/// compares offsets notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extent {
    /// The number of the first octet in the stream.
    pub offset: u64,
    /// The number of octets.
    pub len: u32,
}

impl Extent {
    /// The offset of what is no single stretch.
    pub const PATCHWORK: u64 = u64::MAX;

    /// `len` octets from `offset` on.
    pub const fn new(offset: u64, len: u32) -> Extent {
        Extent { offset, len }
    }

    /// The number of the octet after the last.
    pub const fn end(self) -> u64 {
        self.offset.saturating_add(self.len as u64)
    }
}

impl Payload for Extent {
    fn len(&self) -> u32 {
        self.len
    }

    fn take_front(&mut self, bytes: u32) -> Extent {
        let bytes = bytes.min(self.len);
        let front = Extent::new(self.offset, bytes);
        self.len -= bytes;
        self.offset = self.offset.saturating_add(u64::from(bytes));
        front
    }

    fn append(&mut self, more: Extent) {
        if self.len == 0 {
            *self = more;
        } else if more.len > 0 {
            if more.offset != self.end() {
                self.offset = Extent::PATCHWORK;
            }
            self.len = self.len.saturating_add(more.len);
        }
    }

    /// A fixed function of the octet's number, so that a check sum notices an octet out of its place.
    fn octet(&self, index: u32) -> u8 {
        if index >= self.len {
            return 0;
        }
        let number = self.offset.wrapping_add(u64::from(index));
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
    }
}

impl Payload for Bytes {
    fn len(&self) -> u32 {
        u32::try_from(Bytes::len(self)).unwrap_or(u32::MAX)
    }

    fn take_front(&mut self, bytes: u32) -> Bytes {
        let bytes = (bytes as usize).min(Bytes::len(self));
        self.split_to(bytes)
    }

    fn append(&mut self, more: Bytes) {
        if Bytes::is_empty(self) {
            *self = more;
        } else if !Bytes::is_empty(&more) {
            let mut joined = BytesMut::with_capacity(Bytes::len(self) + Bytes::len(&more));
            joined.extend_from_slice(self);
            joined.extend_from_slice(&more);
            *self = joined.freeze();
        }
    }

    fn octet(&self, index: u32) -> u8 {
        self.get(index as usize).copied().unwrap_or(0)
    }
}

impl Payload for Vec<u8> {
    fn len(&self) -> u32 {
        u32::try_from(Vec::len(self)).unwrap_or(u32::MAX)
    }

    fn take_front(&mut self, bytes: u32) -> Vec<u8> {
        let rest = self.split_off((bytes as usize).min(Vec::len(self)));
        std::mem::replace(self, rest)
    }

    fn append(&mut self, mut more: Vec<u8>) {
        Vec::append(self, &mut more);
    }

    fn octet(&self, index: u32) -> u8 {
        self.get(index as usize).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_and_join<P: Payload + PartialEq + std::fmt::Debug>(whole: &P) {
        for cut in 0..=whole.len() + 1 {
            let mut rest = whole.clone();
            let mut front = rest.take_front(cut);
            assert_eq!(front.len(), cut.min(whole.len()));
            assert_eq!(front.len() + rest.len(), whole.len());
            front.append(rest);
            assert_eq!(&front, whole);
        }
    }

    #[test]
    fn what_is_cut_joins_again() {
        cut_and_join(&Extent::new(70, 9));
        cut_and_join(&Bytes::from_static(b"datakit"));
        cut_and_join(&b"datakit".to_vec());
    }

    #[test]
    fn a_patchwork_is_no_stretch() {
        let mut front = Extent::new(0, 16);
        front.append(Extent::new(32, 16));
        assert_eq!(front, Extent::new(Extent::PATCHWORK, 32));
        front.append(Extent::default());
        assert_eq!(front.len, 32);
    }

    #[test]
    fn the_octets_of_a_stretch_follow_their_numbers() {
        let (long, mut rest) = (Extent::new(5, 100), Extent::new(5, 100));
        rest.take_front(40);
        assert_eq!(long.octet(40), rest.octet(0));
        assert_eq!(rest.octet(60), 0);
    }
}
