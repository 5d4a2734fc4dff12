//! Shared media on a way: the channel on which stations take turns, or the lines of a fabric of switches.

mod course;
mod paced;
mod transfer;

pub(crate) use course::{Course, answers_wait, conversation, in_time, phase_note};
pub(crate) use paced::{Paced, predict as paced};
pub(crate) use transfer::ends_note;

use crate::flow::Flow;
use crate::formula::general::bit_time;
use crate::group::stage_name;
use crate::speech::Packet;
use crate::way::Resource;
use std::collections::BTreeMap;
use trunkline_core::{Span, Time};
use trunkline_path::medium::{Alone, Ask, PortLine, StationId};
use trunkline_path::{Framer, Framing, Piece};
use trunkline_scenario::{Crossing, Lane, Medium, Network, Way as Route};

/// A way from one station to another over a channel that all share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Channel {
    pub alone: Alone,
    pub from: StationId,
    to: StationId,
}

/// What a frame crosses on a medium.
pub(crate) enum Over {
    Channel(Resource, Channel),
    /// Its number, and the lines.
    Fabric(usize, Framing, Vec<PortLine>),
}

impl Channel {
    /// The distance.
    pub fn distance(&self) -> Span {
        self.alone.way(self.from, self.to)
    }

    /// A packet that is ready at an instant.
    pub fn ask(&self, ready: Time, packet: Packet) -> Ask {
        let Packet { bytes, controls, .. } = packet;
        Ask { by: self.from, ready, bytes, controls }
    }

    /// How long a packet's own bits take. Nothing if no formula says so.
    pub fn own(&self, packet: Packet) -> Span {
        let turn = self.alone.turn(None, self.ask(Time::ZERO, packet));
        turn.map_or(Span::ZERO, |turn| turn.own)
    }

    /// In words.
    pub fn describe(&self) -> String {
        match (self.alone.rate, self.alone.framing) {
            (None, _) => "no limit".into(),
            (Some(rate), Framing::None) => rate.to_string(),
            (Some(rate), framing) => format!("{framing} at {rate}"),
        }
    }
}

/// The medium that is crossed, and its number in the order of names. `None` if it is none.
fn crossed<'a>(network: &Network<'a>, crossing: &Crossing) -> Option<(&'a Medium, usize)> {
    let Lane::Station { medium, .. } = network.lanes()[crossing.lane] else { return None };
    let before = network.scenario().media.iter().filter(|other| other.name < medium.name);
    Some((medium, before.count()))
}

/// The name of a medium by its number.
pub(crate) fn name(network: &Network<'_>, number: usize) -> String {
    let mut names: Vec<&String> = network.scenario().media.iter().map(|it| &it.name).collect();
    names.sort_unstable();
    names[number].clone()
}

/// What is crossed of a medium. `None` if the lane is no station's.
pub(crate) fn way(network: &Network<'_>, crossing: &Crossing) -> Option<Over> {
    let (medium, number) = crossed(network, crossing)?;
    let Lane::Station { station: from, .. } = network.lanes()[crossing.lane] else { return None };
    let to = crossing.heard_by.unwrap_or(from);
    let alone = Alone::new(&medium.spec, medium.stations.len());
    Some(match alone.ports(from, to) {
        Some(lines) => Over::Fabric(number, alone.framing, lines),
        None => Over::Channel(Resource::Medium(number), Channel { alone, from, to }),
    })
}

/// Whether formulas know the media of a route.
///
/// # Errors
/// What they do not know.
pub(crate) fn known(network: &Network<'_>, route: &Route) -> Result<(), String> {
    for hops in [&route.there, &route.back] {
        let mut channels = 0;
        for crossing in hops {
            let Some((medium, _)) = crossed(network, crossing) else { continue };
            let name = &medium.name;
            if let Some(held) = medium.spec.discipline.assumptions().holds_back() {
                return Err(format!("{held} on the shared medium {name}"));
            }
            match way(network, crossing) {
                Some(Over::Fabric(_, framing, lines)) => {
                    let frame = network.scenario().mtu.saturating_add(64);
                    if !lines.windows(2).all(|pair| keeps_pace(framing, pair, frame)) {
                        return Err(format!(
                            "ports of {name} that wait for room in the next switch"
                        ));
                    }
                }
                Some(Over::Channel(_, channel)) if channel.alone.is_known() => channels += 1,
                _ => return Err(format!("the shared medium {name}")),
            }
        }
        if channels > 1 {
            return Err("several turns on shared media on one way".into());
        }
    }
    Ok(())
}

