//! Manifests that nobody may send.

use trunkline_transfer::{Manifest, TransferError};

/// Returns an entry's octets: kind, directories left, name, mode 0o600, time 0, and the rest.
fn entry(kind: u8, left: u8, name: &[u8], rest: &[u8]) -> Vec<u8> {
    let length = [name.len() as u8 & 0x7f | 0x80, (name.len() >> 7) as u8];
    let length = if name.len() < 128 { vec![name.len() as u8] } else { length.to_vec() };
    [&[kind, left][..], &length, name, &[0x80, 3, 0, 0], rest].concat()
}

fn directory(left: u8, name: &[u8]) -> Vec<u8> {
    entry(0, left, name, &[])
}

fn file(left: u8, name: &[u8]) -> Vec<u8> {
    entry(1, left, name, &[5])
}

fn link(left: u8, name: &[u8], target: &[u8]) -> Vec<u8> {
    entry(3, left, name, &[&[target.len() as u8], target].concat())
}

fn decode(entries: &[Vec<u8>]) -> Result<Manifest, TransferError> {
    Manifest::decode(&[b"TLMF\x01".to_vec(), entries.concat()].concat())
}

#[track_caller]
fn refused(why: &str, entries: &[Vec<u8>]) {
    let told = decode(entries).expect_err(why).to_string();
    assert!(told.contains(why), "{told} is not: {why}");
}

#[test]
fn a_good_manifest_is_taken() {
    let tree = [directory(0, b"d"), file(0, b"a"), link(0, b"b", b"../../etc"), file(1, b"e")];
    let manifest = decode(&tree).expect("a manifest");
    assert_eq!((manifest.entries(), manifest.files(), manifest.stream_bytes()), (4, 2, 10));
    assert_eq!(manifest.path(1).to_str(), Some("d/a"));
    assert_eq!(manifest.encode(), [b"TLMF\x01".to_vec(), tree.concat()].concat());
}

#[test]
fn names_lead_nowhere_else() {
    for name in [&b".."[..], b"."] {
        refused("a name . or ..", &[file(0, name)]);
        refused("a name . or ..", &[directory(0, b"d"), file(0, name)]);
    }
    refused("an empty name", &[file(0, b"")]);
    refused("a name with a slash", &[file(0, b"/etc")]);
    refused("a name with a slash", &[file(0, b"a/../b")]);
    refused("a name with NUL", &[file(0, b"a\0b")]);
    refused("a name longer than 255", &[file(0, &[b'a'; 256])]);
    refused("a name of a transfer's journal", &[directory(0, b".trunkline-0123456789abcdef")]);
    decode(&[directory(0, b"d"), file(0, b".trunkline-0123456789abcdef")]).expect("not at the top");
}

#[test]
fn nothing_comes_twice_and_nothing_lies_beneath_a_link() {
    refused("twice or out of order", &[file(0, b"a"), file(0, b"a")]);
    refused("twice or out of order", &[link(0, b"a", b"/etc"), directory(0, b"a"), file(0, b"b")]);
    refused("twice or out of order", &[directory(0, b"a"), file(0, b"b"), directory(1, b"a")]);
    refused("twice or out of order", &[file(0, b"b"), file(0, b"a")]);
    refused("more directories left", &[link(0, b"a", b"/etc"), file(1, b"b")]);
}

#[test]
fn paths_and_depths_have_a_bound() {
    let deep: Vec<Vec<u8>> = (0..257).map(|_| directory(0, b"d")).collect();
    decode(&deep[..256]).expect("256 directories");
    refused("more than 256 directories", &deep);
    let long: Vec<Vec<u8>> = (0..16).map(|_| directory(0, &[b'd'; 255])).collect();
    refused("a path longer than 4095", &[&long[..], &[file(0, b"a")]].concat());
}

#[test]
fn extents_stay_in_their_file() {
    let sparse = |rest: &[u8]| entry(2, 0, b"a", rest);
    decode(&[sparse(&[9, 2, 1, 2, 1, 3])]).expect("two extents");
    refused("an extent outside its file", &[sparse(&[9, 1, 8, 2])]);
    refused("extents are empty", &[sparse(&[9, 1, 3, 0])]);
    refused("extents are empty, out of order or touch", &[sparse(&[9, 2, 1, 2, 0, 3])]);
    refused("extents of a file that has no holes", &[sparse(&[9, 1, 0, 9])]);
    let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    refused("an extent outside", &[sparse(&[&[9, 2, 1, 1], &most[..], &[1]].concat())]);
    refused("2^63", &[entry(1, 0, b"a", &most)]);
    // Memory is not reserved for extents that are only promised.
    refused("it ends too early", &[sparse(&[&[9], &most[..], &[1]].concat())]);
}

#[test]
fn the_sum_of_all_files_fits_64_bits() {
    let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let files: Vec<Vec<u8>> = (b'a'..=b'c').map(|name| entry(1, 0, &[name], &most)).collect();
    decode(&files[..2]).expect("2^64 - 2 bytes");
    refused("more bytes than 2^64", &files);
}

#[test]
fn what_is_cut_off_or_strange_is_refused() {
    let whole = [b"TLMF\x01".to_vec(), file(0, b"a"), link(0, b"b", b"a")].concat();
    // Behind the first entry it is a whole manifest.
    let first = 5 + file(0, b"a").len();
    for length in (0..whole.len()).filter(|&length| length != first) {
        assert!(Manifest::decode(&whole[..length]).is_err(), "{length} octets");
    }
    refused("an unknown kind", &[entry(4, 0, b"a", &[])]);
    refused("a link's text", &[link(0, b"a", b"")]);
    refused("a link's text with NUL", &[link(0, b"a", b"b\0")]);
    refused("a mode beyond 1777", &[[&[0, 0, 1, b'a'][..], &[0x80, 0x20, 0, 0]].concat()]);
    assert!(
        Manifest::decode(b"TLMF\x02").is_err_and(|error| error.to_string().contains("version"))
    );
}
