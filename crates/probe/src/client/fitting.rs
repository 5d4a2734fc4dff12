//! The plan of a sweep on a path of which little is known, by transport, and its conclusions.

use super::rtt::{Measured, RttPlan};
use crate::tcp;
use crate::wire::message::Transport;
use trunkline_core::Seed;
use trunkline_fit::{
    Boundary, CannotTell, Known, Line, Looking, Observations, Over, Packets, PathFit, Suspects,
    Sweep, Waits, waits,
};

/// About how many round trips and blocks' times each way a sweep takes that measures each size once, at worst
/// (a window of seven blocks).
const TURNS: f64 = 26.0;
const BLOCKS: f64 = 73.0;
/// The time that such a sweep should take, in milliseconds.
const BUDGET_MS: f64 = 12_000.0;
/// Messages of each size in any case.
const LEAST: u32 = 3;
/// The time for which a doubtful boundary is looked at, in milliseconds.
const DOUBT_MS: f64 = 6_000.0;
/// The most messages of its sizes.
const DOUBT_MOST: f64 = 200.0;
/// Jumps below this part of both propagations are no window's: what hosts spend on a packet, perhaps.
const WINDOW_PART: f64 = 0.04;
/// About how many sizes a sweep over segments measures, and how many propagations each takes.
const SEGMENT_TURNS: f64 = 36.0 * 2.5;
/// Segments up to which a window is looked for at least.
const SEGMENTS: u32 = 6;

/// The knowledge of how a flow's messages travel.
pub(super) struct Course<'a> {
    pub known: &'a Known,
    pub over: &'a Over,
    pub suspects: &'a Suspects,
}

impl Course<'_> {
    /// The sweep as what is known makes it: if datagrams have told the rate, nothing is repeated for its
    /// sake, and on a long path, on which jumps are high, little else.
    pub fn sweep(&self, sweep: &Sweep) -> Sweep {
        let suspects = self.suspects.sizes(sweep.largest);
        match (self.over, self.known.line) {
            (Over::Urp, Some(line)) => self.blocks(sweep, line),
            (Over::Urp, None) => Sweep { suspects, packets: self.known.packets(), ..sweep.clone() },
            (Over::Tcp(_), Some(line)) => self.segments(sweep, line),
            (Over::Udp(udp), Some(line)) => fragments(sweep, line, udp.room(), udp.fragment),
            (_, None) => Sweep { suspects, ..sweep.clone() },
        }
    }

    fn blocks(&self, sweep: &Sweep, line: Line) -> Sweep {
        let packets = self.known.packets();
        if packets == Packets::UNKNOWN {
            return Sweep { suspects: self.suspects.sizes(sweep.largest), ..sweep.clone() };
        }
        let block = f64::from(packets.block + packets.overhead);
        let once = TURNS * line.trip.value + BLOCKS * 2.0 * block * line.byte.value;
        Sweep { packets, repeat: repeat(once, sweep), slope: false, ..sweep.clone() }
    }

    /// A window leaves a trace only if the line is idle: not beyond what it carries in a round trip.
    fn segments(&self, sweep: &Sweep, line: Line) -> Sweep {
        let packets = self.known.packets();
        let segment = packets.block.max(1);
        let carried = (line.trip.value / line.byte.value) as u32;
        let most = carried.saturating_add(2 * segment).max(SEGMENTS * segment);
        let once = SEGMENT_TURNS * line.trip.value
            + 2.0 * f64::from(segment * SEGMENTS) * 20.0 * line.byte.value;
        let near = line.trip.value + 2.0 * f64::from(segment) * line.byte.value;
        Sweep {
            largest: sweep.largest.min(most),
            packets,
            repeat: repeat(once, sweep),
            most: doubts(near),
            slope: false,
            looking: looking(line),
            doubted: vec![segment - 1, segment, segment + 1],
            ..sweep.clone()
        }
    }
}

/// The kind of jump that a window makes over TCP: the first one, for those behind it may come sooner or later than at
/// its multiples.
pub(super) fn looking(line: Line) -> Looking {
    Looking { first_only: true, least: WINDOW_PART * line.trip.value }
}

fn repeat(once: f64, sweep: &Sweep) -> u32 {
    ((BUDGET_MS / once) as u32).clamp(LEAST, sweep.repeat)
}

fn doubts(once: f64) -> u32 {
    (DOUBT_MS / 3.0 / once).clamp(12.0, DOUBT_MOST) as u32
}

/// If a datagram has to be cut, delay jumps by the time of a fragment's headers and by the time that hosts spend
/// on it. Of an IP header both ways at least half must show.
fn fragments(sweep: &Sweep, line: Line, room: u32, header: u32) -> Sweep {
    let once = 25.0 * (line.trip.value + 2.0 * f64::from(room) * line.byte.value);
    // The smallest packet that IP allows leaves no room beside the head of a message.
    let below = |octets: u32| room.saturating_sub(octets);
    let suspects: Vec<u32> =
        [room / 4, room / 2, below(2), below(1), room, room + 1, room + 2, room + room / 2].into();
    Sweep {
        largest: sweep.largest.min(2 * room),
        repeat: repeat(once, sweep),
        most: doubts(line.trip.value + 2.0 * f64::from(room) * line.byte.value),
        slope: false,
        suspects,
        looking: Looking { first_only: true, least: f64::from(header) * line.byte.value },
        doubted: vec![below(1), room, room + 1],
        ..sweep.clone()
    }
}

