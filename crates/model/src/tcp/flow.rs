//! A connection on its way: round trip, losses, and the rate that these allow it.

use super::connection::{Connection, Law as Algorithm};
use crate::flow::Flow;
use crate::formula::chance::{self, Chance, Repair, Sway};
use crate::formula::course::{Growth, Law};
use crate::formula::tcp;
use crate::group::{stage_name, writes};
use crate::medium;
use crate::shaper;
use crate::share::Claim;
use crate::speech::Packet;
use crate::talk::TOGETHER;
use crate::throughput::Throughput;
use crate::way::{Line, Resource, line, line_name};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use trunkline_core::Span;
use trunkline_path::impairment::LossModel;
use trunkline_scenario::{Crossing, Network, Traffic, Transport, Workload};

/// c of the constant-rate policy in segments per second squared: with it a connection of 100 ms grows as
/// TCP does.
const CONSTANT_RATE: f64 = 100.0;
/// BBR keeps its rate at least up to such a loss (Cardwell et al. 2017, figure 8: 15 %).
const BBR_BEARS: f64 = 0.15;

/// A greedy connection.
#[derive(Debug, Clone)]
pub(crate) struct Greedy<'a> {
    pub flow: Flow<'a>,
    pub tcp: Connection,
    /// User bytes of each system write.
    pub write: u64,
    /// User bytes of a transfer; `u64::MAX` if it has no end.
    pub bytes: u64,
    /// From the beginning of a full segment to its ACK, on an empty path.
    pub round_trip: Span,
    /// The probability that one of the path's lines loses a segment.
    pub loss: f64,
    /// The probability that one of the lines back loses an acknowledgement.
    pub unheard: f64,
    /// The time for which [`TOGETHER`] full segments keep each stage busy, their share of ACKs included.
    pub demands: BTreeMap<Resource, Span>,
    /// Whether writes come so fast that they fill segments whenever the window is full.
    pub gathers_when_full: bool,
    /// What each segment costs the slowest stage besides its bytes.
    pub segment: Span,
    /// The rate at which each write would go as a segment of its own, if writes come faster than that.
    pub ungathered: Option<Throughput>,
}

