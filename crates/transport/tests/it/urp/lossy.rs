//! Two ends over lines that lose, damage and duplicate: every octet arrives once, in order, with the
//! messages' ends in their places, and a working line is made use of after few time-outs.
//!
//! What holds without a check sum, and why no more, is stated in the documentation of
//! `trunkline_transport::urp`.

use proptest::prelude::*;
use std::collections::VecDeque;
use trunkline_core::{Probability, Seed, Span, Stream, Time};
use trunkline_transport::envelope::{Envelope, Reader, write};
use trunkline_transport::urp::{
    Check, Counters, Echo, Mode, Part, Profile, Segment, Settings, Urp,
};

type Data = Vec<u8>;

/// One way.
const DELAY: Span = Span::from_millis(5);
/// When the lines begin to work.
const QUIET: Time = Time::from_nanos(6_000_000_000);

/// The unit to which a line does its harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Grain {
    /// Whole blocks: lost or doubled.
    Blocks,
    /// Single octets of data: lost.
    Octets,
    /// Whole trailers: lost.
    Trailers,
    /// Network packets of 16 envelopes: lost or doubled.
    Packets,
    /// Single envelopes: damaged, so that they vanish, or doubled.
    Envelopes,
}

/// One direction. Controls that go alone are lost and doubled whatever the grain.
struct Line {
    grain: Grain,
    harm: Stream,
    reader: Reader,
    flying: VecDeque<(Time, Part<Data>)>,
}

/// The number of copies that arrive.
fn copies(harm: &mut Stream, loss: f64, double: f64) -> usize {
    let happens = |harm: &mut Stream, p: f64| harm.happens(Probability::new(p).unwrap());
    match (happens(harm, loss), happens(harm, double)) {
        (true, _) => 0,
        (false, true) => 2,
        (false, false) => 1,
    }
}

impl Line {
    fn carry(&mut self, now: Time, segment: Segment<Data>) {
        let parts = match (now < QUIET, &segment) {
            (false, _) => segment.parts(16).collect(),
            (true, Segment::Control(_)) => self.whole(segment.parts(0)),
            (true, _) => self.harmed(segment),
        };
        self.flying.extend(parts.into_iter().map(|part| (now + DELAY, part)));
    }

    fn whole(&mut self, parts: impl Iterator<Item = Part<Data>>) -> Vec<Part<Data>> {
        parts.flat_map(|part| vec![part; copies(&mut self.harm, 0.15, 0.15)]).collect()
    }

    fn harmed(&mut self, segment: Segment<Data>) -> Vec<Part<Data>> {
        match self.grain {
            Grain::Blocks => self.whole(segment.parts(0)),
            Grain::Packets => self.whole(segment.parts(16)),
            Grain::Octets => segment.parts(16).map(|part| self.thinned(part)).collect(),
            Grain::Trailers => segment.parts(16).map(|part| self.cut(part)).collect(),
            Grain::Envelopes => segment.parts(16).flat_map(|part| self.read(&part)).collect(),
        }
    }

    fn thinned(&mut self, mut part: Part<Data>) -> Part<Data> {
        part.data.retain(|_| copies(&mut self.harm, 0.01, 0.0) > 0);
        part
    }

    fn cut(&mut self, mut part: Part<Data>) -> Part<Data> {
        part.trailer = part.trailer.filter(|_| copies(&mut self.harm, 0.2, 0.0) > 0);
        part
    }

    fn read(&mut self, part: &Part<Data>) -> Vec<Part<Data>> {
        let mut envelopes: Vec<Envelope> = Vec::new();
        write(part, &mut envelopes);
        let arriving: Vec<Envelope> = envelopes
            .into_iter()
            .flat_map(|envelope| match copies(&mut self.harm, 0.01, 0.01) {
                0 => vec![envelope.damaged()],
                copies => vec![envelope; copies],
            })
            .collect();
        self.reader.read(&arriving)
    }
}

