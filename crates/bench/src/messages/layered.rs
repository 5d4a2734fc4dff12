//! Messages over a message layer, by the calls of an endpoint.

use super::ends::{Args, BUFFERS, Way, poll};
use anyhow::Result;
use bytes::Bytes;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use trunkline_core::{Probability, Seed, Span};
use trunkline_nodes::{Carrier, Endpoint, Plan};
use trunkline_transport::cstar::{
    Careful, CarefulSettings, Cluster, Destination, EventId, Flags, Fragment, Layer, NodeId,
    Source, Traditional, TraditionalSettings,
};

/// How long an end waits for the other.
const PATIENCE: Duration = Duration::from_secs(30);

/// An endpoint, the other end, and what a message has.
pub struct Layered<'a, L> {
    endpoint: Endpoint<'a, L>,
    other: NodeId,
    data: Bytes,
}

type Laps = Vec<(u64, u64)>;

/// Lets an end exchange messages of these octets over the careful layer, with the audits that nodes have by default.
pub fn careful(
    args: &Args,
    carrier: Carrier,
    exchange: impl FnOnce(Layered<'_, Careful>) -> Result<Laps>,
    data: Bytes,
) -> Result<Laps> {
    let audit = Some(Span::from_millis(200));
    let settings = CarefulSettings { audit, ..CarefulSettings::default() };
    over(args, carrier, Careful::new(NodeId(args.me), &cluster(args), &settings)?, exchange, data)
}

/// The same over the traditional layer.
pub fn traditional(
    args: &Args,
    carrier: Carrier,
    exchange: impl FnOnce(Layered<'_, Traditional>) -> Result<Laps>,
    data: Bytes,
) -> Result<Laps> {
    let settings = TraditionalSettings::default();
    let layer = Traditional::new(NodeId(args.me), &cluster(args), &settings)?;
    over(args, carrier, layer, exchange, data)
}

fn cluster(args: &Args) -> Cluster {
    let frame = args.bytes.max(1);
    Cluster { nodes: 2, receive_buffers: BUFFERS, send_buffers: BUFFERS, frame }
}

fn over<L: Layer>(
    args: &Args,
    carrier: Carrier,
    layer: L,
    exchange: impl FnOnce(Layered<'_, L>) -> Result<Laps>,
    data: Bytes,
) -> Result<Laps> {
    let plan = Plan {
        me: NodeId(args.me),
        drop: Probability::NEVER,
        seed: Seed(1),
        poll: poll(args),
        patience: PATIENCE,
        silence: PATIENCE,
    };
    let stop = AtomicBool::new(false);
    let endpoint = Endpoint::meet(&plan, layer, carrier, &stop)?;
    exchange(Layered { endpoint, other: NodeId(1 - args.me), data })
}

impl<L: Layer> Layered<'_, L> {
    fn message(&self, number: u32) -> Fragment {
        let to = Destination::Node(self.other);
        let flags = Flags { last: true, crowd: false, large: false };
        let (event, data) = (EventId(number), self.data.clone());
        Fragment { to, event, flags, following: 0, data }
    }
}

impl<L: Layer> Way for Layered<'_, L> {
    fn send(&mut self, number: u32) -> Result<()> {
        Ok(self.endpoint.send(self.message(number))?)
    }

    fn receive(&mut self, number: u32) -> Result<Bytes> {
        Ok(self.endpoint.receive(Source::Node(self.other), EventId(number))?.data)
    }

    /// The layer's windows keep any from being dropped.
    fn stream(&mut self, count: u32) -> Result<()> {
        (0..count).try_for_each(|number| self.endpoint.queue(self.message(number)))?;
        self.receive(count).map(drop)
    }

    fn drain(&mut self, count: u32, check: &dyn Fn(&[u8]) -> Result<()>) -> Result<()> {
        (0..count).try_for_each(|number| check(&self.receive(number)?))?;
        self.send(count)
    }
}
