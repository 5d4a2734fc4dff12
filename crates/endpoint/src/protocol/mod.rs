//! The protocols that an end can speak.

mod datagrams;
mod envelopes;
mod listed;
mod octets;
mod tcp;
mod urp;

pub(crate) use datagrams::Datagrams;
pub(crate) use listed::Listed;
pub use listed::PREFIX;
pub(crate) use tcp::Tcp;
pub(crate) use urp::Urp;

use crate::EndpointError;
use crate::context::Context;
use crate::plan::FlowPlan;
use crate::run::ProtocolReport;
use crate::shared::Carried;
use crate::wire::Wire;
use std::os::fd::{AsFd, BorrowedFd};
use trunkline_core::Time;
use trunkline_engine::{Note, NoteKind};
use trunkline_host::WAITING_BYTES;
use trunkline_measure::Waiting;
use trunkline_scenario::Transport;

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
    Datagrams(Box<Datagrams>),
    Urp(Box<Urp>),
    Tcp(Box<Tcp>),
    Listed(Box<Listed>),
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
        let [ours, theirs] = [&plan.source, &plan.destination].map(|end| &end.transport);
        match (header(ours), header(theirs)) {
            (Some(own), Some(other)) => {
                let [near, far] = Wire::pair(plan)?;
                let protocol = |wire, own, other| {
                    ProtocolEnd::Datagrams(Box::new(Datagrams::new(wire, own, other)))
                };
                return Ok(Some([protocol(near, own, other), protocol(far, other, own)]));
            }
            (None, None) => (),
            _ => return Err(mixed(ours, theirs)),
        }
        match (ours, theirs) {
            (Transport::Urp(own), Transport::Urp(other)) => {
                let [near, far] = Wire::pair(plan)?;
                let near = Urp::new(near, own, &plan.source.interface)?;
                let far = Urp::new(far, other, &plan.destination.interface)?;
                Ok(Some([near, far].map(|urp| ProtocolEnd::Urp(Box::new(urp)))))
            }
            (Transport::Tcp(_), Transport::Tcp(_)) => Ok(None),
            (Transport::Listed(own), Transport::Listed(other)) if ours.understands(theirs) => {
                let [near, far] = Wire::pair(plan)?;
                let near = Listed::new(near, own, &plan.source.interface)?;
                let far = Listed::new(far, other, &plan.destination.interface)?;
                Ok(Some([near, far].map(|listed| ProtocolEnd::Listed(Box::new(listed)))))
            }
            _ => Err(mixed(ours, theirs)),
        }
    }

    /// Takes a system write.
    pub fn write(&mut self, now: Time, write: Write, context: &Context) {
        match self {
            ProtocolEnd::Datagrams(protocol) => protocol.write(now, write, context),
            ProtocolEnd::Urp(protocol) => protocol.write(now, write, context),
            ProtocolEnd::Listed(protocol) => protocol.write(now, write, context),
            ProtocolEnd::Tcp(protocol) => protocol.write(write, context),
        }
    }

    /// Whether the write may return.
    pub fn written(&self) -> bool {
        match self {
            ProtocolEnd::Datagrams(protocol) => protocol.written(),
            ProtocolEnd::Urp(protocol) => protocol.written(),
            ProtocolEnd::Listed(protocol) => protocol.written(),
            ProtocolEnd::Tcp(protocol) => protocol.written(),
        }
    }

    /// Moves everything that can move, in both directions.
    pub fn pump(&mut self, now: Time, context: &Context) {
        match self {
            ProtocolEnd::Datagrams(protocol) => protocol.pump(context),
            ProtocolEnd::Urp(protocol) => protocol.pump(now, context),
            ProtocolEnd::Listed(protocol) => protocol.pump(now, context),
            ProtocolEnd::Tcp(protocol) => protocol.pump(),
        }
    }

    /// A system read, if there is anything to be read.
    pub fn take(&mut self, now: Time, context: &Context) -> Option<Taken> {
        match self {
            ProtocolEnd::Datagrams(protocol) => protocol.take(context),
            ProtocolEnd::Urp(protocol) => protocol.take(now, context),
            ProtocolEnd::Listed(protocol) => protocol.take(now, context),
            ProtocolEnd::Tcp(protocol) => protocol.take(now, context),
        }
    }

    /// Sends nothing more, whatever is left to be sent.
    pub fn cut_off(&mut self) {
        match self {
            ProtocolEnd::Datagrams(_) => (),
            ProtocolEnd::Urp(protocol) => protocol.cut_off(),
            ProtocolEnd::Listed(protocol) => protocol.cut_off(),
            ProtocolEnd::Tcp(protocol) => protocol.cut_off(),
        }
    }

    /// When it wants to be pumped at the latest.
    pub fn deadline(&self) -> Option<Time> {
        match self {
            ProtocolEnd::Urp(protocol) => protocol.deadline(),
            ProtocolEnd::Listed(protocol) => protocol.deadline(),
            ProtocolEnd::Datagrams(_) | ProtocolEnd::Tcp(_) => None,
        }
    }

    /// Whether it waits for its socket to be readable, while the application reads or not, and writable.
    pub fn interest(&self, reading: bool) -> (bool, bool) {
        match self {
            ProtocolEnd::Datagrams(protocol) => (true, protocol.blocked()),
            ProtocolEnd::Urp(protocol) => (true, protocol.blocked()),
            ProtocolEnd::Listed(protocol) => (true, protocol.blocked()),
            ProtocolEnd::Tcp(protocol) => (reading && !protocol.closed(), protocol.blocked()),
        }
    }

    /// The reason why what was written is not on its way; `None` if there is none.
    pub fn waiting(&self) -> Option<Waiting> {
        match self {
            ProtocolEnd::Datagrams(protocol) => (!protocol.written()).then_some(Waiting::Host),
            ProtocolEnd::Urp(protocol) => protocol.waiting(),
            ProtocolEnd::Listed(protocol) => protocol.waiting(),
            ProtocolEnd::Tcp(protocol) => (!protocol.written()).then_some(Waiting::Window),
        }
    }

    /// Whether the other end counts as dead.
    pub fn dead(&self) -> bool {
        match self {
            ProtocolEnd::Urp(protocol) => protocol.dead(),
            ProtocolEnd::Listed(protocol) => protocol.dead(),
            ProtocolEnd::Tcp(protocol) => protocol.closed(),
            ProtocolEnd::Datagrams(_) => false,
        }
    }

    /// The counts of the protocol, at the end.
    pub fn report(&mut self) -> ProtocolReport {
        match self {
            ProtocolEnd::Datagrams(protocol) => protocol.report(),
            ProtocolEnd::Urp(protocol) => protocol.report(),
            ProtocolEnd::Listed(protocol) => protocol.report(),
            ProtocolEnd::Tcp(protocol) => protocol.report(),
        }
    }
}

