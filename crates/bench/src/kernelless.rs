//! The whole loop with no kernel behind its ports: what the emulator's own code costs.
//!
//! In time, not in instructions: the loop reads the clock in a way that valgrind does not survive.

use crate::figure::{Figure, show};
use crate::flood::frame;
use crate::gate::thread_time;
use crate::loops::{Arrangement, UNLIMITED, dataplane, forward, path};
use anyhow::Result;
use serde::Serialize;
use std::hint::black_box;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use trunkline_dataplane::{Options, Remote};
use trunkline_port::{Port, PortError, Received, Refusals, SendOutcome};

/// Frame sizes.
const SIZES: [usize; 2] = [64, 1400];
/// Frames in one run of the loop.
const FRAMES: u64 = 200_000;

/// Processor time for each frame, in nanoseconds.
#[derive(Debug, Serialize)]
pub struct Kernelless {
    bytes: usize,
    bare: Option<Figure>,
    emulator: Option<Figure>,
}

/// Measures both loops in turn, `rounds` times.
pub fn measure(rounds: usize) -> Result<Vec<Kernelless>> {
    SIZES.into_iter().map(|bytes| compare(bytes, rounds)).collect()
}

fn compare(bytes: usize, rounds: usize) -> Result<Kernelless> {
    let (mut bare, mut emulator) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        bare.push(run(Arrangement::Bare, bytes)?);
        emulator.push(run(UNLIMITED, bytes)?);
    }
    Ok(Kernelless { bytes, bare: Figure::of(bare), emulator: Figure::of(emulator) })
}

/// The figures as text.
pub fn text(all: &[Kernelless]) -> String {
    let line = |it: &Kernelless| {
        let (bare, emulator) = (show(it.bare, 0), show(it.emulator, 0));
        format!("own code at {} bytes: bare {bare} ns, emulator {emulator} ns a frame\n", it.bytes)
    };
    all.iter().map(line).collect()
}

/// A whole loop between two synthetic ports. One of them brings the frames; the loop ends when the other
/// has sent as many. Returns nanoseconds for each.
fn run(arrangement: Arrangement, bytes: usize) -> Result<f64> {
    let end = Arc::new(End { expected: FRAMES, ..End::default() });
    let port = |left| -> Result<Box<dyn Port>> {
        let (frame, end) = (frame(bytes, 7), Arc::clone(&end));
        Ok(Box::new(Synthetic { frame, left, end, descriptor: UnixDatagram::unbound()? }))
    };
    let ports = [port(FRAMES)?, port(0)?];
    let nanos = match arrangement {
        Arrangement::Bare => timed(|| Ok(forward(ports, &end.reached)?))?,
        Arrangement::Emulator(settings) => {
            let options = Options { busy: true, ..Options::default() };
            let (built, remote) = dataplane(&path(settings)?, ports, options)?;
            // Set once, here.
            let _ = end.remote.set(remote);
            timed(|| Ok(built.run().2?))?
        }
    };
    Ok(nanos as f64 / FRAMES as f64)
}

/// Processor time of `work`, in a thread of its own, whose priority it may change.
fn timed(work: impl FnOnce() -> Result<()> + Send) -> Result<u64> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| work().map(|()| thread_time()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// When a loop has done its work.
#[derive(Default)]
struct End {
    sent: AtomicU64,
    expected: u64,
    reached: AtomicBool,
    remote: OnceLock<Remote>,
}

impl End {
    fn count(&self, frames: u64) {
        let sent = self.sent.fetch_add(frames, Relaxed) + frames;
        if sent >= self.expected {
            self.reached.store(true, Relaxed);
            if let Some(remote) = self.remote.get() {
                remote.stop();
            }
        }
    }
}

/// A port that makes up what it receives and forgets what it sends.
struct Synthetic {
    frame: Vec<u8>,
    left: u64,
    end: Arc<End>,
    descriptor: UnixDatagram,
}

impl Port for Synthetic {
    fn receive(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        let count = self.left.min(budget as u64);
        (0..count).for_each(|_| sink(Received { bytes: &self.frame, stamp: None }));
        self.left -= count;
        Ok(count as usize)
    }

    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &[u8]>,
        outcome: &mut dyn FnMut(usize, SendOutcome),
    ) -> Result<(), PortError> {
        let mut count = 0;
        for frame in frames {
            black_box(frame);
            outcome(count, SendOutcome::Sent);
            count += 1;
        }
        self.end.count(count as u64);
        Ok(())
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
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
        "none"
    }

    fn mtu(&self) -> u32 {
        1500
    }

    fn backend_name(&self) -> &'static str {
        "none"
    }
}
