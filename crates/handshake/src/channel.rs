//! Messages that only the other end can read, in the order in which it sent them.
//!
//! A message travels in pieces, each sealed for itself: a length in two octets, big-endian, then so many
//! octets, of which the first one sealed says whether more pieces follow. The number of a piece is its
//! nonce, so that one that is left out, repeated or moved does not open.

use crate::SECRET;
use snow::{HandshakeState, TransportState};
use std::fmt;
use thiserror::Error;

/// Most octets of a message in one piece. A slow path carries a piece soon, so that one that stops in the
/// middle can be told from one that is slow.
const PIECE: usize = 4096;
/// Octets that sealing adds to a piece: the tag, and the mark.
const SEAL: usize = 16 + 1;
/// Octets of a piece's length.
const LENGTH: usize = 2;
/// Longest message if nothing else is said.
const MOST: usize = 1024;

/// An error: what came is not what the other end sealed, or too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("what came was not sealed by the other end, or is too long")]
pub struct Broken;

/// One end of a connection after the first words.
pub struct Channel {
    transport: TransportState,
    transcript: [u8; SECRET],
    most: usize,
    incoming: Vec<u8>,
    message: Vec<u8>,
    pieces: u64,
    broken: bool,
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("pieces", &self.pieces).finish_non_exhaustive()
    }
}

impl Channel {
    pub(crate) fn over(state: HandshakeState) -> Option<Channel> {
        let transcript = state.get_handshake_hash().try_into().ok()?;
        let transport = state.into_transport_mode().ok()?;
        let (incoming, message) = (Vec::new(), Vec::new());
        Some(Channel {
            transport,
            transcript,
            most: MOST,
            incoming,
            message,
            pieces: 0,
            broken: false,
        })
    }

    /// A hash of all that both ends have said in the handshake: no two connections have the same. It is no secret.
    pub fn transcript(&self) -> &[u8; SECRET] {
        &self.transcript
    }

    pub(crate) fn into_transport(self) -> TransportState {
        self.transport
    }

    /// Lets messages have so many octets.
    pub fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// The octets that carry a message.
    pub fn seal(&mut self, message: &[u8]) -> Vec<u8> {
        let pieces = message.len().div_ceil(PIECE).max(1);
        let mut out = Vec::with_capacity(message.len() + pieces * (LENGTH + SEAL));
        for number in 0..pieces {
            let from = number * PIECE;
            let piece = &message[from..message.len().min(from + PIECE)];
            self.seal_piece(piece, number + 1 < pieces, &mut out);
        }
        out
    }

    fn seal_piece(&mut self, piece: &[u8], more: bool, out: &mut Vec<u8>) {
        let mut open = Vec::with_capacity(piece.len() + 1);
        open.push(u8::from(more));
        open.extend_from_slice(piece);
        let mut sealed = vec![0; piece.len() + SEAL];
        // A piece is short, and nobody seals 2^64 of them.
        let length = self.transport.write_message(&open, &mut sealed).unwrap_or_default();
        out.extend((length as u16).to_be_bytes());
        out.extend_from_slice(&sealed[..length]);
    }

    /// Takes octets in; [`open`](Channel::open) gives the messages in them.
    pub fn take(&mut self, octets: &[u8]) {
        self.incoming.extend_from_slice(octets);
    }

    /// The next message, if all of it has come.
    ///
    /// # Errors
    /// If what came was not sealed by the other end or is too long. From then on there is nothing else.
    pub fn open(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        while !self.broken {
            let Some((head, rest)) = self.incoming.split_first_chunk::<LENGTH>() else {
                return Ok(None);
            };
            let length = usize::from(u16::from_be_bytes(*head));
            if !(SEAL..=PIECE + SEAL).contains(&length) {
                break;
            }
            let Some(sealed) = rest.get(..length) else { return Ok(None) };
            let mut open = vec![0; length];
            let Ok(found) = self.transport.read_message(sealed, &mut open) else { break };
            self.incoming.drain(..LENGTH + length);
            self.pieces += 1;
            self.message.extend_from_slice(&open[1..found]);
            if self.message.len() > self.most {
                break;
            }
            if open[0] == 0 {
                return Ok(Some(std::mem::take(&mut self.message)));
            }
        }
        self.broken = true;
        Err(Broken)
    }

    /// Whether a message has begun and not ended.
    pub fn is_torn(&self) -> bool {
        !self.incoming.is_empty() || !self.message.is_empty()
    }

    /// Pieces that have come whole.
    pub fn pieces(&self) -> u64 {
        self.pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hello, Initiator, Purpose};
    use proptest::prelude::*;

    fn pair(most: usize) -> (Channel, Channel) {
        let (initiator, words) = Initiator::begin(None, Purpose(1), b"").unwrap();
        let (hello, _) = Hello::read(&words).unwrap().unwrap();
        let (mut there, answer) = hello.accept(None).unwrap();
        there.allow(most);
        (initiator.finish(&answer).unwrap(), there)
    }

    proptest! {
        #[test]
        fn messages_come_whole_however_they_are_cut(
            lengths in prop::collection::vec(0usize..10_000, 1..5), cuts in 1usize..5000,
        ) {
            let (mut near, mut there) = pair(10_000);
            let messages: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![7; length]).collect();
            let wire: Vec<u8> = messages.iter().flat_map(|message| near.seal(message)).collect();
            let mut found = Vec::new();
            for chunk in wire.chunks(cuts) {
                there.take(chunk);
                while let Some(message) = there.open().unwrap() {
                    found.push(message);
                }
            }
            prop_assert_eq!(found, messages);
            prop_assert!(!there.is_torn());
        }

        #[test]
        fn a_changed_octet_ends_it(at: prop::sample::Index, change in 1u8..) {
            let (mut near, mut there) = pair(100);
            let mut sealed = near.seal(b"a message");
            let at = at.index(sealed.len());
            sealed[at] ^= change;
            there.take(&sealed);
            // A longer piece may still be waited for, but it never opens.
            prop_assert!(!matches!(there.open(), Ok(Some(_))));
            there.take(&[0; PIECE + SEAL + LENGTH]);
            prop_assert_eq!(there.open(), Err(Broken));
            prop_assert_eq!(there.open(), Err(Broken));
        }
    }

    #[test]
    fn pieces_left_out_or_repeated_do_not_open() {
        for order in [&[1usize][..], &[0, 0], &[0, 2]] {
            let (mut near, mut there) = pair(100);
            let sealed = [near.seal(b"one"), near.seal(b"two"), near.seal(b"three")];
            order.iter().for_each(|&at| there.take(&sealed[at]));
            let heard = [there.open(), there.open()];
            assert!(heard.contains(&Err(Broken)), "{order:?}: {heard:?}");
        }
    }

    #[test]
    fn what_was_sent_does_not_come_back_and_too_much_is_refused() {
        let (mut near, mut there) = pair(9);
        let sealed = near.seal(b"a message");
        near.take(&sealed);
        assert_eq!(near.open(), Err(Broken));
        there.take(&sealed);
        assert!(there.open().unwrap().is_some());
        let sealed = near.seal(&[0; 10]);
        there.take(&sealed);
        assert_eq!(there.open(), Err(Broken));
    }
}
