//! What an end speaks: URP, or nothing but datagrams.

use std::collections::VecDeque;
use trunkline_core::Time;
use trunkline_transport::urp::{Block, Control, Part, Segment, Urp};
use trunkline_transport::{Endpoint, Extent};

/// An end's protocol.
#[derive(Debug)]
pub(crate) enum Speaker {
    /// The Universal Receiver Protocol; `packet` envelopes in each network packet.
    Urp { urp: Box<Urp<Extent>>, packet: u32 },
    /// Datagrams: what waits to be sent, by size, and when it came.
    Datagram { waiting: VecDeque<(u32, Time)> },
}

/// Something on its way out.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// A block of data.
    Block(Block<Extent>),
    /// A control octet.
    Control(Control),
    /// A datagram of so many bytes that was ready at an instant.
    Datagram { bytes: u32, ready: Time },
}

/// What the peer gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivered {
    pub bytes: u32,
    pub end: bool,
}

impl Speaker {
    /// Hands over a request.
    pub fn offer(&mut self, now: Time, data: Extent, end: bool) {
        match self {
            Speaker::Urp { urp, .. } => urp.offer(now, data, end),
            Speaker::Datagram { waiting } => waiting.push_back((data.len, now)),
        }
    }

    /// The next thing to be sent.
    pub fn transmit(&mut self, now: Time) -> Option<Outgoing> {
        match self {
            Speaker::Urp { urp, .. } => urp.transmit(now).map(|segment| match segment {
                Segment::Block(block) => Outgoing::Block(block),
                Segment::Control(control) => Outgoing::Control(control),
            }),
            Speaker::Datagram { waiting } => {
                let (bytes, ready) = waiting.pop_front()?;
                Some(Outgoing::Datagram { bytes, ready })
            }
        }
    }

    /// A packet has been taken in.
    pub fn receive(&mut self, now: Time, part: Part<Extent>) {
        if let Speaker::Urp { urp, .. } = self {
            urp.receive(now, part);
        }
    }

    /// The next accepted data.
    pub fn take(&mut self) -> Option<Delivered> {
        let Speaker::Urp { urp, .. } = self else { return None };
        urp.take().map(|delivery| Delivered { bytes: delivery.data.len, end: delivery.end })
    }

    /// When [`expire`](Speaker::expire) has to be called.
    pub fn deadline(&self) -> Option<Time> {
        match self {
            Speaker::Urp { urp, .. } => urp.deadline(),
            Speaker::Datagram { .. } => None,
        }
    }

    /// The deadline has come.
    pub fn expire(&mut self, now: Time) {
        if let Speaker::Urp { urp, .. } = self {
            urp.expire(now);
        }
    }

    /// Has everything handed over been answered for?
    pub fn idle(&self) -> bool {
        match self {
            Speaker::Urp { urp, .. } => urp.idle(),
            Speaker::Datagram { waiting } => waiting.is_empty(),
        }
    }

    /// Bytes handed over and not yet sent for the first time.
    pub fn unsent(&self) -> u64 {
        match self {
            Speaker::Urp { urp, .. } => urp.unsent(),
            Speaker::Datagram { waiting } => waiting.iter().map(|&(n, _)| u64::from(n)).sum(),
        }
    }

    /// Are there data that the window holds back?
    pub fn blocked(&self) -> bool {
        matches!(self, Speaker::Urp { urp, .. } if urp.blocked())
    }

    /// Is something lost being waited for or sent again?
    pub fn recovering(&self) -> bool {
        matches!(self, Speaker::Urp { urp, .. } if urp.recovering())
    }
}
