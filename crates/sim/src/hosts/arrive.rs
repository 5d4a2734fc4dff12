//! From packets off the path to the protocol.

use super::end::Received;
use super::flying::Flying;
use super::jobs::{EndId, Job};
use super::protocol::{Delivered, ProtocolKind};
use super::segments::Sent;
use super::tag;
use super::world::{World, times};
use crate::network::{Parcel, TraceId};
use trunkline_core::{Span, Tight};
use trunkline_scenario::ProtocolPlace;
use trunkline_transport::Extent;
use trunkline_transport::urp::{Control, Part, User};

impl World<'_> {
    /// A packet has come to the end of its way: the interface takes it in, if it has room.
    pub fn arrived(&mut self, parcel: Parcel) {
        let id = self.arrives_at[parcel.route.0 as usize];
        if self.read_at_once(id, &parcel) {
            return;
        }
        let flying = parcel.trace.and_then(|trace| self.landed(id, parcel.tag, trace));
        let now = self.net.now();
        let interface = &self.host_of(id).interface;
        let (is_deaf, memory) = (interface.deaf.is_some(), interface.memory);
        let end = &self.ends[id.index()];
        let host = &mut self.hosts[end.host];
        let held = host.memory + u64::from(parcel.size);
        let is_full = memory.is_some_and(|memory| held > memory.bytes());
        if is_full || now < host.deaf_until || is_deaf && host.working.board.is_busy(now) {
            host.overruns += 1;
            self.traffic[end.traffic].overruns += 1;
            self.spare.give_back(&mut self.net, flying);
            return self.gone(id, parcel.tag);
        }
        host.memory = held;
        if self.hears_at_once(id) {
            return self.understand(id, Received::whole(&parcel, false, flying));
        }
        let cost = self.board_cost(id, &parcel);
        match self.keep_received(id, &parcel, flying) {
            Some(pieces) => {
                let done = self.board_done(id, true, cost);
                self.then(done, id, Job::TakenIn(pieces));
            }
            None => self.occupy_board(id, cost),
        }
    }

    /// A packet was lost on its way.
    pub fn lost(&mut self, parcel: Parcel) {
        let id = self.arrives_at[parcel.route.0 as usize];
        parcel.trace.into_iter().for_each(|trace| self.net.release(trace));
        self.gone(id, parcel.tag);
    }

    /// The path has made copies of packets.
    pub fn copied(&mut self) {
        for (route, tag, copies) in self.net.take_copies() {
            let id = self.arrives_at[route.0 as usize];
            if !self.ends[id.index()].hears.is_urp() {
                self.segments.copied(tag as u32, copies);
            }
        }
    }

    /// A packet will not come to the protocol: nothing is kept for it any more.
    fn gone(&mut self, id: EndId, tag: u64) {
        match self.ends[id.index()].hears {
            ProtocolKind::Urp => {}
            ProtocolKind::Characters => {
                let records = self.records_of(id, tag);
                self.spare.give_back(&mut self.net, records);
            }
            ProtocolKind::Tcp | ProtocolKind::Listed => {
                let records = self.segments.lose(tag as u32);
                self.spare.give_back(&mut self.net, records);
            }
            ProtocolKind::Datagrams => {
                // A copy of a datagram that was lost has no records.
                self.segments.posted(tag as u32).map(Option::take);
                let records = self.segments.take_records(tag as u32);
                self.spare.give_back(&mut self.net, records);
                self.segments.lose(tag as u32);
                self.drained(id.peer());
            }
        }
    }

    /// The records of what a packet completes, with its hops. A copy of a packet that has come finds none.
    fn landed(&mut self, id: EndId, tag: u64, trace: TraceId) -> Option<Box<Flying>> {
        let flying = self.records_of(id, tag).and_then(|flying| self.travelled(flying, trace));
        if flying.is_none() {
            self.net.release(trace);
        }
        flying
    }

    fn records_of(&mut self, id: EndId, tag: u64) -> Option<Box<Flying>> {
        let hears = self.ends[id.index()].hears;
        if let ProtocolKind::Datagrams = hears
            && let Some(posted) = self.segments.posted(tag as u32).and_then(Option::take)
        {
            return Some(self.records_of_posted(posted));
        }
        if !hears.is_urp() {
            return self.segments.take_records(tag as u32);
        }
        let in_flight = self.ends[id.peer().index()].in_flight.as_mut()?;
        if hears == ProtocolKind::Characters {
            return in_flight.take_characters(tag::number(tag));
        }
        let seq = tag::unpack(tag, 0).trailer?.seq;
        in_flight.take_block(seq, tag::transmission(tag))
    }

    /// Adds a packet's hops to its records; `None` if they are another packet's, which the sum tells.
    fn travelled(&mut self, mut flying: Box<Flying>, trace: TraceId) -> Option<Box<Flying>> {
        let hops = self.net.hops(trace);
        let way: Span = hops.map(|hop| hop.queue + hop.transmit + hop.propagate).sum();
        if flying.departure.left + way != self.net.now() {
            return None;
        }
        if way.is_zero() {
            self.came_in_no_time();
        }
        flying.trace = Some(trace);
        flying.each_message(|trail| {
            for share in self.net.hops(trace) {
                let steps = self.lines.steps(&share).into_iter();
                steps.for_each(|step| trail.add(step.span, step.place, step.cause));
            }
        });
        Some(flying)
    }

    /// The time that the board spends on a packet that comes in: for each envelope, and for each block with the
    /// packet that ends it.
    fn board_cost(&self, id: EndId, parcel: &Parcel) -> Span {
        let interface = &self.host_of(id).interface;
        let per_envelope = times(interface.receive_block.per_byte, u64::from(parcel.size));
        let hears = self.ends[id.index()].hears;
        let is_part = match hears {
            ProtocolKind::Urp => tag::is_data(parcel.tag),
            // A block's end is missing: what asks for an echo or ends a message takes its place.
            ProtocolKind::Characters => tag::unpack(parcel.tag, 0).control.is_none(),
            _ => false,
        };
        if is_part {
            return per_envelope;
        }
        match self.is_control(hears, parcel.tag) {
            true => interface.control,
            false => per_envelope + interface.receive_block.fixed,
        }
    }

    /// Whether a packet is only a control, or an acknowledgement.
    fn is_control(&self, hears: ProtocolKind, tag: u64) -> bool {
        match hears {
            ProtocolKind::Urp => tag::unpack(tag, 0).control.is_some(),
            ProtocolKind::Characters => {
                let Part { data, control, .. } = tag::unpack(tag, 0);
                data.len == 0 && control != Some(Control::User(User::EOT))
            }
            _ => self.segments.get(tag as u32).is_none_or(Sent::is_control),
        }
    }

    /// Keeps a packet for the protocol. Data wait for what ends them; that answers how many pieces are now
    /// to be worked through.
    fn keep_received(
        &mut self,
        id: EndId,
        parcel: &Parcel,
        flying: Option<Box<Flying>>,
    ) -> Option<u32> {
        let envelopes = parcel.size;
        let hears = self.ends[id.index()].hears;
        let is_control = self.is_control(hears, parcel.tag);
        let end = &mut self.ends[id.index()];
        if !hears.is_urp() {
            end.inward.received.push_tight(Received::whole(parcel, is_control, flying));
            end.inward.incomplete += 1;
            return Some(std::mem::take(&mut end.inward.incomplete));
        }
        let part = tag::unpack(parcel.tag, end.inward.accepted);
        let incomplete = hears == ProtocolKind::Urp && tag::is_data(parcel.tag);
        if incomplete
            && end.inward.incomplete > 0
            && let Some(last) = end.inward.received.back_mut()
            && last.part.data.end() == part.data.offset
        {
            last.part.data.len += part.data.len;
            last.envelopes += envelopes;
            return None;
        }
        let received = Received { part, segment: None, is_control, envelopes, flying };
        end.inward.received.push_tight(received);
        end.inward.incomplete += 1;
        (!incomplete).then(|| std::mem::take(&mut end.inward.incomplete))
    }

    /// The board has the packets of a block, a control, or a datagram: the protocol gets them there, or from
    /// the host's processor.
    pub fn taken_in(&mut self, id: EndId, pieces: u32) {
        let host = self.host_of(id);
        if host.interface.protocol == ProtocolPlace::Board {
            return self.digested(id, pieces);
        }
        let end = &self.ends[id.index()];
        // Jobs end in the order in which they began, so that these are the first that are left.
        let (first, count) = (end.inward.claimed as usize, pieces as usize);
        let received =
            end.inward.received.range(first..(first + count).min(end.inward.received.len()));
        let (envelopes, is_control) = received.fold((0, false), |(sum, control), received| {
            (sum + u64::from(received.envelopes), control | received.is_control)
        });
        let moving = times(host.interface.programmed.unwrap_or(Span::ZERO), envelopes);
        let work = match is_control {
            true => host.processor.control,
            false => host.processor.receive_block.of(envelopes),
        };
        // A control is dealt with at once, unless a block of its channel is before it; a block's octets are
        // worked through in their turn.
        let at_once = is_control && self.ends[id.index()].inward.claimed == 0;
        self.ends[id.index()].inward.claimed += pieces;
        let done = match at_once {
            true => self.interrupt_done(id, work + moving),
            false => self.processor_done(id, work + moving),
        };
        self.then(done, id, Job::Digested(pieces));
    }

    /// The protocol gets so many pieces.
    pub fn digested(&mut self, id: EndId, pieces: u32) {
        for _ in 0..pieces {
            let end = &mut self.ends[id.index()];
            end.inward.claimed = end.inward.claimed.saturating_sub(1);
            let Some(received) = end.inward.received.pop_front() else { return };
            self.understand(id, received);
        }
    }

    /// The protocol gets a packet, or data of several.
    fn understand(&mut self, id: EndId, received: Received) {
        let now = self.net.now();
        let Received { part, segment, envelopes, flying, .. } = received;
        if let Some((place, ecn)) = segment {
            return match self.segments.take(place) {
                Some(Sent::Segment(segment)) => {
                    self.hear_segment(id, segment.heard(now, ecn), envelopes, flying);
                }
                Some(Sent::Frame(frame)) => self.hear_frame(id, &frame.0, envelopes, flying),
                Some(Sent::Datagram(_)) => self.hear_datagram(id, envelopes, flying),
                None => self.spare.give_back(&mut self.net, flying),
            };
        }
        self.hold(id, envelopes, flying);
        let end = &mut self.ends[id.index()];
        let answer = part.control.filter(|control| {
            matches!(control, Control::Echo(_) | Control::Rej(_) | Control::Ack(_))
        });
        // Characters are accepted as they come.
        let decides = part.trailer.is_some()
            || part.control.is_some()
            || end.hears == ProtocolKind::Characters;
        end.protocol.receive(now, part);
        if answer.is_some() {
            // Data that lie before their trailer stay.
            end.inward.held -= u64::from(envelopes);
            self.hosts[end.host].memory -= u64::from(envelopes);
            self.pump(id);
        } else if decides {
            self.pump(id);
            self.drop_rest(id);
        }
    }

    /// User bytes of a datagram of `size` that has come.
    pub fn bytes_of_datagram(&self, id: EndId, size: u32) -> u32 {
        size.saturating_sub(self.ends[id.peer().index()].protocol.datagram_header())
    }

    /// A datagram is accepted as it comes.
    fn hear_datagram(&mut self, id: EndId, envelopes: u32, flying: Option<Box<Flying>>) {
        let bytes = self.bytes_of_datagram(id, envelopes);
        self.hold(id, envelopes, flying);
        self.accepted(id, Delivered { data: Extent::new(0, bytes), end: true });
        self.drop_rest(id);
    }

    /// The interface's memory holds envelopes until they are accepted or thrown away.
    fn hold(&mut self, id: EndId, envelopes: u32, flying: Option<Box<Flying>>) {
        let end = &mut self.ends[id.index()];
        end.inward.held += u64::from(envelopes);
        let before = std::mem::replace(&mut end.inward.completing, flying);
        self.spare.give_back(&mut self.net, before);
    }

    /// What was not accepted has been thrown away: its memory and its records are free.
    fn drop_rest(&mut self, id: EndId) {
        let end = &mut self.ends[id.index()];
        let held = std::mem::take(&mut end.inward.held);
        self.spare.give_back(&mut self.net, end.inward.completing.take());
        self.hosts[end.host].memory -= held;
    }
}

