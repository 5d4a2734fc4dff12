//! What a receiver that is killed has taken and not written, over a path in virtual time.

use crate::desk::Task;
use crate::incoming::{Current, Stream};
use crate::{Cut, PACKET};
use std::collections::{BTreeMap, VecDeque};
use trunkline_core::{Seed, Span, Time};
use trunkline_transport::netblt::wire::{Burst, Dialect, Packet, Ports, Terms};
use trunkline_transport::netblt::{Connection, Habits, Limits, Out, RateLaw};

const BYTES: u64 = 100_000_000;
/// 300 Mbit/s, with headers, and the delay of one way, 25 ms. One packet in a hundred is lost.
const PACKET_TIME: Span = Span::from_nanos(38_853);
const DELAY: Span = Span::from_millis(25);
const LOSS: f64 = 0.01;
/// What the path holds in a round trip.
const ROUND: u64 = 2 * 25_000_000 / 38_853 * PACKET as u64;

fn habits() -> Habits {
    let cap = Burst { size: 1, interval: 0 };
    Habits { dialect: Dialect::V5, rate: RateLaw::Adaptive, cap }
}

/// What is written, and the room that is free then.
struct Written {
    at: Time,
    octets: u64,
    buffer: Option<Vec<u8>>,
}

/// A sender that has all its data, and a receiver with a disk.
struct Both {
    sender: Connection,
    left: u64,
    current: Option<Current>,
    cut: Cut,
    /// The time that the disk takes for an octet, what it writes, and octets that it has written.
    octet: Span,
    disk: VecDeque<Written>,
    written: u64,
    /// Packets under way by when they come: to the receiver or not.
    under_way: BTreeMap<(Time, u64), (bool, Packet)>,
    count: u64,
    free: Time,
    losses: trunkline_core::Stream,
}

impl Both {
    fn new(cut: Cut, octet: Span) -> Both {
        let terms = Terms {
            uid: 7,
            buffer: cut.buffer(),
            packet: PACKET,
            burst: Burst { size: u16::MAX, interval: 1 },
            outstanding: 512,
            death: 60,
            write: true,
            parity: true,
            ..Terms::default()
        };
        let ports = Ports { local: 7, foreign: 1 };
        let sender = Connection::open(Time::ZERO, terms, ports, habits()).leading();
        let (under_way, losses) = (BTreeMap::new(), Seed(1).stream("losses"));
        let (current, left, free) = (None, BYTES, Time::ZERO);
        let (disk, written, count) = (VecDeque::new(), 0, 0);
        Both { sender, left, current, cut, octet, disk, written, under_way, count, free, losses }
    }

    /// A packet goes onto the path. The line of the way back is never full.
    fn carry(&mut self, now: Time, forth: bool, packet: Packet) {
        let mut ends = now;
        if forth {
            self.free = self.free.max(now) + PACKET_TIME;
            ends = self.free;
        }
        // The queue holds half a round trip.
        let is_full = ends.since(now) > DELAY;
        if !is_full && self.losses.unit() >= LOSS {
            self.count += 1;
            self.under_way.insert((ends + DELAY, self.count), (forth, packet));
        }
    }

    fn say(&mut self, now: Time) {
        loop {
            while let Some(half) = self.sender.sender()
                && half.wants().is_some()
            {
                let bytes = self.left.min(self.cut.buffer().into());
                self.left -= bytes;
                half.fill(bytes as u32, self.left == 0);
            }
            let packet = match self.sender.transmit(now) {
                Some(Out::Data(sending)) => Packet::Data(sending.header),
                Some(Out::Parity(head, _)) => Packet::Parity(head),
                Some(Out::Packet(packet)) => packet,
                None => break,
            };
            self.carry(now, true, packet);
        }
        while let Some(current) = &mut self.current
            && let Some(out) = current.connection.transmit(now)
        {
            if let Out::Packet(packet) = out {
                self.carry(now, false, packet);
            }
        }
    }

    /// A packet has come to the receiver.
    fn take(&mut self, now: Time, packet: &Packet) {
        let Some(current) = &mut self.current else {
            return self.open(now, packet);
        };
        let data = match packet {
            Packet::Data(head) => vec![0; head.bytes.into()],
            Packet::Parity(head) => vec![0; head.bytes.into()],
            _ => Vec::new(),
        };
        let mut tasks = Vec::new();
        current.take(now, packet, &data, &mut |task| tasks.push(task));
        for task in tasks {
            let (octets, buffer) = match task {
                Task::Chunk(_, octets) => (octets.len(), None),
                Task::Buffer(chunks, buffer) => {
                    (chunks.iter().map(|it| it.1.len()).sum(), Some(buffer))
                }
                other => panic!("{other:?}"),
            };
            let begins = self.disk.back().map_or(now, |it| it.at);
            let (at, octets) = (begins + self.octet.scaled(octets as u64, 1), octets as u64);
            self.disk.push_back(Written { at, octets, buffer });
        }
    }

