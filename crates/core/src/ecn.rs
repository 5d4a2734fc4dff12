//! Explicit congestion notification: two bits of the IP header.

use serde::{Deserialize, Serialize};

/// The ECN field of a packet (RFC 3168 §5, figure 1), in the order of its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Ecn {
    /// The sender does not react to marks: whoever is congested has to drop.
    #[default]
    NotEct = 0b00,
    /// ECT(1): the sender asks for the low-latency service, with marks early and often (RFC 9331 §4.1).
    Ect1 = 0b01,
    /// ECT(0): the sender takes a mark as it would take a loss (RFC 3168 §5).
    Ect0 = 0b10,
    /// Congestion experienced: marked on the way.
    Ce = 0b11,
}

impl Ecn {
    /// Every value, at the index of its bits.
    pub const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

    /// The two lowest of `bits`, such as those of a traffic class octet.
    #[inline]
    pub fn from_bits(bits: u8) -> Ecn {
        Ecn::ALL[usize::from(bits & 0b11)]
    }

    /// The two bits as they stand in the header.
    #[inline]
    pub fn bits(self) -> u8 {
        self as u8
    }

    /// Whether the packet may be marked instead of dropped. A packet that has been marked before may
    /// (RFC 3168 §5).
    #[inline]
    pub fn is_capable(self) -> bool {
        self != Ecn::NotEct
    }

    /// Whether the packet belongs into the low-latency queue of a coupled pair: ECT(1) and, as it may have been
    /// that before it was marked, CE (RFC 9331 §5.1).
    #[inline]
    pub fn is_low_latency(self) -> bool {
        self.bits() & 1 == 1
    }

    /// The codepoint after marking: a packet that is not capable keeps its own.
    #[inline]
    pub fn marked(self) -> Ecn {
        if self.is_capable() { Ecn::Ce } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_rfc_3168() {
        // RFC 3168 figure 1: 00 Not-ECT, 01 ECT(1), 10 ECT(0), 11 CE.
        for bits in 0..=u8::MAX {
            assert_eq!(Ecn::from_bits(bits).bits(), bits & 3);
        }
        assert_eq!((Ecn::from_bits(1), Ecn::from_bits(2)), (Ecn::Ect1, Ecn::Ect0));
    }

    #[test]
    fn only_the_capable_are_marked() {
        assert_eq!(Ecn::ALL.map(Ecn::marked), [Ecn::NotEct, Ecn::Ce, Ecn::Ce, Ecn::Ce]);
        assert_eq!(Ecn::ALL.map(Ecn::is_low_latency), [false, true, false, true]);
    }
}
