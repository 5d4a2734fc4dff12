//! Messages over a message layer, by the calls of an endpoint.

use super::bare::{EVERY, WINDOW};
use super::ends::{Args, BUFFERS, Way, poll};
use anyhow::Result;
use bytes::Bytes;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use trunkline_core::Span;
use trunkline_nodes::{Carrier, Endpoint, Plan};
use trunkline_transport::cstar::{
    Careful, CarefulSettings, Cluster, Destination, EventId, Flags, Fragment, Layer, NodeId,
    Source, Traditional, TraditionalSettings,
};

/// How long an end waits for the other.
const PATIENCE: Duration = Duration::from_secs(30);

/// An endpoint, the other end, and what a message has.
pub struct Layered<'a, L: Layer> {
    endpoint: Endpoint<'a, L>,
    other: NodeId,
    /// What is sent, each time under another event.
    message: Fragment,
    /// Whether a stream is answered so that the sender does not get too far ahead: a traditional layer has no windows, and
    /// would refuse and repeat for ever. A careful one's windows do that.
    paced: bool,
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
    let paced = |way: Layered<'_, Traditional>| exchange(Layered { paced: true, ..way });
    over(args, carrier, layer, paced, data)
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
    let plan = Plan { poll: poll(args), patience: PATIENCE, ..Plan::new(NodeId(args.me)) };
    let stop = AtomicBool::new(false);
    let endpoint = Endpoint::meet(&plan, layer, carrier, &stop)?;
    let other = NodeId(1 - args.me);
    let (to, flags) = (Destination::Node(other), Flags { last: true, crowd: false, large: false });
    let message = Fragment { to, event: EventId(0), flags, following: 0, data };
    exchange(Layered { endpoint, other, message, paced: false })
}

impl<L: Layer> Way for Layered<'_, L> {
    fn send(&mut self, number: u32) -> Result<()> {
        self.message.event = EventId(number);
        Ok(self.endpoint.send(&self.message)?)
    }

    fn receive(&mut self, number: u32) -> Result<Bytes> {
        Ok(self.endpoint.receive(Source::Node(self.other), EventId(number))?.data)
    }

    fn stream(&mut self, count: u32) -> Result<()> {
        let mut answered = 0;
        for number in 0..count {
            while self.paced && number - answered >= WINDOW {
                self.receive(answered + EVERY - 1)?;
                answered += EVERY;
            }
            self.message.event = EventId(number);
            self.endpoint.queue(self.message.clone())?;
        }
        while self.paced && answered + EVERY <= count {
            self.receive(answered + EVERY - 1)?;
            answered += EVERY;
        }
        self.receive(count).map(drop)
    }

    fn drain(&mut self, count: u32, check: &dyn Fn(&[u8]) -> Result<()>) -> Result<()> {
        for number in 0..count {
            check(&self.receive(number)?)?;
            if self.paced && (number + 1).is_multiple_of(EVERY) {
                self.send(number)?;
            }
        }
        self.send(count)
    }
}
