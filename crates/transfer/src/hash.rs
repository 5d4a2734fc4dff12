//! Hashes of chunks and of the whole.

/// Returns the hash of a whole stream: BLAKE3 over the BLAKE3 hashes of its chunks, in order.
pub fn root(hashes: impl Iterator<Item = [u8; 32]>) -> [u8; 32] {
    let mut whole = blake3::Hasher::new();
    hashes.for_each(|hash| {
        whole.update(&hash);
    });
    *whole.finalize().as_bytes()
}

/// Returns the BLAKE3 of these octets.
pub(crate) fn hash(octets: &[u8]) -> [u8; 32] {
    *blake3::hash(octets).as_bytes()
}
