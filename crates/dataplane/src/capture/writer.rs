//! The thread that takes records from the ring to the disk.

use super::pcapng::{self, LARGEST_BLOCK, Statistics, first_block};
use super::{CaptureError, CapturePlan, CaptureTap, Recorder};
use rtrb::{Consumer, Producer, RingBuffer};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::Duration;

/// Memory for records that wait for the disk: half a second of 1 Gbit/s, each frame seen twice.
const RING: usize = 64 << 20;
/// Bytes handed to the system at once, at most.
const BATCH: usize = 1 << 20;
/// The time that an idle writer sleeps. The dataplane does not wake it: that would be a system call for
/// each record. In this time [`RING`] takes 50 Gbit/s.
const NAP: Duration = Duration::from_millis(10);

/// A capture: how it is started.
#[derive(Debug)]
pub struct Capture;

/// The result of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureSummary {
    /// Records in the file.
    pub written: u64,
    /// Records left out because the disk did not keep up.
    pub missed: u64,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// The main thread's hold on a capture. Dropping it ends the capture as [`CaptureHandle::finish`]
/// does, but nobody hears how it went.
#[derive(Debug)]
pub struct CaptureHandle {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<CaptureSummary, CaptureError>>>,
}

/// The state that dataplane, writer and main thread have in common.
#[derive(Debug)]
pub(super) struct Shared {
    stop: AtomicBool,
    failed: AtomicBool,
    error: Mutex<Option<CaptureError>>,
    /// For each interface.
    missed: Box<[AtomicU64]>,
}

impl Shared {
    fn new(interfaces: usize) -> Shared {
        let missed = (0..interfaces).map(|_| AtomicU64::new(0)).collect();
        let (stop, failed) = (AtomicBool::new(false), AtomicBool::new(false));
        Shared { stop, failed, error: Mutex::new(None), missed }
    }

    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub fn failure(&self) -> Option<String> {
        if !self.has_failed() {
            return None;
        }
        let error = self.error.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        error.as_ref().map(CaptureError::to_string)
    }

    /// Counts a record that was left out. Only the dataplane counts.
    pub fn miss(&self, interface: u32) {
        self.missed[interface as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn missed(&self, interface: u32) -> u64 {
        self.missed[interface as usize].load(Ordering::Relaxed)
    }

    fn fail(&self, error: CaptureError) {
        *self.error.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
        self.failed.store(true, Ordering::Release);
    }
}

impl Capture {
    /// Starts a capture as `plan` says into `path`, which is overwritten. `command_line` goes into the file. The tap
    /// is for the dataplane, the handle for whoever ends the run.
    ///
    /// # Errors
    /// If the file cannot be made, has no room for its header, or no thread can be had.
    pub fn start(
        path: &Path,
        command_line: &str,
        plan: CapturePlan,
    ) -> Result<(CaptureTap, CaptureHandle), CaptureError> {
        Capture::start_with_ring(path, command_line, plan, RING)
    }

    /// The same with another amount of memory, in bytes, for records that wait for the disk; at least
    /// one record of the largest size has room.
    ///
    /// # Errors
    /// As [`Capture::start`].
    pub fn start_with_ring(
        path: &Path,
        command_line: &str,
        plan: CapturePlan,
        ring: usize,
    ) -> Result<(CaptureTap, CaptureHandle), CaptureError> {
        let file = create_file(path).map_err(|error| CaptureError::create(path, &error))?;
        let (producer, consumer) = prepared_ring(ring.max(LARGEST_BLOCK));
        let shared = Arc::new(Shared::new(plan.interfaces.len()));
        let mut writer = Writer::new(path, file, consumer, Arc::clone(&shared));
        let application = concat!("trunkline ", env!("CARGO_PKG_VERSION"));
        writer
            .put(&pcapng::header(application, command_line, &plan.interfaces))
            .map_err(|error| CaptureError::write(path, &error))?;
        let thread = Builder::new()
            .name("capture".into())
            .spawn(move || writer.run())
            .map_err(|error| CaptureError::thread(path, &error.to_string()))?;
        let block = Vec::with_capacity(LARGEST_BLOCK);
        let recorder = Recorder { ring: producer, block, plan, shared: Arc::clone(&shared) };
        let handle = CaptureHandle { path: path.to_owned(), shared, thread: Some(thread) };
        Ok((CaptureTap(Some(Box::new(recorder))), handle))
    }
}

/// Makes a file, or empties the one that is there. A pipe is written to if somebody reads it; nobody is waited for.
///
/// # Errors
/// As those of [`File::create`]; `NotConnected` if nobody reads a pipe.
pub fn create_file(path: &Path) -> io::Result<File> {
    let nonblock = OFlags::NONBLOCK.bits().cast_signed();
    let opened =
        File::options().write(true).create(true).truncate(true).custom_flags(nonblock).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NXIO) => io::Error::new(
            ErrorKind::NotConnected,
            "nobody reads this pipe; start its reader first",
        ),
        _ => error,
    })?;
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags.difference(OFlags::NONBLOCK))?;
    Ok(file)
}

/// A ring whose pages are there already, so that the dataplane does not meet them one by one.
fn prepared_ring(bytes: usize) -> (Producer<u8>, Consumer<u8>) {
    let (mut producer, mut consumer) = RingBuffer::new(bytes);
    let zeros = vec![0; BATCH];
    while !producer.push_partial_slice(&zeros).0.is_empty() {}
    if let Ok(filled) = consumer.read_chunk(consumer.slots()) {
        filled.commit_all();
    }
    (producer, consumer)
}

