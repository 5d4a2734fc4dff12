//! What an end speaks: URP, TCP, a listed protocol, or nothing but datagrams.

use super::flying::Carried;
use super::segments::{Posted, Segments, Sent};
use super::settings::{self, Habits};
use crate::SimError;
use trunkline_core::{Recent, Time};
use trunkline_host::{Datagram, Datagrams, urp_settings, waiting};
use trunkline_measure::Waiting;
use trunkline_scenario::{Transport, UDP_HEADER};
use trunkline_transport::protocol::{self, Delivery, Frame};
use trunkline_transport::tcp::{self, Seq, Tcp};
use trunkline_transport::urp::{Block, Characters, Control, Part, Segment, Urp};
use trunkline_transport::{Counters, Endpoint, Extent, Protocol};

/// Which protocol it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProtocolKind {
    /// The Universal Receiver Protocol, in blocks.
    Urp,
    /// The same, in characters without trailers.
    Characters,
    /// The Transmission Control Protocol.
    Tcp,
    /// None: datagrams.
    Datagrams,
    /// A protocol of the list.
    Listed,
}

impl ProtocolKind {
    /// That of `transport`.
    pub fn of(transport: &Transport) -> ProtocolKind {
        match transport {
            Transport::Urp(urp) if urp.mode.has_trailers() => ProtocolKind::Urp,
            Transport::Urp(_) => ProtocolKind::Characters,
            Transport::Tcp(_) => ProtocolKind::Tcp,
            Transport::Datagram | Transport::Udp => ProtocolKind::Datagrams,
            Transport::Listed(_) => ProtocolKind::Listed,
        }
    }

    /// Whether a packet means what its tag says; what others send waits among the [`Segments`].
    pub fn is_urp(self) -> bool {
        matches!(self, ProtocolKind::Urp | ProtocolKind::Characters)
    }
}

/// An end's protocol. Each is driven as an [`Endpoint`]; what they send and get differs, and the simulator calls them
/// without a table of functions, for speed.
#[derive(Debug)]
pub(crate) enum ProtocolEnd {
    /// The Universal Receiver Protocol.
    Urp(Box<Urp<Extent>>),
    /// The Transmission Control Protocol.
    Tcp(Box<Tcp<Extent>>),
    /// Datagrams that wait to be sent.
    Datagrams(Box<Datagrams<Carried>>),
    /// A protocol of the list.
    Listed(Box<dyn Protocol>),
}

/// Does the same with whatever protocol it is.
macro_rules! with {
    ($protocol:expr, $end:ident => $what:expr) => {
        match $protocol {
            ProtocolEnd::Urp($end) => $what,
            ProtocolEnd::Tcp($end) => $what,
            ProtocolEnd::Datagrams($end) => $what,
            ProtocolEnd::Listed($end) => $what,
        }
    };
}

/// What a host has to know of a segment of TCP on its way out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaving {
    /// Its place among the [`Segments`].
    pub place: u32,
    /// Its size on the path.
    pub size: u32,
    /// Its data.
    pub data: Extent,
    /// When its data were there and the windows first allowed it.
    pub eligible: Time,
    /// When it was sent for the first time, if this is not the first.
    pub first: Option<Time>,
    /// Since when it is on its way out.
    pub ready: Time,
}

/// Something on its way out.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// A block of data.
    Block(Block<Extent>),
    /// Data without a trailer.
    Characters(Characters<Extent>),
    /// A control octet.
    Control(Control),
    /// A datagram.
    Datagram(Datagram<Carried>),
    /// A datagram of so many bytes from an ideal host.
    Posted(u32, Posted),
    /// A segment of TCP, which is kept elsewhere.
    Segment(Leaving),
    /// A frame of a listed protocol.
    Frame(protocol::Outgoing),
}

impl Outgoing {
    /// How many envelopes it takes.
    pub fn envelopes(&self) -> u64 {
        match self {
            Outgoing::Block(block) => u64::from(block.data.len) + 4,
            Outgoing::Characters(it) => u64::from(it.data.len) + it.control.iter().len() as u64,
            Outgoing::Control(_) => 1,
            Outgoing::Datagram(datagram) => u64::from(datagram.bytes + datagram.header),
            Outgoing::Posted(size, _) => u64::from(*size),
            Outgoing::Segment(segment) => u64::from(segment.size),
            Outgoing::Frame(out) => u64::from(out.frame.size()),
        }
    }

    /// Whether it is a control, or an acknowledgement without data.
    pub fn is_control(&self) -> bool {
        match self {
            Outgoing::Control(_) => true,
            Outgoing::Segment(segment) => segment.data.len == 0,
            Outgoing::Frame(out) => out.unit.is_none(),
            Outgoing::Block(_) | Outgoing::Characters(_) => false,
            Outgoing::Datagram(_) | Outgoing::Posted(..) => false,
        }
    }

    /// Whether its protocol stands on the host's processor, whose other work may delay it.
    pub fn is_of_host(&self) -> bool {
        matches!(self, Outgoing::Segment(..) | Outgoing::Frame(_))
    }

