//! The transports of a scenario: which protocol an end speaks, with its settings.

use std::fmt;
use trunkline_core::{Size, Span};
use trunkline_transport::protocol::{ProtocolEntry, Values};
use trunkline_transport::tcp::congestion::Algorithm;
use trunkline_transport::urp::Mode;

/// How an end point speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// The Universal Receiver Protocol.
    Urp(UrpSettings),
    /// Datagrams, no protocol and no header: a packet is the user's bytes.
    Datagram,
    /// UDP datagrams: 28 bytes of IPv4 and UDP header before the user's.
    Udp,
    /// The Transmission Control Protocol over IPv4: ours in the simulator, the kernel's in the emulator.
    Tcp(TcpSettings),
    /// A protocol that is chosen by its name, the same code in the simulator and in the emulator.
    Listed(Listed),
}

/// A protocol of the list, with the values of its keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Which one.
    pub entry: &'static ProtocolEntry,
    /// What the file gives, and the defaults.
    pub values: Values,
}

impl Transport {
    /// Whether an end that speaks this can talk with one that speaks `other`.
    pub fn understands(&self, other: &Transport) -> bool {
        match (self, other) {
            (Transport::Listed(own), Transport::Listed(other)) => own.entry == other.entry,
            (Transport::Datagram | Transport::Udp, Transport::Datagram | Transport::Udp) => true,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// The protocol's name in files.
    pub fn name(&self) -> &'static str {
        match self {
            Transport::Urp(_) => "urp",
            Transport::Datagram => "datagram",
            Transport::Udp => "udp",
            Transport::Tcp(_) => "tcp",
            Transport::Listed(listed) => listed.entry.name,
        }
    }

    /// Whether it carries octets and no messages, so that none can be empty.
    pub fn is_stream(&self) -> bool {
        matches!(self, Transport::Tcp(_))
    }

    /// Whether the confirmation of a transfer is asked for by an empty message behind it, as Hawley's `mpuke` does. A stream
    /// has none, and where each message has a connection of its own it would cost more than the transfer's end: there
    /// the transfer itself is answered.
    pub fn asks_by_empty_message(&self) -> bool {
        match self {
            Transport::Tcp(_) => false,
            Transport::Listed(listed) => !listed.entry.connects_for_each,
            Transport::Urp(_) | Transport::Datagram | Transport::Udp => true,
        }
    }
}

/// The protocol with what decides most of its throughput: `tcp cubic`, `urp 3 x 256 B`.
impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transport::Urp(urp) => {
                match urp.mode {
                    Mode::Block => write!(f, "urp {} x {} B", urp.outstanding, urp.block)?,
                    Mode::Character => write!(f, "urp characters, {} B", urp.block)?,
                    mode => write!(f, "urp {}", mode.name())?,
                }
                profile(f, &urp.profile, &UrpSettings::default().profile)
            }
            Transport::Datagram | Transport::Udp => f.write_str(self.name()),
            Transport::Tcp(tcp) => {
                write!(f, "tcp {}", tcp.congestion())?;
                profile(f, &tcp.profile, &TcpSettings::default().profile)?;
                tcp.window.map_or(Ok(()), |window| write!(f, ", window {} B", window.bytes()))
            }
            Transport::Listed(listed) => write!(f, "{}, {}", listed.entry.name, listed.values),
        }
    }
}

/// A profile that is not the usual one.
fn profile(f: &mut fmt::Formatter<'_>, profile: &str, usual: &str) -> fmt::Result {
    if profile == usual { Ok(()) } else { write!(f, " ({profile})") }
}

/// Bytes of the IPv4 header without options (RFC 791) and of UDP's (RFC 768).
pub const UDP_HEADER: u32 = 20 + 8;

/// Parameters of TCP. What is `None` is as the profile has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpSettings {
    /// Whose habits: `linux`, `trunkline` (the RFCs of today), `bsd-reno` (4.4BSD).
    pub profile: String,
    /// Congestion control: a name of `trunkline_transport::tcp::congestion::Algorithm`.
    pub congestion: Option<String>,
    /// User bytes of the largest segment and its options; `None`: what the scenario's MTU leaves.
    pub mss: Option<u32>,
    /// Receive buffer: the largest window that is advertised.
    pub window: Option<Size>,
    /// Segments of the first window.
    pub initial_window: Option<u32>,
    /// Selective acknowledgements (RFC 2018).
    pub sack: Option<bool>,
    /// Time stamps (RFC 7323), 12 bytes of each segment.
    pub timestamps: Option<bool>,
    /// Windows of more than 65535 bytes (RFC 7323).
    pub window_scaling: Option<bool>,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: Option<bool>,
    /// The longest that an acknowledgement is held back; zero: each segment is acknowledged at once.
    pub delayed_ack: Option<Span>,
    /// The shortest retransmission time-out.
    pub min_rto: Option<Span>,
}

impl TcpSettings {
    /// The congestion control: the one asked for, or the profile's.
    pub fn congestion(&self) -> &str {
        match (&self.congestion, self.profile.as_str()) {
            (Some(congestion), _) => congestion,
            (None, "linux") => "cubic",
            (None, "bsd-reno") => "reno",
            (None, _) => "newreno",
        }
    }

    /// Whether congestion notification is offered: as the scenario says, or because the congestion control is nothing
    /// without it; `None`: as the profile has it.
    pub fn offers_ecn(&self) -> Option<bool> {
        let kind = self.congestion().parse::<Algorithm>();
        let insists = kind.is_ok_and(|kind| kind.entry().marks.insists());
        if insists { Some(true) } else { self.ecn }
    }
}

impl Default for TcpSettings {
    fn default() -> TcpSettings {
        TcpSettings {
            profile: "linux".into(),
            congestion: None,
            mss: None,
            window: None,
            initial_window: None,
            sack: None,
            timestamps: None,
            window_scaling: None,
            ecn: None,
            delayed_ack: None,
            min_rto: None,
        }
    }
}

/// Parameters of URP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrpSettings {
    /// The grade of service of what the end sends: one of [`Mode::NAMED`].
    pub mode: Mode,
    /// User bytes of a block, 1 to 4096; in character mode, of what is sent before an ECHO is waited for.
    pub block: u16,
    /// Blocks outstanding, 1 to 7.
    pub outstanding: u8,
    /// After how long without an answer the sender asks with ENQ.
    pub timeout: Span,
    /// Which implementation's habits: `trunkline`, `v10`, `plan9`, `kmc`.
    pub profile: String,
    /// Envelopes of each network packet: 16 on Datakit's backplane. 0: a block in one packet.
    pub packet: u32,
}

impl Default for UrpSettings {
    fn default() -> UrpSettings {
        UrpSettings {
            mode: Mode::Block,
            block: 256,
            outstanding: 3,
            timeout: Span::from_secs(1),
            profile: "trunkline".into(),
            packet: 16,
        }
    }
}
