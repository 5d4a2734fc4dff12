//! A connection at its beginning: the part of the line and of its buffer that slow start finds.

use super::connection::{Law as Algorithm, UNSCALED};
use super::first::{Segments, filled, sooner};
use super::flow::Greedy;
use super::message::serves_in_turn;
use super::share::{Flows, Regime, Share, room};
use crate::formula::hystart::HyStart;
use crate::formula::sawtooth::Inequality;
use crate::formula::tcp::BBR_UTILISATION;
use crate::formula::transfer::{Latency, Transfer, latency};
use crate::way::Resource;
use trunkline_core::Span;
use trunkline_scenario::Network;

/// ACKs closer together than this are a train to HyStart, in seconds (Ha and Rhee 2011).
const TRAIN_GAP: f64 = 0.002;

/// Seconds after which BBR measures the round trip anew (draft-cardwell-iccrg-bbr-congestion-control-00 §4.3.5).
const BBR_MEASURES: f64 = 10.0;
/// Segments of a buffer that is short for BBR's start-up, and halves of a round trip by which a transfer was off at most.
const SHORT: f64 = 25.0;
const VERY_SHORT: f64 = 10.0;
const ROUNDS: u64 = 3;
const ROUNDS_IF_SHORT: u64 = 6;

/// Halvings by which a number of bytes is found to a millionth.
const HALVINGS: u32 = 20;

/// How a connection joins the others on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Joins {
    /// All begin together.
    #[default]
    Together,
    /// The others are through with slow start, and keep a queue.
    Behind,
}

/// The queue that others keep.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Kept {
    wait: Span,
    /// User bytes per second of the line that they fill.
    line: f64,
}

/// The part of the slowest stage that a connection finds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Beginning {
    /// User bytes per second.
    pub line: f64,
    /// User bytes that may wait.
    buffer: f64,
    /// User bytes per second in the long run.
    steady: f64,
    /// Connections that share the stage, and the seconds from one beginning to the next.
    pub flows: u32,
    apart: f64,
    /// Parts like this one that make up the stage: as many as connections, if their rates are alike.
    parts: f64,
    /// Whether the stage is a line that serves them in turn.
    pub in_turn: bool,
    /// Their inequality at the end.
    inequality: Option<Inequality>,
    /// The queue that the connection begins behind, if it does.
    kept: Option<Kept>,
}

impl Beginning {
    /// Of flow number `index`, if all begin together.
    pub fn of(
        network: &Network<'_>,
        flows: &Flows<'_>,
        shares: &[Share],
        index: usize,
    ) -> Beginning {
        let (flow, share) = (&flows[index], &shares[index]);
        let parts = |resource: Resource| parts(flows, shares, index, resource);
        let part = |resource: Resource| {
            let whole = flow.capacity(resource).millibytes_per_second() as f64 / 1e3;
            whole / parts(resource)
        };
        let steady = share.rate.millibytes_per_second() as f64 / 1e3;
        let each = flow.demands.keys().map(|&resource| (part(resource), resource));
        let slowest = each.min_by(|a, b| a.0.total_cmp(&b.0));
        let (line, stage) = slowest.map_or((f64::MAX / 1e9, None), |(line, at)| (line, Some(at)));
        let queue = stage.and_then(|stage| Some((stage, room(network, flow, flows, stage)?)));
        let buffer = queue.map_or(f64::MAX / 1e9, |(resource, bytes)| {
            let payload = f64::from(flow.tcp.payload);
            bytes as f64 * payload / (payload + f64::from(flow.tcp.header)) / parts(resource)
        });
        let sharing = stage.map_or(1, |stage| flows.users(stage).len().max(1));
        Beginning {
            line,
            buffer,
            steady: steady.min(line),
            flows: u32::try_from(sharing).unwrap_or(u32::MAX),
            apart: network.scenario().traffic[flow.flow.traffic].stagger.as_secs_f64(),
            parts: stage.map_or(1.0, parts),
            in_turn: sharing > 1 && stage.is_some_and(|stage| serves_in_turn(network, stage)),
            inequality: inequality(flow, share),
            kept: None,
        }
    }

    /// The same if it begins when the others have filled their queue, and no discipline keeps that short: each round trip is
    /// longer by that queue, the line carries the connection's part at most, and of the buffer there is what the queue leaves,
    /// for its whole window.
    pub fn behind(self, flow: &Greedy<'_>, share: &Share) -> Beginning {
        let queues =
            matches!(share.regime, Regime::Standing(_) | Regime::Overflow(..) | Regime::Loss);
        let managed = share.saw.is_some_and(|saw| saw.kept.is_some());
        if !queues || managed || share.queue.is_zero() || share.users < 2 {
            return self;
        }
        let line = self.whole();
        let room = (self.buffer * self.parts - share.queue.as_secs_f64() * line).max(0.0);
        // Of a window that grows all has to wait, not only what comes faster than the line carries it.
        let growth = 1.0 / f64::from(flow.tcp.slowed_by());
        Beginning {
            line: self.steady,
            buffer: room * growth / (1.0 + growth),
            flows: 1,
            apart: 0.0,
            parts: 1.0,
            in_turn: false,
            inequality: None,
            kept: Some(Kept { wait: share.queue, line }),
            ..self
        }
    }

    /// User bytes per second of the whole stage.
    pub fn whole(&self) -> f64 {
        self.line * self.parts
    }

    /// Whether the buffer takes so many user bytes that come at once.
    pub fn holds(&self, bytes: u64) -> bool {
        bytes as f64 <= self.buffer
    }

