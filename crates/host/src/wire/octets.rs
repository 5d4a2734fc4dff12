//! Users' octets: a fixed function of their place in the stream, so that one out of its place is noticed.

use bytes::Bytes;
use std::sync::LazyLock;

/// After so many octets they come again.
const PERIOD: usize = 1 << 16;
/// Two periods, so that as many octets can be cut out from any place without copying.
static TABLE: LazyLock<Bytes> = LazyLock::new(|| (0..2 * PERIOD).map(octet).collect());

/// The upper bits of a multiple of the golden ratio: neighbours differ, and no short run comes twice.
fn octet(place: usize) -> u8 {
    (((place % PERIOD) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// The `count` octets from `place` of the stream on.
pub fn from(place: u64, count: u32) -> Bytes {
    let (first, count) = ((place % PERIOD as u64) as usize, count as usize);
    match count <= PERIOD {
        true => TABLE.slice(first..first + count),
        false => TABLE.iter().copied().take(PERIOD).cycle().skip(first).take(count).collect(),
    }
}

/// Whether these are the octets from `place` of the stream on.
pub fn are(octets: &[u8], place: u64) -> bool {
    let mut place = place;
    octets.chunks(PERIOD).all(|chunk| {
        let right = from(place, chunk.len() as u32) == chunk;
        place += chunk.len() as u64;
        right
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn octets_tell_their_place(place in 0u64..1 << 40, count in 16u32..200_000, moved in 1u64..9000) {
            let octets = from(place, count);
            prop_assert_eq!(octets.len(), count as usize);
            prop_assert!(are(&octets, place));
            prop_assert!(!are(&octets, place + moved));
            prop_assert_eq!(&octets[7..], &from(place + 7, count - 7)[..]);
        }
    }
}
