//! How the data of a transfer are cut.

use crate::{CHUNK, PACKET};
use std::fmt;

/// Buffers and chunks of a transfer, if that makes them neither too short nor too long (choices).
const BUFFERS: u64 = 256;
const CHUNKS: u64 = 4096;
/// Full packets of a buffer or a chunk, at least and at most (a choice).
const PACKETS: (u64, u64) = (8, CHUNK as u64 / PACKET as u64);

/// The two units of a transfer. A chunk is what the receiver writes, confirms in its journal and asks for; a buffer is what NETBLT sends and
/// confirms. A buffer has several chunks, because whoever is killed loses the chunks that are not whole: of long ones, on a path that
/// loses packets, nearly all that came in the last round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Octets of a chunk.
    pub chunk: u32,
    /// Chunks of a buffer.
    pub each: u32,
}

impl Cut {
    /// That of a transfer of so many octets. What fills up the last buffer is little beside the whole, so are the words about chunks and
    /// buffers, and a transfer of 700 MB or more has chunks as long as its buffers.
    pub fn of(bytes: u64) -> Cut {
        let (least, most) = PACKETS;
        let packets = |share: u64| (bytes / (share * u64::from(PACKET))).clamp(least, most);
        let chunk = 1 << packets(CHUNKS).ilog2();
        let each = packets(BUFFERS) / chunk;
        Cut { chunk: chunk as u32 * u32::from(PACKET), each: each as u32 }
    }

    /// Octets of a buffer.
    pub fn buffer(self) -> u32 {
        self.chunk.saturating_mul(self.each)
    }

    /// Reads what [`Cut`] is written as.
    pub fn read(text: &str) -> Option<Cut> {
        let (chunk, each) = text.split_once('*').unwrap_or((text, "1"));
        let cut = Cut { chunk: chunk.parse().ok()?, each: each.parse().ok()? };
        (cut.chunk > 0 && cut.each > 0).then_some(cut)
    }
}

/// An end that knows no chunks shorter than buffers does not read them.
impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.each {
            1 => write!(f, "{}", self.chunk),
            each => write!(f, "{}*{each}", self.chunk),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_and_buffers_follow_the_transfer() {
        let packets = |bytes| {
            let Cut { chunk, each } = Cut::of(bytes);
            (chunk / u32::from(PACKET), each)
        };
        let cuts =
            [0, 10_000_000, 34_000_000, 100_000_000, 500_000_000, 1_000_000_000].map(packets);
        assert_eq!(cuts, [(8, 1), (8, 3), (8, 12), (16, 8), (64, 2), (128, 1)]);
        for bytes in (0..2000).map(|it| it * 1_000_000) {
            let cut = Cut::of(bytes);
            assert!(cut.each >= 1 && cut.buffer() <= CHUNK, "{bytes}: {cut}");
            assert_eq!(Cut::read(&cut.to_string()), Some(cut));
        }
    }
}