    /// Whether it begins behind a queue that others keep.
    pub fn is_behind(&self) -> bool {
        self.kept.is_some()
    }

    /// The wait in the queue that others keep.
    fn wait(&self) -> Span {
        self.kept.map_or(Span::ZERO, |kept| kept.wait)
    }

    /// What HyStart sees: a window that exceeds the path, or behind others any that makes their queue longer.
    fn hystart(&self, flow: &Greedy<'_>, round: f64) -> HyStart {
        let payload = f64::from(flow.tcp.payload);
        match self.kept {
            Some(kept) => HyStart { trains: false, held: 0.0, rate: kept.line / payload },
            None => {
                let gap = f64::from(flow.tcp.acked) * payload / self.line;
                let rate = self.line / payload;
                HyStart { trains: gap <= TRAIN_GAP, held: rate * round, rate }
            }
        }
    }

    /// User bytes per second once slow start is over: BBR that is alone measures the round trip, for which it stops sending, only
    /// when it is older than a transfer that ends before.
    fn steady_for(&self, flow: &Greedy<'_>, bytes: u64) -> f64 {
        let measures = bytes as f64 / self.line > BBR_MEASURES;
        match flow.tcp.law == Algorithm::Bbr && self.flows == 1 && !measures {
            true => (self.steady / BBR_UTILISATION).min(self.line),
            false => self.steady,
        }
    }

    /// What BBR's start-up may take less or more in a transfer of `total`, if the connection is alone: its windows are paced by
    /// a rate that it has yet to find, and a short buffer loses what comes too fast (docs/formulas.md, Where they do not hold).
    pub fn bbr_may_miss(&self, flow: &Greedy<'_>, total: Span) -> Option<Span> {
        let segments = self.buffer / f64::from(flow.tcp.payload);
        let rounds = |halves: u64| flow.round_trip.scaled(halves, 2);
        let miss = match segments {
            ..VERY_SHORT => rounds(ROUNDS_IF_SHORT).max(total.scaled(1, 2)),
            ..SHORT => rounds(ROUNDS_IF_SHORT),
            _ => rounds(ROUNDS),
        };
        (flow.tcp.law == Algorithm::Bbr && self.flows == 1).then_some(miss)
    }

    /// User bytes that are carried in `span` from the first window on, at no more than `rate` bytes per second.
    pub fn carried(&self, flow: &Greedy<'_>, span: Span, rate: f64) -> f64 {
        let whole = rate * span.as_secs_f64();
        let late = |bytes: f64| {
            let found = self.latency(flow, bytes as u64);
            found.slow + found.rest > span.as_secs_f64()
        };
        if !late(whole) {
            return whole;
        }
        let (mut low, mut high) = (0.0, whole);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(low, high);
            if late(middle) { high = middle } else { low = middle }
        }
        low
    }

    /// The time of `bytes` from the first window on.
    pub fn latency(&self, flow: &Greedy<'_>, bytes: u64) -> Latency {
        self.latency_from(flow, bytes, None)
    }

    /// The same on a connection whose window has grown to so many segments.
    pub fn latency_from(&self, flow: &Greedy<'_>, bytes: u64, window: Option<f64>) -> Latency {
        let tcp = &flow.tcp;
        let payload = f64::from(tcp.payload);
        let first = window.unwrap_or(tcp.first.into());
        let grown = window.map_or(0, |window| (window * payload) as u64);
        let trip = flow.round_trip + self.wait();
        let round = trip.as_secs_f64().max(1e-9);
        latency(&Transfer {
            segments: bytes as f64 / payload,
            first,
            filled: filled(flow, bytes, grown),
            growth: 1.0 / f64::from(tcp.slowed_by()),
            acked: f64::from(tcp.acked),
            most: tcp.segments().max(1.0),
            unscaled: if grown > 0 { f64::INFINITY } else { UNSCALED as f64 / payload },
            round,
            sooner: sooner(flow).as_secs_f64(),
            longer: first_beyond(flow, bytes, grown) * flow.segment.as_secs_f64(),
            flows: self.flows,
            apart: self.apart,
            in_turn: self.in_turn,
            parts: self.parts,
            pipe: self.line * round / payload,
            buffer: self.buffer / payload,
            loss: flow.loss,
            law: flow.law(trip),
            hystart: tcp.has_hystart().then(|| self.hystart(flow, round)),
            repair: flow.repair(trip, flow.loss),
            steady: self.steady_for(flow, bytes) / payload,
            inequality: self.inequality,
        })
    }
}

/// Segments by which those of a first window that does not hold the whole transfer are more than full ones.
fn first_beyond(flow: &Greedy<'_>, bytes: u64, grown: u64) -> f64 {
    let segments = Segments::of(flow, bytes, grown);
    if segments.at_once { 0.0 } else { segments.beyond(bytes, flow.tcp.payload) }
}

/// Parts of a stage as large as that of flow number `index`, by the rates of those who use it.
fn parts(flows: &Flows<'_>, shares: &[Share], index: usize, resource: Resource) -> f64 {
    let rate = |user: usize| shares[user].rate.millibytes_per_second().max(1) as f64;
    flows.users(resource).iter().map(|&user| rate(user) / rate(index)).sum()
}

/// The inequality by the saw-tooth, if overflows decide.
fn inequality(flow: &Greedy<'_>, share: &Share) -> Option<Inequality> {
    let (law, saw) = (flow.law(flow.round_trip)?, share.saw?);
    Some(Inequality { hit: saw.hit, beta: law.beta, lasts: saw.lasts.as_secs_f64() })
}
