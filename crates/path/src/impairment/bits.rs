//! Bit errors: packets that arrive damaged and are refused by the receiver's check sequence.

use super::achieved::BitTally;
use trunkline_core::{Probability, Stream};

/// Bytes at risk in each packet besides its user bytes: the check sequence itself, CRC-32 in
/// Ethernet (IEEE 802.3) and in AAL5 (ITU-T I.363.5).
pub const CHECK_SEQUENCE_BYTES: u32 = 4;

/// The bits of a packet of `size` user bytes that an error may hit: its user bytes and 4 bytes of
/// check sequence. Framing beyond that is not counted, because what an error there does depends on
/// the equipment: a damaged flag or cell header may hurt another packet or none.
pub fn bits_at_risk(size: u32) -> u64 {
    8 * (u64::from(size) + u64::from(CHECK_SEQUENCE_BYTES))
}

/// The probability that a packet of `size` user bytes is damaged if each bit is wrong with
/// probability `rate`, independently: 1 − (1 − rate)^bits.
pub fn damage_probability(rate: Probability, size: u32) -> f64 {
    -libm::expm1(bits_at_risk(size) as f64 * libm::log1p(-rate.as_f64()))
}

/// Bit errors at work. The distance to the next error is drawn once (geometric) and then counted
/// down, which is exact and costs a subtraction for each packet.
#[derive(Debug)]
pub(super) struct BitErrors {
    stream: Stream,
    /// The error rate for which the distance was drawn, and the good bits before the next error.
    next: Option<(Probability, u64)>,
}

impl BitErrors {
    pub(super) fn new(stream: Stream) -> BitErrors {
        BitErrors { stream, next: None }
    }

    /// The number of the next `bits` bits that are good before the first error; all of them if no error
    /// hits. The process has no memory, so that after an error, and when the rate changes, the next
    /// distance is simply drawn anew from the end of the packet.
    fn good_bits(&mut self, rate: Probability, bits: u64) -> u64 {
        let left = match self.next {
            Some((drawn_for, left)) if drawn_for == rate => left,
            _ => self.stream.failures_before(rate),
        };
        let hit = left < bits;
        self.next = (!hit).then(|| (rate, left - bits));
        left.min(bits)
    }

    /// Whether the next packet, of `size` user bytes, is damaged. The second value is the number of bits
    /// looked at to know: all up to the first error.
    pub(super) fn strike(&mut self, rate: Probability, size: u32) -> (bool, u64) {
        if rate.is_never() {
            return (false, 0);
        }
        let bits = bits_at_risk(size);
        let good = self.good_bits(rate, bits);
        (good < bits, bits.min(good + 1))
    }
}

/// Books what [`BitErrors::strike`] answered.
pub(super) fn book(tally: &mut BitTally, rate: Probability, (damaged, bits): (bool, u64)) {
    if !rate.is_never() {
        tally.count(rate.as_f64(), bits, damaged);
    }
}
