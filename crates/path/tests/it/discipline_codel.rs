//! CoDel and FQ-CoDel against transcriptions of the pseudo-code and text of RFC 8289 and RFC 8290.

use std::collections::VecDeque;
use trunkline_core::{Channel, DropCause, Packet, Seed, Span, Stream, Time};
use trunkline_path::discipline::{CodelSettings, Keys};
use trunkline_path::{AnyDiscipline, Discipline, DisciplineSpec, Drops, Limit};

const MS: u64 = 1_000_000;

/// RFC 8289 §5.2 to §5.6, in its own names, with `sqrt` in floating point and 0 for "no time".
struct RfcCodel {
    target: u64,
    interval: u64,
    maxpacket: u64,
    queue: VecDeque<Queued>,
    bytes: u64,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    dropped: Vec<usize>,
    resumed: u32,
}

type Queued = (u64, u32, usize);

impl RfcCodel {
    fn new(target: u64, interval: u64, maxpacket: u64) -> RfcCodel {
        RfcCodel {
            target,
            interval,
            maxpacket,
            queue: VecDeque::new(),
            bytes: 0,
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            dropped: Vec::new(),
            resumed: 0,
        }
    }

    fn enqueue(&mut self, now: u64, size: u32, number: usize) {
        self.bytes += u64::from(size);
        self.queue.push_back((now, size, number));
    }

    fn control_law(&self, t: u64, count: u32) -> u64 {
        t + (self.interval as f64 / f64::from(count).sqrt()) as u64
    }

    fn dodequeue(&mut self, now: u64) -> (Option<Queued>, bool) {
        let mut ok_to_drop = false;
        let p = self.queue.pop_front();
        match p {
            None => self.first_above_time = 0,
            Some((tstamp, size, _)) => {
                self.bytes -= u64::from(size);
                let sojourn_time = now - tstamp;
                if sojourn_time < self.target || self.bytes <= self.maxpacket {
                    self.first_above_time = 0;
                } else if self.first_above_time == 0 {
                    self.first_above_time = now + self.interval;
                } else if now >= self.first_above_time {
                    ok_to_drop = true;
                }
            }
        }
        (p, ok_to_drop)
    }

    fn drop(&mut self, p: Option<Queued>) {
        self.dropped.extend(p.map(|(_, _, number)| number));
    }

    fn dequeue(&mut self, now: u64) -> Option<Queued> {
        let (mut p, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.drop(p);
                self.count += 1;
                (p, ok_to_drop) = self.dodequeue(now);
                if !ok_to_drop {
                    self.dropping = false;
                } else {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                }
            }
        } else if ok_to_drop {
            self.drop(p);
            (p, _) = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count.wrapping_sub(self.lastcount);
            self.count = 1;
            if delta > 1 && (now as i64 - self.drop_next as i64) < 16 * self.interval as i64 {
                self.count = delta;
                self.resumed += 1;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        p
    }
}

/// RFC 8290 §4, with a search wherever it says so, for channels that never share a queue.
struct RfcFqCodel {
    queues: Vec<(RfcCodel, i64)>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    quantum: i64,
}

impl RfcFqCodel {
    fn enqueue(&mut self, now: u64, channel: usize, size: u32, number: usize) {
        self.queues[channel].0.enqueue(now, size, number);
        if !self.new.contains(&channel) && !self.old.contains(&channel) {
            self.new.push_back(channel);
            self.queues[channel].1 = self.quantum;
        }
    }

    fn dequeue(&mut self, now: u64) -> Option<Queued> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let channel = list.pop_front()?;
            let (codel, credits) = &mut self.queues[channel];
            if *credits <= 0 {
                *credits += self.quantum;
                self.old.push_back(channel);
                continue;
            }
            match codel.dequeue(now) {
                Some(p) => {
                    *credits -= i64::from(p.1);
                    if from_new { &mut self.new } else { &mut self.old }.push_front(channel);
                    return Some(p);
                }
                None if from_new => self.old.push_back(channel),
                None => {}
            }
        }
    }

    fn dropped(&mut self) -> Vec<usize> {
        let mut all: Vec<usize> =
            self.queues.iter_mut().flat_map(|(codel, _)| codel.dropped.drain(..)).collect();
        all.sort_unstable();
        all
    }
}

fn any(spec: &DisciplineSpec) -> AnyDiscipline<Packet<usize>> {
    AnyDiscipline::new(spec, Seed(0), "test")
}

fn offer(
    discipline: &mut AnyDiscipline<Packet<usize>>,
    now: u64,
    (channel, size, number): (u64, u32, usize),
) {
    let now = Time::from_nanos(now);
    let mut drops = Drops::default();
    discipline.enqueue(now, Packet::new(Channel(channel), size, now, number), &mut drops);
    assert!(drops.is_empty());
}

