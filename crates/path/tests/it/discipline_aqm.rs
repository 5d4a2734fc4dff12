//! What active queue management is for: a line that is loaded all the time, and how long packets wait.

use std::cell::Cell;
use std::collections::BTreeMap;
use trunkline_core::{Channel, DropCause, Ecn, Metered, Packet, Seed, Span, Time};
use trunkline_path::{AnyDiscipline, Discipline, Drops, Service};

const US: u64 = 1000;
const MS: u64 = 1_000_000;
const SIZE: u32 = 1500;

fn build<P: Metered>(text: &str, seed: u64) -> AnyDiscipline<P> {
    AnyDiscipline::new(&text.parse().unwrap(), Seed(seed), "test")
}

/// A line with a queue: what it did after a warm-up.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Waiting times, in nanoseconds.
    waits: Vec<u64>,
    marked: u64,
    dropped: u64,
    overflowed: u64,
    arrived: u64,
    /// Time in which the line had nothing to send.
    idle: u64,
}

impl Outcome {
    fn mean_ms(&self) -> f64 {
        self.waits.iter().sum::<u64>() as f64 / self.waits.len() as f64 / MS as f64
    }

    fn percentile_ms(&mut self, percent: usize) -> f64 {
        self.waits.sort_unstable();
        self.waits[(self.waits.len() - 1) * percent / 100] as f64 / MS as f64
    }
}

/// Packets that come at random, on average one in `gap`, and react to nothing; the line takes `service` for
/// each. A minute, of which the first ten seconds do not count.
fn constant_load(text: &str, ecn: Ecn, gap: u64, service: u64, seed: u64) -> Outcome {
    let mut queue = build::<Packet<usize>>(text, seed);
    let (mut drops, mut stream) = (Drops::default(), Seed(seed).stream("arrivals"));
    let mut outcome = Outcome::default();
    let (mut arrival, mut free) = (0, 0);
    while arrival < 60_000 * MS {
        let counts = arrival > 10_000 * MS;
        if free <= arrival {
            match queue.dequeue(Time::from_nanos(free), &mut drops) {
                Some(Service { packet: Some(packet), .. }) => {
                    if counts {
                        outcome.waits.push(free - packet.entered.as_nanos());
                        outcome.marked += u64::from(packet.ecn == Ecn::Ce);
                    }
                    free += service;
                }
                _ => {
                    outcome.idle += if counts { arrival - free } else { 0 };
                    free = arrival + 1;
                }
            }
        } else {
            let now = Time::from_nanos(arrival);
            let packet = Packet { ecn, ..Packet::new(Channel(1), SIZE, now, 0) };
            queue.enqueue(now, packet, &mut drops);
            outcome.arrived += u64::from(counts);
            arrival += 1 + stream.below(2 * gap);
        }
        for (_, cause) in drops.drain().filter(|_| counts) {
            match cause {
                DropCause::QueueLimit => outcome.overflowed += 1,
                _ => outcome.dropped += 1,
            }
        }
    }
    outcome
}

#[test]
fn pie_holds_its_target_under_constant_overload() {
    // Half as much again as the line can carry; two in three packets pass.
    for (target, seed) in [(15, 1), (15, 2), (50, 3), (5, 4)] {
        let text = format!("pie:target={target}ms,limit=10000p");
        let outcome = constant_load(&text, Ecn::NotEct, 400 * US, 600 * US, seed);
        let (mean, target) = (outcome.mean_ms(), f64::from(target));
        assert!((mean - target).abs() < 0.1 * target, "{mean} ms for {target}");
        let lost = outcome.dropped as f64 / outcome.arrived as f64;
        assert!((lost - 1.0 / 3.0).abs() < 0.01, "{lost} lost");
        assert_eq!((outcome.marked, outcome.overflowed, outcome.idle), (0, 0, 0));
    }
}

#[test]
fn pie_leaves_a_line_alone_that_is_not_full() {
    let outcome = constant_load("pie:limit=10000p", Ecn::NotEct, 1000 * US, 600 * US, 1);
    assert_eq!((outcome.dropped, outcome.overflowed), (0, 0));
}

