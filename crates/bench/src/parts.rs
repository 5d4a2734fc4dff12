//! The dataplane's parts, each run so often that its instructions can be counted.
//!
//! The counting is callgrind's (see [`crate::instructions`]): it starts this program again with the name
//! of a part and a number of packets.

use crate::flood::frame;
use crate::loops::path;
use anyhow::{Result, bail};
use std::hint::black_box;
use trunkline_core::{Channel, Packet, Seed, Span, Time};
use trunkline_dataplane::FramePool;
use trunkline_path::{ChannelKey, Link, LinkSpec, classify};

/// Bytes of each frame.
const BYTES: usize = 1400;
/// Between two packets: longer than any line here needs for one.
const GAP: Span = Span::from_micros(100);
/// Packets under way in the delay line while it is measured.
const UNDER_WAY: u64 = 64;

/// A part to count: its name, what it stands for, and the part whose cost is its harness's.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// As [`run`] knows it.
    pub name: &'static str,
    /// For a table.
    pub what: &'static str,
    /// To be subtracted.
    pub harness: &'static str,
}

/// Every part.
pub const PARTS: [Part; 6] = [
    Part { name: "link", what: "link: offer, advance, take (fifo, unlimited)", harness: "packet" },
    Part { name: "link-rate", what: "link at 10 Gbit/s", harness: "packet" },
    Part { name: "link-delay", what: "link at 10 Gbit/s, 64 packets in flight", harness: "packet" },
    Part { name: "link-atm", what: "link on OC-3 with atm-aal5", harness: "packet" },
    Part { name: "pool", what: "pool: store and free 1400 bytes", harness: "nothing" },
    Part { name: "classify", what: "classify by 5-tuple", harness: "nothing" },
];

/// Runs part `name` for `packets` packets.
///
/// # Errors
/// If there is no such part.
pub fn run(name: &str, packets: u64) -> Result<()> {
    match name {
        "nothing" => work(packets, |index| {
            black_box(index);
        }),
        "packet" => work(packets, |index| {
            black_box(packet(at(index)));
        }),
        "link" => link(packets, &["rate=unlimited"])?,
        "link-rate" => link(packets, &["rate=10gbit"])?,
        "link-delay" => link(packets, &["rate=10gbit", "delay=6400us"])?,
        "link-atm" => link(packets, &["rate=155.52mbit", "framing=atm-aal5"])?,
        "pool" => pool(packets),
        "classify" => {
            let frame = frame(BYTES, 7);
            work(packets, |_| {
                black_box(classify(black_box(&frame), ChannelKey::FiveTuple));
            });
        }
        _ => bail!("there is no part '{name}'"),
    }
    Ok(())
}

/// Calls `step` for each of `packets` packets.
fn work(packets: u64, mut step: impl FnMut(u64)) {
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

/// One frame stays in the pool throughout: an empty one would give up its memory each time.
fn pool(packets: u64) {
    let mut pool = FramePool::new(16 << 20);
    let frame = frame(BYTES, 7);
    black_box(pool.store(&frame));
    work(packets, |_| {
        if let Some(stored) = pool.store(black_box(&frame)) {
            pool.free(black_box(stored));
        }
    });
}
