//! Rules that entries keep, whoever made them.

use super::{Entry, Extent, Kind};

/// Most octets of a name: NAME_MAX of Linux, `limits.h`.
pub const MOST_NAME: usize = 255;
/// Most octets of a path beneath the transfer's directory, and of a link's text: PATH_MAX of Linux, `limits.h`,
/// without the closing NUL.
pub const MOST_PATH: usize = 4095;
/// Most directories above an entry. Each is one open file while the names are made.
pub const MOST_DEPTH: usize = 256;
/// Most bytes of a file: the largest offset of the system's calls.
const MOST_SIZE: u64 = i64::MAX as u64;
/// Rights and the sticky bit.
const MODES: u32 = 0o1777;

/// A directory whose entries are being added.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    entry: Option<u32>,
    /// Octets of its path, with a slash behind unless it is the top.
    path: usize,
    latest: Option<u32>,
}

/// The state of a list that is being made: it judges each entry before it is added.
#[derive(Debug)]
pub(crate) struct Rules {
    /// The directories above the next entry; the first is the top.
    levels: Vec<Level>,
    bytes: u64,
}

impl Rules {
    pub fn new() -> Rules {
        Rules { levels: vec![Level::default()], bytes: 0 }
    }

    /// Returns the number of directories above the next entry.
    pub fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    /// Returns the directory that holds the next entry.
    pub fn parent(&self) -> Option<u32> {
        self.levels.last().and_then(|level| level.entry)
    }

    /// Leaves one directory. The caller looks at the depth first.
    pub fn leave(&mut self) {
        self.levels.pop();
        debug_assert!(!self.levels.is_empty(), "the top was left");
    }

    /// Judges an entry of the present directory, and adds it. A directory becomes the present one.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn add(&mut self, entries: &mut Vec<Entry>, entry: Entry) -> Result<(), &'static str> {
        let level = *self.levels.last().expect("the top is never left");
        let number = u32::try_from(entries.len()).map_err(|_| "more than 2^32 entries")?;
        let latest = level.latest.map(|latest| &*entries[latest as usize].name);
        check_name(&entry.name, level.entry.is_none())?;
        if latest.is_some_and(|latest| latest >= &*entry.name) {
            return Err("a path comes twice or out of order");
        }
        let path = level.path + entry.name.len();
        if path > MOST_PATH {
            return Err("a path longer than 4095 octets");
        }
        if entry.mode & !MODES != 0 {
            return Err("a mode beyond 1777");
        }
        if entry.mtime.nanos >= 1_000_000_000 {
            return Err("a time with a second of nanoseconds or more");
        }
        self.bytes =
            self.bytes.checked_add(check_kind(&entry.kind)?).ok_or("more bytes than 2^64")?;
        self.levels.last_mut().expect("the top is never left").latest = Some(number);
        if entry.kind == Kind::Directory {
            if self.depth() == MOST_DEPTH {
                return Err("more than 256 directories above an entry");
            }
            self.levels.push(Level { entry: Some(number), path: path + 1, latest: None });
        }
        entries.push(entry);
        Ok(())
    }
}

fn check_name(name: &[u8], at_top: bool) -> Result<(), &'static str> {
    match name {
        b"" => Err("an empty name"),
        b"." | b".." => Err("a name . or .."),
        _ if name.len() > MOST_NAME => Err("a name longer than 255 octets"),
        _ if name.contains(&b'/') => Err("a name with a slash"),
        _ if name.contains(&0) => Err("a name with NUL"),
        _ if at_top && name.starts_with(crate::journal::PREFIX.as_bytes()) => {
            Err("a name of a transfer's journal")
        }
        _ => Ok(()),
    }
}

/// Returns the bytes of data.
fn check_kind(kind: &Kind) -> Result<u64, &'static str> {
    match kind {
        Kind::Directory => Ok(0),
        Kind::File { size, .. } if *size > MOST_SIZE => Err("a file of 2^63 bytes or more"),
        Kind::File { size, extents } => check_extents(*size, extents),
        Kind::Link { target } if target.is_empty() || target.len() > MOST_PATH => {
            Err("a link's text is empty or longer than 4095 octets")
        }
        Kind::Link { target } if target.contains(&0) => Err("a link's text with NUL"),
        Kind::Link { .. } => Ok(0),
    }
}

fn check_extents(size: u64, extents: &[Extent]) -> Result<u64, &'static str> {
    let (mut end, mut bytes) = (None, 0);
    for &Extent { start, length } in extents {
        if length == 0 || end.is_some_and(|end| start <= end) {
            return Err("extents are empty, out of order or touch");
        }
        let behind = start.checked_add(length).filter(|&behind| behind <= size);
        end = Some(behind.ok_or("an extent outside its file")?);
        bytes += length;
    }
    Ok(bytes)
}
