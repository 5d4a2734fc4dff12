//! Where the time of a long NETBLT transfer goes, as CSV: seconds of the line between two ends, by what it did.
//!
//! ```text
//! cargo run -p trunkline-transport --example netblt_account [SEEDS [PATH]] > account.csv
//! ```
//!
//! Each line is the mean of 7 seeds, or so many, over all paths, or those whose names have PATH in them, with copies of the last packets or with
//! parity behind them. The path is a queue, a line and a delay each way, with losses behind the line in both
//! directions; packets, buffers, naps and opening are those of `trunkline send`, and there are 30 seconds' worth of data. `over` is what
//! the transfer takes beyond 30 seconds at the line's rate, and the sum of the columns behind it: until the first data packet is on the
//! line; packets lost more than the stated share; packets that the receiver had already, before and after the last new one;
//! other packets; the line idle within three round trips of the first data packet, later, and after the last new packet until
//! the receiver has everything; the way of that last packet and of the last word, which is not lost. Two more columns: packets that
//! found the queue full, in seconds of the line (in the others already), and 30 seconds as a share of all.

use std::collections::BTreeMap;
use trunkline_core::{Seed, Span, Stream, Time};
use trunkline_transport::netblt::wire::{Burst, Dialect, Packet, Ports, Terms};
use trunkline_transport::netblt::{Connection, Habits, Limits, Out, RateLaw};

/// User octets of a packet, those of a data packet on the line, and what any packet of `send` has besides its own.
const USER: u16 = 1368;
const LINE: u64 = 1457;
const AROUND: u64 = LINE - USER as u64 - 32;
/// Buffers that may be under way at once.
const OUTSTANDING: u16 = 512;
/// Seconds of the line that the data take.
const SECONDS: f64 = 30.0;

/// A path: bits per second, the delay one way, its loss, and the mean length of bursts of losses.
#[derive(Debug, Clone, Copy)]
struct Path {
    rate: f64,
    delay: Span,
    loss: f64,
    burst: f64,
}

/// A two-state process of losses; bursts of one packet are independent losses.
struct Losses {
    stream: Stream,
    is_bad: bool,
    into: f64,
    out: f64,
}

impl Losses {
    fn new(path: Path, stream: Stream) -> Losses {
        let out = 1.0 / path.burst;
        let into = if path.burst > 1.0 { path.loss * out / (1.0 - path.loss) } else { path.loss };
        Losses { stream, is_bad: false, into, out }
    }

    fn loses(&mut self) -> bool {
        let chance = self.stream.unit();
        self.is_bad = match self.out < 1.0 {
            true if self.is_bad => chance >= self.out,
            _ => chance < self.into,
        };
        self.is_bad
    }
}

/// One direction.
struct Way {
    path: Path,
    free: Time,
    losses: Losses,
    limit: Span,
}

impl Way {
    fn new(path: Path, stream: Stream) -> Way {
        let limit = Span::from_nanos(path.delay.as_nanos());
        Way { path, free: Time::ZERO, losses: Losses::new(path, stream), limit }
    }

    /// Takes a packet of so many octets. Answers when it began on the line and when it left that; `None` if the queue is full.
    fn take(&mut self, now: Time, octets: u64) -> Option<(Time, Time)> {
        if self.free.since(now) > self.limit {
            return None;
        }
        let begins = self.free.max(now);
        let takes = octets as f64 * 8e9 / self.path.rate;
        self.free = begins + Span::from_nanos(takes as u64);
        Some((begins, self.free))
    }
}

/// What the line did with a packet.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Did {
    Open,
    Other,
    Lost,
    Came,
    Had,
}

struct Run {
    /// Every packet on the line: when it began, when it ended, what it was, and whether it went for the first time.
    line: Vec<(Time, Time, Did, bool)>,
    /// Packets dropped by the queue.
    full: u64,
    end: Time,
    whole: Time,
}

const PORTS: Ports = Ports { local: 7, foreign: 1 };

fn habits() -> Habits {
    let cap = Burst { size: 1, interval: 0 };
    Habits { dialect: Dialect::V5, rate: RateLaw::Adaptive, cap }
}

