//! What an end speaks: URP, or nothing but datagrams.

use crate::SimError;
use std::collections::VecDeque;
use trunkline_core::Time;
use trunkline_scenario::{Echo, Transport, UrpSettings};
use trunkline_transport::Extent;
use trunkline_transport::urp::{self, Block, Control, Part, Profile, Segment, Settings, Urp};

/// An end's protocol.
#[derive(Debug)]
pub(crate) enum Speaker {
    /// The Universal Receiver Protocol.
    Urp { urp: Box<Urp<Extent>> },
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
    /// The protocol that `transport` describes, its channel set up, and how many envelopes its packets
    /// hold. `echo` is the habit of the host's interface.
    pub fn new(
        transport: &Transport,
        echo: Echo,
        traffic: &str,
    ) -> Result<(Speaker, u32), SimError> {
        let Transport::Urp(settings) = transport else {
            return Ok((Speaker::Datagram { waiting: VecDeque::new() }, 0));
        };
        let wrong = |reason: String| SimError::Transport { traffic: traffic.into(), reason };
        let urp = urp_settings(settings, echo).map_err(wrong)?;
        let urp = Urp::connected(Time::ZERO, urp).map_err(|error| wrong(error.to_string()))?;
        Ok((Speaker::Urp { urp: Box::new(urp) }, settings.packet))
    }

    /// Blocks sent again, and time-outs.
    pub fn counters(&self) -> (u64, u64) {
        match self {
            Speaker::Urp { urp } => {
                let sending = urp.counters().sending;
                (sending.resent, sending.timeouts)
            }
            Speaker::Datagram { .. } => (0, 0),
        }
    }

    /// Bytes sent and not answered for.
    pub fn unechoed(&self) -> u64 {
        match self {
            Speaker::Urp { urp } => urp.unechoed(),
            Speaker::Datagram { .. } => 0,
        }
    }

    /// The host has taken so many bytes more.
    pub fn consumed(&mut self, now: Time, bytes: u32) {
        if let Speaker::Urp { urp } = self {
            urp.consumed(now, u64::from(bytes));
        }
    }

    /// Hands over a request.
    pub fn offer(&mut self, now: Time, data: Extent, end: bool) {
        match self {
            Speaker::Urp { urp } => urp.offer(now, data, end),
            Speaker::Datagram { waiting } => waiting.push_back((data.len, now)),
        }
    }

    /// The next thing to be sent.
    pub fn transmit(&mut self, now: Time) -> Option<Outgoing> {
        match self {
            Speaker::Urp { urp } => urp.transmit(now).and_then(|segment| match segment {
                Segment::Block(block) => Some(Outgoing::Block(block)),
                Segment::Control(control) => Some(Outgoing::Control(control)),
                // Only character mode sends these, which no scenario asks for.
                Segment::Characters(_) => None,
            }),
            Speaker::Datagram { waiting } => {
                let (bytes, ready) = waiting.pop_front()?;
                Some(Outgoing::Datagram { bytes, ready })
            }
        }
    }

    /// A packet has been taken in.
    pub fn receive(&mut self, now: Time, part: Part<Extent>) {
        if let Speaker::Urp { urp } = self {
            urp.receive(now, part);
        }
    }

    /// The next accepted data.
    pub fn take(&mut self) -> Option<Delivered> {
        let Speaker::Urp { urp } = self else { return None };
        urp.take().map(|delivery| Delivered { bytes: delivery.data.len, end: delivery.end })
    }

    /// When [`expire`](Speaker::expire) has to be called.
    pub fn deadline(&self) -> Option<Time> {
        match self {
            Speaker::Urp { urp } => urp.deadline(),
            Speaker::Datagram { .. } => None,
        }
    }

    /// The deadline has come.
    pub fn expire(&mut self, now: Time) {
        if let Speaker::Urp { urp } = self {
            urp.expire(now);
        }
    }

    /// Has everything handed over been answered for?
    pub fn idle(&self) -> bool {
        match self {
            Speaker::Urp { urp } => urp.idle(),
            Speaker::Datagram { waiting } => waiting.is_empty(),
        }
    }

    /// Bytes handed over and not yet sent for the first time.
    pub fn unsent(&self) -> u64 {
        match self {
            Speaker::Urp { urp } => urp.unsent(),
            Speaker::Datagram { waiting } => waiting.iter().map(|&(n, _)| u64::from(n)).sum(),
        }
    }

    /// Are there data that the window holds back?
    pub fn blocked(&self) -> bool {
        matches!(self, Speaker::Urp { urp } if urp.blocked())
    }

    /// Is something lost being waited for or sent again?
    pub fn recovering(&self) -> bool {
        matches!(self, Speaker::Urp { urp } if urp.recovering())
    }
}

fn urp_settings(settings: &UrpSettings, echo: Echo) -> Result<Settings, String> {
    let profile: Profile = settings.profile.parse().map_err(|error| format!("{error}"))?;
    let echo = match echo {
        Echo::Arrival => urp::Echo::Acceptance,
        Echo::Posted | Echo::Consumption => urp::Echo::Consumption,
    };
    Ok(Settings {
        block: settings.block,
        outstanding: settings.outstanding,
        timeout: settings.timeout,
        echo,
        ..Settings::of(profile)
    })
}
