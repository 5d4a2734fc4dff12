//! Long-lived connections of TCP through one bottleneck: workload B1.

use super::constant::{ACCESS_DELAY, ACCESS_LIMIT, RATE, SIZE, link};
use super::{Outcome, Switches};
use anyhow::Result;
use std::sync::Arc;
use trunkline_core::{Channel, Ecn, Rate, Seed, Span, Time};
use trunkline_path::{DisciplineSpec, Limit, LinkSpec};
use trunkline_sim::{Event, LinkId, Network, Parcel, RouteId};
use trunkline_transport::Extent;
use trunkline_transport::tcp::congestion::Algorithm;
use trunkline_transport::tcp::{Flags, Segment, Seq, Settings, Tcp};

/// User bytes of a full segment: [`SIZE`] less headers and time stamps, of which only the room is taken here.
pub const MSS: u32 = 1448;
/// Bytes of an acknowledgement, time stamps included.
pub const ACK: u32 = SIZE - MSS;
/// Of the bottleneck, in bits per second.
pub const BOTTLENECK: u64 = RATE / 10;
/// One way between the routers.
pub const DELAY: Span = Span::from_millis(10);
/// Packets that wait at the bottleneck at most.
pub const LIMIT: u64 = 1666;
/// Segments of the first window.
pub const FIRST_WINDOW: u32 = 10;
/// Over which the starts are spread.
pub const SPREAD: Span = Span::from_secs(1);
/// Simulated.
pub const LENGTH: Time = Time::from_nanos(10_000_000_000);

/// NewReno without SACK, an acknowledgement for each packet, and windows that the buffers never limit.
fn settings() -> Settings {
    Settings {
        mss: MSS,
        receive_buffer: 1 << 26,
        send_buffer: 1 << 26,
        initial_window: FIRST_WINDOW,
        sack: false,
        timestamps: false,
        delayed_ack: None,
        congestion: Algorithm::NEW_RENO,
        rack: false,
        prr: false,
        ..Settings::default()
    }
}

/// A connection: data go one way.
#[derive(Debug)]
struct Flow {
    sender: Tcp<Extent>,
    receiver: Tcp<Extent>,
    /// When the timer runs out that is set for the sender.
    armed: Time,
}

/// The dumbbell with its hosts, ready to run.
pub struct Dumbbell {
    network: Network,
    links: Vec<LinkId>,
    /// Routes with even numbers carry data, those with odd numbers acknowledgements.
    flows: Vec<Flow>,
    length: Time,
}

impl Dumbbell {
    /// Builds it, with so many pairs of hosts.
    pub fn new(pairs: usize, length: Time, switches: Switches) -> Result<Dumbbell> {
        let mut network = Network::new(Seed(1));
        switches.apply(&mut network)?;
        let trunk = trunk();
        let access = link(ACCESS_DELAY, DisciplineSpec::fifo(ACCESS_LIMIT));
        let mut links = vec![network.add_link(&trunk, "there"), network.add_link(&trunk, "back")];
        for pair in 0..pairs as u64 {
            let mut own = [0; 4].map(|_| LinkId(0));
            for (index, link) in own.iter_mut().enumerate() {
                *link = network.add_link(&access, &format!("{pair} {index}"));
            }
            network.add_route(Channel(2 * pair), &[own[0], links[0], own[1]]);
            network.add_route(Channel(2 * pair + 1), &[own[2], links[1], own[3]]);
            links.extend(own);
        }
        let settings = Arc::new(settings());
        let flow = || -> Result<Flow> {
            let tcp = || Tcp::connected(Arc::clone(&settings), &settings);
            Ok(Flow { sender: tcp()?, receiver: tcp()?, armed: Time::NEVER })
        };
        let flows = (0..pairs).map(|_| flow()).collect::<Result<_>>()?;
        Ok(Dumbbell { network, links, flows, length })
    }

    /// Runs it to the end.
    pub fn run(&mut self) -> Result<Outcome> {
        let pairs = self.flows.len() as u64;
        for flow in 0..pairs {
            self.network.set_timer(Time::ZERO + SPREAD.scaled(flow, pairs), flow | START);
        }
        let mut dropped = 0;
        while let Some(event) = self.network.next(self.length) {
            match event {
                Event::Arrived(parcel) if parcel.route.0 % 2 == 0 => self.data(parcel),
                Event::Arrived(parcel) => self.acknowledgement(parcel),
                Event::Timer(number) => self.timer(number),
                Event::Lost(..) => dropped += 1,
            }
        }
        self.network.end_record()?;
        let passed = |link: LinkId| self.network.counts(link).delivered;
        let hops = self.links.iter().map(|&link| passed(link)).sum();
        Ok(Outcome { delivered: passed(self.links[0]), dropped, hops })
    }

