//! What a connection of the sender carries: the manifest if it is wanted, chunks as they are read, and behind the last chunk
//! that is missing the root of all.

use crate::flow::{Feed, Loaded, Octets};
use crate::send::Sending;
use crate::{Cut, MoverError};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError};
use trunkline_core::{Span, Time};
use trunkline_transfer::{Source, TransferError, root};

/// Octets of a root.
pub(crate) const ROOT: usize = 32;
/// From one word about progress to the next.
const TELL: Span = Span::from_millis(100);

/// What becomes of the room behind the manifest in its last buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// Zeros fill it up.
    Filled,
    /// The buffer is shorter, as both ends know.
    Unfilled,
}

/// The chunks of one connection.
pub(crate) struct Job {
    /// Those that are sent, in order.
    pub list: Vec<u64>,
    /// Those that the receiver has and this run has not read, if the root goes behind the list.
    pub rest: Option<Vec<u64>>,
    pub cut: Cut,
}

/// A result of reading.
#[derive(Debug)]
pub(crate) enum Read {
    /// The chunks of a buffer, and their numbers and hashes.
    Buffer(Vec<u8>, Vec<(u64, [u8; 32])>),
    /// The hash of a chunk that the receiver has, and its octets.
    Hash(u64, [u8; 32], u64),
    /// All that the root needs has been read, and no file has changed meanwhile.
    End,
}

/// Reads what `job` needs as long as somebody takes it, into buffers that come back.
pub(crate) fn read(
    source: &mut Source,
    job: &Job,
    to: &SyncSender<Result<Read, MoverError>>,
    spare: &Receiver<Vec<u8>>,
) {
    // If nobody takes it the connection has ended.
    let give = |read: Result<Read, MoverError>| {
        let failed = read.is_err();
        to.send(read).is_ok() && !failed
    };
    for numbers in job.list.chunks(job.cut.each as usize) {
        let mut data = spare.try_recv().unwrap_or_default();
        data.clear();
        let mut hashed =
            |&number| source.append(number, job.cut.chunk, &mut data).map(|hash| (number, hash));
        let hashes: Result<_, TransferError> = numbers.iter().map(&mut hashed).collect();
        if !give(hashes.map(|hashes| Read::Buffer(data, hashes)).map_err(MoverError::from)) {
            return;
        }
    }
    let Some(rest) = &job.rest else { return };
    let mut data = Vec::new();
    for &number in rest {
        let read = source.read(number, job.cut.chunk, &mut data);
        let read = read.map(|hash| Read::Hash(number, hash, data.len() as u64));
        if !give(read.map_err(MoverError::from)) {
            return;
        }
    }
    give(source.unchanged().map(|()| Read::End).map_err(MoverError::from));
}

/// Chunks as they are read, and what becomes of them.
pub(crate) struct Chunks<'a> {
    /// What goes before them, and the buffers that it fills.
    pub head: Option<(Octets<'a>, Head)>,
    pub heads: u64,
    pub job: &'a Job,
    pub read: Receiver<Result<Read, MoverError>>,
    /// Buffers that the reader may fill again.
    pub spare: Sender<Vec<u8>>,
    pub hashes: &'a mut [Option<[u8; 32]>],
    pub progress: Progress<'a>,
    /// Chunks taken, and the last buffer, which waits for the root.
    pub taken: usize,
    pub waiting: Option<Vec<u8>>,
}

/// How far a connection is, and who is told.
pub(crate) struct Progress<'a> {
    /// Octets confirmed in all runs, of so many.
    pub confirmed: u64,
    pub all: u64,
    /// Octets confirmed in this run.
    pub moved: &'a mut u64,
    /// Octets read for the root alone, of so many.
    pub verified: u64,
    pub unread: u64,
    pub began: Time,
    pub told: Time,
    pub tell: &'a mut dyn FnMut(&Sending),
}

impl Chunks<'_> {
    fn head(&mut self) -> Option<Loaded> {
        let (octets, filling) = self.head.as_mut()?;
        let (mut data, is_end) = octets.take()?;
        let last = is_end && self.job.list.is_empty() && self.job.rest.is_none();
        if !last && *filling == Head::Filled {
            data.resize(self.job.cut.buffer() as usize, 0);
        }
        Some(Loaded { data, last })
    }

    /// The chunks of a buffer have been read. The last buffer waits for the root if that goes behind it and has room there.
    fn buffer(&mut self, mut data: Vec<u8>, hashes: Vec<(u64, [u8; 32])>) -> Option<Loaded> {
        self.taken += hashes.len();
        for (number, hash) in hashes {
            self.hashes[number as usize] = Some(hash);
        }
        let is_end = self.taken == self.job.list.len();
        let Some(_) = self.job.rest else { return Some(Loaded { data, last: is_end }) };
        let most = self.job.cut.buffer() as usize;
        if is_end && data.len() + ROOT <= most {
            self.waiting = Some(data);
            return None;
        }
        // Of chunks only the last buffer of a connection may be shorter.
        data.resize(most, 0);
        Some(Loaded { data, last: false })
    }

    /// Everything has been read: the root goes behind what waits for it.
    fn tail(&mut self) -> Loaded {
        let root = root(self.hashes.iter().map(|it| it.unwrap_or_default()));
        let mut data = self.waiting.take().unwrap_or_default();
        data.extend(root);
        Loaded { data, last: true }
    }
}

