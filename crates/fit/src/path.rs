//! Inferences about a path from the shape of delay against message size: Vande Water 1988, chapter 2, by
//! machine.
//!
//! A sender may have a window of `W` bytes in blocks of `b` outstanding. One way, a message of `s` bytes is
//! there after
//!
//! `p + s·σ + ceil(s/b)·q + (ceil(s/W) - 1)·J`,
//!
//! `σ` being the time of a byte, `q` that of a packet's headers and handling, and `p` the propagation. A
//! window opens when its first block is answered, `bσ + q + 2p + A` after its beginning (`A`: the answer's
//! transmission); the line has carried the rest of the window meanwhile. So the line is idle for
//!
//! `J = 2p + A - (W/b - 1)·(bσ + q)`,
//!
//! or for `J = 2p + A` if the window opens as a whole. Jumps at multiples of `W` therefore tell the
//! propagation apart from the hosts' cost for each message, which is what remains of the round trip of an
//! empty message. An echo does all this twice, so that its jumps are of about two round trips (§2.5.2).

use crate::curve::{Comb, Curve, HEADERS, Packets, Regression, Shape, redrawn};
use crate::known::{CannotTell, Fitted, Known, Opens, Waits};
use crate::level::{Level, levels};
use crate::steps::{Scan, scan, settle};
use serde::Serialize;
use trunkline_core::Seed;
use trunkline_measure::{Interval, quantile};

/// A figure is told if half its interval's width is at most this part of it.
const TOLERANCE: f64 = 0.05;
/// An acknowledgement on the line, in bytes, if nobody says: a Datakit control byte, up to headers alone.
const ANSWER: (f64, f64) = (1.0, HEADERS);
/// A window's jumps are so many times what had to be overlooked.
const OUTSTANDING: f64 = 3.0;
/// The part of an empty message's round trip against which what was overlooked is small.
const IRREGULAR: f64 = 0.25;
/// A packet costs less than this part of an empty message's round trip.
const PACKET_PART: f64 = 0.2;
/// Combs of one kind are as high as one another to this part.
const ABOUT: f64 = 0.5;
const CONFIDENCE: f64 = 0.95;

/// The inferences of a fit about a path. Each figure stands for itself: one may be known when another is not.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathFit {
    /// Bytes that the sender may send before it has to wait for an answer.
    pub window: Result<u32, CannotTell>,
    /// User bytes of a block, if steps of packets show or it was known.
    pub block: Option<u32>,
    /// Bits a second at which a longer message takes longer: of the line, or of what is slower.
    pub rate: Result<Fitted, CannotTell>,
    /// One-way propagation, the same both ways, in milliseconds.
    pub delay: Result<Fitted, CannotTell>,
    /// The time that both hosts together spend on a message and its answer, in milliseconds.
    pub per_message: Result<Fitted, CannotTell>,
    /// The cost of a packet in addition to its bytes, one way, in milliseconds.
    pub per_packet: Result<Fitted, CannotTell>,
    /// The curve, which reproduces the round trips measured.
    pub curve: Option<Curve>,
    /// The distance of the levels measured from the curve: the root of the mean square, in milliseconds.
    pub misfit: f64,
    /// The distance of the worst of them, in milliseconds.
    pub worst: f64,
    /// The knowledge and the assumptions.
    pub known: Known,
}

/// The meaning of each comb.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Combs {
    packet: Option<usize>,
    window: Option<usize>,
}

impl PathFit {
    /// Fits a path to round trips `(user bytes, milliseconds)`, in any order, that were measured with
    /// nothing else on the path and one message outstanding. The same samples and seed give the same fit.
    ///
    /// Without `known` figures the widest plausible ones are taken. What the hosts spend on each byte
    /// cannot be told from the line's time and is part of the rate.
    pub fn of(samples: &[(u32, f64)], known: Known, seed: Seed) -> PathFit {
        let mut levels = levels(samples);
        let found = scan(&levels, known.packets(), known.looking);
        if let Some(most) = found.shape.teeth.first().filter(|_| known.looking.first_only) {
            // What comes behind the first jump's turn is not described by it.
            let turn = known.block.unwrap_or(most.first).max(2);
            levels.retain(|one| one.size <= most.first.saturating_add(turn));
        }
        let settled = settle(&levels, &found.shape).filter(|_| levels.len() >= FEWEST);
        let Some((curve, shape)) = settled else { return nothing(levels.len(), known) };
        let (levels, curve) = unsettled(levels, curve, &shape);
        let draws = redrawn(&levels, &shape, &mut seed.stream("path fit"));
        let problem = problem(&found, &curve);
        // What was overlooked among later turns of the window says nothing of the first.
        let window = curve.combs.iter().map(|comb| comb.teeth.first).max();
        let late = window.zip(found.overlooked).is_some_and(|(one, at)| at > 2 * one);
        let reading = Reading {
            levels: &levels,
            curve: &curve,
            draws: &draws,
            known,
            problem,
            blunt: if late || found.overlooked.is_none() { 0.0 } else { found.blunt },
            overlooked: found.overlooked.filter(|_| !late),
        };
        reading.fit()
    }
}