#[test]
fn pie_marks_only_below_its_threshold() {
    let run = |text: &str, ecn| constant_load(text, ecn, 570 * US, 600 * US, 9);
    // One packet in twenty too many, and marks do not make it fewer: the probability goes above 10 %, so
    // that drops take the place of marks until it is below again.
    let marks = run("pie:limit=10000p", Ecn::Ect0);
    assert!(marks.marked > 100 && marks.dropped > 1000, "{} {}", marks.marked, marks.dropped);
    let never = run("pie:limit=10000p,ecn=false", Ecn::Ect0);
    assert!(never.marked == 0 && never.dropped > 1000);
    let always = run("pie:limit=1000p,mark_below=100%", Ecn::Ect0);
    assert!(always.marked > 1000 && always.dropped == 0 && always.overflowed > 1000);
    let plain = run("pie:limit=10000p", Ecn::NotEct);
    assert_eq!(plain.marked, 0);
    assert!(plain.mean_ms() < 20.0, "{}", plain.mean_ms());
}

#[test]
fn dualpi2_drops_under_overload_whatever_the_bits_say() {
    for ecn in Ecn::ALL {
        let outcome = constant_load("dualpi2:limit=10000p", ecn, 400 * US, 600 * US, 5);
        let lost = outcome.dropped as f64 / outcome.arrived as f64;
        assert!((lost - 1.0 / 3.0).abs() < 0.01, "{ecn:?}: {lost} lost");
        assert!((outcome.mean_ms() - 15.0).abs() < 1.5, "{ecn:?}: {} ms", outcome.mean_ms());
        assert_eq!(outcome.overflowed, 0);
        // Arrivals are uneven, and the queue is short: it may run empty now and then.
        assert!(outcome.idle < 50 * MS, "{ecn:?}: {} ns idle", outcome.idle);
    }
}

#[test]
fn chance_is_the_seeds() {
    for text in ["pie:limit=100p", "dualpi2:limit=100p", "sfq:limit=100p"] {
        let run = |seed| {
            let mut queue = build::<Packet<usize>>(text, seed);
            let (mut drops, mut kept) = (Drops::default(), Vec::new());
            for number in 0..3000 {
                let now = Time::from_nanos(number as u64 * MS);
                for copy in 0..2 {
                    let channel = Channel(number as u64 % 50);
                    queue.enqueue(
                        now,
                        Packet::new(channel, SIZE, now, 2 * number + copy),
                        &mut drops,
                    );
                }
                kept.extend(
                    queue.dequeue(now, &mut drops).and_then(|it| it.packet).map(|it| it.body),
                );
            }
            kept
        };
        assert_eq!(run(1), run(1), "{text}");
        assert_ne!(run(1), run(2), "{text}");
    }
}

/// A sender of the simplest kind: as many packets under way as its window says, which each answer changes.
struct Sender {
    ecn: Ecn,
    window: f64,
    under_way: u64,
    /// What is sent from then on answers to the window as it is now.
    round: u64,
    /// Answers in this round, and marks among them.
    answers: f64,
    marks: f64,
    /// The share of marks, smoothed.
    share: f64,
    delivered: u64,
}

impl Sender {
    /// What a packet's fate, told at `now`, does to the window.
    fn hears(&mut self, sent: u64, now: u64, fate: Fate) {
        self.under_way -= 1;
        self.answers += 1.0;
        self.window += 1.0 / self.window;
        if fate == Fate::Passed && sent < self.round {
            return;
        }
        match self.ecn {
            Ecn::Ect1 => self.scales(sent, now, fate),
            _ if fate != Fate::Passed && sent >= self.round => {
                self.window /= 2.0;
                self.round = now;
            }
            _ => {}
        }
        self.window = self.window.max(2.0);
    }