    /// The data of a block or segment that goes out for the first time.
    pub fn first_time(&self) -> Option<Extent> {
        match self {
            Outgoing::Block(block) => block.first_sent.is_none().then_some(block.data),
            Outgoing::Characters(characters) => Some(characters.data),
            Outgoing::Segment(segment) if segment.data.len > 0 => {
                segment.first.is_none().then_some(segment.data)
            }
            Outgoing::Frame(out) => {
                out.unit.filter(|unit| unit.first_sent.is_none()).map(|_| out.frame.data)
            }
            _ => None,
        }
    }
}

/// What the peer gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivered {
    /// Which stretch of the stream.
    pub data: Extent,
    /// Whether a message ends here.
    pub end: bool,
}

impl ProtocolEnd {
    /// The protocol that `own` describes, to talk with an end that speaks `other`, and how many envelopes its
    /// packets hold. URP's channel is set up; a TCP that `opens` has its connection still to set up, and another
    /// one waits for that. Equal settings of TCP are shared with those that came `lately`.
    pub fn new(
        [own, other]: [&Transport; 2],
        habits: &Habits,
        opens: bool,
        traffic: &str,
        lately: &mut Recent<tcp::Settings>,
    ) -> Result<(ProtocolEnd, u32), SimError> {
        let wrong = |reason: String| SimError::Transport { traffic: traffic.into(), reason };
        let datagrams = |header| ProtocolEnd::Datagrams(Box::new(Datagrams::new(header)));
        match (own, other) {
            (Transport::Urp(settings), theirs) => {
                let urp = urp_settings(settings, habits.echo).map_err(wrong)?;
                let urp = Urp::connected(Time::ZERO, urp);
                let urp = urp.map_err(|error| wrong(error.to_string()))?;
                let urp = match theirs {
                    Transport::Urp(theirs) => urp.hearing(theirs.mode),
                    _ => urp,
                };
                let urp = Box::new(urp);
                Ok((ProtocolEnd::Urp(urp), settings.packet))
            }
            (Transport::Tcp(ours), Transport::Tcp(_)) => {
                let ours = lately.share(settings::tcp(ours, habits).map_err(wrong)?);
                let tcp = match opens {
                    true => Tcp::connect(ours, Seq::default()),
                    false => Tcp::listen(ours, Seq::default()),
                };
                let tcp = Box::new(tcp.map_err(|error| wrong(error.to_string()))?);
                Ok((ProtocolEnd::Tcp(tcp), 0))
            }
            (Transport::Tcp(_), _) => {
                let text = "one end speaks TCP and the other does not; give both the same 'kind'";
                Err(wrong(text.into()))
            }
            (Transport::Listed(listed), _) => {
                let protocol = (listed.entry.build)(&listed.values);
                let protocol = protocol.map_err(|unfit| wrong(unfit.to_string()))?;
                Ok((ProtocolEnd::Listed(protocol), 0))
            }
            (Transport::Datagram, _) => Ok((datagrams(0), 0)),
            (Transport::Udp, _) => Ok((datagrams(UDP_HEADER), 0)),
        }
    }

    /// Hands over a request. Returns what a message brings to its reader, if this end does not send it
    /// along with the data.
    pub fn offer(
        &mut self,
        now: Time,
        data: Extent,
        end: bool,
        carried: Option<Carried>,
    ) -> Option<Carried> {
        match self {
            ProtocolEnd::Urp(urp) => urp.offer(now, data, end),
            ProtocolEnd::Listed(protocol) => protocol.offer(now, data, end),
            ProtocolEnd::Tcp(tcp) => tcp.offer(now, data),
            ProtocolEnd::Datagrams(queue) => {
                queue.offer(now, data.len, carried);
                return None;
            }
        }
        carried
    }

    /// The next thing to be sent. If it is a segment of TCP, `segments` keep it.
    pub fn transmit(&mut self, now: Time, segments: &mut Segments) -> Option<Outgoing> {
        match self {
            ProtocolEnd::Urp(urp) => urp.transmit(now).map(|segment| match segment {
                Segment::Block(block) => Outgoing::Block(block),
                Segment::Characters(characters) => Outgoing::Characters(characters),
                Segment::Control(control) => Outgoing::Control(control),
            }),
            ProtocolEnd::Tcp(tcp) => tcp.transmit(now).map(|segment| {
                let (size, data) = (segment.size(), segment.data);
                let (eligible, first) = (segment.eligible, segment.first_sent);
                let place = segments.put(Sent::Segment(segment.into()), None);
                Outgoing::Segment(Leaving { place, size, data, eligible, first, ready: now })
            }),
            ProtocolEnd::Datagrams(queue) => queue.transmit().map(|(_, it)| Outgoing::Datagram(it)),
            ProtocolEnd::Listed(protocol) => protocol.transmit(now).map(Outgoing::Frame),
        }
    }

