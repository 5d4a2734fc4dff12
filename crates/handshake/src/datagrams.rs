//! Datagrams that only the other end can read, in whatever order they come, each at most once.
//!
//! A datagram bears its number, eight octets in big-endian order, in front of what is sealed; the number is the nonce.
//! Numbers that came, and those that are too old to tell, are refused.
//!
//! If both ends want it they are *in the clear*: of the same length, with a token in place of the tag. The token is the tag of
//! an empty message of number 0, so that it comes from nobody who has not the connection's keys or has not seen one of its
//! datagrams. Each direction has its own.

use crate::{Broken, Channel};
use snow::TransportState;
use std::fmt;
use subtle::ConstantTimeEq;

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
    clear: Option<Clear>,
    heard: Heard,
}

/// What datagrams in the clear need.
struct Clear {
    /// The number of the next one.
    next: u64,
    own: [u8; TAG],
    /// The other end's token, once it has been proved.
    theirs: Option<[u8; TAG]>,
}

impl fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagrams").field("next", &self.heard.next).finish_non_exhaustive()
    }
}

impl Datagrams {
    /// Appends what carries `open` to `out`.
    pub fn seal(&mut self, open: &[u8], out: &mut Vec<u8>) {
        if let Some(clear) = &mut self.clear {
            out.extend(clear.next.to_be_bytes());
            out.extend_from_slice(open);
            out.extend(clear.own);
            clear.next += 1;
            return;
        }
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
        match &mut self.clear {
            Some(clear) => {
                let (octets, token) = sealed.split_last_chunk::<TAG>().ok_or(Broken)?;
                clear.check(&mut self.transport, token)?;
                open.clear();
                open.extend_from_slice(octets);
            }
            None => {
                open.resize(sealed.len(), 0);
                self.transport.set_receiving_nonce(number);
                let length = self.transport.read_message(sealed, open).map_err(|_| Broken)?;
                open.truncate(length);
            }
        }
        self.heard.note(number);
        Ok(())
    }
}

impl Clear {
    fn new(transport: &mut TransportState) -> Option<Clear> {
        let mut own = [0; TAG];
        transport.write_message(&[], &mut own).ok()?;
        Some(Clear { next: 0, own, theirs: None })
    }

    /// Whether a token is the other end's. The first one is opened, others are compared with it.
    fn check(&mut self, transport: &mut TransportState, token: &[u8; TAG]) -> Result<(), Broken> {
        if let Some(theirs) = &self.theirs {
            return if theirs.ct_eq(token).into() { Ok(()) } else { Err(Broken) };
        }
        transport.set_receiving_nonce(0);
        transport.read_message(token, &mut [0; TAG]).map_err(|_| Broken)?;
        self.theirs = Some(*token);
        Ok(())
    }
}

impl Channel {
    /// The same connection for datagrams, if no message has been sealed or opened yet.
    pub fn into_datagrams(self) -> Datagrams {
        Datagrams { transport: self.into_transport(), clear: None, heard: Heard::new() }
    }

    /// The same for datagrams in the clear.
    ///
    /// # Errors
    /// If a message has been sealed.
    pub fn into_clear_datagrams(self) -> Result<Datagrams, Broken> {
        let mut transport = self.into_transport();
        let clear = Clear::new(&mut transport).filter(|_| transport.sending_nonce() == 1);
        let clear = Some(clear.ok_or(Broken)?);
        Ok(Datagrams { transport, clear, heard: Heard::new() })
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
    use crate::{Cipher, Hello, Initiator, Purpose};
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn channels(cipher: Cipher) -> (Channel, Channel) {
        let begun = Initiator::begin_with(cipher, None, Purpose(1), b"");
        let (initiator, words) = begun.unwrap();
        let (hello, _) = Hello::read(&words).unwrap().unwrap();
        let (there, answer) = hello.accept(None).unwrap();
        (initiator.finish(&answer).unwrap(), there)
    }

    fn pair() -> (Datagrams, Datagrams) {
        let (near, there) = channels(Cipher::ChaChaPoly);
        (near.into_datagrams(), there.into_datagrams())
    }

    fn clear() -> (Datagrams, Datagrams) {
        let (near, there) = channels(Cipher::AesGcm);
        (near.into_clear_datagrams().unwrap(), there.into_clear_datagrams().unwrap())
    }

    fn sealed(end: &mut Datagrams, open: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        end.seal(open, &mut out);
        out
    }

    proptest! {
        /// In any order, with copies and without what is lost, each that comes is opened once.
        #[test]
        fn each_opens_once(order in prop::collection::vec(0usize..40, 1..100), is_clear: bool) {
            let (mut near, mut there) = if is_clear { clear() } else { pair() };
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

    /// What is in the clear can be read, and still comes from nobody who has not its end's token: not from another connection,
    /// nor from the end that reads it.
    #[test]
    fn datagrams_in_the_clear_bear_a_token() {
        let ((mut near, mut there), (mut other, _)) = (clear(), clear());
        let datagram = sealed(&mut near, b"a datagram");
        assert_eq!(datagram.len(), 10 + SEALING);
        assert!(datagram.windows(10).any(|it| it == b"a datagram"));
        let open = &mut Vec::new();
        let answer = sealed(&mut there, b"answer");
        for wrong in [sealed(&mut other, b"a datagram"), answer.clone(), vec![0; 40], vec![0; 20]] {
            assert_eq!(there.open(&wrong, open), Err(Broken));
        }
        assert_eq!(there.open(&datagram, open), Ok(()));
        assert_eq!(open, b"a datagram");
        let later = sealed(&mut near, b"another");
        for at in later.len() - TAG..later.len() {
            let mut changed = later.clone();
            changed[at] ^= 1;
            assert_eq!(there.open(&changed, open), Err(Broken));
        }
        assert_eq!(there.open(&later, open), Ok(()));
        assert_eq!(near.open(&answer, open), Ok(()));
        let (mut used, _) = channels(Cipher::AesGcm);
        used.seal(b"a message");
        assert_eq!(used.into_clear_datagrams().unwrap_err(), Broken);
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
