//! Sizes that show where a path's boundaries are.

/// The largest size that is chosen without being asked for: beyond it lie several packets of every kind.
pub const LARGEST: u32 = 4096;

/// Sizes from one octet on that straddle each of the suspected boundaries.
pub fn straddling(boundaries: &[u32], most: u32) -> Vec<u32> {
    let powers = [1, 64, 256, 512, 1024, 2048];
    let around = boundaries.iter().flat_map(|&at| [at.saturating_sub(1), at, at + 1, at * 2, at * 2 + 1]);
    let mut sizes: Vec<u32> =
        powers.into_iter().chain(around).filter(|size| (1..=most).contains(size)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}
