//! Octets of a manifest.
//!
//! Four octets `TLMF` and the version, then entries to the end. Numbers are little-endian groups of seven bits, the
//! top bit set on all but the last octet, in the shortest form. An entry: its kind; how many directories are left
//! since the entry before; name; mode; seconds (sign in the lowest bit) and nanoseconds of its mtime. A file with
//! data throughout has its size; another file its size, the number of extents, and hole and data of each; a link its
//! text. Names and texts stand behind their lengths.

use super::{Entry, Extent, Kind, Mtime, Rules};

const MAGIC: &[u8; 5] = b"TLMF\x01";

const DIRECTORY: u8 = 0;
const WHOLE: u8 = 1;
const SPARSE: u8 = 2;
const LINK: u8 = 3;

/// Returns the octets of entries that keep the rules.
pub(super) fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut into = MAGIC.to_vec();
    let mut above: Vec<u32> = Vec::new();
    for (number, entry) in (0..).zip(entries) {
        into.push(code(&entry.kind));
        let depth = above.len();
        while above.last().copied() != entry.parent {
            above.pop();
        }
        put(&mut into, (depth - above.len()) as u64);
        put_text(&mut into, &entry.name);
        put(&mut into, entry.mode.into());
        put(&mut into, (entry.mtime.seconds << 1 ^ entry.mtime.seconds >> 63) as u64);
        put(&mut into, entry.mtime.nanos.into());
        put_kind(&mut into, &entry.kind);
        if entry.kind == Kind::Directory {
            above.push(number);
        }
    }
    into
}

fn code(kind: &Kind) -> u8 {
    match kind {
        Kind::Directory => DIRECTORY,
        Kind::File { size, extents } if is_whole(*size, extents) => WHOLE,
        Kind::File { .. } => SPARSE,
        Kind::Link { .. } => LINK,
    }
}

fn is_whole(size: u64, extents: &[Extent]) -> bool {
    extents == whole(size)
}

/// Returns the extents of a file without holes.
fn whole(size: u64) -> Vec<Extent> {
    (size > 0).then_some(Extent { start: 0, length: size }).into_iter().collect()
}

fn put_kind(into: &mut Vec<u8>, kind: &Kind) {
    match kind {
        Kind::Directory => {}
        Kind::Link { target } => put_text(into, target),
        Kind::File { size, extents } => {
            put(into, *size);
            if is_whole(*size, extents) {
                return;
            }
            put(into, extents.len() as u64);
            let mut end = 0;
            for extent in extents {
                put(into, extent.start - end);
                put(into, extent.length);
                end = extent.start + extent.length;
            }
        }
    }
}

fn put(into: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn put_text(into: &mut Vec<u8>, text: &[u8]) {
    put(into, text.len() as u64);
    into.extend_from_slice(text);
}

/// Returns the entries in these octets, or the rule that they break.
pub(super) fn decode(octets: &[u8]) -> Result<Vec<Entry>, &'static str> {
    let mut rest = octets.strip_prefix(MAGIC).ok_or("another version")?;
    let (mut rules, mut entries) = (Rules::new(), Vec::new());
    while !rest.is_empty() {
        let entry = take_entry(&mut rest, &mut rules)?;
        rules.add(&mut entries, entry)?;
    }
    match entries.is_empty() {
        true => Err("no entries"),
        false => Ok(entries),
    }
}

fn take_entry(rest: &mut &[u8], rules: &mut Rules) -> Result<Entry, &'static str> {
    let code = take_octet(rest)?;
    let left = take(rest)?;
    if left > rules.depth() as u64 {
        return Err("more directories left than entered");
    }
    (0..left).for_each(|_| rules.leave());
    let name = take_text(rest)?;
    let mode = u32::try_from(take(rest)?).map_err(|_| "a mode beyond 1777")?;
    let seconds = take(rest)?;
    let seconds = (seconds >> 1) as i64 ^ -((seconds & 1) as i64);
    let nanos = u32::try_from(take(rest)?).map_err(|_| "a time with too many nanoseconds")?;
    let (kind, mtime) = (take_kind(rest, code)?, Mtime { seconds, nanos });
    Ok(Entry { parent: rules.parent(), name, mode, mtime, kind })
}

fn take_kind(rest: &mut &[u8], code: u8) -> Result<Kind, &'static str> {
    match code {
        DIRECTORY => Ok(Kind::Directory),
        WHOLE => {
            let size = take(rest)?;
            Ok(Kind::File { size, extents: whole(size) })
        }
        SPARSE => {
            let size = take(rest)?;
            let extents = take_extents(rest)?;
            match is_whole(size, &extents) {
                true => Err("extents of a file that has no holes"),
                false => Ok(Kind::File { size, extents }),
            }
        }
        LINK => Ok(Kind::Link { target: take_text(rest)? }),
        _ => Err("an unknown kind of entry"),
    }
}

fn take_extents(rest: &mut &[u8]) -> Result<Vec<Extent>, &'static str> {
    let count = take(rest)?;
    // An extent takes two octets at least: what is reserved is bounded by what came.
    if count > rest.len() as u64 / 2 {
        return Err("it ends too early");
    }
    let (mut extents, mut end) = (Vec::with_capacity(count as usize), 0u64);
    for _ in 0..count {
        let start = end.checked_add(take(rest)?).ok_or("an extent outside its file")?;
        let length = take(rest)?;
        end = start.checked_add(length).ok_or("an extent outside its file")?;
        extents.push(Extent { start, length });
    }
    Ok(extents)
}

fn take_octet(rest: &mut &[u8]) -> Result<u8, &'static str> {
    let (&first, behind) = rest.split_first().ok_or("it ends too early")?;
    *rest = behind;
    Ok(first)
}

fn take(rest: &mut &[u8]) -> Result<u64, &'static str> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let octet = take_octet(rest)?;
        let bits = u64::from(octet & 0x7f);
        if shift == 63 && bits > 1 {
            return Err("a number beyond 64 bits");
        }
        number |= bits << shift;
        if octet < 0x80 {
            let is_shortest = octet != 0 || shift == 0;
            return is_shortest
                .then_some(number)
                .ok_or("a number that is not in its shortest form");
        }
    }
    Err("a number beyond 64 bits")
}

fn take_text(rest: &mut &[u8]) -> Result<Vec<u8>, &'static str> {
    let length = take(rest)?;
    if length > rest.len() as u64 {
        return Err("it ends too early");
    }
    let (text, behind) = rest.split_at(length as usize);
    *rest = behind;
    Ok(text.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::MAX >> 1, u64::MAX] {
            let mut octets = Vec::new();
            put(&mut octets, number);
            let mut rest = &octets[..];
            assert_eq!((take(&mut rest), rest), (Ok(number), &[][..]));
        }
        assert!(take(&mut &[0x80, 0][..]).is_err(), "0 in two octets");
        assert!(take(&mut &[0xff; 9][..]).is_err(), "no end");
        let beyond = [[0xff; 9].as_slice(), &[2]].concat();
        assert_eq!(take(&mut &beyond[..]), Err("a number beyond 64 bits"));
    }
}
