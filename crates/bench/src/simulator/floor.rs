//! The bare floor: the same workloads by a throw-away program, as a lower bound.
//!
//! It has packets of 16 bytes, one kind of link (a FIFO whose departures are known at once), a wheel of a
//! fixed width that sorts no finer than its slots, no ledger, no counters but the ones that are shown,
//! no impairments and no other discipline: B3 runs through a FIFO. In B1 a window that grows by one segment a
//! round trip and is halved by a loss takes the place of TCP; the sender is told of a loss at once and sends
//! again after a pause.

use super::Outcome;
use super::constant::{self, ACCESS_DELAY, Constant, RATE, SIZE};
use super::dumbbell;
use super::fabric::{
    ACK, DELAY, FIRST_WINDOW, HOSTS, LINKS, MOST_HOPS, MOST_WINDOW, STAGGER, partner, way,
};
use std::collections::VecDeque;
use trunkline_core::Time;

/// No entity.
const NONE: u32 = u32::MAX;
/// Slots of the wheel.
const SLOTS: usize = 1 << 16;

/// A packet on a link.
#[derive(Debug, Clone, Copy)]
struct Small {
    release: u64,
    route: u32,
    hop: u16,
    size: u16,
}

#[derive(Debug)]
struct Pipe {
    free_at: u64,
    delay: u64,
    /// Bits for each nanosecond.
    pace: u64,
    /// Longest time for which the line may be taken ahead.
    most: u64,
    ring: VecDeque<Small>,
    passed: u64,
}

/// What is due when: each entity, a link or a timer, once.
struct Slots {
    shift: u32,
    cursor: u64,
    heads: Vec<u32>,
    used: Vec<u64>,
    next: Vec<u32>,
    due: Vec<u64>,
    entries: usize,
}

impl Slots {
    fn new(entities: usize, shift: u32) -> Slots {
        Slots {
            shift,
            cursor: 0,
            heads: vec![NONE; SLOTS],
            used: vec![0; SLOTS / 64],
            next: vec![NONE; entities],
            due: vec![0; entities],
            entries: 0,
        }
    }

    fn insert(&mut self, id: u32, due: u64) {
        let number = (due >> self.shift).max(self.cursor);
        assert!(number - self.cursor < SLOTS as u64, "the floor's wheel is too short");
        let slot = number as usize % SLOTS;
        self.due[id as usize] = due;
        self.next[id as usize] = std::mem::replace(&mut self.heads[slot], id);
        self.used[slot / 64] |= 1 << (slot % 64);
        self.entries += 1;
    }

    fn pop(&mut self) -> Option<(u64, u32)> {
        if self.entries == 0 {
            return None;
        }
        let mut word = self.cursor as usize % SLOTS / 64;
        let mut bits = self.used[word] >> (self.cursor % 64) << (self.cursor % 64);
        while bits == 0 {
            word = (word + 1) % self.used.len();
            self.cursor = (self.cursor / 64 + 1) * 64;
            bits = self.used[word];
        }
        let slot = word * 64 + bits.trailing_zeros() as usize;
        self.cursor = self.cursor / 64 * 64 + u64::from(bits.trailing_zeros());
        let id = self.heads[slot];
        self.heads[slot] = self.next[id as usize];
        if self.heads[slot] == NONE {
            self.used[word] &= !(1 << (slot % 64));
        }
        self.entries -= 1;
        Some((self.due[id as usize], id))
    }
}

/// Pipes, routes and the wheel; entities from `pipes.len()` on are timers.
struct Floor {
    slots: Slots,
    pipes: Vec<Pipe>,
    /// For each route its pipes, `width` places each.
    routes: Vec<u32>,
    width: usize,
    dropped: u64,
}

/// What happens to the program.
enum Happening {
    Timer { id: u32, at: u64 },
    Arrived { route: u32, at: u64 },
    Lost { route: u32, at: u64 },
}

impl Floor {
    fn pipe(delay: u64, packets: u64) -> Pipe {
        Floor::slow_pipe(RATE, delay, packets)
    }

    fn slow_pipe(rate: u64, delay: u64, packets: u64) -> Pipe {
        let most = packets * u64::from(SIZE) * 8 * 1_000_000_000 / rate;
        let pace = rate / 1_000_000_000;
        Pipe { free_at: 0, delay, pace, most, ring: VecDeque::new(), passed: 0 }
    }

    /// False if the packet is lost.
    fn enter(&mut self, now: u64, route: u32, hop: u16, size: u16) -> bool {
        let id = self.routes[route as usize * self.width + usize::from(hop)];
        let pipe = &mut self.pipes[id as usize];
        let start = pipe.free_at.max(now);
        if start - now > pipe.most {
            self.dropped += 1;
            return false;
        }
        pipe.free_at = start + u64::from(size) * 8 / pipe.pace;
        let release = pipe.free_at + pipe.delay;
        if pipe.ring.is_empty() {
            self.slots.insert(id, release);
        }
        pipe.ring.push_back(Small { release, route, hop, size });
        true
    }

