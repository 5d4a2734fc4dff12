//! Connections between two ends over whatever a path may do.

use super::wire::{
    Burst, Data, Dialect, Message, Packet, Ports, Said, Terms, data_checksum, decode, encode,
};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use trunkline_core::{Seed, Span, Time};

mod caps;
mod opening;
mod parity;
mod short;
mod slow;
mod stops;

const PORTS: Ports = Ports { local: 0x4001, foreign: 0x0064 };

fn terms(write: bool) -> Terms {
    Terms {
        uid: 77,
        buffer: 4000,
        packet: 1000,
        burst: Burst { size: 5, interval: 10 },
        death: 60,
        checksum: true,
        write,
        parity: true,
        outstanding: 3,
        ..Terms::default()
    }
}

fn habits(dialect: Dialect, rate: RateLaw) -> Habits {
    Habits { dialect, rate, cap: Burst { size: 1, interval: 0 } }
}

/// An end with its client: what is to be sent, or what has come.
struct End {
    connection: Option<Connection>,
    data: Vec<u8>,
    /// Octets of the first buffer, if both ends know it to be shorter than the others.
    head: Option<u32>,
    got: BTreeMap<u64, Vec<u8>>,
    /// Rows of parity that have come.
    rows: BTreeMap<u64, Vec<(u16, Vec<u8>)>>,
    whole: Vec<Whole>,
}

impl End {
    fn new(connection: Option<Connection>, data: &[u8]) -> End {
        let (got, rows) = (BTreeMap::new(), BTreeMap::new());
        End { connection, data: data.to_vec(), head: None, got, rows, whole: Vec::new() }
    }

    /// Where the data of a buffer are among all.
    fn extent(&self, buffer: u64, size: usize) -> std::ops::Range<usize> {
        let head = self.head.map_or(size, |head| head as usize);
        let start = if buffer == 0 { 0 } else { head + (buffer as usize - 1) * size };
        start..self.data.len().min(start + if buffer == 0 { head } else { size })
    }

    /// Fills buffers, and writes the octets of the next packet.
    fn transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        let mut connection = self.connection.take()?;
        let size = connection.terms().buffer as usize;
        if let Some(sender) = connection.sender() {
            while let Some(number) = sender.wants() {
                let extent = self.extent(number, size);
                sender.fill(extent.len() as u32, extent.end == self.data.len());
            }
        }
        let out = connection.transmit(now);
        let connection = self.connection.insert(connection);
        let out = out?;
        let (ports, dialect) = (connection.ports(), Dialect::of_version(self.version()));
        let mut octets = Vec::new();
        match out {
            Out::Packet(packet) => encode(dialect?, ports, &packet, &mut octets),
            Out::Data(sending) => {
                let at = self.extent(sending.buffer, size).start + sending.offset as usize;
                let data = &self.data[at..at + usize::from(sending.header.bytes)];
                let header = Data { checksum: data_checksum(data), ..sending.header };
                encode(dialect?, ports, &Packet::Data(header), &mut octets);
                octets.extend(data);
            }
            Out::Parity(parity, buffer) => {
                let data = &self.data[self.extent(buffer, size)];
                let mut sum = vec![0; parity.bytes.into()];
                super::parity::encode(parity.row.into(), data, sum.len(), &mut sum);
                let parity = wire::Parity { checksum: data_checksum(&sum), ..parity };
                encode(dialect?, ports, &Packet::Parity(parity), &mut octets);
                octets.extend(sum);
            }
        }
        Some(octets)
    }

    fn version(&self) -> u8 {
        self.connection.as_ref().map_or(2, |it| it.dialect().version())
    }

    fn receive(&mut self, now: Time, octets: &[u8], limits: &Limits, habits: Habits) {
        let Ok(read) = decode(octets) else { return };
        let Some(connection) = &mut self.connection else {
            if let Packet::Open(terms) = &read.packet {
                let ports = read.ports.turned();
                self.connection = Connection::accept(now, terms, ports, habits, limits).ok();
                if let Some(connection) = &mut self.connection {
                    if let (Some(head), Some(half)) = (self.head, connection.receiver()) {
                        half.shorten(0, head);
                    }
                    connection.provide(1000);
                }
            }
            return;
        };
        let data = &octets[read.header..];
        let is_right = match &read.packet {
            Packet::Data(header) => {
                data.len() == usize::from(header.bytes) && data_checksum(data) == header.checksum
            }
            Packet::Parity(header) => {
                data.len() == usize::from(header.bytes) && data_checksum(data) == header.checksum
            }
            _ => true,
        };
        if let Packet::Parity(parity) = &read.packet
            && let Some(buffer) = connection.receive_parity(now, parity, is_right)
        {
            self.rows.entry(buffer).or_default().push((parity.row, data.to_vec()));
        }
        if let Some(placed) = connection.receive(now, &read.packet, is_right) {
            let buffer = self.got.entry(placed.buffer).or_default();
            let end = placed.offset as usize + data.len();
            buffer.resize(buffer.len().max(end), 0);
            buffer[placed.offset as usize..end].copy_from_slice(data);
        }
        if let Some(half) = connection.receiver() {
            parity::recover(half, &mut self.rows, &mut self.got);
        }
        while let Some(whole) = connection.receiver().and_then(Receiver::take) {
            self.whole.push(whole);
        }
    }

    fn ending(&self) -> Option<&Ending> {
        self.connection.as_ref().and_then(Connection::ending)
    }
}

