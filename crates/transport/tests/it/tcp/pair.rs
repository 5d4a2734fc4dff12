//! Two ends and what lies between them, in virtual time.

use std::collections::BTreeMap;
use trunkline_core::{Ecn, Span, Time};
use trunkline_transport::tcp::{Flags, Segment, Seq, Settings, Tcp};
use trunkline_transport::{Extent, Payload};

pub type Wire = Segment<Extent>;
/// The network's treatment of the `n`-th segment of a direction: the time after which each copy arrives.
pub type Network = Box<dyn FnMut(Passing<'_>) -> Vec<Span>>;

/// A segment on its way.
pub struct Passing<'a> {
    pub now: Time,
    /// 0 from the first end to the second, 1 back.
    pub way: usize,
    /// The number that went that way before.
    pub number: usize,
    pub segment: &'a mut Wire,
}

/// A segment that was sent.
#[derive(Debug, Clone)]
pub struct Sent {
    pub at: Time,
    pub way: usize,
    /// Position of the first octet in the stream, from 1 on.
    pub position: u64,
    pub segment: Wire,
}

pub struct Pair {
    pub now: Time,
    pub ends: [Tcp<Extent>; 2],
    network: Network,
    flying: BTreeMap<(Time, u64), (usize, Wire)>,
    sent: [usize; 2],
    count: u64,
    /// The octets that each end has been offered.
    offered: [u64; 2],
    /// The octets that each application has taken, and whether it says at once that it is done with them.
    pub taken: [u64; 2],
    pub reads: [bool; 2],
    pub trace: Option<Vec<Sent>>,
    numbers: [Seq; 2],
    /// By how many bits the windows of each end are shifted.
    scales: [u8; 2],
    /// The farthest position that each end has been allowed to send to, by what the other one has sent.
    edges: [u64; 2],
}

/// The shift that a buffer needs (RFC 7323 §2.3), if both ends shift.
fn scales(ends: &[Tcp<Extent>; 2]) -> [u8; 2] {
    let both = ends.iter().all(|end| end.settings().window_scaling);
    let needed = |buffer: u64| (0..15).find(|shift| buffer >> shift <= 65_535).unwrap_or(14);
    ends.each_ref().map(|end| if both { needed(end.settings().receive_buffer) } else { 0 })
}

pub fn millis(millis: u64) -> Span {
    Span::from_millis(millis)
}

pub fn at(ms: u64) -> Time {
    Time::ZERO + millis(ms)
}

/// A network that delays.
pub fn delay(span: Span) -> Network {
    Box::new(move |_| vec![span])
}

impl Pair {
    pub fn of(ends: [Tcp<Extent>; 2], numbers: [Seq; 2], network: Network) -> Pair {
        Pair {
            now: Time::ZERO,
            scales: scales(&ends),
            edges: ends.each_ref().map(|end| 1 + end.peer_window()),
            ends,
            network,
            flying: BTreeMap::new(),
            sent: [0; 2],
            count: 0,
            offered: [0; 2],
            taken: [0; 2],
            reads: [true; 2],
            trace: None,
            numbers,
        }
    }

    /// Two ends past their handshake.
    pub fn connected(settings: [Settings; 2], network: Network) -> Pair {
        let [one, two] = settings;
        let ends = [
            Tcp::connected(one, &two).expect("good settings"),
            Tcp::connected(two, &one).expect("good settings"),
        ];
        Pair::of(ends, [Seq::default(); 2], network)
    }

    /// One end that connects and one that listens.
    pub fn opening(settings: [Settings; 2], numbers: [Seq; 2], network: Network) -> Pair {
        let ends = [
            Tcp::connect(settings[0], numbers[0]).expect("good settings"),
            Tcp::listen(settings[1], numbers[1]).expect("good settings"),
        ];
        Pair::of(ends, numbers, network)
    }

    pub fn traced(mut self) -> Pair {
        self.trace = Some(Vec::new());
        self
    }

    pub fn offer(&mut self, end: usize, octets: u32) {
        let data = Extent::new(self.offered[end], octets);
        self.offered[end] += u64::from(octets);
        self.ends[end].offer(self.now, data);
        self.settle(end);
    }

    pub fn close(&mut self, end: usize) {
        self.ends[end].close(self.now);
        self.settle(end);
    }

    /// The application of `end` reads what waits, and is done with it if it reads.
    pub fn read(&mut self, end: usize) {
        while let Some(data) = self.ends[end].take() {
            assert_eq!(data.offset, self.taken[end], "in order, once, and whole");
            self.taken[end] += u64::from(data.len());
            if self.reads[end] {
                self.ends[end].consumed(self.now, u64::from(data.len()));
            }
        }
    }

    /// Sends what `end` has to send.
    pub fn settle(&mut self, end: usize) {
        self.read(end);
        for turn in 0.. {
            assert!(turn < 100_000, "an end that never has enough");
            let Some(segment) = self.ends[end].transmit(self.now) else { break };
            self.pass(end, segment);
        }
    }