impl Received {
    /// A packet that waits among the segments.
    fn whole(parcel: &Parcel, is_control: bool, flying: Option<Box<Flying>>) -> Received {
        let (part, envelopes) = (Part::data(Extent::default()), parcel.size);
        let segment = Some((parcel.tag as u32, parcel.ecn));
        Received { part, segment, is_control, envelopes, flying }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_scenario::Scenario;

    /// Records of hops that are kept when a run has ended, and packets that are still under way.
    fn kept(traffic: &str, memory: u32) -> (u64, u64) {
        let (records, _, in_flight) = kept_of(traffic, memory);
        (records, in_flight)
    }

    /// The same, with the segments of TCP that are kept.
    fn kept_of(traffic: &str, memory: u32) -> (u64, u64, u64) {
        let text = format!(
            "stop_after = \"60min\"\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\ninterface = \"small\"\n\
             processor = \"slow\"\n[processor.slow]\ninterrupt = \"3ms\"\n\
             [interface.small]\nmemory = {memory}\n[[link]]\nbetween = [\"a\", \"b\"]\n\
             rate = \"1Mbit/s\"\ndelay = \"2ms\"\nloss = \"2%\"\nduplicate = \"5%\"\n\
             [[traffic]]\nname = \"t\"\nfrom = \"a\"\nto = \"b\"\n{traffic}"
        );
        let scenario = Scenario::parse(&text, "test.toml").unwrap().pop().unwrap();
        let lowered = trunkline_scenario::Network::of(&scenario).unwrap();
        let mut world = World::new(&lowered).unwrap();
        world.run(&|_| ());
        let routes = world.ends.iter().map(|end| world.net.route_counts(end.route).in_flight);
        let in_flight = routes.sum();
        // New records are numbered on when none that was given back is left.
        let asked = 100_000;
        let last = (0..asked).map(|_| u64::from(world.net.trace().0)).max().unwrap_or(0);
        (last + 1 - asked, world.segments.len() as u64, in_flight)
    }

    #[test]
    fn segments_are_given_back() {
        let traffic = "kind = \"bulk\"\nbytes = \"500kB\"\ncount = 3\n\
                       transport = { kind = 'tcp', profile = 'trunkline' }";
        let (records, segments, in_flight) = kept_of(traffic, 7000);
        assert!(records <= in_flight && in_flight < 100, "{records} records, {in_flight} packets");
        // Besides those on the path, those between interface and protocol.
        assert!(segments <= in_flight + 20, "{segments} segments, {in_flight} packets");
    }

    #[test]
    fn records_of_hops_are_given_back() {
        let paced = "kind = \"paced\"\nsize = 100\nrate = \"500kbit/s\"\nduration = \"20s\"";
        assert_eq!(kept(paced, 1000), (0, 0));
        let (kept, in_flight) =
            kept("kind = \"bulk\"\nbytes = \"200kB\"\ncount = 3\ntransport = 'urp'", 700);
        assert!(kept <= in_flight && in_flight < 100, "{kept} records, {in_flight} packets");
    }
}