    /// DCTCP's rule (RFC 8257 §3.3): once a round trip, off goes half of the smoothed share of marks.
    fn scales(&mut self, sent: u64, now: u64, fate: Fate) {
        self.marks += f64::from(fate != Fate::Passed);
        if sent >= self.round {
            self.share += (self.marks / self.answers - self.share) / 16.0;
            if self.marks > 0.0 {
                self.window *= 1.0 - self.share / 2.0;
            }
            (self.answers, self.marks, self.round) = (0.0, 0.0, now);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Passed,
    Marked,
    Lost,
}

/// What goes on at a line of 100 Mbit/s with senders 10 ms of round trip away from it.
struct Scene {
    queue: AnyDiscipline<Packet<usize>>,
    senders: Vec<Sender>,
    /// Answers under way: when they come, a number of their own, whose, when the packet was sent, its fate.
    answers: BTreeMap<(u64, u64), (usize, u64, Fate)>,
    number: u64,
    low: Outcome,
    classic: Outcome,
}

impl Scene {
    const SERVICE: u64 = 120 * US;
    const ROUND_TRIP: u64 = 10 * MS;

    fn new(text: &str, kinds: &[Ecn]) -> Scene {
        let sender = |&ecn| Sender {
            ecn,
            window: 10.0,
            under_way: 0,
            round: 0,
            answers: 0.0,
            marks: 0.0,
            share: 1.0,
            delivered: 0,
        };
        Scene {
            queue: build(text, 1),
            senders: kinds.iter().map(sender).collect(),
            answers: BTreeMap::new(),
            number: 0,
            low: Outcome::default(),
            classic: Outcome::default(),
        }
    }

    /// Sends what the windows allow.
    fn send(&mut self, now: u64, drops: &mut Drops<Packet<usize>>) {
        for (index, sender) in self.senders.iter_mut().enumerate() {
            while sender.under_way < sender.window as u64 {
                sender.under_way += 1;
                let (channel, at) = (Channel(index as u64), Time::from_nanos(now));
                let packet =
                    Packet { ecn: sender.ecn, ..Packet::new(channel, SIZE, at, now as usize) };
                self.queue.enqueue(at, packet, drops);
            }
        }
        self.settle(now, drops);
    }

    fn settle(&mut self, now: u64, drops: &mut Drops<Packet<usize>>) {
        for (packet, _) in drops.drain() {
            self.answer(now, &packet, Fate::Lost);
        }
    }

    fn answer(&mut self, now: u64, packet: &Packet<usize>, fate: Fate) {
        self.number += 1;
        let answer = (packet.channel.0 as usize, packet.body as u64, fate);
        self.answers.insert((now + Self::ROUND_TRIP, self.number), answer);
    }

    /// The line sends one packet. Returns whether it did.
    fn serve(&mut self, now: u64, counts: bool, drops: &mut Drops<Packet<usize>>) -> bool {
        let service = self.queue.dequeue(Time::from_nanos(now), drops);
        self.settle(now, drops);
        let Some(packet) = service.and_then(|it| it.packet) else { return false };
        let fate = if packet.ecn == Ecn::Ce { Fate::Marked } else { Fate::Passed };
        self.answer(now + Self::SERVICE, &packet, fate);
        if counts {
            let sender = &mut self.senders[packet.channel.0 as usize];
            sender.delivered += 1;
            let low = sender.ecn == Ecn::Ect1;
            let outcome = if low { &mut self.low } else { &mut self.classic };
            outcome.waits.push(now - packet.entered.as_nanos());
            outcome.marked += u64::from(fate == Fate::Marked);
        }
        true
    }

    /// Forty seconds, of which the first ten do not count. The share of time in which the line was busy.
    fn run(&mut self) -> f64 {
        let mut drops = Drops::default();
        let (mut now, mut free, mut served) = (0, 0, 0u64);
        self.send(now, &mut drops);
        while now < 40_000 * MS {
            let counts = now > 10_000 * MS;
            if free <= now && self.serve(now, counts, &mut drops) {
                served += u64::from(counts);
                free = now + Self::SERVICE;
            }
            let answer = self.answers.first_key_value().map_or(u64::MAX, |(&(at, _), _)| at);
            now = if free > now { answer.min(free) } else { answer };
            while let Some((&key, &(whose, sent, fate))) = self.answers.first_key_value()
                && key.0 <= now
            {
                self.answers.remove(&key);
                self.senders[whose].hears(sent, now, fate);
            }
            self.send(now, &mut drops);
        }
        (served * Self::SERVICE) as f64 / (30_000 * MS) as f64
    }
}

#[test]
fn dualpi2_keeps_the_low_latency_queue_near_its_step() {
    for count in [1, 2, 8] {
        let mut scene = Scene::new("dualpi2:limit=10000p", &vec![Ecn::Ect1; count]);
        let busy = scene.run();
        let (median, p99) = (scene.low.percentile_ms(50), scene.low.percentile_ms(99));
        assert!((0.2..1.0).contains(&median), "{count} senders: median {median} ms");
        assert!((1.0..2.5).contains(&p99), "{count} senders: 99 in 100 below {p99} ms");
        assert!(busy > 0.95, "{count} senders: busy for {busy}");
    }
}

/// The coupling gives a classic flow and a scalable one the same window (RFC 9332 §2.1); their rates differ as
/// their round trips do, of which the classic queue is a part.
#[test]
fn dualpi2_lets_a_classic_flow_and_a_scalable_one_have_the_same_window() {
    for classic in [Ecn::NotEct, Ecn::Ect0] {
        let mut scene = Scene::new("dualpi2:limit=10000p", &[Ecn::Ect1, classic]);
        let busy = scene.run();
        let round_trips = [&scene.low, &scene.classic].map(|it| 10.0 + it.mean_ms());
        let window = |index: usize| scene.senders[index].delivered as f64 * round_trips[index];
        let ratio = window(0) / window(1);
        assert!((0.67..1.5).contains(&ratio), "{classic:?}: ratio {ratio}");
        assert!(busy > 0.95, "{classic:?}: busy for {busy}");
        assert_eq!(scene.classic.marked > 0, classic == Ecn::Ect0);
        let (low, late) = (scene.low.percentile_ms(50), scene.classic.mean_ms());
        assert!(low < 1.0, "{classic:?}: {low} ms");
        assert!((10.0..20.0).contains(&late), "{classic:?}: {late} ms for 15");
    }
}

#[test]
fn codel_marks_where_it_would_drop() {
    for text in ["codel:ecn=true,limit=10000p", "fq-codel"] {
        let mut queue = build::<Packet<usize>>(text, 1);
        let mut drops = Drops::default();
        for number in 0..1000 {
            let ecn = Ecn::from_bits(1 + number as u8 % 2);
            let packet = Packet { ecn, ..Packet::new(Channel(1), SIZE, Time::ZERO, 0) };
            queue.enqueue(Time::ZERO, packet, &mut drops);
        }
        // The instants of the drops of `the_first_drops_of_a_standing_queue_worked_by_hand`.
        let mut marks = Vec::new();
        for ms in 1..=480 {
            let served = queue.dequeue(Time::from_nanos(ms * MS), &mut drops).unwrap();
            marks.extend((served.packet.unwrap().ecn == Ecn::Ce).then_some(ms));
        }
        assert_eq!(marks, [105, 205, 276, 334, 384, 429, 469], "{text}");
        assert!(drops.is_empty() && drops.marked() == 7);
    }
}

#[test]
fn a_threshold_marks_all_that_have_waited_longer() {
    for text in ["codel:ce_threshold=3ms,limit=10000p", "fq-codel:ecn=false,ce_threshold=3ms"] {
        for ecn in Ecn::ALL {
            let mut queue = build::<Packet<usize>>(text, 1);
            let mut drops = Drops::default();
            for _ in 0..10 {
                let packet = Packet { ecn, ..Packet::new(Channel(1), SIZE, Time::ZERO, 0) };
                queue.enqueue(Time::ZERO, packet, &mut drops);
            }
            let mut served = |ms: u64| {
                let service = queue.dequeue(Time::from_nanos(ms * MS), &mut drops).unwrap();
                service.packet.unwrap().ecn
            };
            assert_eq!([served(3), served(4)], [ecn, ecn.marked()], "{text}");
        }
    }
}

thread_local! {
    /// How often a packet has been looked at.
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// A packet that counts how often it is looked at.
#[derive(Debug, Clone, Copy)]
struct Watched {
    channel: u64,
    ecn: Ecn,
}

impl Metered for Watched {
    fn size(&self) -> u32 {
        LOOKS.set(LOOKS.get() + 1);
        SIZE
    }
    fn channel(&self) -> Channel {
        LOOKS.set(LOOKS.get() + 1);
        Channel(self.channel)
    }
    fn ecn(&self) -> Ecn {
        LOOKS.set(LOOKS.get() + 1);
        self.ecn
    }
}

/// Looks at packets for each of 20 000 that come and go, while `channels` hold two packets each.
fn looks(text: &str, channels: u64) -> f64 {
    let mut queue = build::<Watched>(text, 1);
    let (mut drops, mut stream) = (Drops::default(), Seed(1).stream("channels"));
    let mut now = Time::ZERO;
    let arrive = |channel| Watched { channel, ecn: Ecn::from_bits(channel as u8) };
    for channel in (0..channels).chain(0..channels) {
        queue.enqueue(now, arrive(channel), &mut drops);
    }
    LOOKS.set(0);
    for _ in 0..20_000 {
        now += Span::from_micros(1);
        queue.enqueue(now, arrive(stream.below(channels)), &mut drops);
        queue.dequeue(now, &mut drops);
        drops.drain().for_each(drop);
    }
    LOOKS.get() as f64 / 20_000.0
}

#[test]
fn the_work_for_a_packet_does_not_grow_with_what_waits() {
    for text in [
        "pie:limit=1000000p",
        "dualpi2:limit=1000000p",
        "sfq:limit=1000000p",
        "sfq:limit=1000000p,buckets=1048576",
        "codel:ecn=true,limit=1000000p",
        "fq-codel:limit=1000000p",
    ] {
        let (few, many) = (looks(text, 10), looks(text, 50_000));
        assert!(many < few + 1.0 && many < 12.0, "{text}: {few} looks, then {many}");
    }
}