impl Feed for Chunks<'_> {
    fn next(&mut self) -> Result<Option<Loaded>, MoverError> {
        if let Some(head) = self.head() {
            return Ok(Some(head));
        }
        loop {
            let read = match self.read.try_recv() {
                Ok(read) => read?,
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => {
                    return Err(MoverError::Broken("the reader has gone"));
                }
            };
            let loaded = match read {
                Read::Buffer(data, hashes) => self.buffer(data, hashes),
                Read::Hash(number, hash, octets) => {
                    self.hashes[number as usize] = Some(hash);
                    self.progress.verified += octets;
                    None
                }
                Read::End => Some(self.tail()),
            };
            if loaded.is_some() {
                return Ok(loaded);
            }
        }
    }

    fn confirmed(&mut self, buffer: u64, data: Vec<u8>) {
        // If the reader has ended it needs no more room.
        let _ = self.spare.send(data);
        // The manifest is none of the data, nor is the root or what fills up a short chunk.
        let Some(number) = buffer.checked_sub(self.heads) else { return };
        let (chunk, all) = (u64::from(self.job.cut.chunk), self.progress.all);
        let chunks = self.job.list.chunks(self.job.cut.each as usize).nth(number as usize);
        let octets = chunks.unwrap_or_default().iter().map(|it| chunk.min(all - it * chunk));
        self.progress.confirmed(octets.sum());
    }

    fn tell(&mut self, now: Time, packets: (u64, u64)) {
        self.progress.tell(now, packets);
    }
}

impl Progress<'_> {
    fn confirmed(&mut self, octets: u64) {
        *self.moved += octets;
        self.confirmed = (self.confirmed + octets).min(self.all);
    }

    fn tell(&mut self, now: Time, (packets, again): (u64, u64)) {
        if now < self.told + TELL {
            return;
        }
        self.told = now;
        let is_verifying = self.verified > 0 && self.confirmed == self.all;
        (self.tell)(&match is_verifying {
            true => Sending::Verify { read: self.verified, bytes: self.unread },
            false => Sending::Send {
                confirmed: self.confirmed,
                bytes: self.all,
                moved: *self.moved,
                seconds: now.since(self.began).as_secs_f64(),
                again_share: again as f64 / packets.max(1) as f64,
            },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress<'a>(moved: &'a mut u64, tell: &'a mut dyn FnMut(&Sending)) -> Progress<'a> {
        let (verified, unread, all) = (0, 0, 150);
        let (began, told) = (Time::ZERO, Time::ZERO);
        Progress { confirmed: 0, all, moved, verified, unread, began, told, tell }
    }

    /// The octets of the buffers with a list of 250 octets, and whether each is the last, in a job of these chunks with or without a root.
    fn heads(filling: Head, list: Vec<u64>, has_root: bool) -> Vec<(usize, bool)> {
        let (octets, cut) = ([7; 250], Cut { chunk: 50, each: 2 });
        let job = Job { list, rest: has_root.then(Vec::new), cut };
        let (_to, read) = std::sync::mpsc::sync_channel(1);
        let (spare, _spare) = std::sync::mpsc::channel();
        let (mut moved, mut hashes, tell) = (0, [None; 3], &mut |_: &Sending| ());
        let mut chunks = Chunks {
            head: Some((Octets::new(&octets, cut.buffer()), filling)),
            heads: 3,
            job: &job,
            read,
            spare,
            hashes: &mut hashes,
            progress: progress(&mut moved, tell),
            taken: 0,
            waiting: None,
        };
        let all: Vec<Loaded> = std::iter::from_fn(|| chunks.next().unwrap()).collect();
        let zeros = all.iter().flat_map(|it| &it.data).skip(octets.len());
        assert!(zeros.copied().all(|it| it == 0));
        all.iter().map(|it| (it.data.len(), it.last)).collect()
    }

    /// A receiver of an earlier version knows no buffer that is shorter than others but the last: zeros fill the list's up, unless nothing
    /// follows it.
    #[test]
    fn the_end_of_a_list_is_filled_up_for_earlier_versions() {
        let all = |last, is_last| vec![(100, false), (100, false), (last, is_last)];
        for (list, has_root) in [(vec![0, 1, 2], true), (vec![0], false), (vec![], true)] {
            assert_eq!(heads(Head::Filled, list.clone(), has_root), all(100, false));
            assert_eq!(heads(Head::Unfilled, list, has_root), all(50, false));
        }
        assert_eq!(heads(Head::Filled, vec![], false), all(50, true));
    }

    /// If the receiver has lost what it had, more is moved than there is.
    #[test]
    fn progress_goes_on_if_more_is_moved_than_there_is() {
        let (mut moved, mut told) = (100, Vec::new());
        let tell = &mut |what: &Sending| told.push(what.clone());
        let mut progress = progress(&mut moved, tell);
        progress.confirmed(150);
        progress.tell(Time::ZERO + TELL, (10, 1));
        (progress.verified, progress.unread) = (30, 40);
        progress.tell(Time::ZERO + TELL.scaled(2, 1), (10, 1));
        let seconds = TELL.as_secs_f64();
        let sent =
            Sending::Send { confirmed: 150, bytes: 150, moved: 250, seconds, again_share: 0.1 };
        assert_eq!(told, [sent, Sending::Verify { read: 30, bytes: 40 }]);
    }
}