/// The fate of a packet: lateness of each copy in microseconds, and an octet that is changed.
type Fate = (Vec<u64>, Option<(usize, u8)>);

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let spoilt = (any::<usize>(), 1u8..).prop_map(Some);
    let fate = prop_oneof![
        3 => Just((vec![0], None)),
        2 => Just((vec![], None)),
        2 => (0u64..40_000).prop_map(|late| (vec![late], None)),
        1 => (0u64..3000, 0u64..9000).prop_map(|(one, other)| (vec![one, other], None)),
        1 => spoilt.prop_map(|spoilt| (vec![0], spoilt)),
    ];
    prop::collection::vec(fate, 1..40).prop_map(|mut fates| {
        let well = fates.len() / 3 + 1;
        fates.extend(std::iter::repeat_n((vec![0], None), well));
        fates
    })
}

/// What happens to a transfer beside its path.
#[derive(Debug, Clone)]
struct Events {
    /// Buffers that may be outstanding, and the burst that is agreed on.
    outstanding: u16,
    burst: Burst,
    /// The sender's cap becomes another one at a time.
    cap: Option<(Time, Burst)>,
    /// When each end does nothing, from one time to another. Of what comes meanwhile [`ROOM`] packets wait for it.
    asleep: [Vec<(Time, Time)>; 2],
    /// The time that a packet takes on the line of the path, before which so many wait at most.
    line: Option<(Span, u64)>,
    /// Octets of a first buffer that is shorter.
    head: Option<u32>,
}

const NOTHING: Events = Events {
    outstanding: 3,
    burst: Burst { size: 5, interval: 10 },
    cap: None,
    asleep: [Vec::new(), Vec::new()],
    line: None,
    head: None,
};
/// Packets that wait for an end that does nothing.
const ROOM: usize = 200;

impl Events {
    /// Until when an end does nothing that does nothing now.
    fn asleep_until(&self, end: usize, now: Time) -> Option<Time> {
        let next = self.asleep[end].partition_point(|it| it.1 <= now);
        self.asleep[end].get(next).filter(|it| it.0 <= now).map(|it| it.1)
    }
}

/// Runs a transfer of `data`, sent by the active end if `write`. Answers both ends, and the longest time for which an end that had not
/// ended heard nothing.
fn run(data: &[u8], write: bool, habits: Habits, fates: &[Fate]) -> ([End; 2], Span) {
    let (ends, silence, _) = run_with(data, write, habits, (fates, NOTHING));
    (ends, silence)
}

