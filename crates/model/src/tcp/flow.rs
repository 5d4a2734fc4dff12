//! A connection on its way: round trip, losses, and the rate that these allow it.

use super::connection::{Connection, Law};
use crate::flow::Flow;
use crate::formula::tcp::{self, Pftk};
use crate::share::Claim;
use crate::speech::Packet;
use crate::throughput::Throughput;
use crate::way::{Resource, spec};
use std::collections::BTreeMap;
use trunkline_core::Span;
use trunkline_path::impairment::LossModel;
use trunkline_scenario::{Scenario, Transport};

/// c of the constant-rate policy in segments per second squared: with it a connection of 100 ms grows as
/// TCP does.
const CONSTANT_RATE: f64 = 100.0;
/// Segments for which a claim is made at once, so that nanoseconds are fine enough.
const TOGETHER: u64 = 64;
/// BBR keeps its rate at least up to such a loss (Cardwell et al. 2017, figure 8: 15 %).
const BBR_BEARS: f64 = 0.15;

/// A greedy connection.
#[derive(Debug, Clone)]
pub(crate) struct Greedy<'a> {
    pub flow: Flow<'a>,
    pub tcp: Connection,
    /// From the beginning of a full segment to its ACK, on an empty path.
    pub round_trip: Span,
    /// The probability that one of the path's lines loses a segment.
    pub loss: f64,
    /// What a full segment keeps each stage busy for, its share of an ACK included.
    pub demands: BTreeMap<Resource, Span>,
}

impl<'a> Greedy<'a> {
    /// Flow number `number` of a traffic that speaks TCP.
    ///
    /// # Errors
    /// Why no formula covers it.
    pub fn new(scenario: &'a Scenario, traffic: usize, number: u32) -> Result<Greedy<'a>, String> {
        let Transport::Tcp(settings) = &scenario.traffic[traffic].transport else {
            return Err("another transport than TCP".into());
        };
        let tcp = Connection::of(settings, scenario.mtu)?;
        let flow = Flow::new(scenario, traffic, number)?;
        flow.uncovered_but_loss(scenario).map_or(Ok(()), Err)?;
        let loss = loss(scenario, &flow);
        if tcp.law == Law::Bbr && loss > BBR_BEARS {
            return Err("BBR where more than 15 % is lost".into());
        }
        let round_trip = round_trip(&flow, &tcp);
        let demands = demands(&flow, &tcp);
        Ok(Greedy { flow, tcp, round_trip, loss, demands })
    }

    /// User bytes per second that reach the other end, where `queue` is waited for and a packet is lost with
    /// probability `loss`: by the window, and by the law of the connection.
    pub fn rate(&self, queue: Span, loss: f64) -> Throughput {
        let round_trip = self.round_trip + queue;
        let window = tcp::window_limit(self.tcp.window, round_trip, Span::ZERO);
        let sent = self.segments(round_trip, loss);
        let arrived = tcp::rate(sent * (1.0 - loss), self.tcp.payload, round_trip);
        window.min(arrived)
    }

    /// The same on a line that overflows for everybody: by the laws without time-outs, the losses being
    /// those that congestion avoidance makes itself; at most what window and path allow.
    pub fn rate_at(&self, queue: Span, congestion: f64) -> Throughput {
        let round_trip = self.round_trip + queue;
        let loss = 1.0 - (1.0 - self.loss) * (1.0 - congestion);
        let segments = match self.tcp.law {
            Law::Bbr => f64::INFINITY,
            Law::Reno => tcp::square_root_window(loss, self.tcp.slowed_by()),
            Law::Cubic => tcp::cubic_or_reno_window(round_trip, loss),
            Law::ConstantRate => self.constant_rate(round_trip, loss),
        };
        let by_law = tcp::rate(segments, self.tcp.payload, round_trip);
        by_law.min(self.rate(queue, self.loss))
    }

    /// √(3a / 2bp) with a = c·r².
    fn constant_rate(&self, round_trip: Span, loss: f64) -> f64 {
        let increase = libm::sqrt(CONSTANT_RATE) * round_trip.as_secs_f64();
        increase * tcp::square_root_window(loss, self.tcp.slowed_by())
    }

    /// The mean window, as far as losses limit it.
    fn segments(&self, round_trip: Span, loss: f64) -> f64 {
        let reno = || self.reno(round_trip, loss);
        match self.tcp.law {
            Law::Bbr => f64::INFINITY,
            Law::Reno => reno(),
            Law::Cubic => reno().max(tcp::cubic_window(round_trip, loss)),
            Law::ConstantRate => self.constant_rate(round_trip, loss),
        }
    }

    /// The mean window by the model of Padhye et al.; without loss there is none.
    fn reno(&self, round_trip: Span, loss: f64) -> f64 {
        let path = Pftk {
            loss,
            round_trip,
            timeout: self.tcp.min_rto.max(round_trip),
            acked: self.tcp.slowed_by(),
            window: self.tcp.segments(),
        };
        let rate = if loss > 0.0 { tcp::pftk(&path) } else { None };
        rate.map_or(f64::INFINITY, |rate| rate * round_trip.as_secs_f64())
    }

    /// What it asks of the stages, and the rate that window and losses of the path allow it.
    pub fn claim(&self) -> Claim {
        let bytes = u64::from(self.tcp.payload) * TOGETHER;
        let own = match self.rate(Span::ZERO, self.loss) {
            Throughput::UNLIMITED => Span::ZERO,
            rate => rate.time_for(bytes),
        };
        let scaled = |(&resource, span): (&Resource, &Span)| (resource, span.scaled(TOGETHER, 1));
        Claim { bytes, own, demands: self.demands.iter().map(scaled).collect() }
    }

    /// The rate of user bytes at which it alone would keep a stage busy.
    pub fn capacity(&self, resource: Resource) -> Throughput {
        let demand = self.demands.get(&resource).copied().unwrap_or_default();
        Throughput::over(u64::from(self.tcp.payload), demand)
    }
}

fn round_trip(flow: &Flow<'_>, tcp: &Connection) -> Span {
    let talk = &flow.there;
    let data = tcp.payload;
    talk.host_send(data)
        + talk.board_send(data)
        + talk.way.latency(&talk.speech.packets(data))
        + talk.host_receive(data)
        + talk.interrupts(data)
        + talk.acknowledging()
        + flow.back.way.latency(&[acknowledgement(tcp)])
}

fn acknowledgement(tcp: &Connection) -> Packet {
    Packet { bytes: tcp.header, controls: 0 }
}

/// The way there loses with 1 − Π(1 − p). ACKs lost on the way back cost nothing, the next ones say the
/// same.
fn loss(scenario: &Scenario, flow: &Flow<'_>) -> f64 {
    let arrives = flow.route.there.iter().map(|hop| match &spec(scenario, *hop).impairments.loss {
        LossModel::Bernoulli(chance) => 1.0 - chance.as_f64(),
        _ => 1.0,
    });
    1.0 - arrives.product::<f64>()
}

fn demands(flow: &Flow<'_>, tcp: &Connection) -> BTreeMap<Resource, Span> {
    let mut demands = flow.there.demands(tcp.payload);
    for stage in &flow.back.way.stages {
        let share = stage.busy(&[acknowledgement(tcp)]).scaled(1, u64::from(tcp.acked));
        if !share.is_zero() {
            *demands.entry(stage.resource).or_default() += share;
        }
    }
    demands
}
