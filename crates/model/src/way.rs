//! A way through the network as a chain of stages, each of which sends one packet at a time.

mod server;

use crate::bucket::Bucket;
use crate::formula::general::{bit_time, round_robin_wait};
use crate::formula::rounds::pieces;
use crate::medium::{self, Channel};
use crate::shaper;
use crate::speech::Packet;
use crate::talk::protocol_place;
use server::Server;
use trunkline_core::{Channel as ChannelNumber, Rate, Span};
use trunkline_path::medium::PortLine;
use trunkline_path::{Framer, Framing, LinkSpec, Piece, TrunkProcessor};
use trunkline_scenario::{Cost, Crossing, Host, Lane, Network};

/// Envelopes that cross a backplane in one packet (Hawley 1989 §2.1).
const BACKPLANE_DATA: u32 = 16;
/// Envelopes of its channel number.
const BACKPLANE_CHANNEL: u64 = 2;
/// Bits of such a packet: two envelopes of channel number and 16 of data, 10 bits each (§1.3, §2.1).
const BACKPLANE_BITS: u64 = 180;

/// What a stage is, so that traffics that use the same one know it. Its number is its place among its kind in the order
/// of names, so that the order of declarations settles no tie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Resource {
    /// A host's processor.
    Processor(usize),
    /// The processor of a host's interface, for sending (and receiving, where it has but one).
    Board(usize),
    /// The one for receiving, where it has two.
    BoardIn(usize),
    /// A link's line, with whether it is the one back.
    Line(usize, bool),
    /// The processor of the trunk board before a line.
    Trunk(usize, bool),
    /// A node's backplane.
    Backplane(usize),
    /// The channel of a shared medium.
    Medium(usize),
    /// A port of a fabric, by its number there.
    Port(usize, usize),
}

/// A stage of a way.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub resource: Resource,
    /// Where its time is booked.
    pub place: String,
    kind: Kind,
    /// The token bucket before it, if packets are followed through one.
    bucket: Option<Bucket>,
    /// Bytes of the pieces in which packets go over the line, if its discipline cuts them.
    pub cut: Option<u32>,
    /// Distance behind it.
    pub propagate: Span,
    /// What every block waits here behind other traffic.
    pub queue: Span,
    /// Whether packets of other channels go between its own, so that frames do not go on with the next packet of one channel.
    pub beside: bool,
    /// The channels with which it is shared quantum by quantum.
    pub turns: Option<Turns>,
    /// On its last visit of a way that crosses it several times (Hawley 1989 §3: a loop): how often before.
    /// Packets that follow each other take turns with themselves there.
    before: u64,
}

/// Other channels that are served in turn with ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turns {
    /// How many, at most.
    pub others: u64,
    /// Bytes of a turn.
    pub quantum: u32,
    /// A turn's time on the line.
    pub time: Span,
}

impl Turns {
    /// The most that the turns of the others take while ours for `packets` come.
    fn wait(&self, packets: &[Packet]) -> Span {
        let bytes: u64 = packets.iter().map(|packet| u64::from(packet.bytes)).sum();
        let quanta = bytes.div_ceil(u64::from(self.quantum.max(1)));
        round_robin_wait(self.others, quanta, self.time)
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Line(Option<Rate>, Framing),
    Backplane(Rate),
    /// A trunk board's processor moving packets from the input fifo into memory.
    TrunkIn(TrunkProcessor),
    /// And out of it.
    TrunkOut(TrunkProcessor),
    /// A board that takes in packets: for each envelope, and for each block.
    Intake(Cost),
    /// A channel on which stations take turns.
    Channel(Channel),
}

/// The stages of one direction.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub stages: Vec<Stage>,
}

/// The direction of a link that a way crosses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub link: usize,
    pub reversed: bool,
    pub spec: &'a LinkSpec,
}

/// The line that is crossed. `None` if it is no link's.
pub(crate) fn line<'a>(network: &Network<'a>, crossing: &Crossing) -> Option<Line<'a>> {
    let lane = network.lanes()[crossing.lane];
    let Lane::Link { index, reversed, .. } = lane else { return None };
    Some(Line { link: network.links().rank(index), reversed, spec: lane.link()? })
}