/// Makes a plan one of a fit. A sender that paces, as bbr does, leaves no jumps: another congestion control is
/// asked for if nothing is said.
pub fn to_fit(plan: &mut RttPlan) {
    plan.line = true;
    if plan.transport == Transport::Tcp && plan.congestion.is_none() {
        plan.congestion = Some(tcp::UNPACED.into());
    }
}

/// The conclusions from the round trips about a path, and how sure the size of a full packet is.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The path; sizes are those on the connection, with the head of each message if it counts.
    pub fit: PathFit,
    /// Octets of that head.
    pub head: u32,
    /// The carrier of the messages.
    pub over: Over,
    /// Octets that a fresh connection sends before it waits; `None` if that was not looked for.
    pub initial: Option<Result<u32, CannotTell>>,
    /// The boundary of a packet, segment or block that the system names; `None` if there is none or it
    /// was not measured.
    pub boundary: Option<Boundary>,
}

impl Found {
    /// The largest size that the fit describes: with first jumps alone one turn behind the first.
    pub fn described(&self) -> u32 {
        let first = self.fit.curve.as_ref().and_then(|curve| curve.combs.first());
        let first = first.filter(|_| self.fit.known.looking.first_only);
        first.map_or(u32::MAX, |comb| {
            let first = comb.teeth.first;
            first.saturating_add(self.fit.known.block.unwrap_or(first))
        })
    }
}

impl Measured {
    /// The path that the round trips say.
    pub fn fit(&self) -> Found {
        let samples = with_head(&self.observed.round_trips(), self.head);
        let seed = Seed(self.result.seed);
        let mut fit = PathFit::of(&samples, self.known, seed);
        if let (Over::Tcp(tcp), Ok(window)) = (&self.over, &fit.window) {
            let waits = self.waits(*window, tcp.segment);
            if waits != Waits::AllWays {
                fit = PathFit::of(&samples, Known { waits, ..self.known }, seed);
            }
        }
        let over = self.over_found();
        let boundary = boundary(&over, &samples, &fit);
        Found { fit, head: self.head, over, initial: self.initial.clone(), boundary }
    }

    fn waits(&self, window: u32, segment: u32) -> Waits {
        let ways = one_way(&self.observed).map(|way| with_head(&way, self.head));
        waits(&ways[0], &ways[1], window, segment)
    }

    fn over_found(&self) -> Over {
        match self.over.clone() {
            Over::Tcp(mut tcp) => {
                let octets = self.initial.as_ref().and_then(|found| found.as_ref().ok());
                tcp.initial = octets.and_then(|&octets| segments(octets, tcp.segment));
                Over::Tcp(tcp)
            }
            other => other,
        }
    }
}

/// A congestion window is counted in segments; what is none is the receiver's window. Of a segment a little
/// may be noise.
fn segments(octets: u32, segment: u32) -> Option<u32> {
    let count = (octets + segment / 2) / segment;
    let off = octets.abs_diff(count * segment);
    (count > 0 && off <= segment / 100).then_some(count)
}

fn boundary(over: &Over, samples: &[(u32, f64)], fit: &PathFit) -> Option<Boundary> {
    let slope = fit.curve.as_ref()?.slope;
    match over {
        Over::Tcp(tcp) => Boundary::at(samples, tcp.segment, slope),
        Over::Udp(udp) => Boundary::at(samples, udp.room(), slope),
        Over::Urp => None,
    }
}

/// Messages that make a congestion window large enough for these: it doubles in each round trip in which it
/// is used up, and shrinks while small messages leave it unused (RFC 2861), so that this is done before each
/// turn. In any case there is one that fills a segment: Linux offers its window in multiples of the longest
/// segment seen.
pub(super) fn warming(sizes: &[u32], segment: u32) -> Vec<u32> {
    let Some(&largest) = sizes.iter().max() else { return Vec::new() };
    let windows = largest.div_ceil(segment.max(1)).div_ceil(INITIAL);
    let count = if largest <= 2 * segment { 1 } else { 2 + windows.ilog2() };
    vec![largest; count as usize]
}

/// Segments that a connection sends at once at its beginning, or after an idle time, at worst.
const INITIAL: u32 = 2;

/// Sizes with the head of each message.
pub(super) fn with_head(samples: &[(u32, f64)], head: u32) -> Vec<(u32, f64)> {
    samples.iter().map(|&(size, millis)| (size + head, millis)).collect()
}

/// Times of both ways in milliseconds, each off by the clocks' difference.
pub(super) fn one_way(observed: &Observations) -> [Vec<(u32, f64)>; 2] {
    let mut ways = [Vec::new(), Vec::new()];
    let base = observed.exchanges.iter().find_map(|one| Some(one.far?.received - one.sent));
    for one in &observed.exchanges {
        let (Some(far), Some(base)) = (one.far, base) else { continue };
        ways[0].push((one.size, (far.received - one.sent - base) as f64 / 1e6));
        ways[1].push((one.size, (one.received - far.sent + base) as f64 / 1e6));
    }
    ways
}
