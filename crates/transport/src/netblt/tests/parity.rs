//! Parity between two ends.

use crate::netblt::{self, Receiver};
use std::collections::BTreeMap;

/// Puts in place what rows of parity give back.
pub fn recover(
    half: &mut Receiver,
    all: &mut BTreeMap<u64, Vec<(u16, Vec<u8>)>>,
    got: &mut BTreeMap<u64, Vec<u8>>,
) {
    for (&buffer, rows) in all.iter_mut() {
        rows.sort();
        rows.dedup();
        let Some(holes) = half.holes(buffer) else { continue };
        let (packet, count) = (half.packet(), holes.missing.len());
        if rows.len() < count {
            continue;
        }
        let data = got.entry(buffer).or_default();
        data.resize(holes.bytes as usize, 0);
        let found =
            netblt::parity::recover(data, packet, &holes.missing, &rows[..count]).expect("rows");
        for (&missing, row) in holes.missing.iter().zip(found) {
            let place = data.chunks_mut(packet).nth(missing.into()).expect("a place");
            place.copy_from_slice(&row[..place.len()]);
        }
        half.fill_in(buffer);
    }
}