    fn next(&mut self, until: u64) -> Option<Happening> {
        loop {
            let (now, id) = self.slots.pop()?;
            if now > until {
                return None;
            }
            let Some(pipe) = self.pipes.get_mut(id as usize) else {
                return Some(Happening::Timer { id: id - self.pipes.len() as u32, at: now });
            };
            let Some(packet) = pipe.ring.pop_front() else { continue };
            pipe.passed += 1;
            if let Some(head) = pipe.ring.front() {
                self.slots.insert(id, head.release);
            }
            let (route, hop) = (packet.route, packet.hop + 1);
            let place = route as usize * self.width + usize::from(hop);
            if usize::from(hop) == self.width || self.routes[place] == NONE {
                return Some(Happening::Arrived { route, at: now });
            }
            if !self.enter(now, route, hop, packet.size) {
                return Some(Happening::Lost { route, at: now });
            }
        }
    }

    fn outcome(&self, delivered: u64) -> Outcome {
        let hops = self.pipes.iter().map(|pipe| pipe.passed).sum();
        Outcome { delivered, dropped: self.dropped, hops }
    }
}

/// B2, and B3 with a FIFO in its place.
pub fn constant(what: Constant) -> impl FnMut() -> Outcome {
    let sources = what.sources as u32;
    let mut pipes = vec![Floor::pipe(what.delay.as_nanos(), constant::LIMIT)];
    pipes.extend((0..sources).map(|_| Floor::pipe(ACCESS_DELAY.as_nanos(), 100_000)));
    let routes = (1..=sources).flat_map(|own| [own, 0]).collect();
    // Wide enough for the longest interval of a source.
    let longest = what.instant(u64::from(sources)).as_nanos().max(4_000_000);
    let shift = (longest / SLOTS as u64).max(1).ilog2() + 1;
    let slots = Slots::new(pipes.len() + what.sources, shift);
    let mut floor = Floor { slots, pipes, routes, width: 2, dropped: 0 };
    let mut numbers: Vec<u64> = (0..u64::from(sources)).collect();
    move || {
        for source in 0..sources {
            floor.slots.insert(sources + 1 + source, what.instant(u64::from(source)).as_nanos());
        }
        let mut delivered = 0;
        while let Some(happening) = floor.next(what.length.as_nanos()) {
            match happening {
                Happening::Timer { id: source, .. } => {
                    let number = &mut numbers[source as usize];
                    let now = what.instant(*number).as_nanos();
                    *number += u64::from(sources);
                    floor.slots.insert(sources + 1 + source, what.instant(*number).as_nanos());
                    floor.enter(now, source, 0, SIZE as u16);
                }
                Happening::Arrived { .. } => delivered += 1,
                Happening::Lost { .. } => {}
            }
        }
        floor.outcome(delivered)
    }
}

/// A window in the place of TCP.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// Packets, and acknowledgements since the last one more.
    size: u32,
    counted: u32,
    under_way: u32,
    threshold: u32,
    /// Acknowledgements to come before another loss counts.
    deaf: u32,
    /// Whether its timer runs, after which it sends again.
    pausing: bool,
}

/// Between a loss and what is sent again.
const PAUSE: u64 = 200_000_000;

impl Window {
    const FIRST: Window = Window {
        size: dumbbell::FIRST_WINDOW,
        counted: 0,
        under_way: 0,
        threshold: u32::MAX,
        deaf: 0,
        pausing: true,
    };

    fn acknowledged(&mut self) {
        self.under_way -= 1;
        self.deaf = self.deaf.saturating_sub(1);
        self.counted += 1;
        if self.size < self.threshold || self.counted >= self.size {
            (self.size, self.counted) = (self.size + 1, 0);
        }
    }

    fn lost(&mut self) {
        self.under_way -= 1;
        if self.deaf == 0 {
            self.deaf = self.size;
            self.size = (self.size / 2).max(2);
            self.threshold = self.size;
        }
    }
}