/// The same, with events. Answers also when all was over.
fn run_with(
    data: &[u8],
    write: bool,
    habits: Habits,
    (fates, mut events): (&[Fate], Events),
) -> ([End; 2], Span, Time) {
    let Events { outstanding, burst, .. } = events;
    let terms = Terms { outstanding, burst, ..terms(write) };
    let limits = Limits { parity: true, ..Limits::default() };
    let active = Connection::open(Time::ZERO, terms, PORTS, habits);
    let mut ends = [
        End::new(Some(active), if write { data } else { &[] }),
        End::new(None, if write { &[] } else { data }),
    ];
    ends.iter_mut().for_each(|end| end.head = events.head);
    ends[0].connection.as_mut().expect("open").provide(1000);
    let (mut now, mut sent, mut way) = (Time::ZERO, 0u64, BTreeMap::new());
    let mut chance = Seed(0).stream("fates");
    let (mut heard, mut silence) = ([Time::ZERO; 2], Span::ZERO);
    let mut free = [Time::ZERO; 2];
    for _ in 0..200_000 {
        let until = [0, 1].map(|end| events.asleep_until(end, now));
        let is_stopped = |end: usize| until[end].is_some();
        for (from, end) in ends.iter_mut().enumerate().filter(|it| !is_stopped(it.0)) {
            while let Some(octets) = end.transmit(now) {
                let mut left = now;
                if let Some((each, most)) = events.line {
                    if free[from] > now + each.scaled(most, 1) {
                        continue;
                    }
                    left = free[from].max(now) + each.scaled(octets.len() as u64, 1000);
                    free[from] = left;
                }
                let (copies, spoilt) = &fates[chance.below(fates.len() as u64) as usize];
                for (copy, late) in copies.iter().enumerate() {
                    let mut octets = octets.clone();
                    if let Some((at, change)) = spoilt {
                        let at = at % octets.len();
                        octets[at] ^= change;
                    }
                    let at = left + Span::from_micros(5000 + late);
                    way.insert((at, sent * 4 + copy as u64), (1 - from, octets));
                }
                sent += 1;
            }
        }
        let comes = way.keys().next().map(|key: &(Time, u64)| key.0);
        let awake = ends.iter().enumerate().filter(|it| !is_stopped(it.0));
        let due = awake.filter_map(|it| it.1.connection.as_ref()?.deadline()).min();
        let changes = events.cap.map(|it| it.0).into_iter().chain(until.into_iter().flatten());
        let Some(next) = comes.into_iter().chain(due).chain(changes).min() else { break };
        now = now.max(next);
        if let Some((_, cap)) = events.cap.take_if(|it| it.0 <= now) {
            let senders = ends.iter_mut().filter_map(|it| it.connection.as_mut()?.sender());
            senders.for_each(|it| it.set_cap(cap));
        }
        for (end, heard) in ends.iter().zip(&heard) {
            let is_open = end.connection.is_some() && end.ending().is_none();
            silence = silence.max(if is_open { now.since(*heard) } else { Span::ZERO });
        }
        if comes == Some(next) {
            let (key, (end, octets)) = way.pop_first().expect("one comes");
            if let Some(until) = events.asleep_until(end, now) {
                let waiting = way.range((until, 0)..).filter(|it| it.1.0 == end).count();
                if waiting < ROOM {
                    way.insert((until, key.1), (end, octets));
                }
                continue;
            }
            ends[end].receive(now, &octets, &limits, habits);
            heard[end] = now;
        } else {
            let awake = ends.iter_mut().enumerate().filter(|it| !is_stopped(it.0));
            awake.filter_map(|it| it.1.connection.as_mut()).for_each(|it| it.expire(now));
        }
    }
    (ends, silence, now)
}

