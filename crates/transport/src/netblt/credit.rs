//! What a receiver may spend on repetitions: the data that come pay for them.
//!
//! Where many messages are under way, packets that repeat all that fit are full, and go back at several percent of the rate at which data
//! come. A way back that is 50 times narrower than the way there is full of them then: messages wait for each other, still more is under
//! way, and the law takes the wait for a queue on the way there.

use trunkline_core::Span;

/// Octets of data that pay for one of a repetition at most (a choice).
const PRICE: u64 = 256;
/// Octets that a buffer pays for at least, however small it is: its GO and OK fifteen times more (a choice; of a buffer of 64 packets
/// that is the price above).
const LEAST: u64 = 15 * 24;
/// By what the price is multiplied at most if round trips are long (a choice).
const DEAREST: u64 = 4;

/// What has been paid and not spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credit {
    /// Octets of data that pay for one.
    price: u64,
    /// Octets of data.
    data: u64,
    most: u64,
}

impl Credit {
    /// What repeats so many octets, and no more is ever saved, in a transfer with such buffers.
    pub fn new(most: usize, buffer: u32) -> Credit {
        let price = (u64::from(buffer) / LEAST).clamp(1, PRICE);
        let most = most as u64 * price;
        Credit { price, data: most, most }
    }

    /// Octets of data have come while a round trip takes `round`, which took `least` once. If it is longer something waits, perhaps
    /// messages behind repetitions, and these are as many times dearer.
    pub fn earn(&mut self, octets: u16, least: Span, round: Span) {
        let (octets, round) = (u64::from(octets), round.as_nanos().max(1));
        let worth = octets * least.as_nanos().min(round) / round;
        self.data = (self.data + worth.max(octets / DEAREST)).min(self.most);
    }

    /// Octets that may be repeated.
    pub fn octets(&self) -> usize {
        (self.data / self.price) as usize
    }

    /// So many octets have been repeated.
    pub fn spend(&mut self, octets: usize) {
        self.data = self.data.saturating_sub(octets as u64 * self.price);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netblt::wire::{Data, Dialect, Message, Terms};
    use crate::netblt::{RateLaw, Receiver};
    use trunkline_core::Time;

    /// The messages of each packet behind a hundred data packets, each a buffer, if nobody acknowledges any but the first.
    fn said(rate: RateLaw, buffer: u32) -> Vec<Vec<Message>> {
        let terms = Terms { buffer, packet: buffer as u16, outstanding: 200, ..Terms::default() };
        let mut receiver = Receiver::new(Dialect::V5, &terms, rate, Span::from_secs(8));
        receiver.provide(200);
        let now = Time::ZERO;
        while receiver.transmit(now).is_some() {}
        let answers = (1..101).map(|buffer| {
            let data =
                Data { ends_buffer: true, buffer, ack: 1, bytes: terms.packet, ..Data::default() };
            receiver.receive(now, &data, true);
            receiver.transmit(now).unwrap()
        });
        answers.collect()
    }

    /// With the fixed burst of RFC 1030 each packet repeats all that fits. With a law of ours it repeats what its buffer pays for, once what
    /// was saved is spent: 360 octets.
    #[test]
    fn with_a_law_repetitions_are_paid_for() {
        let fixed = said(RateLaw::Fixed, 1400);
        assert!(fixed.iter().all(|it| it.len() > 80), "{:?}", fixed[0].len());
        let repeated = |it: &[Message]| -> usize {
            it.iter().rev().skip(1).map(|it| it.size(Dialect::V5)).sum()
        };
        for (buffer, price) in [(1440, 4), (7200, 20)] {
            let ours = said(RateLaw::Adaptive, buffer);
            let octets: usize = ours[20..].iter().map(|it| repeated(it)).sum();
            let paid = 80 * buffer as usize / price;
            assert!(paid.abs_diff(octets) < 360, "{buffer}: {octets} for {paid}");
        }
    }
}