    fn data(&mut self, parcel: Parcel) {
        let now = self.network.now();
        let receiver = &mut self.flows[parcel.route.0 as usize / 2].receiver;
        receiver.receive(now, unpack(parcel.tag));
        while let Some(data) = receiver.take() {
            receiver.consumed(now, u64::from(data.len));
        }
        let route = RouteId(parcel.route.0 + 1);
        while let Some(segment) = receiver.transmit(now) {
            self.network.inject(parcel_of(route, &segment));
        }
    }

    fn acknowledgement(&mut self, parcel: Parcel) {
        let (now, flow) = (self.network.now(), parcel.route.0 as usize / 2);
        self.flows[flow].sender.receive(now, unpack(parcel.tag));
        self.transmit(flow);
    }

    /// A connection starts, or a sender's timer has run out; one that was set anew for earlier means nothing.
    fn timer(&mut self, number: u64) {
        let (now, flow) = (self.network.now(), (number & !START) as usize);
        let Flow { sender, armed, .. } = &mut self.flows[flow];
        if number & START != 0 {
            sender.offer(now, Extent::new(0, u32::MAX));
        } else if *armed > now {
            return;
        } else {
            *armed = Time::NEVER;
            sender.expire(now);
        }
        self.transmit(flow);
    }

    /// Sends what a sender has to send, and sees to its timer. A deadline that has moved away is looked at
    /// when the timer for the old one runs out.
    #[inline]
    fn transmit(&mut self, index: usize) {
        let now = self.network.now();
        let Flow { sender, armed, .. } = &mut self.flows[index];
        let route = RouteId(2 * index as u32);
        while let Some(segment) = sender.transmit(now) {
            self.network.inject(parcel_of(route, &segment));
        }
        if let Some(deadline) = sender.deadline()
            && deadline < *armed
        {
            *armed = deadline;
            self.network.set_timer(deadline, index as u64);
        }
    }
}

/// Marks the timer of a start.
const START: u64 = 1 << 32;

fn trunk() -> LinkSpec {
    let discipline = DisciplineSpec::fifo(Limit::Packets(LIMIT));
    let rate = Some(Rate::from_bits_per_second(BOTTLENECK));
    LinkSpec { rate, ..link(DELAY, discipline) }
}

/// A segment as a packet: its number in the tag, that of the data or the one expected, and its length or the
/// window. Everything else is the same in all of them.
#[inline]
fn parcel_of(route: RouteId, segment: &Segment<Extent>) -> Parcel {
    let len = segment.data.len;
    let (number, rest) = match len {
        0 => (segment.ack, u32::from(segment.window) | EMPTY),
        len => (segment.seq, len),
    };
    let tag = u64::from(number.get()) | u64::from(rest) << 32;
    Parcel { route, size: len + ACK, controls: 0, ecn: Ecn::NotEct, tag, trace: None }
}

/// Tells a segment without data.
const EMPTY: u32 = 1 << 16;

/// The segment of a tag. Neither end's first number is anything but 0, so that each expects and has sent
/// octet 1 of the direction in which nothing goes.
#[inline]
fn unpack(tag: u64) -> Segment<Extent> {
    let (number, rest) = (Seq::new(tag as u32), (tag >> 32) as u32);
    let still = Seq::new(1);
    if rest & EMPTY != 0 {
        let none = Extent::default();
        return Segment::new(still, number, Flags::ACK, rest as u16, none, Time::ZERO);
    }
    let data = Extent::new(u64::from(number.get()), rest);
    Segment::new(number, still, Flags::ACK, u16::MAX, data, Time::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that is never idle carries 833,333 packets of 1500 bytes in the time. Other simulators have, rounded, 0.80
    /// to 0.82 million with 100 pairs, and with 10,000 more than that line can carry (0.84 to 0.85).
    #[test]
    fn b1_fills_its_line_as_its_peers_do() {
        for (pairs, possible) in [(100, 795_000..825_000), (1000, 820_000..833_334)] {
            let outcome = Dumbbell::new(pairs, LENGTH, Switches::default()).unwrap().run().unwrap();
            assert!(possible.contains(&outcome.delivered), "{pairs} pairs: {outcome:?}");
            // Three hops there; three back, for what the receivers had got in time to answer it.
            assert!(outcome.hops > 6 * outcome.delivered - 6 * 4000, "{outcome:?}");
        }
    }

    #[test]
    fn a_tag_says_what_its_segment_says() {
        let numbers = [Seq::new(7), Seq::new(u32::MAX)];
        for (data, window) in [(Extent::new(7, MSS), u16::MAX), (Extent::default(), 9)] {
            let still = Seq::new(1);
            let [seq, ack] = if data.len > 0 { [numbers[0], still] } else { [still, numbers[1]] };
            let segment = Segment::new(seq, ack, Flags::ACK, window, data, Time::ZERO);
            assert_eq!(unpack(parcel_of(RouteId(0), &segment).tag), segment);
        }
    }
}