fn stream(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any loss, reordering, duplication and corruption ends in exactly the bytes that were sent.
    #[test]
    fn what_was_sent_comes_whole_or_not_at_all(
        len in 0usize..30_000, (write, adaptive) in any::<(bool, bool)>(), which in 0usize..3,
        fates in fates(),
    ) {
        let (data, dialect) = (stream(len), Dialect::ALL[which]);
        let rate = if adaptive { RateLaw::Adaptive } else { RateLaw::Fixed };
        let (ends, silence) = run(&data, write, habits(dialect, rate), &fates);
        let (sender, receiver) = if write { (0, 1) } else { (1, 0) };
        let ending = [ends[sender].ending(), ends[receiver].ending()];
        // However long it takes, no end waits in silence for longer than the death timer.
        prop_assert!(silence <= Span::from_secs(terms(write).death.into()), "{silence}");
        if ends[0].ending() == Some(&Ending::Unanswered) {
            prop_assert!(ends[receiver].whole.is_empty());
            return Ok(());
        }
        prop_assert_eq!(ending[0], Some(&Ending::Done));
        let got: Vec<u8> = ends[receiver].got.values().flatten().copied().collect();
        prop_assert!(got == data, "{} of {} bytes", got.len(), data.len());
        let wholes = &ends[receiver].whole;
        prop_assert_eq!(wholes.len(), data.len().div_ceil(4000).max(1));
        prop_assert_eq!(wholes.iter().filter(|it| it.last).count(), 1);
        prop_assert_eq!(wholes.iter().map(|it| u64::from(it.bytes)).sum::<u64>(), len as u64);
    }

    /// A peer that says anything costs neither memory nor time, and nothing panics.
    #[test]
    fn a_hostile_peer_is_borne(
        packets in prop::collection::vec(wire::tests::a_packet(), 0..150), write: bool, which in 0usize..3,
    ) {
        let habits = habits(Dialect::ALL[which], RateLaw::Adaptive);
        let proposed = terms(!write);
        let answer = Connection::accept(Time::ZERO, &proposed, PORTS, habits, &Limits::default());
        let mut connection = answer.expect("possible terms");
        connection.provide(10);
        for (index, packet) in packets.iter().enumerate() {
            let now = Time::from_nanos(index as u64 * 3_000_000);
            connection.receive(now, packet, true);
            let mut octets = 0;
            for _ in 0..1000 {
                if let Some(sender) = connection.sender() && sender.wants().is_some() {
                    sender.fill(4000, false);
                }
                let Some(out) = connection.transmit(now) else { break };
                if let Out::Packet(packet) = out {
                    let mut written = Vec::new();
                    encode(habits.dialect, PORTS, &packet, &mut written);
                    octets += written.len();
                }
            }
            prop_assert!(octets < 64 * 1024, "{octets} octets for one packet");
            connection.expire(now);
        }
    }
}

fn accepted(limits: &Limits) -> Result<Connection, &'static str> {
    let habits = habits(Dialect::Classic, RateLaw::Fixed);
    Connection::accept(Time::ZERO, &terms(true), PORTS.turned(), habits, limits)
}

#[test]
fn a_repeated_open_is_answered_again_and_a_foreign_one_refused() {
    let mut connection = accepted(&Limits::default()).unwrap();
    let Some(Out::Packet(Packet::Response(first))) = connection.transmit(Time::ZERO) else {
        panic!()
    };
    // A copy that was sent at once with the first is not answered.
    connection.receive(Time::ZERO, &Packet::Open(terms(true)), true);
    assert_eq!(connection.transmit(Time::ZERO), None);
    let later = Time::ZERO + Span::from_secs(1);
    connection.receive(later, &Packet::Open(terms(true)), true);
    let again = connection.transmit(later);
    assert_eq!(again, Some(Out::Packet(Packet::Response(first))));
    connection.receive(Time::ZERO, &Packet::Open(Terms { uid: 78, ..terms(true) }), true);
    assert!(matches!(connection.transmit(Time::ZERO), Some(Out::Packet(Packet::Refused(_)))));
    assert!(accepted(&Limits { memory: 10, ..Limits::default() }).is_err());
}

