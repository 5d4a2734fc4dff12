//! What an end speaks: URP, or nothing but datagrams.

use super::flying::Carried;
use crate::SimError;
use std::collections::VecDeque;
use trunkline_core::Time;
use trunkline_scenario::{Echo, Transport, UDP_HEADER, UrpSettings};
use trunkline_transport::Extent;
use trunkline_transport::urp::{self, Block, Control, Part, Profile, Segment, Settings, Urp};

/// An end's protocol.
#[derive(Debug)]
pub(crate) enum Speaker {
    /// The Universal Receiver Protocol.
    Urp { urp: Box<Urp<Extent>> },
    /// Datagrams that wait to be sent.
    Datagram { waiting: VecDeque<Datagram>, bytes: u64, sent: u64, header: u32 },
}

/// A datagram to be sent.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub bytes: u32,
    /// Bytes of header before them.
    pub header: u32,
    /// Since when it could be sent.
    pub ready: Time,
    /// What it brings to its reader.
    pub carried: Option<Carried>,
}

/// Something on its way out.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// A block of data.
    Block(Block<Extent>),
    /// A control octet.
    Control(Control),
    /// A datagram.
    Datagram(Datagram),
}

impl Outgoing {
    /// How many envelopes it takes.
    pub fn envelopes(&self) -> u64 {
        match self {
            Outgoing::Block(block) => u64::from(block.data.len) + 4,
            Outgoing::Control(_) => 1,
            Outgoing::Datagram(datagram) => u64::from(datagram.bytes + datagram.header),
        }
    }
}

/// What the peer gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivered {
    /// Which stretch of the stream.
    pub data: Extent,
    /// Does a message end here?
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
        let wrong = |reason: String| SimError::Transport { traffic: traffic.into(), reason };
        let settings = match transport {
            Transport::Urp(settings) => settings,
            Transport::Datagram => return Ok((Speaker::datagrams(0), 0)),
            Transport::Udp => return Ok((Speaker::datagrams(UDP_HEADER), 0)),
            Transport::Tcp(_) => return Err(wrong("the simulator does not speak TCP".into())),
        };
        let urp = urp_settings(settings, echo).map_err(wrong)?;
        let urp = Urp::connected(Time::ZERO, urp).map_err(|error| wrong(error.to_string()))?;
        Ok((Speaker::Urp { urp: Box::new(urp) }, settings.packet))
    }

    fn datagrams(header: u32) -> Speaker {
        Speaker::Datagram { waiting: VecDeque::new(), bytes: 0, sent: 0, header }
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

    /// Into how many blocks a request of so many bytes is cut.
    pub fn blocks_of(&self, bytes: u32, end: bool) -> u64 {
        match self {
            Speaker::Urp { .. } if bytes == 0 => u64::from(end),
            Speaker::Urp { urp } => u64::from(bytes.div_ceil(urp.settings().block.into())),
            Speaker::Datagram { .. } => 1,
        }
    }

    /// How many blocks, in order, have been answered for. Datagrams need no answer.
    pub fn answered_blocks(&self) -> u64 {
        match self {
            Speaker::Urp { urp } => urp.counters().sending.blocks - urp.outstanding() as u64,
            Speaker::Datagram { sent, .. } => *sent,
        }
    }

    /// Hands over a request. Returns what a message brings to its reader, where this end does not send it
    /// along with the data.
    pub fn offer(
        &mut self,
        now: Time,
        data: Extent,
        end: bool,
        carried: Option<Carried>,
    ) -> Option<Carried> {
        match self {
            Speaker::Urp { urp } => {
                urp.offer(now, data, end);
                carried
            }
            Speaker::Datagram { waiting, bytes, header, .. } => {
                *bytes += u64::from(data.len);
                let header = *header;
                waiting.push_back(Datagram { bytes: data.len, header, ready: now, carried });
                None
            }
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
            Speaker::Datagram { waiting, bytes, sent, .. } => {
                let datagram = waiting.pop_front()?;
                *bytes -= u64::from(datagram.bytes);
                *sent += 1;
                Some(Outgoing::Datagram(datagram))
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
        urp.take().map(|delivery| Delivered { data: delivery.data, end: delivery.end })
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

    /// Bytes handed over and not yet sent for the first time.
    pub fn unsent(&self) -> u64 {
        match self {
            Speaker::Urp { urp } => urp.unsent(),
            Speaker::Datagram { bytes, .. } => *bytes,
        }
    }

    /// Does it speak URP?
    pub fn is_urp(&self) -> bool {
        matches!(self, Speaker::Urp { .. })
    }

    /// Has the other end left so many enquiries unanswered that it counts as dead?
    pub fn dead(&self) -> bool {
        matches!(self, Speaker::Urp { urp } if urp.dead())
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
