//! The dataplane's parts, each run so often that its instructions can be counted.
//!
//! The counting is callgrind's (see [`crate::instructions`]): it starts this program again with the name
//! of a part and a number of packets, and counts only within [`work`].

use crate::flood::frame;
use crate::loops::{Arrangement, UNLIMITED, dataplane, forward, path};
use anyhow::{Result, bail};
use std::hint::black_box;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use trunkline_core::{Channel, Packet, Seed, Span, Time};
use trunkline_emu::{Dataplane, FramePool, Options, Remote};
use trunkline_path::{ChannelKey, Link, LinkSpec, classify};
use trunkline_port::{Port, PortError, Received, Refusals, SendOutcome};

/// Bytes of each frame.
const BYTES: usize = 1400;
/// Between two packets: longer than any line here needs for one.
const GAP: Span = Span::from_micros(100);
/// Packets under way in the delay line while it is measured.
const UNDER_WAY: u64 = 64;

/// Every part: its name, what it stands for, and the part whose cost is its harness's.
pub const PARTS: [(&str, &str, &str); 7] = [
    ("link", "link: offer, advance, take; fifo, unlimited", "harness"),
    ("link-rate", "the same at 10 Gbit/s", "harness"),
    ("link-delay", "the same at 10 Gbit/s with 64 packets in flight", "harness"),
    ("link-atm", "the same on OC-3 with atm-aal5", "harness"),
    ("pool", "frame pool: store 1400 bytes and free", "nothing"),
    ("classify", "classify by 5-tuple", "nothing"),
    ("dataplane", "whole loop, unlimited path, ports without a kernel", "bare"),
];

/// Runs part `name` for `packets` packets.
///
/// # Errors
/// Where there is no such part.
pub fn run(name: &str, packets: u64) -> Result<()> {
    match name {
        "nothing" => work(packets, |index| drop(black_box(index))),
        "harness" => work(packets, |index| drop(black_box(packet(at(index))))),
        "link" => link(packets, &["rate=unlimited"])?,
        "link-rate" => link(packets, &["rate=10gbit"])?,
        "link-delay" => link(packets, &["rate=10gbit", "delay=6400us"])?,
        "link-atm" => link(packets, &["rate=155.52mbit", "framing=atm-aal5"])?,
        "pool" => pool(packets),
        "classify" => {
            let frame = frame(BYTES, 7);
            work(packets, |_| drop(black_box(classify(black_box(&frame), ChannelKey::FiveTuple))));
        }
        "bare" => synthetic(Arrangement::Bare, packets)?,
        "dataplane" => synthetic(UNLIMITED, packets)?,
        _ => bail!("there is no part '{name}'"),
    }
    Ok(())
}

/// What is counted: `step` for each of `packets` packets.
#[inline(never)]
pub fn work(packets: u64, mut step: impl FnMut(u64)) {
    for index in 0..packets {
        step(index);
    }
}

fn at(index: u64) -> Time {
    Time::ZERO + Span::from_nanos(index * GAP.as_nanos())
}

fn packet(at: Time) -> Packet<[u32; 2]> {
    Packet::new(Channel(1), BYTES as u32, at, [0; 2])
}

fn link(packets: u64, settings: &[&str]) -> Result<()> {
    let spec: LinkSpec = path(settings)?.up;
    let mut link = Link::new(&spec, Seed(1), "up", Time::ZERO);
    let ahead = if spec.delay.is_zero() { 0 } else { UNDER_WAY };
    (0..ahead).for_each(|index| link.offer(at(index), packet(at(index))));
    work(packets, |index| {
        let now = at(index + ahead);
        link.offer(now, packet(now));
        link.advance(now + GAP);
        black_box(link.take(now + GAP));
    });
    Ok(())
}

fn pool(packets: u64) {
    let mut pool = FramePool::new(16 << 20);
    let frame = frame(BYTES, 7);
    work(packets, |_| {
        if let Some(stored) = pool.store(black_box(&frame)) {
            pool.free(black_box(stored));
        }
    });
}

/// A whole loop between two ports behind which there is no kernel. One of them brings `packets` frames;
/// the loop ends when the other has sent as many.
fn synthetic(arrangement: Arrangement, packets: u64) -> Result<()> {
    let end = Arc::new(End { sent: AtomicU64::new(0), expected: packets, ..End::default() });
    let port = |left| -> Result<Box<dyn Port>> {
        let (frame, end, descriptor) = (frame(BYTES, 7), Arc::clone(&end), UnixDatagram::unbound()?);
        Ok(Box::new(Synthetic { frame, left, end, descriptor }))
    };
    let ports = [port(packets)?, port(0)?];
    let Arrangement::Emulator(settings) = arrangement else {
        let (mut ports, mut result) = (Some(ports), Ok(()));
        work(1, |_| result = ports.take().map_or(Ok(()), |ports| forward(ports, &end.reached)));
        return Ok(result?);
    };
    let options = Options { busy: true, cpu: None };
    let (built, remote) = dataplane(&path(settings)?, ports, options)?;
    // Set once, here.
    let _ = end.remote.set(remote);
    let (mut built, mut result) = (Some(built), Ok(()));
    work(1, |_| result = built.take().map_or(Ok(()), |it| it.run().1));
    Ok(result?)
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
