//! Every discipline under arbitrary interleavings of arrivals, service and limit changes.

use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use trunkline_core::{Channel, DropCause, Ecn, Packet, Seed, Span, Time};
use trunkline_path::discipline::{
    Assumptions, DisciplineKind, DrrSettings, KINDS, RoundRobinSettings,
};
use trunkline_path::{
    AnyDiscipline, Backlog, Discipline, DisciplineSpec, Drops, Limit, Service, aal5_cells,
};

type P = Packet<usize>;

#[derive(Debug, Clone)]
enum Step {
    Arrive { channel: u64, band: u8, size: u32 },
    Serve,
    Pass(u64),
    Limit(Limit),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![0u32..3, 1u32..200, 1u32..2000];
    let arrive = (0u64..6, 0u8..5, size).prop_map(|(channel, band, size)| Step::Arrive {
        channel,
        band,
        size,
    });
    let limit = prop_oneof![
        (1u64..4000).prop_map(Limit::Bytes),
        (1u64..12).prop_map(Limit::Packets),
        (1u64..100).prop_map(Limit::Cells),
    ];
    let step = prop_oneof![
        8 => arrive,
        6 => Just(Step::Serve),
        1 => (0u64..40_000_000).prop_map(Step::Pass),
        1 => limit.prop_map(Step::Limit),
    ];
    prop::collection::vec(step, 1..250)
}

/// The trials of every discipline there is.
fn trials() -> Vec<String> {
    KINDS.iter().flat_map(DisciplineKind::texts).collect()
}

fn any(spec: &DisciplineSpec) -> AnyDiscipline<P> {
    AnyDiscipline::new(spec, Seed(1), "test")
}

/// The congestion bits of a channel's packets: every kind has some.
fn ecn(channel: u64) -> Ecn {
    Ecn::from_bits(channel as u8)
}

fn spec(text: &str) -> DisciplineSpec {
    text.parse().unwrap()
}

/// A packet that waits, as the naive books have it.
#[derive(Debug, Clone)]
struct Waits {
    number: usize,
    channel: u64,
    band: u8,
    size: u32,
    sent: u32,
}

impl Waits {
    fn left(&self) -> u64 {
        u64::from(self.size - self.sent)
    }
}

/// A discipline together with naive books of what it must hold: one list, searched from end to end.
struct Books {
    text: String,
    assumed: Assumptions,
    discipline: AnyDiscipline<P>,
    limit: Limit,
    now: Time,
    drops: Drops<P>,
    waiting: Vec<Waits>,
    /// Bytes that wait in epd's cells without a packet.
    useless: u64,
    numbers: usize,
    out: Vec<P>,
    dropped: usize,
    marked: u64,
}

impl Books {
    fn new(text: &str) -> Books {
        let spec = spec(text);
        Books {
            text: text.into(),
            assumed: spec.assumptions(),
            discipline: any(&spec),
            limit: spec.limit(),
            now: Time::ZERO,
            drops: Drops::default(),
            waiting: Vec::new(),
            useless: 0,
            numbers: 0,
            out: Vec::new(),
            dropped: 0,
            marked: 0,
        }
    }

