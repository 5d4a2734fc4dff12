//! A body for the manifests of transfers and for their journals.

use std::path::Component;
use trunkline_transfer::Manifest;
use trunkline_transfer::journal::{self, Header, RECORD, Record};

/// The octets as a manifest, as a journal, and as records whose checks are right.
pub fn read(data: &[u8]) {
    read_manifest(data);
    read_journal(data);
    read_journal(&with_checks(data));
}

/// A manifest that is taken is written the same, and none of its paths leaves the directory or comes twice.
fn read_manifest(data: &[u8]) {
    let manifest = match Manifest::decode(data) {
        Ok(manifest) => manifest,
        Err(error) => return super::assert_one_line("", &error.to_string()),
    };
    assert_eq!(manifest.encode(), data);
    assert!(manifest.files() <= manifest.entries());
    assert!(!manifest.name().contains('\n'));
    let paths: Vec<_> = (0..manifest.entries()).map(|number| manifest.path(number)).collect();
    for path in &paths {
        let mut components = path.components();
        assert!(components.all(|it| matches!(it, Component::Normal(_))), "{path:?}");
    }
    // Components are compared one by one, as a list in order is written.
    assert!(paths.is_sorted_by(|one, next| one < next), "{paths:?}");
    let data = manifest.list().iter().flat_map(|entry| entry.extents());
    let bytes: u128 = data.map(|extent| u128::from(extent.length)).sum();
    assert_eq!(bytes, manifest.stream_bytes().into());
}

/// What a journal confirms is confirmed by a new one with these records.
fn read_journal(data: &[u8]) {
    let Some(contents) = journal::read(data) else { return };
    assert!(contents.end <= data.len());
    assert!(contents.confirmed.len() <= (contents.end - Header::LENGTH) / RECORD);
    let mut written = contents.header.encode();
    for (&index, chunk) in &contents.confirmed {
        let record = Record::Chunk(index, chunk.hash);
        written.extend(record.encode(&contents.header.identity));
    }
    let again = journal::read(&written).expect("a journal");
    let hashes = |contents: &journal::Contents| {
        contents.confirmed.iter().map(|(&index, chunk)| (index, chunk.hash)).collect::<Vec<_>>()
    };
    assert_eq!(hashes(&again), hashes(&contents));
}

/// A journal with a record for each 10 octets: kind, number, and the octet that its hash is made of.
fn with_checks(data: &[u8]) -> Vec<u8> {
    let header = Header { identity: [7; 32], chunk: 1000, boot: Some([1; 16]) };
    let mut written = header.encode();
    let (records, rest) = data.as_chunks::<10>();
    for record in records {
        let number = u64::from_le_bytes(*record[1..].first_chunk().expect("8 octets"));
        let hash = [record[9]; 32];
        let record = match record[0] % 4 {
            0 => Record::Chunk(number, hash),
            1 => Record::Lost(number),
            2 => Record::Boot(Some([record[9]; 16])),
            _ => Record::Finishing(hash),
        };
        written.extend(record.encode(&header.identity));
    }
    written.extend(rest);
    written
}