impl AsFd for ProtocolEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            ProtocolEnd::Datagrams(protocol) => protocol.as_fd(),
            ProtocolEnd::Urp(protocol) => protocol.as_fd(),
            ProtocolEnd::Listed(protocol) => protocol.as_fd(),
            ProtocolEnd::Tcp(protocol) => protocol.as_fd(),
        }
    }
}

/// Bytes of header that the path counts before a datagram's own; `None` if it is no datagram.
fn header(transport: &Transport) -> Option<u32> {
    match transport {
        Transport::Datagram => Some(0),
        Transport::Udp => Some(trunkline_scenario::UDP_HEADER),
        Transport::Urp(_) | Transport::Tcp(_) | Transport::Listed(_) => None,
    }
}

fn mixed(ours: &Transport, theirs: &Transport) -> EndpointError {
    let name = |transport: &Transport| match transport {
        Transport::Urp(_) => "urp",
        Transport::Datagram => "datagram",
        Transport::Udp => "udp",
        Transport::Tcp(_) => "tcp",
        Transport::Listed(listed) => listed.entry.name,
    };
    let (ours, theirs) = (name(ours), name(theirs));
    EndpointError::Transport(format!(
        "real ends cannot speak {ours} one way and {theirs} the other: \
         give transport and reply_transport one kind"
    ))
}

/// Notes of a wire that had to do something that the path does not see.
fn wire_notes(wire: &Wire) -> Vec<Note> {
    let mut notes = Vec::new();
    if wire.cut > 0 {
        let room = wire.room();
        let text = format!(
            "of each packet {room} bytes travel at most, as the hosts' MTU allows; the path counts all"
        );
        notes.push(Note::new(NoteKind::NotEmulated, text));
    }
    if let Some(error) = wire.refusal {
        let error = std::io::Error::from(error);
        let text = format!("a host's system refused packets that were to be sent: {error}");
        notes.push(Note::new(NoteKind::Lost, text));
    }
    notes
}