/// Whether a port may send frames of so many bytes back to back, however long it takes to hear of room in the next switch.
fn keeps_pace(framing: Framing, pair: &[PortLine], frame: u32) -> bool {
    let (Some(room), Some(rate)) = (pair[0].ahead, pair[0].rate) else { return true };
    let time = |line: PortLine| {
        let piece = Piece { channel: Default::default(), bytes: frame, controls: 0, last: true };
        let bits = Framer::new(framing).line_bits(piece, false);
        line.rate.map_or(Span::ZERO, |rate| bit_time(bits, rate, framing))
    };
    // Its way, the switch, the next port's time for it, and the word of it back.
    let round = pair[0].behind.scaled(2, 1) + time(pair[1]).scaled(2, 1) + time(pair[0]);
    let on_way = u128::from(rate.bits_per_second()) * u128::from(round.as_nanos()) / 8_000_000_000;
    // A slower port behind it holds it back as a queue does.
    let slower = pair[1].rate < pair[0].rate;
    slower || u128::from(room) >= on_way + 2 * u128::from(frame)
}

impl Flow<'_> {
    /// The shared channel on its way, if there is one.
    pub fn channel(&self) -> Option<(Resource, Channel)> {
        let stages = self.there.way.stages.iter().chain(&self.back.way.stages);
        stages.into_iter().find_map(|stage| Some((stage.resource, *stage.channel()?)))
    }
}

/// What a flow may have under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    pub flow: &'a Flow<'a>,
    pub bytes: u64,
    /// Bytes of a packet.
    pub packet: u32,
    /// Whether marks slow it.
    pub heeds_marks: bool,
}

/// Whether all that `flows` may have under way finds room in the queues of fabrics.
///
/// # Errors
/// The first queue that it may overflow.
pub(crate) fn fits(network: &Network<'_>, flows: &[Window<'_>]) -> Result<(), String> {
    let mut queues: BTreeMap<Resource, Queue> = BTreeMap::new();
    for &Window { flow, bytes, packet, heeds_marks } in flows {
        for crossing in &flow.route.there {
            let (number, lines) = match way(network, crossing) {
                Some(Over::Fabric(number, _, lines)) => (number, lines),
                Some(Over::Channel(..)) => {
                    alone_fits(network, crossing, (bytes, packet))?;
                    continue;
                }
                None => continue,
            };
            let first = lines[0];
            for line in lines {
                let port = Resource::Port(number, line.port);
                let limit = limit(network, crossing, packet).filter(|_| line.port == first.port);
                let queue = queues.entry(port).or_default();
                let marks = line.marks.filter(|_| heeds_marks);
                let bears = line.keeps.or(limit).into_iter().chain(marks).chain(queue.keeps);
                queue.keeps = bears.min();
                queue.bytes = queue.bytes.saturating_add(bytes);
                queue.gathers |=
                    queue.flows > 0 || line.port == first.port || line.rate < first.rate;
                queue.flows += 1;
            }
        }
    }
    let full =
        queues.into_iter().find(|(_, it)| it.gathers && it.keeps.is_some_and(|k| k < it.bytes));
    full.map_or(Ok(()), |(port, Queue { bytes, .. })| {
        let name = stage_name(network, port);
        Err(format!("loss or marks: {bytes} bytes that may be under way at once may overflow the queue of {name}"))
    })
}

/// Whether what may be under way waits at a station of a channel without loss.
fn alone_fits(
    network: &Network<'_>,
    crossing: &Crossing,
    (bytes, packet): (u64, u32),
) -> Result<(), String> {
    let Some((medium, _)) = crossed(network, crossing) else { return Ok(()) };
    let room = medium.spec.discipline.limit().most_bytes(packet);
    match bytes <= room {
        true => Ok(()),
        false => Err(format!(
            "loss: {bytes} bytes that may be under way at once may overflow a queue of {}",
            medium.name
        )),
    }
}

/// A port that flows share by cables that carry unequal numbers of them: it serves cables in turn, and those alone on one are
/// done before the others.
pub(crate) fn unequal(network: &Network<'_>, flows: &[Window<'_>]) -> Option<String> {
    let mut inputs: BTreeMap<Resource, BTreeMap<usize, usize>> = BTreeMap::new();
    for Window { flow, .. } in flows {
        for crossing in &flow.route.there {
            let Some(Over::Fabric(number, _, lines)) = way(network, crossing) else { continue };
            for pair in lines.windows(2) {
                let port = inputs.entry(Resource::Port(number, pair[1].port)).or_default();
                *port.entry(pair[0].port).or_default() += 1;
            }
        }
    }
    let differ = |counts: &BTreeMap<usize, usize>| counts.values().min() != counts.values().max();
    let (port, _) = inputs.into_iter().find(|(_, counts)| differ(counts))?;
    let name = stage_name(network, port);
    Some(format!(
        "{name} serves its cables in turn, and these carry unequal numbers of flows: the time is that of the last of them, and the mean is less"
    ))
}

/// What may come together before a port.
#[derive(Debug, Default)]
struct Queue {
    flows: u32,
    bytes: u64,
    /// The most that it bears.
    keeps: Option<u64>,
    /// Whether frames come faster than they leave.
    gathers: bool,
}

/// Bytes of packets of one size that may wait at a station.
fn limit(network: &Network<'_>, crossing: &Crossing, packet: u32) -> Option<u64> {
    let (medium, _) = crossed(network, crossing)?;
    Some(medium.spec.discipline.limit().most_bytes(packet))
}
