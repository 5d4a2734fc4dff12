//! One end of a URP flow: the protocol with its codec, and the order of the datagrams that carry its packets.

use crate::wire::message::{UrpReading, UrpSpec};
use trunkline_core::{Span, Time};
use trunkline_host::wire::{UrpWire, Wired};
use trunkline_transport::Extent;
use trunkline_transport::envelope::packed;
use trunkline_transport::urp::{Check, Echo, Settings, SettingsError};

/// The most user octets that wait in an end to be sent; what comes on top is not taken from the other.
pub const MOST_WAITING: u64 = 256 * 1024;
/// The fewest octets of a datagram that hold a block's trailer with its check sum and some data.
const LEAST_DATAGRAM: u32 = 64;

/// An end of a channel whose envelopes travel in datagrams.
///
/// URP needs a network that keeps order (`trunkline_transport::urp`). Datagrams are numbered, and one that
/// comes after a later one is left out, which URP takes for a loss; the blocks have check sums.
#[derive(Debug)]
pub struct Channel {
    urp: UrpWire,
    /// Octets handed over.
    offered: u64,
    /// The number that the next datagram must at least have.
    expected: u64,
    disordered: u64,
    departed: u32,
    /// Octets of the message in delivery.
    partial: u32,
}

impl Channel {
    /// An open channel.
    ///
    /// # Errors
    /// If the settings are not possible.
    pub fn open(now: Time, spec: &UrpSpec) -> Result<Channel, SettingsError> {
        let settings = Settings {
            block: spec.block,
            outstanding: spec.outstanding,
            timeout: Span::from_nanos(spec.timeout_ns),
            echo: Echo::Consumption,
            check: Check::Crc,
            // A path may be down for a while: asked as long as the session lasts.
            enquiries: u8::MAX,
            ..Settings::default()
        };
        let envelopes = packed::fitting(spec.datagram.max(LEAST_DATAGRAM) as usize);
        Ok(Channel {
            urp: UrpWire::new(now, settings, envelopes as u32)?,
            offered: 0,
            expected: 0,
            disordered: 0,
            departed: 0,
            partial: 0,
        })
    }

    /// Hands over a message.
    pub fn offer(&mut self, now: Time, octets: u32) {
        self.urp.offer(now, Extent::new(self.offered, octets), true);
        self.offered += u64::from(octets);
    }

    /// Takes in the user octets of datagram `number`.
    pub fn arrive(&mut self, now: Time, number: u32, octets: &[u8]) {
        if u64::from(number) < self.expected {
            self.disordered += 1;
            return;
        }
        self.expected = u64::from(number) + 1;
        self.urp.arrive(now, octets, octets.len() as u32);
    }

    /// The number and the user octets of the next datagram to be sent.
    pub fn depart(&mut self, now: Time) -> Option<(u32, Vec<u8>)> {
        let mut octets = Vec::new();
        self.urp.depart(now, usize::MAX, &mut octets)?;
        let number = self.departed;
        self.departed = self.departed.wrapping_add(1);
        Some((number, octets))
    }

    /// Takes what has come: octets, and the whole message's length if one ends.
    pub fn take(&mut self, now: Time) -> Option<(u32, Option<u32>)> {
        let delivered = self.urp.take()?;
        self.urp.end_mut().consumed(now, u64::from(delivered.bytes));
        self.partial = self.partial.saturating_add(delivered.bytes);
        let whole = delivered.end.then(|| std::mem::take(&mut self.partial));
        Some((delivered.bytes, whole))
    }

    /// User octets that wait to be sent.
    pub fn waiting(&self) -> u64 {
        self.urp.end().unsent()
    }

    /// When [`expire`](Channel::expire) is to be called.
    pub fn deadline(&self) -> Option<Time> {
        self.urp.end().deadline()
    }

    /// Does what is due.
    pub fn expire(&mut self, now: Time) {
        self.urp.end_mut().expire(now);
    }

    /// The counts of the channel.
    pub fn reading(&self) -> UrpReading {
        UrpReading::of(&self.urp.urp().counters(), self.disordered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trunkline_core::Seed;

    fn spec(block: u16, outstanding: u8, datagram: u32) -> UrpSpec {
        UrpSpec { block, outstanding, timeout_ns: 1_000_000_000, datagram }
    }

    /// Lets both ends talk over a network that by chance loses, doubles and swaps; gives the lengths of
    /// the messages that `b` got.
    fn talk(a: &mut Channel, b: &mut Channel, seed: u64, messages: usize) -> Vec<u32> {
        let (mut now, mut got, mut dice) = (Time::ZERO, Vec::new(), Seed(seed).stream("network"));
        for _ in 0..30_000 {
            let mut moved = [&mut *a, &mut *b]
                .map(|end| std::iter::from_fn(|| end.depart(now)).collect::<Vec<_>>());
            now += Span::from_millis(5);
            for (list, to) in moved.iter_mut().zip([&mut *b, &mut *a]) {
                if dice.below(12) == 1 {
                    list.reverse();
                }
                for (number, octets) in list.iter() {
                    match dice.below(12) {
                        2 => {}
                        3 => (0..2).for_each(|_| to.arrive(now, *number, octets)),
                        _ => to.arrive(now, *number, octets),
                    }
                }
            }
            got.extend(std::iter::from_fn(|| b.take(now)).filter_map(|(_, whole)| whole));
            if got.len() == messages {
                return got;
            }
            for end in [&mut *a, &mut *b] {
                if end.deadline().is_some_and(|due| due <= now) {
                    end.expire(now);
                }
            }
        }
        got
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn messages_arrive_whole_over_a_bad_network(
            sizes in prop::collection::vec(1u32..3000, 1..12),
            seed: u64, block in 200u16..1500, outstanding in 1u8..=7,
        ) {
            let made = || Channel::open(Time::ZERO, &spec(block, outstanding, 500)).unwrap();
            let (mut a, mut b) = (made(), made());
            sizes.iter().for_each(|&size| a.offer(Time::ZERO, size));
            prop_assert_eq!(talk(&mut a, &mut b, seed, sizes.len()), sizes);
        }

        #[test]
        fn whatever_comes_is_taken(octets in prop::collection::vec(any::<u8>(), 0..80), number: u32) {
            let mut end = Channel::open(Time::ZERO, &spec(256, 3, 500)).unwrap();
            end.arrive(Time::ZERO, number, &octets);
            let count = std::iter::from_fn(|| end.depart(Time::ZERO)).take(100).count();
            prop_assert!(count < 100);
        }
    }

    #[test]
    fn impossible_settings_are_refused() {
        assert!(Channel::open(Time::ZERO, &spec(0, 3, 500)).is_err());
        assert!(Channel::open(Time::ZERO, &spec(256, 8, 500)).is_err());
    }

    #[test]
    fn datagrams_keep_to_their_length() {
        let mut end = Channel::open(Time::ZERO, &spec(4096, 7, 500)).unwrap();
        end.offer(Time::ZERO, 9000);
        let lengths: Vec<usize> =
            std::iter::from_fn(|| end.depart(Time::ZERO)).map(|(_, octets)| octets.len()).collect();
        assert!(lengths.len() > 18 && lengths.iter().all(|&length| length <= 500), "{lengths:?}");
    }
}
