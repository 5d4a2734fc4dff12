//! The protocols that an end can speak.

mod capsules;
mod tcp;

use capsules::Capsules;
use tcp::Tcp;

use crate::EndpointError;
use crate::clock;
use crate::context::Context;
use crate::plan::{EndPlan, FlowPlan};
use crate::run::ProtocolReport;
use crate::shared::Carried;
use crate::wire::Wire;
use std::os::fd::{AsFd, BorrowedFd};
use trunkline_core::Time;
use trunkline_host::urp_settings;
use trunkline_host::wire::{DatagramWire, FrameWire, UrpWire, Wired};
use trunkline_measure::Waiting;
use trunkline_scenario::{Transport, UDP_HEADER};
use trunkline_transport::protocol::Unfit;

/// One system write.
#[derive(Debug)]
pub(crate) struct Write {
    pub bytes: u32,
    /// Whether it ends a message.
    pub end: bool,
    /// The companions of a message for its reader.
    pub carried: Carried,
}

/// The result of a system read: all that was there, at most to the end of a message.
#[derive(Debug)]
pub(crate) struct Taken {
    pub bytes: u32,
    pub end: bool,
    /// The time at which the reader last found nothing, so that the bytes have come since; `None` if they have come
    /// just now.
    pub since: Option<Time>,
    /// The companions of the message that ends there. `None` if a copy has brought it whose original, with
    /// the records, is lost or was read before.
    pub carried: Option<Carried>,
}

/// An end's protocol on its socket.
#[derive(Debug)]
pub(crate) enum ProtocolEnd {
    /// One of this laboratory's own, in capsules.
    Capsules(Box<Capsules>),
    /// The kernel's TCP.
    Tcp(Box<Tcp>),
}

impl ProtocolEnd {
    /// Both ends of each flow, ready to start, in the order of the plans.
    pub fn pairs(plans: &[&FlowPlan]) -> Result<Vec<[ProtocolEnd; 2]>, EndpointError> {
        let pairs: Result<Vec<_>, _> = plans.iter().map(|plan| ProtocolEnd::pair(plan)).collect();
        let mut pairs = pairs?;
        let tcp: Vec<&FlowPlan> = std::iter::zip(plans, &pairs)
            .filter(|(_, pair)| pair.is_none())
            .map(|(&plan, _)| plan)
            .collect();
        let connected = Tcp::pairs(&tcp)?;
        for (place, pair) in pairs.iter_mut().filter(|pair| pair.is_none()).zip(connected) {
            *place = Some(pair.map(|tcp| ProtocolEnd::Tcp(Box::new(tcp))));
        }
        Ok(pairs.into_iter().flatten().collect())
    }

    /// Both ends; `None` if they are to be connected first.
    fn pair(plan: &FlowPlan) -> Result<Option<[ProtocolEnd; 2]>, EndpointError> {
        let (source, destination) = (&plan.source, &plan.destination);
        let (ours, theirs) = (&source.transport, &destination.transport);
        if !ours.understands(theirs) {
            return Err(mixed(ours, theirs));
        }
        if ours.is_stream() {
            return Ok(None);
        }
        let [near, far] = Wire::pair(plan)?;
        let end = |wire, own: &EndPlan, other: &EndPlan| {
            let protocol = wired(own, &other.transport)?;
            let capsules = Capsules::new(wire, protocol, &own.interface);
            Ok::<_, EndpointError>(ProtocolEnd::Capsules(Box::new(capsules)))
        };
        Ok(Some([end(near, source, destination)?, end(far, destination, source)?]))
    }

    /// Takes a system write.
    pub fn write(&mut self, now: Time, write: Write, context: &Context) {
        match self {
            ProtocolEnd::Capsules(end) => end.write(now, write, context),
            ProtocolEnd::Tcp(end) => end.write(write, context),
        }
    }

    /// Whether the write may return.
    pub fn written(&self) -> bool {
        match self {
            ProtocolEnd::Capsules(end) => end.written(),
            ProtocolEnd::Tcp(end) => end.written(),
        }
    }

