//! Sending in batches with sendmmsg(2).
#![allow(unsafe_code)]

use crate::SendOutcome;
use crate::sys::{Socket, errno};
use std::mem::zeroed;

/// Frames in one system call.
const BATCH: usize = 64;
/// The number of times one [`Batch::send`] tries again when the device is busy: for some milliseconds in all. The
/// queue of a virtual device whose receiver works on another processor may be full for as long as
/// that processor does something else.
const RETRIES: u32 = 4096;
/// Spins between two tries, together about a microsecond.
const SPINS: u32 = 40;

/// The message headers of a batch, allocated once.
pub(crate) struct Batch {
    messages: Box<[libc::mmsghdr; BATCH]>,
    vectors: Box<[libc::iovec; BATCH]>,
}

// SAFETY: the pointers in the arrays are followed only within `send`, which sets them afresh.
unsafe impl Send for Batch {}

/// A call of `send` under way.
pub(crate) struct Progress<'o> {
    /// Frames whose outcome was told.
    told: usize,
    retries: u32,
    /// The device is down or gone: nothing more is tried.
    pub(crate) fatal: Option<i32>,
    outcome: &'o mut dyn FnMut(usize, SendOutcome),
}

impl Progress<'_> {
    pub(crate) fn new(outcome: &mut dyn FnMut(usize, SendOutcome)) -> Progress<'_> {
        Progress { told: 0, retries: RETRIES, fatal: None, outcome }
    }

    /// Tells the outcome of the next `count` frames.
    pub(crate) fn tell(&mut self, count: usize, outcome: SendOutcome) {
        for index in self.told..self.told + count {
            (self.outcome)(index, outcome);
        }
        self.told += count;
    }

    /// Whether a busy device may be tried again. If so, a moment has passed.
    pub(crate) fn retry(&mut self) -> bool {
        let left = self.retries > 0;
        if left {
            self.retries -= 1;
            (0..SPINS).for_each(|_| std::hint::spin_loop());
        }
        left
    }

    /// The device's error, if it is down or gone.
    pub(crate) fn result(&self) -> Result<(), i32> {
        self.fatal.map_or(Ok(()), Err)
    }
}

impl Batch {
    pub(crate) fn new() -> Batch {
        // SAFETY: both are C structures in which zeros and null pointers are valid.
        unsafe { Batch { messages: Box::new(zeroed()), vectors: Box::new(zeroed()) } }
    }

    /// Sends the frames in order; tells each one's outcome. An error number means that the device is
    /// down (ENETDOWN) or gone (ENODEV, ENXIO).
    pub(crate) fn send(
        &mut self,
        socket: &Socket,
        frames: &mut dyn Iterator<Item = &[u8]>,
        outcome: &mut dyn FnMut(usize, SendOutcome),
    ) -> Result<(), i32> {
        let mut progress = Progress::new(outcome);
        loop {
            let count = self.fill(frames);
            if count == 0 {
                return progress.result();
            }
            self.flush(socket, count, &mut progress);
        }
    }

    /// Points the vectors at the next frames, which outlive the flush that follows.
    fn fill(&mut self, frames: &mut dyn Iterator<Item = &[u8]>) -> usize {
        let mut count = 0;
        for frame in frames.take(BATCH) {
            let base = frame.as_ptr().cast_mut().cast();
            self.vectors[count] = libc::iovec { iov_base: base, iov_len: frame.len() };
            self.messages[count].msg_hdr.msg_iov = &raw mut self.vectors[count];
            self.messages[count].msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        count
    }

    fn flush(&mut self, socket: &Socket, count: usize, progress: &mut Progress<'_>) {
        let mut done = 0;
        while done < count {
            if let Some(errno) = progress.fatal {
                return progress.tell(count - done, SendOutcome::Refused(errno));
            }
            match self.call(socket, done, count) {
                Ok(sent) => {
                    progress.tell(sent, SendOutcome::Sent);
                    done += sent;
                }
                Err(libc::EINTR) => {}
                Err(libc::EAGAIN | libc::ENOBUFS) if progress.retry() => {}
                Err(errno) => {
                    done += 1;
                    progress.tell(1, refusal(errno));
                    progress.fatal = is_fatal(errno).then_some(errno);
                }
            }
        }
    }

    fn call(&mut self, socket: &Socket, from: usize, to: usize) -> Result<usize, i32> {
        let messages = self.messages[from..to].as_mut_ptr();
        // SAFETY: the headers are valid, each with one vector over a frame that `fill` borrowed for
        // longer than this call; the kernel only reads the frames.
        let sent = unsafe {
            // The C libraries differ in the type of the flags.
            libc::sendmmsg(socket.fd(), messages, (to - from) as u32, libc::MSG_DONTWAIT as _)
        };
        usize::try_from(sent).map_err(|_| errno())
    }
}

fn refusal(errno: i32) -> SendOutcome {
    match errno {
        libc::EMSGSIZE => SendOutcome::TooBig,
        errno => SendOutcome::Refused(errno),
    }
}

pub(crate) fn is_fatal(errno: i32) -> bool {
    matches!(errno, libc::ENETDOWN | libc::ENODEV | libc::ENXIO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_device_is_tried_again_so_often_and_no_more() {
        let mut told = Vec::new();
        let mut outcome = |index, outcome| told.push((index, outcome));
        let mut progress = Progress::new(&mut outcome);
        assert_eq!((0..RETRIES + 9).filter(|_| progress.retry()).count(), RETRIES as usize);
        progress.tell(2, SendOutcome::Sent);
        progress.tell(1, SendOutcome::TooBig);
        assert_eq!(progress.result(), Ok(()));
        progress.fatal = Some(libc::ENETDOWN);
        assert_eq!(progress.result(), Err(libc::ENETDOWN));
        let right = [(0, SendOutcome::Sent), (1, SendOutcome::Sent), (2, SendOutcome::TooBig)];
        assert_eq!(told, right);
    }
}