fn terms(bytes: u64, parity: bool) -> Terms {
    let packets = (bytes / (256 * u64::from(USER))).clamp(8, 128);
    Terms {
        uid: 7,
        buffer: packets as u32 * u32::from(USER),
        packet: USER,
        burst: Burst { size: u16::MAX, interval: 1 },
        outstanding: OUTSTANDING,
        death: 60,
        write: true,
        parity,
        ..Terms::default()
    }
}

/// The transfer under way.
struct World {
    sender: Connection,
    receiver: Option<Connection>,
    has_met: bool,
    turn: usize,
    has_all: bool,
    wholes: u64,
    /// Rows of parity that have come of each buffer.
    rows: BTreeMap<u64, usize>,
    last: Option<u64>,
    left: u64,
    ways: [Way; 2],
    under_way: BTreeMap<(Time, u64), (usize, Packet)>,
    count: u64,
    run: Run,
}

impl World {
    fn new(path: Path, seed: u64, bytes: u64, parity: bool) -> World {
        let streams = ["forth", "back"].map(|name| Seed(seed).stream(name));
        let ways = streams.map(|stream| Way::new(path, stream));
        let sender = Connection::open(Time::ZERO, terms(bytes, parity), PORTS, habits()).leading();
        let run = Run { line: Vec::new(), full: 0, end: Time::ZERO, whole: Time::ZERO };
        World {
            sender,
            receiver: None,
            has_met: false,
            turn: 0,
            has_all: false,
            wholes: 0,
            rows: BTreeMap::new(),
            last: None,
            left: bytes,
            ways,
            under_way: BTreeMap::new(),
            count: 0,
            run,
        }
    }

    fn fill(&mut self) {
        let Some(sender) = self.sender.sender() else { return };
        while sender.wants().is_some() {
            let bytes = self.left.min(sender.buffer_size().into());
            self.left -= bytes;
            sender.fill(bytes as u32, self.left == 0);
        }
    }

    fn carry(&mut self, now: Time, to: usize, packet: Packet, octets: u64, again: bool) {
        let way = &mut self.ways[1 - to];
        let (path, count) = (way.path, self.count);
        let Some((begins, ends)) = way.take(now, octets) else {
            self.run.full += u64::from(to == 1);
            return;
        };
        let is_lost = way.losses.loses();
        self.count += 1;
        if to == 1 {
            let did = match &packet {
                Packet::Open(_) => Did::Open,
                Packet::Data(_) | Packet::Parity(_) if is_lost => Did::Lost,
                Packet::Data(_) | Packet::Parity(_) => Did::Had,
                _ => Did::Other,
            };
            self.run.line.push((begins, ends, did, !again));
        }
        if !is_lost {
            let index = self.run.line.len() as u64;
            let key = (ends + path.delay, if to == 1 { index } else { count + (1 << 40) });
            self.under_way.insert(key, (to, packet));
        }
    }

    fn send(&mut self, now: Time) {
        self.fill();
        while self.turn == 0
            && let Some(out) = self.sender.transmit(now)
        {
            let (packet, octets, again) = match out {
                Out::Data(sending) => {
                    let data = u64::from(sending.header.bytes);
                    (Packet::Data(sending.header), 32 + data, sending.again)
                }
                Out::Parity(parity, _) => (Packet::Parity(parity), 32 + u64::from(USER), true),
                Out::Packet(packet @ Packet::Open(_)) => (packet, 32 + u64::from(USER), false),
                Out::Packet(packet) => (packet, 24, false),
            };
            self.carry(now, 1, packet, octets + AROUND, again);
            self.fill();
        }
        let Some(receiver) = self.receiver.as_mut().filter(|_| self.turn == 1) else { return };
        let mut said = Vec::new();
        while let Some(out) = receiver.transmit(now) {
            if let Out::Packet(packet) = out {
                said.push(packet);
            }
        }
        for packet in said {
            self.carry(now, 0, packet, 100 + AROUND, false);
        }
    }