    /// Bytes of header in front of each datagram that it sends; what other protocols send is told by themselves.
    pub fn datagram_header(&self) -> u32 {
        match self {
            ProtocolEnd::Datagrams(queue) => queue.header(),
            _ => 0,
        }
    }

    /// A packet has been taken in.
    pub fn receive(&mut self, now: Time, part: Part<Extent>) {
        if let ProtocolEnd::Urp(urp) = self {
            urp.receive(now, part);
        }
    }

    /// A segment of TCP has been taken in.
    pub fn hear(&mut self, now: Time, segment: tcp::Segment<Extent>) {
        if let ProtocolEnd::Tcp(tcp) = self {
            tcp.receive(now, segment);
        }
    }

    /// A frame of a listed protocol has been taken in. Answers the number of its unit if that is kept.
    pub fn take_in(&mut self, now: Time, frame: &Frame) -> Option<u64> {
        match self {
            ProtocolEnd::Listed(protocol) => protocol.receive(now, frame),
            _ => None,
        }
    }

    /// The next unit of a listed protocol.
    pub fn take_unit(&mut self) -> Option<Delivery> {
        let ProtocolEnd::Listed(protocol) = self else { return None };
        protocol.take()
    }

    /// Octets of TCP's stream that have come, those behind a gap included.
    pub fn arrived(&self) -> u64 {
        self.tcp().map_or(0, Tcp::arrived)
    }

    /// The next data of TCP that have come in order.
    pub fn take_stream(&mut self) -> Option<Extent> {
        let ProtocolEnd::Tcp(tcp) = self else { return None };
        tcp.take()
    }

    /// The next accepted data of URP.
    pub fn take(&mut self) -> Option<Delivered> {
        let ProtocolEnd::Urp(urp) = self else { return None };
        urp.take().map(|delivery| Delivered { data: delivery.data, end: delivery.end })
    }

    /// Into how many units a request of so many bytes is cut.
    pub fn units_of(&self, bytes: u32, end: bool) -> u64 {
        with!(self, it => Endpoint::units_of(&**it, bytes, end))
    }

    /// The host has taken so many bytes more.
    pub fn consumed(&mut self, now: Time, bytes: u32) {
        with!(self, it => Endpoint::consumed(&mut **it, now, bytes.into()));
    }

    /// When [`expire`](ProtocolEnd::expire) has to be called.
    pub fn deadline(&self) -> Option<Time> {
        with!(self, it => Endpoint::deadline(&**it))
    }

    /// The deadline has come.
    pub fn expire(&mut self, now: Time) {
        with!(self, it => Endpoint::expire(&mut **it, now));
    }

    /// Whether data wait in it for more, so that requests have no limit.
    pub fn gathers(&self) -> bool {
        with!(self, it => Endpoint::gathers(&**it))
    }

    /// Bytes handed over and not yet sent for the first time.
    pub fn unsent(&self) -> u64 {
        with!(self, it => Endpoint::unsent(&**it))
    }

    /// Bytes sent and not answered for.
    pub fn unanswered(&self) -> u64 {
        with!(self, it => Endpoint::unanswered(&**it))
    }

    /// What the sender waits for if data that could be sent are held back.
    pub fn held(&self, now: Time) -> Option<Waiting> {
        with!(self, it => Endpoint::held(&**it, now)).map(waiting)
    }

    /// Whether the other end has been silent for so long that it counts as dead.
    pub fn dead(&self) -> bool {
        with!(self, it => Endpoint::dead(&**it))
    }

    /// Units with which the host is done.
    pub fn answered(&self) -> u64 {
        with!(self, it => Endpoint::answered(&**it))
    }

    /// Counts of what has happened.
    pub fn counters(&self) -> Counters {
        with!(self, it => Endpoint::counters(&**it))
    }

    /// Whether little enough waits in front of a protocol that is not TCP for another system write. TCP's has its send
    /// buffer instead.
    pub fn has_room(&self) -> bool {
        self.unsent() <= with!(self, it => Endpoint::room(&**it))
    }

    /// Whether it sets up a connection, so that the end of the sender is the end of the flow.
    pub fn is_connected(&self) -> bool {
        !matches!(self, ProtocolEnd::Datagrams(_))
    }

    /// Whether its connection is still to be set up.
    pub fn to_be_opened(&self) -> bool {
        self.tcp().is_some_and(|tcp| !tcp.established())
    }

    /// Whether it speaks TCP.
    pub fn is_tcp(&self) -> bool {
        matches!(self, ProtocolEnd::Tcp(_))
    }

    /// Whether what it accepts lies in the host's socket buffer from then on, whatever the interface.
    pub fn is_of_host(&self) -> bool {
        matches!(self, ProtocolEnd::Tcp(_) | ProtocolEnd::Listed(_))
    }

    /// Its TCP.
    pub fn tcp(&self) -> Option<&Tcp<Extent>> {
        match self {
            ProtocolEnd::Tcp(tcp) => Some(tcp),
            _ => None,
        }
    }
}
