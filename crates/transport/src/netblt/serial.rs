//! Numbers of control messages: modulo 2^16, and which of them have come.

/// How far ahead of what has come without a gap a message may be.
pub const WINDOW: u16 = 1024;

/// By how much `number` is ahead of `of`; a number behind it is far ahead.
pub fn ahead(number: u16, of: u16) -> u16 {
    number.wrapping_sub(of)
}

/// The messages that have come, as their receiver keeps account of them.
#[derive(Debug, Clone)]
pub struct Heard {
    /// All up to this one.
    high: u16,
    /// Those behind it: bit i of them all is number `high + 1 + i`.
    beyond: [u64; WINDOW as usize / 64],
}

impl Default for Heard {
    fn default() -> Heard {
        Heard { high: 0, beyond: [0; WINDOW as usize / 64] }
    }
}

impl Heard {
    /// Notes a message. Answers whether it is new and near enough to be taken.
    pub fn note(&mut self, number: u16) -> bool {
        let place = ahead(number, self.high.wrapping_add(1));
        if place >= WINDOW {
            return false;
        }
        let (word, bit) = (usize::from(place / 64), 1 << (place % 64));
        if self.beyond[word] & bit != 0 {
            return false;
        }
        self.beyond[word] |= bit;
        while self.beyond[0] & 1 != 0 {
            self.advance();
        }
        true
    }

    fn advance(&mut self) {
        self.high = self.high.wrapping_add(1);
        for index in 0..self.beyond.len() {
            let next = self.beyond.get(index + 1).map_or(0, |word| word << 63);
            self.beyond[index] = self.beyond[index] >> 1 | next;
        }
    }

    /// The number up to which all have come.
    pub fn high(&self) -> u16 {
        self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_is_new_once_and_gaps_close(
            from in 0u32..140_000, shuffle in prop::collection::vec(0usize..40, 200),
        ) {
            let mut heard = Heard::default();
            for number in 1..=from {
                prop_assert!(heard.note(number as u16));
            }
            let mut numbers: Vec<u32> = (from + 1..=from + 200).collect();
            for (at, by) in shuffle.into_iter().enumerate() {
                numbers.swap(at, (at + by).min(199));
            }
            for &number in &numbers {
                prop_assert!(heard.note(number as u16));
                prop_assert!(!heard.note(number as u16));
            }
            prop_assert_eq!(heard.high(), (from + 200) as u16);
            prop_assert!(!heard.note(((from + 201) as u16).wrapping_add(WINDOW)));
        }
    }
}