impl<'a> Greedy<'a> {
    /// Flow number `number` of a traffic that speaks TCP; with writes of `write` bytes, or of the first size that it has.
    ///
    /// # Errors
    /// Why no formula covers it.
    pub fn new(
        network: &'a Network<'a>,
        traffic: usize,
        number: u32,
        write: Option<u64>,
    ) -> Result<Greedy<'a>, String> {
        let Traffic { transport, reply_transport, .. } = &network.scenario().traffic[traffic];
        let (Transport::Tcp(ours), Transport::Tcp(theirs)) = (&**transport, &**reply_transport)
        else {
            return Err("another transport than TCP".into());
        };
        let tcp = Connection::between(ours, theirs, network.scenario().mtu)?;
        let flow = Flow::new(network, traffic, number)?;
        flow.uncovered_but_loss_and_shapers(network).map_or(Ok(()), Err)?;
        if let Some((resource, _)) = flow.channel() {
            return Err(format!(
                "transfers over TCP on the shared medium {}, where each acknowledgement, of one segment or two, takes a turn",
                stage_name(network, resource)
            ));
        }
        let [loss, unheard] = [&flow.route.there, &flow.route.back].map(|way| loss(network, way));
        if loss >= 1.0 || unheard >= 1.0 {
            return Err("TCP if everything is lost on the way there or back".into());
        }
        if tcp.law == Algorithm::Bbr && loss > BBR_BEARS {
            return Err("BBR if more than 15 % is lost".into());
        }
        unmarked(network, &flow, &tcp)?;
        let round_trip = round_trip(&flow, &tcp, tcp.payload);
        let workload = &network.scenario().traffic[traffic].workload;
        let (packet, amount) = (tcp.payload + tcp.header, shaper::amount(workload));
        shaper::covers(network, &flow.route.there, packet, amount)?;
        let write = write.or_else(|| writes_of(workload).first().copied()).unwrap_or(1);
        let cost =
            |segment| demands(&flow, &tcp, Written { write, segment, store: writes(workload).1 });
        let sizes = write.min(u64::from(tcp.payload))..=u64::from(tcp.payload);
        let (alone, demands) = gathered(Resource::Processor(flow.there.from.1), sizes, cost);
        let full = cost(u64::from(tcp.payload));
        let segment = segment_cost(tcp.payload, &full, &cost((tcp.payload / 2).max(1).into()));
        let gathers_when_full = demands == full;
        let bytes = u64::from(tcp.payload) * TOGETHER;
        let longest = |demands: &BTreeMap<Resource, Span>| demands.values().max().copied();
        let ungathered = longest(&alone)
            .filter(|&alone| longest(&demands).is_some_and(|gathered| gathered < alone))
            .map(|alone| Throughput::over(bytes, alone));
        let (bytes, _) = amount;
        Ok(Greedy {
            flow,
            tcp,
            write,
            bytes,
            round_trip,
            loss,
            unheard,
            demands,
            gathers_when_full,
            segment,
            ungathered,
        })
    }

    /// From the beginning of a segment of `data` user bytes to its ACK, on an empty path.
    pub fn round_trip_of(&self, data: u32) -> Span {
        round_trip(&self.flow, &self.tcp, data)
    }

    /// What may be under way, in packets of which size.
    pub fn under_way(&self) -> medium::Window<'_> {
        let packet = self.tcp.payload + self.tcp.header;
        let bytes = self.tcp.window.min(self.bytes);
        let heeds_marks = self.tcp.heeds_marks;
        medium::Window { flow: &self.flow, bytes, packet, heeds_marks }
    }

    /// User bytes per second that window and losses of the path allow on an empty path, and that reach the other end.
    pub fn rate(&self) -> Throughput {
        let window = tcp::window_limit(self.tcp.window, self.round_trip, Span::ZERO);
        window.min(self.arrived(self.sway(Span::ZERO, 0.0).mean, Span::ZERO))
    }

    /// The part of `window` segments that reaches the other end in each round trip.
    pub fn arrived(&self, window: f64, queue: Span) -> Throughput {
        tcp::rate(window * (1.0 - self.loss), self.tcp.payload, self.round_trip + queue)
    }

    /// The steady state of the window if each packet waits `queue` and is lost with probability `congestion`
    /// besides the path's losses.
    pub fn sway(&self, queue: Span, congestion: f64) -> Sway {
        let round_trip = self.round_trip + queue;
        let loss = 1.0 - (1.0 - self.loss) * (1.0 - congestion);
        let most = self.tcp.segments();
        let Some(law) = self.law(round_trip) else { return Sway { mean: most, swing: 0.0 } };
        let repair = self.repair(round_trip, loss);
        let round = round_trip.as_secs_f64().max(1e-9);
        chance::sway(&Chance { law, loss, round, most, repair })
    }

    /// The repair of a loss at a round trip.
    pub fn repair(&self, round_trip: Span, loss: f64) -> Repair {
        let untold = chance::untold(loss, self.unheard);
        let timeout = self.tcp.timeout(round_trip).as_secs_f64() * tcp::doublings(untold);
        let Connection { telling, limited, acked, .. } = self.tcp;
        let (limited, acked) = (f64::from(limited), f64::from(acked));
        Repair { telling, limited, timeout, unheard: self.unheard, acked }
    }

    /// The law of its window at a round trip; BBR has none that losses move.
    pub fn law(&self, round_trip: Span) -> Option<Law> {
        let (gain, share) = (1.0 / f64::from(self.tcp.slowed_by()), self.tcp.share());
        let reno = Law { growth: Growth::Linear { gain, share }, ..Law::reno(1) };
        let seconds = round_trip.as_secs_f64();
        match self.tcp.law {
            Algorithm::Bbr => None,
            Algorithm::Reno => Some(Law { whole: self.tcp.whole, ..reno }),
            Algorithm::Cubic => Some(Law::cubic(self.tcp.whole)),
            Algorithm::ConstantRate => {
                let gain = gain * CONSTANT_RATE * seconds * seconds;
                Some(Law { growth: Growth::Linear { gain, share }, ..reno })
            }
        }
    }

    /// The demands on the stages, and the rate that window and losses of the path allow.
    pub fn claim(&self) -> Claim {
        let bytes = u64::from(self.tcp.payload) * TOGETHER;
        // BBR sends no less for its losses, so that they leave no room on a line that its window fills.
        let allowed = match self.tcp.law {
            Algorithm::Bbr => tcp::window_limit(self.tcp.window, self.round_trip, Span::ZERO),
            _ => self.rate(),
        };
        let own = match allowed {
            Throughput::UNLIMITED => Span::ZERO,
            rate => rate.time_for(bytes),
        };
        Claim { bytes, own, demands: self.demands.clone() }
    }

    /// The rate of user bytes at which it alone would keep a stage busy.
    pub fn capacity(&self, resource: Resource) -> Throughput {
        let demand = self.demands.get(&resource).copied().unwrap_or_default();
        Throughput::over(u64::from(self.tcp.payload) * TOGETHER, demand)
    }
}

fn round_trip(flow: &Flow<'_>, tcp: &Connection, data: u32) -> Span {
    let talk = &flow.there;
    talk.host_send(data)
        + talk.board_send(data)
        + talk.way.latency(&talk.speech.packets(data))
        + talk.host_receive(data)
        + talk.interrupts(data)
        + talk.acknowledging()
        + flow.back.way.latency(&[acknowledgement(tcp)])
}

pub(super) fn acknowledgement(tcp: &Connection) -> Packet {
    Packet::acknowledgement(tcp.header)
}

/// A way loses with 1 − Π(1 − p).
fn loss(network: &Network<'_>, way: &[Crossing]) -> f64 {
    let lines = way.iter().filter_map(|hop| line(network, hop));
    let arrives = lines.map(|line| match &line.spec.impairments.loss {
        LossModel::Bernoulli(chance) => 1.0 - chance.as_f64(),
        _ => 1.0,
    });
    1.0 - arrives.product::<f64>()
}