/// The lane of a line.
pub(crate) fn lane<'a>(network: &Network<'a>, link: usize, reversed: bool) -> Lane<'a> {
    network.lanes()[2 * network.links().index(link) + usize::from(reversed)]
}

/// The name of a link's direction.
pub(crate) fn line_name(network: &Network<'_>, link: usize, reversed: bool) -> String {
    lane(network, link, reversed).name()
}

impl Way {
    /// Over what is `crossed` to the interface of the host `to`.
    pub fn new(network: &Network<'_>, crossed: &[Crossing], to: (&Host, usize)) -> Way {
        let mut stages: Vec<Stage> =
            crossed.iter().flat_map(|crossing| over(network, crossing)).collect();
        let (host, number) = to;
        let inward = match host.interface.half_duplex {
            true => Resource::Board(number),
            false => Resource::BoardIn(number),
        };
        let intake = Kind::Intake(host.interface.receive_block);
        stages.push(plain(inward, &protocol_place(host), intake));
        count_visits(&mut stages);
        Way { stages }
    }

    /// What the last of `packets` spends at each stage, propagation and queues left out, when each is
    /// handed in at its instant: D(p, h) = max(D(p−1, h), D(p, h−1)) + own time.
    pub fn spent(&self, packets: &[(Span, Packet, bool)]) -> Vec<Span> {
        self.passed(packets).0
    }

    /// When each of `packets` is at the far interface, propagation and queues left out.
    pub fn arrivals(&self, packets: &[(Span, Packet, bool)]) -> Vec<Span> {
        self.passed(packets).1
    }

    /// Both.
    fn passed(&self, packets: &[(Span, Packet, bool)]) -> (Vec<Span>, Vec<Span>) {
        let mut at: Vec<Span> = packets.iter().map(|&(release, ..)| release).collect();
        let mut spent = Vec::with_capacity(self.stages.len());
        for stage in &self.stages {
            let mut server = Server::new(stage);
            let before = at.last().copied().unwrap_or_default();
            let mut follows = Vec::with_capacity(at.len());
            for (time, &(_, packet, last)) in at.iter_mut().zip(packets) {
                follows.push(server.free.is_some_and(|free| free >= *time));
                *time = server.serve(stage, *time, packet, last);
            }
            if stage.empties_first() {
                together(&mut at, &follows);
            }
            spent.push(at.last().copied().unwrap_or_default() - before);
        }
        (spent, at)
    }

    /// Propagation over the whole way.
    pub fn propagation(&self) -> Span {
        self.stages.iter().map(|stage| stage.propagate).sum()
    }

    /// What a packet that finds nothing ahead waits for slots on the whole way.
    pub fn to_slots(&self) -> Span {
        self.stages.iter().map(Stage::to_slot).sum()
    }

    /// What `packets` wait behind other traffic on the whole way.
    pub fn waits(&self, packets: &[Packet]) -> Span {
        self.stages.iter().map(|stage| stage.wait(packets)).sum()
    }

    /// From the release of `packets`, all at once, to the end of the last at the far interface.
    pub fn latency(&self, packets: &[Packet]) -> Span {
        let spent = self.spent(&burst(packets));
        spent.into_iter().sum::<Span>() + self.propagation() + self.waits(packets)
    }
}

/// The stages of a lane.
fn over(network: &Network<'_>, crossing: &Crossing) -> Vec<Stage> {
    let lane = network.lanes()[crossing.lane];
    if let Lane::Backplane { index, rate, .. } = lane {
        let resource = Resource::Backplane(network.nodes().rank(index));
        return vec![plain(resource, &lane.name(), Kind::Backplane(rate))];
    }
    if let Some(way) = medium::way(network, crossing) {
        return on_medium(&lane.name(), way);
    }
    let Some(Line { link, reversed, spec }) = line(network, crossing) else { return Vec::new() };
    let place = lane.name();
    let mut stages = Vec::with_capacity(3);
    if let Some(processor) = spec.processor {
        let resource = Resource::Trunk(link, reversed);
        stages.push(plain(resource, &place, Kind::TrunkIn(processor)));
        stages.push(plain(resource, &place, Kind::TrunkOut(processor)));
    }
    let (rate, framing) = shaper::drain(spec);
    let line = Kind::Line(rate, framing);
    let line = plain(Resource::Line(link, reversed), &place, line);
    let cut = spec.discipline.assumptions().cuts;
    stages.push(Stage { propagate: spec.delay, cut, ..line });
    stages
}

