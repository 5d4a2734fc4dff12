//! The carrier of a flow's messages, and what is known of the path by that alone.

use super::Connection;
use super::carrier::Carrier;
use super::rtt::RttPlan;
use super::tcp_carrier::{Tcp, segment};
use super::udp_carrier::{Datagrams, Udp};
use super::urp_carrier::UrpOver;
use crate::channel::Channel;
use crate::error::Naming;
use crate::wire::datagram::HEAD;
use crate::wire::message::{FlowSpec, Transport, UrpSpec};
use crate::wire::record;
use crate::{ProbeError, clock, tcp};
use trunkline_fit::{Known, Opens, Over, OverTcp, OverUdp, Pattern, Suspects, Waits};
use trunkline_transport::envelope::packed;

/// The carrier of a flow, and what is known of it.
pub(super) struct Carried {
    pub flow: u16,
    pub carrier: Box<dyn Carrier + Send>,
    pub suspects: Suspects,
    pub known: Known,
    /// Octets of each message's head that the sender's window counts with the user's.
    pub head: u32,
    /// The same in a scenario.
    pub over: Over,
}

pub(super) fn carry(
    connection: &Connection,
    plan: &RttPlan,
    spec: FlowSpec,
) -> Result<Carried, ProbeError> {
    match plan.transport {
        Transport::Udp => carry_udp(connection, spec),
        Transport::Tcp => carry_tcp(connection, plan, spec),
        Transport::Urp => carry_urp(connection, plan, spec),
    }
}

fn carry_udp(connection: &Connection, spec: FlowSpec) -> Result<Carried, ProbeError> {
    let flow = connection.flow(spec)?;
    let carrier = Udp(Datagrams::open(connection, flow)?);
    let (mtu, headers) = (carrier.0.mtu(), carrier.overhead());
    let known =
        Known { overhead: Some(headers), waits: Waits::Never, ..Known::only(Pattern::Echo) };
    let suspects = Suspects { mtu, headers, ..Suspects::default() };
    let over = Over::Udp(OverUdp {
        headers: carrier.0.headers(),
        head: HEAD as u32,
        mtu: mtu.unwrap_or(MTU),
        fragment: carrier.0.fragment(),
    });
    Ok(Carried { flow, carrier: Box::new(carrier), suspects, known, head: 0, over })
}

fn carry_tcp(
    connection: &Connection,
    plan: &RttPlan,
    spec: FlowSpec,
) -> Result<Carried, ProbeError> {
    let flow = connection.flow(spec)?;
    let joined = connection.join(flow, 0, &plan.end())?;
    let segment = segment(&joined.stream);
    let timestamps = tcp::timestamps(&joined.stream).unwrap_or(true);
    let congestion = tcp::congestion(&joined.stream).unwrap_or_default();
    let carrier = Tcp::over(joined, plan.tcp_window).naming("use a data connection")?;
    let headers = carrier.overhead() - record::HEAD as u32;
    let known = Known {
        block: segment,
        overhead: Some(headers),
        answer: Some(headers),
        opens: Some(Opens::ByBlock),
        ..Known::only(Pattern::Echo)
    };
    // The record's head is part of the first segment.
    let room = segment.map(|octets| octets.saturating_sub(record::HEAD as u32));
    let suspects = Suspects { segment: room, ..Suspects::default() };
    let over = Over::Tcp(OverTcp {
        segment: segment.unwrap_or(SEGMENT),
        timestamps,
        congestion,
        initial: None,
    });
    let head = record::HEAD as u32;
    Ok(Carried { flow, carrier: Box::new(carrier), suspects, known, head, over })
}

fn carry_urp(
    connection: &Connection,
    plan: &RttPlan,
    spec: FlowSpec,
) -> Result<Carried, ProbeError> {
    // Noughts leave it to the server.
    let asked = urp_spec(connection, plan.window.unwrap_or_default())?;
    let (flow, decided) = connection.flow_by_urp(FlowSpec { urp: Some(asked), ..spec })?;
    let urp = decided.unwrap_or(asked);
    let datagrams = Datagrams::open(connection, flow)?;
    let heads = datagrams.headers() + HEAD as u32;
    let channel = open_channel(&urp)?;
    let block = u32::from(urp.block);
    // A block that is not cut goes in one datagram: data, nine envelopes of trailer, three of them controls.
    let whole = packed::fitting(urp.datagram as usize) as u32 >= block + TRAILER.0;
    let overhead = |(count, controls): (u32, u32)| {
        heads + packed::length(count as usize, controls as usize) as u32
    };
    let known = Known {
        block: Some(block),
        overhead: whole.then(|| overhead(TRAILER)),
        answer: Some(overhead((1, 1))),
        opens: Some(Opens::ByBlock),
        ..Known::only(Pattern::Echo)
    };
    // A sweep is to find the window: it is no suspect there.
    let window = plan.sweep.is_none().then(|| block * u32::from(urp.outstanding));
    let suspects = Suspects { segment: Some(block), window, ..Suspects::default() };
    let carrier = Box::new(UrpOver::new(datagrams, channel));
    Ok(Carried { flow, carrier, suspects, known, head: 0, over: Over::Urp })
}

/// The largest packet, and the segment in it, if the system does not say: Ethernet's.
const MTU: u32 = 1500;
const SEGMENT: u32 = 1448;
/// Envelopes of a block's trailer with its check sum, and controls among them.
const TRAILER: (u32, u32) = (9, 3);

/// URP's settings, with datagrams that fit the path's packets.
pub fn urp_spec(
    connection: &Connection,
    (block, outstanding): (u16, u8),
) -> Result<UrpSpec, ProbeError> {
    // A socket of no flow, only to ask for the packet size.
    let asked = Datagrams::open(connection, 0)?;
    let mtu = asked.mtu().unwrap_or(1280);
    let datagram = mtu.saturating_sub(asked.headers() + HEAD as u32);
    let timeout_ns = trunkline_transport::urp::Settings::default().timeout.as_nanos();
    Ok(UrpSpec { block, outstanding, timeout_ns, datagram })
}

/// This end of a URP flow.
pub fn open_channel(urp: &UrpSpec) -> Result<Channel, ProbeError> {
    Channel::open(clock::now(), urp).map_err(|error| ProbeError::WrongUse(error.to_string()))
}
