//! Datagrams that only the other end can read, in whatever order they come, each at most once.
//!
//! A datagram bears its number, eight octets in big-endian order, in front of what is sealed; the number is the nonce.
//! Numbers that came, and those that are too old to tell, are refused.

use crate::{Broken, Channel};
use snow::TransportState;
use std::fmt;

/// Octets of the number.
const NUMBER: usize = 8;
/// Octets of the tag (Noise §12.3).
const TAG: usize = 16;
/// Octets that sealing adds to a datagram.
pub const SEALING: usize = NUMBER + TAG;
/// Datagrams by which one may be overtaken (a choice: a second of packets at a gigabit per second is less).
const WINDOW: u64 = 1 << 17;

/// One end of a connection of datagrams after the first words.
pub struct Datagrams {
    transport: TransportState,
    heard: Heard,
}

impl fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagrams").field("next", &self.heard.next).finish_non_exhaustive()
    }
}

impl Datagrams {
    /// Appends what carries `open` to `out`.
    pub fn seal(&mut self, open: &[u8], out: &mut Vec<u8>) {
        out.extend(self.transport.sending_nonce().to_be_bytes());
        let at = out.len();
        out.resize(at + open.len() + TAG, 0);
        // A datagram is short, and nobody seals 2^64 of them.
        let length = self.transport.write_message(open, &mut out[at..]).unwrap_or_default();
        out.truncate(at + length);
    }

    /// Opens a datagram into `open`, whose earlier content is gone.
    ///
    /// # Errors
    /// If the other end did not seal it, or it has come before or too late.
    pub fn open(&mut self, sealed: &[u8], open: &mut Vec<u8>) -> Result<(), Broken> {
        let (number, sealed) = sealed.split_first_chunk::<NUMBER>().ok_or(Broken)?;
        let number = u64::from_be_bytes(*number);
        if number == u64::MAX || !self.heard.is_new(number) {
            return Err(Broken);
        }
        open.resize(sealed.len(), 0);
        self.transport.set_receiving_nonce(number);
        let length = self.transport.read_message(sealed, open).map_err(|_| Broken)?;
        open.truncate(length);
        self.heard.note(number);
        Ok(())
    }
}

impl Channel {
    /// The same connection for datagrams, if no message has been sealed or opened yet.
    pub fn into_datagrams(self) -> Datagrams {
        Datagrams { transport: self.into_transport(), heard: Heard::new() }
    }
}

/// The numbers that have come: those from `next - WINDOW` on, a bit for each in a ring.
struct Heard {
    next: u64,
    ring: Vec<u64>,
}

impl Heard {
    fn new() -> Heard {
        Heard { next: 0, ring: vec![0; (WINDOW / 64) as usize] }
    }

    fn is_new(&self, number: u64) -> bool {
        if number >= self.next {
            return true;
        }
        let (word, bit) = place(number);
        self.next - number <= WINDOW && self.ring[word] & bit == 0
    }

    fn note(&mut self, number: u64) {
        if number >= self.next {
            let skipped = (number - self.next).min(WINDOW);
            (number - skipped..=number).for_each(|it| self.set(it, false));
            self.next = number + 1;
        }
        self.set(number, true);
    }

    fn set(&mut self, number: u64, came: bool) {
        let (word, bit) = place(number);
        match came {
            true => self.ring[word] |= bit,
            false => self.ring[word] &= !bit,
        }
    }
}

/// The word and the bit of a number in the ring.
fn place(number: u64) -> (usize, u64) {
    let at = number % WINDOW;
    ((at / 64) as usize, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hello, Initiator, Purpose};
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn pair() -> (Datagrams, Datagrams) {
        let (initiator, words) = Initiator::begin(None, Purpose(1), b"").unwrap();
        let (hello, _) = Hello::read(&words).unwrap().unwrap();
        let (there, answer) = hello.accept(None).unwrap();
        (initiator.finish(&answer).unwrap().into_datagrams(), there.into_datagrams())
    }

    fn sealed(end: &mut Datagrams, open: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        end.seal(open, &mut out);
        out
    }

    proptest! {
        /// In any order, with copies and without what is lost, each that comes is opened once.
        #[test]
        fn each_opens_once(order in prop::collection::vec(0usize..40, 1..100)) {
            let (mut near, mut there) = pair();
            let all: Vec<Vec<u8>> = (0..40u8).map(|n| sealed(&mut near, &[n; 9])).collect();
            let (mut open, mut seen) = (Vec::new(), HashSet::new());
            for at in order {
                let result = there.open(&all[at], &mut open);
                prop_assert_eq!(result.is_ok(), seen.insert(at));
                if result.is_ok() {
                    prop_assert_eq!(&open, &vec![at as u8; 9]);
                }
            }
        }

        #[test]
        fn a_changed_octet_opens_nothing(at: prop::sample::Index, change in 1u8..) {
            let (mut near, mut there) = pair();
            let mut datagram = sealed(&mut near, b"a datagram");
            prop_assert_eq!(datagram.len(), 10 + SEALING);
            let at = at.index(datagram.len());
            datagram[at] ^= change;
            prop_assert_eq!(there.open(&datagram, &mut Vec::new()), Err(Broken));
            datagram[at] ^= change;
            prop_assert_eq!(there.open(&datagram, &mut Vec::new()), Ok(()));
        }
    }

    #[test]
    fn what_is_too_old_to_tell_is_refused() {
        let mut heard = Heard::new();
        for number in [0, 5, 3 * WINDOW, 3 * WINDOW + 7] {
            assert!(heard.is_new(number));
            heard.note(number);
            assert!(!heard.is_new(number), "{number}");
        }
        assert!(!heard.is_new(6) && !heard.is_new(2 * WINDOW + 7));
        assert!(heard.is_new(2 * WINDOW + 8) && heard.is_new(3 * WINDOW + 1));
    }

    #[test]
    fn what_is_no_datagram_opens_nothing() {
        let (mut near, mut there) = pair();
        let own = sealed(&mut near, b"own");
        for wrong in [&b""[..], &[0; 7], &[0; 8], &[0xff; 40], &own] {
            assert_eq!(near.open(wrong, &mut Vec::new()), Err(Broken));
        }
        assert_eq!(there.open(&own, &mut Vec::new()), Ok(()));
    }
}