/// The channel of a medium, or the lines of a fabric.
fn on_medium(place: &str, way: medium::Over) -> Vec<Stage> {
    match way {
        medium::Over::Channel(resource, channel) => {
            let stage = plain(resource, place, Kind::Channel(channel));
            vec![Stage { propagate: channel.distance(), ..stage }]
        }
        medium::Over::Fabric(number, framing, lines) => {
            let stage = |line: PortLine| {
                let kind = Kind::Line(line.rate, framing);
                let stage = plain(Resource::Port(number, line.port), place, kind);
                Stage { propagate: line.behind, ..stage }
            };
            lines.into_iter().map(stage).collect()
        }
    }
}

/// What is taken in without a pause goes on together, when the last of it is in.
fn together(at: &mut [Span], follows: &[bool]) {
    for index in (1..at.len()).rev() {
        if follows[index] {
            at[index - 1] = at[index];
        }
    }
}

fn count_visits(stages: &mut [Stage]) {
    for index in 0..stages.len() {
        let resource = stages[index].resource;
        // A trunk board's two stages are one visit.
        if matches!(resource, Resource::Trunk(..)) {
            continue;
        }
        let later = stages[index + 1..].iter().any(|stage| stage.resource == resource);
        let before = stages[..index].iter().filter(|stage| stage.resource == resource).count();
        stages[index].before = if later { 0 } else { before as u64 };
    }
}

/// Whether a line serves one priority band before another, and these traffics have different ones.
pub(crate) fn bands_differ(
    network: &Network<'_>,
    line: &LinkSpec,
    traffics: impl IntoIterator<Item = usize>,
) -> bool {
    let mut bands = traffics.into_iter().map(|it| network.scenario().traffic[it].band);
    let first = bands.next();
    line.discipline.assumptions().bands && bands.any(|band| Some(band) != first)
}

/// All at once; the last packet ends the block.
pub(crate) fn burst(packets: &[Packet]) -> Vec<(Span, Packet, bool)> {
    let last = packets.len().saturating_sub(1);
    packets.iter().enumerate().map(|(index, &p)| (Span::ZERO, p, index == last)).collect()
}

fn plain(resource: Resource, place: &str, kind: Kind) -> Stage {
    let place = place.into();
    let (propagate, queue, beside) = (Span::ZERO, Span::ZERO, false);
    let (bucket, cut, turns) = (None, None, None);
    Stage { resource, place, kind, bucket, cut, propagate, queue, beside, turns, before: 0 }
}

impl Stage {
    /// Is it an input fifo that is emptied before anything goes out, as in the round robin program
    /// (Hawley 1989 §2.2)?
    fn empties_first(&self) -> bool {
        matches!(self.kind, Kind::TrunkIn(board) if !board.output_first)
    }

    /// Makes it the line of `spec` behind a bucket.
    pub fn open(&mut self, spec: &LinkSpec, bucket: Bucket) {
        self.kind = Kind::Line(spec.rate, spec.framing);
        self.bucket = Some(bucket);
    }

    /// Whether packets are followed through a token bucket here.
    pub fn is_held(&self) -> bool {
        self.bucket.is_some()
    }

    /// Whether it takes no time for anything, so that nothing waits here.
    pub fn is_free(&self) -> bool {
        match self.kind {
            Kind::Line(rate, _) => rate.is_none() && self.bucket.is_none(),
            Kind::Intake(cost) => cost.fixed.is_zero() && cost.per_byte.is_zero(),
            _ => false,
        }
    }

    /// The channel, if it is one that stations share.
    pub fn channel(&self) -> Option<&Channel> {
        match &self.kind {
            Kind::Channel(channel) => Some(channel),
            _ => None,
        }
    }