impl CaptureHandle {
    /// The reason why the capture has ended before its time, if it has: one line with cause and remedy.
    pub fn failed(&self) -> Option<String> {
        self.shared.failure()
    }

    /// Ends the capture: what the dataplane has recorded so far is written, and the statistics behind
    /// it. Takes as long as the disk does.
    ///
    /// # Errors
    /// If the file could not be written to the end. What stands in it can be read all the same.
    pub fn finish(mut self) -> Result<CaptureSummary, CaptureError> {
        self.end().unwrap_or_else(|| Err(CaptureError::thread(&self.path, "it has ended already")))
    }

    fn end(&mut self) -> Option<Result<CaptureSummary, CaptureError>> {
        let thread = self.thread.take()?;
        self.shared.stop.store(true, Ordering::Release);
        thread.thread().unpark();
        let failed = |_| Err(CaptureError::thread(&self.path, "the writer panicked; report it"));
        Some(thread.join().unwrap_or_else(failed))
    }
}

impl Drop for CaptureHandle {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.end() {
            tracing::warn!("{error}");
        }
    }
}

/// The writer's state.
struct Writer {
    path: PathBuf,
    file: File,
    ring: Consumer<u8>,
    shared: Arc<Shared>,
    /// Bytes from the ring; those from `held` on are not used.
    batch: Vec<u8>,
    held: usize,
    /// Whole blocks in the file: their bytes, and the records among them.
    length: u64,
    written: Vec<u64>,
    started: u64,
}

impl Writer {
    fn new(path: &Path, file: File, ring: Consumer<u8>, shared: Arc<Shared>) -> Writer {
        let written = vec![0; shared.missed.len()];
        Writer {
            path: path.to_owned(),
            file,
            ring,
            shared,
            batch: vec![0; BATCH],
            held: 0,
            length: 0,
            written,
            started: realtime(),
        }
    }

    fn run(mut self) -> Result<CaptureSummary, CaptureError> {
        match self.work() {
            Ok(summary) => Ok(summary),
            Err(error) => {
                let error = CaptureError::write(&self.path, &error);
                self.shared.fail(error.clone());
                Err(error)
            }
        }
    }

    fn work(&mut self) -> io::Result<CaptureSummary> {
        loop {
            // Looked at before the ring is: whatever was recorded before the end is written.
            let last = self.shared.stop.load(Ordering::Acquire) || self.ring.is_abandoned();
            let ready = self.ring.slots();
            self.drain(ready)?;
            if last {
                return self.conclude();
            }
            if ready == 0 {
                park_timeout(NAP);
            }
        }
    }

    /// Writes the next `ready` bytes of the ring.
    fn drain(&mut self, mut ready: usize) -> io::Result<()> {
        while ready > 0 {
            let take = ready.min(self.batch.len() - self.held);
            let room = &mut self.batch[self.held..self.held + take];
            self.ring.pop_entire_slice(room).map_err(io::Error::other)?;
            self.held += take;
            ready -= take;
            self.write_batch()?;
        }
        Ok(())
    }

    /// Writes the whole blocks of the batch; a part of one stays for the next time.
    fn write_batch(&mut self) -> io::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        let whole = blocks(&batch[..self.held]).map(|(length, _)| length).sum();
        let result = self.put(&batch[..whole]);
        self.batch = batch;
        self.batch.copy_within(whole..self.held, 0);
        self.held -= whole;
        result
    }

    /// Writes whole blocks. If that fails, the file is cut behind the last that is there whole.
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (done, result) = write_counted(&mut self.file, bytes);
        for (length, interface) in blocks(&bytes[..done]) {
            self.length += length as u64;
            let count = interface.and_then(|it| self.written.get_mut(it as usize));
            count.into_iter().for_each(|count| *count += 1);
        }
        if result.is_err()
            && let Err(error) = self.file.set_len(self.length)
        {
            tracing::debug!(%error, "the last block may be cut short: not a file of fixed content");
        }
        result
    }

    /// The statistics, one block for each interface.
    fn conclude(&mut self) -> io::Result<CaptureSummary> {
        let times = (self.started, realtime());
        let mut out = Vec::new();
        for interface in 0..self.written.len() as u32 {
            let (written, missed) =
                (self.written[interface as usize], self.shared.missed(interface));
            Statistics { interface, times, written, missed }.encode(&mut out);
        }
        self.put(&out)?;
        let missed = (0..self.written.len() as u32).map(|interface| self.shared.missed(interface));
        let (written, missed) = (self.written.iter().sum(), missed.sum());
        Ok(CaptureSummary { written, missed, bytes: self.length })
    }
}

/// The whole blocks at the start of `bytes`: length, and the interface if it is a packet.
fn blocks(mut bytes: &[u8]) -> impl Iterator<Item = (usize, Option<u32>)> {
    std::iter::from_fn(move || {
        let first = first_block(bytes)?;
        bytes = &bytes[first.0..];
        Some(first)
    })
}

/// Writes `bytes` and says how many of them went, also if not all did.
fn write_counted(file: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut done = 0;
    while done < bytes.len() {
        match file.write(&bytes[done..]) {
            Ok(0) => return (done, Err(ErrorKind::WriteZero.into())),
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (done, Err(error)),
        }
    }
    (done, Ok(()))
}

fn realtime() -> u64 {
    let time = clock_gettime(ClockId::Realtime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