    fn come(&mut self, now: Time, index: u64, to: usize, packet: &Packet) {
        if to == 0 {
            if matches!(packet, Packet::Response(_)) && self.sender.is_opening() {
                self.carry(now, 1, Packet::Keepalive, 12 + AROUND, false);
            }
            _ = self.sender.receive(now, packet, true);
            return;
        }
        if let Packet::Open(terms) = packet {
            return self.opened(now, terms, packet);
        }
        let Some(mut receiver) = self.receiver.take() else { return };
        if !self.has_met {
            self.has_met = true;
            let round = self.ways[0].path.delay.scaled(2, 1);
            receiver.provide(1 << 30);
            receiver = receiver.met(now, round);
        }
        if receiver.receive(now, packet, true).is_some() {
            self.run.line[index as usize - 1].2 = Did::Came;
            self.run.whole = now;
        }
        self.recover(now, &mut receiver, packet);
        while let Some(whole) = receiver.receiver().and_then(|it| it.take()) {
            self.wholes += 1;
            self.last = self.last.or(whole.last.then_some(whole.buffer + 1));
        }
        self.has_all = self.last == Some(self.wholes);
        self.receiver = Some(receiver);
    }

    fn opened(&mut self, now: Time, terms: &Terms, packet: &Packet) {
        if let Some(receiver) = &mut self.receiver {
            _ = receiver.receive(now, packet, true);
            receiver.receiver().into_iter().for_each(|it| _ = it.repeat());
            return;
        }
        let limits = Limits { parity: true, ..Limits::default() };
        let made = Connection::accept(now, terms, PORTS.turned(), habits(), &limits);
        let mut made = made.expect("possible terms");
        made.provide(64);
        made.knocked(now, terms);
        self.receiver = Some(made);
    }

    /// Counts rows of parity, and gives a buffer what it lacks when there are enough.
    fn recover(&mut self, now: Time, receiver: &mut Connection, packet: &Packet) {
        let place = match packet {
            Packet::Parity(parity) => {
                let place = receiver.receive_parity(now, parity, true);
                place.into_iter().for_each(|it| *self.rows.entry(it).or_default() += 1);
                place
            }
            Packet::Data(data) => Some(u64::from(data.buffer) - 1),
            _ => None,
        };
        if let (Some(place), Some(half)) = (place, receiver.receiver())
            && let Some(holes) = half.holes(place)
            && self.rows.get(&place).is_some_and(|&rows| rows >= holes.missing.len())
        {
            half.fill_in(place);
            self.run.whole = now;
        }
    }

    /// The nap of the ends of `send` over this path.
    fn nap(&self) -> Span {
        let round = self.ways[0].path.delay.scaled(2, 1);
        round.scaled(1, 64).max(Span::from_micros(250)).min(Span::from_millis(4))
    }

    /// When each end looks around next: the sender when something comes or is due and it has napped, the receiver when it has napped.
    fn looks(&self, looked: [Time; 2]) -> [Option<Time>; 2] {
        let nap = self.nap();
        let comes = |to| self.under_way.iter().find(|it| it.1.0 == to).map(|it| it.0.0);
        let due = self.sender.deadline().map(|at| at.max(looked[0] + nap));
        let sender = due.into_iter().chain(comes(0)).min();
        let receiver =
            self.receiver.as_ref().filter(|_| self.has_met).and_then(Connection::deadline);
        let receiver = receiver.into_iter().chain(comes(1)).min();
        let at_work = if self.has_met { looked[1] + nap } else { looked[1] };
        [sender, receiver.map(|at| at.max(at_work))]
    }

    /// Runs until the sender knows that the receiver has everything.
    fn run(mut self) -> Run {
        let (mut now, mut looked) = (Time::ZERO, [Time::ZERO; 2]);
        self.send(now);
        while self.sender.ending().is_none() {
            let looks = self.looks(looked);
            let Some(next) = looks.into_iter().flatten().min() else { break };
            now = now.max(next);
            let end = usize::from(looks[0] != Some(next));
            (looked[end], self.turn) = (now, end);
            while let Some((&key, _)) =
                self.under_way.iter().find(|it| it.1.0 == end && it.0.0 <= now)
            {
                let (to, packet) = self.under_way.remove(&key).expect("it is there");
                self.come(key.0, key.1, to, &packet);
            }
            match (end, &mut self.receiver) {
                (0, _) => self.sender.expire(now),
                (_, Some(receiver)) if self.has_met => receiver.expire(now),
                _ => {}
            }
            let nap = self.nap();
            self.sender.sender().into_iter().for_each(|it| it.set_slack(nap.scaled(2, 1)));
            self.send(now);
            if self.has_all {
                break;
            }
        }
        self.run.end = self.run.whole + self.ways[0].path.delay;
        self.run
    }
}