#[test]
fn an_answer_that_widens_the_terms_breaks_the_connection() {
    let habits = habits(Dialect::Classic, RateLaw::Fixed);
    let mut connection = Connection::open(Time::ZERO, terms(true), PORTS, habits);
    assert!(matches!(connection.transmit(Time::ZERO), Some(Out::Packet(Packet::Open(_)))));
    let stranger = Terms { uid: 1, ..terms(true) };
    connection.receive(Time::ZERO, &Packet::Response(stranger), true);
    assert!(connection.is_opening());
    let wide = Terms { outstanding: 9, ..terms(true) };
    connection.receive(Time::ZERO, &Packet::Response(wide), true);
    assert!(matches!(connection.ending(), Some(Ending::Broken(_))));
}

#[test]
fn a_client_that_gives_up_is_answered() {
    let mut connection = accepted(&Limits::default()).unwrap();
    while connection.transmit(Time::ZERO).is_some() {}
    connection.receive(Time::ZERO, &Packet::Quit(b"enough".to_vec()), true);
    assert_eq!(connection.transmit(Time::ZERO), Some(Out::Packet(Packet::QuitAck)));
    let over = connection.deadline().unwrap();
    connection.expire(over);
    assert_eq!(connection.ending(), Some(&Ending::Quit(b"enough".to_vec())));

    let mut connection = accepted(&Limits::default()).unwrap();
    while connection.transmit(Time::ZERO).is_some() {}
    connection.quit(Time::ZERO, b"disk full");
    assert_eq!(
        connection.transmit(Time::ZERO),
        Some(Out::Packet(Packet::Quit(b"disk full".to_vec())))
    );
    assert_eq!(connection.transmit(Time::ZERO), None);
    connection.receive(Time::ZERO, &Packet::QuitAck, true);
    assert_eq!(connection.ending(), Some(&Ending::Left));
}

#[test]
fn an_end_that_hears_nothing_dies_after_its_time() {
    let mut connection = accepted(&Limits { death: 20, ..Limits::default() }).unwrap();
    connection.provide(1);
    let mut now = Time::ZERO;
    let mut said = 0;
    while let Some(due) = connection.deadline() {
        now = now.max(due);
        connection.expire(now);
        while connection.transmit(now).is_some() {
            said += 1;
        }
    }
    assert_eq!(now, Time::ZERO + Span::from_secs(20));
    assert_eq!(connection.ending(), Some(&Ending::Dead));
    assert!((3..40).contains(&said), "{said} packets into the void");
}

#[test]
fn endless_permissions_cost_nothing() {
    let habits = habits(Dialect::Classic, RateLaw::Fixed);
    let answer = Connection::accept(Time::ZERO, &terms(false), PORTS, habits, &Limits::default());
    let mut connection = answer.unwrap();
    for sequence in 1..=u16::MAX {
        let buffer = u32::from(sequence).wrapping_mul(65_537);
        let message = Message { sequence, buffer, said: Said::Go };
        connection.receive(Time::ZERO, &Packet::Control(vec![message]), true);
    }
    assert!(connection.sender().is_some_and(|sender| sender.wants() == Some(0)));
}

/// The times in milliseconds at which an end that knows such a round trip says its OPEN, until it gives up.
fn openings(round: Span) -> Vec<u64> {
    let connection =
        Connection::open(Time::ZERO, terms(true), PORTS, habits(Dialect::V5, RateLaw::Adaptive));
    let mut connection = connection.expecting(round);
    let mut said = Vec::new();
    while let Some(now) = connection.deadline() {
        connection.expire(now);
        while connection.transmit(now).is_some() {
            said.push(now.since(Time::ZERO).as_nanos() / 1_000_000);
        }
    }
    said
}

/// An OPEN is said again after a second, and where the round trip is known after one and a half of it. Then the pauses double, and
/// who knows more of the path does not give up sooner.
#[test]
fn an_open_is_said_again_as_soon_as_its_answer_is_late() {
    let unknown = [0, 1000, 3000, 7000, 15_000, 23_000];
    assert_eq!(openings(Span::ZERO), unknown);
    let near = [0, 150, 450, 1050, 2250, 4650, 9450, 17_450, 25_450];
    assert_eq!(openings(Span::from_millis(100)), near);
    assert_eq!(openings(Span::from_millis(1))[..4], [0, 20, 60, 140]);
    assert_eq!(openings(Span::from_millis(2000))[..3], [0, 3000, 6000]);
}

