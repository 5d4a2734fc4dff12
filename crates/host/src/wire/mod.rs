//! Protocols with their codecs: what a real host drives between its applications and a wire of packets.
//!
//! The simulator hands over segments as they are. On a real wire they are octets, and what comes may be anything. Users'
//! [octets] mean nothing and tell their place in the stream, so that every byte delivered is checked.

mod datagrams;
mod frames;
pub mod octets;
mod urp;

pub use datagrams::DatagramWire;
pub use frames::{FrameWire, PREFIX};
pub use urp::UrpWire;

use trunkline_core::Time;
use trunkline_transport::protocol::Unit;
use trunkline_transport::{Endpoint, Extent};

/// A protocol that speaks in packets of octets.
pub trait Wired: std::fmt::Debug + Send {
    /// The protocol.
    fn end(&self) -> &dyn Endpoint;
    /// The protocol.
    fn end_mut(&mut self) -> &mut dyn Endpoint;
    /// Takes user data over, the next of the stream. A message ends behind them if `end`.
    fn offer(&mut self, now: Time, data: Extent, end: bool);
    /// The next packet, of which at most `room` octets are appended to `out`; `None` if there is nothing for now.
    fn depart(&mut self, now: Time, room: usize, out: &mut Vec<u8>) -> Option<Departure>;
    /// Takes in a packet that counts `size` bytes on the path. Answers the number of the unit that it completes, if that
    /// is new and kept, to be [taken](Wired::take) now or later.
    fn arrive(&mut self, now: Time, octets: &[u8], size: u32) -> Option<u64>;
    /// The next data in the order of the stream.
    fn take(&mut self) -> Option<Delivered>;
    /// Whether each message stands for itself, and may be lost.
    fn is_datagram(&self) -> bool {
        false
    }
    /// Whether what it accepts lies with the host from then on, whatever the interface, so that room for more is what the
    /// application has read.
    fn is_of_host(&self) -> bool {
        false
    }
}

/// A packet that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Departure {
    /// Bytes that the path counts.
    pub size: u32,
    /// Control envelopes among them.
    pub controls: u16,
    /// Octets without meaning behind those written.
    pub filler: u32,
    /// Whether there was not room for everything.
    pub cut: bool,
    /// The stretch of the stream that goes out for the first time, told with the last packet of its segment.
    pub data: Extent,
    /// The unit that the packet ends; `None` for any other.
    pub unit: Option<Unit>,
}

