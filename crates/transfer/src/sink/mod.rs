//! The receiver's side: chunks written beneath its directory.

mod dress;
mod finish;
mod home;
mod parts;
mod standing;
mod targets;
mod walk;

#[cfg(test)]
mod tests;

use crate::hash::{hash, root};
use crate::journal::{Contents, FILE as JOURNAL, Header, Journal, Record, boot, store};
use crate::stream::{Piece, Stream};
use crate::{Halt, Manifest, TransferError};
use home::Home;
use parts::Parts;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub use finish::Finished;
pub use standing::Standing;

/// The name of the manifest in the transfer's own directory: whether names may be replaced, then its octets.
pub(crate) const MANIFEST: &str = "manifest";

/// The receiving side of one transfer in one directory. It writes nowhere outside this directory.
#[derive(Debug)]
pub struct Sink {
    home: Home,
    journal: Journal,
    contents: Contents,
    parts: Parts,
    known: Option<Known>,
    is_over: bool,
    halt: Halt,
}

/// The manifest and what follows from it.
#[derive(Debug)]
struct Known {
    manifest: Manifest,
    stream: Stream,
    replace: bool,
}

impl Sink {
    /// Begins or takes up the transfer `identity` in `directory`, in chunks of `chunk` bytes. Its journal is in a
    /// directory beneath. No data are read.
    ///
    /// # Errors
    /// A directory that is not there or cannot be written; another receiver at work on the transfer; chunks of another
    /// size than before ([`crate::journal::find`] tells which), or of no bytes; a journal's directory that others may
    /// write.
    pub fn open(directory: &Path, identity: [u8; 32], chunk: u32) -> Result<Sink, TransferError> {
        Sink::open_in(directory, identity, chunk, boot())
    }

    /// [`Sink::open`] in a given run of the machine.
    fn open_in(
        directory: &Path,
        identity: [u8; 32],
        chunk: u32,
        boot: Option<[u8; 16]>,
    ) -> Result<Sink, TransferError> {
        if chunk == 0 {
            return Err(TransferError::NoChunk);
        }
        let home = Home::open(directory, &identity)?;
        let header = Header { identity, chunk, boot };
        // A directory without a journal, or with an empty one, is of no worth to who cannot go on.
        let opened = Journal::open(home.own(), home.path(), header);
        let (journal, contents) =
            opened.inspect_err(|_| home.remove_if(matches!(home.load(JOURNAL), Ok(None))))?;
        let parts = Parts::open(home.own(), home.path())
            .inspect_err(|_| home.remove_if(!has_begun(&contents)))?;
        let (known, is_over, halt) = (None, false, Halt::default());
        let mut sink = Sink { home, journal, contents, parts, known, is_over, halt };
        if let Some(octets) = sink.home.load(MANIFEST)?
            && let Some((manifest, replace)) = kept_manifest(&octets, &identity)
        {
            sink.know(manifest, replace);
        }
        Ok(sink)
    }

    /// What takes long, [`Sink::verify`] and [`Sink::finish`], ends with [`TransferError::Stopped`] when `halt` says so; opening and
    /// finishing again goes on from there.
    pub fn heed(&mut self, halt: &Halt) {
        self.halt = halt.clone();
    }

    fn know(&mut self, manifest: Manifest, replace: bool) {
        let stream = Stream::of(&manifest, self.contents.header.chunk);
        let chunks = stream.chunks();
        self.contents.confirmed.retain(|&index, _| index < chunks);
        self.known = Some(Known { manifest, stream, replace });
    }

    fn known(&self) -> Result<&Known, TransferError> {
        self.known.as_ref().ok_or(TransferError::NoManifest)
    }

