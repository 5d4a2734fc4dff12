//! A buffer that is on its way, and which of its chunks are whole.

use crate::Cut;
use std::ops::Range;

/// A buffer of which something has come.
pub(crate) struct Filling {
    octets: Vec<u8>,
    /// Octets of a chunk.
    chunk: usize,
    /// Octets that have come of each chunk; none once it has been given.
    come: Vec<Option<usize>>,
}

impl Filling {
    /// One that is put together in this room.
    pub fn new(mut room: Vec<u8>, cut: Cut) -> Filling {
        room.reserve(cut.buffer() as usize);
        Filling { octets: room, chunk: cut.chunk as usize, come: vec![Some(0); cut.each as usize] }
    }

    /// All octets, of which those that have not come may be anything.
    pub fn octets(&mut self) -> &mut Vec<u8> {
        &mut self.octets
    }

    /// Puts data in their place, for the first time.
    pub fn place(&mut self, offset: usize, data: &[u8]) {
        let end = offset + data.len();
        if self.octets.len() < end {
            self.octets.resize(end, 0);
        }
        self.octets[offset..end].copy_from_slice(data);
        for at in offset / self.chunk..end.div_ceil(self.chunk) {
            let Range { start, end: behind } = self.range(at);
            let octets = end.min(behind) - offset.max(start);
            self.come.iter_mut().skip(at).take(1).flatten().for_each(|it| *it += octets);
        }
    }

    /// The chunks that have become whole, by their places, as copies: the buffer may be needed to find what else is missing of it.
    pub fn whole(&mut self) -> Vec<(u64, Vec<u8>)> {
        let is_whole = |it: &Option<usize>| *it == Some(self.chunk);
        let whole: Vec<usize> =
            (0..self.come.len()).filter(|&at| is_whole(&self.come[at])).collect();
        let copies = whole.into_iter().map(|at| {
            self.come[at] = None;
            (at as u64, self.octets[self.range(at)].to_vec())
        });
        copies.collect()
    }

    /// The octets, and the places of the chunks that have not been given; the last may end before its end.
    pub fn end(self) -> (Vec<u8>, Vec<(u64, Range<usize>)>) {
        let left = (0..self.come.len()).filter(|&at| self.come[at].is_some());
        let left = left.map(|at| (at as u64, self.range(at))).collect();
        (self.octets, left)
    }

    /// Where the chunk at this place lies.
    fn range(&self, at: usize) -> Range<usize> {
        at * self.chunk..(at + 1) * self.chunk
    }
}
