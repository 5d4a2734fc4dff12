//! The packet and what a path needs to know of it.

use crate::{Cause, Ecn, Ledger, Span, Time};

/// The channel (flow, virtual circuit) that a packet belongs to, as found by the path's channel key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Channel(pub u64);

/// The hosts that a packet goes between, as numbers that tell hosts apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hosts {
    /// The host that it comes from.
    pub source: u32,
    /// The host that it goes to.
    pub destination: u32,
}

/// The properties that the elements of a path may ask of the packets that they carry.
pub trait Metered {
    /// User bytes: the network-layer packet, without link header or framing.
    fn size(&self) -> u32;
    /// The number of these bytes that are control envelopes, which some framings send with a stuff byte
    /// (URP on a T1 trunk, Hawley 1989 §2.1). Zero for anything but URP.
    fn controls(&self) -> u32 {
        0
    }
    /// The channel it belongs to.
    fn channel(&self) -> Channel;
    /// The hosts that it goes between, if it tells. Of a packet that does not, a discipline knows them by its channel.
    fn hosts(&self) -> Option<Hosts> {
        None
    }
    /// The priority band, 0 the most urgent.
    fn band(&self) -> u8 {
        0
    }
    /// Its congestion bits.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    /// Marks it as having experienced congestion, if its sender [can take that](Ecn::is_capable).
    fn mark(&mut self) {}
}

/// A packet that a link can carry: it knows when it came, and takes note of what the link made it wait for.
///
/// A link books its own share only: [`Cause::Queue`], [`Cause::Transmit`] and [`Cause::Propagate`], at most
/// once each, which sum to the time from [`entered`](Carried::entered) to its release exactly.
pub trait Carried: Metered {
    /// Whether [`book`](Carried::book) notes anything. If it does not, a link need not work out what to book.
    const BOOKS: bool = true;

    /// When it entered the link that carries it.
    fn entered(&self) -> Time;
    /// Notes that it has waited for `span` because of `cause`.
    fn book(&mut self, cause: Cause, span: Span);
    /// The number of deliveries: 1, or more if the link has duplicated it.
    fn copies(&self) -> u8;
    /// Notes how often it is delivered.
    fn set_copies(&mut self, copies: u8);
}

/// A packet on its way along a path: measured facts, the ledger, and a body of the engine's choice
/// (a typed segment in the simulator, a frame buffer in the emulator).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet<B> {
    /// The channel, for disciplines that keep one queue for each.
    pub channel: Channel,
    /// The hosts that it goes between, if they are known.
    pub hosts: Option<Hosts>,
    /// The priority band, 0 the most urgent.
    pub band: u8,
    /// The congestion bits: as they came, or as a discipline on the path has marked them.
    pub ecn: Ecn,
    /// User bytes.
    pub size: u32,
    /// Control envelopes among them.
    pub controls: u32,
    /// When it entered the path.
    pub entered: Time,
    /// The number of deliveries: 1, or more if the path duplicates.
    pub copies: u8,
    /// The parts of its delay, by cause.
    pub ledger: Ledger,
    /// The engine's own.
    pub body: B,
}

impl<B> Packet<B> {
    /// A packet of `size` user bytes that enters a path at `entered`.
    pub fn new(channel: Channel, size: u32, entered: Time, body: B) -> Packet<B> {
        Packet {
            channel,
            hosts: None,
            band: 0,
            ecn: Ecn::NotEct,
            size,
            controls: 0,
            entered,
            copies: 1,
            ledger: Ledger::default(),
            body,
        }
    }
}

impl<B> Metered for Packet<B> {
    fn size(&self) -> u32 {
        self.size
    }
    fn controls(&self) -> u32 {
        self.controls
    }
    fn channel(&self) -> Channel {
        self.channel
    }
    fn hosts(&self) -> Option<Hosts> {
        self.hosts
    }
    fn band(&self) -> u8 {
        self.band
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = self.ecn.marked();
    }
}

impl<B> Carried for Packet<B> {
    fn entered(&self) -> Time {
        self.entered
    }
    fn book(&mut self, cause: Cause, span: Span) {
        self.ledger.book(cause, span);
    }
    fn copies(&self) -> u8 {
        self.copies
    }
    fn set_copies(&mut self, copies: u8) {
        self.copies = copies;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_says_what_it_was_made_with() {
        let mut packet = Packet::new(Channel(7), 1500, Time::from_nanos(3), "body");
        assert_eq!((packet.size(), packet.controls(), packet.channel()), (1500, 0, Channel(7)));
        assert_eq!((packet.band(), packet.ecn(), packet.copies()), (0, Ecn::NotEct, 1));
        assert_eq!(packet.entered(), Time::from_nanos(3));
        (packet.band, packet.controls, packet.ecn) = (2, 4, Ecn::Ect0);
        packet.set_copies(3);
        packet.mark();
        packet.book(Cause::Queue, Span::from_nanos(9));
        assert_eq!((packet.band(), packet.controls(), packet.copies()), (2, 4, 3));
        assert_eq!((packet.ecn(), packet.ledger.total()), (Ecn::Ce, Span::from_nanos(9)));
    }
}
