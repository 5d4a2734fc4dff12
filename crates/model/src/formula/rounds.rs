//! The number of rounds that a message takes: cut into requests, requests into blocks, blocks let out by a window.
//!
//! Sources: Hawley 1989 §4.2.1 (stream blocks), §4.2.2 (one request at a time); Vande Water 1988 §2.5.2
//! (the 84-byte window), §3.7.2 (756, 268; 756, 268, 1).

use trunkline_scenario::Split;

/// Windows that `bytes` fill, the last perhaps in part; at least one (Vande Water 1988 §2.6).
pub fn windows(bytes: u64, window: u64) -> u64 {
    bytes.div_ceil(window.max(1)).max(1)
}

/// `bytes` in pieces of `piece`, the last perhaps shorter; nothing is one empty piece.
pub fn pieces(bytes: u32, piece: u32) -> Vec<u32> {
    let piece = piece.max(1);
    let mut pieces = vec![piece; (bytes / piece) as usize];
    if !bytes.is_multiple_of(piece) || bytes == 0 {
        pieces.push(bytes % piece);
    }
    pieces
}

/// The requests of one system write: the first rule whose `below` exceeds the bytes decides; without
/// one, the write is one request.
pub fn requests(bytes: u32, split: &[Split]) -> Vec<u32> {
    let rule = split.iter().find(|rule| rule.below.is_none_or(|below| bytes < below));
    rule.map_or_else(|| vec![bytes], |rule| pieces(bytes, rule.piece))
}

/// The bytes of each round of one system write: what goes out before the sender has to wait for an
/// answer, `outstanding` blocks of `block` bytes at most.
///
/// `one_request` says that the next request waits until the last is answered for in full; else rounds
/// run across requests. Rounds are what a long way shows: with a short one the answers to the first
/// blocks come while the last are still being sent.
pub fn rounds(
    bytes: u32,
    split: &[Split],
    one_request: bool,
    block: u32,
    outstanding: u32,
) -> Vec<u32> {
    let blocks = |request: &u32| pieces(*request, block);
    let sums = |blocks: &[u32]| -> Vec<u32> {
        blocks.chunks(outstanding.max(1) as usize).map(|round| round.iter().sum()).collect()
    };
    let requests = requests(bytes, split);
    if one_request {
        requests.iter().flat_map(|request| sums(&blocks(request))).collect()
    } else {
        sums(&requests.iter().flat_map(blocks).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ninth edition: 64 bytes below 512, else 1024 (Hawley 1989 §4.2.1).
    fn ninth_edition() -> Vec<Split> {
        vec![Split { below: Some(512), piece: 64 }, Split { below: None, piece: 1024 }]
    }

    fn kmc(bytes: u32, block: u32) -> Vec<u32> {
        rounds(bytes, &ninth_edition(), true, block, 3)
    }

    #[test]
    fn rounds_of_the_kmc() {
        assert_eq!(kmc(64, 28), [64]);
        assert_eq!(kmc(65, 28), [64, 1]);
        assert_eq!(kmc(511, 28).len(), 8, "eight stream blocks of 64");
        assert_eq!(kmc(512, 28), [84, 84, 84, 84, 84, 84, 8]);
        assert_eq!(kmc(768, 28).len(), 10);
        assert_eq!(kmc(1024, 252), [756, 268]);
        assert_eq!(kmc(1025, 252), [756, 268, 1]);
    }

    #[test]
    fn rounds_without_a_request_limit_run_on() {
        assert_eq!(rounds(2048, &ninth_edition(), false, 256, 3), [768, 768, 512]);
        assert_eq!(rounds(0, &[], true, 256, 3), [0], "an empty block ends a message too");
        assert_eq!(rounds(5000, &[], false, 1024, 7), [5000]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_more_window_is_never_more_rounds(
            bytes in 1u32..5000, block in 1u32..2000, outstanding in 1u32..7, one in any::<bool>(),
        ) {
            let split = ninth_edition();
            let small = rounds(bytes, &split, one, block, outstanding);
            prop_assert_eq!(small.iter().sum::<u32>(), bytes);
            prop_assert!(rounds(bytes, &split, one, block, outstanding + 1).len() <= small.len());
            prop_assert!(small.iter().all(|&round| round <= block * outstanding));
        }
    }
}