/// Data that have been accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// The number of their unit.
    pub number: u64,
    /// User bytes.
    pub bytes: u32,
    /// Whether a message ends behind them.
    pub end: bool,
    /// Whether they are what was sent, the next of the stream; true where that cannot be told.
    pub right: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trunkline_core::{Seed, Span};
    use trunkline_transport::protocol::PROTOCOLS;
    use trunkline_transport::urp::{Check, Mode, Settings};

    fn urp() -> Box<dyn Wired> {
        // A count alone can be deceived by losses.
        let settings = Settings { block: 300, check: Check::Crc, ..Settings::default() };
        Box::new(UrpWire::new(Time::ZERO, settings, 64).expect("possible settings"))
    }

    /// A pair of each kind that answers for what it carries.
    fn pairs() -> Vec<[Box<dyn Wired>; 2]> {
        let listed = PROTOCOLS.iter().map(|entry| {
            let end = || (entry.build)(&entry.defaults()).expect("defaults");
            [end(), end()].map(|end| Box::new(FrameWire::new(end)) as Box<dyn Wired>)
        });
        listed.chain([[urp(), urp()]]).collect()
    }

    /// Lets the first end send messages of these sizes over a wire that keeps order and by chance loses and cuts;
    /// gives what the second got.
    fn talk(
        ends: &mut [Box<dyn Wired>; 2],
        sizes: &[u32],
        seed: u64,
        loses: bool,
    ) -> Vec<Delivered> {
        let (mut now, mut got, mut dice) = (Time::ZERO, Vec::new(), Seed(seed).stream("wire"));
        let mut place = 0;
        for &size in sizes {
            ends[0].offer(now, Extent::new(place, size), true);
            place += u64::from(size);
        }
        for _ in 0..100_000 {
            now += Span::from_millis(7);
            for from in [0, 1] {
                let mut octets = Vec::new();
                while let Some(packet) =
                    ends[from].depart(now, 80 + dice.below(2) as usize * 900, &mut octets)
                {
                    if !loses || dice.below(12) > 0 {
                        ends[1 - from].arrive(now, &octets, packet.size);
                    }
                    octets.clear();
                }
            }
            while let Some(delivered) = ends[1].take() {
                ends[1].end_mut().consumed(now, delivered.bytes.into());
                got.push(delivered);
            }
            if got.iter().filter(|it| it.end).count() == sizes.len() {
                return got;
            }
            ends.iter_mut().for_each(|end| end.end_mut().expire(now));
        }
        got
    }

    /// A packet may be filled up with octets of the stream that are no unit's, as an OPEN of NETBLT is: they count as sent
    /// when they go out as data.
    #[test]
    fn every_byte_goes_out_for_the_first_time_once() {
        const LONG: u32 = 200_000;
        for [mut from, mut to] in pairs() {
            from.offer(Time::ZERO, Extent::new(0, LONG), true);
            let (mut now, mut got, mut first) = (Time::ZERO, 0, Vec::new());
            while got < LONG {
                now += Span::from_millis(1);
                assert!(now < Time::ZERO + Span::from_secs(1000), "{got} bytes: {from:?}");
                let mut octets = Vec::new();
                while let Some(packet) = from.depart(now, 2000, &mut octets) {
                    first.push((packet.data.offset, packet.data.len));
                    to.arrive(now, &octets, packet.size);
                    octets.clear();
                }
                while let Some(packet) = to.depart(now, 2000, &mut octets) {
                    from.arrive(now, &octets, packet.size);
                    octets.clear();
                }
                while let Some(delivered) = to.take() {
                    to.end_mut().consumed(now, delivered.bytes.into());
                    got += delivered.bytes;
                }
                [&mut from, &mut to].into_iter().for_each(|end| end.end_mut().expire(now));
            }
            first.sort_unstable();
            let place = first.iter().fold(0u64, |place, &(offset, len)| {
                assert!(len == 0 || offset == place, "{place}: {offset}, {len}: {from:?}");
                place + u64::from(len)
            });
            assert_eq!(place, u64::from(LONG));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn every_message_arrives_once_and_in_order(
            sizes in prop::collection::vec(1u32..3000, 1..8), seed: u64,
        ) {
            for mut ends in pairs() {
                let got = talk(&mut ends, &sizes, seed, true);
                prop_assert!(got.iter().all(|it| it.right), "{:?}", ends[0]);
                let numbers = got.iter().map(|it| it.number);
                prop_assert!(numbers.eq(0..got.len() as u64));
                let mut messages = vec![0];
                for delivered in &got {
                    *messages.last_mut().expect("one") += delivered.bytes;
                    messages.extend(delivered.end.then_some(0));
                }
                messages.pop();
                prop_assert_eq!(&messages, &sizes);
            }
        }

        /// Units of characters are requests, and each direction has a mode of its own.
        #[test]
        fn characters_arrive_where_nothing_is_lost(
            sizes in prop::collection::vec(0u32..3000, 1..8), seed: u64, block in 1u16..600,
            packet in 0u32..40, near in 0usize..3, far in 0usize..3,
        ) {
            let [near, far] = [near, far].map(|index| [Mode::Block, Mode::Character, Mode::Raw][index]);
            let end = |mode, theirs| {
                let settings = Settings { block, mode, eot: true, ..Settings::default() };
                let end = UrpWire::new(Time::ZERO, settings, packet).expect("possible settings");
                Box::new(end.hearing(theirs)) as Box<dyn Wired>
            };
            let mut ends = [end(near, far), end(far, near)];
            let got = talk(&mut ends, &sizes, seed, false);
            let mut messages = vec![0];
            for delivered in &got {
                *messages.last_mut().expect("one") += delivered.bytes;
                messages.extend(delivered.end.then_some(0));
            }
            messages.pop();
            prop_assert_eq!(&messages, &sizes);
            let units: u64 = sizes.iter().map(|&size| ends[0].end().units_of(size, true)).sum();
            prop_assert_eq!(ends[0].end().answered(), units);
        }

        #[test]
        fn whatever_comes_is_taken(octets in prop::collection::vec(any::<u8>(), 0..120), size: u32) {
            for [mut end, _] in pairs() {
                end.arrive(Time::ZERO, &octets, size);
                while end.take().is_some() {}
            }
        }
    }

    /// A datagram counts its header, and each that comes is a message, copies too.
    #[test]
    fn datagrams_are_told_by_their_size() {
        let (mut near, mut far) = (DatagramWire::new(28, 0), DatagramWire::new(0, 28));
        near.offer(Time::ZERO, Extent::new(0, 100), true);
        let mut octets = Vec::new();
        let packet = near.depart(Time::ZERO, 1400, &mut octets).expect("a datagram");
        assert_eq!((packet.size, packet.filler, octets.len()), (128, 100, 0));
        let numbers = [(); 2].map(|()| far.arrive(Time::ZERO, &octets, packet.size));
        assert_eq!(numbers, [Some(0), Some(1)]);
        let taken = std::iter::from_fn(|| far.take()).map(|it| (it.number, it.bytes, it.end));
        assert_eq!(taken.collect::<Vec<_>>(), [(0, 100, true), (1, 100, true)]);
        assert_eq!(near.end().answered(), 1);
    }
}
