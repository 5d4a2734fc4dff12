//! A port for unit tests that exists in memory only.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};
use trunkline_port::{Port, PortError, Received, Refusals, SendOutcome};

/// Frames that a test shares with a port.
pub(crate) type Frames = Arc<Mutex<Vec<Vec<u8>>>>;

/// A port that hands out what was put in, once, and keeps what is sent.
#[derive(Default)]
pub(crate) struct Memory {
    /// What is to be received.
    pub inward: Frames,
    /// What has been sent.
    pub outward: Frames,
}

impl Port for Memory {
    fn receive(
        &mut self,
        _: usize,
        sink: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let frames = std::mem::take(&mut *self.inward.lock().unwrap());
        frames.iter().for_each(|bytes| sink(Received { bytes, stamp: None }));
        Ok(frames.len())
    }
    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &[u8]>,
        outcome: &mut dyn FnMut(usize, SendOutcome),
    ) -> Result<(), PortError> {
        for (index, bytes) in frames.enumerate() {
            self.outward.lock().unwrap().push(bytes.to_vec());
            outcome(index, SendOutcome::Sent);
        }
        Ok(())
    }
    fn poll_fd(&self) -> BorrowedFd<'_> {
        panic!("nobody sleeps")
    }
    fn check(&mut self) -> Result<(), PortError> {
        Ok(())
    }
    fn kernel_drops(&mut self) -> u64 {
        0
    }
    fn refusals(&self) -> Refusals {
        Refusals::default()
    }
    fn device(&self) -> &str {
        "memory"
    }
    fn mtu(&self) -> u32 {
        1500
    }
    fn backend_name(&self) -> &'static str {
        "memory"
    }
}
