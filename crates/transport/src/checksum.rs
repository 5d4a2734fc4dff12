//! The checksum of the Internet: the ones' complement of the ones' complement sum of 16-bit words.

/// The Internet check sum (RFC 1071) of `octets`, `sum` added; zero over what holds its own right one.
pub(crate) fn checksum(octets: &[u8], sum: u64) -> u16 {
    let (words, rest) = octets.as_chunks::<2>();
    let mut sum = words.iter().fold(sum, |sum, word| sum + u64::from(u16::from_be_bytes(*word)));
    sum += rest.first().map_or(0, |&last| u64::from(last) << 8);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 §3: the sum of these octets is ddf2.
    #[test]
    fn the_sum_is_that_of_the_standard() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], 0), !0xddf2);
        assert_eq!(checksum(&[], 0), 0xffff);
        assert_eq!(checksum(&[0xab], 0), !0xab00);
    }

    proptest! {
        #[test]
        fn one_changed_octet_is_seen(
            mut octets in prop::collection::vec(any::<u8>(), 2..60), at: prop::sample::Index,
            change in 1u8..255,
        ) {
            if octets.len() % 2 == 1 {
                octets.push(0);
            }
            octets[..2].fill(0);
            let sum = checksum(&octets, 0);
            octets[..2].copy_from_slice(&sum.to_be_bytes());
            prop_assert_eq!(checksum(&octets, 0), 0);
            let at = at.index(octets.len());
            octets[at] ^= change;
            prop_assert_ne!(checksum(&octets, 0), 0);
        }
    }
}