/// Fails if a connection heeds the marks of a line that marks all that waits longer than a threshold: any burst may then halve its
/// window.
pub(super) fn unmarked(
    network: &Network<'_>,
    flow: &Flow<'_>,
    tcp: &Connection,
) -> Result<(), String> {
    let mut lines = flow.route.there.iter().filter_map(|hop| line(network, hop));
    let marked = lines.find_map(|Line { link, reversed, spec }| {
        let above = spec.discipline.assumptions().marks.filter(|_| spec.rate.is_some())?;
        Some(format!(
            "marks of all that waits longer than {above} at {}",
            line_name(network, link, reversed)
        ))
    });
    marked.filter(|_| tcp.heeds_marks).map_or(Ok(()), Err)
}

/// User bytes of each system write, one size after the other.
pub(crate) fn writes_of(workload: &Workload) -> Vec<u64> {
    writes(workload).0.into_iter().map(|write| u64::from(write).max(1)).collect()
}

/// How an application's bytes become segments.
#[derive(Clone, Copy)]
struct Written {
    /// User bytes of a write.
    write: u64,
    /// User bytes of a segment.
    segment: u64,
    /// What the receiving application spends on each write.
    store: Span,
}

/// The time for which the user bytes of [`TOGETHER`] full segments keep each stage busy in segments of so many: their
/// part of the application's writes, of handing these over, of storing them and of ACKs included.
fn demands(flow: &Flow<'_>, tcp: &Connection, written: Written) -> BTreeMap<Resource, Span> {
    let Written { write, segment, store } = written;
    let mut demands =
        flow.there.demands_for(u32::try_from(segment).unwrap_or(tcp.payload), TOGETHER);
    for (resource, span) in
        flow.there.answer_demands(&flow.back.way, acknowledgement(tcp), TOGETHER)
    {
        *demands.entry(resource).or_default() += span.scaled(1, u64::from(tcp.acked_of(segment)));
    }
    let payload = u64::from(tcp.payload);
    demands.values_mut().for_each(|span| *span = span.scaled(payload, segment.max(1)));
    let talk = &flow.there;
    let writing = talk.writing(u32::try_from(write).unwrap_or(u32::MAX));
    for (host, cost) in [(talk.from.1, writing), (talk.to.1, store)] {
        *demands.entry(Resource::Processor(host)).or_default() +=
            cost.scaled(payload * TOGETHER, write);
    }
    demands.retain(|_, span| !span.is_zero());
    demands
}

/// What each segment costs the slowest stage besides its bytes, by the demands of full segments and of halves, of which there are
/// about twice as many.
fn segment_cost(
    payload: u32,
    full: &BTreeMap<Resource, Span>,
    halves: &BTreeMap<Resource, Span>,
) -> Span {
    let Some((slowest, &span)) = full.iter().max_by_key(|&(_, span)| span) else {
        return Span::ZERO;
    };
    let more = halves.get(slowest).map_or(Span::ZERO, |halves| halves.saturating_sub(span));
    let half = u64::from(payload / 2).max(1);
    more.scaled(half, TOGETHER * (u64::from(payload) - half).max(1))
}

/// The demands of segments that hold one write each, the least of `sizes`, and of the segments that are sent. If the
/// `writer` is slower than all else, these are the same: it finds the network empty again. Else a segment takes what has
/// been written while another stage carried the one before, up to the most, so that both are always busy.
fn gathered(
    writer: Resource,
    sizes: RangeInclusive<u64>,
    cost: impl Fn(u64) -> BTreeMap<Resource, Span>,
) -> (BTreeMap<Resource, Span>, BTreeMap<Resource, Span>) {
    let waits = |size: u64| {
        let demands = cost(size);
        let own = demands.get(&writer).copied().unwrap_or_default().as_nanos() as f64;
        let others = demands.iter().filter(|&(&resource, _)| resource != writer);
        let others = others.map(|(_, span)| span.as_nanos()).max().unwrap_or(0) as f64;
        (others - own, demands)
    };
    let (mut low, mut high) = (*sizes.start(), *sizes.end());
    let (ahead, alone) = waits(low);
    if ahead <= 0.0 {
        return (alone.clone(), alone);
    }
    let (behind, full) = waits(high);
    if behind >= 0.0 {
        return (alone, full);
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if waits(middle).0 > 0.0 { low = middle } else { high = middle }
    }
    let ((more, small), (less, large)) = (waits(low), waits(high));
    let share = more / (more - less);
    let between = |(&resource, &span): (&Resource, &Span)| {
        let to = large.get(&resource).copied().unwrap_or_default().as_nanos() as f64;
        let from = span.as_nanos() as f64;
        (resource, Span::from_nanos((from + share * (to - from)) as u64))
    };
    (alone, small.iter().map(between).collect())
}