/// Copies of the OPEN that come a millisecond apart tell the rate before any data are sent. Copies that come later do not, and
/// neither do those of an end with a fixed burst.
#[test]
fn copies_of_the_open_tell_the_rate() {
    let open = |rate| {
        let habits = habits(Dialect::V5, rate);
        let mut active = Connection::open(Time::ZERO, terms(true), PORTS, habits).leading();
        std::iter::from_fn(move || active.transmit(Time::ZERO)).count()
    };
    assert_eq!((open(RateLaw::Fixed), open(RateLaw::Adaptive)), (1, 16));
    let offer = |apart: u64| {
        let habits = habits(Dialect::V5, RateLaw::Adaptive);
        let proposed = Terms { burst: Burst { size: u16::MAX, interval: 1 }, ..terms(true) };
        let limits = Limits::default();
        let accepted = Connection::accept(Time::ZERO, &proposed, PORTS.turned(), habits, &limits);
        let mut passive = accepted.unwrap();
        passive.provide(10);
        passive.knocked(Time::ZERO, &proposed);
        let mut now = Time::ZERO;
        for _ in 1..16 {
            now += Span::from_millis(apart);
            passive.receive(now, &Packet::Open(proposed.clone()), true);
        }
        let said = std::iter::from_fn(|| passive.transmit(now));
        said.filter_map(|out| match out {
            Out::Packet(Packet::Control(messages)) => {
                messages.into_iter().find_map(|it| match it.said {
                    Said::Resend { offer, .. } => Some(offer),
                    _ => None,
                })
            }
            _ => None,
        })
        .next()
    };
    let Burst { size, interval } = offer(1).unwrap();
    // 1060 octets on the path in a millisecond, and three quarters of that to begin with.
    let share = f64::from(size) / f64::from(interval);
    assert!((0.73..0.77).contains(&share), "{size} in {interval} ms");
    assert_eq!(offer(600), None);
}

/// A first offer that is lost would cost a round trip and a half: it can go again with the next copy of the OPEN.
#[test]
fn a_first_offer_goes_again() {
    let habits = habits(Dialect::V5, RateLaw::Adaptive);
    let limits = Limits::default();
    let accepted = Connection::accept(Time::ZERO, &terms(true), PORTS.turned(), habits, &limits);
    let mut passive = accepted.unwrap();
    passive.provide(2);
    let mut said = (1..16).map(|copy| {
        let now = Time::ZERO + Span::from_millis(copy);
        passive.knocked(now, &terms(true));
        passive.receiver().into_iter().for_each(|it| _ = it.repeat());
        std::iter::from_fn(|| passive.transmit(now)).last()
    });
    let first = said.by_ref().find(|it| {
        let is_offer = |it: &Message| matches!(it.said, Said::Resend { .. });
        matches!(it, Some(Out::Packet(Packet::Control(all))) if all.iter().any(is_offer))
    });
    assert_eq!(said.next(), first);
}

/// What was said before the other end was known to be there is not said again when it is: it is waited for from then on.
#[test]
fn an_end_that_was_answered_before_is_waited_for() {
    let habits = habits(Dialect::V5, RateLaw::Adaptive);
    let limits = Limits::default();
    let accepted =
        Connection::accept(Time::ZERO, &terms(true), PORTS.turned(), habits, &limits).unwrap();
    let mut passive = accepted;
    passive.provide(10);
    let said = std::iter::from_fn(|| passive.transmit(Time::ZERO)).count();
    assert_eq!(said, 2, "the answer and the GOs");
    let (now, round) = (Time::ZERO + Span::from_millis(1800), Span::from_millis(1800));
    let mut passive = passive.met(now, round);
    passive.expire(now);
    assert_eq!(passive.transmit(now), None);
    let due = passive.deadline().unwrap();
    assert!(due >= now + round && due <= now + round.scaled(3, 1), "{due:?}");
    passive.expire(due);
    assert!(passive.transmit(due).is_some());
}
