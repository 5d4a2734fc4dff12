//! The receiver's disk, on a thread of its own: what it is told to do it does in order, and answers.

use crate::MoverError;
use crate::words::{Answer, Offer};
use rustix::fs::{Access, access};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use trunkline_transfer::journal::directory_name;
use trunkline_transfer::{Finished, Halt, Manifest, Sink, Standing, TransferError};

/// Something to do.
#[derive(Debug)]
pub enum Task {
    /// A transfer may be offered: it is to be looked whether it is a new one. Nothing changes.
    Look(Offer),
    /// A transfer is offered.
    Offer(Offer),
    /// The manifest has come.
    Manifest(Vec<u8>),
    /// A chunk has come whose buffer is not whole.
    Chunk(u64, Vec<u8>),
    /// A buffer is whole: the numbers of chunks in it that have not been given yet, and where they lie.
    Buffer(Vec<(u64, Range<usize>)>, Vec<u8>),
    /// The hashes of all chunks have come.
    Hashes(Vec<u8>),
    /// This is the root of all chunks.
    Finish([u8; 32]),
    /// The end of a transfer has been heard, and that of another may follow.
    Renew,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Done {
    /// Whether a transfer is a new one.
    Looked(bool),
    /// What is wanted of the offer.
    Wanted(Wanted),
    /// The manifest is there, and says this.
    Known { had: u64, bytes: u64, name: String },
    /// So many octets of chunks are on the disk.
    Written(u64),
    /// So are all chunks of this buffer, whose room is free.
    Emptied(Vec<u8>),
    /// So many entries are in their places, of so many.
    Placing(u64, u64),
    /// What the sender is told of its root, without an end.
    Root(Answer),
    /// Everything is in its place.
    Finished(Finished),
    /// It cannot go on.
    Failed(TransferError),
}

/// What is wanted of a transfer, and what is known of it.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub offer: Offer,
    pub answer: Answer,
    /// Octets of its chunks: those that are there, and all.
    pub had: u64,
    pub bytes: u64,
    pub name: String,
}

/// The thread, and the ways to it.
#[derive(Debug)]
pub(crate) struct Desk {
    tasks: Option<Sender<Task>>,
    done: Receiver<Done>,
    halt: Halt,
    thread: Option<JoinHandle<()>>,
}

impl Desk {
    /// A desk for this directory, whose files may be replaced or not.
    pub fn start(directory: PathBuf, replace: bool) -> Result<Desk, MoverError> {
        let (tasks, to_do) = channel();
        let (answers, done) = channel();
        let halt = Halt::default();
        let clerk = Clerk {
            directory,
            sink: None,
            standing: None,
            has_failed: false,
            replace,
            answers,
            halt: halt.clone(),
        };
        let thread = Builder::new().name("disk".into()).spawn(move || clerk.work(&to_do));
        let thread = thread.map_err(MoverError::system("cannot start a thread"))?;
        Ok(Desk { tasks: Some(tasks), done, halt, thread: Some(thread) })
    }

    /// Gives it something to do.
    pub fn give(&self, task: Task) {
        // If the thread has gone it has said why.
        let _ = self.tasks.as_ref().map(|tasks| tasks.send(task));
    }

    /// Tells it to begin no end and to go on with none: what it reads and puts in place may take minutes.
    pub fn halt(&self) {
        self.halt.set();
    }

    /// What came of something, if anything has been done.
    pub fn done(&self) -> Option<Done> {
        self.done.try_recv().ok()
    }

    /// The next of that, which is waited for.
    #[cfg(test)]
    pub fn next(&self) -> Option<Done> {
        self.done.recv_timeout(std::time::Duration::from_secs(20)).ok()
    }
}