/// B1. Routes with even numbers carry data, those with odd numbers acknowledgements.
pub fn dumbbell(pairs: usize, length: Time) -> impl FnMut() -> Outcome {
    let trunk =
        || Floor::slow_pipe(dumbbell::BOTTLENECK, dumbbell::DELAY.as_nanos(), dumbbell::LIMIT);
    let mut pipes = vec![trunk(), trunk()];
    pipes.extend((0..4 * pairs).map(|_| Floor::pipe(ACCESS_DELAY.as_nanos(), 100_000)));
    let own = |pair: u32, which: u32| 2 + 4 * pair + which;
    let routes = (0..pairs as u32)
        .flat_map(|pair| [own(pair, 0), 0, own(pair, 1), own(pair, 2), 1, own(pair, 3)])
        .collect();
    let gap = dumbbell::SPREAD.as_nanos() / pairs as u64;
    // Wide enough for all starts.
    let shift = (dumbbell::SPREAD.as_nanos() / SLOTS as u64).ilog2() + 1;
    let first = pipes.len() as u32;
    let slots = Slots::new(pipes.len() + pairs, shift);
    let mut floor = Floor { slots, pipes, routes, width: 3, dropped: 0 };
    let mut windows = vec![Window::FIRST; pairs];
    move || {
        for pair in 0..pairs as u32 {
            floor.slots.insert(first + pair, gap * u64::from(pair));
        }
        let mut delivered = 0;
        while let Some(happening) = floor.next(length.as_nanos()) {
            let (pair, now) = match happening {
                Happening::Timer { id: pair, at } => {
                    windows[pair as usize].pausing = false;
                    (pair, at)
                }
                Happening::Arrived { route, at } if route % 2 == 0 => {
                    delivered += 1;
                    floor.enter(at, route + 1, 0, dumbbell::ACK as u16);
                    continue;
                }
                Happening::Arrived { route, at } => {
                    windows[route as usize / 2].acknowledged();
                    (route / 2, at)
                }
                Happening::Lost { route, at } => {
                    let window = &mut windows[route as usize / 2];
                    window.lost();
                    if !std::mem::replace(&mut window.pausing, true) {
                        floor.slots.insert(first + route / 2, at + PAUSE);
                    }
                    continue;
                }
            };
            let window = &mut windows[pair as usize];
            let free = window.size.saturating_sub(window.under_way);
            let more = if window.pausing { 0 } else { free };
            window.under_way += more;
            for _ in 0..more {
                floor.enter(now, 2 * pair, 0, SIZE as u16);
            }
        }
        floor.outcome(delivered)
    }
}

/// B4. Routes with even numbers carry data, those with odd numbers acknowledgements.
pub fn fabric(length: Time) -> impl FnMut() -> Outcome {
    let pipes: Vec<Pipe> = (0..LINKS).map(|_| Floor::pipe(DELAY.as_nanos(), 1000)).collect();
    let mut routes = Vec::new();
    for host in 0..HOSTS {
        for (from, to) in [(host, partner(host)), (partner(host), host)] {
            let mut hops: Vec<u32> = way(from, to).into_iter().map(|link| link as u32).collect();
            hops.resize(MOST_HOPS, NONE);
            routes.extend(hops);
        }
    }
    let slots = Slots::new(LINKS + HOSTS, 3);
    let mut floor = Floor { slots, pipes, routes, width: MOST_HOPS, dropped: 0 };
    let mut windows = vec![(FIRST_WINDOW, 0u32); HOSTS];
    move || {
        for host in 0..HOSTS as u32 {
            floor.slots.insert(LINKS as u32 + host, u64::from(host) * STAGGER);
        }
        let mut delivered = 0;
        while let Some(happening) = floor.next(length.as_nanos()) {
            let (host, now) = match happening {
                Happening::Timer { id: host, at } => (host, at),
                Happening::Arrived { route, at } if route % 2 == 0 => {
                    delivered += 1;
                    floor.enter(at, route + 1, 0, ACK as u16);
                    continue;
                }
                Happening::Lost { .. } => continue,
                Happening::Arrived { route, at } => {
                    let (window, under_way) = &mut windows[route as usize / 2];
                    *window = (*window + 1).min(MOST_WINDOW);
                    *under_way -= 1;
                    (route / 2, at)
                }
            };
            let (window, under_way) = &mut windows[host as usize];
            let more = std::mem::replace(under_way, *window).abs_diff(*window);
            for _ in 0..more {
                floor.enter(now, 2 * host, 0, SIZE as u16);
            }
        }
        floor.outcome(delivered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The floor does the same work, or its time would be no measure.
    #[test]
    fn it_does_the_work() {
        for sources in [10, 1000] {
            let outcome = constant(Constant::fifo(sources))();
            assert!(
                outcome.delivered.abs_diff(749_241) < 10 && outcome.dropped == 0,
                "{outcome:?}"
            );
            assert!(outcome.hops.abs_diff(2 * 749_241) < 1000, "{outcome:?}");
        }
        let outcome = dumbbell(100, super::super::dumbbell::LENGTH)();
        assert!((790_000..833_334).contains(&outcome.delivered), "{outcome:?}");
        assert!(outcome.dropped > 1000, "{outcome:?}");
        let outcome = fabric(super::super::fabric::LENGTH)();
        assert!(outcome.dropped == 0 && outcome.delivered > 1_000_000, "{outcome:?}");
    }
}