    /// In words, for the numbers of a term.
    pub fn describe(&self) -> String {
        match self.kind {
            Kind::Line(None, _) => "no limit".into(),
            Kind::Line(Some(rate), Framing::None) => rate.to_string(),
            Kind::Line(Some(rate), framing) => format!("{framing} at {rate}"),
            Kind::Backplane(rate) => format!("180 bits each at {rate}"),
            Kind::TrunkIn(board) => format!("{} in for each", board.input_per_byte),
            Kind::TrunkOut(board) => format!("{} out for each", board.output_per_byte),
            Kind::Intake(cost) => format!("{} + {} for each", cost.fixed, cost.per_byte),
            Kind::Channel(channel) => channel.describe(),
        }
    }

    /// What a packet that finds nothing ahead waits for the next slot, if the line has slots: half of one, the
    /// mean over all phases. None if others keep the line busy.
    pub fn to_slot(&self) -> Span {
        if !self.queue.is_zero() || self.turns.is_some() {
            return Span::ZERO;
        }
        let Kind::Line(Some(rate), framing) = self.kind else { return Span::ZERO };
        let (bits, (of, all)) = (framing.slot_bits().unwrap_or(0), framing.line_share());
        Span::from_secs(1).scaled(bits * all, rate.bits_per_second() * of).scaled(1, 2)
    }

    /// What `packets` of one block wait here behind other traffic.
    pub fn wait(&self, packets: &[Packet]) -> Span {
        self.queue + self.turns.map_or(Span::ZERO, |turns| turns.wait(packets))
    }

    /// From one block of `packets` to the next, in the long run and back to back: what they keep the
    /// stage busy for, and the turns of others.
    pub fn busy(&self, packets: &[Packet]) -> Span {
        self.busy_for(packets, 1)
    }

    /// The same for `blocks` blocks: of a fast line a block's own time in whole nanoseconds is too coarse.
    pub fn busy_for(&self, packets: &[Packet], blocks: u64) -> Span {
        self.back_to_back(packets, blocks, false)
    }

    /// The same if the blocks wait in its queue: a turn goes on from one block to the next, and ends in the middle of a packet.
    pub fn busy_in_queue(&self, packets: &[Packet]) -> Span {
        self.back_to_back(packets, 1, true)
    }

    fn back_to_back(&self, packets: &[Packet], blocks: u64, queued: bool) -> Span {
        const BLOCKS: u64 = 64;
        let mut server = Server::back_to_back(self);
        let mut end = Span::ZERO;
        for _ in 0..BLOCKS {
            let ready = if queued { Span::ZERO } else { end };
            for (_, packet, last) in burst(packets) {
                end = server.serve(self, ready, packet, last);
            }
        }
        let turns = self.turns.map_or(Span::ZERO, |turns| turns.wait(packets));
        if let Some(bucket) = self.bucket.filter(|bucket| bucket.sustains) {
            let bytes: u64 = packets.iter().map(|packet| u64::from(packet.bytes)).sum();
            end = end.max(bucket.rate.time_for(bytes.saturating_mul(BLOCKS)));
        }
        end.scaled(blocks, BLOCKS) + turns.scaled(blocks, 1)
    }

    /// What a block of `packets` keeps the line busy for where other channels are served in between,
    /// `piece` bytes of one channel at a time. `None` if no piece shares a frame with another.
    pub fn busy_in_turns(&self, packets: &[Packet], piece: u32) -> Option<Span> {
        let Kind::Line(Some(rate), framing) = self.kind else { return None };
        let (frame, mixed) = match framing {
            Framing::T1Lapd { frame } => (frame, false),
            Framing::T1Mixed { frame } => (frame, true),
            _ => return None,
        };
        let bytes: u32 = packets.iter().map(|packet| packet.bytes).sum();
        let mut controls: u32 = packets.iter().map(|packet| packet.controls).sum();
        let mut framer = Framer::new(framing);
        let pieces = pieces(bytes, piece.min(u32::from(frame)));
        // Mixed frames go on with the other channels' pieces.
        let channels = (0..).map(|index| ChannelNumber(if mixed { index % 2 } else { 0 }));
        let bits = pieces.into_iter().rev().zip(channels).map(|(bytes, channel)| {
            let controls = std::mem::take(&mut controls);
            framer.line_bits(Piece { channel, bytes, controls, last: true }, mixed)
        });
        Some(bit_time(bits.sum(), rate, framing))
    }
}