impl Drop for Desk {
    /// Waits until everything that it was given is on the disk.
    fn drop(&mut self) {
        self.tasks = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Clerk {
    directory: PathBuf,
    /// The transfer at work.
    sink: Option<(Offer, Sink)>,
    /// A transfer all of which stands under its final names already, its root, and the first of these names.
    standing: Option<(Standing, [u8; 32], PathBuf)>,
    /// Whether it cannot go on, and whoever gives it something to do may not have heard that yet.
    has_failed: bool,
    replace: bool,
    answers: Sender<Done>,
    halt: Halt,
}

impl Clerk {
    fn work(mut self, tasks: &Receiver<Task>) {
        for task in tasks {
            let is_buffer = matches!(task, Task::Buffer(..));
            let done = self.one(task).unwrap_or_else(|error| {
                // What is in the journal stays. Whoever offers the transfer again begins with that.
                (self.sink, self.standing, self.has_failed) = (None, None, true);
                if is_buffer {
                    let _ = self.answers.send(Done::Emptied(Vec::new()));
                }
                Some(Done::Failed(error))
            });
            if let Some(done) = done
                && self.answers.send(done).is_err()
            {
                return;
            }
        }
    }

    fn one(&mut self, task: Task) -> Result<Option<Done>, TransferError> {
        if let Task::Look(offer) = task {
            let own = self.directory.join(directory_name(&offer.identity));
            let is_absent = |error: io::Error| error.kind() == ErrorKind::NotFound;
            let is_new = own.symlink_metadata().is_err_and(is_absent);
            return Ok(Some(Done::Looked(is_new)));
        }
        if self.has_failed {
            return Ok(self.after_failure(task));
        }
        let Some((at_work, sink)) = &mut self.sink else {
            return match task {
                Task::Offer(offer) => self.open(&offer).map(Some),
                // A sender that has not heard yet that all is there.
                Task::Buffer(_, data) => Ok(Some(Done::Emptied(data))),
                Task::Finish(root) => self.finish(&root).map(Some),
                _ => Ok(None),
            };
        };
        match task {
            Task::Offer(offer) if *at_work == offer => Ok(Some(Done::Wanted(wanted(&offer, sink)))),
            Task::Offer(offer) => {
                // Its lock is let go before the other's is taken.
                self.sink = None;
                self.open(&offer).map(Some)
            }
            Task::Manifest(octets) => match sink.set_manifest(&octets, self.replace) {
                Ok(()) => {
                    let Wanted { had, bytes, name, .. } = wanted(at_work, sink);
                    Ok(Some(Done::Known { had, bytes, name }))
                }
                Err(error) => self.refused(error, &octets).map(|()| None),
            },
            Task::Chunk(number, data) => Ok(Some(Done::Written(write(sink, number, &data)?))),
            Task::Buffer(chunks, data) => {
                for (number, place) in chunks {
                    let written = write(sink, number, &data[place])?;
                    // If nobody takes it the receiver has ended.
                    let _ = self.answers.send(Done::Written(written));
                }
                Ok(Some(Done::Emptied(data)))
            }
            Task::Hashes(octets) => {
                let (hashes, _) = octets.as_chunks::<32>();
                sink.forget(hashes);
                Ok(None)
            }
            Task::Finish(root) => self.finish(&root).map(Some),
            Task::Look(_) | Task::Renew => Ok(None),
        }
    }

    /// What was given before the failure was heard begins nothing, or what was refused would be begun anew.
    fn after_failure(&mut self, task: Task) -> Option<Done> {
        match task {
            Task::Buffer(_, data) => Some(Done::Emptied(data)),
            Task::Renew => {
                self.has_failed = false;
                None
            }
            _ => None,
        }
    }

    /// A list is refused: nothing is left of the transfer, unless some of it had come before. If files stand under its names they may
    /// be those that the list names.
    fn refused(&mut self, error: TransferError, manifest: &[u8]) -> Result<(), TransferError> {
        let (offer, sink) = self.sink.take().ok_or(TransferError::NoManifest)?;
        if !sink.has_begun() {
            // The reason is worth more than why its list stays.
            let _ = sink.discard();
        }
        match &error {
            TransferError::Exists(_) if self.stands(&offer, manifest)? => Ok(()),
            _ => Err(error),
        }
    }

    /// Whether all that this manifest names stands there already, as a receiver leaves it that finished when its sender was
    /// gone. What has the right sizes and times is told at once, so that its sender stops; then it is read, and its root is held
    /// against the sender's.
    ///
    /// # Errors
    /// If it was told to stop before it had read all.
    fn stands(&mut self, offer: &Offer, manifest: &[u8]) -> Result<bool, TransferError> {
        let Ok(manifest) = Manifest::decode(manifest) else { return Ok(false) };
        let Some(mut standing) = Standing::find(&self.directory, &manifest, &self.halt)? else {
            return Ok(false);
        };
        let bytes = manifest.stream_bytes();
        // If nobody takes them the receiver has ended.
        let _ = self.answers.send(Done::Known { had: bytes, bytes, name: manifest.name() });
        let _ = self.answers.send(Done::Root(Answer::Whole));
        let first = self.directory.join(manifest.path(0));
        self.standing = standing.root(offer.cut.chunk)?.map(|root| (standing, root, first));
        Ok(self.standing.is_some())
    }

    fn open(&mut self, offer: &Offer) -> Result<Done, TransferError> {
        self.standing = None;
        let mut sink = Sink::open(&self.directory, offer.identity, offer.cut.chunk)?;
        sink.heed(&self.halt);
        if self.replace {
            sink.allow_replacing();
        }
        let (offer, sink) = self.sink.insert((*offer, sink));
        Ok(Done::Wanted(wanted(offer, sink)))
    }

    fn finish(&mut self, root: &[u8; 32]) -> Result<Done, TransferError> {
        self.halt.check()?;
        let Some((offer, sink)) = &mut self.sink else {
            return match &self.standing {
                Some((standing, own, _)) if own == root => standing.dress().map(Done::Finished),
                Some((.., first)) => Err(TransferError::Otherwise(first.clone())),
                None => Ok(Done::Root(Answer::All)),
            };
        };
        sink.verify()?;
        match sink.root() {
            None => return Ok(Done::Root(wanted(offer, sink).answer)),
            Some(own) if own != *root => return Ok(Done::Root(Answer::Differs)),
            Some(_) => {}
        }
        let answers = &self.answers;
        let told = &mut |done, all| _ = answers.send(Done::Placing(done, all));
        let finished = sink.finish(root, told)?;
        self.sink = None;
        Ok(Done::Finished(finished))
    }
}

/// Makes the directory if it is not there; those that it is in must be. One that is there must let this user read and write.
pub(crate) fn make(directory: &Path) -> Result<(), MoverError> {
    let cannot = |doing: &str, cause| {
        let what = format!("cannot {doing} the directory {}", directory.display());
        Err(MoverError::system(what)(cause))
    };
    match std::fs::create_dir(directory) {
        Ok(()) => Ok(()),
        Err(_) if directory.is_dir() => {
            let rights = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
            access(directory, rights).or_else(|cause| cannot("use", cause.into()))
        }
        Err(cause) if cause.kind() == ErrorKind::AlreadyExists => {
            let is_none = std::io::Error::other("it is no directory: name another");
            cannot("use", is_none)
        }
        Err(cause) => cannot("make", cause),
    }
}

/// Writes a chunk, behind which there may be what fills its buffer up. Answers its octets.
fn write(sink: &mut Sink, number: u64, data: &[u8]) -> Result<u64, TransferError> {
    let length = sink.length(number);
    let data = &data[..data.len().min(length as usize)];
    sink.write(number, data).map(|()| length)
}

fn wanted(offer: &Offer, sink: &Sink) -> Wanted {
    let offer = *offer;
    let Some(manifest) = sink.manifest() else {
        return Wanted { offer, answer: Answer::All, had: 0, bytes: 0, name: String::new() };
    };
    let (bytes, name, ranges) = (manifest.stream_bytes(), manifest.name(), sink.missing());
    let missing: u64 = ranges.iter().map(|it| it.end - it.start).sum();
    // The last chunk may be short.
    let is_last_there = ranges.last().is_none_or(|it| it.end < sink.chunks());
    let chunk = u64::from(offer.cut.chunk);
    let there = (sink.chunks() - missing).saturating_mul(chunk);
    let short = sink.chunks().saturating_mul(chunk).saturating_sub(bytes);
    let had = if is_last_there { there.saturating_sub(short) } else { there };
    let answer = match ranges.is_empty() {
        true => Answer::Whole,
        false => Answer::Want { ranges, missing, had: Some(had) },
    };
    Wanted { offer, answer, had, bytes, name }
}