/// What is served at `now`, and what CoDel drops meanwhile.
fn serve(discipline: &mut AnyDiscipline<Packet<usize>>, now: u64) -> (Option<usize>, Vec<usize>) {
    let mut drops = Drops::default();
    let served = discipline.dequeue(Time::from_nanos(now), &mut drops);
    let dropped = drops.drain().map(|(packet, cause)| {
        assert_eq!(cause, DropCause::CoDel);
        packet.body
    });
    (served.and_then(|s| s.packet).map(|p| p.body), dropped.collect())
}

#[test]
fn the_first_drops_of_a_standing_queue_worked_by_hand() {
    let mut codel = any(&"codel:limit=10000p".parse().unwrap());
    for number in 0..1000 {
        offer(&mut codel, 0, (1, 1500, number));
    }
    // One packet each millisecond. The delay reaches 5 ms at 5 ms, an interval later is 105 ms: the
    // first drop. The next is due 100/√1 ms later, at 205 ms; then 100/√2 = 70.711 ms later, at
    // 275.711 ms, so at the packet of 276 ms; then 100/√3 = 57.735 ms, at 333.446; then 100/√4 = 50, at
    // 383.446; then 100/√5 = 44.721, at 428.167; then 100/√6 = 40.825, at 468.992 ms.
    let dropping: Vec<u64> =
        (1..=480).filter(|ms| !serve(&mut codel, ms * MS).1.is_empty()).collect();
    assert_eq!(dropping, [105, 205, 276, 334, 384, 429, 469]);
}

/// A trace of arrivals and services whose load swings between a third and twice the line's rate.
struct Trace {
    stream: Stream,
    now: u64,
    number: usize,
}

enum Event {
    Arrival { channel: u64, size: u32, number: usize },
    Service,
}

impl Trace {
    fn new(seed: u64) -> Trace {
        Trace { stream: Seed(seed).stream("trace"), now: 0, number: 0 }
    }

    fn next(&mut self) -> (u64, Event) {
        self.now += self.stream.below(MS);
        let arrivals_of_ten = [2, 7, 5, 6][(self.now / (400 * MS) % 4) as usize];
        let event = if self.stream.below(10) < arrivals_of_ten {
            self.number += 1;
            let size = 40 + self.stream.below(1461) as u32;
            // Half of the packets belong to one channel of eight.
            let channel = self.stream.below(16).saturating_sub(8);
            Event::Arrival { channel, size, number: self.number }
        } else {
            Event::Service
        };
        (self.now, event)
    }
}

#[test]
fn codel_decides_as_the_pseudo_code_on_random_traces() {
    let (mut drops, mut resumed) = (0, 0);
    for seed in 0..60 {
        let [target, interval] = [[5, 100], [1, 20], [20, 50]][(seed % 3) as usize];
        let mut real = any(&DisciplineSpec::from(CodelSettings {
            target: Span::from_millis(target),
            interval: Span::from_millis(interval),
            ..CodelSettings::with_limit(Limit::Packets(1 << 30))
        }));
        let mut rfc = RfcCodel::new(target * MS, interval * MS, 1500);
        let mut trace = Trace::new(seed);
        for _ in 0..20_000 {
            match trace.next() {
                (now, Event::Arrival { size, number, .. }) => {
                    offer(&mut real, now, (1, size, number));
                    rfc.enqueue(now, size, number);
                }
                (now, Event::Service) => {
                    let (served, dropped) = serve(&mut real, now);
                    let expected = rfc.dequeue(now).map(|(_, _, number)| number);
                    assert_eq!(
                        (served, &dropped),
                        (expected, &rfc.dropped),
                        "seed {seed} at {now}"
                    );
                    drops += dropped.len();
                    rfc.dropped.clear();
                }
            }
        }
        resumed += rfc.resumed;
    }
    assert!(drops > 1000 && resumed > 20, "{drops} drops, {resumed} resumed at the old rate");
}

#[test]
fn fq_codel_decides_as_the_text_on_random_traces() {
    let mut drops = 0;
    for seed in 0..60 {
        let quantum = [1514, 300, 5000][(seed % 3) as usize];
        // So many queues that the eight channels do not share any.
        let text = format!("fq-codel:flows=1048576,quantum={quantum},limit=1000000p,interval=30ms");
        let mut real = any(&text.parse().unwrap());
        let mut rfc = RfcFqCodel {
            queues: (0..8).map(|_| (RfcCodel::new(5 * MS, 30 * MS, 1500), 0)).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::from(quantum),
        };
        let mut trace = Trace::new(1000 + seed);
        for _ in 0..20_000 {
            match trace.next() {
                (now, Event::Arrival { channel, size, number }) => {
                    offer(&mut real, now, (channel, size, number));
                    rfc.enqueue(now, channel as usize, size, number);
                }
                (now, Event::Service) => {
                    let (served, mut dropped) = serve(&mut real, now);
                    let expected = rfc.dequeue(now).map(|(_, _, number)| number);
                    dropped.sort_unstable();
                    assert_eq!(
                        (served, &dropped),
                        (expected, &rfc.dropped()),
                        "seed {seed} at {now}"
                    );
                    drops += dropped.len();
                }
            }
        }
    }
    assert!(drops > 1000, "{drops}");
}
