//! A sender with a receive window, written down as a race of segments and acknowledgements: nothing in it
//! knows the formula that the fit assumes.

use crate::paths::lab::disturbed;
use std::collections::{BTreeMap, VecDeque};
use trunkline_core::Stream;
use trunkline_fit::Sweep;

/// User bytes of a full segment.
pub const SEGMENT: u32 = 1448;
/// Headers of a segment, and all of an acknowledgement, on Ethernet: 14 + 20 + 32.
pub const HEADERS: u32 = 66;

/// The truth about a path.
#[derive(Debug, Clone, Copy)]
pub struct TcpPath {
    pub rate: f64,
    /// Milliseconds.
    pub delay: f64,
    pub window: u32,
    /// Milliseconds, both hosts together.
    pub host: f64,
    pub echo: bool,
}

impl TcpPath {
    fn byte(&self) -> f64 {
        8_000.0 / self.rate
    }

    /// When the last byte of a message has arrived. A segment goes when it is full or the last and the
    /// window has room for all of it.
    pub fn one_way(&self, size: u32) -> f64 {
        let (mut now, mut sent, mut outstanding) = (0.0f64, 0, 0);
        let mut answers: VecDeque<(f64, u32)> = VecDeque::new();
        let mut arrived = 0.0;
        while sent < size {
            let next = SEGMENT.min(size - sent);
            while answers.front().is_some_and(|&(at, _)| at <= now)
                || outstanding + next > self.window
            {
                let (at, bytes) = answers.pop_front().unwrap();
                (now, outstanding) = (now.max(at), outstanding - bytes);
            }
            now += f64::from(next + HEADERS) * self.byte();
            (sent, outstanding) = (sent + next, outstanding + next);
            arrived = now + self.delay;
            answers.push_back((arrived + f64::from(HEADERS) * self.byte() + self.delay, next));
        }
        arrived
    }

    pub fn round_trip(&self, size: u32) -> f64 {
        self.one_way(size) + self.one_way(if self.echo { size } else { 1 }) + self.host
    }
}

/// Lets a sweep measure it.
pub fn measure(path: &TcpPath, sweep: &Sweep, noise: &mut Stream) -> Vec<(u32, f64)> {
    let mut samples = Vec::new();
    let mut known: BTreeMap<u32, f64> = BTreeMap::new();
    loop {
        let asks = sweep.next(&samples);
        if asks.is_empty() {
            return samples;
        }
        for ask in asks {
            let exact = *known.entry(ask.size).or_insert_with(|| path.round_trip(ask.size));
            samples.extend((0..ask.repeat).map(|_| (ask.size, disturbed(exact, noise))));
        }
    }
}