    /// No end sends beyond the window that the other one has offered.
    fn check_windows(&mut self, way: usize, segment: &Wire) {
        let syn = segment.flags.has(Flags::SYN);
        if segment.flags.has(Flags::ACK) {
            let scale = if syn { 0 } else { self.scales[way] };
            let number = segment.ack.get().wrapping_sub(self.numbers[1 - way].get());
            // Data of the other end lie near: what is acknowledged is within half the circle of it.
            let near = self.offered[1 - way].min(self.taken[way]) + 1;
            let ack = near.wrapping_add_signed(i64::from(number.wrapping_sub(near as u32) as i32));
            let edge = ack + (u64::from(segment.window) << scale);
            self.edges[1 - way] = self.edges[1 - way].max(edge);
        }
        if syn {
            self.edges[1 - way] = self.edges[1 - way].max(1 + u64::from(segment.window));
        }
        if segment.data.len > 0 {
            let end = segment.data.end() + 1;
            assert!(end <= self.edges[way], "{end} is beyond the window to {}", self.edges[way]);
        }
    }

    fn pass(&mut self, way: usize, mut segment: Wire) {
        self.check_windows(way, &segment);
        if let Some(trace) = &mut self.trace {
            let position = segment.seq.position(self.numbers[way], 0).unwrap_or(0);
            trace.push(Sent { at: self.now, way, position, segment: segment.clone() });
        }
        let number = self.sent[way];
        self.sent[way] += 1;
        let now = self.now;
        let after = (self.network)(Passing { now, way, number, segment: &mut segment });
        for span in after {
            self.count += 1;
            let held = self.flying.insert((now + span, self.count), (1 - way, segment.clone()));
            assert!(held.is_none());
        }
    }

    /// When something happens next.
    pub fn next(&self) -> Option<Time> {
        let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
        let deadlines = self.ends.iter().map(Tcp::deadline);
        deadlines.chain([arrival]).flatten().min().map(|at| at.max(self.now))
    }

    /// Lets the next thing happen; false if there is none by `until`.
    pub fn step(&mut self, until: Time) -> bool {
        let Some(next) = self.next().filter(|&next| next <= until) else { return false };
        self.now = next;
        if self.flying.first_key_value().is_some_and(|((at, _), _)| *at <= next) {
            let (_, (end, segment)) = self.flying.pop_first().expect("there is one");
            self.ends[end].receive(next, segment);
            self.settle(end);
            return true;
        }
        for end in 0..2 {
            if self.ends[end].deadline().is_some_and(|due| due <= next) {
                self.ends[end].expire(next);
                self.settle(end);
            }
        }
        true
    }

    pub fn run(&mut self, until: Time) {
        (0..2).for_each(|end| self.settle(end));
        let mut standing = 0;
        while self.step(until) {
            let before = self.now;
            standing = if self.next() == Some(before) { standing + 1 } else { 0 };
            assert!(standing < 100_000, "time stands still at {before}");
        }
        self.now = self.now.max(until);
    }

    /// Runs until both are closed; answers when that was.
    pub fn run_to_end(&mut self, until: Time) -> Option<Time> {
        (0..2).for_each(|end| self.settle(end));
        while !self.ends.iter().all(Tcp::closed) {
            if !self.step(until) {
                return None;
            }
        }
        Some(self.now)
    }

    /// The state of both ends, for a test that fails.
    pub fn state(&self) -> String {
        let of = |end: &Tcp<Extent>| {
            format!(
                "established {}, ended {}, unsent {}, outstanding {}, deadline {:?}, {:?}, {:?}",
                end.established(),
                end.ended(),
                end.unsent(),
                end.outstanding(),
                end.deadline(),
                end.blocked(self.now),
                end.counters()
            )
        };
        format!("at {}: {}; {}", self.now, of(&self.ends[0]), of(&self.ends[1]))
    }

    /// Everything sent one way, as (milliseconds, position, octets).
    pub fn sent(&self, way: usize) -> Vec<(u64, u64, u32)> {
        let trace = self.trace.as_ref().expect("traced");
        let sent = trace.iter().filter(|sent| sent.way == way);
        sent.map(|sent| {
            let at = sent.at.as_nanos() / 1_000_000;
            (at, sent.position, sent.segment.data.len())
        })
        .collect()
    }
}

/// A line of `rate` octets per second and a buffer of `limit` segments, `delay` each way; the acknowledgements
/// come back without queueing. `lose` says which data segments are lost, `mark` which are marked.
pub fn bottleneck(
    octets_per_second: u64,
    limit: u64,
    delay: Span,
    mut lose: impl FnMut(&Wire) -> bool + 'static,
) -> Network {
    let mut free = Time::ZERO;
    Box::new(move |passing| {
        if passing.way == 1 {
            return vec![delay];
        }
        let size = u64::from(passing.segment.size());
        let service = Span::from_nanos(size * 1_000_000_000 / octets_per_second);
        let queued = free.since(passing.now).as_nanos() / service.as_nanos().max(1);
        if queued >= limit || lose(passing.segment) {
            return vec![];
        }
        free = free.max(passing.now) + service;
        vec![free.since(passing.now) + delay]
    })
}

/// Marks what can be marked.
pub fn mark(segment: &mut Wire) {
    if segment.ecn != Ecn::NotEct {
        segment.ecn = Ecn::Ce;
    }
}