/// The columns of a run, in seconds.
fn account(run: &Run, path: Path) -> [f64; 12] {
    let seconds = |span: Span| span.as_secs_f64();
    let is_data = |did: Did| matches!(did, Did::Lost | Did::Came | Did::Had);
    let first = run.line.iter().find(|it| is_data(it.2)).map_or(Time::ZERO, |it| it.0);
    let last_new =
        run.line.iter().rev().find(|it| is_data(it.2) && it.3).map_or(Time::ZERO, |it| it.1);
    let came = run.whole.before(path.delay);
    let early = first + path.delay.scaled(6, 1);
    let mut sums = [0.0; 12];
    let packet = LINE as f64 * 8.0 / path.rate;
    let mut before = first;
    let (mut lost, mut had) = (0.0, 0.0);
    for &(begins, ends, did, _) in run.line.iter().filter(|it| it.0 >= first && it.0 < came) {
        let idle = seconds(begins.since(before));
        let place = if begins > last_new {
            8
        } else if begins < early {
            6
        } else {
            7
        };
        sums[place] += idle;
        before = ends;
        let took = seconds(ends.since(begins));
        match did {
            Did::Came => had += took,
            Did::Lost => lost += took,
            Did::Had if begins >= last_new => sums[4] += took,
            Did::Had => sums[3] += took,
            _ => sums[5] += took,
        }
    }
    sums[0] = seconds(run.end.since(Time::ZERO)) - SECONDS;
    sums[1] = seconds(first.since(Time::ZERO));
    sums[2] = lost + had - SECONDS;
    sums[9] = seconds(run.end.since(came));
    sums[10] = run.full as f64 * packet;
    sums[11] = SECONDS / (sums[0] + SECONDS);
    sums
}

/// The paths: name, bits per second, milliseconds one way, loss, and the mean length of its bursts.
const PATHS: [(&str, f64, u64, f64, f64); 7] = [
    ("10M-600ms-0%", 10e6, 300, 0.0, 1.0),
    ("10M-600ms-1%", 10e6, 300, 0.01, 1.0),
    ("10M-600ms-5%", 10e6, 300, 0.05, 1.0),
    ("100M-100ms-1%", 100e6, 50, 0.01, 1.0),
    ("100M-100ms-bursts", 100e6, 50, 0.02, 10.0),
    ("1M-1.8s-0%", 1e6, 900, 0.0, 1.0),
    ("1M-1.8s-0.5%", 1e6, 900, 0.005, 1.0),
];

fn main() {
    println!(
        "path,parity,over,opening,lost,had,had_end,other,idle_start,idle,idle_end,way,full,share"
    );
    let seeds: u64 = std::env::args().nth(1).and_then(|it| it.parse().ok()).unwrap_or(7);
    let only = std::env::args().nth(2).unwrap_or_default();
    for (name, rate, delay, loss, burst) in PATHS.into_iter().filter(|it| it.0.contains(&only)) {
        let path = Path { rate, delay: Span::from_millis(delay), loss, burst };
        let bytes = (rate * (1.0 - loss) * f64::from(USER) / LINE as f64 * SECONDS / 8.0) as u64;
        for parity in [false, true] {
            let mut mean = [0.0; 12];
            for seed in 1..=seeds {
                let sums = account(&World::new(path, seed, bytes, parity).run(), path);
                mean.iter_mut().zip(sums).for_each(|(to, it)| *to += it / seeds as f64);
            }
            let text = mean.map(|it| format!("{it:.3}"));
            println!("{name},{parity},{}", text.join(","));
        }
    }
}
