//! The limit: datagrams over the same socket and by the same calls as a node's frames, without a message layer.

use super::ends::{Args, Way, poll};
use anyhow::{Context, Result, bail};
use bytes::{Buf, Bytes};
use std::time::{Duration, Instant};
use trunkline_nodes::Carrier;
use trunkline_transport::cstar::{Destination, EventId, Flags, Frame, Kind, NodeId};

/// Datagrams of a stream that are under way at most, and after how many an answer goes back.
pub const WINDOW: u32 = 64;
pub const EVERY: u32 = 32;
/// How long an end waits for what must come.
const PATIENCE: Duration = Duration::from_secs(10);
/// Octets of a header, which stand before the payload.
const HEADER: usize = Frame::HEADER as usize;

/// Datagrams to and from the other end.
pub struct Datagrams {
    carrier: Carrier,
    other: NodeId,
    octets: Vec<u8>,
    poll: Duration,
}

impl Datagrams {
    /// The way of an end whose messages have these octets.
    pub fn new(args: &Args, carrier: Carrier, data: &[u8]) -> Datagrams {
        let octets = datagram(data);
        Datagrams { carrier, other: NodeId(1 - args.me), octets, poll: poll(args) }
    }

    /// The next datagram, looked for without sleeping at first. An end that does not look so waits in the call that takes it,
    /// and reads no clock.
    fn datagram(&mut self) -> Result<Bytes> {
        if self.poll.is_zero()
            && let Some(octets) = self.carrier.await_next()?
        {
            return Ok(octets);
        }
        if let Some(octets) = self.carrier.receive(Duration::ZERO)? {
            return Ok(octets);
        }
        let begin = Instant::now();
        while begin.elapsed() < self.poll {
            if let Some(octets) = self.carrier.receive(Duration::ZERO)? {
                return Ok(octets);
            }
        }
        while begin.elapsed() < PATIENCE {
            if let Some(octets) = self.carrier.receive(PATIENCE)? {
                return Ok(octets);
            }
        }
        bail!("no datagram has come for {} s", PATIENCE.as_secs())
    }

    fn datagram_to_other(&mut self, octets: usize) -> Result<()> {
        let octets = self.octets.get(..octets).context("no header")?;
        Ok(self.carrier.send_to(self.other, octets)?)
    }
}

/// A datagram with these octets: a frame's header that says how many stand before them.
fn datagram(data: &[u8]) -> Vec<u8> {
    let frame = Frame {
        kind: Kind::Careful,
        flags: Flags { last: true, crowd: false, large: false },
        wants_ack: false,
        again: false,
        from: NodeId(0),
        to: Destination::Node(NodeId(1)),
        event: EventId(0),
        fragment: 0,
        grant: 0,
        back: 0,
        complete: EventId(0),
        asks: 0,
        route: None,
        counter: 0,
        data: Bytes::copy_from_slice(data),
        list: Vec::new(),
    };
    [&frame.header()[..], data].concat()
}

impl Way for Datagrams {
    fn send(&mut self, _: u32) -> Result<()> {
        Ok(self.carrier.send_to(self.other, &self.octets)?)
    }

    fn receive(&mut self, _: u32) -> Result<Bytes> {
        let mut octets = self.datagram()?;
        anyhow::ensure!(octets.len() >= HEADER, "a datagram of {} octets", octets.len());
        octets.advance(HEADER);
        Ok(octets)
    }

    /// So many answers come that none is dropped.
    fn stream(&mut self, count: u32) -> Result<()> {
        let mut answered = 0;
        for sent in 0..count {
            while sent - answered >= WINDOW {
                self.datagram()?;
                answered += EVERY;
            }
            self.send(sent)?;
        }
        while answered < count {
            self.datagram()?;
            answered += EVERY;
        }
        Ok(())
    }

    fn drain(&mut self, count: u32, check: &dyn Fn(&[u8]) -> Result<()>) -> Result<()> {
        for number in 1..=count {
            let octets = self.datagram()?;
            check(octets.get(HEADER..).context("a short datagram")?)?;
            if number.is_multiple_of(EVERY) || number == count {
                self.datagram_to_other(HEADER)?;
            }
        }
        Ok(())
    }
}
