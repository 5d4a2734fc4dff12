//! The messages on the control connection.
//!
//! A client sends one [`Request`] and waits for its one [`Answer`]. The order: after the handshake `Open` and
//! `Welcome`, then any number of `Flow`, `Collect`, `Host` and `Alive`. A data connection has a handshake of
//! its own and then carries records ([`super::record`]).

use crate::counters::HostReading;
use crate::tcp::TcpReading;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use trunkline_transport::urp::Counters;

/// The requests of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The first message: opens a session.
    Open,
    /// Prepares a flow.
    Flow {
        /// Its number, higher than any before it in the session.
        flow: u16,
        /// The work of the flow.
        spec: FlowSpec,
    },
    /// Ends a flow and asks what the server saw of it.
    Collect {
        /// Its number.
        flow: u16,
    },
    /// Asks for the server's counters.
    Host,
    /// Nothing but a sign of life.
    Alive,
    /// The last words.
    Bye,
}

/// The answers of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// To `Open`.
    Welcome {
        /// The secret of which the keys of datagrams and data connections are made.
        secret: [u8; 32],
        /// The session's cookie.
        cookie: u64,
        /// The limits that the server sets.
        limits: Limits,
    },
    /// To `Flow`.
    Ready {
        /// To a flow by URP: the settings in force at both ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        urp: Option<UrpSpec>,
    },
    /// To `Collect`.
    Report(Box<FlowReport>),
    /// To `Host`.
    Host(Box<HostReading>),
    /// To `Alive`.
    Alive,
    /// To anything that is not allowed.
    Refused {
        /// Cause and remedy in one line.
        reason: String,
    },
}

/// The limits that a server sets for each session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Bits per second, both ways together; `None` for no limit.
    pub rate: Option<u64>,
    /// Nanoseconds that a session may last.
    pub duration_ns: u64,
    /// Flows that may be open at once.
    pub flows: u16,
    /// Streams in a flow.
    pub streams: u16,
    /// Streams in all open flows together.
    pub connections: u32,
}

/// The carrier of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// The kernel's TCP.
    Tcp,
    /// Blocks of the Universal Receiver Protocol in datagrams.
    Urp,
}

impl Transport {
    /// Every one.
    pub const ALL: [Transport; 3] = [Transport::Udp, Transport::Tcp, Transport::Urp];

    /// As written on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Urp => "urp",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Transport, String> {
        let found = Transport::ALL.into_iter().find(|transport| transport.name() == text);
        found.ok_or_else(|| format!("'{text}' is no transport of probes: write udp, tcp or urp"))
    }
}

/// The roles of the ends: who sends what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The server answers each message by one of the same size.
    Echo,
    /// The client sends, the server counts.
    Up,
    /// The server sends, the client counts.
    Down,
}

/// The work of a flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// The carrier.
    pub transport: Transport,
    /// The sender.
    pub role: Role,
    /// Parallel connections (TCP only, else 1).
    pub streams: u16,
    /// User octets of a message; of an echo the largest.
    pub size: u32,
    /// Bits of user octets and heads per second; `None` for as fast as the transport allows.
    pub rate: Option<u64>,
    /// The time for which the sender sends, in nanoseconds.
    pub duration_ns: u64,
    /// The length of the intervals in which octets are counted, in nanoseconds.
    pub interval_ns: u64,
    /// The congestion control of TCP; `None` for the system's own.
    pub congestion: Option<String>,
    /// URP only.
    pub urp: Option<UrpSpec>,
}

/// The settings of both ends of a URP flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UrpSpec {
    /// Octets of a block, 1 to 4096; asked for 0 the server decides.
    pub block: u16,
    /// Blocks outstanding, 1 to 7; asked for 0 the server decides.
    pub outstanding: u8,
    /// The time that an end waits before it asks, in nanoseconds.
    pub timeout_ns: u64,
    /// The most octets of a datagram.
    pub datagram: u32,
}

/// The server's observations of a flow.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowReport {
    /// Numbers received, as ranges with both ends included, ascending.
    pub ranges: Vec<(u32, u32)>,
    /// Whether there were too many ranges to keep all.
    pub truncated: bool,
    /// Datagrams or messages received, copies left out.
    pub received: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Received after one with a higher number (RFC 4737 §3.3).
    pub reordered: u64,
    /// Dropped because they came faster than the server allows.
    pub over_rate: u64,
    /// Datagrams or messages sent.
    pub sent: u64,
    /// User octets received.
    pub octets: u64,
    /// Interarrival jitter in nanoseconds (RFC 3550 §6.4.1).
    pub jitter_ns: Option<u64>,
    /// For each stream: user octets received in each interval from the flow's first octet on.
    pub bins: Vec<Vec<u64>>,
    /// For each stream: what the kernel said of the connection, the sender's end.
    pub tcp: Vec<Vec<TcpReading>>,
    /// The congestion control in force.
    pub congestion: Option<String>,
    /// The server's end of a URP flow.
    pub urp: Option<UrpReading>,
    /// Connections on which octets were changed on the way.
    pub forged: u64,
}

/// The counts of an end of a URP flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UrpReading {
    /// Blocks sent for the first time.
    pub blocks: u64,
    /// Blocks sent again.
    pub resent: u64,
    /// Blocks found good.
    pub accepted: u64,
    /// Blocks refused as damaged or out of order.
    pub rejected: u64,
    /// Enquiries sent.
    pub enquiries: u64,
    /// Datagrams that came too late to be in order, left out.
    pub disordered: u64,
}

impl UrpReading {
    /// The protocol's counts, and the datagrams left out before it.
    pub fn of(counters: &Counters, disordered: u64) -> UrpReading {
        UrpReading {
            blocks: counters.sending.blocks,
            resent: counters.sending.resent,
            accepted: counters.receiving.blocks,
            rejected: counters.receiving.bad(),
            enquiries: counters.sending.enquiries,
            disordered,
        }
    }
}