    /// Moves everything that can move, in both directions.
    pub fn pump(&mut self, now: Time, context: &Context) {
        match self {
            ProtocolEnd::Capsules(end) => end.pump(now, context),
            ProtocolEnd::Tcp(end) => end.pump(),
        }
    }

    /// A system read, if there is anything to be read.
    pub fn take(&mut self, now: Time, context: &Context) -> Option<Taken> {
        match self {
            ProtocolEnd::Capsules(end) => end.take(now, context),
            ProtocolEnd::Tcp(end) => end.take(now, context),
        }
    }

    /// Sends nothing more, whatever is left to be sent.
    pub fn cut_off(&mut self) {
        match self {
            ProtocolEnd::Capsules(end) => end.cut_off(),
            ProtocolEnd::Tcp(end) => end.cut_off(),
        }
    }

    /// When it wants to be pumped at the latest.
    pub fn deadline(&self) -> Option<Time> {
        match self {
            ProtocolEnd::Capsules(end) => end.deadline(),
            ProtocolEnd::Tcp(_) => None,
        }
    }

    /// Whether it waits for its socket to be readable, while the application reads or not, and writable.
    pub fn interest(&self, reading: bool) -> (bool, bool) {
        match self {
            ProtocolEnd::Capsules(end) => (true, end.blocked()),
            ProtocolEnd::Tcp(end) => (reading && !end.closed(), end.blocked()),
        }
    }

    /// The reason why what was written is not on its way; `None` if there is none.
    pub fn waiting(&self, now: Time) -> Option<Waiting> {
        match self {
            ProtocolEnd::Capsules(end) => end.waiting(now),
            ProtocolEnd::Tcp(end) => (!end.written()).then_some(Waiting::Window),
        }
    }

    /// Whether the other end counts as dead.
    pub fn dead(&self) -> bool {
        match self {
            ProtocolEnd::Capsules(end) => end.dead(),
            ProtocolEnd::Tcp(end) => end.closed(),
        }
    }

    /// The counts of the protocol, at the end.
    pub fn report(&mut self) -> ProtocolReport {
        match self {
            ProtocolEnd::Capsules(end) => end.report(),
            ProtocolEnd::Tcp(end) => end.report(),
        }
    }
}

impl AsFd for ProtocolEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            ProtocolEnd::Capsules(end) => end.as_fd(),
            ProtocolEnd::Tcp(end) => end.as_fd(),
        }
    }
}

/// The protocol of an end whose peer speaks `theirs`, with its codec.
fn wired(own: &EndPlan, theirs: &Transport) -> Result<Box<dyn Wired>, EndpointError> {
    let header = |transport: &Transport| match transport {
        Transport::Udp => UDP_HEADER,
        _ => 0,
    };
    Ok(match &own.transport {
        Transport::Urp(urp) => {
            let settings =
                urp_settings(urp, own.interface.echo).map_err(EndpointError::Transport)?;
            let end = UrpWire::new(clock::now(), settings, urp.packet);
            let end = end.map_err(|error| EndpointError::Transport(error.to_string()))?;
            Box::new(if let Transport::Urp(theirs) = theirs {
                end.hearing(theirs.mode)
            } else {
                end
            })
        }
        Transport::Listed(listed) => {
            let protocol = (listed.entry.build)(&listed.values);
            let wrong = |unfit: Unfit| EndpointError::Transport(unfit.to_string());
            Box::new(FrameWire::new(protocol.map_err(wrong)?))
        }
        Transport::Datagram | Transport::Udp | Transport::Tcp(_) => {
            Box::new(DatagramWire::new(header(&own.transport), header(theirs)))
        }
    })
}

fn mixed(ours: &Transport, theirs: &Transport) -> EndpointError {
    let (ours, theirs) = (ours.name(), theirs.name());
    EndpointError::Transport(format!(
        "real ends cannot speak {ours} one way and {theirs} the other: \
         give transport and reply_transport one kind"
    ))
}