    /// The disk has written what it could by now.
    fn write(&mut self, now: Time) {
        while let Some(Written { octets, buffer, .. }) = self.disk.pop_front_if(|it| it.at <= now) {
            self.written += octets;
            let waiting = self.disk.iter().filter(|it| it.buffer.is_some()).count() as u64;
            if let (Some(current), Some(buffer)) = (&mut self.current, buffer) {
                current.emptied(buffer, waiting);
            }
        }
    }

    fn open(&mut self, now: Time, packet: &Packet) {
        let Packet::Open(terms) = packet else { return };
        let (limits, round) = (Limits { parity: true, ..Limits::default() }, DELAY.scaled(2, 1));
        let ports = Ports { local: 1, foreign: 7 };
        let made = Connection::accept(now, terms, ports, habits(), &limits).unwrap();
        let chunks = BYTES.div_ceil(self.cut.chunk.into());
        let stream = Stream::chunks(self.cut, (0..chunks).collect(), chunks + 1);
        let made = made.expecting(round);
        self.current = Some(Current::new((1, 7), made, stream, 0, (500, round)));
    }

    /// Goes on to the next thing that happens. Answers when that is.
    fn step(&mut self) -> Time {
        let timers = [Some(&self.sender), self.current.as_ref().map(|it| &it.connection)];
        let timers = timers.into_iter().flatten().filter_map(Connection::deadline);
        let comes = self.under_way.keys().next().map(|it| it.0);
        let written = self.disk.front().map(|it| it.at);
        let now = timers.chain(comes).chain(written).min().expect("something happens");
        while let Some(entry) = self.under_way.first_entry()
            && entry.key().0 <= now
        {
            match entry.remove() {
                (true, packet) => self.take(now, &packet),
                (false, packet) => _ = self.sender.receive(now, &packet, true),
            }
        }
        if self.sender.deadline().is_some_and(|it| it <= now) {
            self.sender.expire(now);
        }
        if let Some(current) = &mut self.current
            && current.connection.deadline().is_some_and(|it| it <= now)
        {
            current.connection.expire(now);
        }
        self.write(now);
        self.say(now);
        now
    }

    /// Octets that the receiver has taken and not written.
    fn kept(&mut self) -> u64 {
        let half = self.current.as_mut().and_then(|it| it.connection.receiver());
        let taken = half.map_or(0, |it| it.received.packets) * u64::from(PACKET);
        taken.saturating_sub(self.written)
    }
}

/// What is known of a second of a transfer at work: the mean of what the receiver has taken and not written, in round trips of the path,
/// and octets written for each that the path carries.
fn second(cut: Cut, octet: Span) -> (f64, f64) {
    let (mut both, mut sum) = (Both::new(cut, octet), 0);
    both.say(Time::ZERO);
    let (begin, moments) = (Time::ZERO + Span::from_secs(1), 100);
    while both.step() < begin {}
    let before = both.written;
    for moment in 0..moments {
        let at = begin + Span::from_millis(10 * moment);
        while both.step() < at {}
        sum += both.kept();
    }
    let rounds = sum as f64 / moments as f64 / ROUND as f64;
    (rounds, (both.written - before) as f64 / ROUND as f64 / 20.0)
}

/// A chunk lacks something for a round trip if one of its packets is lost. Of 128 packets one is lost nearly always, and a kill cost
/// twice what is under way.
#[test]
fn a_killed_receiver_has_written_nearly_all_that_came() {
    let cut = Cut::of(BYTES);
    let (kept, _) = second(cut, Span::ZERO);
    assert!(kept < 0.3, "{kept:.2} round trips of data, in chunks of {cut}");
}

/// A disk that is slower than the path, as with many small files, had two to three megabytes to write at any time; now it has a third, and
/// is as busy. It has nothing to write for a moment when what lacks something is in its way.
#[test]
fn a_slow_disk_has_little_to_write_and_is_never_idle_for_long() {
    for nanos in [30, 40, 60, 100, 200] {
        let (kept, share) = second(Cut::of(BYTES), Span::from_nanos(nanos));
        let busy = share * (20 * ROUND * nanos) as f64 / 1e9;
        assert!(kept < 0.75, "{nanos} ns: {kept:.2} round trips of data");
        assert!(busy > 0.97, "{nanos} ns: {busy:.3} of the time");
    }
}