/// Octet `index` of what an end sends: a different one at every place that could be mistaken for it.
fn octet(index: u64) -> u8 {
    (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// One end with its line, what it is to send, and what has come to it.
struct Side {
    urp: Urp<Data>,
    line: Line,
    received: Data,
    ends: Vec<u64>,
    /// User octets accepted and not yet consumed.
    shelf: VecDeque<u64>,
    /// Time-outs since the window last moved, once the lines work, and their maximum.
    stalled: u64,
    most_stalled: u64,
    /// User octets offered, and those that had arrived when an initialisation released them.
    offered: u64,
    released: u64,
}

/// One trial.
#[derive(Debug, Clone)]
struct Trial {
    seed: u64,
    grain: Grain,
    settings: Settings,
    connected: bool,
    /// The sizes of the messages, the same both ways.
    messages: Vec<u32>,
}

struct Run {
    sides: [Side; 2],
    pace: Stream,
    now: Time,
}

impl Run {
    fn new(trial: &Trial) -> Run {
        let side = |name: &str| {
            let settings = trial.settings;
            let urp = match trial.connected {
                true => Urp::connected(Time::ZERO, settings),
                false => Urp::new(settings),
            };
            let line = Line {
                grain: trial.grain,
                harm: Seed(trial.seed).stream(name),
                reader: Reader::new(settings.check),
                flying: VecDeque::new(),
            };
            let (received, ends) = (Data::new(), Vec::new());
            Side {
                urp: urp.unwrap(),
                line,
                received,
                ends,
                stalled: 0,
                most_stalled: 0,
                offered: 0,
                released: 0,
                shelf: VecDeque::new(),
            }
        };
        let sides = [side("there"), side("back")];
        Run { sides, pace: Seed(trial.seed).stream("pace"), now: Time::ZERO }
    }

    fn offer(&mut self, messages: &[u32]) {
        for side in &mut self.sides {
            let mut sent = 0;
            for &size in messages {
                let data = (sent..sent + u64::from(size)).map(octet).collect();
                side.urp.offer(Time::ZERO, data, true);
                sent += u64::from(size);
            }
            side.offered = sent;
        }
    }

    /// Everything to be said at this instant.
    fn speak(&mut self) {
        for side in &mut self.sides {
            while let Some(segment) = side.urp.transmit(self.now) {
                side.line.carry(self.now, segment);
            }
        }
    }

    /// The next instant at which something happens.
    fn next(&self) -> Option<Time> {
        let of = |side: &Side| {
            let arrival = side.line.flying.front().map(|&(at, _)| at);
            let consumer = Some(self.now + Span::from_millis(1)).filter(|_| !side.shelf.is_empty());
            [arrival, side.urp.deadline(), consumer].into_iter().flatten().min()
        };
        self.sides.iter().filter_map(of).min()
    }

    fn step(&mut self) {
        let [a, b] = &mut self.sides;
        hear(self.now, a, b);
        hear(self.now, b, a);
        for side in &mut self.sides {
            let before = side.urp.counters().sending.timeouts;
            side.urp.expire(self.now);
            if self.now >= QUIET {
                side.stalled += side.urp.counters().sending.timeouts - before;
                side.most_stalled = side.most_stalled.max(side.stalled);
            }
            side.consume(self.now, &mut self.pace);
        }
    }

    /// Until nothing is left to be done, at most an hour.
    fn finish(&mut self) {
        self.speak();
        while let Some(at) = self.next() {
            self.now = self.now.max(at);
            assert!(self.now < Time::ZERO + Span::from_secs(3600), "an hour is enough");
            self.step();
            self.unstick();
            self.speak();
        }
    }

    /// The 10th edition alone can be stuck on a working line: if the last ECHO was lost and the
    /// receiver has since rejected a duplicate, each enquiry is answered by the REJ, which does not echo,
    /// and by the ACK, which does not move the window. All that was sent has arrived; only initialising
    /// helps, and loses nothing.
    fn unstick(&mut self) {
        for (from, to) in [(0, 1), (1, 0)] {
            let side = &self.sides[from];
            if side.urp.settings().profile != Profile::V10 || side.stalled < 5 {
                continue;
            }
            let waiting: u64 = self.sides[to].arrived();
            assert_eq!(waiting + side.urp.unsent(), side.offered, "stuck for another reason");
            let unechoed = side.urp.unechoed();
            let side = &mut self.sides[from];
            side.urp.initialise(self.now);
            (side.stalled, side.most_stalled, side.released) = (0, 0, side.released + unechoed);
        }
    }
}

fn hear(now: Time, from: &mut Side, to: &mut Side) {
    while from.line.flying.front().is_some_and(|&(at, _)| at <= now) {
        let Some((_, part)) = from.line.flying.pop_front() else { return };
        let before = to.urp.unechoed() + to.urp.unsent();
        to.urp.receive(now, part);
        if to.urp.unechoed() + to.urp.unsent() < before {
            to.stalled = 0;
        }
    }
}

impl Side {
    /// Takes all that has come, and is done with some of it.
    fn consume(&mut self, now: Time, pace: &mut Stream) {
        while let Some(piece) = self.urp.take() {
            self.shelf.push_back(piece.len().into());
            self.received.extend(&piece.data);
            if piece.end {
                self.ends.push(self.received.len() as u64);
            }
        }
        while !self.shelf.is_empty() && pace.below(4) > 0 {
            let octets = self.shelf.pop_front();
            self.urp.consumed(now, octets.unwrap_or(0));
        }
    }

    /// User octets that have come.
    fn arrived(&self) -> u64 {
        self.received.len() as u64
    }
}

fn run(trial: &Trial) -> Run {
    let mut run = Run::new(trial);
    run.offer(&trial.messages);
    run.finish();
    run
}

fn expected(messages: &[u32]) -> (Data, Vec<u64>) {
    let mut at = 0;
    let ends: Vec<u64> = messages
        .iter()
        .map(|&size| {
            at += u64::from(size);
            at
        })
        .collect();
    ((0..at).map(octet).collect(), ends)
}

/// Time-outs without progress on a working line. One has the sender ask, and the answer has it go back.
/// Plan 9 and the KMC may need another, for they do not go back if something happened since they
/// asked.
fn patience(profile: Profile) -> u64 {
    match profile {
        Profile::Trunkline | Profile::V10 => 1,
        Profile::Plan9 | Profile::Kmc => 2,
    }
}

fn check(trial: &Trial) -> Result<(), TestCaseError> {
    let run = run(trial);
    let (octets, ends) = expected(&trial.messages);
    for side in &run.sides {
        prop_assert!(side.urp.idle() && !side.urp.dead(), "left at {}", run.now);
        prop_assert!(side.received == octets, "not what was sent");
        prop_assert_eq!(&side.ends, &ends);
        prop_assert_eq!(side.urp.counters().sending.abandoned, side.released);
        prop_assert!(
            side.most_stalled <= patience(trial.settings.profile),
            "{}",
            side.most_stalled
        );
    }
    Ok(())
}

fn trials(
    grains: &'static [Grain],
    check: Check,
    profiles: &'static [Profile],
) -> impl Strategy<Value = Trial> {
    let settings = (1..=120u16, 1..=7u8, prop::sample::select(profiles), any::<bool>());
    let messages = prop::collection::vec(0..600u32, 1..12);
    let grain = prop::sample::select(grains);
    (any::<u64>(), grain, settings, any::<bool>(), messages).prop_map(
        move |(seed, grain, (block, outstanding, profile, slow), connected, messages)| {
            let echo = if slow { Echo::Consumption } else { Echo::Acceptance };
            let enquiries = 255;
            let mode = Mode::Block;
            let timeout = Span::from_secs(1);
            let settings = Settings {
                block,
                outstanding,
                timeout,
                profile,
                mode,
                echo,
                enquiries,
                check,
                eot: false,
            };
            Trial { seed, grain, settings, connected, messages }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    /// The count suffices if the line does one kind of harm.
    #[test]
    fn exactly_once_by_count_and_number(
        trial in trials(&[Grain::Blocks, Grain::Octets, Grain::Trailers], Check::Count, &Profile::ALL),
    ) {
        check(&trial)?;
    }

    /// With the check sum it may do everything.
    #[test]
    fn exactly_once_by_check_sum(
        trial in trials(&[Grain::Blocks, Grain::Octets, Grain::Trailers, Grain::Packets, Grain::Envelopes], Check::Crc, &Profile::ALL),
    ) {
        check(&trial)?;
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let settings = Settings { block: 40, outstanding: 5, enquiries: 255, ..Settings::default() };
    let trial = Trial {
        seed: 7,
        grain: Grain::Packets,
        settings: Settings { check: Check::Crc, ..settings },
        connected: false,
        messages: vec![500; 8],
    };
    let once: Vec<Counters> = run(&trial).sides.iter().map(|side| side.urp.counters()).collect();
    let twice: Vec<Counters> = run(&trial).sides.iter().map(|side| side.urp.counters()).collect();
    assert_eq!(once, twice);
    assert!(once.iter().all(|counters| counters.sending.resent > 0));
}

/// Plan 9 does not know the trailer of detection mode.
const THAT_RESYNCHRONISE: [Profile; 3] = [Profile::Trunkline, Profile::V10, Profile::Kmc];

/// The blocks that detection mode makes of messages.
fn blocks_of(messages: &[u32], block: u32) -> Vec<Data> {
    let (octets, ends) = expected(messages);
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let whole: Vec<Data> =
        starts.zip(&ends).map(|(from, &to)| octets[from as usize..to as usize].to_vec()).collect();
    let cut = |message: Data| match message.is_empty() {
        true => vec![message],
        false => message.chunks(block as usize).map(<[u8]>::to_vec).collect(),
    };
    whole.into_iter().flat_map(cut).collect()
}

proptest! {
    /// Nothing is repaired, but what arrives are whole blocks in order, and the sender is never stuck.
    #[test]
    fn detection_leaves_out_and_never_damages(
        trial in trials(&[Grain::Blocks, Grain::Octets, Grain::Trailers], Check::Count, &THAT_RESYNCHRONISE),
    ) {
        let settings = Settings { mode: Mode::Detection, ..trial.settings };
        let trial = Trial { settings, ..trial };
        for side in &run(&trial).sides {
            prop_assert!(side.urp.idle() && side.urp.counters().sending.resent == 0);
            let mut sent = blocks_of(&trial.messages, settings.block.into()).into_iter();
            let mut from = 0;
            for &to in &side.ends {
                let got = &side.received[from as usize..to as usize];
                prop_assert!(sent.any(|block| block == got), "{got:?} is no later block");
                from = to;
            }
        }
    }

    /// If only controls that go alone are lost and doubled, characters arrive, with the ends of messages if they are
    /// asked for, and the sender is never stuck.
    #[test]
    fn characters_with_flow_control_arrive_where_data_do(
        seed in any::<u64>(), block in 1..100u16, profile in prop::sample::select(&Profile::ALL), slow in any::<bool>(), eot in any::<bool>(),
        messages in prop::collection::vec(0..600u32, 1..12),
    ) {
        let echo = if slow { Echo::Consumption } else { Echo::Acceptance };
        let mode = Mode::Character;
        let settings =
            Settings { block, profile, echo, mode, enquiries: 255, eot, ..Settings::default() };
        let trial = Trial { seed, grain: Grain::Trailers, settings, connected: true, messages };
        let (octets, ends) = expected(&trial.messages);
        for side in &run(&trial).sides {
            prop_assert!(side.urp.idle() && side.received == octets);
            prop_assert_eq!(&side.ends, if eot { &ends[..] } else { &[] });
            prop_assert_eq!(trunkline_transport::Endpoint::answered(&side.urp), trial.messages.len() as u64);
        }
    }
}

/// The limit of the count: a loss and a duplication in one block cancel out.
#[test]
fn without_a_check_sum_a_line_that_loses_and_doubles_packets_can_deceive() {
    let damaged = |check| {
        let settings = Settings { enquiries: 255, check, ..Settings::default() };
        let trial = |seed| {
            let (grain, messages) = (Grain::Packets, vec![500; 12]);
            Trial { seed, grain, settings, connected: true, messages }
        };
        let (octets, _) = expected(&[500; 12]);
        let deceived = |side: &Side| side.received != octets;
        (0..40).filter(|&seed| run(&trial(seed)).sides.iter().any(deceived)).count()
    };
    assert!(damaged(Check::Count) > 0);
    assert_eq!(damaged(Check::Crc), 0);
}