fn nothing(sizes: usize, known: Known) -> PathFit {
    let why = CannotTell::TooLittle { sizes };
    PathFit {
        window: Err(why.clone()),
        block: known.block,
        rate: Err(why.clone()),
        delay: Err(why.clone()),
        per_message: Err(why.clone()),
        per_packet: Err(why),
        curve: None,
        misfit: f64::NAN,
        worst: f64::NAN,
        known,
    }
}

/// Levels that know what the curve does not explain of them, and the curve through these. In each turn of
/// the window hosts may be late once more, so that the levels of messages that take many turns lie farther
/// from any curve, and say less.
fn unsettled(mut levels: Vec<Level>, mut curve: Curve, shape: &Shape) -> (Vec<Level>, Curve) {
    for _ in 0..ROUNDS {
        let beyond = misfits(&levels, &curve, shape);
        levels.iter_mut().zip(beyond).for_each(|(one, misfit)| one.misfit = misfit);
        let Some(better) = Regression::of(&levels, shape) else { break };
        curve = better.curve();
    }
    (levels, curve)
}

/// The fewest message sizes of which a path can be told.
pub const FEWEST: usize = 4;
/// The number of times that the curve and what it does not explain are brought to agree.
const ROUNDS: usize = 3;
/// Levels that tell how far those of their turn lie off.
const ENOUGH: usize = 4;

/// The distance of levels from the curve beyond what noise explains, in milliseconds, for each level: the root
/// of the mean square over the levels with as many turns of the window, and over more if they are few.
/// 0 if noise explains all.
fn misfits(levels: &[Level], curve: &Curve, shape: &Shape) -> Vec<f64> {
    let beyond = |one: &Level| {
        let off = one.millis - curve.at(one.size);
        off * off - one.error * one.error
    };
    let freedom = levels.len().saturating_sub(curve.combs.len() + 2).max(1);
    let share = levels.len() as f64 / freedom as f64;
    let misfit = |group: &[Level]| {
        let sum = group.iter().map(beyond).sum::<f64>();
        (share * sum / group.len() as f64).max(0.0).sqrt()
    };
    let mut found = Vec::new();
    let mut rest = levels;
    while !rest.is_empty() {
        let turn = shape.turns(rest[rest.len().min(ENOUGH) - 1].size);
        let count = rest.iter().take_while(|one| shape.turns(one.size) <= turn).count();
        let few = rest.len() - count < ENOUGH;
        let (group, later) = rest.split_at(if few { rest.len() } else { count });
        found.extend(std::iter::repeat_n(misfit(group), group.len()));
        rest = later;
    }
    found
}

/// The reason why the jumps, if any, are no window's.
fn problem(found: &Scan, curve: &Curve) -> Option<CannotTell> {
    let not_periodic = |size| CannotTell::NotPeriodic { size };
    if let Some((size, _)) = found.strange {
        return Some(not_periodic(size));
    }
    let gap = found.open.filter(|gap| gap.behind > gap.before + 1);
    if let Some(gap) = gap {
        return Some(CannotTell::Open { before: gap.before, behind: gap.behind });
    }
    let highest = curve.combs.iter().map(|comb| comb.height).fold(0.0, f64::max);
    // Small irregularities are no reason to doubt a path without jumps; large ones are jumps.
    let small = curve.combs.is_empty() && found.blunt < IRREGULAR * curve.base;
    let hidden = highest < OUTSTANDING * found.blunt && !small;
    found.overlooked.filter(|_| hidden).map(not_periodic)
}

