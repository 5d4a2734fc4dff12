//! The Internet checksum (RFC 1071), and finishing what a sender left unfinished.

/// A running one's complement sum of 16-bit words. Parts are added in order; only the last may have an
/// odd length.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds the bytes as big-endian 16-bit words, an odd last byte padded with zero.
    pub fn plus(self, bytes: &[u8]) -> Sum {
        let mut words = bytes.chunks_exact(4);
        // Adding native 32-bit words and exchanging the bytes at the end gives the same sum
        // (RFC 1071 §2(B), §2(C)), and lets the compiler use its vector registers.
        let native: u64 =
            (&mut words).map(|w| u64::from(u32::from_ne_bytes([w[0], w[1], w[2], w[3]]))).sum();
        let mut last = [0; 4];
        last[..words.remainder().len()].copy_from_slice(words.remainder());
        let folded = fold(native + u64::from(u32::from_ne_bytes(last)));
        self.word(u16::from_be_bytes(folded.to_ne_bytes()))
    }

    /// Adds one 16-bit word.
    pub fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// The checksum to be written into a header: the complement of the sum.
    pub fn checksum(self) -> u16 {
        !fold(self.0)
    }

    /// The same, but 0xffff for zero: in UDP zero means "no checksum" (RFC 768), and elsewhere the two
    /// mean the same.
    pub fn checksum_not_zero(self) -> u16 {
        match self.checksum() {
            0 => 0xffff,
            sum => sum,
        }
    }
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The offset of the CRC32c of an SCTP packet in its header. No protocol with an Internet checksum has
/// its field at this offset (TCP 16, UDP and DCCP 6, ICMP 2, GRE 4), so the offset tells them apart;
/// the virtio header has no other sign for it.
const SCTP_FIELD: usize = 8;

/// Finishes a checksum that the sender left to its device: over everything from `start` to the end of
/// the frame, written at `start + offset`. For TCP and UDP that field already holds the sum of the
/// pseudo-header. Returns false, and leaves the frame alone, if the field is outside the frame.
pub fn finish(frame: &mut [u8], start: usize, offset: usize) -> bool {
    if start + offset + if offset == SCTP_FIELD { 4 } else { 2 } > frame.len() {
        return false;
    }
    let covered = &mut frame[start..];
    if offset == SCTP_FIELD {
        covered[offset..offset + 4].fill(0);
        let crc = crc32c(covered);
        covered[offset..offset + 4].copy_from_slice(&crc.to_le_bytes());
    } else {
        let sum = Sum::default().plus(covered).checksum_not_zero();
        covered[offset..offset + 2].copy_from_slice(&sum.to_be_bytes());
    }
    true
}

/// The CRC32c of SCTP (RFC 9260 appendix A), bit by bit: rare enough to need no table.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 * (crc & 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 §4.1 word by word, the slow and obvious way.
    fn plain(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            let word = u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum += word;
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn known_sums() {
        // The numerical example of RFC 1071 §3: sum ddf2.
        let sum = Sum::default().plus(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.checksum(), !0xddf2);
        // The check value of CRC-32/ISCSI.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn zero_is_written_as_all_ones() {
        let mut frame = [0xff, 0xff, 0, 0, 0, 0, 0, 0];
        assert!(finish(&mut frame, 0, 6));
        assert_eq!(frame[6..], [0xff, 0xff]);
    }

    #[test]
    fn a_field_outside_the_frame_is_refused() {
        let mut frame = [1; 20];
        assert!(!finish(&mut frame, 3, 16) && !finish(&mut frame, 10, 8));
        assert!(!finish(&mut frame, 65535, 65535));
        assert_eq!(frame, [1; 20]);
        assert!(finish(&mut frame, 2, 16) && finish(&mut frame, 8, 8));
    }

    proptest! {
        #[test]
        fn fast_and_plain_agree(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(Sum::default().plus(&bytes).checksum(), plain(&bytes));
        }

        #[test]
        fn parts_and_whole_agree(
            bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..150,
        ) {
            let cut = (2 * cut).min(bytes.len() & !1);
            let (head, tail) = bytes.split_at(cut);
            prop_assert_eq!(Sum::default().plus(head).plus(tail).checksum(), plain(&bytes));
        }

        #[test]
        fn a_finished_frame_and_its_pseudo_header_sum_to_zero(
            mut frame in proptest::collection::vec(any::<u8>(), 20..300), start in 0usize..9,
        ) {
            let pseudo = frame[start + 6..start + 8].to_vec();
            prop_assert!(finish(&mut frame, start, 6));
            let (covered, odd) = (&frame[start..], (frame.len() - start) % 2);
            prop_assert_eq!(plain(&[covered, &vec![0; odd], &pseudo].concat()), 0);
        }
    }
}