    /// The number of the last band.
    fn last_band(&self) -> u8 {
        let bands = self.text.split_once("bands=").map(|(_, rest)| rest.split(',').next().unwrap());
        bands.map_or(0, |bands| bands.parse::<u8>().unwrap() - 1)
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Arrive { channel, band, size } => self.arrive(channel, band, size),
            Step::Serve => {
                self.serve();
            }
            Step::Pass(nanos) => self.now += Span::from_nanos(nanos),
            Step::Limit(limit) => self.set_limit(limit),
        }
        assert_eq!(self.discipline.backlog(), self.backlog(), "{}", self.text);
    }

    fn backlog(&self) -> Backlog {
        let bytes = self.waiting.iter().map(Waits::left).sum::<u64>() + self.useless;
        Backlog { packets: self.waiting.len() as u64, bytes }
    }

    fn held(&self) -> u64 {
        match self.limit {
            Limit::Bytes(_) => self.backlog().bytes,
            Limit::Packets(_) => self.backlog().packets,
            Limit::Cells(_) => {
                self.waiting.iter().map(|w| aal5_cells(w.size)).sum::<u64>() + self.useless / 48
            }
        }
    }

    fn arrive(&mut self, channel: u64, band: u8, size: u32) {
        let number = self.numbers;
        self.numbers += 1;
        let before = self.held();
        let packet = Packet {
            band,
            controls: size % 3,
            ecn: ecn(channel),
            ..Packet::new(Channel(channel), size, self.now, number)
        };
        self.waiting.push(Waits { number, channel, band, size, sent: 0 });
        self.discipline.enqueue(self.now, packet, &mut self.drops);
        self.settle_drops();
        let held = self.held();
        assert!(
            held <= before.max(self.limit.amount()) || self.discipline.backlog().packets <= 1,
            "{}: holds {held} of {}, {before} before",
            self.text,
            self.limit
        );
    }

    fn settle_drops(&mut self) {
        let drops: Vec<_> = self.drops.drain().collect();
        for (packet, cause) in drops {
            let at = self.waiting.iter().position(|w| w.number == packet.body);
            let at = at.unwrap_or_else(|| panic!("{}: dropped what did not wait", self.text));
            let victim = self.waiting.remove(at);
            assert_eq!(victim.sent, 0, "{}: dropped a packet partly sent", self.text);
            self.dropped += 1;
            match cause {
                DropCause::QueueLimit => {}
                DropCause::CoDel
                | DropCause::Pie
                | DropCause::DualPi2
                | DropCause::EarlyDiscard => assert!(self.drops_early(), "{}", self.text),
                DropCause::PartialPacket => {
                    assert!(self.drops_early(), "{}", self.text);
                    // What fitted of it stays as cells: the discipline says how much, within its size.
                    let useless = self.discipline.backlog().bytes - self.backlog().bytes;
                    assert!(useless.is_multiple_of(48) && useless / 48 < aal5_cells(victim.size));
                    self.useless += useless;
                }
                other => panic!("{}: dropped by {other}", self.text),
            }
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        // Some count cells only.
        let takes = spec(&self.text).set_limit(limit).is_ok();
        let limit = if takes { limit } else { Limit::Cells(limit.amount()) };
        self.limit = limit;
        self.discipline.set_limit(limit);
        assert!(self.drops.is_empty(), "{}: what waits stays", self.text);
    }

    fn serve(&mut self) -> Option<Service<P>> {
        let before = self.backlog();
        let service = self.discipline.dequeue(self.now, &mut self.drops);
        self.settle_drops();
        let held = self.discipline.next_ready().is_some_and(|ready| ready > self.now);
        let idle = |waits| waits == Backlog::default();
        // It may have given up all that waited.
        let right = match service {
            None => idle(self.backlog()) || (self.discipline.holds() && held),
            Some(_) => !idle(before),
        };
        assert!(right, "{}: {service:?} of {before:?}", self.text);
        let service = service?;
        match &service.packet {
            None if self.discipline.quantum().is_none() => self.useless -= u64::from(service.bytes),
            None => self.book_piece(&service),
            Some(packet) => self.book_packet(&service, packet),
        }
        Some(service)
    }

    /// The packet of `channel` that must be served next: the oldest.
    fn oldest(&self, channel: Channel) -> usize {
        self.waiting.iter().position(|w| w.channel == channel.0).unwrap()
    }

    fn book_piece(&mut self, service: &Service<P>) {
        let at = self.oldest(service.channel);
        self.waiting[at].sent += service.bytes;
        assert_eq!(service.controls, 0, "billed with the last piece");
        assert!(self.waiting[at].sent < self.waiting[at].size, "the last piece has the packet");
    }

    fn book_packet(&mut self, service: &Service<P>, packet: &P) {
        let last = self.last_band();
        let at = if self.assumed.bands {
            let urgent = self.waiting.iter().map(|w| w.band.min(last)).min().unwrap();
            assert_eq!(packet.band.min(last), urgent, "the most urgent band first");
            self.waiting.iter().position(|w| w.band.min(last) == urgent).unwrap()
        } else {
            self.oldest(packet.channel)
        };
        let booked = self.waiting.remove(at);
        assert_eq!(booked.number, packet.body, "{}: order within a channel", self.text);
        assert_eq!(service.channel, packet.channel);
        assert_eq!(u64::from(service.bytes), booked.left(), "pieces sum to the packet");
        assert_eq!(service.controls, packet.controls);
        self.check_bits(packet);
        self.out.push(packet.clone());
    }

    /// Only what can be marked is marked, and every mark counts.
    fn check_bits(&mut self, packet: &P) {
        let before = ecn(packet.channel.0);
        self.marked += u64::from(packet.ecn != before);
        assert!(packet.ecn == before || packet.ecn == before.marked(), "{}", self.text);
        assert!(self.assumed.early.is_some() || packet.ecn == before, "{}", self.text);
    }

    /// Whether it may drop what it has room for.
    fn drops_early(&self) -> bool {
        self.assumed.early.is_some() || self.assumed.cap.is_some()
    }

    fn drain(&mut self) {
        while self.serve().is_some() || self.wait() {}
        assert_eq!(self.drops.marked(), self.marked, "{}", self.text);
        assert!(self.waiting.is_empty() && self.useless == 0);
        assert_eq!(self.out.len() + self.dropped, self.numbers, "{}: lost in silence", self.text);
    }

    /// Waits until what is held back is ready, if anything is.
    fn wait(&mut self) -> bool {
        let ready = self.discipline.next_ready();
        self.now = ready.map_or(self.now, |ready| ready.max(self.now));
        ready.is_some()
    }

    fn bytes_of(&self, channel: u64) -> u64 {
        self.waiting.iter().filter(|w| w.channel == channel).map(Waits::left).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_lost_in_silence_and_the_limit_holds(steps in steps()) {
        for text in trials() {
            let mut books = Books::new(&text);
            for step in &steps {
                books.take(step);
            }
            books.drain();
        }
    }

    #[test]
    fn the_victim_is_within_a_seventeenth_of_the_longest(steps in steps()) {
        for text in ["round-robin:quantum=64,limit=3kB", "drr:limit=9p", "fq-codel:flows=1048576,limit=3kB"] {
            let mut books = Books::new(text);
            for step in &steps {
                match *step {
                    Step::Arrive { channel, size, .. } => arrive_and_judge(&mut books, channel, size),
                    _ => books.take(step),
                }
            }
        }
    }
}

/// Checks each victim against a search of all channels: from the right end of a channel almost as
/// long as the longest, or the arrival, if it could never fit or the longest is on its way.
fn arrive_and_judge(books: &mut Books, channel: u64, size: u32) {
    let number = books.numbers;
    let mut naive = books.waiting.clone();
    naive.push(Waits { number, channel, band: 0, size, sent: 0 });
    let hopeless = naive.len() > 1 && books.limit.weight(size) > books.limit.amount();
    let mut packet = Packet::new(Channel(channel), size, books.now, number);
    packet.ecn = ecn(channel);
    books.discipline.enqueue(books.now, packet, &mut books.drops);
    for (victim, _) in books.drops.drain() {
        let bytes = |channel| {
            naive.iter().filter(|w: &&Waits| w.channel == channel).map(Waits::left).sum::<u64>()
        };
        let longest = naive.iter().map(|w| bytes(w.channel)).max().unwrap();
        let its = bytes(victim.channel.0);
        let of_channel = || naive.iter().filter(|w| w.channel == victim.channel.0);
        let end = if books.text.starts_with("fq") {
            of_channel().next()
        } else {
            of_channel().next_back()
        };
        let stuck = naive.iter().any(|w| {
            let alone = naive.iter().filter(|other| other.channel == w.channel).count() == 1;
            w.sent > 0 && alone && 17 * w.left() >= 16 * longest
        });
        let fair = 17 * its >= 16 * longest && end.unwrap().number == victim.body;
        let excused = victim.body == number && (hopeless || stuck);
        assert!(fair || excused, "{}: {its} of {longest}", books.text);
        naive.retain(|w| w.number != victim.body);
        books.dropped += 1;
    }
    books.numbers += 1;
    books.waiting = naive;
    assert_eq!(books.discipline.backlog(), books.backlog());
}

/// Round robin as one would write it without thinking of cost: a list of channels in order of turns.
#[derive(Default)]
struct NaiveRoundRobin {
    channels: Vec<(u64, VecDeque<(usize, u32)>)>,
    left: u32,
}

impl NaiveRoundRobin {
    fn arrive(&mut self, channel: u64, number: usize, size: u32) {
        match self.channels.iter_mut().find(|(other, _)| *other == channel) {
            Some((_, queue)) => queue.push_back((number, size)),
            None => self.channels.push((channel, VecDeque::from([(number, size)]))),
        }
    }

    fn serve(&mut self, quantum: u32) -> Option<(u64, u32, Option<usize>)> {
        let (channel, queue) = self.channels.first_mut()?;
        let channel = *channel;
        if self.left == 0 {
            self.left = quantum;
        }
        let (number, size) = *queue.front()?;
        let bytes = size.min(self.left);
        self.left -= bytes;
        let complete = bytes == size;
        match complete {
            true => drop(queue.pop_front()),
            false => queue[0].1 -= bytes,
        }
        if queue.is_empty() {
            self.channels.remove(0);
            self.left = 0;
        } else if self.left == 0 {
            self.channels.rotate_left(1);
        }
        Some((channel, bytes, complete.then_some(number)))
    }
}

/// The pseudo-code of urp.md §10.3, word for word.
#[derive(Default)]
struct NaiveTwoLists {
    queues: BTreeMap<u64, VecDeque<(usize, u32)>>,
    high: VecDeque<u64>,
    low: VecDeque<u64>,
    frame: VecDeque<(u64, u32, Option<usize>)>,
}

impl NaiveTwoLists {
    fn arrive(&mut self, channel: u64, number: usize, size: u32) {
        self.queues.entry(channel).or_default().push_back((number, size));
        if !self.high.contains(&channel) && !self.low.contains(&channel) {
            self.high.push_back(channel);
        }
    }

    fn serve(
        &mut self,
        quantum: u32,
        limit: u32,
        via_low: bool,
    ) -> Option<(u64, u32, Option<usize>)> {
        if self.frame.is_empty() {
            self.next_frame(quantum, limit, via_low);
        }
        self.frame.pop_front()
    }

    fn next_frame(&mut self, quantum: u32, limit: u32, via_low: bool) {
        let mut length = 0;
        while self.high.is_empty()
            && length == 0
            && let Some(channel) = self.low.pop_front()
        {
            // With via_low, a channel found empty at its low turn is dropped from the lists.
            if !self.queues[&channel].is_empty() {
                length += self.take(channel, quantum, via_low);
            }
        }
        while length < limit
            && let Some(channel) = self.high.pop_front()
        {
            length += self.take(channel, quantum, via_low);
        }
    }

    fn take(&mut self, channel: u64, quantum: u32, via_low: bool) -> u32 {
        let queue = self.queues.get_mut(&channel).unwrap();
        let mut left = quantum;
        while left > 0
            && let Some((number, size)) = queue.front_mut()
        {
            let bytes = left.min(*size);
            left -= bytes;
            *size -= bytes;
            let complete = (*size == 0).then_some(*number);
            self.frame.push_back((channel, bytes, complete));
            if complete.is_some() {
                queue.pop_front();
            }
        }
        if !queue.is_empty() || via_low {
            self.low.push_back(channel);
        }
        quantum - left
    }
}

/// Small arrivals and services, without overflow: `None` serves.
fn traffic() -> impl Strategy<Value = Vec<Option<(u64, u32)>>> {
    let arrival = prop::option::weighted(0.4, (0u64..7, prop_oneof![1u32..30, 1u32..500]));
    prop::collection::vec(arrival, 1..400)
}

fn brief(service: Option<Service<P>>) -> Option<(u64, u32, Option<usize>)> {
    service.map(|s| (s.channel.0, s.bytes, s.packet.map(|p| p.body)))
}

fn send(discipline: &mut AnyDiscipline<P>, channel: u64, size: u32, number: usize) {
    let packet = Packet::new(Channel(channel), size, Time::ZERO, number);
    let mut drops = Drops::default();
    discipline.enqueue(Time::ZERO, packet, &mut drops);
    assert!(drops.is_empty());
}

proptest! {
    #[test]
    fn round_robin_does_what_the_naive_one_does(traffic in traffic(), quantum in 1u32..200) {
        let limit = Limit::Bytes(1 << 30);
        let mut real = any(&RoundRobinSettings { limit, quantum }.into());
        let mut naive = NaiveRoundRobin::default();
        for (number, arrival) in traffic.into_iter().enumerate() {
            match arrival {
                Some((channel, size)) => {
                    send(&mut real, channel, size, number);
                    naive.arrive(channel, number, size);
                }
                None => prop_assert_eq!(
                    brief(real.dequeue(Time::ZERO, &mut Drops::default())),
                    naive.serve(quantum)
                ),
            }
        }
    }

    #[test]
    fn two_lists_do_what_the_pseudo_code_does(
        traffic in traffic(), quantum in 1u32..200, frame in 1u32..400, exact: bool, via_low: bool,
    ) {
        let frame = if exact { quantum * (1 + frame % 3) } else { frame };
        let sparse = if via_low { "via-low" } else { "leave" };
        let spec = format!("two-lists:quantum={quantum},frame={frame},sparse={sparse}");
        let mut real = any(&spec.parse().unwrap());
        let mut naive = NaiveTwoLists::default();
        for (number, arrival) in traffic.into_iter().enumerate() {
            match arrival {
                Some((channel, size)) => {
                    send(&mut real, channel, size, number);
                    naive.arrive(channel, number, size);
                }
                None => prop_assert_eq!(
                    brief(real.dequeue(Time::ZERO, &mut Drops::default())),
                    naive.serve(quantum, frame, via_low)
                ),
            }
        }
    }

    #[test]
    fn in_round_robin_nobody_waits_for_more_than_a_quantum_of_each_other(
        traffic in traffic(), quantum in 1u32..200,
    ) {
        let mut books = Books::new("round-robin:quantum=64,limit=3kB");
        books.limit = Limit::Bytes(1 << 30);
        books.discipline = any(&RoundRobinSettings { limit: books.limit, quantum }.into());
        // For each active channel, what each other one has sent since its own turn.
        let mut since: BTreeMap<u64, BTreeMap<u64, u32>> = BTreeMap::new();
        for arrival in traffic {
            match arrival {
                Some((channel, size)) => {
                    books.arrive(channel, 0, size);
                    since.entry(channel).or_default();
                }
                None => if let Some(piece) = books.serve() {
                    let channel = piece.channel.0;
                    for (_, others) in since.iter_mut().filter(|(other, _)| **other != channel) {
                        let sent = others.entry(channel).or_default();
                        *sent += piece.bytes;
                        prop_assert!(*sent <= quantum, "{} sent {}", channel, sent);
                    }
                    since.remove(&channel);
                    if books.bytes_of(channel) > 0 {
                        since.insert(channel, BTreeMap::new());
                    }
                },
            }
        }
    }

    #[test]
    fn in_drr_backlogged_channels_differ_by_a_quantum_and_a_packet(
        sizes in prop::collection::vec(prop::collection::vec(1u32..1500, 40..60), 2..6),
        quantum in 1u32..4000,
    ) {
        let limit = Limit::Bytes(1 << 30);
        let mut drr = any(&DrrSettings { limit, quantum }.into());
        for (channel, sizes) in sizes.iter().enumerate() {
            for &size in sizes {
                send(&mut drr, channel as u64, size, 0);
            }
        }
        let most = sizes.iter().flatten().copied().max().unwrap();
        let totals: Vec<u32> = sizes.iter().map(|sizes| sizes.iter().sum()).collect();
        let mut sent = vec![0u32; sizes.len()];
        while let Some(service) = drr.dequeue(Time::ZERO, &mut Drops::default()) {
            sent[service.channel.0 as usize] += service.bytes;
            if sent[service.channel.0 as usize] == totals[service.channel.0 as usize] {
                break;
            }
            // After k turns a channel has sent between k quanta less one packet and k quanta.
            let spread = sent.iter().max().unwrap() - sent.iter().min().unwrap();
            prop_assert!(spread <= quantum + most, "{:?} with quantum {}", sent, quantum);
        }
    }
}

#[test]
fn channels_leave_no_state_behind_and_their_places_are_used_again() {
    // Ten thousand channels, ten at a time: were state kept, it would show in what is printed.
    for text in ["round-robin", "two-lists", "drr"] {
        let mut discipline = any(&spec(text));
        let debug_length = |discipline: &AnyDiscipline<P>| format!("{discipline:?}").len();
        let mut lengths = Vec::new();
        for round in 0..1000u64 {
            for channel in 0..10 {
                send(&mut discipline, 1_000_000 * round + channel, 100, 0);
            }
            while discipline.dequeue(Time::ZERO, &mut Drops::default()).is_some() {}
            if round % 333 == 0 {
                lengths.push(debug_length(&discipline));
            }
        }
        let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
        assert!(most - least < 200, "{text}: {lengths:?}");
    }
}
