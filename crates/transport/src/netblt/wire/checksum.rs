//! The checksum of the Internet (RFC 1071): the ones' complement of the ones' complement sum of 16-bit words.

/// The checksum of `octets`. An odd one at the end counts as if a zero followed.
pub fn checksum(octets: &[u8]) -> u16 {
    !folded(sum(octets))
}

/// Whether octets that contain their own checksum are as they were sent.
pub fn is_right(octets: &[u8]) -> bool {
    folded(sum(octets)) == 0xffff
}

fn sum(octets: &[u8]) -> u64 {
    let words = octets.chunks(2);
    words.map(|word| u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0))).sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 §3: the sum of these octets is ddf2.
    #[test]
    fn the_sum_is_that_of_the_standard() {
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[]), 0xffff);
        assert_eq!(checksum(&[0xab]), !0xab00);
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
            let sum = checksum(&octets);
            octets[..2].copy_from_slice(&sum.to_be_bytes());
            prop_assert!(is_right(&octets));
            let at = at.index(octets.len());
            octets[at] ^= change;
            prop_assert!(!is_right(&octets));
        }
    }
}
