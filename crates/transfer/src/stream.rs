//! Places of the stream's chunks in the files.

use crate::{Extent, Manifest};
use std::ops::Range;

/// Data of one file that lie together, in the file and in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The file's number among the entries.
    pub entry: u32,
    /// The first byte's place in the file.
    pub start: u64,
    /// Number of bytes.
    pub length: u64,
}

/// The extents of all files, one after the other.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Each extent behind the place of its first byte in the stream.
    runs: Vec<(u64, Piece)>,
    bytes: u64,
    chunk: u32,
}

impl Stream {
    /// Returns the stream of a manifest, cut into chunks of so many bytes, at least 1.
    pub fn of(manifest: &Manifest, chunk: u32) -> Stream {
        let (mut runs, mut bytes) = (Vec::new(), 0);
        for (entry, listed) in (0..).zip(manifest.list()) {
            for &Extent { start, length } in listed.extents() {
                runs.push((bytes, Piece { entry, start, length }));
                bytes += length;
            }
        }
        Stream { runs, bytes, chunk }
    }

    /// Returns the number of chunks.
    pub fn chunks(&self) -> u64 {
        self.bytes.div_ceil(self.chunk.into())
    }

    /// Returns the bytes of a chunk: 0 beyond the last.
    pub fn length(&self, index: u64) -> u64 {
        let Some(start) = index.checked_mul(self.chunk.into()) else { return 0 };
        self.bytes.saturating_sub(start).min(self.chunk.into())
    }

    /// Returns the pieces of a chunk, in order; none beyond the last.
    pub fn pieces(&self, index: u64) -> impl Iterator<Item = Piece> + '_ {
        let length = self.length(index);
        let start = if length == 0 { self.bytes } else { index * u64::from(self.chunk) };
        let end = start + length;
        let first = self.runs.partition_point(|&(at, run)| at + run.length <= start);
        let within = self.runs[first..].iter().take_while(move |&&(at, _)| at < end);
        within.map(move |&(at, run)| {
            let skipped = start.saturating_sub(at);
            let length = (end - at).min(run.length) - skipped;
            Piece { entry: run.entry, start: run.start + skipped, length }
        })
    }

    /// Returns the chunks that hold data of an entry.
    pub fn chunks_of(&self, entry: u32) -> Range<u64> {
        let first = self.runs.partition_point(|(_, run)| run.entry < entry);
        let behind = self.runs.partition_point(|(_, run)| run.entry <= entry);
        let chunk = u64::from(self.chunk);
        match self.runs[first..behind] {
            [] => 0..0,
            [(start, _), ..] => {
                let (at, last) = self.runs[behind - 1];
                start / chunk..(at + last.length).div_ceil(chunk)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, Kind, Mtime};

    fn file(name: &str, size: u64, extents: &[(u64, u64)]) -> Entry {
        let extents = extents.iter().map(|&(start, length)| Extent { start, length }).collect();
        let mtime = Mtime { seconds: 0, nanos: 0 };
        let kind = Kind::File { size, extents };
        Entry { parent: None, name: name.into(), mode: 0o600, mtime, kind }
    }

    #[test]
    fn chunks_cross_files_and_pass_holes_over() {
        let files = [file("a", 5, &[(0, 5)]), file("b", 9, &[]), file("c", 20, &[(2, 3), (10, 4)])];
        let stream = Stream::of(&Manifest::of(files.into()), 4);
        assert_eq!(stream.chunks(), 3);
        let pieces =
            |index| stream.pieces(index).map(|p| (p.entry, p.start, p.length)).collect::<Vec<_>>();
        assert_eq!(pieces(0), [(0, 0, 4)]);
        assert_eq!(pieces(1), [(0, 4, 1), (2, 2, 3)]);
        assert_eq!(pieces(2), [(2, 10, 4)]);
        assert_eq!(pieces(3), []);
        assert_eq!(pieces(u64::MAX), []);
        assert_eq!([0, 1, 2].map(|entry| stream.chunks_of(entry)), [0..2, 0..0, 1..3]);
        assert_eq!([2, 3, u64::MAX].map(|index| stream.length(index)), [4, 0, 0]);
    }
}