    /// Returns the manifest; `None` before it has come.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.known.as_ref().map(|known| &known.manifest)
    }

    /// Takes the manifest. A file or a link at a final name is an error unless `replace` is set; then it is replaced
    /// at the end, at once. Directories that stand there already are used.
    ///
    /// # Errors
    /// Octets that are no manifest or that of another transfer; a name that is taken; too little room for the data
    /// that are missing.
    pub fn set_manifest(&mut self, octets: &[u8], replace: bool) -> Result<(), TransferError> {
        if hash(octets) != self.contents.header.identity {
            return Err(TransferError::Identity);
        }
        let manifest = Manifest::decode(octets)?;
        if self.contents.finishing.is_none() {
            targets::check(&self.home, &manifest, replace)?;
            let stream = Stream::of(&manifest, self.contents.header.chunk);
            let here = self.contents.confirmed.keys().map(|&index| stream.length(index)).sum();
            targets::check_room(&self.home, &manifest, here)?;
        }
        let kept = [&[u8::from(replace)], octets].concat();
        store(self.home.own(), MANIFEST, &self.home.path().join(MANIFEST), &kept)?;
        self.know(manifest, replace);
        Ok(())
    }

    /// Lets files and links at the final names be replaced from now on, whatever was said when the manifest came.
    pub fn allow_replacing(&mut self) {
        self.known.iter_mut().for_each(|known| known.replace = true);
    }

    /// Returns the number of chunks; 0 before the manifest has come.
    pub fn chunks(&self) -> u64 {
        self.known.as_ref().map_or(0, |known| known.stream.chunks())
    }

    /// Returns the bytes of a chunk; 0 before the manifest has come, and beyond the last chunk.
    pub fn length(&self, index: u64) -> u64 {
        let known = self.known.as_ref().filter(|known| index < known.stream.chunks());
        known.map_or(0, |known| known.stream.length(index))
    }

    /// Returns the ranges of chunks that are still missing, in order; none before the manifest has come.
    pub fn missing(&self) -> Vec<Range<u64>> {
        let (mut missing, mut next) = (Vec::new(), 0);
        let ends = [self.chunks()];
        for &index in self.contents.confirmed.keys().chain(&ends) {
            if next < index {
                missing.push(next..index);
            }
            next = index + 1;
        }
        missing
    }

    /// Writes a whole chunk, whose data are authenticated, and confirms it in the journal. A chunk that is there with
    /// the same data is left as it is.
    ///
    /// # Errors
    /// No manifest yet; a chunk beyond the last or of another length; a transfer that is being finished, or whose own directory
    /// somebody has removed; a full disk and whatever else the system refuses. After an error the chunk is as it was before, or missing.
    pub fn write(&mut self, index: u64, data: &[u8]) -> Result<(), TransferError> {
        let chunks = self.chunks();
        let known = self.known.as_ref().ok_or(TransferError::NoManifest)?;
        if index >= chunks {
            return Err(TransferError::Beyond { index, chunks });
        }
        let (due, is) = (known.stream.length(index), data.len() as u64);
        if due != is {
            return Err(TransferError::Length { index, due, is });
        }
        let hash = hash(data);
        let kept = self.contents.confirmed.get(&index).copied();
        if kept.is_some_and(|kept| kept.hash == hash && !kept.doubtful) {
            return Ok(());
        }
        if self.contents.finishing.is_some() || self.is_over {
            return Err(TransferError::Finished);
        }
        self.home.check()?;
        if kept.is_some_and(|kept| kept.hash != hash) {
            // Half of it may be overwritten when the machine or the process stops.
            self.record(&Record::Lost(index))?;
        }
        self.lose_gone(index)?;
        let mut rest = data;
        let known = self.known.as_ref().ok_or(TransferError::NoManifest)?;
        for piece in known.stream.pieces(index) {
            let (data, behind) = rest.split_at(piece.length as usize);
            rest = behind;
            self.parts.write(&known.manifest, &piece, data)?;
        }
        self.record(&Record::Chunk(index, hash))
    }

    /// Notes that what was confirmed of the parts of a chunk is missing again if they are gone or cut off before it: once they have their
    /// size again nothing shows any more that they hold zeros instead.
    fn lose_gone(&mut self, index: u64) -> Result<(), TransferError> {
        let known = self.known()?;
        let mut lost = Vec::new();
        for piece in known.stream.pieces(index) {
            let Some(there) = self.parts.cut(&known.manifest, piece.entry)? else { continue };
            let is_behind = |it: Piece| it.entry == piece.entry && it.start + it.length > there;
            let held = self.contents.confirmed.range(known.stream.chunks_of(piece.entry));
            let held = held.map(|(&index, _)| index);
            lost.extend(held.filter(|&index| known.stream.pieces(index).any(is_behind)));
        }
        lost.into_iter().try_for_each(|index| self.record(&Record::Lost(index)))
    }

    fn record(&mut self, record: &Record) -> Result<(), TransferError> {
        self.journal.append(record)?;
        self.contents.apply(record);
        Ok(())
    }

    /// Returns the hash of the whole, BLAKE3 over the chunks' hashes in order; `None` while a chunk or the manifest is
    /// missing.
    pub fn root(&self) -> Option<[u8; 32]> {
        let confirmed = &self.contents.confirmed;
        let is_whole = self.known.is_some() && confirmed.len() as u64 == self.chunks();
        is_whole.then(|| root(confirmed.values().map(|chunk| chunk.hash)))
    }

    /// Throws away the chunks whose hashes differ from these, chunk 0 first, and returns how many: they are missing
    /// again. None are thrown away once names are being given.
    pub fn forget(&mut self, hashes: &[[u8; 32]]) -> u64 {
        if self.contents.finishing.is_some() {
            return 0;
        }
        let confirmed = &self.contents.confirmed;
        let differ = (0..)
            .zip(hashes)
            .filter(|(index, hash)| confirmed.get(index).is_some_and(|chunk| chunk.hash != **hash));
        let differ: Vec<u64> = differ.map(|(index, _)| index).collect();
        for &index in &differ {
            let record = Record::Lost(index);
            // If this cannot be noted, the next start takes the chunk for good, and the root differs once more.
            let _ = self.journal.append(&record);
            self.contents.apply(&record);
        }
        differ.len() as u64
    }

    /// Reads the chunks again that were confirmed before the machine stopped, and returns how many are missing again.
    /// [`Sink::finish`] does so too.
    ///
    /// # Errors
    /// No manifest yet; data that cannot be read; a [halt](Sink::heed).
    pub fn verify(&mut self) -> Result<u64, TransferError> {
        let doubtful = self.contents.confirmed.iter().filter(|(_, chunk)| chunk.doubtful);
        let doubtful: Vec<(u64, [u8; 32])> =
            doubtful.map(|(&index, chunk)| (index, chunk.hash)).collect();
        let (mut lost, mut data) = (0, Vec::new());
        for (index, confirmed) in doubtful {
            self.halt.check()?;
            let known = self.known()?;
            let is_there = self.parts.read(&known.stream, index, &mut data)?;
            if is_there && hash(&data) == confirmed {
                self.record(&Record::Chunk(index, confirmed))?;
            } else {
                self.record(&Record::Lost(index))?;
                lost += 1;
            }
        }
        Ok(lost)
    }

    /// Whether data have come, or names are being given.
    pub fn has_begun(&self) -> bool {
        has_begun(&self.contents)
    }

    /// Throws the transfer away: its journal and what has come of it.
    ///
    /// # Errors
    /// A directory that cannot be renamed.
    pub fn discard(self) -> Result<(), TransferError> {
        self.home.remove()
    }

    /// Returns the directory that holds the journal and the data until the end.
    pub fn journal_path(&self) -> PathBuf {
        self.home.path().into()
    }
}

fn has_begun(contents: &Contents) -> bool {
    !contents.confirmed.is_empty() || contents.finishing.is_some()
}

/// Returns the manifest kept in a file, and whether names may be replaced; `None` if it is not that of the transfer.
pub(crate) fn kept_manifest(octets: &[u8], identity: &[u8; 32]) -> Option<(Manifest, bool)> {
    let (&replace, octets) = octets.split_first()?;
    if hash(octets) != *identity {
        return None;
    }
    Manifest::decode(octets).ok().map(|manifest| (manifest, replace == 1))
}
