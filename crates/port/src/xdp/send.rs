//! Sending: frames are copied into shared memory and the kernel is told in one system call.
//!
//! In copy mode the kernel reads the send ring only during that call, in order. What it has not taken
//! when we give up is made invalid in place, and overwritten by the next frames to be sent: a frame
//! reported as refused is never sent after all.

use super::queue::{Frames, Queue, is_ahead};
use crate::SendOutcome;
use crate::sys::Socket;
use crate::transmit::{Progress, is_fatal};

/// Frames for one system call.
const BATCH: usize = 256;
/// Shorter ones have no complete link header; AF_PACKET refuses them with EINVAL.
const SHORTEST: usize = 14;
/// An option bit that no kernel knows: it skips the entry, one in each system call.
const INVALID: u32 = 1 << 31;

pub(super) struct Sender {
    ring: Queue<libc::xdp_desc>,
    completion: Queue<u64>,
    /// Frames that are ours to fill.
    free: Vec<u64>,
    /// The kernel has taken every entry before this one.
    taken: u32,
}

impl Sender {
    pub(super) fn new(
        ring: Queue<libc::xdp_desc>,
        completion: Queue<u64>,
        free: Vec<u64>,
    ) -> Sender {
        Sender { ring, completion, free, taken: 0 }
    }

    /// Sends the frames, each of at most `largest` bytes; as [`crate::transmit::Batch::send`].
    pub(super) fn send(
        &mut self,
        socket: &Socket,
        memory: &mut Frames,
        largest: usize,
        frames: &mut dyn Iterator<Item = &[u8]>,
        outcome: &mut dyn FnMut(usize, SendOutcome),
    ) -> Result<(), i32> {
        let mut progress = Progress::new(outcome);
        for frame in frames {
            let refusal = match frame.len() {
                _ if progress.fatal.is_some() => progress.fatal.map(SendOutcome::Refused),
                length if length > largest => Some(SendOutcome::TooBig),
                length if length < SHORTEST => Some(SendOutcome::Refused(libc::EINVAL)),
                _ if !self.put(memory, frame) => Some(SendOutcome::Refused(libc::ENOBUFS)),
                _ => None,
            };
            // Those before are told first; the order of the outcomes is that of the frames.
            if refusal.is_some() || self.waiting() >= BATCH as u32 {
                self.flush(socket, &mut progress);
            }
            if let Some(refusal) = refusal {
                progress.tell(1, refusal);
            }
        }
        self.flush(socket, &mut progress);
        progress.result()
    }

    fn waiting(&self) -> u32 {
        self.ring.index().wrapping_sub(self.taken)
    }

    /// Copies the frame into shared memory and writes an entry for it; false if there is no room.
    fn put(&mut self, memory: &mut Frames, frame: &[u8]) -> bool {
        if self.free.is_empty() {
            self.reclaim();
        }
        if self.ring.free() == 0 {
            return false;
        }
        let Some(address) = self.free.pop() else { return false };
        let Some(room) = memory.frame(address, frame.len()) else { return false };
        room.copy_from_slice(frame);
        self.ring.write(libc::xdp_desc { addr: address, len: frame.len() as u32, options: 0 });
        true
    }

    /// Takes back the frames that have been sent.
    fn reclaim(&mut self) {
        while let Some(address) = self.completion.read() {
            self.free.push(address);
        }
        self.completion.release();
    }

    /// Has the kernel send what is in the ring, and tells the outcome of all of it.
    fn flush(&mut self, socket: &Socket, progress: &mut Progress<'_>) {
        self.ring.publish();
        while self.waiting() > 0 {
            let answer = socket.kick();
            let moved = self.moved();
            match answer {
                // The device dropped one frame: the last one taken, which the kernel may not show yet.
                Err(libc::EBUSY) => {
                    let before = moved.saturating_sub(1);
                    progress.tell(before as usize, SendOutcome::Sent);
                    progress.tell(1, SendOutcome::Refused(libc::ENOBUFS));
                    self.taken = self.taken.wrapping_add(before + 1);
                }
                _ if moved > 0 => {
                    progress.tell(moved as usize, SendOutcome::Sent);
                    self.taken = self.taken.wrapping_add(moved);
                }
                Err(libc::EINTR) => {}
                Ok(()) | Err(libc::EAGAIN | libc::ENOBUFS) if progress.retry() => self.reclaim(),
                Ok(()) => self.cancel(libc::EAGAIN, progress),
                Err(errno) => self.cancel(errno, progress),
            }
        }
        self.catch_up();
    }

    /// The number of waiting entries that the kernel has taken.
    fn moved(&self) -> u32 {
        let shown = self.ring.consumed();
        // It does not always show that it took the one it dropped.
        let moved = if is_ahead(shown, self.taken) { shown.wrapping_sub(self.taken) } else { 0 };
        // More than waiting: it went on to skip an entry made invalid before.
        moved.min(self.waiting())
    }

    /// Goes on behind what the kernel skipped.
    fn catch_up(&mut self) {
        let shown = self.ring.consumed();
        if is_ahead(shown, self.ring.index()) {
            self.ring.move_to(shown);
            self.taken = shown;
        }
    }

    /// Makes what the kernel has not taken invalid, takes its frames back and starts again there.
    fn cancel(&mut self, errno: i32, progress: &mut Progress<'_>) {
        progress.fatal = progress.fatal.or(is_fatal(errno).then_some(errno));
        let end = self.ring.index();
        for index in (0..self.waiting()).map(|i| self.taken.wrapping_add(i)) {
            let entry = self.ring.entry(index);
            self.ring.overwrite(index, libc::xdp_desc { options: INVALID, ..entry });
            self.free.push(entry.addr);
        }
        self.ring.move_to(self.taken);
        progress.tell(end.wrapping_sub(self.taken) as usize, SendOutcome::Refused(errno));
    }
}