/// The inputs of the reading.
struct Reading<'a> {
    levels: &'a [Level],
    curve: &'a Curve,
    draws: &'a [Curve],
    known: Known,
    problem: Option<CannotTell>,
    /// Smaller jumps were overlooked, in milliseconds.
    blunt: f64,
    /// The first of them was at this size.
    overlooked: Option<u32>,
}

impl Reading<'_> {
    fn fit(&self) -> PathFit {
        let combs = self.combs();
        let jump = combs.clone().and_then(|combs| self.window(combs));
        let combs = combs.unwrap_or(Combs { packet: None, window: None });
        let (delay, per_message) = self.delay_and_host(combs, &jump);
        PathFit {
            window: jump,
            block: self.block(combs),
            rate: self.rate(),
            delay,
            per_message,
            per_packet: self.per_packet(combs),
            curve: Some(self.curve.clone()),
            misfit: self.misfit(),
            worst: self.levels.iter().map(|one| self.off(one).abs()).fold(0.0, f64::max),
            known: self.known,
        }
    }

    fn misfit(&self) -> f64 {
        let squares: f64 = self.levels.iter().map(|one| self.off(one) * self.off(one)).sum();
        (squares / self.levels.len() as f64).sqrt()
    }

    fn off(&self, one: &Level) -> f64 {
        one.millis - self.curve.at(one.size)
    }

    /// Tells the packets' comb and the window's apart. Of the combs about as high as the highest the first
    /// is the window's (with Vande Water's boards there is another behind it, of the system's writes);
    /// lower ones before it are the packets'. One alone is the packets' if it is known that they are as
    /// long and their cost explains it.
    fn combs(&self) -> Result<Combs, CannotTell> {
        let combs = &self.curve.combs;
        if self.known.waits == Waits::Never {
            let packet = (!combs.is_empty()).then_some(0);
            return Ok(Combs { packet, window: None });
        }
        let highest = combs.iter().map(|comb| comb.height).fold(0.0, f64::max);
        let first = |a: &usize, b: &usize| combs[*a].teeth.first.cmp(&combs[*b].teeth.first);
        let high = (0..combs.len()).filter(|&at| combs[at].height >= ABOUT * highest);
        let Some(window) = high.min_by(first) else {
            return Ok(Combs { packet: None, window: None });
        };
        let packet = (0..combs.len()).filter(|at| first(at, &window).is_lt()).min_by(first);
        let Comb { teeth, height } = combs[window];
        if packet.is_some() || !self.may_be_packets(&combs[window]) {
            return Ok(Combs { packet, window: Some(window) });
        }
        match self.known.block.map(|block| block == teeth.first) {
            Some(false) => Ok(Combs { packet: None, window: Some(window) }),
            Some(true) => Ok(Combs { packet: Some(window), window: None }),
            None => Err(CannotTell::PacketOrWindow { period: teeth.first, height }),
        }
    }

    /// Whether the cost of a packet can be so high.
    fn may_be_packets(&self, comb: &Comb) -> bool {
        let part = comb.height / self.ways() / self.curve.base;
        self.curve.may_be_packets(comb) && part < PACKET_PART
    }

    fn ways(&self) -> f64 {
        self.known.pattern.ways()
    }

    /// Milliseconds for each byte, one way.
    fn byte(&self, curve: &Curve) -> f64 {
        (curve.slope / self.ways()).max(0.0)
    }

    fn window(&self, combs: Combs) -> Result<u32, CannotTell> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        if self.known.waits == Waits::Never {
            return Err(CannotTell::NoWindow);
        }
        let window = combs.window.ok_or_else(|| {
            let largest = self.levels.last().map_or(0, |one| one.size);
            let error = quantile(&self.levels.iter().map(|one| one.error).collect::<Vec<_>>(), 0.5);
            CannotTell::NoJump {
                largest,
                height: (8.0 * error).max(self.blunt).max(self.known.looking.least),
            }
        })?;
        Ok(self.curve.combs[window].teeth.first)
    }

    fn block(&self, combs: Combs) -> Option<u32> {
        self.known.block.or_else(|| Some(self.curve.combs[combs.packet?].teeth.first))
    }

    fn rate(&self) -> Result<Fitted, CannotTell> {
        let why = "a longer message takes hardly longer than noise and irregularities; measure larger sizes inside the window, or more often";
        // What was overlooked may tilt the curve from one end of a window to the other; without a window
        // it may come again and again.
        let window = self.curve.combs.iter().map(|comb| comb.teeth.period).max();
        let again = window.or(self.overlooked).unwrap_or(u32::MAX);
        let tilt = self.blunt / f64::from(again.max(1));
        let rate = |slope: f64| 8_000.0 * self.ways() / slope.max(f64::MIN_POSITIVE);
        let ends = |curve: &Curve| [rate(curve.slope + tilt), rate(curve.slope - tilt)];
        let own = told(self.spread(ends), rate(self.curve.slope), "bit/s", why);
        let other = self.known.line.map(|line| line.rate());
        let other = other.and_then(|rate| told(rate.interval, rate.value, "bit/s", why).ok());
        match (own, other) {
            // Both count what a byte takes; the better known one counts.
            (Ok(own), Some(other)) if own.relative() <= other.relative() => Ok(own),
            (_, Some(other)) => Ok(other),
            (own, None) => own,
        }
    }

    fn per_packet(&self, combs: Combs) -> Result<Fitted, CannotTell> {
        let Some(packet) = combs.packet else {
            let (low, high) = (0.0, HEADERS * self.byte(self.curve));
            let why = "no steps at packet boundaries stand out from the noise";
            return Err(CannotTell::TooWide { low, high, unit: "ms", why });
        };
        let height = |curve: &Curve| {
            if self.known.waits == Waits::Never {
                return curve.combs[packet].height / self.ways();
            }
            self.packet_cost(curve, Combs { packet: Some(packet), window: None })[0]
        };
        told(self.spread(|curve| [height(curve); 2]), height(self.curve), "ms", "of the noise")
    }

    /// One-way propagation, and what hosts spend on a message.
    fn delay_and_host(
        &self,
        combs: Combs,
        jump: &Result<u32, CannotTell>,
    ) -> (Result<Fitted, CannotTell>, Result<Fitted, CannotTell>) {
        let trip = |curve: &Curve| match (combs.window, jump) {
            (Some(window), Ok(_)) => self.propagation(curve, combs, window),
            _ => self.without_jump(curve, combs),
        };
        let why = match jump {
            Ok(_) => {
                "of noise and of what is not known of blocks and acknowledgements; say how long they are, or measure more often"
            }
            Err(_) => {
                "without the jumps of a window it cannot be told from what the hosts spend; measure their part apart"
            }
        };
        let half = |curve: &Curve| trip(curve).map(|trip| trip / 2.0);
        let host = |curve: &Curve| {
            let [low, high] = trip(curve);
            let left = self.empty(curve, combs);
            [(left[0] - high).max(0.0), (left[1] - low).max(0.0)]
        };
        let middle = |ends: [f64; 2]| (ends[0] + ends[1]) / 2.0;
        let delay = told(self.spread(half), middle(half(self.curve)), "ms", why);
        (delay, told(self.spread(host), middle(host(self.curve)), "ms", why))
    }

    /// The round trip of an empty message without its packets' cost, at least and at most.
    fn empty(&self, curve: &Curve, combs: Combs) -> [f64; 2] {
        let headers = self.packet_cost(curve, combs);
        [curve.base - 2.0 * headers[1], curve.base - 2.0 * headers[0]].map(|time| time.max(0.0))
    }

    /// The least and the greatest cost of a packet one way in addition to its bytes.
    fn packet_cost(&self, curve: &Curve, combs: Combs) -> [f64; 2] {
        let byte = self.byte(curve);
        // The jumps of datagrams are those of fragments, whose headers are others than the first packet's.
        let packet = combs.packet.filter(|_| self.known.waits != Waits::Never);
        match (packet, self.known.overhead) {
            (Some(packet), bytes) => {
                let headers = self.known.block.and(bytes).map_or(0.0, f64::from) * byte;
                [curve.combs[packet].height / self.ways() + headers; 2]
            }
            (None, Some(bytes)) => [f64::from(bytes) * byte; 2],
            (None, None) => [0.0, HEADERS * byte],
        }
    }

    /// Both propagations together, at least and at most, from the jumps of the window.
    fn propagation(&self, curve: &Curve, combs: Combs, window: usize) -> [f64; 2] {
        let (byte, comb) = (self.byte(curve), curve.combs[window]);
        let answer = match self.known.answer {
            Some(bytes) => [f64::from(bytes) * byte; 2],
            None => [ANSWER.0 * byte, ANSWER.1 * byte],
        };
        let packet = self.packet_cost(curve, combs);
        let size = f64::from(comb.teeth.period);
        let block = self.block(combs).filter(|&block| block <= comb.teeth.period).map(f64::from);
        // Bytes and packets that the line carries while the first block is on its way and answered.
        let (bytes, packets) = match (self.known.opens, block) {
            (Some(Opens::AsWhole), _) => ([0.0; 2], [0.0; 2]),
            (Some(Opens::ByBlock), Some(block)) => {
                ([size - block; 2], [(size / block).ceil() - 1.0; 2])
            }
            (None, Some(block)) => ([0.0, size - block], [0.0, (size / block).ceil() - 1.0]),
            (_, None) => ([0.0, size - 1.0], [0.0; 2]),
        };
        // If packets have no comb of their own, each jump contains one packet's cost.
        let apart = combs.packet.is_some() || curve.packets != Packets::UNKNOWN;
        let own = if apart { [0.0; 2] } else { packet };
        let jump = comb.height / self.known.jumps();
        let low = jump - answer[1] - own[1] + bytes[0] * byte + packets[0] * packet[0];
        let high = jump - answer[0] - own[0] + bytes[1] * byte + packets[1] * packet[1];
        // What a packet costs beyond its headers may come before the answer to it, or behind.
        let late = combs.packet.map_or(0.0, |packet| curve.combs[packet].height / self.ways());
        let high = high + late.max(0.0);
        // What was overlooked may be part of a jump, or hide part of it.
        let (low, high) =
            (low - self.blunt / self.known.jumps(), high + self.blunt / self.known.jumps());
        let most = self.empty(curve, combs)[1];
        self.bounded(curve, combs, [low.clamp(0.0, most), high.clamp(0.0, most)])
    }

    /// Without jumps, only what the hosts do not spend can be propagation.
    fn without_jump(&self, curve: &Curve, combs: Combs) -> [f64; 2] {
        self.bounded(curve, combs, [0.0, self.empty(curve, combs)[1]])
    }

    /// Narrowed by what is known of the hosts' part and of the line.
    fn bounded(&self, curve: &Curve, combs: Combs, trip: [f64; 2]) -> [f64; 2] {
        let trip = match self.known.per_message {
            Some(host) => {
                let empty = self.empty(curve, combs);
                // If the two contradict one another, the measurement on the path counts.
                common(trip, [empty[0] - host.high, empty[1] - host.low]).unwrap_or(trip)
            }
            None => trip,
        };
        // Datagrams contain less of the hosts' time than jumps do, whose lower end says nothing besides.
        let Some(line) = self.known.line.map(|line| line.trip.interval) else { return trip };
        let line = [line.low, line.high];
        common([0.0, trip[1]], line).unwrap_or(line)
    }

    /// The interval over all draws of something that is known between two ends.
    fn spread(&self, of: impl Fn(&Curve) -> [f64; 2]) -> Interval {
        let beyond = (1.0 - CONFIDENCE) / 2.0;
        let [low, high]: [Vec<f64>; 2] =
            [0, 1].map(|end| self.draws.iter().map(|draw| of(draw)[end]).collect());
        let own = of(self.curve);
        Interval {
            low: quantile(&low, beyond).min(own[0]),
            high: quantile(&high, 1.0 - beyond).max(own[1]),
        }
    }
}

/// The interval between both pairs of ends.
fn common(one: [f64; 2], other: [f64; 2]) -> Option<[f64; 2]> {
    let (low, high) = (one[0].max(other[0]), one[1].min(other[1]));
    (low <= high).then_some([low, high])
}

/// The figure, if its interval is narrow.
fn told(
    interval: Interval,
    value: f64,
    unit: &'static str,
    why: &'static str,
) -> Result<Fitted, CannotTell> {
    let fitted = Fitted { value, interval };
    if value > 0.0 && fitted.relative() <= TOLERANCE {
        return Ok(fitted);
    }
    Err(CannotTell::TooWide { low: interval.low, high: interval.high, unit, why })
}
