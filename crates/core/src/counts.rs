//! Law 6: every packet that enters is delivered, dropped by a named cause, or still in flight.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Add;

/// The reason why a packet was not delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum DropCause {
    /// The queue was at its limit.
    QueueLimit,
    /// CoDel found that the queue had stood too long (RFC 8289).
    CoDel,
    /// A rule of the discipline's own, before the queue was full: early packet discard's threshold, or another's.
    EarlyDiscard,
    /// The cell buffer filled in the middle of the packet; the rest of it was useless.
    PartialPacket,
    /// Lost on the line by the loss model.
    Loss,
    /// Damaged on the line by bit errors and refused by the receiver's check sequence.
    BitError,
    /// PIE's random drop against a standing delay (RFC 8033).
    Pie,
    /// DualPI2's random drop, or its drop under overload (RFC 9332).
    #[serde(rename = "dualpi2")]
    DualPi2,
    /// It collided with others' frames on a shared medium as often as the medium tries (IEEE 802.3 §4.2.3.2.5).
    Collision,
    /// Larger than the interface it leaves by can send. The emulator's own.
    TooBig,
    /// The emulator had no buffer for it. The emulator's own.
    NoBuffer,
    /// The receive ring was full before the emulator came to read it. The emulator's own.
    RingFull,
    /// A super-frame that the emulator could not cut into wire frames. The emulator's own.
    Unsegmentable,
    /// The interface refused it, or was down. The emulator's own.
    SendFailed,
}

impl DropCause {
    /// Every cause.
    pub const ALL: [DropCause; 14] = [
        DropCause::QueueLimit,
        DropCause::CoDel,
        DropCause::EarlyDiscard,
        DropCause::PartialPacket,
        DropCause::Loss,
        DropCause::BitError,
        DropCause::Pie,
        DropCause::DualPi2,
        DropCause::Collision,
        DropCause::TooBig,
        DropCause::NoBuffer,
        DropCause::RingFull,
        DropCause::Unsegmentable,
        DropCause::SendFailed,
    ];

    /// Whether it is a failing of the emulator, not a property of the modelled path.
    pub fn is_emulator(self) -> bool {
        self as usize >= DropCause::TooBig as usize
    }

    /// The name in tables, JSON and captures.
    pub fn name(self) -> &'static str {
        match self {
            DropCause::QueueLimit => "queue-limit",
            DropCause::CoDel => "codel",
            DropCause::EarlyDiscard => "early-discard",
            DropCause::PartialPacket => "partial-packet",
            DropCause::Loss => "loss",
            DropCause::BitError => "bit-error",
            DropCause::Pie => "pie",
            DropCause::DualPi2 => "dualpi2",
            DropCause::Collision => "collision",
            DropCause::TooBig => "too-big",
            DropCause::NoBuffer => "no-buffer",
            DropCause::RingFull => "ring-full",
            DropCause::Unsegmentable => "unsegmentable",
            DropCause::SendFailed => "send-failed",
        }
    }
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Counts of the packets that entered one direction of a path, by what became of them.
///
/// `entered + duplicated = delivered + dropped + in flight`, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Packets that entered.
    pub entered: u64,
    /// User bytes that entered.
    pub entered_bytes: u64,
    /// Extra copies that the path made.
    pub duplicated: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
    /// User bytes delivered, copies included.
    pub delivered_bytes: u64,
    /// Packets that a discipline here has marked as having experienced congestion. They go on: this is no
    /// part of the balance.
    pub marked: u64,
    dropped: [u64; DropCause::ALL.len()],
}

impl Counts {
    /// Counts one packet dropped by `cause`.
    pub fn drop(&mut self, cause: DropCause) {
        self.drop_many(cause, 1);
    }
    /// Counts `packets` dropped by `cause`.
    pub fn drop_many(&mut self, cause: DropCause, packets: u64) {
        self.dropped[cause as usize] += packets;
    }
    /// The number dropped by `cause`.
    pub fn dropped_by(&self, cause: DropCause) -> u64 {
        self.dropped[cause as usize]
    }
    /// The number dropped in all.
    pub fn dropped(&self) -> u64 {
        self.dropped.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }
    /// The number dropped by failings of the emulator.
    pub fn dropped_by_emulator(&self) -> u64 {
        self.drops().filter(|(cause, _)| cause.is_emulator()).map(|(_, count)| count).sum()
    }
    /// Each cause that dropped anything, with its count.
    pub fn drops(&self) -> impl Iterator<Item = (DropCause, u64)> + '_ {
        DropCause::ALL.into_iter().map(|c| (c, self.dropped_by(c))).filter(|&(_, count)| count > 0)
    }
    /// The number that must still be in flight by the other counts.
    pub fn in_flight(&self) -> u64 {
        (self.entered + self.duplicated).saturating_sub(self.delivered + self.dropped())
    }
}

impl Add for Counts {
    type Output = Counts;

    /// The counts of two together. One side may have counted less than nothing delivered, to be made up by the other.
    fn add(self, other: Counts) -> Counts {
        Counts {
            entered: self.entered.wrapping_add(other.entered),
            entered_bytes: self.entered_bytes.wrapping_add(other.entered_bytes),
            duplicated: self.duplicated.wrapping_add(other.duplicated),
            delivered: self.delivered.wrapping_add(other.delivered),
            delivered_bytes: self.delivered_bytes.wrapping_add(other.delivered_bytes),
            marked: self.marked.wrapping_add(other.marked),
            dropped: std::array::from_fn(|cause| self.dropped[cause] + other.dropped[cause]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_index_themselves() {
        for (index, cause) in DropCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, index);
        }
    }

    #[test]
    fn what_is_missing_is_in_flight() {
        let mut counts = Counts { entered: 10, duplicated: 1, delivered: 6, ..Counts::default() };
        counts.drop(DropCause::Loss);
        counts.drop(DropCause::TooBig);
        assert_eq!((counts.dropped(), counts.dropped_by_emulator(), counts.in_flight()), (2, 1, 3));
    }

    #[test]
    fn causes_have_names_of_their_own() {
        let mut names = DropCause::ALL.map(|cause| cause.to_string());
        assert_eq!(format!("[{:>6}]", DropCause::Loss), "[  loss]");
        names.sort();
        assert!(names.windows(2).all(|two| two[0] != two[1]) && !names[0].is_empty());
    }
}
